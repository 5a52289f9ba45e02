//! `kubectl gate completion`: the shell fills in the arguments.

use anyhow::Result;
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use crate::arguments::{Arguments, Globals};
use crate::outcome::Outcome;
use crate::output;

const NAME: &str = "kubectl-gate";
const UNHYPHENED: &str = "kubectl_gate";

/// Print what makes a shell complete the arguments of `kubectl-gate`
///
/// Into a file that the shell reads at its start, such as:
///
///   kubectl-gate completion bash > ~/.local/share/bash-completion/completions/kubectl-gate
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Completion {
    /// The shell
    shell: Shell,
}

impl Completion {
    pub(super) fn run(&self) -> Result<Outcome> {
        output::text(script(self.shell))?;
        Ok(Outcome::Yes)
    }
}

fn script(shell: Shell) -> String {
    let program = Arguments::command();
    let shown = program
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .cloned();
    let mut program = Globals::augment_args(Command::new(NAME)).subcommands(shown);
    // The script for bash mixes up the functions of a program with a hyphen in its name: it is
    // made for one without, and registered for ours.
    let name = if shell == Shell::Bash {
        UNHYPHENED
    } else {
        NAME
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, name, &mut script);
    let script = String::from_utf8_lossy(&script);
    script.replace(
        &format!(" default {UNHYPHENED}\n"),
        &format!(" default {NAME}\n"),
    )
}
