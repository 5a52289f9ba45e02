//! What files look like, and which are refused.

use rstest::rstest;

use super::{expect, is_open};
use crate::program::{gate, gatekeeper, run, window};

const AT: &str = "2026-11-20T10:00:00Z";

const FORMS: &str = "
# A comment, Windows line ends, documents without anything, a list, and what is none of ours.
---
---
apiVersion: v1
kind: List
items:
- apiVersion: sluice.dev/v1alpha1
  kind: Gatekeeper
  metadata: {name: base, namespace: b, annotations: {note: \"on\"}, creationTimestamp: null}
  spec: &base
    schedule:
      open:
      - name: on-call   # `on` begins a word
        cron: 0 9 * * *
        duration: 8h
- apiVersion: sluice.dev/v1alpha1
  kind: Gatekeeper
  metadata: {name: copy, namespace: b}
  spec: *base
---
apiVersion: gates.example.com/v1
kind: Gate
metadata: {name: namesake}
spec: anything
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata:
  generateName: made-up-
spec:
  gatekeepers:
  - {name: base, namespace: b}
  - name: copy
    namespace: b
status: {state: Open, upcoming: nonsense}
...
";

#[rstest]
#[case::as_written(FORMS.to_owned())]
#[case::windows_line_ends(FORMS.replace('\n', "\r\n"))]
#[case::byte_order_mark(format!("\u{feff}{FORMS}"))]
fn yaml_comes_in_many_forms(#[case] yaml: String) {
    assert!(is_open(&yaml, "2026-11-20T10:00:00Z"));
    assert!(!is_open(&yaml, "2026-11-20T18:00:00Z"));
}

#[test]
fn files_folders_and_standard_input_are_read_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("deep")).unwrap();
    std::fs::write(
        path("deep/keeper.yml"),
        gatekeeper("it", "{manual: {state: open}}"),
    )
    .unwrap();
    std::fs::write(path("deep/kustomization.yaml"), "resources: [keeper.yml]").unwrap();
    std::fs::write(path("deep/empty.yaml"), "# nothing\n").unwrap();
    std::fs::write(path("deep/notes.txt"), "not: [yaml").unwrap();
    let yaml = gate("it", "{gatekeepers: [{name: it}]}");
    let folder = folder.path().to_str().unwrap();
    for files in [&["-f", folder, "-"][..], &["-f", folder, "-f", "-"]] {
        let ends = ["--at", AT, "--expect", "open"];
        let ran = run(&[&["simulate"], files, &ends].concat(), &yaml);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
}

const OPEN: &str =
    "apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {name: a}\nspec: {default: open}\n";

#[rstest]
#[case::empty("", "the file holds no object")]
#[case::comments("# nothing\n---\n", "the file holds no object")]
#[case::other_kinds(
    "{apiVersion: v1, kind: Service, metadata: {name: a}}",
    "there is no Gate in these files"
)]
#[case::empty_list(
    "{apiVersion: v1, kind: List, items: []}",
    "there is no Gate in these files"
)]
#[case::no_yaml("a: [", "it is not YAML")]
#[case::text("hello", "it is no object")]
#[case::no_kind("a: 1", "kind: it is missing")]
#[case::unknown_field(
    "{apiVersion: sluice.dev/v1alpha1, kind: Gate, metadata: {name: a}, spec: {gates: []}}",
    "spec.gates: there is no such field"
)]
#[case::never("0 0 30 2 *", "never occurs")]
#[case::inverted("0 0 * * tue-mon", "is not a cron expression")]
#[case::three("* * *", "3 fields")]
fn what_lint_refuses_is_refused(#[case] input: &str, #[case] expected: &str) {
    let yaml = if input.contains('*') {
        window(input, "1h", "UTC")
    } else {
        input.to_owned()
    };
    for state in ["open", "closed"] {
        let ran = expect(state, AT, &[], &yaml);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains(expected) && ran.out.is_empty(), "{ran:?}");
    }
}

#[rstest]
#[case::duration_unit("2a", "UTC")]
#[case::duration_long("1000days", "UTC")]
#[case::duration_none("0s", "UTC")]
#[case::duration_negative("\"-1h\"", "UTC")]
#[case::zone("1h", "Mars/Olympus")]
fn windows_that_mean_nothing_are_refused(#[case] duration: &str, #[case] zone: &str) {
    let ran = expect("closed", AT, &[], &window("0 9 * * *", duration, zone));
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[rstest]
#[case::no_time(&[], "required")]
#[case::no_end(&["--from", "2026-11-20T10:00:00Z"], "--to")]
#[case::both(&["--at", "2026-11-20T10:00:00Z", "--from", "2026-11-20T10:00:00Z", "--to", "2026-11-20T10:00:00Z"], "cannot be used with")]
#[case::no_offset(&["--at", "2026-11-20T10:00:00"], "give --zone")]
#[case::no_instant(&["--at", "tomorrow"], "`tomorrow` is not an instant")]
#[case::no_zone(&["--at", "2026-11-20T10:00:00", "--zone", "Mars"], "there is no time zone `Mars`")]
#[case::no_state(&["--at", "2026-11-20T10:00:00Z", "--expect", "ajar"], "write open or closed")]
#[case::backwards(&["--from", "2026-11-20T10:00:00Z", "--to", "2026-11-20T10:00:00Z"], "is not later")]
#[case::no_file(&["--at", "2026-11-20T10:00:00Z", "-f", "/nowhere.yaml"], "/nowhere.yaml: cannot read it")]
fn bad_arguments_are_refused(#[case] arguments: &[&str], #[case] expected: &str) {
    let ran = run(&[&["simulate", "-f", "-"], arguments].concat(), OPEN);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains(expected), "{ran:?}");
}
