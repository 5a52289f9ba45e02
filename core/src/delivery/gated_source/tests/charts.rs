//! Charts of a HelmRepository, which go by their version and by the digest of their file.

use super::kinds::of_kind;
use super::*;

/// A chart as a HelmRepository has it, with this digest of its file.
fn chart(play: &mut Play, version: &str, digit: char) -> String {
    let digest = format!("sha256:{}", digit.to_string().repeat(64));
    let source = play.upstream.as_mut().unwrap();
    fetched(source, version);
    source.status.artifact.as_mut().unwrap().digest = Some(digest.clone());
    digest
}

/// source-controller has fetched the child with this digest of its file.
fn child_has(play: &mut Play, digest: &str) {
    let artifact = play.child.as_mut().unwrap().status.artifact.as_mut();
    artifact.unwrap().digest = Some(digest.to_owned());
}

fn charts(more: &Value) -> Play {
    let source = json!({ "kind": "HelmRepository", "name": "charts" });
    let spec = json!({ "chart": "app", "version": "1.x", "sourceRef": source });
    of_kind(SourceKind::HelmChart, &spec, "1.0.0", more)
}

#[test]
fn a_chart_published_anew_under_its_version_waits_and_is_told_where_it_is_served() {
    let mut play = charts(&json!({}));
    let one = chart(&mut play, "1.0.0", '1');
    play.open();
    play.write_status_and_child();
    child_has(&mut play, &one);
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "True Serving");
    assert_eq!(play.child("/interval").unwrap(), "12h");
    play.close();
    // Flux has fetched the source again.
    let two = chart(&mut play, "1.0.0", '2');
    play.settle();
    let called = format!("1.0.0@{two}");
    assert_eq!(play.pending(), Some(called.as_str()));
    assert_eq!(play.says("Ready").unwrap(), "True Serving");
    // An approval of the version was one of what it was before.
    play.keep("{revisions: {allow: ['1.0.0'], deny: ['222222222222']}}");
    play.settle();
    assert_eq!(play.admitted(), Some("1.0.0"));
    // And the child, too: it serves what nobody has admitted.
    child_has(&mut play, &two);
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "False Republished");
    assert_eq!(play.says("Recoverable").unwrap(), "False CannotBeFetched");
    let message = play.message("Ready");
    assert!(
        message.contains(&one) && message.contains(&two),
        "{message}"
    );
    // Another one takes the place of what nobody can have any more.
    let three = chart(&mut play, "1.0.0", '3');
    play.close();
    play.settle();
    let called = format!("1.0.0@{three}");
    assert_eq!(play.ours().candidates.len(), 1);
    assert_eq!(play.pending(), Some(called.as_str()));
    // Once admitted, it is fetched again although its version is the same.
    let before = play.child.as_ref().unwrap().metadata.generation;
    play.open();
    play.write_status_and_child();
    assert_ne!(play.child.as_ref().unwrap().metadata.generation, before);
    assert_eq!(play.child("/version").unwrap(), "1.0.0");
    child_has(&mut play, &three);
    play.settle();
    assert_eq!(play.admitted(), Some(called.as_str()));
    assert_eq!(play.says("Ready").unwrap(), "True Serving");
    // What it would be asked for is what is out.
    play.object.spec.revision = Some("1.0.0".to_owned());
    play.settle();
    assert_eq!(play.admitted(), Some(called.as_str()));
    play.object.spec.revision = None;
    // The status is lost: the child says what it has.
    play.object.status = None;
    play.close();
    play.settle();
    assert_eq!((play.pending(), play.admitted()), (None, Some("1.0.0")));
    // The next version is called as ever.
    chart(&mut play, "1.1.0", '4');
    play.settle();
    assert_eq!(play.pending(), Some("1.1.0"));
}

/// A chart that Flux packs itself has another digest each time.
#[test]
fn a_chart_with_values_of_its_own_goes_by_its_version() {
    let mut play = charts(&json!({}));
    let source = play.upstream.as_mut().unwrap();
    source
        .spec
        .insert("valuesFiles".to_owned(), json!(["values.yaml"]));
    chart(&mut play, "1.0.0+1", '1');
    play.open();
    play.settle();
    play.close();
    chart(&mut play, "1.0.0+1", '2');
    play.settle();
    assert_eq!(play.pending(), None);
    assert_eq!(play.says("Ready").unwrap(), "True Serving");
}

/// Nobody knows its digest before the child has it; from then on it is known.
#[test]
fn the_digest_of_what_was_asked_for_is_noted_when_it_is_there() {
    let mut play = charts(&json!({ "revision": "0.9.0" }));
    play.open();
    play.settle();
    assert_eq!(play.admitted(), Some("0.9.0"));
    let digest = |play: &Play| {
        play.ours().admitted.as_ref().unwrap().parts[0]
            .digest
            .clone()
    };
    assert_eq!(digest(&play).as_deref(), Some("sha256:of 0.9.0"));
    child_has(&mut play, "sha256:another");
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "False Republished");
}
