//! Tests that are tried once more.
//!
//! What comes in: how all tests are run. What goes out: success, with the names of those that have passed only when they
//! were tried once more.
//!
//! Many tests wait for servers of others, of which one hangs once in very many runs. A test that fails alone is tried
//! once more. The table names it, and what it had said stays in the output: somebody has to look into it, and nobody else
//! has to wait for that.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::cargo;

/// So many tests may fail and be tried once more. Where more of them fail, something is broken.
const FEW: usize = 2;

/// Runs all tests.
pub(super) fn run(tests: impl Fn() -> Command) -> Result<Option<String>> {
    let mut first = Said::default();
    let result = cargo::watch(tests().arg("--no-fail-fast"), |line| first.hear(line));
    if result.is_ok() || !first.is_known() || first.failed.len() > FEW {
        return result.map(|()| None);
    }
    let mut again = Said::default();
    let mut command = tests();
    command.args(["--", "--exact"]).args(&first.failed);
    cargo::watch(&mut command, |line| again.hear(line))?;
    let all = first.failed.iter().all(|name| again.passed.contains(name));
    ensure!(
        all,
        "not all of {} were tried once more",
        first.failed.join(", ")
    );
    Ok(Some(format!(
        "only when tried once more: {}",
        first.failed.join(", ")
    )))
}

/// What tests have said.
#[derive(Default)]
struct Said {
    passed: Vec<String>,
    failed: Vec<String>,
    /// How many programs have begun to test, and how many of them have ended by themselves.
    begun: usize,
    ended: usize,
    /// How many tests have failed, as these say at their end.
    failures: usize,
}

impl Said {
    fn hear(&mut self, line: &str) {
        if let Some(of) = line.strip_prefix("test result: ") {
            self.ended += 1;
            let count = of
                .split(';')
                .find_map(|it| it.trim().strip_suffix(" failed"));
            self.failures += count.and_then(|it| it.parse().ok()).unwrap_or(0);
        } else if let Some((name, result)) = result(line) {
            match result {
                "ok" => self.passed.push(name.to_owned()),
                "FAILED" => self.failed.push(name.to_owned()),
                _ => {}
            }
        } else if line.starts_with("running ") && line.trim_end_matches('s').ends_with(" test") {
            self.begun += 1;
        }
    }

    /// Whether it is known of each failure which test it was. A program that has crashed does not say it.
    fn is_known(&self) -> bool {
        !self.failed.is_empty() && self.failed.len() == self.failures && self.begun == self.ended
    }
}

/// The name of a test, and what became of it. How it is to end stands behind its name.
fn result(line: &str) -> Option<(&str, &str)> {
    let (name, result) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let modes = [" - should panic", " - compile fail", " - compile"];
    let name = modes
        .iter()
        .find_map(|mode| name.strip_suffix(mode))
        .unwrap_or(name);
    Some((name, result))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// What a program says of its tests.
    fn program(tests: &[&str], failed: usize) -> String {
        let all = tests.iter().map(|test| format!("test {test}\n"));
        let all: String = all.collect();
        let count = tests.len();
        format!(
            "running {count} tests\n{all}test result: FAILED. 3 passed; {failed} failed; 0 ignored\n"
        )
    }

    /// Tests that say this at first, and this when they are tried once more.
    fn tried(first: &str, again: &str) -> (Result<Option<String>>, usize) {
        let tries = Cell::new(0);
        let tests = || {
            tries.set(tries.get() + 1);
            let (said, passes) = match tries.get() {
                1 => (
                    first,
                    first.contains("... ok") && !first.contains("... FAILED"),
                ),
                _ => (again, !again.contains("FAILED")),
            };
            let script = format!("echo '{said}'; {passes}");
            let mut command = Command::new("sh");
            command.args(["-c", &script, "sh"]);
            command
        };
        (run(tests), tries.get())
    }

    #[test]
    fn one_that_fails_alone_is_tried_once_more_and_named() {
        let first = program(&["a::one - should panic ... FAILED", "a::two ... ok"], 1);
        let (passed, tries) = tried(&first, "test a::one - should panic ... ok");
        assert_eq!(
            passed.unwrap().unwrap(),
            "only when tried once more: a::one"
        );
        assert_eq!(tries, 2);
    }

    #[test]
    fn what_is_broken_fails() {
        let one = program(&["a::one ... FAILED"], 1);
        let crashed = format!("{one}running 7 tests\n");
        let many = program(&["1 ... FAILED", "2 ... FAILED", "3 ... FAILED"], 3);
        let unnamed = program(&["a::one ... FAILED"], 2);
        let cases = [
            (&*one, "test a::one ... FAILED", 2),
            // Nothing of that name was run.
            (&one, "running 0 tests", 2),
            (&crashed, "test a::one ... ok", 1),
            (&many, "", 1),
            (&unnamed, "test a::one ... ok", 1),
            ("error: could not compile", "", 1),
        ];
        for (first, again, expected) in cases {
            let (failed, tries) = tried(first, again);
            assert!(failed.is_err(), "{first}");
            assert_eq!(tries, expected, "{first}");
        }
    }

    #[test]
    fn what_passes_at_once_is_not_tried_again() {
        let (passed, tries) = tried("test a::one ... ok", "");
        assert_eq!((passed.unwrap(), tries), (None, 1));
    }
}
