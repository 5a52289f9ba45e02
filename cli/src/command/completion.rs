//! `kubectl gate completion`: the shell fills in the arguments.

use anyhow::Result;
use clap::{Args, Command};
use clap_complete::Shell;

use crate::arguments::Globals;
use crate::outcome::Outcome;
use crate::output;

const NAME: &str = "kubectl-gate";
const UNHYPHENED: &str = "kubectl_gate";

/// Print a script that completes the arguments of `kubectl-gate` in a shell
///
/// Write it to a file that the shell reads when it starts, for example:
///
///   kubectl-gate completion bash > ~/.local/share/bash-completion/completions/kubectl-gate
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Completion {
    /// The shell
    shell: Shell,
}

impl Completion {
    /// The arguments of `program`.
    pub(super) fn run(&self, program: &Command) -> Result<Outcome> {
        output::text(script(self.shell, program))?;
        Ok(Outcome::Yes)
    }
}

fn script(shell: Shell, program: &Command) -> String {
    let shown = program.get_subcommands();
    let shown = shown.filter(|command| !command.is_hide_set()).cloned();
    let mut program = Globals::augment_args(Command::new(NAME)).subcommands(shown);
    // The script for bash mixes up the functions of a program with a hyphen in its name: it is
    // made for one without, and registered for ours.
    let name = match shell {
        Shell::Bash => UNHYPHENED,
        _ => NAME,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, name, &mut script);
    let script = String::from_utf8_lossy(&script);
    let registered = |name| format!(" default {name}\n");
    script.replace(&registered(UNHYPHENED), &registered(NAME))
}
