//! How commits come to environments that are branches, by what the statuses of PromotionStrategies say before
//! and after a write.
//!
//! Four figures of DORA come from them: how often something is promoted, how long that takes from the dry
//! commit on, how often it is taken back, and how long it takes until an environment whose checks fail is
//! healthy, or was brought back. The last is known only of what this process has seen from the start. What is
//! read back after a status was lost was counted before.
//!
//! There are counters for each environment of each strategy, until that is gone.

use std::collections::BTreeMap;
use std::fmt::Error;
use std::sync::Arc;

use hashbrown::HashMap;
use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use sluice_crds::promotion_strategy::{Arrival, EnvironmentState, EnvironmentStatus};

use crate::cluster::key::Work;

/// By whom something is promoted, or taken back.
const BY: [&str; 3] = ["sluice", "person", "revert"];
/// The upper bounds of the buckets, in seconds: a quarter of an hour to thirty days.
const BOUNDS: [f64; 6] = [900.0, 3_600.0, 14_400.0, 86_400.0, 604_800.0, 2_592_000.0];

/// The counters.
#[derive(Clone, Debug, Default)]
pub struct Branches(Arc<Mutex<HashMap<Work, BTreeMap<String, Environment>>>>);

#[derive(Clone, Copy, Debug, Default)]
struct Environment {
    /// In the order of [`BY`].
    promoted: [u64; BY.len()],
    lead: Histogram,
    restored: Histogram,
    failing_since: Option<Timestamp>,
}

/// One of its two histograms.
type Figure = fn(&Environment) -> &Histogram;

#[derive(Clone, Copy, Debug, Default)]
struct Histogram {
    sum: f64,
    /// How many fell into each bucket, and beyond the last bound.
    counts: [u64; BOUNDS.len() + 1],
}

impl Branches {
    /// Counts what is new between two statuses of a strategy, at `at`. `made` says when a dry commit was made, if
    /// that is known.
    pub fn note(
        &self,
        work: &Work,
        before: &[EnvironmentStatus],
        now: &[EnvironmentStatus],
        at: Timestamp,
        made: impl Fn(&str) -> Option<Timestamp>,
    ) {
        let mut all = self.0.lock();
        let all = all.entry(work.clone()).or_default();
        all.retain(|branch, _| now.iter().any(|it| it.branch == *branch));
        for is in now {
            let counted = all.entry(is.branch.clone()).or_default();
            let was = before.iter().find(|it| it.branch == is.branch);
            let arrived = was.and_then(|was| arrived(was, is));
            if let Some((by, dry)) = arrived {
                counted.promoted[by.place()] += 1;
                let made = dry.filter(|_| by != By::Revert).and_then(&made);
                counted.lead.observe(made, at);
            }
            let is_back = arrived.is_some_and(|(by, _)| by == By::Revert);
            if is_back || is.state == EnvironmentState::UpToDate {
                counted.restored.observe(counted.failing_since.take(), at);
            } else if is.state == EnvironmentState::Failed {
                counted.failing_since.get_or_insert(at);
            }
        }
    }

    /// The strategy is gone, or another shard's.
    pub fn forget(&self, work: &Work) {
        self.0.lock().remove(work);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Sluice,
    Person,
    Revert,
}

impl By {
    /// Its place in [`BY`].
    fn place(self) -> usize {
        match self {
            Self::Sluice => 0,
            Self::Person => 1,
            Self::Revert => 2,
        }
    }
}

/// By whom the environment has another commit than before, and the dry commit of that.
fn arrived<'s>(
    was: &EnvironmentStatus,
    is: &'s EnvironmentStatus,
) -> Option<(By, Option<&'s str>)> {
    let (before, tip) = (was.active.as_ref()?, is.active.as_ref()?);
    let by = match tip.arrived_by? {
        Arrival::Promotion => By::Sluice,
        Arrival::Person => By::Person,
        Arrival::Revert => By::Revert,
        Arrival::Baseline | Arrival::Foreign => return None,
    };
    (before.hydrated_sha != tip.hydrated_sha).then_some((by, tip.dry_sha.as_deref()))
}

impl Histogram {
    /// It has lasted since then.
    fn observe(&mut self, since: Option<Timestamp>, at: Timestamp) {
        let Some(since) = since else {
            return;
        };
        let seconds = at.duration_since(since).as_secs_f64().max(0.0);
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound);
        self.counts[bucket.unwrap_or(BOUNDS.len())] += 1;
        self.sum += seconds;
    }

    fn buckets(&self) -> [(f64, u64); BOUNDS.len() + 1] {
        let mut buckets = [(f64::INFINITY, 0); BOUNDS.len() + 1];
        for (bucket, bound) in buckets.iter_mut().zip(BOUNDS) {
            bucket.0 = bound;
        }
        for (bucket, count) in buckets.iter_mut().zip(self.counts) {
            bucket.1 = count;
        }
        buckets
    }
}

impl Collector for Branches {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let all: Vec<(Work, String, Environment)> = {
            let all = self.0.lock();
            let of = |(work, all): (&Work, &BTreeMap<String, Environment>)| {
                let work = work.clone();
                let all = all.clone().into_iter();
                all.map(move |(branch, is)| (work.clone(), branch, is))
            };
            all.iter().flat_map(of).collect()
        };
        let labels = |work: &Work, branch: &str| {
            let (namespace, name) = (work.key.namespace.to_string(), work.key.name.to_string());
            [
                ("namespace", namespace),
                ("name", name),
                ("environment", branch.to_owned()),
            ]
        };
        let (name, help) = (
            "sluice_branch_promotions",
            "Commits that have come to an environment that is a branch",
        );
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (work, branch, is) in &all {
            for (by, count) in BY.into_iter().zip(is.promoted) {
                let [a, b, c] = labels(work, branch);
                let labels = [a, b, c, ("by", by.to_owned())];
                ConstCounter::new(count).encode(metric.encode_family(&labels)?)?;
            }
        }
        let figures: [(&str, &str, Figure); 2] = [
            (
                "sluice_branch_lead_time_seconds",
                "From when a dry commit was made to its being in an environment",
                |is| &is.lead,
            ),
            (
                "sluice_branch_restore_seconds",
                "From when a check of an environment fails to its being healthy, or brought back",
                |is| &is.restored,
            ),
        ];
        for (name, help, figure) in figures {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
            for (work, branch, is) in &all {
                let Histogram { sum, counts } = figure(is);
                metric
                    .encode_family(&labels(work, branch))?
                    .encode_histogram::<NoLabelSet>(
                        *sum,
                        counts.iter().sum(),
                        &figure(is).buckets(),
                        None,
                    )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;
    use serde_json::json;

    use super::*;
    use crate::cluster::key::KeyRef;
    use crate::cluster::kind::Kind;

    const NOON: &str = "2026-11-20T12:00:00Z";

    fn noon() -> Timestamp {
        NOON.parse().unwrap()
    }

    fn shop() -> Work {
        let (namespace, name) = ("apps", "shop");
        Work::own(Kind::PromotionStrategy, KeyRef { namespace, name }.into())
    }

    fn prod(state: &str, commit: &str, arrived: &str) -> Vec<EnvironmentStatus> {
        let active = json!({
            "hydratedSHA": commit, "drySHA": format!("dry of {commit}"), "tree": commit,
            "since": NOON, "arrivedBy": arrived,
        });
        let prod = json!({"branch": "env/prod", "state": state, "active": active});
        vec![serde_json::from_value(prod).unwrap()]
    }

    /// What is served after these statuses, an hour apart. Each dry commit was made at noon.
    fn page(statuses: &[Vec<EnvironmentStatus>]) -> (String, Branches) {
        let branches = Branches::default();
        let mut before = Vec::new();
        let mut at = noon();
        for now in statuses {
            branches.note(&shop(), &before, now, at, |_| Some(noon()));
            // A write that says the same.
            branches.note(&shop(), now, now, at, |_| Some(noon()));
            before.clone_from(now);
            at += SignedDuration::from_hours(1);
        }
        (read(&branches), branches)
    }

    fn read(branches: &Branches) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(branches.clone()));
        let mut page = String::new();
        encode(&mut page, &registry).unwrap();
        page
    }

    fn counts(page: &str) -> [u64; 3] {
        BY.map(|by| {
            let of =
                format!("namespace=\"apps\",name=\"shop\",environment=\"env/prod\",by=\"{by}\"");
            let line = format!("sluice_branch_promotions_total{{{of}}} ");
            let found = page.lines().find_map(|it| it.strip_prefix(&line));
            found.unwrap().parse().unwrap()
        })
    }

    fn sum(page: &str, figure: &str) -> (String, String) {
        let of = "{namespace=\"apps\",name=\"shop\",environment=\"env/prod\"} ";
        let read = |part: &str| {
            let line = format!("sluice_branch_{figure}_seconds_{part}{of}");
            let found = page.lines().find_map(|it| it.strip_prefix(&line));
            found.unwrap().to_owned()
        };
        (read("count"), read("sum"))
    }

    #[test]
    fn each_commit_is_counted_once_with_the_time_since_it_was_made() {
        let (page, branches) = page(&[
            prod("UpToDate", "a", "Baseline"),
            prod("Verifying", "b", "Promotion"),
            prod("UpToDate", "b", "Promotion"),
            prod("Verifying", "c", "Person"),
            prod("UpToDate", "x", "Foreign"),
            prod("Held", "b2", "Revert"),
        ]);
        assert_eq!(counts(&page), [1, 1, 1]);
        // One hour and three; a revert is not made of something new.
        assert_eq!(sum(&page, "lead_time"), ("2".into(), "14400.0".into()));
        let bucket = "sluice_branch_lead_time_seconds_bucket{le=\"3600.0\",";
        let line = page.lines().find(|it| it.starts_with(bucket)).unwrap();
        assert!(line.ends_with("} 1"), "{line}");
        branches.forget(&shop());
        assert!(!read(&branches).contains("shop"));
    }

    /// What is there when a process begins to lead, or is read back, was counted before.
    #[test]
    fn what_is_seen_first_is_at_zero() {
        let (page, branches) = page(&[prod("UpToDate", "a", "Promotion")]);
        assert_eq!(counts(&page), [0, 0, 0]);
        branches.note(&shop(), &[], &[], noon(), |_| None);
        assert!(!read(&branches).contains("prod"));
    }

    #[test]
    fn an_environment_is_restored_once_it_is_healthy_or_back() {
        let fixed = [
            prod("Failed", "b", "Promotion"),
            prod("Failed", "b", "Promotion"),
            prod("Verifying", "c", "Promotion"),
            prod("UpToDate", "c", "Promotion"),
        ];
        assert_eq!(
            sum(&page(&fixed).0, "restore"),
            ("1".into(), "10800.0".into())
        );
        let back = [
            prod("Failed", "b", "Promotion"),
            prod("Reverting", "b", "Promotion"),
            prod("Held", "a2", "Revert"),
            prod("UpToDate", "a2", "Revert"),
        ];
        assert_eq!(
            sum(&page(&back).0, "restore"),
            ("1".into(), "7200.0".into())
        );
        let healthy = [
            prod("Verifying", "b", "Promotion"),
            prod("UpToDate", "b", "Promotion"),
        ];
        assert_eq!(sum(&page(&healthy).0, "restore").0, "0");
    }
}
