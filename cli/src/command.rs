//! The commands, one file each, and the table of all of them.
//!
//! What comes in: arguments. What goes out: what each command prints, and an [`Outcome`]. Uses every
//! other room. A command uses no other command and nothing of this file.

use anyhow::{Context, Result};
use clap::builder::styling::{AnsiColor, Styles};
use clap::{CommandFactory, Parser, Subcommand};
use sluice_crds::{Setting, approval};

use crate::arguments::Globals;
use crate::outcome::{self, Outcome};

mod adopt;
mod audit;
mod calendar;
mod check;
mod complete;
mod completion;
mod doctor;
mod force;
mod get;
mod lint;
mod markdown;
mod pending;
mod reset;
mod simulate;
mod version;
mod vote;
mod wait;
mod why;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Ask, force and picture the gates of a cluster, or of files.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-gate",
    bin_name = "kubectl gate",
    version,
    styles = STYLES,
    after_help = outcome::HELP,
    disable_help_subcommand = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    pub(crate) globals: Globals,
}

#[derive(Debug, Subcommand)]
enum Command {
    Get(get::Get),
    Why(why::Why),
    /// Force a gate open, whatever its gatekeepers say, for a while
    ///
    /// The force carries your name, your reason and its end, needs the verb `override` on the
    /// gate, and ends earlier with `kubectl gate reset`. Without --for and --until it lasts as
    /// long as the gate's spec.window says. It is done when the controller has accepted it.
    Open(force::Force),
    /// Force a gate closed, whatever its gatekeepers say, for a while
    ///
    /// The force carries your name, your reason and its end, needs the verb `override` on the
    /// gate, and ends earlier with `kubectl gate reset`. Without --for and --until it lasts as
    /// long as the gate's spec.window says. It is done when the controller has accepted it.
    Close(force::Force),
    Reset(reset::Reset),
    /// Approve of a revision: gates that ask for it let the revision pass once enough people have
    ///
    /// The approval carries your name, as the API server knows you, and your groups if the
    /// gatekeeper asks for some. It counts for as long as the gatekeeper says, and never changes:
    /// who thinks better of it deletes it, or rejects.
    Approve(vote::Vote),
    /// Reject a revision: no gate that asks for approvals lets it pass, whoever approves
    ///
    /// The rejection carries your name, as the API server knows you. It counts until you delete
    /// it: nobody else can.
    Reject(vote::Vote),
    Check(check::Check),
    Wait(wait::Wait),
    Pending(pending::Pending),
    Calendar(calendar::Calendar),
    Adopt(adopt::Adopt),
    Simulate(simulate::Simulate),
    Lint(lint::Lint),
    Audit(audit::Audit),
    Completion(completion::Completion),
    Doctor(doctor::Doctor),
    Version(version::Version),
    #[command(hide = true)]
    MarkdownHelp,
    /// What kubectl asks for `kubectl gate <TAB>`
    #[command(name = "__complete", hide = true)]
    Complete(complete::Complete),
}

/// Does what the arguments ask for.
///
/// # Errors
/// Anything that keeps the answer from being known.
pub(crate) fn run(arguments: Arguments) -> Result<Outcome> {
    let Arguments { command, globals } = arguments;
    match command {
        Command::Get(get) => online(get.run(&globals)),
        Command::Why(why) => online(why.run(&globals)),
        Command::Open(force) => online(force.run(&globals, Setting::Open)),
        Command::Close(force) => online(force.run(&globals, Setting::Closed)),
        Command::Reset(reset) => online(reset.run(&globals)),
        Command::Approve(vote) => online(vote.run(&globals, approval::Vote::Approve)),
        Command::Reject(vote) => online(vote.run(&globals, approval::Vote::Reject)),
        Command::Check(check) => online(check.run(&globals)),
        Command::Wait(wait) => online(wait.run(&globals)),
        Command::Calendar(calendar) if calendar.is_offline() => calendar.run_offline(&globals),
        Command::Calendar(calendar) => online(calendar.run(&globals)),
        Command::Simulate(simulate) => simulate.run(&globals),
        Command::Adopt(adopt) => online(adopt.run(&globals)),
        Command::Pending(pending) => online(pending.run(&globals)),
        Command::Audit(audit) => audit.run(&globals),
        Command::Lint(lint) => lint.run(&globals),
        Command::Completion(completion) => completion.run(&Arguments::command()),
        Command::Doctor(doctor) => online(doctor.run(&globals)),
        Command::Version(version) => online(version.run(&globals)),
        Command::MarkdownHelp => markdown::run(&program()),
        Command::Complete(complete) => online(complete.run(&program())),
    }
}

/// All commands with their arguments, for those that describe them.
fn program() -> clap::Command {
    let mut program = Arguments::command();
    program.build();
    program
}

/// Runs what talks to an API server.
fn online(work: impl Future<Output = Result<Outcome>>) -> Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(work)
}
