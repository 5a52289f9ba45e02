use rstest::rstest;

use crate::program::{Ran, gate, gatekeeper, run, window};

/// Whether the one gate of `yaml` is open at `at`, as exit codes tell it: each answer is asked for
/// both ways.
fn is_open(yaml: &str, at: &str) -> bool {
    let ask = |expect| {
        run(
            &["simulate", "-f", "-", "--at", at, "--expect", expect],
            yaml,
        )
    };
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
    let ran = run(
        &[
            "simulate",
            "-f",
            folder,
            "-",
            "--at",
            "2026-11-20T10:00:00Z",
            "--expect",
            "open",
        ],
        &yaml,
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = run(
        &[
            "simulate",
            "-f",
            folder,
            "-f",
            "-",
            "--at",
            "2026-11-20T10:00:00Z",
            "--expect",
            "open",
        ],
        &yaml,
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
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
    let common = [
        "simulate",
        "-f",
        "-",
        "--at",
        "2026-11-20T10:00:00Z",
        "--expect",
        "open",
    ];
    let ran = run(&[&common, arguments].concat(), &two_gates());
    assert_eq!(ran.code, code, "{ran:?}");
    assert_eq!(
        ran.err.lines().count(),
        usize::from(code == Some(2)),
        "{ran:?}"
    );
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
    for expect in ["open", "closed"] {
        let ran = run(
            &[
                "simulate",
                "-f",
                "-",
                "--at",
                "2026-11-20T10:00:00Z",
                "--expect",
                expect,
            ],
            &yaml,
        );
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
    let ran = run(
        &[
            "simulate",
            "-f",
            "-",
            "--at",
            "2026-11-20T10:00:00Z",
            "--expect",
            "closed",
        ],
        &window("0 9 * * *", duration, zone),
    );
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
    let common = ["simulate", "-f", "-", "--at", at, "--expect", "open"];
    let ran = run(&[&common, more].concat(), FORCED);
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
    let at = [
        "simulate",
        "-f",
        "-",
        "--at",
        "2026-11-20T12:00:00Z",
        "--expect",
        "open",
    ];
    let ran = run(&at, &fridays());
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

/// A pipeline whose dev runs 6.1.6, with the objects of its apps.
const PIPELINE: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Pipeline
metadata: {name: podinfo, namespace: apps}
spec:
  appRef: {kind: HelmRelease, name: podinfo}
  promotion: {strategy: {admission: {}}}
  environments:
    - {name: dev, targets: [{namespace: dev}]}
    - {name: prod, targets: [{namespace: prod}], gates: {refs: [{name: production}]}}
status:
  environments: {prod: {state: Passed, admitted: [{revision: 6.1.0, run: 1, at: 2026-11-20T12:00:00Z}]}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: office-hours, namespace: apps}
spec: {schedule: {open: [{cron: 0 9 * * MON-FRI, duration: 8h}]}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: production, namespace: apps}
spec: {gatekeepers: [{name: office-hours}]}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: promoted, namespace: apps}
spec: {pipeline: {name: podinfo, environment: prod}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: promoted, namespace: apps}
spec: {gatekeepers: [{name: promoted}]}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: podinfo, namespace: dev, generation: 1}
status:
  observedGeneration: 1
  history: [{chartVersion: 6.1.6, status: deployed}]
  conditions: [{type: Ready, status: 'True'}]
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: podinfo, namespace: prod, generation: 1}
status:
  observedGeneration: 1
  history: [{chartVersion: 6.1.0, status: deployed}]
  conditions: [{type: Ready, status: 'True'}]
";

#[test]
fn a_pipeline_in_files_shows_what_it_would_promote_and_when() {
    let common = ["simulate", "-f", "-", "--pipeline", "podinfo"];
    let night = [&common[..], &["--at", "2026-11-23T06:00:00Z"]].concat();
    let held = run(&night, PIPELINE);
    assert_eq!(held.code, Some(0), "{held:?}");
    assert!(held.out.contains("nothing is promoted"), "{held:?}");
    assert!(
        held.out.contains("prod: held back by apps/production"),
        "{held:?}"
    );
    assert!(!held.err.contains("HelmRelease"), "{held:?}");
    let span = [
        "--from",
        "2026-11-23T06:00:00Z",
        "--to",
        "2026-11-23T12:00:00Z",
    ];
    let goes = run(&[&common[..], &span].concat(), PIPELINE);
    assert!(goes.out.contains("2026-11-23T09:00:00Z"), "{goes:?}");
    assert!(goes.out.contains("promote 6.1.6 to prod"), "{goes:?}");
    let json = run(&[&common[..], &span, &["-o", "json"]].concat(), PIPELINE);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        json["promotions"][0]["decision"]["decidedBy"][0],
        "apps/production"
    );
    let missing = run(
        &["simulate", "-f", "-", "--pipeline", "shop", "--at", "now"],
        PIPELINE,
    );
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(
        missing.err.contains("there is no pipeline `shop`"),
        "{missing:?}"
    );
}

/// The status of the pipeline is in the file, as it is in a cluster.
#[test]
fn a_gate_reads_what_a_pipeline_in_files_has_admitted() {
    let at = |revision: &str| {
        let arguments = [
            "simulate",
            "-f",
            "-",
            "--gate",
            "promoted",
            "--at",
            "2026-11-23T06:00:00Z",
            "-r",
            revision,
            "--expect",
            "open",
        ];
        run(&arguments, PIPELINE).code
    };
    assert_eq!(at("6.1.0"), Some(0));
    assert_eq!(at("6.1.6"), Some(1));
}

#[test]
fn a_new_pipeline_passes_lint() {
    let new = run(
        &[
            "pipeline",
            "new",
            "podinfo",
            "--app",
            "HelmRelease/podinfo",
            "-e",
            "dev=podinfo-dev",
            "-e",
            "prod=podinfo@Secret/prod-kubeconfig,perf",
            "-g",
            "prod=production",
            "--promote",
            "admission",
            "--manual",
            "prod",
            "-n",
            "apps",
        ],
        "",
    );
    assert_eq!(new.code, Some(0), "{new:?}");
    insta::assert_snapshot!(new.out);
    assert_eq!(run(&["lint", "-f", "-"], &new.out).code, Some(0));
    for (arguments, expected) in [
        (&["-g", "live=a"][..], "there is no environment `live`"),
        (
            &["--url", "https://a"][..],
            "belong to --promote pull-request",
        ),
        (&["--promote", "pull-request"][..], "needs --forge"),
        (&["-e", "x=a@b"][..], "names no cluster"),
    ] {
        let common = [
            "pipeline",
            "new",
            "a",
            "--app",
            "HelmRelease/a",
            "-e",
            "dev=dev",
        ];
        let refused = run(&[&common[..], arguments].concat(), "");
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains(expected), "{refused:?}");
    }
}

#[test]
fn pipelines_of_weave_are_imported_from_files() {
    let weave = "
apiVersion: v1
kind: List
items:
  - apiVersion: pipelines.weave.works/v1alpha1
    kind: Pipeline
    metadata: {name: podinfo, namespace: default}
    spec:
      appRef: {kind: HelmRelease, name: podinfo}
      environments: [{name: dev, targets: [{namespace: podinfo}]}]
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: other}}
";
    let imported = run(&["pipeline", "import", "-f", "-"], weave);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    assert_eq!(
        run(&["lint", "-f", "-"], &imported.out).code,
        Some(0),
        "{imported:?}"
    );
    let older = weave.replace("appRef:", "promotion: {notification: {}}\n      appRef:");
    let refused = run(&["pipeline", "import", "-f", "-"], &older);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused
            .err
            .contains("write promotion: {strategy: {notification: {}}}"),
        "{refused:?}"
    );
    assert!(refused.out.is_empty(), "{refused:?}");
    assert_eq!(run(&["pipeline", "import", "-f", "-"], "{}").code, Some(2));
}
