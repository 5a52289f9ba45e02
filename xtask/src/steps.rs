//! Steps that are timed and listed at the end.
//!
//! What comes in: pieces of work with a name. What goes out: a table, and failure if any failed.

use std::fmt::Write;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use sluice_tests::progress::human;

/// What became of a step.
pub(crate) enum Outcome {
    Passed,
    /// With what it found, or why it did not look.
    Note(String),
    Failed(String),
}

struct Step {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

/// The steps so far.
#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<Step>,
}

impl Steps {
    /// Does one step. A failure is shown at once, kept for the table, and does not stop others.
    pub(crate) async fn run<T>(
        &mut self,
        name: &'static str,
        work: impl AsyncFnOnce() -> Result<(T, Option<String>)>,
    ) -> Option<T> {
        eprintln!("== {name}");
        let start = Instant::now();
        let (value, outcome) = match work().await {
            Ok((value, None)) => (Some(value), Outcome::Passed),
            Ok((value, Some(note))) => (Some(value), Outcome::Note(note)),
            Err(error) => {
                eprintln!("error: {error:#}");
                (None, Outcome::Failed(format!("{error:#}")))
            }
        };
        let took = start.elapsed();
        self.done.push(Step {
            name,
            outcome,
            took,
        });
        value
    }

    /// Prints the table. An error names the steps that failed.
    pub(crate) fn finish(self) -> Result<()> {
        eprint!("\n{}", table(&self.done));
        let failed = self
            .done
            .iter()
            .filter(|step| matches!(step.outcome, Outcome::Failed(_)));
        let names: Vec<_> = failed.map(|step| step.name).collect();
        if names.is_empty() {
            return Ok(());
        }
        bail!("failed: {}", names.join(", "))
    }
}

fn table(steps: &[Step]) -> String {
    let width = steps.iter().map(|step| step.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for step in steps {
        let (word, note) = match &step.outcome {
            Outcome::Passed => ("ok", ""),
            Outcome::Note(note) => ("ok", note.as_str()),
            Outcome::Failed(error) => ("FAILED", error.lines().next().unwrap_or("")),
        };
        let line = format!(
            "{:width$}  {word:6}  {:>11}  {note}",
            step.name,
            human(step.took)
        );
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_steps_run_and_failures_are_named() {
        let mut steps = Steps::default();
        let seven = steps.run("one", async || Ok((7, None))).await;
        assert_eq!(seven, Some(7));
        let none = steps.run("two", async || bail!("no\nluck")).await;
        assert_eq!(none, None::<()>);
        steps
            .run("three", async || Ok(((), Some("skipped".to_owned()))))
            .await;

        for step in &mut steps.done {
            step.took = Duration::from_secs(95);
        }
        assert_eq!(
            table(&steps.done),
            "one    ok       1 min 35 s\n\
             two    FAILED   1 min 35 s  no\n\
             three  ok       1 min 35 s  skipped\n"
        );
        assert_eq!(steps.finish().unwrap_err().to_string(), "failed: two");
    }
}
