//! Orders to merge: given once, for one commit, and no longer than the rules let it pass.

use serde_json::json;
use sluice_crds::pipeline::MergeGate;
use sluice_crds::promotion_strategy::{Arrival, EnvironmentState};

use super::*;

/// The second commit is ordered to be merged into dev, and the forge has not done it.
fn ordered() -> Play {
    let mut play = Play::new();
    play.spec(|spec| {
        spec["environments"][0]["gates"] = json!({"refs": [{"name": "office"}]});
    });
    play.all_healthy();
    play.settle();
    play.hydrate("v2");
    for _ in 0..8 {
        play.look();
    }
    play.forge();
    play.forge_works = false;
    play.settle();
    assert_eq!(play.state("env/dev"), EnvironmentState::Merging);
    play
}

#[test]
fn an_order_names_the_commit_and_ends() {
    let mut play = ordered();
    let order = play.environment("env/dev").order.clone().unwrap();
    assert_eq!(order.head_sha, play.repository.head("env/dev-next"));
    assert_eq!(order.not_after.0, play.now + SignedDuration::from_secs(60));
    assert_eq!(play.environment("env/dev").gate, Some(MergeGate::Success));
    let told = play.told.len();
    play.look();
    assert_eq!(play.environment("env/dev").order, Some(order.clone()));
    assert!(play.told.len() > told);
    // It ended without a merge: the gates are asked again.
    play.pass(2);
    play.settle();
    let next = play.environment("env/dev").order.clone().unwrap();
    assert!(next.at > order.at);
}

#[test]
fn a_gate_that_closes_takes_it_back() {
    let mut play = ordered();
    play.open.insert("office".to_owned(), false);
    play.settle();
    let environment = play.environment("env/dev");
    assert_eq!(
        (environment.order.as_ref(), environment.gate),
        (None, Some(MergeGate::Pending))
    );
}

#[test]
fn a_newer_commit_takes_it_back() {
    let mut play = ordered();
    play.hydrate("v3");
    play.settle();
    assert_eq!(play.environment("env/dev").order, None);
    assert_eq!(play.reason("env/dev"), Some("PullRequestPending"));
}

#[test]
fn what_was_decided_from_a_part_is_not_written() {
    let mut play = ordered();
    // Something new is proposed for test, of which nothing is known.
    play.repository.is_silent = true;
    let writes = play.writes;
    let dry = play.repository.head("main");
    play.propose("env/test", &dry, "another");
    play.settle();
    assert_eq!(play.writes, writes);
    // But what was let pass and is held back now is taken back at once.
    play.open.insert("office".to_owned(), false);
    play.settle();
    assert_eq!(play.environment("env/dev").order, None);
}

/// The forge has merged it, and then the branch cannot be read for a while.
#[test]
fn a_merge_by_an_order_stays_one_while_the_repository_cannot_be_read() {
    let mut play = ordered();
    play.forge();
    play.repository.trouble = Some("down".to_owned());
    play.settle();
    assert_eq!(play.reason("env/dev"), Some("ForgeUnavailable"));
    play.repository.trouble = None;
    play.settle();
    let active = play.environment("env/dev").active.clone().unwrap();
    assert_eq!(active.arrived_by, Some(Arrival::Promotion));
    assert_eq!(play.environment("env/dev").order, None);
}

#[test]
fn a_decision_that_could_not_be_recorded_merges_nothing() {
    let mut play = Play::new();
    play.all_healthy();
    play.settle();
    play.hydrate("v2");
    for _ in 0..8 {
        play.look();
    }
    play.forge();
    let considered = consider(play.given());
    let mut told: Vec<_> = considered
        .asked()
        .iter()
        .map(|it| it.decision.clone())
        .collect();
    assert!(considered.asked()[0].takes_effect);
    for decision in &mut told {
        decision.allowed = false;
        decision.message = "the audit log cannot be written".to_owned();
    }
    let report = report(considered, &told);
    let dev = &report.status.environments[0];
    assert_eq!(
        (dev.order.as_ref(), dev.reason.as_deref()),
        (None, Some("GateClosed"))
    );
}

#[test]
fn a_person_merges_where_the_controller_may_not() {
    let mut play = Play::new();
    play.spec(|spec| spec["environments"][0]["autoMerge"] = json!(false));
    play.all_healthy();
    play.settle();
    play.hydrate("v2");
    play.settle();
    let dev = play.environment("env/dev");
    assert_eq!(play.reasons("env/dev"), ["WaitsForPerson"]);
    assert_eq!(
        (dev.order.as_ref(), dev.gate),
        (None, Some(MergeGate::Success))
    );
    assert_eq!(play.merges, []);
}
