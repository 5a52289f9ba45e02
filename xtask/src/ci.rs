//! `cargo xtask ci`: every check that needs no server.
//!
//! What comes in: the workspace. What goes out: a table; all checks run, whichever fails.

use anyhow::Result;

use crate::cargo::{cargo, run as call};
use crate::steps::Steps;
use crate::{deny, docs, floors, generate};

/// Runs all checks.
pub(crate) async fn run() -> Result<()> {
    let mut steps = Steps::default();
    check(&mut steps, "format", format).await;
    check(&mut steps, "lints", lints).await;
    check(&mut steps, "generated files", generate::check).await;
    check(&mut steps, "floors", floors::check).await;
    check(&mut steps, "dependencies", deny::check).await;
    check(&mut steps, "docs", docs::check).await;
    steps.finish()
}

/// One check, which says in a few words what it found.
async fn check(steps: &mut Steps, name: &'static str, work: fn() -> Result<String>) {
    let work = async || Ok(((), Some(work()?)));
    steps.run(name, work).await;
}

fn format() -> Result<String> {
    call(cargo().args(["fmt", "--all", "--check"]))?;
    Ok("rustfmt".to_owned())
}

fn lints() -> Result<String> {
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    call(cargo().args(clippy))?;
    Ok("clippy, no warning".to_owned())
}
