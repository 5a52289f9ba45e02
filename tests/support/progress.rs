//! Telling a person what takes so long.
//!
//! What comes in: lines that stay and lines that are overtaken by the next. What goes out, on
//! standard error: on a terminal one line that is rewritten, else a plain line now and then.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often a line that would be rewritten is printed where nothing can be rewritten.
const PLAIN_INTERVAL: Duration = Duration::from_secs(15);

/// Where long work reports to.
pub trait Progress: Send + Sync {
    /// A line that stays.
    fn say(&self, line: &str);

    /// What is being done just now. The next call of either method overtakes it.
    fn update(&self, line: &str);
}

/// Says nothing.
pub struct Silent;

impl Progress for Silent {
    fn say(&self, _line: &str) {}
    fn update(&self, _line: &str) {}
}

/// Reports on standard error.
pub struct Stderr {
    terminal: bool,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    /// When a passing line was last printed.
    at: Option<Instant>,
    /// Whether the cursor stands behind a line to be overwritten.
    pending: bool,
}

impl Stderr {
    /// A reporter that looks once whether standard error is a terminal.
    #[must_use]
    pub fn new() -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            last: Mutex::default(),
        }
    }

    fn write(&self, line: &str, stays: bool) {
        let Ok(mut last) = self.last.lock() else {
            return;
        };
        let text = render(self.terminal, last.pending, line, stays);
        last.pending = self.terminal && !stays;
        // Progress that cannot be shown is no reason to stop the work.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

impl Default for Stderr {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress for Stderr {
    fn say(&self, line: &str) {
        self.write(line, true);
    }

    fn update(&self, line: &str) {
        if self.terminal {
            return self.write(line, false);
        }
        let due = self.last.lock().is_ok_and(|mut last| {
            let due = last.at.is_none_or(|at| at.elapsed() >= PLAIN_INTERVAL);
            if due {
                last.at = Some(Instant::now());
            }
            due
        });
        if due {
            self.write(line, true);
        }
    }
}

/// The bytes of one line. A passing line is cut to 79 columns: a wrapped one could not be
/// taken back.
fn render(terminal: bool, pending: bool, line: &str, stays: bool) -> String {
    let clear = if terminal && pending { "\r\x1b[K" } else { "" };
    if terminal && !stays {
        let cut: String = line.chars().take(79).collect();
        format!("{clear}{cut}")
    } else {
        format!("{clear}{line}\n")
    }
}

/// A duration for people: `0.4 s`, `12 s`, `4 min 5 s`.
#[must_use]
pub fn human(duration: Duration) -> String {
    match duration.as_secs() {
        0..=9 => format!("{:.1} s", duration.as_secs_f64()),
        seconds @ 10..=59 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_line_is_taken_back_and_a_plain_one_stays() {
        assert_eq!(render(true, false, "building", false), "building");
        assert_eq!(render(true, true, "built", true), "\r\x1b[Kbuilt\n");
        assert_eq!(render(false, false, "building", true), "building\n");
        assert_eq!(render(true, false, &"x".repeat(100), false).len(), 79);
    }

    #[test]
    fn durations_read_well() {
        assert_eq!(human(Duration::from_millis(420)), "0.4 s");
        assert_eq!(human(Duration::from_secs(12)), "12 s");
        assert_eq!(human(Duration::from_secs(245)), "4 min 5 s");
    }
}
