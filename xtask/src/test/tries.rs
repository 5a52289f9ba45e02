//! Tests that are tried once more.
//!
//! What comes in: how all tests are run. What goes out: success, with the names of those that have passed only when they
//! were tried once more.
//!
//! Many tests wait for servers of others, and one of these hangs once in a hundred runs. A test that fails alone is tried
//! once more. The table names it, and what it had said stays in the output: somebody has to look into it, and nobody else
//! has to wait for that.

use std::process::Command;

use anyhow::Result;

use crate::cargo;

/// So many tests may fail and be tried once more. Where more of them fail, something is broken.
const FEW: usize = 2;

/// Runs all tests.
pub(super) fn run(tests: impl Fn() -> Command) -> Result<Option<String>> {
    let mut failed = Vec::new();
    let listen = |line: &str| failed.extend(failing(line).map(str::to_owned));
    let first = cargo::watch(tests().arg("--no-fail-fast"), listen);
    match first {
        Err(_) if (1..=FEW).contains(&failed.len()) => {
            cargo::run(tests().args(["--", "--exact"]).args(&failed))?;
            Ok(Some(format!(
                "only when tried once more: {}",
                failed.join(", ")
            )))
        }
        first => first.map(|()| None),
    }
}

/// The test that has failed, in a line of what tests say.
fn failing(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Tests that say this at first, and pass or fail when they are tried once more.
    fn tried(said: &str, then: &'static str) -> (Result<Option<String>>, usize) {
        let tries = Cell::new(0);
        let tests = || {
            tries.set(tries.get() + 1);
            let script = match tries.get() {
                1 => format!("echo '{said}'; exit 1"),
                _ => then.to_owned(),
            };
            let mut command = Command::new("sh");
            command.args(["-c", &script, "sh"]);
            command
        };
        (run(tests), tries.get())
    }

    const ONE: &str = "test a::one ... FAILED";

    #[test]
    fn one_that_fails_alone_is_tried_once_more_and_named() {
        let (passed, tries) = tried(ONE, "[ \"$*\" = '-- --exact a::one' ]");
        assert_eq!(
            passed.unwrap().unwrap(),
            "only when tried once more: a::one"
        );
        assert_eq!(tries, 2);
    }

    #[test]
    fn what_is_broken_fails() {
        let many = [ONE; FEW + 1].join("\n");
        for (said, expected) in [(ONE, 2), (&*many, 1), ("error: could not compile", 1)] {
            let (failed, tries) = tried(said, "exit 1");
            assert!(failed.is_err(), "{said}");
            assert_eq!(tries, expected, "{said}");
        }
    }

    #[test]
    fn what_passes_at_once_is_not_tried_again() {
        let (passed, tries) = tried("test a::one ... ok'; exit 0; '", "exit 1");
        assert_eq!((passed.unwrap(), tries), (None, 1));
    }
}
