//! `kubectl gate completion`: the shell fills in the arguments.

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::outcome::Outcome;
use crate::output;

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
        let mut script = Vec::new();
        clap_complete::generate(
            self.shell,
            &mut Arguments::command(),
            "kubectl-gate",
            &mut script,
        );
        output::text(String::from_utf8_lossy(&script))?;
        Ok(Outcome::Yes)
    }
}
