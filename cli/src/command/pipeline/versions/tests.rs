use serde_json::{Value, json};
use sluice_core::delivery::pipeline::view;

use super::*;

/// A pipeline with an environment for each of these: its name, and the revisions of its targets.
fn pipeline(name: &str, environments: &[(&str, &[&str])]) -> View {
    let target = |revision: &&str| {
        json!({"namespace": "a", "ready": true, "revision": revision,
               "versions": {"image": format!("v{revision}")}})
    };
    let spec: Vec<Value> = environments
        .iter()
        .map(|(name, _)| json!({"name": name, "targets": [{"namespace": "a"}]}))
        .collect();
    let status: serde_json::Map<String, Value> = environments
        .iter()
        .map(|(name, revisions)| {
            let targets: Vec<Value> = revisions.iter().map(target).collect();
            (
                (*name).to_owned(),
                json!({"state": "Passed", "targets": targets}),
            )
        })
        .collect();
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {"name": name, "namespace": "apps"},
        "spec": {"appRef": {"kind": "HelmRelease", "name": name}, "environments": spec},
        "status": {"environments": status},
    });
    view(&serde_json::from_value(object).unwrap(), &[])
}

#[test]
fn every_app_has_a_line_for_each_version_and_a_column_for_each_environment() {
    let views = [
        pipeline(
            "podinfo",
            &[("dev", &["6.1.6"]), ("prod", &["6.1.0", "6.1.6"])],
        ),
        pipeline("shop", &[("dev", &["2.0.0"]), ("live", &["1.9.0"])]),
    ];
    insta::assert_snapshot!(output::table(&table(&views, false)));
    assert_eq!(table(&views, true)[1][0], "apps");
}

#[test]
fn programs_get_one_entry_for_each_target() {
    let views = [pipeline(
        "podinfo",
        &[("dev", &["6.1.6"]), ("prod", &["6.1.0", "6.1.6"])],
    )];
    let entries = running(&views);
    let told: Vec<_> = entries
        .iter()
        .map(|it| (it.environment, it.revision))
        .collect();
    assert_eq!(
        told,
        [
            ("dev", Some("6.1.6")),
            ("prod", Some("6.1.0")),
            ("prod", Some("6.1.6"))
        ]
    );
}
