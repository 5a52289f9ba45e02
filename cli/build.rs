//! Which commit the program is built from, for `kubectl gate version`.
//!
//! What comes in: `SLUICE_COMMIT`, if the person who builds knows better than Git; for a release else what
//! Git says. Builds for development tell none: they would be built again with each commit.

#![allow(clippy::print_stdout, reason = "so one talks to Cargo")]

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=SLUICE_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let given = env::var("SLUICE_COMMIT").ok().filter(|it| !it.is_empty());
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = given.or_else(|| if is_release { head() } else { None });
    println!(
        "cargo::rustc-env=SLUICE_BUILT_FROM={}",
        commit.unwrap_or_default()
    );
}

/// The commit that is checked out, if Git knows one.
fn head() -> Option<String> {
    // It is written to at every change of what is checked out.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["rev-parse", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
