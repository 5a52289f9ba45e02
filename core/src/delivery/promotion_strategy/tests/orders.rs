//! Orders to merge: given once, for one commit, and no longer than the rules let it pass.

use rstest::rstest;
use serde_json::json;
use sluice_crds::pipeline::MergeGate;
use sluice_crds::promotion_strategy::{Arrival, EnvironmentState, Tip};

use super::*;
use crate::verdict::status::REQUESTED_AT;

/// The second commit is ordered to be merged into dev, and the forge has not done it.
fn ordered() -> Play {
    let mut play = Play::new();
    play.spec(|spec| {
        spec["environments"][0]["gates"] = json!({"refs": [{"name": "office"}]});
    });
    play.all_healthy();
    play.settle();
    play.propose_second();
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
    play.propose_second();
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

/// The forge refuses the merge, and the order has ended.
fn put_off(until: Timestamp) -> Play {
    let mut play = ordered();
    let status = play.pull_request("env/dev").status.as_mut().unwrap();
    status.outcome = Some("NotMergeable".to_owned());
    status.message = Some("it needs two approvals".to_owned());
    status.next_merge_at = Some(time(until));
    play.settle();
    assert!(play.environment("env/dev").order.is_some());
    play.pass(2);
    play.settle();
    play
}

#[test]
fn a_merge_that_the_forge_refuses_is_ordered_again_later() {
    let until = "2026-11-23T12:05:00Z".parse().unwrap();
    let mut play = put_off(until);
    let dev = play.environment("env/dev");
    assert_eq!(
        (dev.state, dev.order.as_ref(), dev.gate),
        (EnvironmentState::Waiting, None, Some(MergeGate::Success))
    );
    assert_eq!(
        play.message("env/dev"),
        "the forge does not merge it: NotMergeable: it needs two approvals; it is tried again at Mon \
         2026-11-23 12:05 UTC"
    );
    // Nothing is recorded of what has no effect.
    let considered = consider(play.given());
    assert!(considered.asked().iter().all(|it| !it.takes_effect));
    assert_eq!(play.look().wake, Some(until));
    play.pass(3);
    play.settle();
    assert_eq!(play.state("env/dev"), EnvironmentState::Merging);
    assert!(play.environment("env/dev").order.is_some());
}

#[test]
fn a_person_need_not_wait_for_a_merge_that_is_put_off() {
    let mut play = put_off("2026-11-23T12:05:00Z".parse().unwrap());
    let request = (REQUESTED_AT.to_owned(), "now".to_owned());
    play.object.metadata.annotations = Some([request].into());
    play.settle();
    assert!(play.environment("env/dev").order.is_some());
}

/// The merge is sent, and its gate closes before the forge has done it.
fn sent() -> Play {
    let mut play = ordered();
    let head = play.repository.head("env/dev-next");
    let sent = play.sent(&head);
    play.pull_request("env/dev")
        .status
        .as_mut()
        .unwrap()
        .merge_sent = Some(sent);
    play.open.insert("office".to_owned(), false);
    play.settle();
    assert_eq!(play.environment("env/dev").order, None);
    play
}

/// The forge merges it, in a way that does not show what was merged; its page shows who has sent it.
fn merge(play: &mut Play, is_seen: bool) {
    let head = play.repository.head("env/dev-next");
    let merged = play.repository.squash("env/dev", &head);
    if is_seen {
        let status = play.pull_request("env/dev").status.as_mut().unwrap();
        status.state = Some(PullRequestState::Merged);
        status.merged_sha = Some(merged);
        status.merged_by = Some("sluice-bot".to_owned());
    }
}

fn arrived(play: &Play) -> (Option<Arrival>, Option<&str>, &[String]) {
    let active: &Tip = play.environment("env/dev").active.as_ref().unwrap();
    (active.arrived_by, active.by.as_deref(), &active.bypassed)
}

#[test]
fn a_merge_that_was_sent_is_ours_although_its_order_is_taken_back() {
    for is_seen in [false, true] {
        let mut play = sent();
        merge(&mut play, is_seen);
        play.settle();
        assert_eq!(arrived(&play), (Some(Arrival::Promotion), None, &[][..]));
        assert_eq!(play.says("Bypassed"), None);
    }
}

#[test]
fn a_merge_that_was_sent_is_ours_although_something_newer_is_proposed_by_then() {
    let mut play = sent();
    merge(&mut play, true);
    play.repository.trouble = Some("it is not listed".to_owned());
    play.look();
    play.repository.trouble = None;
    play.hydrate("v3");
    play.settle();
    assert_eq!(arrived(&play).0, Some(Arrival::Promotion));
}

#[test]
fn a_merge_that_was_sent_is_ours_although_the_status_is_lost() {
    for is_settled in [false, true] {
        let mut play = sent();
        merge(&mut play, true);
        if is_settled {
            play.settle();
        }
        play.object.status = None;
        play.settle();
        assert_eq!(arrived(&play), (Some(Arrival::Promotion), None, &[][..]));
        assert_eq!(play.says("Bypassed"), None);
    }
}

#[test]
fn a_merge_that_was_not_sent_is_a_person_s_also_if_the_status_is_lost() {
    let mut play = sent();
    play.pull_request("env/dev")
        .status
        .as_mut()
        .unwrap()
        .merge_sent = None;
    merge(&mut play, true);
    play.settle();
    let by = Some("sluice-bot");
    let gate = ["GateClosed".to_owned()];
    assert_eq!(arrived(&play), (Some(Arrival::Person), by, &gate[..]));
    play.object.status = None;
    play.settle();
    // By which rule it was held is not known any more.
    let unknown = ["NotLookedAt".to_owned()];
    assert_eq!(arrived(&play), (Some(Arrival::Person), by, &unknown[..]));
    let status = play.pull_request("env/dev").status.as_mut().unwrap();
    status.commit_status = Some(MergeGate::Success);
    play.object.status = None;
    play.settle();
    assert_eq!(arrived(&play), (Some(Arrival::Person), by, &[][..]));
}

/// What was sent long ago, and has arrived, makes nothing ours that somebody pushes later.
#[test]
fn the_files_of_an_earlier_promotion_are_nobody_s_promotion() {
    let mut play = sent();
    merge(&mut play, true);
    play.settle();
    let dry = play.repository.commit_dry("v3");
    play.propose("env/dev", &dry, "v3");
    play.open.insert("office".to_owned(), true);
    play.forge_works = true;
    play.settle();
    assert_eq!(arrived(&play).0, Some(Arrival::Promotion));
    play.repository.restore("env/dev", "v2");
    play.settle();
    assert_eq!(arrived(&play).0, Some(Arrival::Foreign));
}

/// Somebody pushes to the environment while the forge merges: no forge holds the branch meanwhile.
#[test]
fn a_mixture_of_what_was_ordered_and_a_push_is_told_and_goes_no_further() {
    let mut play = ordered();
    let proposed = play.repository.head("env/dev-next");
    play.repository.push_bare("env/dev", "pushed meanwhile");
    play.forge();
    assert_eq!(play.merges, [("env/dev".to_owned(), proposed.clone())]);
    let mixed = play.repository.head("env/dev");
    assert_ne!(
        play.repository.tree(&mixed),
        play.repository.tree(&proposed)
    );
    play.forge_works = true;
    play.check("env/dev", "health", "success");
    play.settle();
    assert_eq!(arrived(&play).0, Some(Arrival::Foreign));
    assert_eq!(play.reason("env/test"), Some("WaitsForEnvironment"));
    // The environment itself gets nothing more before a person has accepted it.
    play.hydrate("v3");
    play.settle();
    assert_eq!(play.reason("env/dev"), Some("ForeignCommit"));
    assert_eq!(play.merges.len(), 1);
}

impl Play {
    /// A gate with that name closes at an instant of this day.
    fn closes(&mut self, name: &str, at: &str) {
        let closed = json!([{"name": "freeze", "from": at, "until": "2026-11-23T23:00:00"}]);
        self.keep(name, &json!({"schedule": {"closed": closed}}));
    }

    /// What a check has said of the commit that a branch has counts for half a minute.
    fn expires(&mut self, branch: &str, key: &str) {
        self.check(branch, key, "success");
        let end = self.now + SignedDuration::from_secs(30);
        self.statuses.last_mut().unwrap().spec.expires_at = Some(time(end));
    }
}

#[test]
fn an_order_holds_no_longer_than_its_gate_is_open() {
    let mut play = ordered();
    play.closes("office", "2026-11-23T12:01:20");
    let end: Timestamp = "2026-11-23T12:01:20Z".parse().unwrap();
    let mut ends = Vec::new();
    for second in [0, 30, 70, 79] {
        play.now = NOON.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(second);
        let wake = play.look().wake;
        let order = play.environment("env/dev").order.clone().unwrap();
        ends.push(
            order
                .not_after
                .0
                .duration_since(NOON.parse().unwrap())
                .as_secs(),
        );
        assert!(wake.is_some_and(|wake| wake <= order.not_after.0));
    }
    // Each holds for a minute, and the last one until the gate closes.
    assert_eq!(ends, [60, 60, 80, 80]);
    play.now = end;
    play.look();
    let dev = play.environment("env/dev");
    assert_eq!(
        (dev.order.as_ref(), dev.gate),
        (None, Some(MergeGate::Pending))
    );
    assert_eq!(play.reasons("env/dev"), ["GateClosed"]);
}

/// What lets it pass may end without a look: the order ends with the first of them.
#[rstest]
#[case::a_gate_of_what_is_active(|play: &mut Play| play.closes("errors", "2026-11-23T12:00:30"))]
#[case::a_check_of_what_is_active(|play: &mut Play| play.expires("env/dev", "health"))]
#[case::a_check_of_what_is_proposed(|play: &mut Play| play.expires("env/test-next", "lint"))]
fn an_order_holds_no_longer_than_what_lets_it_pass(#[case] ends: fn(&mut Play)) {
    let mut play = Play::new();
    play.spec(|spec| {
        spec["environments"][0]["activeGates"] = json!({"refs": [{"name": "errors"}]});
        spec["environments"][1]["proposedCommitStatuses"] = json!([{"key": "lint"}]);
    });
    play.open.insert("errors".to_owned(), true);
    play.all_healthy();
    play.hydrate("v2");
    play.settle();
    play.check("env/test-next", "lint", "success");
    play.check("env/dev", "health", "success");
    play.forge_works = false;
    ends(&mut play);
    let wake = play.look().wake;
    let order = play.environment("env/test").order.clone().unwrap();
    let end: Timestamp = "2026-11-23T12:00:30Z".parse().unwrap();
    assert_eq!(order.not_after.0, end);
    assert!(wake.is_some_and(|wake| wake <= end));
    play.now = end;
    play.look();
    assert_eq!(play.environment("env/test").order, None);
}

/// Nobody may act on what a status says that nobody would decide any more.
#[test]
fn whatever_ends_the_decision_takes_an_order_back() {
    type Change = fn(&mut Play);
    let changes: [(Change, &str); 4] = [
        (|play| play.clock_is_lost = true, "ClockLost"),
        (
            |play| play.spec(|spec| spec["suspend"] = json!(true)),
            "Suspended",
        ),
        (
            |play| play.check("env/dev-next", "lint", "failure"),
            "CheckFailed",
        ),
        // It has no check any more, so that what it gets would go on at once.
        (
            |play| play.spec(|spec| spec["activeCommitStatuses"] = json!([])),
            "InvalidSpec",
        ),
    ];
    for (change, reason) in changes {
        let mut play = ordered();
        play.check("env/dev-next", "lint", "success");
        play.spec(|spec| spec["proposedCommitStatuses"] = json!([{"key": "lint"}]));
        play.settle();
        assert!(play.environment("env/dev").order.is_some());
        change(&mut play);
        play.settle();
        let dev = play.environment("env/dev");
        let told = (dev.order.as_ref(), dev.gate);
        assert_eq!(told, (None, Some(MergeGate::Pending)), "{reason}");
        let says = play.says("Stalled");
        assert_eq!(says.is_some(), reason == "InvalidSpec", "{says:?}");
        assert!(says.is_some() || play.reason("env/dev") == Some(reason));
        play.forge_works = true;
        play.settle();
        assert_eq!(play.merges, [], "{reason}");
    }
}

/// Where others wait for what nobody checks, nothing is begun.
#[test]
fn a_strategy_without_checks_opens_and_merges_nothing() {
    let mut play = Play::with(&json!({
        "repoRef": {"name": "shop"}, "environments": [{"branch": "env/dev"}, {"branch": "env/test"}],
    }));
    play.hydrate("v2");
    play.settle();
    assert_eq!(play.says("Stalled").as_deref(), Some("True InvalidSpec"));
    assert_eq!((play.pull_requests.len(), play.merges.len()), (0, 0));
    play.spec(|spec| spec["environments"][0]["unchecked"] = json!(true));
    play.settle();
    assert_eq!(play.merges.len(), 2);
}
