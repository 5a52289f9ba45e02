//! `kubectl gate`: ask, force and picture the gates of a cluster, or of files.
//!
//! What comes in: arguments, a kubeconfig or files, the clock. What goes out: text, and an exit
//! code that scripts can rely on. Every decision is made by `sluice-core`.

mod arguments;
mod clock;
mod cluster;
mod command;
mod converted;
mod explain;
mod files;
mod instant;
mod outcome;
mod output;
mod picture;
mod view;

use std::process::ExitCode;

use clap::Parser;

use crate::command::Arguments;
use crate::outcome::Outcome;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    arguments.globals.color.set();
    match command::run(arguments) {
        Ok(outcome) => outcome.into(),
        Err(error) if output::is_broken_pipe(&error) => Outcome::Unknown.into(),
        Err(error) => {
            output::error(&error);
            Outcome::Unknown.into()
        }
    }
}
