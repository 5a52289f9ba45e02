//! Building without the Go that is needed, and building at the same time.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use sluice_tests::programs::Program;
use sluice_tests::{ASSETS_VARIABLE, poll};
use tempfile::TempDir;

/// Runs the holder of a control plane with an empty cache and nothing but `go` on its PATH.
fn hold_with(go: Option<&str>) -> (Output, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    if let Some(script) = go {
        write_program(&bin.join("go"), script);
    }
    let output = Command::new(env!("CARGO_BIN_EXE_hold-control-plane"))
        .env("PATH", &bin)
        .env_remove(ASSETS_VARIABLE)
        .env("SLUICE_CACHE", folder.path().join("cache"))
        .env("RUST_BACKTRACE", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (output, folder)
}

/// Written by a process of its own: were it ours, a program that another test starts just then
/// could inherit the open file, and a file that is open for writing cannot be run.
fn write_program(path: &Path, script: &str) {
    let status = Command::new("sh")
        .args(["-c", "echo \"$1\" >\"$2\" && chmod +x \"$2\"", "sh"])
        .arg(format!("#!/bin/sh\n{script}"))
        .arg(path)
        .status()
        .unwrap();
    assert!(status.success());
}

/// What a failed run said, which must be all it did.
fn complaint(run: (Output, TempDir)) -> String {
    let (output, folder) = run;
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
    assert!(
        !folder.path().join("cache").exists(),
        "a refusal must write nothing"
    );
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn without_go_one_line_says_what_to_install() {
    assert_eq!(
        complaint(hold_with(None)),
        "error: Go 1.26.0 or newer is needed to build what tests and demo run, and there is no \
         go on PATH: install Go 1.26.0 or newer\n"
    );
}

#[test]
fn with_too_old_a_go_one_line_says_what_to_install() {
    assert_eq!(
        complaint(hold_with(Some("echo go1.24.3"))),
        "error: Go 1.26.0 or newer is needed to build what tests and demo run, and the go on \
         PATH is 1.24.3: install Go 1.26.0 or newer\n"
    );
}

#[test]
fn a_failed_build_shows_what_go_said() {
    let go = "[ \"$1\" = env ] && echo go1.26.8 && exit\necho k8s.io/api\n\
              echo 'no space left on device' >&2\nexit 1";
    let (output, _folder) = hold_with(Some(go));
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.ends_with("error: go build failed:\nno space left on device\n"),
        "{text}"
    );
}

/// Without Go and with an empty cache: the programs of the folder are the ones that start.
#[test]
fn installed_servers_are_used_and_nothing_is_built() {
    let folder = tempfile::tempdir().unwrap();
    let assets = folder.path().join("assets");
    fs::create_dir(&assets).unwrap();
    for name in ["etcd", "kube-apiserver"] {
        let script = format!("echo the installed {name} >&2\nexit 3");
        write_program(&assets.join(name), &script);
    }
    let output = Command::new(env!("CARGO_BIN_EXE_hold-control-plane"))
        .env("PATH", "/usr/bin:/bin")
        .env(ASSETS_VARIABLE, &assets)
        .env("SLUICE_CACHE", folder.path().join("cache"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = complaint((output, folder));
    assert!(said.contains("the installed "), "{said}");
}

#[test]
fn our_own_programs_are_built_or_found() {
    let path = Program::KubectlGate.path().unwrap();
    assert!(path.is_file(), "{}", path.display());
    assert_eq!(path.file_stem().unwrap(), "kubectl-gate");
}

/// Stands in for Go: counts the builds, and ends one when the test says so.
const SLOW_GO: &str = r#"
PATH=/usr/bin:/bin
[ "$1" = env ] && echo go1.26.8 && exit
folder=${0%/bin/go}
echo built >>"$folder/builds"
while [ ! -e "$folder/go-on" ]; do sleep 0.05; done
while [ "$1" != -o ]; do shift; done
touch "$2/server" "$2/kube-apiserver" "$2/kube-controller-manager"
"#;

#[tokio::test]
async fn of_two_at_once_one_builds_and_the_other_waits() {
    let folder = tempfile::tempdir().unwrap();
    let (bin, builds) = (folder.path().join("bin"), folder.path().join("builds"));
    fs::create_dir(&bin).unwrap();
    write_program(&bin.join("go"), SLOW_GO);
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hold-control-plane"));
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        command.env("SLUICE_CACHE", folder.path().join("cache"));
        command.env_remove(ASSETS_VARIABLE);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let one = start();
    poll(Duration::from_secs(20), "the build", async || {
        fs::metadata(&builds)
    })
    .await
    .unwrap();
    let mut two = start();
    let mut line = String::new();
    BufReader::new(two.stderr.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(
        line,
        "Another process is building what is needed: waiting for it.\n"
    );

    fs::write(folder.path().join("go-on"), "").unwrap();
    let said = String::from_utf8(one.wait_with_output().unwrap().stderr).unwrap();
    assert!(
        said.contains("Built etcd, kube-apiserver, kube-controller-manager v1.36.1"),
        "{said}"
    );
    two.wait().unwrap();
    assert_eq!(fs::read_to_string(&builds).unwrap(), "built\n");
    let cache = fs::read_dir(folder.path().join("cache/control-plane")).unwrap();
    assert_eq!(cache.count(), 2, "the programs and the lock");
}
