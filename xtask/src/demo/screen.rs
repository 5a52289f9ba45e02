//! What the demo shows.

use std::io::{IsTerminal, Write};

use terminal_size::{Width, terminal_size};

/// The blanks before every line but titles.
const INDENT: usize = 3;
/// How many columns programs fill where nobody says how many there are.
const COLUMNS: usize = 100;

/// The terminal, or whatever reads instead of one.
pub(super) struct Screen {
    colors: bool,
    /// How many columns there are beside [`INDENT`], on a terminal.
    columns: Option<usize>,
}

impl Screen {
    pub(super) fn new() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let is_terminal = std::io::stdout().is_terminal();
        let size = terminal_size().filter(|_| is_terminal);
        Self {
            colors: wanted && is_terminal,
            columns: size.map(|(Width(columns), _)| usize::from(columns).saturating_sub(INDENT)),
        }
    }

    /// How many columns a program may fill whose words are quoted.
    pub(super) fn columns(&self) -> usize {
        self.columns.unwrap_or(COLUMNS)
    }

    /// A new part of the story.
    pub(super) fn scene(&self, title: &str) {
        println!("\n{}", self.paint("1", &format!("── {title}")));
    }

    /// Something to know.
    pub(super) fn fact(&self, text: &str) {
        println!("   {text}");
    }

    /// A command that is run.
    pub(super) fn command(&self, who: &str, command: &str) {
        println!(
            "   {} {}",
            self.paint("2", &format!("{who} $")),
            self.paint("36", command)
        );
    }

    /// What a program said.
    pub(super) fn quote(&self, text: &str) {
        for line in text.lines() {
            for part in broken(line, self.columns.unwrap_or(usize::MAX)) {
                println!("   {part}");
            }
        }
    }

    /// What a change has made of a text, as `diff` shows it. Lines are compared one by one.
    pub(super) fn change(&self, before: &str, after: &str) {
        for (old, new) in before.lines().zip(after.lines()) {
            if old == new {
                println!("     {old}");
            } else {
                println!("   {}", self.paint("31", &format!("- {old}")));
                println!("   {}", self.paint("32", &format!("+ {new}")));
            }
        }
    }

    /// Something that has just come about.
    pub(super) fn happened(&self, text: &str) {
        println!("   {} {text}", self.paint("32", "▸"));
    }

    /// What is being waited for: overwritten by the next line.
    pub(super) fn waiting(&self, text: &str) {
        if self.colors {
            // One that is broken could not be taken back.
            let text: String = text.chars().take(self.columns()).collect();
            print!("\r\x1b[2K   {}", self.paint("2", &text));
            // A line that cannot be shown is no reason to stop.
            let _ = std::io::stdout().flush();
        }
    }

    /// Takes the waiting line away.
    pub(super) fn waited(&self) {
        if self.colors {
            print!("\r\x1b[2K");
        }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colors {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// A line, broken between words where it is too long. What follows is indented by two more.
fn broken(line: &str, columns: usize) -> Vec<String> {
    let lead = line.chars().take_while(|it| *it == ' ').count();
    if columns <= lead + 2 {
        return vec![line.to_owned()];
    }
    let mut parts = Vec::new();
    let mut rest = line.to_owned();
    while let Some((end, _)) = rest.char_indices().nth(columns) {
        let blank = rest[..end].rfind(' ').filter(|blank| *blank > lead + 2);
        let (part, left) = rest.split_at(blank.unwrap_or(end));
        parts.push(part.trim_end().to_owned());
        rest = format!("{:lead$}  {}", "", left.trim_start());
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words() {
        assert_eq!(broken("  one two", 9), ["  one two"]);
        assert_eq!(broken("  one two", 8), ["  one", "    two"]);
        assert_eq!(
            broken("one two three", 5),
            ["one", "  two", "  thr", "  ee"]
        );
        assert_eq!(broken("    narrow", 4), ["    narrow"]);
    }
}
