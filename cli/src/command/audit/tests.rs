use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn record(event: &Value) -> Record {
    serde_json::from_value(json!({
        "version": "sluice.dev/audit/v1",
        "at": "2026-11-20T12:00:00.000000Z",
        "by": "gate-controller-0",
        "event": event,
    }))
    .unwrap()
}

fn decision() -> Record {
    record(&json!({
        "type": "Decision",
        "askedBy": "ci",
        "repeated": 2,
        "decision": {
            "allowed": false,
            "at": "2026-11-20T12:00:00Z",
            "subject": {"kind": "Deployment", "namespace": "apps", "name": "api", "action": "promote", "revision": "v1.2.3"},
            "require": "all",
            "checked": [{"gate": "apps/production", "state": "Closed", "reason": "Manual", "message": "m"}],
            "decidedBy": ["apps/production"],
            "message": "held back by apps/production: m",
        },
    }))
}

fn transition() -> Record {
    record(&json!({
        "type": "Transition", "gate": "apps/production", "from": "Open", "to": "Closed",
        "reason": "OutsideWindow", "message": "office-hours: over", "decidedBy": ["office-hours"],
    }))
}

fn forced() -> Record {
    record(&json!({
        "type": "Override", "gate": "apps/production", "step": "Began", "message": "forced",
        "override": {"state": "open", "by": "alice", "reason": "hotfix", "since": "2026-11-20T12:00:00Z", "until": "2026-11-20T13:00:00Z"},
    }))
}

fn defined() -> Record {
    record(&json!({
        "type": "Definition",
        "object": {"kind": "Gate", "namespace": "apps", "name": "production"},
        "change": "Changed",
        "differences": [{"field": "spec.require", "before": "all", "after": "oneOf"}],
        "spec": {"require": "oneOf"},
        "changedBy": [{"manager": "kustomize-controller"}],
    }))
}

fn promoted() -> Record {
    record(&json!({
        "type": "Promotion", "pipeline": "apps/production", "environment": "prod",
        "revision": "1.2.3", "run": 7, "phase": "Succeeded", "reason": "Merged",
        "pullRequest": "https://git.example.com/a/b/pulls/7", "decidedBy": ["apps/office"],
    }))
}

fn lost() -> Record {
    record(&json!({"type": "Lost", "records": 2, "message": "the disk is full"}))
}

/// Each batch of a rollout has a decision of its own.
#[test]
fn a_batch_is_told_with_its_step() {
    let record = record(&json!({
        "type": "Decision", "repeated": 0,
        "decision": {
            "allowed": true, "at": "2026-11-20T12:00:00Z", "require": "all", "checked": [],
            "subject": {
                "kind": "Rollout", "namespace": "shop", "name": "web", "action": "advance",
                "step": "2/4", "revision": "6.8.0",
            },
            "decidedBy": ["shop/office-hours"], "message": "every gate is open",
        },
    }));
    let line = anstream::adapter::strip_str(&told(&record)).to_string();
    assert_eq!(
        line,
        "2026-11-20 12:00:00  decision    shop/Rollout/web  advance 2/4 of 6.8.0 allowed: every gate is open"
    );
}

#[test]
fn records_are_told_in_a_line_each() {
    let all = [
        decision(),
        transition(),
        forced(),
        defined(),
        promoted(),
        lost(),
    ];
    let text: Vec<String> = all.iter().map(told).collect();
    let plain = anstream::adapter::strip_str(&text.join("\n")).to_string();
    insta::assert_snapshot!(plain, @r#"
    2026-11-20 12:00:00  decision    apps/Deployment/api  promote of v1.2.3 held back, asked by ci, 2 times more: held back by apps/production: m
    2026-11-20 12:00:00  transition  apps/production  Open → Closed (OutsideWindow): office-hours: over
    2026-11-20 12:00:00  override    apps/production  began Open by alice until 2026-11-20T13:00:00Z (hotfix): forced
    2026-11-20 12:00:00  definition  apps/Gate/production  changed by kustomize-controller: spec.require: "all" → "oneOf"
    2026-11-20 12:00:00  promotion   apps/production (prod)  1.2.3 in run 7 Succeeded (Merged), decided by apps/office: https://git.example.com/a/b/pulls/7
    2026-11-20 12:00:00  lost        -  2 records: the disk is full
    "#);
}

#[rstest]
#[case::everything((None, Some("production")), &[], None, [true, true, true, true, true, true])]
#[case::of_that_namespace((Some("apps"), Some("production")), &[], None, [true, true, true, true, true, true])]
#[case::of_another((Some("other"), Some("production")), &[], None, [false, false, false, false, false, true])]
#[case::of_a_namespace((Some("apps"), None), &[], None, [true, true, true, true, true, true])]
#[case::of_the_subject((None, Some("api")), &[], None, [true, false, false, false, false, true])]
#[case::of_types((None, None), &[Type::Override, Type::Definition], None, [false, false, true, true, false, false])]
#[case::of_promotions((None, None), &[Type::Promotion], None, [false, false, false, false, true, false])]
#[case::of_a_revision((None, None), &[], Some("1.2.3"), [true, false, false, false, true, true])]
#[case::of_another_revision((None, None), &[], Some("v2.0.0"), [false, false, false, false, false, true])]
fn records_are_chosen(
    #[case] gate: (Option<&str>, Option<&str>),
    #[case] types: &[Type],
    #[case] revision: Option<&str>,
    #[case] expected: [bool; 6],
) {
    let revision = revision.map(|text| Revision::parse(text).unwrap());
    let wanted = Wanted {
        gate,
        types,
        revision: revision.as_ref(),
        since: Some("2026-11-20T12:00:00Z".parse().unwrap()),
        until: Some("2026-11-20T12:00:01Z".parse().unwrap()),
    };
    let all = [
        decision(),
        transition(),
        forced(),
        defined(),
        promoted(),
        lost(),
    ];
    assert_eq!(all.each_ref().map(|record| wanted.is(record)), expected);
    let later = Wanted {
        since: wanted.until,
        ..wanted
    };
    assert!(!all.iter().any(|record| later.is(record)));
}
