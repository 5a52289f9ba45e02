//! What the demo shows.

use std::io::{IsTerminal, Write};

/// The terminal, or whatever reads instead of one.
pub(super) struct Screen {
    colors: bool,
}

impl Screen {
    pub(super) fn new() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            colors: wanted && std::io::stdout().is_terminal(),
        }
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
            println!("   {line}");
        }
    }

    /// Something that has just come about.
    pub(super) fn happened(&self, text: &str) {
        println!("   {} {text}", self.paint("32", "▸"));
    }

    /// What is being waited for: overwritten by the next line.
    pub(super) fn waiting(&self, text: &str) {
        if self.colors {
            print!("\r\x1b[2K   {}", self.paint("2", text));
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
