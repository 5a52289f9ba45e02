//! What people see of a run.

use super::*;
use crate::delivery::rollout::view::{Phase, View};

impl Play {
    /// What is shown to somebody who may see the workloads.
    fn shown(&self) -> View {
        let object = self.cluster.rollout.as_ref().unwrap();
        let workloads = self.cluster.workloads.clone();
        view(object, &workloads)
    }

    /// How many pods each batch moves, and how far it is.
    fn batches(&self) -> Vec<(Option<u32>, Phase)> {
        let batches = self.shown().batches;
        batches.iter().map(|it| (it.pods, it.phase)).collect()
    }
}

fn in_three() -> Value {
    json!({"rolloutBatches": [{"replicas": 1}, {"replicas": "40%"}, {}], "lastBatchToRollout": 1})
}

#[test]
fn a_batch_that_waits_is_held_and_those_behind_it_wait() {
    let mut play = pair(&in_three());
    let sizes = |view: &View| {
        let all = view.batches.iter();
        all.map(|it| it.replicas.clone()).collect::<Vec<_>>()
    };
    let fresh = play.shown();
    assert_eq!(fresh.revision.as_deref(), Some("2"));
    assert_eq!(
        sizes(&fresh),
        [Some("1".to_owned()), Some("40%".to_owned()), None]
    );
    assert_eq!(play.batches(), [(None, Phase::Waiting); 3]);
    assert!(fresh.outdated && fresh.ended().is_none());

    play.gate("closed");
    play.run();
    let [first, others @ ..] = play
        .batches()
        .try_into()
        .unwrap_or([(None, Phase::Failed); 3]);
    assert_eq!(first.1, Phase::Held);
    assert_eq!(others.map(|it| it.1), [Phase::Waiting; 2]);

    play.gate("open");
    play.run();
    let shown = play.shown();
    assert_eq!(
        play.batches(),
        [
            (Some(1), Phase::Done),
            (Some(4), Phase::Done),
            (Some(5), Phase::Held)
        ]
    );
    assert_eq!(shown.held.as_ref().unwrap().reason, "LastBatch");
    assert_eq!(
        shown.next().map(|it| (it.batch, it.last)),
        Some((2, Some(1)))
    );
    assert_eq!((shown.target.pods, shown.target.was), (Some(5), Some(0)));
    let [old] = shown.sources.as_slice() else {
        panic!("{shown:?}")
    };
    assert_eq!(
        (old.name.as_str(), old.pods, old.was),
        ("web-v1", Some(5), Some(10))
    );
    // Not everybody who may see a Rollout may see its workloads.
    let object = play.cluster.rollout.as_ref().unwrap();
    assert_eq!(view(object, &BTreeMap::new()).target.pods, None);

    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": 2}}));
    assert_eq!(play.shown().ended(), None);
    play.run();
    assert_eq!(play.shown().ended(), Some(true));
    assert_eq!(play.shown().next(), None);
}

#[test]
fn a_run_that_fails_says_which_batch_has_failed_and_another_may_be_asked_for() {
    let plan = json!({
        "numBatches": 2,
        "rolloutWebhooks": [{"type": "post-batch-rollout", "name": "smoke", "url": "http://smoke/"}],
    });
    let mut play = pair(&plan);
    play.answers
        .insert("smoke".to_owned(), hook::Answer::Status(403));
    play.run();
    let failed = play.shown();
    assert_eq!(failed.ended(), Some(false));
    assert_eq!(
        play.batches(),
        [(Some(5), Phase::Failed), (Some(5), Phase::Waiting)]
    );
    assert_eq!(failed.batches[0].hooks[0].status, Some(403));
    assert_eq!(failed.outcome.unwrap().reason, "HookVetoed");

    play.answers.clear();
    play.retry("1");
    assert!(is_retry_due(play.cluster.rollout.as_ref().unwrap()));
    assert_eq!(play.shown().ended(), None);
    play.run();
    assert_eq!(
        play.batches(),
        [(Some(5), Phase::Passed), (Some(5), Phase::Done)]
    );
    assert!(!is_retry_due(play.cluster.rollout.as_ref().unwrap()));
}

#[test]
fn a_batch_on_its_way_says_how_far_it_is() {
    let mut play = in_place(Kind::StatefulSet, &json!({}));
    let (db, image) = (
        name(Kind::StatefulSet, "db"),
        json!([{"name": "c", "image": "db:2"}]),
    );
    play.cluster
        .foreign(&db, "/spec/template/spec/containers", image, "kubectl");
    play.cluster.settle();
    let mut seen = Vec::new();
    for _ in 0..40 {
        play.look();
        play.cluster.tick();
        play.now += SignedDuration::from_secs(1);
        let phase = play.batches().first().map(|it| it.1);
        if phase != seen.last().copied() {
            seen.extend(phase);
        }
    }
    assert!(
        seen.contains(&Phase::Rolling) && seen.ends_with(&[Phase::Done]),
        "{seen:?}"
    );
    assert!(play.shown().sources.is_empty());
}

#[test]
fn a_rollout_that_is_deleted_stops_its_batch() {
    let mut play = pair(&json!({"numBatches": 2}));
    play.cluster.broken.insert("web:2".to_owned());
    for _ in 0..20 {
        play.look();
        play.cluster.tick();
    }
    assert_eq!(play.batches()[0].1, Phase::Rolling);
    play.cluster.delete(play.now);
    play.look();
    let shown = play.shown();
    assert!(shown.deleted && shown.ended().is_none());
    assert_eq!(shown.batches[0].phase, Phase::Stopped);
}

#[test]
fn the_newest_runs_are_kept() {
    let mut play = pair(&json!({}));
    play.run();
    for again in 1..=6 {
        play.retry(&again.to_string());
        play.run();
    }
    let status = play.status();
    let runs: Vec<_> = status.history.iter().map(|it| it.id).collect();
    assert_eq!((runs.len(), runs[0]), (5, status.run.unwrap().id));
    assert!(runs.is_sorted_by(|newer, older| newer > older), "{runs:?}");
}

/// Also while it is held, and by a spec that is refused.
#[test]
fn a_look_that_is_asked_for_is_answered() {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.run();
    for (deadline, asked) in [("10m", "1"), ("1s", "2")] {
        play.spec(&json!({ "progressDeadline": deadline }));
        play.cluster.respecify(|it| {
            let all = it.metadata.annotations.get_or_insert_default();
            all.insert(
                "reconcile.fluxcd.io/requestedAt".to_owned(),
                asked.to_owned(),
            );
        });
        play.run();
        let status = play.status();
        assert_eq!(status.last_handled_reconcile_at.as_deref(), Some(asked));
        rests(&mut play);
    }
}
