//! `kubectl gate check`

use anyhow::{Context, Result};
use clap::Args;
use sluice_core::Now;
use sluice_core::simulate::Key;
use sluice_crds::State;

use super::about::About;
use crate::arguments::Globals;
use crate::cluster::{self, Scope, Use};
use crate::explain::{self, Decided};
use crate::instant;
use crate::outcome::Outcome;
use crate::output::{self, Data};

/// Tell whether gates are open, in the exit code
///
/// Decided here and now from the gates, their gatekeepers and the ConfigMaps of their calendars, as
/// the controller decides: a status that lags is no matter. A calendar at an address is the
/// controller's to read; its verdict counts while it holds. An annotation that forces a gate open
/// counts once the controller has accepted it, and a gatekeeper in another namespace once the gate's
/// status shows that the controller counts it.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 all are open; 1 one is closed; 2 it cannot be told.")]
pub(crate) struct Check {
    /// The gates
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    about: About,

    /// The instant to decide for: RFC 3339 [default: now]
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,

    /// Let forces count although nobody verified who they are from
    #[arg(long)]
    trust_unverified_identity: bool,

    /// Print for programs
    #[arg(long, short = 'o', value_name = "FORMAT")]
    output: Option<Data>,
}

impl Check {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let names = self.names.iter().map(|name| cluster::gate_name(name));
        let names = names.collect::<Result<Vec<_>>>()?;
        let at = self
            .at
            .as_ref()
            .map(|at| instant::parse(at, None))
            .transpose()?;
        let connection = cluster::connect(globals, Use::Requests).await?;
        let scope = Scope::Named(names.clone());
        let seen = cluster::load(&connection, &scope, self.trust_unverified_identity).await?;
        let now = match at {
            Some(at) => Now::given(at),
            None => connection.present().await.now,
        };
        let mut outcome = Outcome::Yes;
        let mut decisions = Vec::new();
        for name in names {
            let key = Key {
                namespace: connection.namespace.clone(),
                name,
            };
            let mut scene = seen.scene(&key, now.at).context("a gate went away")?;
            let decision = seen.decide(&mut scene, self.about.at(now));
            outcome = outcome.and(Outcome::yes_if(decision.state == State::Open));
            decisions.push(decision);
        }
        let decided = |decision| Decided::about(decision, self.about.revision());
        match (self.output, decisions.as_slice()) {
            (Some(form), [only]) => output::data(form, &decided(only))?,
            (Some(form), all) => {
                let all: Vec<Decided<'_>> = all.iter().map(decided).collect();
                output::data(form, &all)?;
            }
            (None, all) => {
                for decision in all {
                    output::line(explain::line(decision))?;
                }
            }
        }
        Ok(outcome)
    }
}
