use super::*;

const NOW: &str = "2026-11-20T19:00:00Z";

/// A gate that asks for two approvals, of which there is one, given at this instant.
fn voted(created: &str) -> Seen {
    let metadata = |name: &str| serde_json::json!({"namespace": "apps", "name": name});
    let read = |kind: &str, metadata: serde_json::Value, spec: serde_json::Value| {
        let api = "sluice.dev/v1alpha1";
        serde_json::json!({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec})
    };
    let mut world = sluice_core::offline::simulate::World::default();
    let names = serde_json::json!({"gatekeepers": [{"name": "release"}]});
    let gate: Gate = serde_json::from_value(read("Gate", metadata("production"), names)).unwrap();
    world.gates.insert(Key::of(&gate.metadata), gate);
    let rule = serde_json::json!({"approval": {"required": 2, "validFor": "24h"}});
    let keeper = read("Gatekeeper", metadata("release"), rule);
    let keeper: sluice_crds::Gatekeeper = serde_json::from_value(keeper).unwrap();
    world
        .gatekeepers
        .insert(Key::of(&keeper.metadata), Arc::new(keeper));
    let mut of = metadata("of-alice");
    of["creationTimestamp"] = created.into();
    let vote = serde_json::json!({
        "gatekeeperRef": {"name": "release"}, "decision": "approve", "by": "alice",
        "revision": "main@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3",
    });
    let approval: Approval = serde_json::from_value(read("Approval", of, vote)).unwrap();
    world
        .approvals
        .insert(Key::of(&approval.metadata), Arc::new(approval));
    Seen {
        world,
        notes: Vec::new(),
        trust_unverified: false,
    }
}

#[test]
fn a_revision_whose_approvals_have_all_run_out_waits_no_more() {
    let rows = |created: &str| voted_on(&voted(created), Now::given(NOW.parse().unwrap()));
    let waits = rows("2026-11-19T20:00:00Z");
    assert_eq!(waits.len(), 1);
    assert!(waits[0].message.contains("1 of 2"), "{}", waits[0].message);
    assert!(rows("2026-11-19T19:00:00Z").is_empty());
}

#[test]
fn promotions_that_wait_are_listed_with_what_they_wait_for() {
    let target = serde_json::json!([{"namespace": "a"}]);
    let object = serde_json::json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {"name": "podinfo", "namespace": "apps"},
        "spec": {
            "appRef": {"kind": "HelmRelease", "name": "podinfo"},
            "environments": [
                {"name": "dev", "targets": target}, {"name": "staging", "targets": target},
                {"name": "prod", "targets": target},
            ],
        },
        "status": {"environments": {
            "dev": {"state": "Passed"},
            "staging": {"state": "Arriving", "promotion": {"run": 7, "revision": "6.1.6", "key": "k",
                "phase": "Succeeded", "at": "2026-11-20T18:00:00Z"}},
            "prod": {"state": "Unapproved", "message": "6.1.6 waits for a person to approve it",
                "waitingApproval": {"revision": "6.1.6", "run": 7, "since": "2026-11-20T18:30:00Z"}},
        }},
    });
    let view = pipeline::view(&serde_json::from_value(object).unwrap(), &[]);
    let rows = promotions(&view);
    let [row] = rows.as_slice() else {
        panic!("{rows:#?}")
    };
    assert_eq!(row.what, "Pipeline/podinfo (prod)");
    assert_eq!(row.revision.as_deref(), Some("6.1.6"));
    assert_eq!(row.since.to_string(), "2026-11-20T18:30:00Z");
    assert!(row.message.contains("approve"));
}

#[test]
fn environments_that_wait_are_listed_but_for_those_that_wait_for_others() {
    let tip = |digit: &str| serde_json::json!({"hydratedSHA": digit.repeat(40), "tree": digit.repeat(40), "since": NOW});
    let environment = |branch: &str, reason: &str| {
        serde_json::json!({
            "branch": branch, "state": "Waiting", "active": tip("1"), "proposed": tip("2"),
            "waits": [{"reason": reason, "message": format!("because of {reason}")}],
            "lastDecision": {
                "allowed": false, "at": NOW, "require": "all", "checked": [], "message": "closed",
                "decidedBy": ["apps/production"],
                "subject": {"kind": "PromotionStrategy", "namespace": "apps", "action": "promote"},
            },
        })
    };
    let strategy = serde_json::from_value(serde_json::json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
        "metadata": {"name": "shop", "namespace": "apps"},
        "spec": {"repoRef": {"name": "shop"}, "environments": []},
        "status": {"environments": [
            {"branch": "env/dev", "state": "UpToDate"},
            environment("env/test", "CheckPending"), environment("env/stage", "GateClosed"),
            environment("env/prod", "WaitsForEnvironment"),
        ]},
    }));
    let rows = environments(&strategy.unwrap());
    let shown: Vec<_> = rows
        .iter()
        .map(|row| (row.what.as_str(), row.gates.join(",")))
        .collect();
    let gate = "apps/production".to_owned();
    assert_eq!(
        shown,
        [
            ("PromotionStrategy/shop (env/test)", String::new()),
            ("PromotionStrategy/shop (env/stage)", gate),
        ]
    );
    assert!(
        rows[0]
            .revision
            .as_ref()
            .unwrap()
            .starts_with("env/test@sha1:222")
    );
}

/// A revert asks gates in the name of its strategy. The one that is carried out is listed, and no other.
#[test]
fn a_revert_that_waits_is_listed_by_its_own_name() {
    let strategy: PromotionStrategy = serde_json::from_value(serde_json::json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
        "metadata": {"name": "shop", "namespace": "apps"},
        "spec": {"repoRef": {"name": "shop"}, "environments": []},
        "status": {"environments": [{
            "branch": "env/prod", "state": "Reverting",
            "waits": [{"reason": "GateClosed", "message": "closed", "next": "2026-11-23T09:00:00Z"}],
            "reverts": [
                {"name": "old", "phase": "Merged", "reason": "Merged", "message": "m"},
                {"name": "first", "phase": "Open", "reason": "Open", "message": "m"},
                {"name": "second", "phase": "Pending", "reason": "Pending", "message": "m"},
            ],
            "lastDecision": {
                "allowed": false, "at": NOW, "require": "all", "checked": [], "message": "closed",
                "decidedBy": ["apps/incidents"],
                "subject": {
                    "kind": "RevertCommit", "namespace": "apps", "action": "revert", "name": "shop",
                    "revision": "env/prod@sha1:4444",
                },
            },
        }]},
    }))
    .unwrap();
    let strategies = [strategy];
    let revert = |namespace: &str, name: &str| -> RevertCommit {
        serde_json::from_value(serde_json::json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "RevertCommit",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": NOW},
            "spec": {
                "repoRef": {"name": "shop"}, "activeBranch": "env/prod", "from": "1", "drySHA": "2",
                "reason": "INC-4711", "by": "alice",
            },
        }))
        .unwrap()
    };
    let row = reverting(&revert("apps", "first"), &strategies).unwrap();
    assert_eq!(row.what, "RevertCommit/first (env/prod)");
    assert_eq!(row.gates, ["apps/incidents"]);
    assert_eq!(row.revision.as_deref(), Some("env/prod@sha1:4444"));
    assert_eq!(row.since.to_string(), NOW);
    for (namespace, name) in [("apps", "old"), ("apps", "second"), ("other", "first")] {
        assert_eq!(reverting(&revert(namespace, name), &strategies), None);
    }
    // It is not listed a second time as what is proposed for the environment.
    assert!(environments(&strategies[0]).is_empty());
}

#[test]
fn a_batch_that_waits_for_gates_or_people_is_listed() {
    let rollout = |reason: &str, blocked: &str| -> Rollout {
        serde_json::from_value(serde_json::json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout",
            "metadata": {"name": "web", "namespace": "shop", "generation": 1},
            "spec": {
                "targetRef": {"kind": "StatefulSet", "name": "db"}, "revision": "16.4",
                "rolloutPlan": {"numBatches": 3},
            },
            "status": {
                "observedGeneration": 1, "rollingState": "rollingInBatches", "currentBatch": 0,
                "batchRollingState": "batchReady", "rolloutTargetSize": 6,
                "batches": [{"goal": 2, "done": NOW}],
                "held": {"reason": reason, "message": "batch 1 waits", "since": NOW},
                "lastDecision": {
                    "allowed": false, "at": NOW, "require": "all", "checked": [], "message": "closed",
                    "decidedBy": ["shop/office-hours"], "next": "2026-11-23T09:00:00Z",
                    "subject": {"kind": "Rollout", "namespace": "shop", "action": "advance"},
                },
                "conditions": [{
                    "type": "Blocked", "status": blocked, "reason": reason, "message": "m",
                    "lastTransitionTime": NOW,
                }],
            },
        }))
        .unwrap()
    };
    let row = batch(&rollout("GatesClosed", "True")).unwrap();
    assert_eq!(row.what, "Rollout/web (2/3)");
    assert_eq!(row.revision.as_deref(), Some("16.4"));
    assert_eq!(
        (row.gates.join(","), row.message.as_str()),
        ("shop/office-hours".into(), "closed")
    );
    assert_eq!(row.until, Some("2026-11-23T09:00:00Z".parse().unwrap()));
    let by_person = batch(&rollout("LastBatch", "True")).unwrap();
    assert!(by_person.gates.is_empty() && by_person.until.is_none());
    assert_eq!(by_person.message, "batch 1 waits");
    assert_eq!(batch(&rollout("FieldOverwritten", "False")), None);
}
