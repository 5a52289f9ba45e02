//! `simulate --from --to`: how a gate changes over time.

use rstest::rstest;

use crate::program::{Ran, gate, gatekeeper, run, window};

const COMMIT: &str = "main@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";

/// From 10:00 to 20:00 on a Friday.
fn day(arguments: &[&str], yaml: &str) -> Ran {
    let common = [
        "simulate",
        "-f",
        "-",
        "--from",
        "2026-11-20T10:00:00Z",
        "--to",
        "2026-11-20T20:00:00Z",
    ];
    run(&[&common, arguments].concat(), yaml)
}

fn until_six() -> String {
    gatekeeper(
        "it",
        "{schedule: {open: [{cron: 0 9 * * *, duration: 9h}]}}",
    ) + &gate("it", "{gatekeepers: [{name: it}]}")
}

#[rstest]
#[case::all_the_time("{default: open}", "open", 0, "it is Open all of that time")]
#[case::never("{default: open}", "closed", 1, "expected Closed, but it is Open from")]
fn an_expectation_is_about_all_of_the_time(
    #[case] spec: &str,
    #[case] expected: &str,
    #[case] code: i32,
    #[case] said: &str,
) {
    let ran = day(&["--expect", expected], &gate("it", spec));
    assert_eq!(ran.code, Some(code), "{ran:?}");
    assert!(ran.out.starts_with(said), "{ran:?}");
}

#[test]
fn an_expectation_that_fails_later_says_when() {
    let ran = day(&["--expect", "open"], &until_six());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(
        ran.out,
        "expected Open, but it is Closed from Fri 2026-11-20 18:00 UTC (OutsideWindow): it: \
         outside every open window\n"
    );
    let json = day(&["--expect", "open", "-o", "json"], &until_six());
    assert_eq!(json.code, Some(1), "{json:?}");
}

/// Alice has approved in the file, for two hours.
fn approved() -> String {
    let vote = format!(
        "apiVersion: sluice.dev/v1alpha1\nkind: Approval\nmetadata: {{name: one}}\nspec: \
         {{gatekeeperRef: {{name: it}}, revision: '{COMMIT}', decision: approve, by: alice, reason: tested}}\n---\n"
    );
    gatekeeper("it", "{approval: {required: 1, validFor: 2h}}")
        + &vote
        + &gate("it", "{gatekeepers: [{name: it}]}")
}

#[test]
fn a_revision_is_asked_about_until_its_approvals_run_out() {
    let any = day(&[], &approved());
    assert!(any.out.contains("Conditional"), "{any:?}");
    let one = day(&["--revision", COMMIT], &approved());
    insta::assert_snapshot!(one.out);
}

#[test]
fn a_force_that_is_refused_is_told() {
    let yaml = "
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata:
  name: it
  annotations:
    sluice.dev/force: open
    sluice.dev/force-by: alice
    sluice.dev/force-reason: hotfix
    sluice.dev/force-until: 2026-12-24T18:00:00Z
spec: {}
";
    let ran = day(&[], yaml);
    assert!(
        ran.out
            .contains("ignored: metadata.annotations[sluice.dev/force-until]: "),
        "{ran:?}"
    );
    let json = day(&["-o", "json"], yaml);
    let told: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let ignored = told["ignored"][0].as_str().unwrap_or_default();
    assert!(ignored.contains("sluice.dev/force-until"), "{json:?}");
}

/// What nobody has looked at is not said to be closed. The pictures have tests of their own.
#[test]
fn days_beyond_what_was_looked_at_are_not_known() {
    let calendar = [
        "calendar",
        "-f",
        "-",
        "--from",
        "2026-01-01T00:00:00Z",
        "--days",
        "90",
        "-o",
        "json",
    ];
    let ran = run(&calendar, &window("*/2 * * * *", "1m", "UTC"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let known_until = json[0]["knownUntil"].as_str();
    assert!(known_until.is_some() && known_until < json[0]["to"].as_str());
}
