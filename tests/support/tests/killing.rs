//! What is left when the process that holds a control plane is killed.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::ensure;
use serde::Deserialize;
use sluice_tests::{DEADLINE, poll};

#[derive(Deserialize)]
struct Place {
    folder: PathBuf,
    port: u16,
}

/// A process that holds a control plane, once that is ready.
fn hold() -> (Child, Place) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hold-control-plane"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    (child, serde_json::from_str(&line).unwrap())
}

/// The processes that have the folder in their command line: servers, supervisors, sweeper.
fn processes(place: &Place) -> Vec<String> {
    let listed = Command::new("ps")
        .args(["-A", "-ww", "-o", "pid=,args="])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&listed.stdout);
    let folder = place.folder.to_str().unwrap();
    text.lines()
        .filter(|line| line.contains(folder))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn a_killed_holder_leaves_no_server_and_no_folder() {
    nothing_is_left_after("-KILL").await;
}

#[tokio::test]
async fn a_terminated_holder_leaves_no_server_and_no_folder() {
    // Not SIGINT: it is ignored by whatever a shell runs in the background, as CI may run us.
    nothing_is_left_after("-TERM").await;
}

/// The holder handles no signal: no destructor runs, whichever ends it.
async fn nothing_is_left_after(signal: &str) {
    let (mut child, place) = hold();
    assert!(place.folder.join("kubeconfig").exists());
    // Three servers, each with a supervisor and a watcher, and the sweeper.
    poll(DEADLINE, "all processes to run", async || {
        let found = processes(&place);
        ensure!(found.len() == 10, "{found:#?}");
        Ok(())
    })
    .await
    .unwrap();

    let mut kill = Command::new("kill");
    assert!(
        kill.args([signal, &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), None, "ended by itself");

    poll(DEADLINE, "everything to be gone", async || {
        let left = processes(&place);
        ensure!(left.is_empty(), "still there: {left:#?}");
        let connected = TcpStream::connect((Ipv4Addr::LOCALHOST, place.port));
        ensure!(
            connected.is_err(),
            "something listens on port {}",
            place.port
        );
        ensure!(!place.folder.exists(), "{} exists", place.folder.display());
        Ok(())
    })
    .await
    .unwrap();
}
