//! Runs the program.

use std::io::Write;
use std::process::{Command, Stdio};

/// What a run came to.
#[derive(Debug)]
pub struct Ran {
    /// The exit code.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// Runs `kubectl-gate` with `arguments` and `input` on standard input, far from any cluster.
pub fn run(arguments: &[&str], input: &str) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kubectl-gate"))
        .args(arguments)
        .env_clear()
        .env("LANG", "C.UTF-8")
        .env("COLUMNS", "100")
        .env("KUBECONFIG", "/nowhere")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that refuses its arguments may be gone before it has read anything.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A Gatekeeper of that name and spec.
pub fn gatekeeper(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: sluice.dev/v1alpha1\nkind: Gatekeeper\nmetadata: {{name: {name}}}\nspec: {spec}\n---\n"
    )
}

/// A Gate of that name and spec.
pub fn gate(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {{name: {name}}}\nspec: {spec}\n---\n"
    )
}

/// A Gatekeeper `it` with one open window in `zone`, and a Gate that it keeps.
pub fn window(cron: &str, duration: &str, zone: &str) -> String {
    let duration = if duration.is_empty() {
        String::new()
    } else {
        format!("duration: {duration}, ")
    };
    let schedule =
        format!("{{schedule: {{timeZone: {zone}, open: [{{{duration}cron: \"{cron}\"}}]}}}}");
    gatekeeper("it", &schedule) + &gate("it", "{gatekeepers: [{name: it}]}")
}
