//! How long batches of Rollouts take, and with what: by what their looks find and leave behind.
//!
//! What comes in: each look, with the status that it was decided from and the one that it has left. What goes out: of
//! each batch that is done, how long it was held, how long it waited for pods and metrics, how long for hooks, and how
//! long the controller itself took. What lies between two looks belongs to what the status said meanwhile, and a look
//! with all its writes to the controller. Of a batch that another process has begun it is not known.

use std::sync::Arc;

use hashbrown::HashMap;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::BatchRollingState;

use crate::cluster::key::Work;

/// What a batch takes its time for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Held,
    Pods,
    Hooks,
    Ours,
}

impl Part {
    const ALL: [Part; 4] = [Part::Held, Part::Pods, Part::Hooks, Part::Ours];

    /// The word, as metrics have it.
    fn as_str(self) -> &'static str {
        match self {
            Part::Held => "held",
            Part::Pods => "pods",
            Part::Hooks => "hooks",
            Part::Ours => "ours",
        }
    }

    /// What is waited for where a status says this. None: no batch is under way.
    fn of(status: &RolloutStatus) -> Option<Self> {
        let state = status.batch_rolling_state?;
        Some(match (state, &status.held) {
            (_, Some(_)) => Part::Held,
            (BatchRollingState::BatchInitializing | BatchRollingState::BatchFinalizing, None) => {
                Part::Hooks
            }
            (BatchRollingState::BatchInRolling | BatchRollingState::BatchVerifying, None) => {
                Part::Pods
            }
            (BatchRollingState::BatchReady | BatchRollingState::BatchVerifyFailed, None) => {
                return None;
            }
        })
    }
}

/// The parts of batches, as metrics have them.
#[derive(Clone, Debug)]
pub struct Batches {
    /// By part.
    pub seconds: Family<PartLabels, Histogram>,
    under_way: Arc<Mutex<HashMap<Work, UnderWay>>>,
}

/// A part. Every word is one of a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PartLabels {
    /// What the time was for.
    pub part: &'static str,
}

/// A batch that has begun, and is not done.
#[derive(Debug)]
struct UnderWay {
    of: (i64, i32),
    /// The end of the last look.
    looked: Timestamp,
    /// How long each of [`Part::ALL`] has taken.
    took: [SignedDuration; 4],
}

impl UnderWay {
    fn add(&mut self, part: Part, from: Timestamp, to: Timestamp) {
        // A clock that was set back takes nothing away.
        let length = to.duration_since(from).max(SignedDuration::ZERO);
        for (known, took) in Part::ALL.iter().zip(&mut self.took) {
            if *known == part {
                *took = took.saturating_add(length);
            }
        }
    }
}

impl Default for Batches {
    /// All are served from the start, at zero.
    fn default() -> Self {
        fn histogram() -> Histogram {
            Histogram::new([
                0.01, 0.1, 1.0, 10.0, 60.0, 300.0, 1800.0, 3600.0, 14400.0, 86400.0,
            ])
        }
        let all = Self {
            seconds: Family::new_with_constructor(histogram),
            under_way: Arc::default(),
        };
        for part in Part::ALL {
            drop(all.of(part));
        }
        all
    }
}

/// The batch of a status: its run, and its place. None: there is none.
fn batch(status: &RolloutStatus) -> Option<(i64, i32)> {
    Some((status.run.as_ref()?.id, status.current_batch?))
}

/// Whether the batch of a status is done.
fn is_done(status: &RolloutStatus) -> bool {
    let place = status.current_batch.and_then(|it| usize::try_from(it).ok());
    let batch = place.and_then(|place| status.batches.get(place));
    batch.is_some_and(|batch| batch.done.is_some())
}

impl Batches {
    fn of(&self, part: Part) -> impl std::ops::Deref<Target = Histogram> {
        let part = part.as_str();
        self.seconds.get_or_create(&PartLabels { part })
    }

    /// Takes in a look that began and ended at these instants, with the status that it has found and the one that it
    /// has left.
    pub fn note(
        &self,
        work: &Work,
        (before, now): (&RolloutStatus, &RolloutStatus),
        (began, ended): (Timestamp, Timestamp),
    ) {
        let mut all = self.under_way.lock();
        let is_new = batch(before) != batch(now);
        match (all.get_mut(work), batch(before)) {
            (Some(known), Some(of)) if known.of == of => {
                if let Some(part) = Part::of(before) {
                    let looked = known.looked;
                    known.add(part, looked, began);
                }
                known.add(Part::Ours, began, ended);
                known.looked = ended;
                if is_new || is_done(now) {
                    let known = all.remove(work);
                    let known = known.filter(|_| !is_new && is_done(now));
                    self.observe(known.as_ref());
                }
            }
            (Some(_), _) => drop(all.remove(work)),
            (None, _) => {}
        }
        // What is passed at once, because its pods are there, is no batch that goes out.
        if let Some(of) = batch(now).filter(|_| is_new && !is_done(now)) {
            let mut begun = UnderWay {
                of,
                looked: ended,
                took: [SignedDuration::ZERO; 4],
            };
            begun.add(Part::Ours, began, ended);
            all.insert(work.clone(), begun);
        }
    }

    fn observe(&self, done: Option<&UnderWay>) {
        for (part, took) in Part::ALL.iter().zip(done.iter().flat_map(|it| it.took)) {
            self.of(*part).observe(took.as_secs_f64());
        }
    }

    /// The Rollout is gone, or another shard's.
    pub fn forget(&self, work: &Work) {
        self.under_way.lock().remove(work);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::key::KeyRef;
    use crate::cluster::kind::Kind;

    const NOON: &str = "2026-11-20T12:00:00Z";

    /// A status of the second batch, unless it says something else.
    fn status(state: &str, with: &Value) -> RolloutStatus {
        let mut status = json!({
            "batchRollingState": state, "currentBatch": 1,
            "run": {"id": 7, "mode": "Pair", "revision": "2", "identity": "i", "workloads": []},
            "batches": [{"goal": 1, "done": NOON}, {"goal": 2}],
        });
        let fields = with.as_object().unwrap().clone();
        status.as_object_mut().unwrap().extend(fields);
        serde_json::from_value(status).unwrap()
    }

    fn done() -> RolloutStatus {
        let batches = json!([{"goal": 1, "done": NOON}, {"goal": 2, "done": NOON}]);
        status("batchReady", &json!({ "batches": batches }))
    }

    /// What is observed while looks find these statuses, a minute apart. Each takes a second.
    fn observed(statuses: &[RolloutStatus]) -> Vec<String> {
        let batches = Batches::default();
        let (namespace, name) = ("apps", "web");
        let work = Work::own(Kind::Rollout, KeyRef { namespace, name }.into());
        let mut began: Timestamp = NOON.parse().unwrap();
        for pair in statuses.windows(2) {
            let ended = began + SignedDuration::from_secs(1);
            batches.note(&work, (&pair[0], &pair[1]), (began, ended));
            began += SignedDuration::from_mins(1);
        }
        let mut registry = prometheus_client::registry::Registry::default();
        registry.register("seconds", "h", batches.seconds);
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        let mut sums: Vec<String> = page
            .lines()
            .filter_map(|line| line.strip_prefix("seconds_sum"))
            .filter(|sum| !sum.ends_with(" 0.0"))
            .map(str::to_owned)
            .collect();
        sums.sort();
        sums
    }

    #[test]
    fn each_part_has_the_time_that_it_took() {
        let none = json!({});
        let before = status("batchReady", &json!({"currentBatch": 0}));
        let held = json!({"reason": "GatesClosed", "message": "m", "since": NOON});
        let found = observed(&[
            before,
            status("batchInitializing", &none),
            status("batchInitializing", &json!({ "held": held })),
            status("batchInitializing", &json!({ "held": held })),
            status("batchInRolling", &none),
            status("batchVerifying", &none),
            status("batchFinalizing", &none),
            done(),
            // Looks after that belong to no batch.
            done(),
        ]);
        let expected = [
            r#"{part="held"} 118.0"#,
            r#"{part="hooks"} 118.0"#,
            r#"{part="ours"} 7.0"#,
            r#"{part="pods"} 118.0"#,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_was_not_seen_from_the_start_is_not_observed() {
        let none = json!({});
        let found = observed(&[
            status("batchInRolling", &none),
            status("batchVerifying", &none),
            done(),
        ]);
        assert!(found.is_empty(), "{found:?}");
        // It is passed, because its pods are there already.
        let before = status("batchReady", &json!({"currentBatch": 0}));
        assert!(observed(&[before.clone(), done()]).is_empty());
        // Another run begins in its place.
        let other = json!({"run": {"id": 8, "mode": "Pair", "revision": "3", "identity": "j", "workloads": []}});
        let found = observed(&[
            before,
            status("batchInRolling", &none),
            status("batchInitializing", &other),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
