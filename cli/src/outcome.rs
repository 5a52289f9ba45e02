//! Exit codes.
//!
//! What comes in: what a command results in. What goes out: a number, and what the help says of it.
//! Uses no other room.

use std::process::ExitCode;

/// What a command results in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// 0: it was done; the gates are open; what was expected is so.
    Yes,
    /// 1: a gate is closed; what was expected is not so.
    No,
    /// 2: the answer is unknown: bad arguments, refused input, no such gate, no cluster.
    Unknown,
}

/// What the help says about them.
pub(crate) const HELP: &str = "\
Exit codes: 0 done, yes, open; 1 no, closed, timed out; 2 the answer is unknown: bad arguments, \
refused input, no such gate, no cluster.";

impl Outcome {
    pub(crate) fn yes_if(yes: bool) -> Self {
        if yes { Outcome::Yes } else { Outcome::No }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Yes => ExitCode::SUCCESS,
            Outcome::No => ExitCode::from(1),
            Outcome::Unknown => ExitCode::from(2),
        }
    }
}
