//! `kubectl gate retry`

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use sluice_core::delivery::rollout::{View, check, is_retry_due, view};
use sluice_crds::Rollout as Object;
use sluice_crds::rollout::{Mode, RollingState, marks};

use crate::arguments::{Globals, rollout_name};
use crate::cluster::{self, Cannot, Connection, Use, Watched};
use crate::outcome::Outcome;
use crate::output::{say, warn};
use crate::{clock, instant};

/// How often it is written, where the controller writes its status in between.
const TRIES: usize = 5;

/// Try again what has failed
#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Retry {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Rollout(Rollout),
}

/// Begin another run of a rollout that has failed, or that is held because somebody else has written a size
///
/// Batches whose pods are there are passed, without gates and hooks; for all others, gates and hooks are asked
/// again. A rollout that goes on by itself is refused, and so is one that has succeeded. The command waits until
/// the controller has begun the run. You need the verb `patch` on the rollout.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 the run has begun, or it is written that it shall; 2 it cannot be begun, or nothing is known."
)]
struct Rollout {
    /// The rollout
    #[arg(value_name = "NAME")]
    name: String,

    /// Only say what would happen: the API server checks the change, and does not keep it
    #[arg(long)]
    dry_run: bool,

    /// How long to wait until the controller begins it, such as 30s; 0 does not wait
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    timeout: String,
}

impl Retry {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        match &self.what {
            What::Rollout(rollout) => rollout.run(globals).await,
        }
    }
}

impl Rollout {
    async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let name = rollout_name(&self.name)?;
        let patience = instant::parse_timeout(&self.timeout).context("--timeout")?;
        let connection = cluster::connect(globals, Use::Watches).await?;
        let (object, value) = self.write(&connection, &name).await?;
        say!("{}", announced(&object))?;
        if object.spec.rollout_plan.paused {
            warn(format_args!(
                "{name} is paused: nothing begins before rolloutPlan.paused is false"
            ));
        }
        let patience = match patience {
            _ if self.dry_run => {
                say!("nothing was written: this was a dry run")?;
                return Ok(Outcome::Yes);
            }
            None => {
                say!("{name}: the run is asked for, and no controller has confirmed it")?;
                return Ok(Outcome::Yes);
            }
            Some(patience) => patience,
        };
        self.confirm(&connection, &name, &value, patience).await?;
        Ok(Outcome::Yes)
    }

    /// Asks for another run, onto the version that was looked at. Returns that version, and what was written.
    async fn write(&self, connection: &Connection, name: &str) -> Result<(Object, String)> {
        let api: Api<Object> = connection.here();
        let how = PatchParams {
            dry_run: self.dry_run,
            ..cluster::patch()
        };
        let mut tries = 0;
        loop {
            tries += 1;
            let object: Object = cluster::existing(connection, name).await?;
            makes_sense(&object)?;
            let value = clock::now().to_string();
            let merged = json!({"metadata": {
                "resourceVersion": object.metadata.resource_version,
                "annotations": {marks::RETRY: value},
            }});
            match api.patch(name, &how, &Patch::Merge(merged)).await {
                // The controller has written its status meanwhile.
                Err(error) if cluster::code(&error) == Some(409) && tries < TRIES => {}
                patched => {
                    let what = format_args!("begin another run of the rollout {name}");
                    patched.cannot(what)?;
                    return Ok((object, value));
                }
            }
        }
    }

    async fn confirm(
        &self,
        connection: &Connection,
        name: &str,
        value: &str,
        patience: Duration,
    ) -> Result<()> {
        let begun = begun(connection, name, value);
        match tokio::time::timeout(patience, begun).await {
            Ok(begun) => {
                begun?;
                say!("{name} has begun; follow it with kubectl gate rollout {name} --watch")
            }
            Err(_) => {
                warn(format_args!(
                    "no controller has begun it within {}, and none may be running; look again with kubectl gate \
                     rollout {name}",
                    self.timeout
                ));
                Ok(())
            }
        }
    }
}

/// Whether another run would do anything that this one does not.
fn makes_sense(object: &Object) -> Result<()> {
    let view = view(object, &Default::default());
    let name = &view.name;
    if let Err(refusals) = check(object) {
        bail!("{name} is refused, and so would another run be: {refusals}");
    }
    if view.deleted {
        bail!("{name} is being deleted: create it again to begin another run");
    }
    if is_retry_due(object) {
        bail!(
            "another run of {name} is asked for already, and has not begun; see kubectl gate rollout {name}"
        );
    }
    let held = view.held.as_ref();
    match view.state {
        Some(RollingState::RolloutFailed | RollingState::RolloutFailing) => Ok(()),
        Some(RollingState::RolloutSucceed) => bail!(
            "{name} has succeeded, and nothing is left to retry; for another version write another spec.revision"
        ),
        Some(
            RollingState::VerifyingSpec
            | RollingState::Initializing
            | RollingState::RollingInBatches
            | RollingState::Finalising
            | RollingState::RolloutAbandoned
            | RollingState::RolloutDeleting,
        )
        | None => match held.filter(|it| is_contested(&it.reason)) {
            Some(_) => Ok(()),
            None => bail!("{}", goes_on(&view)),
        },
    }
}

/// What only another run gets past: others hold it until what they say is fixed, and then it goes on.
fn is_contested(reason: &str) -> bool {
    [
        "FieldOverwritten",
        "TargetChanged",
        "PlanChanged",
        "RunEnded",
    ]
    .contains(&reason)
}

/// Why nothing has to be retried.
fn goes_on(view: &View) -> String {
    let name = &view.name;
    match &view.held {
        Some(held) => format!(
            "{name} is held, and goes on by itself; another run would be held as well: {}",
            held.message
        ),
        None => format!("{name} has not failed: it goes on by itself"),
    }
}

/// What follows, in a sentence.
fn announced(object: &Object) -> String {
    let view = view(object, &Default::default());
    let name = &view.name;
    let revision = view.revision.as_ref();
    let of = revision.map(|it| format!(" of {it}")).unwrap_or_default();
    let when = match view.state {
        Some(RollingState::RolloutFailing) => ", once this one has ended",
        _ if view.mode.is_none() => "",
        _ if view.held.is_some() => ", and this one gives way",
        _ => "",
    };
    let there = view
        .updated
        .filter(|pods| *pods > 0 && view.mode != Some(Mode::Scale));
    let there = there.zip(view.size).map(|(pods, size)| {
        format!("; {pods} of {size} pods are there, and batches that they complete are passed")
    });
    format!(
        "{name}: another run{of} begins{when}{}",
        there.unwrap_or_default()
    )
}

/// Waits until the controller has begun the run.
async fn begun(connection: &Connection, name: &str, value: &str) -> Result<()> {
    let mut watched = Watched::default();
    watched.one::<Object>(connection, &connection.key(name));
    loop {
        let mut wake = None;
        match cluster::existing::<Object>(connection, name).await {
            Ok(object) => {
                let status = object.status.as_ref();
                let handled = status.and_then(|it| it.last_handled_retry_at.as_deref());
                if handled == Some(value) {
                    return Ok(());
                }
            }
            Err(error) => wake = cluster::again(error, true)?,
        }
        watched.something(wake).await;
    }
}

#[cfg(test)]
mod tests;
