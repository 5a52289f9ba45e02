//! Mistakes are named, with what to write instead.

use rstest::rstest;

use super::*;
use crate::flux::content;

#[rstest]
#[case::no_source(json!({ "sourceRef": null }), "spec.sourceRef: no source is named")]
#[case::own_name(json!({ "target": { "name": "upstream" } }), "spec.target.name: the GitRepository upstream is a source")]
#[case::short_revision(json!({ "revision": "v1" }), "spec.revision: `v1` says nothing")]
#[case::bucket(json!({ "sourceRef": { "kind": "Bucket", "name": "b" } }), "write strategy: artifact")]
#[case::index(json!({ "sourceRef": { "kind": "HelmRepository", "name": "b" } }), "gate the HelmCharts of it")]
#[case::interval(json!({ "interval": "10s" }), "spec.interval: it is shorter than 1m")]
#[case::spread(json!({ "spread": "ten" }), "spec.spread: ")]
#[case::selector(json!({ "selector": { "kind": "GitRepository", "matchLabels": { "a": "b" } } }), "spec.selector: only the strategy suspend")]
#[case::baseline_by_tag(json!({ "baseline": { "revision": "v1" } }), "spec.baseline.revision: `v1` says nothing that a GitRepository can be pinned to")]
#[case::baseline(json!({ "baseline": {} }), "spec.baseline: it says not exactly one thing")]
#[case::target_of_suspend(json!({ "strategy": "suspend", "target": { "name": "x" } }), "spec.target: it belongs to sourceRef")]
fn mistakes_are_named(#[case] spec: Value, #[case] said: &str) {
    let mut play = Play::new(&spec);
    let refused = check(&play.object).unwrap_err().to_string();
    assert!(refused.contains(said), "{refused}");
    play.settle();
    assert_eq!(play.says("Stalled").unwrap(), "True InvalidSpec");
    assert!(play.child.is_none());
}

#[test]
fn what_waits_is_shown_although_the_spec_is_refused() {
    let mut play = Play::new(&json!({}));
    play.settle();
    let pending = play.ours().pending.clone();
    play.object.spec.revision = Some("v1".to_owned());
    play.settle();
    assert_eq!(play.says("Blocked").unwrap(), "True InvalidSpec");
    assert_eq!(play.ours().pending, pending);
}

#[test]
fn a_fingerprint_knows_content_from_access() {
    let of =
        |spec: Value| content::fingerprint(SourceKind::GitRepository, spec.as_object().unwrap());
    let one =
        of(json!({ "url": "u", "ref": { "branch": "main" }, "interval": "1m", "timeout": "60s" }));
    assert_eq!(
        one,
        of(json!({ "interval": "5m", "url": "u", "secretRef": { "name": "s" } }))
    );
    assert_ne!(one, of(json!({ "url": "v" })));
    // What this version does not know may change what is deployed.
    assert_ne!(one, of(json!({ "url": "u", "fromTheFuture": true })));
    assert_eq!(
        of(json!({ "a": { "x": 1, "y": 2 } })),
        of(json!({ "a": { "y": 2, "x": 1 } }))
    );
}
