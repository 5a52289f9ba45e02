//! Fuzzing: texts that people and other programs write, changed at random.
//!
//! What comes in: for each target a corpus of telling texts and the words of their language. What
//! goes out: each text of the corpus, and thousands of others near them, read, with properties
//! that hold of whatever was understood.
//!
//! `cargo test` tries some thousands, `cargo xtask fuzz` as many as there is time for. Whatever is
//! found becomes a text of the corpus, for good.

#![cfg(test)]

mod calendar;
mod cron;
mod duration;
mod expression;
mod force;
mod marker;
mod metadata;
mod revision;
mod target;
mod text;

/// A cron expression, the days and minutes that it names, and what a schedule makes of them.
#[test]
fn cron() {
    cron::TARGET.check(cron::holds);
}

/// A length of time.
#[test]
fn duration() {
    duration::TARGET.check(duration::holds);
}

/// An iCalendar file, and what its events cover in some span.
#[test]
fn calendar() {
    calendar::TARGET.check(calendar::holds);
}

/// Three lines: two revisions, and an entry of a list of them.
#[test]
fn revision() {
    revision::TARGET.check(revision::holds);
}

/// The annotations of a gate, one a line, and what they force.
#[test]
fn force() {
    force::TARGET.check(force::holds);
}

/// A condition in CEL, and what it says of some bodies.
#[test]
fn expression() {
    expression::TARGET.check(expression::holds);
}

/// A file of YAML with markers, and a revision for what they mark.
#[test]
fn marker() {
    marker::TARGET.check(marker::holds);
}

/// The metadata of a hydrator, in a file or in a note.
#[test]
fn metadata() {
    metadata::TARGET.check(metadata::holds);
}
