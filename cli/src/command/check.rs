//! `kubectl gate check`

use anyhow::{Context, Result};
use clap::Args;
use sluice_core::Now;
use sluice_crds::Require;

use crate::arguments::{About, Asker, Globals, gate_names, require, set};
use crate::cluster::{self, Scope, Use};
use crate::outcome::Outcome;
use crate::output::{self, Data, warn};
use crate::{explain, instant};

/// Check whether a change may pass gates: the exit code is the answer
///
/// The plugin decides now, from the gates, their gatekeepers and the evidence, in the same way as the
/// controller. It does not use the status of the gate, which can be late. It also asks the gates that
/// gate policies add to every question in the namespace. Only the controller observes calendars at an
/// address, metrics, HTTP answers and objects; its verdict counts while it is valid. An annotation that
/// forces a gate open counts once the controller has accepted it. A gatekeeper in another namespace
/// counts once the status of the gate shows that the controller counts it.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 it may pass; 1 it may not; 2 the answer is unknown.")]
pub(crate) struct Check {
    /// The gates
    #[arg(required_unless_present = "consumer", value_name = "NAME")]
    names: Vec<String>,

    /// How the answers of several gates combine
    #[arg(long, value_name = "HOW", value_parser = require, default_value = "all")]
    require: Require,

    #[command(flatten)]
    about: About,

    #[command(flatten)]
    asker: Asker,

    /// The instant to decide for: RFC 3339 [default: now]
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,

    /// Let forces count even if nobody has verified who wrote them
    #[arg(long)]
    trust_unverified_identity: bool,

    /// Print the decision in a form for programs
    #[arg(long, short = 'o', value_name = "FORMAT")]
    output: Option<Data>,
}

impl Check {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let names = gate_names(&self.names)?;
        let at = self.at.as_ref();
        let at = at.map(|at| instant::parse(at, None)).transpose()?;
        self.asker.check(&names)?;
        let connection = cluster::connect(globals, Use::Requests).await?;
        let subject = self.asker.subject(&connection.namespace, &self.about);
        let asker = (!self.asker.without_policies).then_some(&subject);
        let scope = Scope::Named(&names, asker);
        let seen = cluster::load(&connection, &scope, self.trust_unverified_identity).await?;
        let now = match at {
            Some(at) => Now::given(at),
            None => connection.present().await.now,
        };
        let question = self.about.at(now);
        let decision = seen.ask(set(self.require, &names).as_ref(), subject, question);
        seen.notes.iter().for_each(warn);
        if let Some(form) = self.output {
            output::data(form, &decision)?;
            return Ok(Outcome::yes_if(decision.allowed));
        }
        for name in &names {
            let scene = seen.scene(&connection.key(name), now.at);
            let mut scene = scene.context("a gate went away")?;
            output::line(explain::line(&seen.decide(&mut scene, question)))?;
        }
        if decision.checked.len() != 1 {
            output::text(explain::sum("", &decision))?;
        }
        Ok(Outcome::yes_if(decision.allowed))
    }
}
