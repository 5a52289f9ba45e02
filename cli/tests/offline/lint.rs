use rstest::rstest;

use crate::program::{gate, gatekeeper, run, window};

#[rstest]
#[case::no_finding(&window("0 9 * * *", "8h", "UTC"), &[], 0)]
#[case::warning(&gate("a", "{gatekeepers: [{name: nobody}]}"), &[], 0)]
#[case::strict(&gate("a", "{gatekeepers: [{name: nobody}]}"), &["--strict"], 1)]
#[case::mistake(&gate("a", "{window: 0s}"), &[], 1)]
#[case::other_kinds("{apiVersion: v1, kind: Service}", &[], 0)]
#[case::empty("", &[], 1)]
#[case::usage("", &["--nonsense"], 2)]
#[case::no_such_file("", &["nothing-here.yaml"], 2)]
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
    assert_eq!(ran.code, Some(1));
    insta::assert_snapshot!(format!("{}--\n{}", ran.out, ran.err));
}

#[test]
fn a_broken_calendar_is_told_at_its_line() {
    let keeper = gatekeeper(
        "a",
        "{schedule: {closed: [{calendar: {configMapRef: {name: m, key: k}}}]}}",
    );
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  k: |\n    BEGIN:VCALENDAR\n    END:VCALENDAR\n";
    let broken = map.replace("    END:VCALENDAR\n", "");
    let ran = run(&["lint", "-f", "-"], &format!("{keeper}{broken}"));
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.out.starts_with(
            "stdin:10: document 2, ConfigMap default/m: data[k]: line 1: BEGIN:VCALENDAR has no end"
        ),
        "{ran:?}"
    );
    // Without events it is one all the same.
    let ran = run(&["lint", "-f", "-"], &format!("{keeper}{map}"));
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:?}");
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
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for part in [
        "spec.sourceRef.kind: `GitRepo`",
        "spec.gates.ref: there is no such field",
    ] {
        assert!(ran.out.contains(part), "{ran:?}");
    }
}

/// A mistake in one object says nothing about the others that name it.
#[test]
fn what_follows_from_a_mistake_is_not_told_beside_it() {
    let yaml = gatekeeper(
        "it",
        "{schedule: {open: [{cron: 0 9 * * MON-FRY, duration: 8h}]}}",
    ) + &gatekeeper("other", "{schedule: {opened: []}}")
        + &gate("a", "{gatekeepers: [{name: it}]}")
        + &gate("b", "{gatekeepers: [{name: other}]}");
    let ran = run(&["lint", "-f", "-"], &yaml);
    for words in ["there is no Gatekeeper", "does not open"] {
        assert!(!ran.out.contains(words), "{ran:?}");
    }
    assert!(ran.out.contains("spec.schedule.opened"), "{ran:?}");
}

/// Types and meaning are looked at together.
#[test]
fn a_field_of_a_wrong_type_hides_nothing_else() {
    let windows = "[{cron: 0 9 * * MON-FRI, duration: 8}, {cron: 0 25 * * *, duration: 1h}]";
    let yaml = gatekeeper(
        "it",
        &format!("{{onError: opened, schedule: {{open: {windows}}}}}"),
    );
    let ran = run(&["lint", "-f", "-"], &yaml);
    let fields = [
        "spec.onError",
        "spec.schedule.open[0].duration",
        "spec.schedule.open[1].cron",
    ];
    for field in fields {
        assert!(ran.out.contains(&format!("{field}: ")), "{field}: {ran:?}");
    }
    assert_eq!(ran.out.lines().count(), fields.len(), "{ran:?}");
}

#[test]
fn gates_in_a_circle_are_refused() {
    let yaml = gatekeeper("by-b", "{gates: {refs: [{name: b}]}}")
        + &gatekeeper("by-a", "{gates: {refs: [{name: a}]}}")
        + &gate("a", "{gatekeepers: [{name: by-b}]}")
        + &gate("b", "{gatekeepers: [{name: by-a}]}");
    let ran = run(&["lint", "-f", "-"], &yaml);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.out.matches("depends on itself").count(), 2, "{ran:?}");
    assert_eq!(ran.out.lines().count(), 2, "{ran:?}");
}

#[test]
fn windows_that_are_over_and_annotations_that_nobody_reads_are_warned_of() {
    let dated = "{closed: [{from: \"2020-12-19T00:00:00\", until: \"2021-01-04T00:00:00\"}]}";
    let yaml = gatekeeper("it", &format!("{{schedule: {dated}}}"))
        + "apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata:\n  name: a\n  annotations:\n    \
           sluice.dev/forced: open\n    open.gate.fluxcd.io/revision: 4f08fc93e31d\n    \
           example.com/a: b\nspec: {}\n";
    let ran = run(&["lint", "-f", "-"], &yaml);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for words in [
        "spec.schedule.closed[0].until: the window ended at 2021-01-04T00:00:00 UTC",
        "stdin:12: warning: document 2, Gate default/a: \
         metadata.annotations[open.gate.fluxcd.io/revision]: nothing reads it",
        "metadata.annotations[sluice.dev/forced]: nothing reads it; write sluice.dev/force",
    ] {
        assert!(ran.out.contains(words), "{words}: {ran:?}");
    }
    assert_eq!(ran.out.lines().count(), 3, "{ran:?}");
}

/// A folder may hold anything.
#[test]
fn files_of_others_are_skipped_and_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| std::fs::write(folder.path().join(name), text).unwrap();
    write("values.yaml", b"replicas: 2\nimage: {tag: v1}\n");
    write(
        "package.json",
        b"{\"name\": \"app\", \"version\": \"1.0.0\"}",
    );
    write("list.json", b"[1, 2]");
    write(
        "template.yaml",
        b"{{- if .Values.a }}\nkind: Service\n{{- end }}\n",
    );
    write("latin.yaml", b"name: caf\xe9\n");
    write("Chart.yaml", b"apiVersion: v2\nname: app\n");
    write("provider.yaml", b"apiVersion: 1\nproviders: []\n");
    write("pipeline.json", b"{\"kind\": \"pipeline\"}");
    write(
        "ours.yaml",
        b"apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {name: {{ .Release.Name }}}\n",
    );
    write(
        "map.yaml",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"${app}-days\"}\nsops: {}\n",
    );
    std::os::unix::fs::symlink(folder.path(), folder.path().join("loop")).unwrap();
    write("gate.yaml", gate("a", "{}").as_bytes());
    let path = folder.path().to_str().unwrap();
    let ran = run(&["lint", "-f", path], "");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:?}");
    for name in [
        "values.yaml",
        "package.json",
        "list.json",
        "latin.yaml",
        "template.yaml",
        "Chart.yaml",
        "provider.yaml",
        "pipeline.json",
        "ours.yaml",
    ] {
        assert!(
            ran.err.contains(&format!("{path}/{name} is skipped: ")),
            "{name}: {ran:?}"
        );
    }
    assert!(ran.err.contains("1 gate,"), "{ran:?}");
    let ran = run(
        &["simulate", "--at", "2026-11-20T10:00:00Z", "-f", path],
        "",
    );
    assert!(ran.err.contains("latin.yaml is skipped: "), "{ran:?}");
}

/// What is broken, and may have been meant for us, is no file of others.
#[rstest]
#[case::no_yaml(b"apiVersion: sluice.dev/v1alpha1\nkind: [Gate\n", 1)]
#[case::no_kind(b"apiVersion: sluice.dev/v1alpha1\nmetadata: {name: a}\n", 1)]
#[case::no_version(b"kind: GatePolicy\nmetadata: {name: a}\n", 1)]
#[case::no_utf_8(b"# caf\xe9\napiVersion: sluice.dev/v1alpha1\n", 2)]
#[case::utf_16(b"\xff\xfes\0l\0u\0i\0c\0e\0.\0d\0e\0v\0", 2)]
fn a_broken_file_of_ours_is_not_skipped(#[case] text: &[u8], #[case] code: i32) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("broken.yaml"), text).unwrap();
    let ran = run(&["lint", "-f", folder.path().to_str().unwrap()], "");
    assert_eq!(ran.code, Some(code), "{ran:?}");
}

/// Others write ConfigMaps, too, and not all of them for the API server as they are.
#[test]
fn a_config_map_in_a_folder_is_judged_if_a_gatekeeper_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: days}\nsops: {}\n";
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("map.yaml", map);
    let path = folder.path().to_str().unwrap();
    assert_eq!(run(&["lint", "-f", path], "").code, Some(0));
    let calendar = "{schedule: {closed: [{calendar: {configMapRef: {name: days, key: ics}}}]}}";
    write("keeper.yaml", &gatekeeper("it", calendar));
    let ran = run(&["lint", "-f", path], "");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("ConfigMap default/days: sops"), "{ran:?}");
}

#[test]
fn a_mistake_far_from_a_template_in_quotes_is_told_as_what_it_is() {
    let rule = "apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata:\n  name: a\n  annotations:\n    \
                say: \"{{ $value }}\"\nspec: {}\nkind: Gate\n";
    let ran = run(&["lint", "-f", "-"], rule);
    assert!(ran.out.contains("`kind` is written twice"), "{ran:?}");
}

#[test]
fn a_template_of_helm_and_a_missing_line_of_dashes_are_told_as_what_they_are() {
    let template =
        "apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {name: {{ .Release.Name }}}\n";
    let ran = run(&["lint", "-f", "-"], template);
    assert!(
        ran.out.contains("give lint what `helm template` prints"),
        "{ran:?}"
    );
    let two = gate("a", "{}").replace("---\n", "") + &gate("b", "{}");
    let ran = run(&["lint", "-f", "-"], &two);
    assert!(
        ran.out
            .contains("put a line with --- before the next object"),
        "{ran:?}"
    );
}

#[test]
fn calendars_are_files_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let event = "BEGIN:VEVENT\r\nUID:a\r\nDTSTART;VALUE=DATE:20261225\r\nEND:VEVENT\r\n";
    let calendar =
        |event: &str| format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{event}END:VCALENDAR\r\n");
    std::fs::write(path("good.ics"), calendar(event)).unwrap();
    let ran = run(&["lint", "-f", &path("good.ics")], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("1 calendar:"), "{ran:?}");
    // Lines are folded by bytes, and so inside of characters.
    let folded = calendar(&event.replace("UID", "SUMMARY:M\u{e4}rz\r\nUID")).into_bytes();
    let inside = folded.iter().position(|byte| *byte == 0xc3).unwrap() + 1;
    let folded = [&folded[..inside], b"\r\n ", &folded[inside..]].concat();
    std::fs::write(path("good.ics"), folded).unwrap();
    let ran = run(&["lint", "-f", &path("good.ics")], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    std::fs::write(
        path("wrong.ics"),
        calendar(&event.replace("20261225", "tomorrow")),
    )
    .unwrap();
    let ran = run(&["lint", "-f", folder.path().to_str().unwrap()], "");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.out.starts_with(&format!("{}:5: ", path("wrong.ics"))),
        "{ran:?}"
    );
    assert!(ran.out.contains("event with UID a: DTSTART"), "{ran:?}");
}

#[test]
fn findings_are_written_for_programs() {
    let yaml = gate("a", "{window: 0s}") + &gate("b", "{gatekeepers: [{name: nobody}]}");
    let of = |form| {
        let ran = run(&["lint", "-f", "-", "-o", form], &yaml);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        ran.out
    };
    let json: serde_json::Value = serde_json::from_str(&of("json")).unwrap();
    assert_eq!(json[0]["field"], "spec.window");
    assert_eq!(
        (&json[0]["line"], &json[0]["level"]),
        (&4.into(), &"error".into())
    );
    assert_eq!(json[1]["level"], "warning");

    let sarif: serde_json::Value = serde_json::from_str(&of("sarif")).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["level"], "error");
    // Standard input has no place among files.
    assert!(result["locations"].is_null(), "{result}");

    let github = of("github");
    let mut lines = github.lines();
    let first = lines.next().unwrap();
    assert!(
        first.starts_with("::error file=stdin,line=4::Gate default/a: spec.window"),
        "{first}"
    );
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("::warning file=stdin,line="),
        "{github}"
    );
}

/// Names of files and what stands in them are somebody else's.
#[test]
fn no_name_and_no_value_breaks_a_form() {
    let folder = tempfile::tempdir().unwrap();
    let name = "a,b: 100% #1.yaml";
    let value = "require: \"all\\n::error::\\u001b[31m100%\"";
    std::fs::write(folder.path().join(name), gate("a", &format!("{{{value}}}"))).unwrap();
    let folder = folder.path().to_str().unwrap();
    let of = |form: &[&str]| {
        let ran = run(&[&["lint", "-f", folder], form].concat(), "");
        assert_eq!(ran.code, Some(1), "{ran:?}");
        ran.out
    };
    let text = of(&[]);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains(r"all\n::error::\u{1b}[31m100%"), "{text}");

    let github = of(&["-o", "github"]);
    assert_eq!(github.lines().count(), 1, "{github}");
    let place = format!("::error file={folder}/a%2Cb%3A 100%25 #1.yaml,line=4::Gate");
    assert!(github.starts_with(&place), "{github}");
    assert!(github.contains("all%0A::error::"), "{github}");

    let sarif: serde_json::Value = serde_json::from_str(&of(&["-o", "sarif"])).unwrap();
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    let uri = format!("file://{folder}/a%2Cb%3A%20100%25%20%231.yaml");
    assert_eq!(place["artifactLocation"]["uri"], uri);
    assert_eq!(place["region"]["startLine"], 4);
}
