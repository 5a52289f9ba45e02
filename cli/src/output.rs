//! Writing: to a terminal with colors, to anything else without; and in forms for programs.
//!
//! What comes in: texts, tables, values. What goes out: standard output and standard error. Uses no
//! other room.

use std::env;
use std::fmt::Display;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::Serialize;
use sluice_crds::State;

/// The columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;

/// Before a cause that is written below its row.
const INDENT: &str = "    ";

/// A form for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Data {
    Json,
    Yaml,
}

/// Writes text, whose styles are left out where nobody would see them.
///
/// # Errors
/// Nobody reads on.
pub(crate) fn text(text: impl Display) -> Result<()> {
    let mut out = anstream::stdout().lock();
    write!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Writes one line.
///
/// # Errors
/// Nobody reads on.
pub(crate) fn line(line: impl Display) -> Result<()> {
    text(format_args!("{line}\n"))
}

/// `println!`, with an error where nobody reads on.
macro_rules! say {
    ($($text:tt)*) => { $crate::output::line(format_args!($($text)*)) };
}

pub(crate) use say;

/// Writes a value for programs.
///
/// # Errors
/// Nobody reads on; it cannot be written so.
pub(crate) fn data(form: Data, value: &impl Serialize) -> Result<()> {
    text(form.text(value)?)
}

impl Data {
    /// A value in this form, with a line break at its end.
    ///
    /// # Errors
    /// It cannot be written so.
    pub(crate) fn text(self, value: &impl Serialize) -> Result<String> {
        Ok(match self {
            Data::Json => serde_json::to_string_pretty(value)? + "\n",
            Data::Yaml => serde_saphyr::to_string(value).context("cannot write YAML")?,
        })
    }
}

/// Writes what is said in addition to the answer.
pub(crate) fn note(note: impl Display) {
    // Nobody who could be told reads on.
    let _ = writeln!(anstream::stderr().lock(), "{note}");
}

/// The same, for what somebody should look at.
pub(crate) fn warn(warning: impl Display) {
    note(format_args!("warning: {warning}"));
}

/// Says in one line what went wrong.
pub(crate) fn error(error: &anyhow::Error) {
    let style = AnsiColor::Red.on_default().bold();
    note(format_args!("{style}error:{style:#} {error:#}"));
}

/// Whether nobody reads on, as when `| head` has seen enough.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref());
    causes.any(|cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Green or red, or yellow where it depends.
pub(crate) fn style(state: State) -> Style {
    match state {
        State::Open => AnsiColor::Green.on_default().bold(),
        State::Closed => AnsiColor::Red.on_default().bold(),
        State::Conditional => AnsiColor::Yellow.on_default().bold(),
    }
}

/// A state in its color.
pub(crate) fn state(state: State) -> String {
    let style = style(state);
    format!("{style}{state}{style:#}")
}

/// Whether something may go on, in the color of a state.
pub(crate) fn allowed(allowed: bool) -> String {
    let (state, word) = match allowed {
        true => (State::Open, "allowed"),
        false => (State::Closed, "not allowed"),
    };
    let style = style(state);
    format!("{style}{word}{style:#}")
}

/// `1 mistake`, `2 mistakes`.
pub(crate) fn count(many: usize, what: &str) -> String {
    format!("{many} {what}{}", if many == 1 { "" } else { "s" })
}

/// How many columns there are, as `COLUMNS` or the terminal says. None: nobody counts them.
pub(crate) fn width() -> Option<usize> {
    let said = env::var("COLUMNS").ok();
    let said = said.and_then(|columns| columns.parse().ok());
    let seen = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    said.or_else(seen)
}

/// The same, for what has to end somewhere.
pub(crate) fn columns() -> usize {
    width().unwrap_or(COLUMNS)
}

/// The lines that `text` takes in so many columns, broken between words. Styles take none.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if characters(line) + 1 + characters(word) <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("  {word}"));
        }
    }
    lines
}

/// A table as kubectl prints it: no lines, three blanks between columns. The first row is the head.
/// Cells may be styled.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let widths = widths(rows);
    rows.iter().map(|cells| row(cells, &widths)).collect()
}

/// A table whose last column has sentences: where they do not fit beside the rest in `columns`, each is
/// written below its row. If there are none, the column is left out.
pub(crate) fn table_with_causes(mut rows: Vec<Vec<String>>, columns: Option<usize>) -> String {
    let is_without = |row: &Vec<String>| row.last().is_none_or(String::is_empty);
    if rows.iter().skip(1).all(is_without) {
        rows.iter_mut().for_each(|row| drop(row.pop()));
        return table(&rows);
    }
    let beside = table(&rows);
    let fits = |columns| beside.lines().all(|line| characters(line) <= columns);
    let Some(columns) = columns.filter(|columns| !fits(*columns)) else {
        return beside;
    };
    let causes: Vec<String> = rows.iter_mut().filter_map(Vec::pop).collect();
    let mut text = String::new();
    for (n, (line, cause)) in table(&rows).lines().zip(&causes).enumerate() {
        text += &format!("{line}\n");
        // The head has none.
        if n > 0 && !cause.is_empty() {
            for line in wrapped(cause, columns.saturating_sub(INDENT.len())) {
                text += &format!("{INDENT}{line}\n");
            }
        }
    }
    text
}

/// How wide the columns of a table are, with the blanks behind them.
pub(crate) fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(row.len().max(widths.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = characters(cell).max(*width);
        }
    }
    widths.iter().map(|width| width + 3).collect()
}

/// A line of a table. What is too wide for its column moves the others.
pub(crate) fn row(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        let blanks = width.saturating_sub(characters(cell)).max(1);
        line.push_str(&format!("{cell}{:blanks$}", ""));
    }
    format!("{}\n", line.trim_end())
}

/// How many characters are seen: styles take none.
pub(crate) fn characters(text: &str) -> usize {
    let plain = anstream::adapter::strip_str(text).to_string();
    plain.chars().count()
}

/// Whether the locale has more than ASCII.
pub(crate) fn is_unicode() -> bool {
    let set = |name| env::var(name).ok().filter(|value| !value.is_empty());
    match ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set) {
        Some(locale) => {
            let plain = locale.to_ascii_lowercase().replace('-', "");
            plain.contains("utf8")
        }
        None => cfg!(any(windows, target_os = "macos")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_sentences_that_has_none_is_left_out() {
        let rows = |cause: &str| {
            [["NAME", "BECAUSE"], ["dev", cause]].map(|row| row.map(str::to_owned).to_vec())
        };
        let table = |cause| table_with_causes(rows(cause).to_vec(), None);
        assert_eq!(table(""), "NAME\ndev\n");
        assert_eq!(
            table("it is closed"),
            "NAME   BECAUSE\ndev    it is closed\n"
        );
    }
}
