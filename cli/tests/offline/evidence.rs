//! `simulate` with evidence that is given, and about one revision.

use rstest::rstest;

use crate::program::{Ran, gate, gatekeeper, run};

/// A gate that is kept by an error rate.
fn error_rate() -> String {
    gatekeeper(
        "errors",
        "{metric: {address: 'https://prometheus', query: errors, range: {max: 0.05}, for: 10m}}",
    ) + &gate("it", "{gatekeepers: [{name: errors}]}")
}

fn with_evidence(evidence: &str, arguments: &[&str]) -> Ran {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), evidence).unwrap();
    let path = file.path().to_str().unwrap();
    let common = ["simulate", "-f", "-", "--evidence", path];
    run(&[&common, arguments].concat(), &error_rate())
}

#[test]
fn evidence_can_be_given() {
    let at = |at, expect| ["--at", at, "--expect", expect];
    let good = "{errors: {value: 0.01, since: 2026-11-20T09:55:00Z}}";
    let ran = with_evidence(good, &at("2026-11-20T10:00:00Z", "closed"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = with_evidence(good, &at("2026-11-20T10:05:00Z", "open"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("0.01"), "{ran:?}");
    let bad = "{default/errors: {value: 0.5}}";
    let ran = with_evidence(bad, &["--at", "2026-11-20T10:05:00Z"]);
    assert!(
        ran.out.contains("0.5") && ran.out.contains("0.05"),
        "{ran:?}"
    );
    let span = [
        "--from",
        "2026-11-20T10:00:00Z",
        "--to",
        "2026-11-20T12:00:00Z",
        "-o",
        "json",
    ];
    let ran = with_evidence(good, &span);
    let told: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(told["changes"][1]["at"], "2026-11-20T10:05:00Z", "{ran:?}");
    assert_eq!(told["changes"][1]["state"], "Open", "{ran:?}");
    // Without any, nobody has looked.
    let ran = run(
        &["simulate", "-f", "-", "--at", "2026-11-20T10:05:00Z"],
        &error_rate(),
    );
    assert!(ran.out.contains("NotObserved"), "{ran:?}");
}

#[rstest]
#[case(
    "{other: {value: 1}}",
    "other: there is no such gatekeeper; there are default/errors"
)]
#[case(
    "{errors: {status: 200}}",
    "errors: it is of the kind metric: write value, unavailable or broken"
)]
#[case("{errors: {values: 1}}", "it is no evidence: ")]
#[case("[", "it is no evidence: ")]
fn evidence_that_makes_no_sense_is_refused(#[case] evidence: &str, #[case] expected: &str) {
    let ran = with_evidence(evidence, &["--at", "2026-11-20T10:00:00Z"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains(expected), "{ran:?}");
}

#[test]
fn a_revision_can_be_asked_about() {
    let yaml = gatekeeper("listed", "{revisions: {allow: ['v1.*']}}")
        + &gate("it", "{gatekeepers: [{name: listed}]}");
    let ask = |revision: &[&str], expect| {
        let common = [
            "simulate",
            "-f",
            "-",
            "--at",
            "2026-11-20T10:00:00Z",
            "--expect",
            expect,
        ];
        run(&[&common, revision].concat(), &yaml).code
    };
    assert_eq!(ask(&["-r", "v1.2.3"], "open"), Some(0));
    assert_eq!(ask(&["-r", "v2.0.0"], "closed"), Some(0));
    assert_eq!(ask(&[], "open"), Some(1));
    assert_eq!(ask(&["-r", "main@sha1:123"], "open"), Some(2));
}
