//! The reference of all commands as Markdown, from the same definitions as `--help`.

use std::fmt::Write;

use anyhow::Result;
use clap::builder::StyledStr;
use clap::{Arg, Command};

use crate::outcome::Outcome;
use crate::output;

const HEAD: &str = "\
<!-- Generated from the program's own help by `cargo xtask generate`. Do not edit. -->

# kubectl gate

";

pub(super) fn run(program: &Command) -> Result<Outcome> {
    output::text(reference(program))?;
    Ok(Outcome::Yes)
}

fn reference(program: &Command) -> String {
    let mut text = HEAD.to_owned();
    paragraph(&mut text, program.get_about());
    paragraph(&mut text, program.get_after_help());
    let commands = program.get_subcommands();
    let commands: Vec<_> = commands.filter(|it| !it.is_hide_set()).collect();
    for command in &commands {
        let name = command.get_name();
        let about = command.get_about().map(ToString::to_string);
        let about = about.unwrap_or_default();
        // Writing to a String does not fail.
        let _ = writeln!(text, "- [`{name}`](#{name}): {about}");
    }
    for command in commands {
        section(&mut text, command, command.get_name());
    }
    let _ = writeln!(text, "\n## Global options\n");
    for argument in program.get_arguments().filter(|argument| is_told(argument)) {
        option(&mut text, argument);
    }
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    text
}

/// A command that is called so, and those inside it.
fn section(text: &mut String, command: &Command, called: &str) {
    let mut command = command.clone();
    let _ = writeln!(text, "\n## {called}\n");
    let about = command.get_long_about().or(command.get_about());
    paragraph(text, about);
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").lines();
    let usage = usage.map(str::trim_start);
    let _ = writeln!(text, "```\n{}\n```\n", usage.collect::<Vec<_>>().join("\n"));
    let own = command.get_arguments();
    for argument in own.filter(|it| is_told(it) && !it.is_global_set()) {
        option(text, argument);
    }
    if let Some(after) = command.get_after_help() {
        let _ = writeln!(text);
        paragraph(text, Some(after));
    }
    for inner in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        section(text, inner, &format!("{called} {}", inner.get_name()));
    }
}

fn is_told(argument: &Arg) -> bool {
    !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
}

fn paragraph(text: &mut String, words: Option<&StyledStr>) {
    if let Some(words) = words {
        let _ = writeln!(text, "{}\n", escaped(&words.to_string()).trim_end());
    }
}

fn option(text: &mut String, argument: &Arg) {
    let short = argument
        .get_short()
        .map(|short| format!("-{short}, "))
        .unwrap_or_default();
    let values = argument.get_value_names().unwrap_or_default().join(" ");
    let takes_value = argument.get_action().takes_values();
    let call = match argument.get_long() {
        Some(long) if takes_value => format!("{short}--{long} {values}"),
        Some(long) => format!("{short}--{long}"),
        None => values,
    };
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let help = help.map(|help| escaped(&help.to_string()));
    let help = help.unwrap_or_default().replace('\n', " ");
    let _ = write!(text, "- `{call}`: {}", help.trim());
    let possible = argument.get_possible_values().into_iter();
    let possible: Vec<String> = possible
        .filter(|value| takes_value && !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !possible.is_empty() {
        let _ = write!(text, " (one of {})", possible.join(", "));
    }
    let defaults = argument.get_default_values().iter();
    let defaults: Vec<_> = defaults.map(|it| it.to_string_lossy()).collect();
    if takes_value && !defaults.is_empty() {
        let _ = write!(text, " (default: `{}`)", defaults.join(", "));
    }
    let _ = writeln!(text);
}

/// Names in capitals stand for values and must not become tags or emphasis.
fn escaped(text: &str) -> String {
    text.replace('<', "&lt;").replace('*', "\\*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_told_with_its_options() {
        let text = reference(&crate::command::program());
        for told in [
            "## get\n",
            "## simulate\n",
            "## pipeline retry\n",
            "- `-f, --filename FILES`: ",
            "(default: `30s`)",
            "## Global options\n",
        ] {
            assert!(text.contains(told), "{told}");
        }
        for hidden in ["markdown-help", "--help"] {
            assert!(!text.contains(hidden), "{hidden}");
        }
    }
}
