//! `simulate`: what is decided of the gates in files.

use rstest::rstest;

use crate::program::{Ran, gate, gatekeeper, run, window};

mod files;
mod pipelines;

/// What `simulate` says of `yaml` at an instant of which a state is expected.
fn expect(state: &str, at: &str, more: &[&str], yaml: &str) -> Ran {
    let common = ["simulate", "-f", "-", "--at", at, "--expect", state];
    run(&[&common, more].concat(), yaml)
}

/// Whether the one gate of `yaml` is open at `at`, as exit codes tell it: each answer is asked for
/// both ways.
fn is_open(yaml: &str, at: &str) -> bool {
    let ask = |state| expect(state, at, &[], yaml);
    let (open, closed) = (ask("open"), ask("closed"));
    match (open.code, closed.code) {
        (Some(0), Some(1)) => true,
        (Some(1), Some(0)) => false,
        _ => panic!("{open:?} {closed:?}"),
    }
}

/// The cases that `facts` about windows promise.
#[rstest]
#[case("0 9 * * 1", "1h", "UTC", "2026-07-06T09:00:00Z", true)]
#[case("0 9 * * 1", "1h", "UTC", "2026-07-06T10:00:00Z", false)]
#[case("0 9 * * 1", "1h", "UTC", "2026-07-06T09:59:59.999999999Z", true)]
#[case("0 9 * * 1-5", "8h", "UTC", "2026-07-06T10:00:00Z", true)]
#[case("0 9 * * 1-5", "8h", "UTC", "2026-07-06T06:00:00Z", false)]
#[case("0 10 * * 6", "4h", "UTC", "2026-07-11T11:00:00Z", true)]
#[case("0 0 25 12 *", "48h", "UTC", "2026-12-25T12:00:00Z", true)]
#[case("* * * * *", "2h", "UTC", "2026-12-25T12:00:00Z", true)]
#[case("0 9 * * 1-5", "8h", "America/New_York", "2026-07-06T14:00:00Z", true)]
#[case("0 11 * * 1-5", "6h", "Europe/Paris", "2026-07-06T10:00:00Z", true)]
#[case("@daily", "30m", "UTC", "2000-05-30T23:00:00Z", false)]
#[case("30 6 * * SUN", "6h", "UTC", "2024-01-07T00:00:00Z", false)]
#[case(
    "0 22 * * *",
    "8h",
    "America/New_York",
    "2026-11-01T05:00:00-05:00",
    false
)]
#[case(
    "0 22 * * *",
    "8h",
    "America/New_York",
    "2026-11-01T04:59:59-05:00",
    true
)]
#[case(
    "0 2 * * *",
    "1h",
    "America/New_York",
    "2026-03-08T03:00:00-04:00",
    true
)]
#[case(
    "0 2 * * *",
    "1h",
    "America/New_York",
    "2026-03-08T04:00:00-04:00",
    false
)]
#[case("* * 20-30 11 *", "", "UTC", "2026-11-20T00:00:00Z", true)]
#[case("* * 20-30 11 *", "", "UTC", "2026-12-01T00:00:00Z", false)]
fn windows_are_open_when_they_say(
    #[case] cron: &str,
    #[case] duration: &str,
    #[case] zone: &str,
    #[case] at: &str,
    #[case] open: bool,
) {
    assert_eq!(is_open(&window(cron, duration, zone), at), open);
}

#[rstest]
#[case::no_quotes("from: 2026-12-19T00:00:00, until: 2026-12-20T00:00:00")]
#[case::single("from: '2026-12-19T00:00:00', until: '2026-12-20T00:00:00'")]
fn dates_need_no_quotes(#[case] window: &str) {
    let yaml = gatekeeper(
        "it",
        &format!("{{schedule: {{timeZone: Asia/Tokyo, open: [{{{window}}}]}}}}"),
    );
    assert!(is_open(&yaml, "2026-12-18T15:00:00Z"));
    assert!(!is_open(&yaml, "2026-12-19T15:00:00Z"));
}

#[rstest]
#[case::open("{default: open}", true)]
#[case::closed("{default: closed}", false)]
#[case::nothing_said("{}", false)]
#[case::suspended("{default: open, suspend: true}", false)]
#[case::of_nobody("{gatekeepers: [{name: nobody}]}", false)]
#[case::nobody_of_one("{require: oneOf, gatekeepers: [{name: nobody}]}", false)]
fn a_gate_alone_is_decided_too(#[case] spec: &str, #[case] open: bool) {
    assert_eq!(is_open(&gate("it", spec), "2026-11-20T00:00:00Z"), open);
}

#[test]
fn a_switch_turns_at_its_end() {
    let yaml = gatekeeper(
        "it",
        "{manual: {state: closed, until: 2026-11-20T18:00:00+01:00}}",
    );
    assert!(!is_open(&yaml, "2026-11-20T16:59:59Z"));
    assert!(is_open(&yaml, "2026-11-20T17:00:00Z"));
}

fn two_gates() -> String {
    gate("a", "{default: open}")
        + &gate("b", "{}")
        + "apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {name: b, namespace: team}\nspec: {default: open}\n"
}

#[rstest]
#[case(&["--gate", "a"], Some(0))]
#[case(&["--gate", "default/b"], Some(1))]
#[case(&["--gate", "team/b"], Some(0))]
#[case(&["--gate", "b", "-n", "team"], Some(0))]
#[case(&["--gate", "b"], Some(2))]
#[case(&["--gate", "c"], Some(2))]
#[case(&["--gate", "team/a"], Some(2))]
#[case(&[], Some(2))]
fn one_gate_is_chosen(#[case] arguments: &[&str], #[case] code: Option<i32>) {
    let ran = expect("open", "2026-11-20T10:00:00Z", arguments, &two_gates());
    assert_eq!(ran.code, code, "{ran:?}");
    assert_eq!(
        ran.err.lines().count(),
        usize::from(code == Some(2)),
        "{ran:?}"
    );
}

const FORCED: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata:
  name: production
  annotations:
    sluice.dev/force: open
    sluice.dev/force-by: alice
    sluice.dev/force-reason: hotfix
    sluice.dev/force-until: 2026-11-20T18:00:00Z
spec: {}
";

#[rstest]
#[case::in_effect("2026-11-20T17:00:00Z", &[], true)]
#[case::ended("2026-11-20T18:00:00Z", &[], false)]
#[case::too_long("2026-11-19T17:00:00Z", &[], false)]
#[case::nobody_verified("2026-11-20T17:00:00Z", &["--unverified"], false)]
fn annotations_force_the_gate(#[case] at: &str, #[case] more: &[&str], #[case] open: bool) {
    let ran = expect("open", at, more, FORCED);
    assert_eq!(ran.code, Some(i32::from(!open)), "{ran:?}");
}

fn told(arguments: &[&str], yaml: &str) -> String {
    let Ran { code, out, err } = run(arguments, yaml);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    out
}

fn fridays() -> String {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../examples/no-deploy-fridays.yaml"
    );
    std::fs::read_to_string(path).unwrap()
}

const WEEK: [&str; 7] = [
    "simulate",
    "-f",
    "-",
    "--from",
    "2026-11-19T00:00:00Z",
    "--to",
    "2026-11-24T12:00:00Z",
];

#[test]
fn changes_are_told_with_their_causes() {
    insta::assert_snapshot!(told(&WEEK, &fridays()));
}

#[test]
fn changes_are_told_to_programs() {
    insta::assert_snapshot!(told(&[&WEEK[..], &["-o", "json"]].concat(), &fridays()));
}

#[test]
fn a_decision_is_told_with_all_that_led_to_it() {
    let at = [
        "simulate",
        "-f",
        "-",
        "--at",
        "2026-11-20T13:00:00",
        "--zone",
        "Europe/Berlin",
    ];
    insta::assert_snapshot!(told(&at, &fridays()));
    insta::assert_snapshot!(told(&[&at[..], &["-o", "yaml"]].concat(), &fridays()));
}

#[test]
fn an_unmet_expectation_says_why() {
    let ran = expect("open", "2026-11-20T12:00:00Z", &[], &fridays());
    insta::assert_snapshot!(ran.out);
}

#[test]
fn what_changes_without_end_is_cut_off_and_said() {
    let many = [
        "simulate",
        "-f",
        "-",
        "--from",
        "2026-01-01T00:00:00Z",
        "--to",
        "2028-01-01T00:00:00Z",
    ];
    let ran = run(&many, &window("*/2 * * * *", "", "UTC"));
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("choose an earlier --to"), "{}", ran.err);
}
