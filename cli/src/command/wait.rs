//! `kubectl gate wait`

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use sluice_core::offline::simulate::Key;
use sluice_crds::{Require, Setting, State};

use super::about::{About, Asker, set};
use super::watched::Watched;
use crate::arguments::Globals;
use crate::cluster::{self, Connection, Scope, Use};
use crate::outcome::Outcome;
use crate::{clock, explain, instant, output};

/// How soon an API server that did not answer is asked again.
const TRY_AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// Wait until a gate is open, or closed
///
/// Decides as `check` does, whenever an object or the time may have changed the answer, and says
/// why it waits each time that the reason changes.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 the gate is in that state; 1 the time is up; 2 it cannot be told."
)]
pub(crate) struct Wait {
    /// The gate
    #[arg(value_name = "NAME")]
    name: String,

    /// The state to wait for
    #[arg(long = "for", value_name = "STATE", value_parser = parse_setting, default_value = "open")]
    wanted: Setting,

    #[command(flatten)]
    about: About,

    #[command(flatten)]
    asker: Asker,

    /// How long to wait, such as 10m
    #[arg(long, value_name = "DURATION", default_value = "10m")]
    timeout: String,

    /// Let forces count although nobody verified who they are from
    #[arg(long)]
    trust_unverified_identity: bool,
}

fn parse_setting(text: &str) -> Result<Setting, &'static str> {
    match text {
        "open" => Ok(Setting::Open),
        "closed" => Ok(Setting::Closed),
        _ => Err("write open or closed"),
    }
}

impl Wait {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let name = cluster::gate_name(&self.name)?;
        let timeout = instant::parse_duration(&self.timeout).context("--timeout")?;
        let timeout = Duration::try_from(timeout).context("--timeout")?;
        let connection = cluster::connect(globals, Use::Watches).await?;
        match tokio::time::timeout(timeout, self.until_wanted(&connection, &name)).await {
            Ok(reached) => reached,
            Err(_) => {
                let wanted = State::from(self.wanted);
                output::line(format_args!(
                    "{name} has not become {wanted} within {}",
                    self.timeout
                ))?;
                Ok(Outcome::No)
            }
        }
    }

    async fn until_wanted(&self, connection: &Connection, name: &str) -> Result<Outcome> {
        let mut said = None;
        let mut watched = Watched::default();
        loop {
            let (line, wake) = match self.look(connection, name, &mut watched).await {
                Ok(Look {
                    is_wanted, line, ..
                }) if is_wanted => {
                    output::line(line)?;
                    return Ok(Outcome::Yes);
                }
                Ok(Look { line, wake, .. }) => (line, wake),
                // An API server that restarts is no reason to give up, unless it was never there.
                Err(error) if said.is_some() && cluster::is_passing(&error) => {
                    let again = clock::now().saturating_add(TRY_AGAIN).ok();
                    (error.to_string(), again)
                }
                Err(error) => return Err(error),
            };
            if said.as_ref() != Some(&line) {
                output::line(format_args!("waiting: {line}"))?;
                said = Some(line);
            }
            watched.something(wake).await;
        }
    }

    /// Decides, and sees to it that what it was decided from is watched.
    async fn look(
        &self,
        connection: &Connection,
        name: &str,
        watched: &mut Watched,
    ) -> Result<Look> {
        let key = Key {
            namespace: connection.namespace.clone(),
            name: name.to_owned(),
        };
        let names = [name.to_owned()];
        let subject = self.asker.subject(&connection.namespace, &self.about);
        let scope = self.asker.scope(&names, &subject);
        // Before anything is read, so that no change falls in between.
        watched.gate(connection, &key);
        if let Scope::Asked(..) = scope {
            watched.policies(connection);
        }
        let seen = cluster::load(connection, &scope, self.trust_unverified_identity).await?;
        watched.everything(connection, &seen);
        let question = self.about.at(connection.present().await.now);
        let scene = seen.scene(&key, question.now.at);
        let gate = seen.decide(&mut scene.context("the gate went away")?, question);
        let decision = seen.ask(set(Require::All, &names).as_ref(), subject, question);
        let held_back = gate.state == State::Open && !decision.allowed;
        Ok(Look {
            is_wanted: match self.wanted {
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
            wake: gate
                .wake
                .into_iter()
                .chain(decision.next.map(|next| next.0))
                .min(),
        })
    }
}

/// What was seen.
struct Look {
    is_wanted: bool,
    line: String,
    /// When to look again, if nothing changes before.
    wake: Option<Timestamp>,
}
