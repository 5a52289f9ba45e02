//! How promotions end, and how long they take, by what the statuses of Pipelines say before and after a
//! write.
//!
//! A promotion begins with its first record: the environment before it runs the revision healthily then. How
//! long it takes holds the waiting for gates and people, too. Of one that another process has begun it is
//! not known. What people have done themselves is no promotion, and what is read back after a status was
//! lost was counted before.

use std::sync::Arc;

use hashbrown::HashMap;
use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use sluice_core::delivery::pipeline::ADMITTED;
use sluice_crds::pipeline::{EnvironmentState, EnvironmentStatus, Phase, StrategyKind};
use sluice_crds::{Pipeline, PipelineStatus};

use crate::cluster::key::Work;

/// The strategies, as metrics name them.
const STRATEGIES: [&str; 3] = ["pull-request", "notification", "admission"];
/// How a promotion ends, or a try of it.
const OUTCOMES: [&str; 4] = ["succeeded", "failed", "abandoned", "no_effect"];

/// The counters.
#[derive(Clone, Debug)]
pub struct Promoted {
    /// By strategy and outcome.
    pub outcomes: Family<OutcomeLabels, Counter>,
    /// From when the environment before runs the revision to when the promotion is done.
    pub seconds: Family<StrategyLabels, Histogram>,
    begun: Arc<Mutex<HashMap<Work, Begun>>>,
}

/// When each environment's newest promotion has begun, by its key.
type Begun = HashMap<String, (String, Timestamp)>;

/// The outcome of a promotion. Every word is one of a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OutcomeLabels {
    /// How it is done.
    pub strategy: &'static str,
    /// How it has ended.
    pub outcome: &'static str,
}

/// How promotions are done.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct StrategyLabels {
    /// One of a list.
    pub strategy: &'static str,
}

impl Default for Promoted {
    /// All are served from the start, at zero.
    fn default() -> Self {
        fn histogram() -> Histogram {
            Histogram::new([
                1.0, 10.0, 60.0, 300.0, 1800.0, 3600.0, 14400.0, 86400.0, 604_800.0,
            ])
        }
        let all = Self {
            outcomes: Family::default(),
            seconds: Family::new_with_constructor(histogram),
            begun: Arc::default(),
        };
        for strategy in STRATEGIES {
            for outcome in OUTCOMES {
                let labels = OutcomeLabels { strategy, outcome };
                drop(all.outcomes.get_or_create(&labels));
            }
            drop(all.seconds.get_or_create(&StrategyLabels { strategy }));
        }
        all
    }
}

impl Promoted {
    /// Counts what has ended between two statuses of a Pipeline, at `at`.
    pub fn note(
        &self,
        work: &Work,
        object: &Pipeline,
        before: &PipelineStatus,
        now: &PipelineStatus,
        at: Timestamp,
    ) {
        let mut all = self.begun.lock();
        let begun = all.entry(work.clone()).or_default();
        begun.retain(|name, _| now.environments.contains_key(name));
        for spec in &object.spec.environments {
            let promotion = object.spec.promotion_of(spec);
            let strategy = promotion.and_then(|it| it.strategy.kind());
            let (Some(strategy), Some(status)) = (strategy, now.environments.get(&spec.name))
            else {
                continue;
            };
            let strategy = StrategyKind::as_str(strategy);
            let key = |status: &EnvironmentStatus| Some(status.promotion.as_ref()?.key.clone());
            let (Some(is), was) = (key(status), before.environments.get(&spec.name)) else {
                continue;
            };
            let was = was.filter(|was| key(was).as_ref() == Some(&is));
            if was.is_none() {
                begun.insert(spec.name.clone(), (is.clone(), at));
            }
            let Some(outcome) = outcome(was, status) else {
                continue;
            };
            let labels = OutcomeLabels { strategy, outcome };
            self.outcomes.get_or_create(&labels).inc();
            let since = begun.get(&spec.name).filter(|(key, _)| *key == is);
            if let (Some((_, since)), "succeeded") = (since, outcome) {
                let took = at.duration_since(*since).as_secs_f64().max(0.0);
                let labels = StrategyLabels { strategy };
                self.seconds.get_or_create(&labels).observe(took);
            }
        }
    }

    /// The Pipeline is gone, or another shard's.
    pub fn forget(&self, work: &Work) {
        self.begun.lock().remove(work);
    }
}

/// What has ended. `was`: what the status said before of the same promotion.
fn outcome(was: Option<&EnvironmentStatus>, now: &EnvironmentStatus) -> Option<&'static str> {
    let record = now.promotion.as_ref()?;
    let before = was.and_then(|was| was.promotion.as_ref());
    let phase = before.map(|before| before.phase);
    let no_effect = EnvironmentState::NoEffect;
    if now.state == no_effect && was.is_some_and(|was| was.state != no_effect) {
        return Some("no_effect");
    }
    match (phase, record.phase) {
        (Some(Phase::Attempting | Phase::Failed | Phase::Created), Phase::Succeeded) => {
            Some("succeeded")
        }
        (None | Some(Phase::Unapproved | Phase::Unattempted), Phase::Succeeded)
            if record.reason.as_deref() == Some(ADMITTED) =>
        {
            Some("succeeded")
        }
        (Some(before), Phase::Abandoned) if before != Phase::Abandoned => Some("abandoned"),
        (Some(Phase::Failed), Phase::Failed) => {
            let tries = before.map_or(0, |before| before.attempts);
            (record.attempts > tries).then_some("failed")
        }
        (Some(_), Phase::Failed) => Some("failed"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::key::KeyRef;
    use crate::cluster::kind::Kind;

    const NOON: &str = "2026-11-20T12:00:00Z";

    fn object() -> Pipeline {
        serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
            "metadata": {"namespace": "apps", "name": "shop"},
            "spec": {
                "appRef": {"kind": "HelmRelease", "name": "shop"},
                "promotion": {"strategy": {"notification": {}}},
                "environments": [
                    {"name": "dev", "targets": [{"namespace": "dev"}]},
                    {"name": "prod", "targets": [{"namespace": "prod"}]},
                ],
            },
        }))
        .unwrap()
    }

    fn status(state: &str, record: &Value) -> PipelineStatus {
        let mut promotion = json!({
            "run": 1, "revision": "6.1.6", "key": "0123456789ab", "at": NOON,
        });
        let map = promotion.as_object_mut().unwrap();
        map.extend(record.as_object().unwrap().clone());
        let prod = json!({"state": state, "promotion": promotion});
        serde_json::from_value(json!({"environments": {"prod": prod}})).unwrap()
    }

    /// What is counted while a Pipeline goes through these statuses, a minute apart.
    fn counted(statuses: &[PipelineStatus]) -> (Vec<&'static str>, Promoted) {
        let promoted = Promoted::default();
        let (namespace, name) = ("apps", "shop");
        let work = Work::own(Kind::Pipeline, KeyRef { namespace, name }.into());
        let mut at: Timestamp = NOON.parse().unwrap();
        let mut before = PipelineStatus::default();
        for now in statuses {
            promoted.note(&work, &object(), &before, now, at);
            // A write that says the same.
            promoted.note(&work, &object(), now, now, at);
            before = now.clone();
            at += jiff::SignedDuration::from_mins(1);
        }
        let strategy = "notification";
        let times = |outcome: &&'static str| {
            let outcome = *outcome;
            let labels = OutcomeLabels { strategy, outcome };
            let count = promoted.outcomes.get_or_create(&labels).get();
            std::iter::repeat_n(outcome, usize::try_from(count).unwrap())
        };
        let found = OUTCOMES.iter().flat_map(times).collect();
        (found, promoted)
    }

    #[test]
    fn a_promotion_is_counted_once_with_the_time_that_it_took() {
        let (found, promoted) = counted(&[
            status("GatesClosed", &json!({"phase": "Unattempted"})),
            status("Promoting", &json!({"phase": "Attempting"})),
            status("Promoted", &json!({"phase": "Succeeded", "reason": "Sent"})),
            status(
                "Passed",
                &json!({"phase": "Succeeded", "reason": "Arrived"}),
            ),
        ]);
        assert_eq!(found, ["succeeded"]);
        let mut registry = prometheus_client::registry::Registry::default();
        registry.register("seconds", "h", promoted.seconds);
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        let sum = "seconds_sum{strategy=\"notification\"} 120.0\n";
        assert!(page.contains(sum), "{page}");
    }

    #[test]
    fn an_admission_is_one_write() {
        let (found, _) = counted(&[status(
            "Promoted",
            &json!({"phase": "Succeeded", "reason": "Admitted"}),
        )]);
        assert_eq!(found, ["succeeded"]);
    }

    #[test]
    fn each_try_that_fails_and_each_promotion_without_effect_is_counted() {
        let (found, _) = counted(&[
            status("Promoting", &json!({"phase": "Attempting"})),
            status("Failed", &json!({"phase": "Failed", "attempts": 1})),
            status("Failed", &json!({"phase": "Failed", "attempts": 2})),
            status("Promoting", &json!({"phase": "Attempting", "attempts": 2})),
            status("Promoted", &json!({"phase": "Succeeded", "reason": "Sent"})),
            status("NoEffect", &json!({"phase": "Succeeded", "reason": "Sent"})),
        ]);
        assert_eq!(found, ["succeeded", "failed", "failed", "no_effect"]);
        let (found, _) = counted(&[
            status("PullRequestOpen", &json!({"phase": "Created"})),
            status("Abandoned", &json!({"phase": "Abandoned"})),
        ]);
        assert_eq!(found, ["abandoned"]);
    }

    #[test]
    fn what_people_did_and_what_is_read_back_is_not_counted() {
        let none: [&str; 0] = [];
        let (by_people, _) = counted(&[
            status("Unapproved", &json!({"phase": "Unapproved"})),
            status(
                "Passed",
                &json!({"phase": "Succeeded", "reason": "Arrived"}),
            ),
        ]);
        assert_eq!(by_people, none);
        let merged = json!({"phase": "Succeeded", "reason": "Merged"});
        assert_eq!(counted(&[status("Promoted", &merged)]).0, none);
        let closed = json!({"phase": "Abandoned", "reason": "Closed"});
        assert_eq!(counted(&[status("Abandoned", &closed)]).0, none);
    }
}
