//! What lists say of a revision.

use std::sync::Arc;

use rstest::rstest;
use serde_json::json;

use super::*;

const COMMIT: &str = "4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";

fn rule(spec: serde_json::Value) -> Revisions {
    Revisions::read(&serde_json::from_value(spec).unwrap(), "spec.revisions").unwrap()
}

fn list(text: &str) -> Reading {
    Reading::Read(Arc::new(List::parse(text).unwrap()))
}

fn gone() -> Reading {
    Reading::Unavailable("there is no such ConfigMap".to_owned())
}

fn from(name: &str) -> serde_json::Value {
    json!([{ "configMapRef": { "name": name, "key": "list" } }])
}

fn judged(rule: &Revisions, lists: &[Reading], on_error: Setting) -> (State, Reason, String) {
    let revision = Revision::parse(&format!("release-7@sha1:{COMMIT}")).unwrap();
    let opinion = rule.opinion(lists, Some(&revision), on_error);
    let words = rule.explain(lists, Some(&revision), &opinion);
    (opinion.state, opinion.reason, words)
}

#[rstest]
#[case::allowed(json!({ "allow": ["release-*"] }), State::Open, Reason::RevisionAllowed)]
#[case::not_listed(json!({ "allow": ["main"] }), State::Closed, Reason::RevisionNotListed)]
#[case::denied(json!({ "deny": ["4f2a9c1e0b7d"] }), State::Closed, Reason::RevisionDenied)]
#[case::not_denied(json!({ "deny": ["main"] }), State::Open, Reason::RevisionNotDenied)]
#[case::deny_wins(
    json!({ "allow": ["*"], "deny": ["release-*"] }),
    State::Closed,
    Reason::RevisionDenied
)]
fn lists_in_the_spec(
    #[case] spec: serde_json::Value,
    #[case] state: State,
    #[case] reason: Reason,
) {
    let rule = rule(spec);
    let (is, why, _) = judged(&rule, &[], Setting::Open);
    assert_eq!((is, why), (state, reason));
    let nothing = rule.opinion(&[], None, Setting::Open);
    assert_eq!(nothing.state, State::Conditional);
}

#[rstest]
#[case::allowed(
    list("release-7 # the one"),
    Setting::Closed,
    State::Open,
    Reason::RevisionAllowed
)]
#[case::not_listed(
    list("# none\n"),
    Setting::Open,
    State::Closed,
    Reason::RevisionNotListed
)]
#[case::gone(gone(), Setting::Closed, State::Closed, Reason::EvidenceUnavailable)]
#[case::gone_but_open(gone(), Setting::Open, State::Open, Reason::EvidenceUnavailable)]
#[case::broken(
    Reading::Broken("line 1: …".to_owned()),
    Setting::Open,
    State::Closed,
    Reason::EvidenceBroken
)]
fn a_list_in_a_config_map(
    #[case] reading: Reading,
    #[case] on_error: Setting,
    #[case] state: State,
    #[case] reason: Reason,
) {
    let rule = rule(json!({ "allow": ["main"], "allowFrom": from("a") }));
    let (is, why, _) = judged(&rule, &[reading], on_error);
    assert_eq!((is, why), (state, reason));
}

#[test]
fn what_has_not_been_read_yet_does_not_admit() {
    let rule = rule(json!({ "allowFrom": from("a"), "denyFrom": from("d") }));
    let (state, reason, words) = judged(&rule, &[list("release-*")], Setting::Open);
    assert_eq!((state, reason), (State::Closed, Reason::NotObserved));
    assert_eq!(words, "the list d/list has not been read yet");
}

#[test]
fn onerror_covers_only_what_is_not_decided_without_it() {
    let denies = rule(json!({ "deny": ["release-*"], "denyFrom": from("d") }));
    let (state, reason, _) = judged(&denies, &[gone()], Setting::Open);
    assert_eq!((state, reason), (State::Closed, Reason::RevisionDenied));
    let allows = rule(json!({ "allow": ["release-*"], "allowFrom": from("a") }));
    let (state, reason, _) = judged(&allows, &[gone()], Setting::Closed);
    assert_eq!((state, reason), (State::Open, Reason::RevisionAllowed));
}

#[test]
fn a_prerelease_of_what_is_denied_is_denied_and_named() {
    let rule = rule(json!({ "allow": ["*"], "deny": [">=2.0.0"] }));
    let revision = Revision::parse("2.1.0-rc.1").unwrap();
    let opinion = rule.opinion(&[], Some(&revision), Setting::Closed);
    assert_eq!(opinion.reason, Reason::RevisionDenied);
    assert_eq!(
        rule.explain(&[], Some(&revision), &opinion),
        "2.1.0-rc.1 may not go out: it matches `>=2.0.0`"
    );
}

/// Nobody can tell what it is called, so no entry that is a name lets it pass, and every one of those
/// that deny holds it back.
#[rstest]
#[case::denied_by_name(json!({ "allow": ["*", COMMIT], "deny": [">=2.0.0"] }), Reason::RevisionDenied,
    "may not go out: no source shows its name, which may match `>=2.0.0`; wait until the source \
     shows it, or list what is denied by its commit or digest")]
#[case::denied_by_both(json!({ "deny": [">=2.0.0", "4f2a9c1e0b7d"] }), Reason::RevisionDenied,
    "may not go out: it matches `4f2a9c1e0b7d`")]
#[case::denied_by_what_may_be_a_date(json!({ "deny": ["000000000000"] }), Reason::RevisionDenied,
    "may not go out: no source shows its name, which may match `000000000000`; wait until the \
     source shows it, or list what is denied by its commit or digest")]
#[case::not_denied(json!({ "deny": ["00000000000a"] }), Reason::RevisionNotDenied,
    "is not on a list of what may not go out")]
#[case::not_listed(json!({ "allow": ["release-*", ">=1.0.0"] }), Reason::RevisionNotListed,
    "is not on a list of what may go out: no source shows its name, so its commit or digest has to be \
     listed")]
#[case::listed(json!({ "allow": [COMMIT] }), Reason::RevisionAllowed,
    &format!("may go out: it matches `{COMMIT}`"))]
fn a_name_that_no_source_shows(
    #[case] spec: serde_json::Value,
    #[case] reason: Reason,
    #[case] words: &str,
) {
    let rule = rule(spec);
    let revision = Revision::parse(&format!("release-1.0.0@sha1:{COMMIT}")).unwrap();
    let revision = revision.of_unknown_name();
    let opinion = rule.opinion(&[], Some(&revision), Setting::Open);
    assert_eq!(opinion.reason, reason);
    assert_eq!(
        rule.explain(&[], Some(&revision), &opinion),
        format!("sha1:{COMMIT} {words}")
    );
}

#[test]
fn it_says_which_entry_decided() {
    let rule = rule(json!({ "allow": ["release-*"] }));
    let (_, _, words) = judged(&rule, &[], Setting::Closed);
    assert_eq!(
        words,
        format!("release-7@sha1:{COMMIT} may go out: it matches `release-*`")
    );
    let opinion = rule.opinion(&[], None, Setting::Closed);
    assert_eq!(
        rule.explain(&[], None, &opinion),
        "it depends on the revision: 1 entries allow, 0 deny"
    );
}

#[rstest]
#[case(json!({}), "spec.revisions: revisions without a list say nothing")]
#[case(json!({ "allow": ["main", "4f2a9c1"] }), "spec.revisions.allow[1]: `4f2a9c1` looks like")]
#[case(json!({ "deny": [">=x"] }), "spec.revisions.deny[0]: `>=x` is not a range of versions")]
fn mistakes_are_refused(#[case] spec: serde_json::Value, #[case] begins: &str) {
    let spec = serde_json::from_value(spec).unwrap();
    let refusals = Revisions::read(&spec, "spec.revisions").unwrap_err();
    let first = refusals.iter().next().unwrap().to_string();
    assert!(first.starts_with(begins), "{first}");
}

#[test]
fn a_broken_line_is_named() {
    let refusal = List::parse("main\n\n# x\n4f2a9c1\n").unwrap_err();
    assert!(
        refusal.starts_with("line 4: `4f2a9c1` looks like"),
        "{refusal}"
    );
    let long = "a\n".repeat(MOST_ENTRIES + 1);
    assert_eq!(
        List::parse(&long).unwrap_err(),
        "it has more than 10000 entries"
    );
}

/// Who may write a ConfigMap may write ten thousand entries into each of its keys.
#[rstest]
#[case::globs(&["[a-z]*{a,b}-?", "*x*y*z*"])]
#[case::names(&["release-1.2.3", "v1.2.3"])]
#[case::ranges(&[">=1.2.3, <2"])]
#[case::commits(&["4f2a9c1e0b7d"])]
fn an_entry_takes_little_however_it_is_matched(#[case] entries: &[&str]) {
    let lines = entries.iter().cycle().take(MOST_ENTRIES);
    let text: String = lines.map(|entry| format!("{entry}\n")).collect();
    let revision = Revision::parse(&format!("release-7@sha1:{COMMIT}")).unwrap();
    let rule = rule(json!({ "denyFrom": from("d") }));
    let mut kept = None;
    let used = allocation_counter::measure(|| {
        let reading = list(&text);
        let opinion = rule.opinion(
            std::slice::from_ref(&reading),
            Some(&revision),
            Setting::Open,
        );
        kept = Some((reading, opinion));
    });
    // A compiled glob takes thirty times as much.
    let each = used.bytes_current / MOST_ENTRIES as i64;
    assert!(each <= 250, "{each} bytes an entry");
    drop(kept);
}
