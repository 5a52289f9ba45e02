//! `kubectl gate wait`

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use jiff::Timestamp;
use sluice_crds::{Gate, Require, Setting, State};

use crate::arguments::{
    About, Asker, Commit, Globals, commit, gate_name, rollout_of, set, setting, strategy_of,
};
use crate::cluster::{self, Connection, Scope, Use, Watched};
use crate::outcome::Outcome;
use crate::output::{self, say};
use crate::{explain, instant};

mod arrived;
mod rolled;

/// Wait until a gate is open, or closed; until a commit has reached an environment branch; or until a rollout
/// has succeeded
///
/// Decides as `check` does, each time that an object or the time may have changed the answer. Prints
/// why it waits, each time that the reason changes. For promotionstrategy/NAME, it waits until the
/// environment has the dry commit, as the status of the strategy says. For rollout/NAME, it waits until the
/// rollout has succeeded or failed.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 the gate is in that state, the commit is there, or the rollout has succeeded; 1 the timeout has passed, or the rollout has failed; 2 the answer is unknown."
)]
pub(crate) struct Wait {
    /// The gate, a promotion strategy as promotionstrategy/NAME, or a rollout as rollout/NAME
    #[arg(value_name = "NAME")]
    name: String,

    /// The state of the gate to wait for; for a promotion strategy ENVIRONMENT=COMMIT, such as
    /// env/prod=c0ffee1a2b3c [default: open]
    #[arg(long = "for", value_name = "STATE", value_parser = goal)]
    wanted: Option<Goal>,

    #[command(flatten)]
    about: About,

    #[command(flatten)]
    asker: Asker,

    /// How long to wait, such as 10m
    #[arg(long, value_name = "DURATION", default_value = "10m")]
    timeout: String,

    /// Let forces count even if nobody has verified who wrote them
    #[arg(long)]
    trust_unverified_identity: bool,
}

impl Wait {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let timeout = instant::parse_duration(&self.timeout).context("--timeout")?;
        let timeout = Duration::try_from(timeout).context("--timeout")?;
        if let Some(name) = rollout_of(&self.name) {
            if self.wanted.is_some() {
                bail!("--for: leave it out; a rollout is waited for until it has succeeded")
            }
            let connection = cluster::connect(globals, Use::Watches).await?;
            let over = rolled::until_over(&connection, name);
            return self
                .within(timeout, over, || format!("{name} has not succeeded"))
                .await;
        }
        let open = Goal::State(Setting::Open);
        match (
            strategy_of(&self.name),
            self.wanted.as_ref().unwrap_or(&open),
        ) {
            (Some((name, None)), Goal::There(environment, dry)) => {
                let connection = cluster::connect(globals, Use::Watches).await?;
                let there = arrived::until_there(&connection, &name, (environment, dry));
                let not = || format!("{dry} has not reached {environment}");
                self.within(timeout, there, not).await
            }
            (Some(_), _) => bail!(
                "for a promotion strategy, write promotionstrategy/NAME --for ENVIRONMENT=COMMIT, such as \
                 env/prod=c0ffee1a2b3c"
            ),
            (None, Goal::There(..)) => {
                bail!(
                    "--for: write open or closed; ENVIRONMENT=COMMIT is for promotionstrategy/NAME"
                )
            }
            (None, Goal::State(wanted)) => {
                let name = gate_name(&self.name)?;
                let connection = cluster::connect(globals, Use::Watches).await?;
                let wanted = *wanted;
                let until = self.until_wanted(&connection, &name, wanted);
                let not = || format!("{name} has not become {}", State::from(wanted));
                self.within(timeout, until, not).await
            }
        }
    }

    /// What is waited for, or what has not happened in time.
    async fn within(
        &self,
        timeout: Duration,
        awaited: impl Future<Output = Result<Outcome>>,
        not: impl FnOnce() -> String,
    ) -> Result<Outcome> {
        match tokio::time::timeout(timeout, awaited).await {
            Ok(reached) => reached,
            Err(_) => {
                say!("{} within {}", not(), self.timeout)?;
                Ok(Outcome::No)
            }
        }
    }

    async fn until_wanted(
        &self,
        connection: &Connection,
        name: &str,
        wanted: Setting,
    ) -> Result<Outcome> {
        let mut said = None;
        let mut watched = Watched::default();
        loop {
            let (line, wake) = match self.look(connection, (name, wanted), &mut watched).await {
                Ok(Look {
                    is_wanted, line, ..
                }) if is_wanted => {
                    output::line(line)?;
                    return Ok(Outcome::Yes);
                }
                Ok(Look { line, wake, .. }) => (line, wake),
                Err(error) => (error.to_string(), cluster::again(error, said.is_some())?),
            };
            if said.as_ref() != Some(&line) {
                say!("waiting: {line}")?;
                said = Some(line);
            }
            watched.something(wake).await;
        }
    }

    /// Decides, and sees to it that what it was decided from is watched.
    async fn look(
        &self,
        connection: &Connection,
        (name, wanted): (&str, Setting),
        watched: &mut Watched,
    ) -> Result<Look> {
        let key = connection.key(name);
        let names = [name.to_owned()];
        let subject = self.asker.subject(&connection.namespace, &self.about);
        let asker = (!self.asker.without_policies).then_some(&subject);
        // Before anything is read, so that no change falls in between.
        watched.one::<Gate>(connection, &key);
        if asker.is_some() {
            watched.policies(connection);
        }
        let scope = Scope::Named(&names, asker);
        let seen = cluster::load(connection, &scope, self.trust_unverified_identity).await?;
        watched.everything(connection, &seen);
        let question = self.about.at(connection.present().await.now);
        let scene = seen.scene(&key, question.now.at);
        let gate = seen.decide(&mut scene.context("the gate went away")?, question);
        let decision = seen.ask(set(Require::All, &names).as_ref(), subject, question);
        let held_back = gate.state == State::Open && !decision.allowed;
        Ok(Look {
            is_wanted: match wanted {
                Setting::Open => decision.allowed,
                Setting::Closed => gate.state == State::Closed || held_back,
            },
            line: match held_back {
                true => {
                    let notes = seen.notes.iter().map(|note| format!("; {note}"));
                    let notes: String = notes.collect();
                    format!("{name} is open, but {}{notes}", decision.message)
                }
                false => explain::line(&gate),
            },
            wake: [gate.wake, decision.next.map(|next| next.0)]
                .into_iter()
                .flatten()
                .min(),
        })
    }
}

/// What is waited for.
#[derive(Clone, Debug)]
enum Goal {
    /// A state of a gate.
    State(Setting),
    /// An environment with a dry commit.
    There(String, Commit),
}

/// Reads it.
fn goal(text: &str) -> Result<Goal, String> {
    match text.split_once('=') {
        Some((environment, dry)) if !environment.is_empty() => {
            Ok(Goal::There(environment.to_owned(), commit(dry)?))
        }
        _ => Ok(Goal::State(setting(text)?)),
    }
}

/// What was seen.
struct Look {
    is_wanted: bool,
    line: String,
    /// When to look again, if nothing changes before.
    wake: Option<Timestamp>,
}
