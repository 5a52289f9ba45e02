//! `kubectl gate why`

use anyhow::{Context, Result};
use clap::Args;
use sluice_core::simulate::{Decision, Key};

use super::about::About;
use crate::arguments::Globals;
use crate::cluster::{self, Scope, Seen, Use};
use crate::explain;
use crate::outcome::Outcome;
use crate::output;

/// Explain why a gate is open or closed: what each gatekeeper says and has measured, the gates
/// behind it, who forces it, what changes next
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// The gates
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    about: About,

    /// Let forces count although nobody verified who they are from
    #[arg(long)]
    trust_unverified_identity: bool,
}

impl Why {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let names = self.names.iter().map(|name| cluster::gate_name(name));
        let names = names.collect::<Result<Vec<_>>>()?;
        let connection = cluster::connect(globals, Use::Requests).await?;
        let scope = Scope::Named(names.clone());
        let seen = cluster::load(&connection, &scope, self.trust_unverified_identity).await?;
        let now = connection.present().await.now;
        for name in names {
            let key = Key {
                namespace: connection.namespace.clone(),
                name,
            };
            let mut scene = seen.scene(&key, now.at).context("a gate went away")?;
            let decision = seen.decide(&mut scene, self.about.at(now));
            let revision = self.about.revision();
            // A status speaks of no revision in particular.
            let lag = lag(&seen, &decision).filter(|_| revision.is_none());
            let notes: Vec<String> = lag.into_iter().collect();
            output::text(explain::tree(&scene, &decision, revision, &notes))?;
        }
        Ok(Outcome::Yes)
    }
}

/// What to say where the status of the gate says something else.
fn lag(seen: &Seen, decision: &Decision) -> Option<String> {
    let status = seen.world.gates.get(&decision.gate)?.status.as_ref();
    match status.and_then(|status| status.state) {
        Some(state) if state == decision.state => None,
        Some(state) => Some(format!(
            "its status still says {state}: the controller has not written it yet, or does not run"
        )),
        None => Some("it has no status: no controller has seen it yet".to_owned()),
    }
}
