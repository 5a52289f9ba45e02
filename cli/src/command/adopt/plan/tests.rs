use rstest::rstest;
use sluice_crds::gated_source::ConsumerKind;
use sluice_crds::{GateReference, Require};

use super::super::printed;
use super::super::used::runs;
use super::*;

const RUNS: &str = "main@sha1:1111111111111111111111111111111111111111";

fn object(value: Value) -> FluxObject {
    serde_json::from_value(value).unwrap()
}

fn consumer(kind: ConsumerKind, name: &str, spec: &Value, status: &Value) -> Consumer {
    let metadata = json!({"name": name, "namespace": "apps"});
    Consumer {
        kind,
        object: object(json!({"metadata": metadata, "spec": spec, "status": status})),
    }
}

fn kustomization(name: &str, kind: &str, source: &str) -> Consumer {
    let spec = json!({"sourceRef": {"kind": kind, "name": source}});
    let status = json!({"lastAppliedRevision": RUNS});
    consumer(ConsumerKind::Kustomization, name, &spec, &status)
}

fn release(name: &str, spec: &Value) -> Consumer {
    let history = json!([
        {"chartVersion": "6.8.0", "status": "failed"},
        {"chartVersion": "6.7.1", "status": "deployed"},
    ]);
    let status = json!({"history": history});
    consumer(ConsumerKind::HelmRelease, name, spec, &status)
}

fn wish() -> Wish {
    Wish {
        gates: GateSet {
            require: Require::All,
            refs: vec![GateReference {
                name: "production".to_owned(),
                namespace: None,
            }],
        },
        spread: None,
        name: None,
        target: None,
        all_consumers: false,
    }
}

fn around(consumer: Consumer) -> Around {
    let artifact = json!({"path": "a", "url": "http://a", "revision": RUNS, "lastUpdateTime": "2026-11-20T12:00:00Z"});
    Around {
        consumers: vec![consumer.clone()],
        consumer,
        upstream: Some(object(json!({
            "metadata": {"name": "app", "namespace": "apps"}, "spec": {},
            "status": {"artifact": artifact},
        }))),
        sources: Vec::new(),
    }
}

fn planned(wish: &Wish, around: &Around) -> Plan {
    match plan(wish, around) {
        Ok(Attempt::Plan(plan)) => *plan,
        other => panic!("{other:?}"),
    }
}

fn refused(around: &Around) -> String {
    plan(&wish(), around).unwrap_err().to_string()
}

#[rstest]
#[case("GitRepository", "pin", "GitRepository")]
#[case("OCIRepository", "pin", "OCIRepository")]
#[case("Bucket", "artifact", "ExternalArtifact")]
fn a_kustomization_goes_over_to_a_child_of_its_source(
    #[case] kind: &str,
    #[case] strategy: &str,
    #[case] child: &str,
) {
    let plan = planned(&wish(), &around(kustomization("app", kind, "repo")));
    let spec = json!({
        "sourceRef": {"kind": kind, "name": "repo"}, "strategy": strategy,
        "gates": {"require": "all", "refs": [{"name": "production"}]},
        "target": {"name": "app-gated"}, "deletionPolicy": "Orphan",
        "baseline": {"from": {"kind": "Kustomization", "name": "app"}},
    });
    assert_eq!(json!(plan.source.spec), spec);
    assert_eq!(
        (plan.child.0.as_str(), plan.child.1.as_str()),
        (child, "app-gated")
    );
    let patch = json!({"spec": {"sourceRef": {"kind": child, "name": "app-gated"}}});
    assert_eq!(plan.switches[0].patch, patch);
    assert_eq!((plan.switches.len(), plan.chart), (1, None));
    // Nothing that admission would refuse.
    let written = sluice_core::offline::lint::read(&json!(plan.source)).mistakes;
    assert!(written.is_empty(), "{written:?}");
}

#[test]
fn a_chart_of_a_helm_repository_becomes_an_object_of_its_own() {
    let chart = json!({"chart": "podinfo", "version": ">=6", "valuesFiles": ["a.yaml"], "interval": "10m",
                       "sourceRef": {"kind": "HelmRepository", "name": "charts"}});
    let app = release("app", &json!({"interval": "5m", "chart": {"spec": chart}}));
    let mut around = around(app);
    // Another chart of the same repository is another source.
    let other =
        json!({"chart": "redis", "sourceRef": {"kind": "HelmRepository", "name": "charts"}});
    around
        .consumers
        .push(release("other", &json!({"chart": {"spec": other}})));
    let plan = planned(&wish(), &around);
    let own = plan.chart.unwrap();
    assert_eq!(own["metadata"], json!({"name": "app", "namespace": "apps"}));
    assert_eq!(own["spec"], chart);
    assert_eq!(
        json!(plan.source.spec.source_ref),
        json!({"kind": "HelmChart", "name": "app"})
    );
    let baseline = json!({"from": {"kind": "HelmRelease", "name": "app"}});
    assert_eq!(json!(plan.source.spec.baseline), baseline);
    let reference = json!({"kind": "HelmChart", "name": "app-gated"});
    let patch = json!({"spec": {"chart": null, "chartRef": reference}});
    assert_eq!(plan.switches[0].patch, patch);
    assert!(plan.bypassing.is_empty());
    assert_eq!(runs(&around.consumer), Some("6.7.1"));
}

#[test]
fn a_release_that_knows_no_revision_starts_with_what_its_source_serves() {
    let reference = json!({"kind": "GitRepository", "name": "repo"});
    let chart = json!({"chart": {"spec": {"chart": "./chart", "sourceRef": reference}}});
    let oci = json!({"chartRef": {"kind": "OCIRepository", "name": "repo"}});
    let digest = format!("latest@sha256:{}", "1".repeat(64));
    for (spec, serves, patch) in [
        (
            chart,
            RUNS,
            json!({"chart": {"spec": {"sourceRef": {"kind": "GitRepository", "name": "app-gated"}}}}),
        ),
        (
            oci,
            &*digest,
            json!({"chartRef": {"kind": "OCIRepository", "name": "app-gated"}}),
        ),
    ] {
        let mut around = around(release("app", &spec));
        let upstream = around.upstream.as_mut().unwrap();
        upstream.status.artifact.as_mut().unwrap().revision = serves.to_owned();
        let plan = planned(&wish(), &around);
        assert_eq!(plan.switches[0].patch["spec"], patch);
        let baseline = json!(plan.source.spec.baseline);
        assert_eq!(baseline, json!({"revision": serves}));
        assert!(
            plan.notes[0].contains("does not say which revision"),
            "{plan:?}"
        );
    }
}

#[test]
fn anyone_who_uses_the_same_source_is_named_or_moved_too() {
    let mut all = around(kustomization("app", "GitRepository", "repo"));
    all.consumers
        .push(kustomization("web", "GitRepository", "repo"));
    all.consumers
        .push(kustomization("db", "GitRepository", "other"));
    all.consumers
        .push(kustomization("oci", "OCIRepository", "repo"));
    let mut elsewhere = kustomization("far", "GitRepository", "repo");
    elsewhere.object.metadata.namespace = Some("team".to_owned());
    all.consumers.push(elsewhere.clone());
    let there = json!({"kind": "GitRepository", "name": "repo", "namespace": "apps"});
    elsewhere.object.metadata.name = Some("across".to_owned());
    elsewhere.object.spec.insert("sourceRef".to_owned(), there);
    all.consumers.push(elsewhere);
    let one = planned(&wish(), &all);
    let others = ["Kustomization apps/web", "Kustomization team/across"];
    assert_eq!(
        (one.switches.len(), one.bypassing),
        (1, others.map(str::to_owned).into())
    );
    let wish = Wish {
        all_consumers: true,
        ..wish()
    };
    let every = planned(&wish, &all);
    assert!(every.bypassing.is_empty());
    assert_eq!(every.switches.len(), 3);
    let across = json!({"kind": "GitRepository", "name": "app-gated", "namespace": "apps"});
    assert_eq!(every.switches[2].patch["spec"]["sourceRef"], across);
}

#[test]
fn what_is_adopted_is_left_alone_and_what_is_begun_is_finished() {
    let first = around(kustomization("app", "GitRepository", "repo"));
    let begun = planned(&wish(), &first).source;
    let again = Around {
        sources: vec![begun.clone()],
        ..first.clone()
    };
    let plan = planned(&wish(), &again);
    assert!(plan.exists && plan.source == begun);
    // Another app of the same source joins it.
    let mut web = around(kustomization("web", "GitRepository", "repo"));
    web.sources = vec![begun.clone()];
    let joined = planned(&wish(), &web);
    assert!(joined.exists && joined.child.1 == "app-gated");
    // Its child need not be named in its spec.
    let mut plain = begun.clone();
    plain.metadata.name = Some("front".to_owned());
    plain.spec.target = None;
    web.sources = vec![plain];
    let joined = planned(&wish(), &web);
    assert!(joined.exists && joined.child.1 == "front", "{joined:?}");
    let reference = json!({"kind": "GitRepository", "name": "front"});
    assert_eq!(joined.switches[0].patch["spec"]["sourceRef"], reference);
    let aimed = |target: &str| Wish {
        target: Some(target.to_owned()),
        ..wish()
    };
    assert!(planned(&aimed("front"), &web).exists);
    assert!(!planned(&aimed("web-gated"), &web).exists);
    // With other gates it is another one, which needs another name.
    let mut other = wish();
    other.gates.require = Require::OneOf;
    let error = super::plan(&other, &again).unwrap_err().to_string();
    assert!(error.contains("choose another name with --name"), "{error}");
    other.name = Some("strict".to_owned());
    let strict = planned(&other, &again);
    assert!(!strict.exists && strict.child.1 == "strict-gated");

    let mut done = around(kustomization("app", "GitRepository", "app-gated"));
    let child = done.upstream.as_mut().unwrap();
    let mark = ("sluice.dev/gated-source".to_owned(), "app".to_owned());
    child.metadata.annotations = Some([mark].into());
    let attempt = super::plan(&wish(), &done).unwrap();
    assert!(matches!(attempt, Attempt::Adopted(source) if source == "app"));
}

#[test]
fn what_cannot_be_gated_is_refused_with_what_can() {
    let mut far = kustomization("app", "GitRepository", "repo");
    far.object.spec["sourceRef"]["namespace"] = "flux-system".into();
    assert!(refused(&around(far)).contains("move the source to apps"));
    let mut gone = around(kustomization("app", "GitRepository", "repo"));
    gone.upstream = None;
    assert!(refused(&gone).contains("GitRepository apps/repo, which is not there"));
    let served = kustomization("app", "ExternalArtifact", "repo");
    assert!(refused(&around(served)).contains("gate the source that it is made of"));
    let reference = json!({"kind": "Bucket", "name": "repo"});
    let bucket = json!({"chart": {"spec": {"chart": "a", "sourceRef": reference}}});
    assert!(
        refused(&around(release("app", &bucket)))
            .contains("cannot be read from an ExternalArtifact")
    );
    let reference = json!({"kind": "HelmRepository", "name": "charts"});
    let chart = json!({"chart": "app", "version": "1.x", "sourceRef": reference});
    let mut registry = around(release("app", &json!({"chart": {"spec": chart}})));
    let upstream = registry.upstream.as_mut().unwrap();
    upstream.spec.insert("type".to_owned(), "oci".into());
    let url = "oci://registry.example.com/charts/";
    upstream.spec.insert("url".to_owned(), url.into());
    let said = refused(&registry);
    assert!(
        said.contains("`url: oci://registry.example.com/charts/app` and `ref: {semver: \"1.x\"}`"),
        "{said}"
    );
    let reference = json!({"kind": "HelmChart", "name": "app"});
    let mut built = around(release("app", &json!({"chartRef": reference})));
    let files = json!({"kind": "GitRepository", "name": "repo"});
    let upstream = built.upstream.as_mut().unwrap();
    upstream.spec.insert("sourceRef".to_owned(), files);
    assert!(refused(&built).contains("gate that GitRepository instead"));
    let nothing = consumer(ConsumerKind::Kustomization, "app", &json!({}), &json!({}));
    assert!(refused(&around(nothing)).contains("spec.sourceRef names no source"));
    let mut same = wish();
    same.target = Some("repo".to_owned());
    let around = around(kustomization("app", "GitRepository", "repo"));
    let error = plan(&same, &around).unwrap_err().to_string();
    assert!(error.contains("the name of the source itself"), "{error}");
}

#[rstest]
#[case(
    Some("Bad_Name"),
    None,
    None,
    "--name: `Bad_Name` is not the name of an object"
)]
#[case(Some(""), None, None, "--name: `` is not the name")]
#[case(None, Some(""), None, "--target: it is empty")]
#[case(None, Some("Up"), None, "--target: `Up` is not of the form")]
#[case(
    None,
    None,
    Some("48h"),
    "--spread: it is longer than 24h; write at most 24h"
)]
fn what_the_api_server_would_refuse_is_not_planned(
    #[case] name: Option<&str>,
    #[case] target: Option<&str>,
    #[case] spread: Option<&str>,
    #[case] expected: &str,
) {
    let wish = Wish {
        name: name.map(str::to_owned),
        target: target.map(str::to_owned),
        spread: spread.map(Duration::from),
        ..wish()
    };
    let around = around(kustomization("app", "GitRepository", "repo"));
    let error = plan(&wish, &around).unwrap_err().to_string();
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn the_name_of_an_app_may_be_too_long_for_a_gated_source() {
    let around = around(kustomization(&"a".repeat(64), "GitRepository", "repo"));
    let error = refused(&around);
    assert!(
        error.starts_with("--name: ") && error.contains("more than 63 characters"),
        "{error}"
    );
    let wish = Wish {
        name: Some("app".to_owned()),
        ..wish()
    };
    assert_eq!(planned(&wish, &around).child.1, "app-gated");
}

#[test]
fn what_runs_not_yet_and_what_git_holds_is_said() {
    let mut app = kustomization("app", "GitRepository", "repo");
    app.object.status.last_applied_revision = None;
    let labels = [("name", "infra"), ("namespace", "flux-system")];
    let labels = labels.map(|(key, value)| {
        (
            format!("kustomize.toolkit.fluxcd.io/{key}"),
            value.to_owned(),
        )
    });
    app.object.metadata.labels = Some(labels.into());
    let runs = around(kustomization("app", "GitRepository", "repo"));
    let runs = printed(&planned(&wish(), &runs)).unwrap();
    assert!(runs.contains("# Admits at once what runs"), "{runs}");
    let plan = planned(&wish(), &around(app));
    assert_eq!(plan.source.spec.baseline, None);
    let yaml = printed(&plan).unwrap();
    assert!(!yaml.contains("at once"), "{yaml}");
    assert!(yaml.contains("the first revision included"), "{yaml}");
    assert!(
        plan.notes[0].contains("has applied nothing yet"),
        "{plan:?}"
    );
    let by = plan.switches[0].managed_by.as_deref();
    assert_eq!(by, Some("Kustomization flux-system/infra"));
}
