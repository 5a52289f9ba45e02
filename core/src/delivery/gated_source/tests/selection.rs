//! A source that selects another way: by another branch, another tag, another version.

use rstest::rstest;
use sluice_crds::gated_source::SourceKind::{GitRepository, HelmChart, OCIRepository};

use super::kinds::of_kind;
use super::*;

/// Somebody writes another `ref` or `version`. Flux has not looked at it yet.
fn select(play: &mut Play, field: &str, value: &Value) {
    let source = play.upstream.as_mut().unwrap();
    source.spec.insert(field.to_owned(), value.clone());
    source.metadata.generation = source.metadata.generation.map(|it| it + 1);
}

fn shows(play: &mut Play, revision: &str) {
    fetched(play.upstream.as_mut().unwrap(), revision);
}

fn digest(digit: char) -> String {
    format!("sha256:{}", digit.to_string().repeat(64))
}

fn chart(version: &str) -> Value {
    let repository = json!({ "kind": "HelmRepository", "name": "charts" });
    json!({ "chart": "app", "version": version, "sourceRef": repository })
}

/// Each source has shown something newer, which the gate has held back; then its owner leaves it.
#[rstest]
#[case::chart(HelmChart, chart("1.x"), "1.5.0", "version", json!("1.4.2"), "1.4.2")]
#[case::branch(
    GitRepository, json!({ "url": "u", "ref": { "branch": "main" } }), &revision('b'),
    "ref", json!({ "branch": "release" }), &format!("release@sha1:{}", commit('a'))
)]
#[case::tag(
    OCIRepository, json!({ "url": "oci://r", "ref": { "tag": "edge" } }), &format!("edge@{}", digest('5')),
    "ref", json!({ "tag": "stable" }), &format!("stable@{}", digest('4'))
)]
fn what_another_ref_or_version_had_shown_does_not_go_out(
    #[case] kind: SourceKind,
    #[case] spec: Value,
    #[case] newer: &str,
    #[case] field: &str,
    #[case] other: Value,
    #[case] chosen: &str,
) {
    let mut play = of_kind(kind, &spec, newer, &json!({}));
    play.settle();
    assert_eq!(play.pending(), Some(newer));
    select(&mut play, field, &other);
    // Also while Flux has still to fetch what is selected now.
    play.open();
    play.settle();
    assert_eq!(play.admitted(), None);
    assert_eq!(play.ours().candidates, []);
    shows(&mut play, chosen);
    play.settle();
    assert_eq!(play.admitted(), Some(chosen));
}

/// The newest version has been taken out of the index again: people approved of it while it was there.
#[rstest]
#[case::chart(HelmChart, chart("1.x"), "1.5.0", "1.4.2")]
#[case::tag_of_an_image(
    OCIRepository, json!({ "url": "oci://r", "ref": { "semver": "1.x" } }),
    &format!("1.5.0@{}", digest('5')), &format!("1.4.2@{}", digest('4'))
)]
#[case::tag_of_git(
    GitRepository, json!({ "url": "u", "ref": { "semver": "1.x" } }),
    &format!("v1.5.0@sha1:{}", commit('5')), &format!("v1.4.2@sha1:{}", commit('4'))
)]
fn a_later_version_that_was_taken_back_does_not_go_out(
    #[case] kind: SourceKind,
    #[case] spec: Value,
    #[case] later: &str,
    #[case] earlier: &str,
) {
    let mut play = of_kind(kind, &spec, later, &json!({}));
    play.settle();
    shows(&mut play, earlier);
    play.settle();
    assert_eq!(play.ours().candidates.len(), 1);
    play.keep("{revisions: {allow: ['>=1.5.0']}}");
    play.settle();
    assert_eq!((play.admitted(), play.pending()), (None, Some(earlier)));
}

#[test]
fn the_same_commit_on_another_branch_is_nothing_new() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    play.close();
    select(&mut play, "ref", &json!({ "branch": "release" }));
    shows(&mut play, &format!("release@sha1:{}", commit('a')));
    play.settle();
    assert_eq!((play.pending(), play.ours().candidates.len()), (None, 0));
    assert_eq!(play.says("Ready").unwrap(), "True Serving");
}

/// What an earlier version of the controller has noted says nothing of what selected it.
#[test]
fn a_candidate_that_does_not_say_what_selected_it_has_to_be_shown_again() {
    let mut play = Play::new(&json!({}));
    for digit in ['a', 'b'] {
        play.push(digit);
        play.settle();
    }
    for candidate in &mut play.object.status.as_mut().unwrap().candidates {
        candidate.parts[0].selection = None;
    }
    play.settle();
    let left = &play.ours().candidates;
    assert_eq!((left.len(), left[0].revision.clone()), (1, revision('b')));
}
