//! Every field of every kind of source: how it is reached follows at once, what is fetched waits.

use rstest::rstest;
use sluice_crds::gated_source::SourceKind::{Bucket, GitRepository, HelmChart, OCIRepository};

use super::kinds::of_kind;
use super::*;

/// A source of that kind is out and served, and the gate is closed now.
fn out(kind: SourceKind) -> Play {
    let digest = format!("sha256:{}", "1".repeat(64));
    let repository = json!({ "kind": "HelmRepository", "name": "charts" });
    let (spec, shown, more) = match kind {
        GitRepository => (upstream_spec(), revision('a'), json!({})),
        OCIRepository => (
            json!({ "url": "oci://r", "ref": { "tag": "latest" } }),
            format!("latest@{digest}"),
            json!({}),
        ),
        HelmChart => (
            json!({ "chart": "app", "version": "1.x", "sourceRef": repository }),
            "1.2.0".to_owned(),
            json!({}),
        ),
        Bucket | SourceKind::HelmRepository => (
            json!({ "bucketName": "b", "endpoint": "e" }),
            digest,
            json!({ "strategy": "artifact" }),
        ),
    };
    let mut play = of_kind(kind, &spec, &shown, &more);
    play.open();
    if kind == Bucket {
        play.held.insert(format!("sha256:of {shown}"), stored());
    }
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "True Serving");
    play.close();
    play.settle();
    play
}

/// A file that is there.
pub(super) fn stored() -> Holding {
    Holding::Stored(Stored {
        path: "p".into(),
        url: "http://ours/p".into(),
        size: 7,
    })
}

/// Somebody writes a field of the source, which has fetched the same once more.
fn write(play: &mut Play, field: &str, value: &Value) {
    let source = play.upstream.as_mut().unwrap();
    source.spec.insert(field.to_owned(), value.clone());
    source.metadata.generation = source.metadata.generation.map(|it| it + 1);
    let revision = source.status.artifact.clone().unwrap().revision;
    fetched(source, &revision);
    play.settle();
}

/// A field of the child; of one that is stored here, of what was admitted.
fn of_child(play: &Play, field: &str) -> Option<Value> {
    match play.kind {
        Bucket | SourceKind::HelmRepository => {
            let admitted = play.ours().admitted.as_ref().unwrap();
            admitted.parts[0].spec.get(field).cloned()
        }
        GitRepository | OCIRepository | HelmChart => {
            play.child.as_ref().unwrap().spec.get(field).cloned()
        }
    }
}

#[rstest]
fn how_a_source_is_reached_follows_it_at_once(
    #[values(GitRepository, OCIRepository, HelmChart)] kind: SourceKind,
    #[values(
        "accessFrom",
        "certSecretRef",
        "insecure",
        "provider",
        "proxySecretRef",
        "secretRef",
        "serviceAccountName",
        "sts",
        "timeout",
        "verify"
    )]
    field: &str,
) {
    let mut play = out(kind);
    let rotated = json!("rotated");
    write(&mut play, field, &rotated);
    assert_eq!(of_child(&play, field), Some(rotated));
    assert_eq!(play.pending(), None);
    assert_eq!(play.says("Ready").unwrap(), "True Serving");
    // Written no longer, the child has it no longer.
    play.upstream.as_mut().unwrap().spec.remove(field);
    write(&mut play, "interval", &json!("2m0s"));
    assert_eq!(of_child(&play, field), None);
}

/// Of what is stored here nothing is reached but the copy.
#[rstest]
fn how_a_bucket_is_reached_is_no_change_of_it(
    #[values(
        "certSecretRef",
        "insecure",
        "provider",
        "proxySecretRef",
        "secretRef",
        "serviceAccountName",
        "sts",
        "timeout"
    )]
    field: &str,
) {
    let mut play = out(Bucket);
    let before = play.writes;
    write(&mut play, field, &json!("rotated"));
    assert_eq!(play.pending(), None);
    assert_eq!(play.writes, before);
}

#[rstest]
#[case(GitRepository, &["url", "ignore", "sparseCheckout", "recurseSubmodules"])]
#[case(OCIRepository, &["url", "ignore", "layerSelector"])]
#[case(HelmChart, &["chart", "reconcileStrategy", "valuesFiles", "ignoreMissingValuesFiles"])]
#[case(Bucket, &["bucketName", "endpoint", "ignore", "prefix", "region"])]
fn what_is_fetched_waits_for_the_gate(#[case] kind: SourceKind, #[case] fields: &[&str]) {
    // What this version does not know may change what is deployed.
    for field in fields.iter().copied().chain(["fieldOfTheFuture"]) {
        let mut play = out(kind);
        let (shown, before) = (play.admitted().map(str::to_owned), of_child(&play, field));
        let changed = json!("changed");
        write(&mut play, field, &changed);
        assert_eq!(of_child(&play, field), before, "{field}");
        assert_eq!(play.says("Blocked").unwrap(), "True GatesClosed", "{field}");
        assert_eq!(play.pending().map(str::to_owned), shown, "{field}");
        assert_eq!(play.says("Ready").unwrap(), "True Serving", "{field}");
        play.open();
        play.settle();
        assert_eq!(of_child(&play, field), Some(changed), "{field}");
        assert_eq!(play.pending(), None, "{field}");
    }
}

/// Where a chart comes from is fetched, too.
#[test]
fn another_repository_of_a_chart_waits_for_the_gate() {
    let mut play = out(HelmChart);
    let other = json!({ "kind": "HelmRepository", "name": "others" });
    write(&mut play, "sourceRef", &other);
    assert_eq!(play.child("/sourceRef/name").unwrap(), "charts");
    assert_eq!(play.says("Blocked").unwrap(), "True GatesClosed");
    play.open();
    play.settle();
    assert_eq!(play.child("/sourceRef/name").unwrap(), "others");
}

/// A child is looked at in its own time, and goes on when its source stands still.
#[rstest]
fn what_a_child_has_of_its_own_stays(
    #[values(GitRepository, OCIRepository, HelmChart)] kind: SourceKind,
) {
    let mut play = out(kind);
    let before = play.child.clone();
    write(&mut play, "interval", &json!("5s"));
    write(&mut play, "suspend", &json!(true));
    assert_eq!(play.child, before);
    assert_eq!(play.pending(), None);
    assert_eq!(play.child("/interval").unwrap(), "12h");
}

/// Flux knows no days.
#[test]
fn the_interval_is_written_in_hours() {
    let mut play = Play::new(&json!({ "interval": "2d12h" }));
    play.open();
    play.settle();
    assert_eq!(play.child("/interval").unwrap(), "60h");
}
