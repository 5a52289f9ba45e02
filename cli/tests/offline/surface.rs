use rstest::rstest;

use crate::program::run;

#[rstest]
#[case(&["--help"], "Usage: kubectl gate [OPTIONS] <COMMAND>")]
#[case(&["simulate", "--help"], "Exit codes: 0 it was told")]
#[case(&["version"], "kubectl-gate 0.1.0")]
#[case(&["--version"], "kubectl-gate 0.1.0")]
#[case(&["completion", "bash"], "-o default kubectl-gate\n")]
#[case(&["completion", "zsh"], "#compdef kubectl-gate")]
#[case(&["completion", "fish"], "complete -c kubectl-gate")]
#[case(&["completion", "powershell"], "Register-ArgumentCompleter")]
#[case(&["markdown-help"], "# kubectl gate")]
fn everything_is_told(#[case] arguments: &[&str], #[case] expected: &str) {
    let ran = run(arguments, "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains(expected), "{ran:?}");
}

#[rstest]
#[case::no_command(&[])]
#[case::no_such_command(&["opened"])]
#[case::no_reason(&["open", "production"])]
#[case::no_name(&["check"])]
#[case::both_ends(&["open", "production", "--reason", "a", "--for", "1h", "--until", "2026-11-20T18:00:00Z"])]
#[case::bad_duration(&["open", "production", "--reason", "a", "--for", "soon"])]
#[case::empty_reason(&["open", "production", "--reason", " "])]
#[case::no_cluster(&["get"])]
#[case::no_such_name(&["check", "flux-system/production"])]
#[case::no_such_kubeconfig(&["get", "--kubeconfig", "/nowhere.yaml"])]
#[case::group_of_nobody(&["get", "--as-group", "admins"])]
#[case::bad_timeout(&["wait", "production", "--timeout", "never"])]
#[case::vote_without_a_revision(&["approve", "production"])]
#[case::vote_on_a_cut_commit(&["approve", "production", "-r", "main@sha1:4f2a9c1"])]
#[case::vote_without_a_cluster(&["reject", "production", "-r", "v1.2.3"])]
#[case::vote_on_two_revisions(&["approve", "production", "-r", "v1.2.3", "--revision-of", "gs/app"])]
#[case::adopted_without_a_gate(&["adopt", "kustomization/app"])]
#[case::adopted_what_is_no_app(&["adopt", "deployment/app", "--gate", "production"])]
#[case::adopted_at_no_gate(&["adopt", "ks/app", "--gate", "apps/"])]
#[case::adopted_at_one_gate_twice(&["adopt", "ks/app", "--gate", "a,a"])]
#[case::forced_without_writing(&["adopt", "ks/app", "--gate", "a", "--force-write"])]
#[case::days_of_a_source_in_files(&["calendar", "gs/app", "-f", "-"])]
#[case::no_such_log(&["audit", "/nowhere.log"])]
#[case::bad_patience(&["open", "production", "--reason", "a", "--timeout", "never"])]
fn what_cannot_be_told_ends_with_2(#[case] arguments: &[&str]) {
    let ran = run(arguments, "");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.out.is_empty() && !ran.err.is_empty(), "{ran:?}");
}

#[rstest]
#[case(&["get"], "error: cannot use the kubeconfig of $KUBECONFIG: ")]
#[case(&["get", "--kubeconfig", "/nowhere.yaml"], "error: cannot use the kubeconfig /nowhere.yaml: ")]
#[case(&["open", "a", "--reason", "b", "--for", "soon"], "error: --for: `soon` is not a duration; write a duration such as 90m or 1h30m")]
#[case(&["open", "a", "--reason", "b", "--timeout", "soon"], "error: --timeout: `soon` is not a duration")]
fn errors_are_one_line(#[case] arguments: &[&str], #[case] expected: &str) {
    let ran = run(arguments, "");
    assert!(ran.err.starts_with(expected), "{ran:?}");
    assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
}

#[test]
fn a_calendar_needs_no_cluster() {
    let yaml = "{apiVersion: sluice.dev/v1alpha1, kind: Gatekeeper, metadata: {name: a}, spec: {schedule: {open: [{cron: 0 9 * * *, duration: 8h}]}}}";
    let common = [
        "calendar",
        "-f",
        "-",
        "--from",
        "2026-11-20T12:00:00Z",
        "--days",
        "2",
    ];
    let drawn = run(&common, yaml);
    assert_eq!(drawn.code, Some(0), "{drawn:?}");
    assert!(
        drawn.out.contains("Sat 21 Nov") && drawn.out.contains("09:00-17:00"),
        "{}",
        drawn.out
    );
    assert!(!drawn.out.contains('\u{1b}'), "{}", drawn.out);
    let ascii = run(&[&common[..], &["--ascii"]].concat(), yaml);
    assert!(ascii.out.is_ascii(), "{}", ascii.out);
    let colored = run(&[&common[..], &["--color", "always"]].concat(), yaml);
    assert!(colored.out.contains("\u{1b}[32m"), "{}", colored.out);
    let json = run(&[&common[..], &["-o", "json"]].concat(), yaml);
    insta::assert_snapshot!(json.out);
    let page = run(&[&common[..], &["-o", "svg"]].concat(), yaml);
    assert!(
        page.out.starts_with("<svg ") && page.out.ends_with("</svg>\n"),
        "{}",
        page.out
    );
}

#[rstest]
#[case("kubectl-gate sim", "simulate")]
#[case("kubectl-gate calendar --asc", "--ascii")]
#[case("kubectl-gate get -o y", "yaml")]
#[case("kubectl-gate adopt --all", "--all-consumers")]
#[case("kubectl-gate markdown", "")]
fn bash_completes(#[case] line: &str, #[case] expected: &str) {
    let script = run(&["completion", "bash"], "").out;
    let words: Vec<&str> = line.split(' ').collect();
    let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
    let call = format!(
        "{script}\nCOMP_WORDS=({line}); COMP_CWORD={}\n_kubectl_gate kubectl-gate \"{last}\" \"{before}\"\necho \"${{COMPREPLY[@]}}\"",
        words.len() - 1
    );
    let output = std::process::Command::new("bash")
        .args(["--norc", "-c", &call])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), expected);
}
