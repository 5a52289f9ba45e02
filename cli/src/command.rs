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

mod accept;
mod adopt;
mod audit;
mod calendar;
mod check;
mod complete;
mod completion;
mod doctor;
mod fixed;
mod force;
mod get;
mod lint;
mod markdown;
mod pending;
mod pipeline;
mod promotion;
mod reset;
mod retry;
mod revert;
mod rollout;
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

/// Show, check and force gates, in a cluster or in files.
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
    /// Force a gate open for a limited time, whatever its gatekeepers say
    ///
    /// The force records your name, your reason and when it ends. You need the verb `override` on the
    /// gate. `kubectl gate reset` ends the force early. Without --for and --until, it lasts as long as
    /// spec.window of the gate says. The command waits until the controller has accepted the force.
    Open(force::Force),
    /// Force a gate closed for a limited time, whatever its gatekeepers say
    ///
    /// The force records your name, your reason and when it ends. You need the verb `override` on the
    /// gate. `kubectl gate reset` ends the force early. Without --for and --until, it lasts as long as
    /// spec.window of the gate says. The command waits until the controller has accepted the force.
    Close(force::Force),
    Reset(reset::Reset),
    /// Approve a revision: gates that need approvals let it pass once enough people have approved it
    ///
    /// The approval records your name, as the API server knows you, and your groups if the gatekeeper
    /// requires any. It counts for as long as the gatekeeper says. It cannot be changed: if you change
    /// your mind, delete it, or reject the revision. With --revision-of, it is about the revision that a
    /// gated source, or an environment of a promotion strategy, waits with. With --pipeline, the approval
    /// is about one promotion of a pipeline, in its present run.
    Approve(vote::Vote),
    /// Reject a revision: no gate that needs approvals lets it pass, even if others approve it
    ///
    /// The rejection records your name, as the API server knows you. It counts until you delete it.
    /// Nobody else can delete it. With --revision-of, it is about the revision that a gated source, or an
    /// environment of a promotion strategy, waits with. With --pipeline, the rejection is about one
    /// promotion of a pipeline, in its present run; what is not done yet can be rejected, also if nobody
    /// has to approve it.
    Reject(vote::Vote),
    Check(check::Check),
    Wait(wait::Wait),
    Pending(pending::Pending),
    #[command(visible_alias = "pipelines")]
    Pipeline(pipeline::Pipeline),
    #[command(visible_alias = "promotions")]
    Promotion(promotion::Promotion),
    #[command(visible_alias = "rollouts")]
    Rollout(rollout::Rollout),
    Retry(retry::Retry),
    Accept(accept::Accept),
    Revert(revert::Revert),
    Fixed(fixed::Fixed),
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
        Command::Adopt(adopt) => match adopt.run_offline(&globals) {
            Some(done) => done,
            None => online(adopt.run(&globals)),
        },
        Command::Pending(pending) => online(pending.run(&globals)),
        Command::Pipeline(pipeline) => match pipeline.run_offline(&globals) {
            Some(done) => done,
            None => online(pipeline.run(&globals)),
        },
        Command::Promotion(promotion) => online(promotion.run(&globals)),
        Command::Rollout(rollout) => online(rollout.run(&globals)),
        Command::Retry(retry) => online(retry.run(&globals)),
        Command::Accept(accept) => online(accept.run(&globals)),
        Command::Revert(revert) => online(revert.run(&globals)),
        Command::Fixed(fixed) => online(fixed.run(&globals)),
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
