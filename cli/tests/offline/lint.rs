use rstest::rstest;

use crate::program::{gate, gatekeeper, run, window};

#[rstest]
#[case::no_finding(&window("0 9 * * *", "8h", "UTC"), &[], 0)]
#[case::warning(&gate("a", "{gatekeepers: [{name: nobody}]}"), &[], 0)]
#[case::strict(&gate("a", "{gatekeepers: [{name: nobody}]}"), &["--strict"], 2)]
#[case::mistake(&gate("a", "{window: 0s}"), &[], 2)]
#[case::other_kinds("{apiVersion: v1, kind: Service}", &[], 0)]
#[case::empty("", &[], 2)]
fn exit_codes_tell_what_is_refused(#[case] yaml: &str, #[case] more: &[&str], #[case] code: i32) {
    let ran = run(&[&["lint", "-f", "-"], more].concat(), yaml);
    assert_eq!(ran.code, Some(code), "{ran:?}");
}

const WRONG: &str = "\
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata:
  name: Office_Hours
spec:
  schedule:
    timezone: Europe/London
    open:
    - name: on
      cron: 0 9 * * MON-FRY
      duration: 8 hours
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: freeze}
spec:
  schedule:
    closed:
    - from: 2026-12-19
      until: 2027-01-04T00:00:00
    - cron: 0 0 30 2 *
      duration: 24h
    - calendar: {configMapRef: {name: holidays, key: uk.ics}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: holidays}
data:
  uk.ics: |
    BEGIN:VCALENDAR
    BEGIN:VEVENT
    DTSTART:tomorrow
    END:VEVENT
    END:VCALENDAR
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata:
  name: production
  annotations:
    sluice.dev/force: opened
spec:
  gatekeepers:
  - name: freeze
  - name: nobody
  require: any
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata:
  name: staging
  annotations:
    sluice.dev/force: open
    sluice.dev/force-by: alice
spec:
  gatekeepers:
  - name: nobody
---
kind: Gate
metadata: {name: staging}
";

#[test]
fn every_mistake_is_told_where_it_stands() {
    let ran = run(&["lint", "-f", "-"], WRONG);
    assert_eq!(ran.code, Some(2));
    insta::assert_snapshot!(format!("{}--\n{}", ran.out, ran.err));
}

#[test]
fn a_broken_calendar_is_told_at_its_line() {
    let keeper = gatekeeper(
        "a",
        "{schedule: {closed: [{calendar: {configMapRef: {name: m, key: k}}}]}}",
    );
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  k: |\n    BEGIN:VCALENDAR\n    END:VCALENDAR\n";
    let ran = run(&["lint", "-f", "-"], &format!("{keeper}{map}"));
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.out.starts_with(
            "stdin:10: document 2, ConfigMap default/m: data[k]: the calendar has no events"
        ),
        "{ran:?}"
    );
}

#[test]
fn findings_of_several_files_name_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("a.yaml"), "a: [1\n").unwrap();
    std::fs::write(path("b.json"), "{\"apiVersion\": \"sluice.dev/v1alpha1\", \"kind\": \"Gate\",\n\"metadata\": {\"name\": \"b\"},\n\"spec\": {\"windows\": \"1h\"}}").unwrap();
    let ran = run(&["lint", "-f", &path("b.json"), &path("a.yaml")], "");
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(
        lines[0].starts_with(&format!(
            "{}:3: document 1, Gate default/b: spec.windows: there is no such field; write window",
            path("b.json")
        )),
        "{lines:#?}"
    );
    assert!(
        lines[1].starts_with(&format!("{}:1: document 1: it is not YAML", path("a.yaml"))),
        "{lines:#?}"
    );
}

#[test]
fn objects_written_twice_are_warned_of() {
    let ran = run(
        &["lint", "-f", "-"],
        &(gate("a", "{}") + &gate("a", "{default: open}")),
    );
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.contains("warning: document 2, Gate default/a: metadata.name: an object of that name is written before"), "{ran:?}");
}

#[test]
fn the_examples_are_right() {
    let ran = run(
        &[
            "lint",
            "--strict",
            "-f",
            concat!(env!("CARGO_MANIFEST_DIR"), "/../examples"),
        ],
        "",
    );
    // Two examples hold an office-hours, a gate and a gatekeeper each.
    let others: Vec<&str> = ran
        .out
        .lines()
        .filter(|line| !line.contains("of that name"))
        .collect();
    assert_eq!(others, [""; 0]);
}

/// What a gated source names in the same files is looked for there.
#[test]
fn a_gated_source_is_read_and_its_gates_are_looked_for() {
    let source = "apiVersion: sluice.dev/v1alpha1
kind: GatedSource
metadata: {name: app, namespace: apps}
spec:
  sourceRef: {kind: GitRepository, name: app}
  target: {name: app-gated}
  gates:
    refs:
    - {name: production}
    - {name: freeze, namespace: platform}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: production, namespace: apps}
spec: {}
";
    let ran = run(&["lint", "-f", "-"], source);
    let expected = "stdin:10: warning: document 1, GatedSource apps/app: spec.gates.refs[1]: there is \
                    no Gate platform/freeze in these files, which lets nothing out; add it, unless \
                    the cluster has it\n";
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), expected), "{ran:?}");
    let wrong = source
        .replace("GitRepository", "GitRepo")
        .replace("refs", "ref");
    let ran = run(&["lint", "-f", "-"], &wrong);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    for part in [
        "spec.sourceRef.kind: `GitRepo`",
        "spec.gates.ref: there is no such field",
    ] {
        assert!(ran.out.contains(part), "{ran:?}");
    }
}
