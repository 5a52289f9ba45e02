//! `cargo xtask fuzz`: random texts, for as long as there is time.
//!
//! What comes in: a target, or none for all of them, and minutes. What goes out: how many texts were
//! tried, or the smallest one that breaks a property. It is the test target `fuzz` of core, with a
//! limit of time in place of one of texts, compiled to be fast.

use std::fs;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::cargo::{cargo, metadata, output, run as call};

#[derive(Args)]
pub(crate) struct Arguments {
    /// A target of core/tests/fuzz. None: all of them.
    target: Option<String>,
    /// How long each target runs.
    #[arg(long, default_value_t = 10)]
    minutes: u64,
}

/// Runs one target, or all: as many at once as there are cores.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let listed = output(tests().args(["--list", "--format", "terse"]))?;
    let targets = chosen(&targets(&listed), arguments.target.as_deref())?;
    let cores = thread::available_parallelism()?.get();
    let minutes = arguments.minutes;
    let rounds = u64::try_from(targets.len().div_ceil(cores))?;
    eprintln!(
        "{}: {minutes} minutes each, {cores} at once, {} in all",
        targets.join(", "),
        minutes.saturating_mul(rounds)
    );
    let millis = minutes.checked_mul(60_000).context("too many minutes")?;
    let mut command = tests();
    command.args(["--nocapture", "--exact"]).args(&targets);
    command.env("BOLERO_RANDOM_TEST_TIME_MS", millis.to_string());
    command.env("BOLERO_RANDOM_ITERATIONS", usize::MAX.to_string());
    let last = metadata()?.target_directory.join("fuzz/last");
    fs::create_dir_all(&last)?;
    command.env("SLUICE_FUZZ_LAST", &last);
    let place = last.display();
    call(&mut command).with_context(|| format!("what each target tried last is in {place}"))
}

fn tests() -> Command {
    let mut command = cargo();
    command.args(["test", "--profile", "fuzz", "--package", "sluice-core"]);
    command.args(["--test", "fuzz", "--"]);
    command
}

/// The names in a list of tests: `cron: test`.
fn targets(listed: &str) -> Vec<&str> {
    let lines = listed.lines();
    lines
        .filter_map(|line| line.strip_suffix(": test"))
        .collect()
}

fn chosen<'a>(targets: &[&'a str], wanted: Option<&str>) -> Result<Vec<&'a str>> {
    let is_wanted = |target: &&&str| wanted.is_none_or(|wanted| wanted == **target);
    let chosen: Vec<_> = targets.iter().filter(is_wanted).copied().collect();
    ensure!(
        !chosen.is_empty(),
        "there is no target {}: write one of {}",
        wanted.unwrap_or_default(),
        targets.join(", ")
    );
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_chosen_by_name() {
        let targets = targets("cron: test\nduration: test\n\n2 tests, 0 benchmarks\n");
        assert_eq!(chosen(&targets, None).unwrap(), ["cron", "duration"]);
        assert_eq!(chosen(&targets, Some("cron")).unwrap(), ["cron"]);
        let error = chosen(&targets, Some("crom")).unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no target crom: write one of cron, duration"
        );
    }
}
