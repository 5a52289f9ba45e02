use rstest::rstest;

use crate::program::run;

#[rstest]
#[case(&["--help"], "Usage: kubectl gate [OPTIONS] <COMMAND>")]
#[case(&["simulate", "--help"], "Exit codes: 0 the answer is printed")]
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
#[case::no_cluster_to_examine(&["doctor"])]
#[case::labels_and_names(&["get", "gates", "a", "-l", "app=shop"])]
#[case::no_such_name(&["check", "flux-system/production"])]
#[case::no_such_kubeconfig(&["get", "--kubeconfig", "/nowhere.yaml"])]
#[case::group_of_nobody(&["get", "--as-group", "admins"])]
#[case::bad_timeout(&["wait", "production", "--timeout", "never"])]
#[case::vote_without_a_revision(&["approve", "production"])]
#[case::vote_on_a_cut_commit(&["approve", "production", "-r", "main@sha1:4f2a9c1"])]
#[case::vote_without_a_cluster(&["reject", "production", "-r", "v1.2.3"])]
#[case::vote_on_an_environment_of_nothing(&["approve", "production", "-r", "v1.2.3", "-e", "env/prod"])]
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
#[case(&["open", "a", "--reason", "b", "--for", "soon"], "error: --for: `soon` is not a duration; write a duration such as 90m, 1h30m or 7d")]
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

/// As with kubectl, each file has its own `-f`: names that follow are names.
#[test]
fn names_of_gates_may_follow_a_file() {
    let two = "{apiVersion: sluice.dev/v1alpha1, kind: Gate, metadata: {name: a}, spec: {default: open}}\n---\n\
               {apiVersion: sluice.dev/v1alpha1, kind: Gate, metadata: {name: b}, spec: {default: open}}\n";
    let drawn = run(&["calendar", "-f", "-", "b"], two);
    assert_eq!(drawn.code, Some(0), "{drawn:?}");
    assert!(
        drawn.out.contains("b is Open") && !drawn.out.contains("a is Open"),
        "{drawn:?}"
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let refused = run(&["calendar", "-f", "-", path], two);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.err.contains("write -f before each file"),
        "{refused:?}"
    );
}

#[test]
fn a_calendar_asks_about_a_revision() {
    let yaml = "{apiVersion: sluice.dev/v1alpha1, kind: Gatekeeper, metadata: {name: a}, spec: {revisions: {allow: [v1.2.3]}}}";
    let states = |arguments: &[&str]| {
        let ran = run(
            &[&["calendar", "-f", "-", "-o", "json"], arguments].concat(),
            yaml,
        );
        let told: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        told[0]["changes"][0]["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(states(&[]), "Conditional");
    assert_eq!(states(&["--revision", "v1.2.3"]), "Open");
    assert_eq!(states(&["--revision", "v6.6.6"]), "Closed");
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

/// As kubectl reads it: a word, a tab, what it means; and last how the shell goes on.
#[rstest]
#[case(&["sim"], "simulate\tShow the state of a gate", ":4")]
#[case(&["get", "-o", "y"], "yaml", ":4")]
#[case(&["calendar", "--asc"], "--ascii\tUse only ASCII", ":4")]
#[case(&["get", "po"], "policies\t", ":4")]
#[case(&["lint", "-f", ""], ":0", ":0")]
#[case(&["why", ""], ":4", ":4")]
#[case(&["open", "production", "--for", ""], ":4", ":4")]
fn kubectl_completes(#[case] words: &[&str], #[case] first: &str, #[case] last: &str) {
    for program in [
        env!("CARGO_BIN_EXE_kubectl_complete-gate"),
        env!("CARGO_BIN_EXE_kubectl-gate"),
    ] {
        let asks = program.ends_with("kubectl-gate");
        let before: &[&str] = if asks { &["__complete", "--"] } else { &[] };
        let output = std::process::Command::new(program)
            .args(before)
            .args(words)
            .env("KUBECONFIG", "/nowhere")
            .output()
            .unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && out.starts_with(first), "{out}");
        assert_eq!(out.lines().last(), Some(last), "{out}");
    }
}

#[test]
fn the_version_is_told_without_a_cluster() {
    let both = run(&["version"], "");
    assert_eq!(both.code, Some(0), "{both:?}");
    assert!(both.out.starts_with("kubectl-gate 0.1.0"), "{both:?}");
    assert!(
        both.err.contains("which controller runs is not known"),
        "{both:?}"
    );
    let own = run(&["version", "--client", "-o", "json"], "");
    let told: serde_json::Value = serde_json::from_str(&own.out).unwrap();
    assert_eq!(told["client"]["version"], "0.1.0");
    assert!(own.err.is_empty(), "{own:?}");
}
