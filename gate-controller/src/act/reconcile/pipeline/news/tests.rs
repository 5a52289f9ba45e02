use std::sync::Arc;

use serde_json::{Value, json};
use sluice_crds::PullRequest;

use super::*;

const NOON: &str = "2026-11-20T12:00:00Z";
const PAGE: &str = "https://git.example.com/a/b/pulls/7";

/// A status in which a run has brought prod to this.
fn status(run: &Value, prod: &Value) -> PipelineStatus {
    let mut whole = json!({
        "id": 7, "revision": "6.1.6", "short": "6.1.6", "since": NOON, "environment": "prod",
        "state": "Promoting", "message": "m",
    });
    whole
        .as_object_mut()
        .unwrap()
        .extend(run.as_object().unwrap().clone());
    let environments = json!({"dev": {"state": "Passed"}, "prod": prod});
    serde_json::from_value(json!({"run": whole, "environments": environments})).unwrap()
}

/// Prod in this state, with this of its promotion.
fn prod(state: &str, more: &Value) -> Value {
    let mut record =
        json!({"run": 7, "revision": "6.1.6", "key": "a", "phase": "Attempting", "at": NOON});
    record
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    json!({"state": state, "promotion": record})
}

fn in_state(state: &str, more: &Value) -> PipelineStatus {
    status(&json!({}), &prod(state, more))
}

fn pull_request() -> Value {
    json!({"name": "shop-a", "url": PAGE, "state": "Open"})
}

/// What is told between two statuses: nothing more is, when the second is written again.
fn told(before: &PipelineStatus, now: &PipelineStatus) -> Vec<String> {
    assert_eq!(news(now, now), []);
    let news = news(before, now).into_iter();
    let line = |item: Item| {
        let warning = if item.warning { "! " } else { "" };
        format!("{warning}{}: {}", item.reason, item.message)
    };
    news.map(line).collect()
}

#[test]
fn a_run_is_told_when_it_begins_and_when_it_is_completed() {
    let nothing = PipelineStatus::default();
    let waiting = json!({"state": "Waiting"});
    let begun = status(&json!({}), &waiting);
    assert_eq!(
        told(&nothing, &begun),
        ["RunStarted: a run of 6.1.6 begins"]
    );
    let completed = status(&json!({"completedAt": NOON}), &waiting);
    let expected = ["RunCompleted: every environment runs 6.1.6"];
    assert_eq!(told(&begun, &completed), expected);
    // The same revision in another run.
    let again = status(&json!({"id": 8}), &waiting);
    assert_eq!(
        told(&completed, &again),
        ["RunStarted: a run of 6.1.6 begins"]
    );
}

#[test]
fn a_promotion_by_pull_request_is_told_step_by_step() {
    let held = in_state("GatesClosed", &json!({"phase": "Unattempted"}));
    let begun = in_state("Promoting", &json!({}));
    let expected = ["Promoting: prod: 6.1.6 is being promoted"];
    assert_eq!(told(&held, &begun), expected);
    let open = json!({"phase": "Created", "pullRequest": pull_request()});
    let open = in_state("PullRequestOpen", &open);
    let expected = format!("PullRequestOpened: prod: the pull request for 6.1.6 is open: {PAGE}");
    assert_eq!(told(&begun, &open), [expected]);
    let merged = json!({"phase": "Succeeded", "reason": "Merged", "pullRequest": pull_request()});
    let merged = in_state("Promoted", &merged);
    let expected = format!("Merged: prod: 6.1.6 was merged: {PAGE}");
    assert_eq!(told(&open, &merged), [expected]);
    let passed = in_state(
        "Passed",
        &json!({"phase": "Succeeded", "reason": "Arrived"}),
    );
    assert_eq!(told(&open, &passed), [""; 0]);

    let mut abandoned = prod(
        "Abandoned",
        &json!({"phase": "Abandoned", "reason": "Closed"}),
    );
    abandoned["message"] = "the pull request for 6.1.6 was closed without a merge".into();
    let abandoned = status(&json!({}), &abandoned);
    let expected = "! Abandoned: prod: the pull request for 6.1.6 was closed without a merge";
    assert_eq!(told(&open, &abandoned), [expected]);
}

/// Gates that close and open do not open another one.
#[test]
fn a_pull_request_is_opened_once() {
    let record = json!({"phase": "Created", "pullRequest": pull_request()});
    let (open, held) = (
        in_state("PullRequestOpen", &record),
        in_state("GatesClosed", &record),
    );
    assert_eq!(told(&open, &held), [""; 0]);
    assert_eq!(told(&held, &open), [""; 0]);
    // It may be opened where gates hold its merge.
    let begun = in_state("Promoting", &json!({}));
    let expected = format!("PullRequestOpened: prod: the pull request for 6.1.6 is open: {PAGE}");
    assert_eq!(told(&begun, &held), [expected]);
}

#[test]
fn a_promotion_in_another_way_is_told_as_it_ends() {
    let begun = in_state("Promoting", &json!({}));
    for reason in ["Sent", "Reported", "Admitted"] {
        let done = in_state("Promoted", &json!({"phase": "Succeeded", "reason": reason}));
        assert_eq!(told(&begun, &done), ["Promoted: prod: 6.1.6 was promoted"]);
    }
    let sent = in_state("Promoted", &json!({"phase": "Succeeded", "reason": "Sent"}));
    let mut lost = prod("NoEffect", &json!({"phase": "Succeeded", "reason": "Sent"}));
    lost["message"] = "no target runs it".into();
    let lost = status(&json!({}), &lost);
    assert_eq!(told(&sent, &lost), ["! NoEffect: prod: no target runs it"]);
    let failed = json!({"phase": "Failed", "reason": "Failed", "message": "connection refused"});
    let failed = in_state("Failed", &failed);
    assert_eq!(
        told(&begun, &failed),
        ["! Failed: prod: connection refused"]
    );
    // Where people are waited for, the conditions and the gates tell it.
    let arrived = in_state(
        "Passed",
        &json!({"phase": "Succeeded", "reason": "Arrived"}),
    );
    assert_eq!(told(&sent, &arrived), [""; 0]);
}

/// Also where the environment runs the revision before the merge is seen.
#[test]
fn a_merge_past_the_gates_is_told_once() {
    let open = json!({"phase": "Created", "gate": "pending", "pullRequest": pull_request()});
    let held = in_state("GatesClosed", &open);
    let past = json!({"phase": "Succeeded", "reason": "MergedPastGate"});
    let expected = "! MergedPastGate: prod: 6.1.6 was merged while its gates held that back";
    for state in ["Promoted", "Passed", "Arriving"] {
        assert_eq!(told(&held, &in_state(state, &past)), [expected], "{state}");
    }
    let (arriving, passed) = (in_state("Arriving", &past), in_state("Passed", &past));
    assert_eq!(told(&arriving, &passed), [""; 0]);
}

/// In either order; and then the state of the environment tells nothing more of it.
#[test]
fn a_merge_is_told_where_the_environment_runs_the_revision_already() {
    let with = |state: &str, more: Value| {
        let mut of = pull_request();
        of["state"] = state.into();
        let mut record = json!({"phase": "Succeeded", "reason": "Arrived", "pullRequest": of});
        record
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        record
    };
    let open = json!({"phase": "Created", "pullRequest": pull_request()});
    let open = in_state("PullRequestOpen", &open);
    let passed = in_state("Passed", &with("Open", json!({})));
    assert_eq!(told(&open, &passed), [""; 0]);
    let expected = format!("Merged: prod: 6.1.6 was merged: {PAGE}");
    let merged = with("Merged", json!({}));
    for state in ["Passed", "Arriving", "Promoted"] {
        let merged = in_state(state, &merged);
        assert_eq!(told(&passed, &merged), [&*expected], "{state}");
        assert_eq!(told(&open, &merged), [&*expected], "{state}");
    }
    let (passed, back) = (in_state("Passed", &merged), in_state("Promoted", &merged));
    assert_eq!(told(&passed, &back), [""; 0]);
    // What the gates have held back is named by the look after this one, and told once.
    let held = in_state("Passed", &with("Merged", json!({"gate": "pending"})));
    assert_eq!(told(&open, &held), [""; 0]);
    let past = in_state(
        "Passed",
        &with("Merged", json!({"reason": "MergedPastGate"})),
    );
    let expected =
        format!("! MergedPastGate: prod: 6.1.6 was merged while its gates held that back: {PAGE}");
    assert_eq!(told(&held, &past), [expected]);
}

/// A Pipeline without a status has found it at the forge.
#[test]
fn a_pull_request_that_is_only_there_to_be_closed_is_not_told_as_open() {
    let found = json!({"phase": "Created", "reason": "Recalled", "pullRequest": pull_request()});
    let nothing = status(&json!({}), &json!({"state": "Waiting"}));
    for state in ["Waiting", "Closing"] {
        assert_eq!(told(&nothing, &in_state(state, &found)), [""; 0], "{state}");
    }
    let mut next = json!({"key": "b", "phase": "Created", "pullRequest": pull_request()});
    next["run"] = 8.into();
    let next = in_state("PullRequestOpen", &next);
    let expected = format!("PullRequestOpened: prod: the pull request for 6.1.6 is open: {PAGE}");
    let closing = in_state("Closing", &found);
    assert_eq!(told(&closing, &next), [expected]);
}

fn object(close: Option<&str>) -> PullRequest {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PullRequest",
        "metadata": {"namespace": "apps", "name": "shop-a"},
        "spec": {
            "repository": {
                "type": "gitea", "url": "https://git.example.com/a/b", "secretRef": {"name": "t"},
            },
            "sourceBranch": "sluice/a6a8ea3ca7a1/a", "targetBranch": "main", "title": "t",
            "change": {"markers": {"name": "apps:shop:prod", "revision": "6.1.6", "paths": ["a"]}},
            "about": {
                "kind": "Pipeline", "name": "shop", "environment": "prod", "revision": "6.1.6",
                "run": 7, "key": "a",
            },
            "close": close,
        },
    }))
    .unwrap()
}

fn change(before: PullRequest, close: Option<&str>) -> Act {
    Act::Change {
        before: Arc::new(before),
        suspend: false,
        close: close.map(str::to_owned),
    }
}

#[test]
fn a_pull_request_that_is_superseded_is_told_with_its_page() {
    let mut closed = object(None);
    let item = of_closing(&change(closed.clone(), Some(SUPERSEDED))).unwrap();
    assert_eq!((&*item.reason, item.warning), ("Superseded", false));
    assert_eq!(item.environment.as_deref(), Some("prod"));
    assert_eq!(item.revision.as_deref(), Some("6.1.6"));
    let words = "prod: the pull request for 6.1.6 is being closed, because another promotion takes its place";
    assert_eq!(item.message, words);
    closed.status = serde_json::from_value(json!({"url": PAGE})).unwrap();
    let item = of_closing(&change(closed, Some(SUPERSEDED))).unwrap();
    assert_eq!(item.message, format!("{words}: {PAGE}"));
    // It has the order already, or gets none.
    let ordered = object(Some(SUPERSEDED));
    assert_eq!(of_closing(&change(ordered, Some(SUPERSEDED))), None);
    assert_eq!(of_closing(&change(object(None), None)), None);
}

/// Such as one that was found at the forge, and of which there is no object.
#[test]
fn a_pull_request_that_is_created_to_be_closed_is_told_as_closed() {
    let made = |close| Act::Create(Box::new(object(close)));
    let told = of_closing(&made(Some(SUPERSEDED)));
    assert_eq!(told, of_closing(&change(object(None), Some(SUPERSEDED))));
    assert_eq!(told.unwrap().reason, "Superseded");
    assert_eq!(of_closing(&made(None)), None);
}

#[test]
fn only_what_another_promotion_replaces_is_told_as_superseded() {
    let why = "the Pipeline has no environment prod any more";
    let item = of_closing(&change(object(None), Some(why))).unwrap();
    assert_eq!((&*item.reason, item.warning), ("Closing", false));
    let words = "prod: the pull request for 6.1.6 is being closed, because the Pipeline has no \
                 environment prod any more";
    assert_eq!(item.message, words);
}

/// However many targets are on it.
#[test]
fn a_cluster_is_told_when_it_goes_away_and_when_it_comes_back() {
    let cluster = |name: &str, message: Option<&str>| -> Value {
        json!({
            "cluster": name, "reachable": message.is_none(), "since": NOON, "message": message,
        })
    };
    let of = |eu: Option<&str>| -> PipelineStatus {
        let target = |namespace: &str| json!({"namespace": namespace, "ready": false, "error": eu});
        let prod = json!({"state": "Unknown", "targets": [target("a"), target("b")]});
        serde_json::from_value(json!({
            "environments": {"prod": prod},
            "clusters": [cluster("Secret eu", eu), cluster("Secret us", None)],
        }))
        .unwrap()
    };
    let (here, away) = (of(None), of(Some("connection refused")));
    let expected = ["! ClusterUnreachable: Secret eu: connection refused"];
    assert_eq!(told(&here, &away), expected);
    // Why is another matter; and of a cluster that is named for the first time nothing has changed.
    assert_eq!(told(&away, &of(Some("timed out"))), [""; 0]);
    let expected = ["ClusterReachable: Secret eu: it can be read again"];
    assert_eq!(told(&away, &here), expected);
    assert_eq!(told(&PipelineStatus::default(), &away), [""; 0]);
}

#[test]
fn what_is_blocked_and_what_is_not_ready_is_told_when_it_changes() {
    let of = |ready: (&str, &str), blocked: (&str, &str)| -> PipelineStatus {
        let condition = |type_: &str, (status, reason): (&str, &str)| {
            json!({
                "type": type_, "status": status, "reason": reason, "message": "m",
                "lastTransitionTime": NOON,
            })
        };
        let conditions = [condition("Ready", ready), condition("Blocked", blocked)];
        serde_json::from_value(json!({"conditions": conditions})).unwrap()
    };
    let well = of(
        ("True", "ReconciliationSucceeded"),
        ("False", "NothingBlocked"),
    );
    let held = of(("True", "ReconciliationSucceeded"), ("True", "GatesClosed"));
    let broken = of(("False", "TargetNotReadable"), ("False", "NothingBlocked"));
    assert_eq!(told(&PipelineStatus::default(), &well), [""; 0]);
    assert_eq!(told(&well, &held), ["Blocked: m"]);
    assert_eq!(told(&held, &well), ["Unblocked: m"]);
    assert_eq!(told(&well, &broken), ["! TargetNotReadable: m"]);
    assert_eq!(told(&broken, &well), ["ReconciliationSucceeded: m"]);
}
