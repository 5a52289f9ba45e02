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
