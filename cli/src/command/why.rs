//! `kubectl gate why`

use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;
use sluice_core::Now;
use sluice_core::delivery::gated_source;
use sluice_core::offline::simulate::{Decision, Key};
use sluice_crds::Subject;

use super::about::{self, About, Asker};
use crate::arguments::Globals;
use crate::cluster::{self, Connection, Scope, Seen, Use};
use crate::explain;
use crate::instant::Zone;
use crate::outcome::Outcome;
use crate::output::{self, Data};

mod data;
mod of_source;

/// Explain why a gate is open or closed: what each gatekeeper says and has measured, the gates
/// behind it, who forces it, what changes next
///
/// Or why a change may go out or not: name who asks, as Deployment/api, and every gate is explained
/// that gate policies want it to pass. Or why a gated source holds something back: name it as
/// gatedsource/app, and what is out, what waits and what each gate says of it is told. Until when a
/// gatekeeper says so is told where time alone ends it. With --output, an entry of a list is printed
/// for each name.
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// The gates, gated sources as gatedsource/NAME, or who asks as KIND/NAME
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    about: About,

    /// Let forces count although nobody verified who they are from
    #[arg(long)]
    trust_unverified_identity: bool,

    /// Print for programs
    #[arg(long, short = 'o', value_name = "FORMAT")]
    output: Option<Data>,
}

/// What is told of one name.
enum Told {
    Text(String),
    Data(Value),
}

impl Why {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let (sources, others): (Vec<_>, Vec<_>) =
            (self.names.iter()).partition(|name| cluster::source_name(name).is_some());
        let (consumers, gates): (Vec<_>, Vec<_>) =
            (others.into_iter()).partition(|name| about::consumer(name).is_ok());
        let gates = gates.iter().map(|name| cluster::gate_name(name));
        let gates = gates.collect::<Result<Vec<_>>>()?;
        let connection = cluster::connect(globals, Use::Requests).await?;
        let mut all = Vec::new();
        if !gates.is_empty() {
            let scope = Scope::Named(gates.clone());
            let seen = self.load(&connection, &scope).await?;
            let now = connection.present().await.now;
            for name in gates {
                let key = Key {
                    namespace: connection.namespace.clone(),
                    name,
                };
                tell(self.gate(&seen, &key, now)?, &mut all)?;
            }
        }
        for name in sources.iter().filter_map(|name| cluster::source_name(name)) {
            let source = cluster::source(&connection, &name).await?;
            let subject = gated_source::subject(&source, None);
            let scope = Scope::Of(Box::new(source.clone()), Box::new(subject));
            let seen = self.load(&connection, &scope).await?;
            let around = of_source::around(&connection, &source).await;
            let now = connection.present().await.now;
            let told = match self.output {
                None => Told::Text(of_source::told(&seen, &source, &around, now)),
                Some(_) => Told::Data(data::of_source(&seen, &source, &around, now)?),
            };
            tell(told, &mut all)?;
            seen.notes.iter().for_each(warn);
        }
        for name in consumers {
            let subject = Asker::named(name)?.subject(&connection.namespace, &self.about);
            let scope = Scope::Asked(Vec::new(), Box::new(subject.clone()));
            let seen = self.load(&connection, &scope).await?;
            let now = connection.present().await.now;
            tell(self.consumer(&seen, subject, now)?, &mut all)?;
            seen.notes.iter().for_each(warn);
        }
        if let Some(form) = self.output {
            output::data(form, &all)?;
        }
        Ok(Outcome::Yes)
    }

    async fn load(&self, connection: &Connection, scope: &Scope) -> Result<Seen> {
        cluster::load(connection, scope, self.trust_unverified_identity).await
    }

    fn gate(&self, seen: &Seen, key: &Key, now: Now) -> Result<Told> {
        let scene = seen.scene(key, now.at);
        let mut scene = scene.context("a gate went away")?;
        let decision = seen.decide(&mut scene, self.about.at(now));
        let revision = self.about.revision();
        // A status speaks of no revision in particular.
        let lag = lag(seen, &decision).filter(|_| revision.is_none());
        let notes: Vec<String> = lag.into_iter().collect();
        Ok(match self.output {
            None => {
                let zone = Zone::of(&scene);
                Told::Text(explain::tree(&scene, &decision, revision, &zone, &notes))
            }
            Some(_) => Told::Data(data::of_gate(&decision, revision, &notes)?),
        })
    }

    /// The decision about a consumer, and each gate that was asked for it.
    fn consumer(&self, seen: &Seen, subject: Subject, now: Now) -> Result<Told> {
        let question = self.about.at(now);
        let name = subject.name.as_deref().unwrap_or_default();
        let name = format!("{} {}/{name}", subject.kind, subject.namespace);
        let decision = seen.ask(None, subject, question);
        let revision = self.about.revision();
        if self.output.is_some() {
            return Ok(Told::Data(data::of_consumer(
                seen, &decision, revision, now,
            )?));
        }
        let zone = seen.zone(now.at);
        let mut text = explain::sum(&name, &decision);
        for (mut scene, _) in checked(seen, &decision, now) {
            let told = seen.decide(&mut scene, question);
            text += &explain::tree(&scene, &told, revision, &zone, &[]);
        }
        Ok(Told::Text(text))
    }
}

/// Prints text at once, and collects what is printed together.
fn tell(told: Told, all: &mut Vec<Value>) -> Result<()> {
    match told {
        Told::Text(text) => output::text(text)?,
        Told::Data(value) => all.push(value),
    }
    Ok(())
}

/// The gates that were checked, each once, and as the decision names them. One that is not there is
/// told of in its sentence.
fn checked<'d>(
    seen: &Seen,
    decision: &'d sluice_crds::Decision,
    now: Now,
) -> Vec<(
    sluice_core::offline::simulate::Scene,
    &'d sluice_crds::CheckedGate,
)> {
    let mut found: Vec<(_, &sluice_crds::CheckedGate)> = Vec::new();
    for checked in &decision.checked {
        let Some((namespace, name)) = checked.gate.split_once('/') else {
            continue;
        };
        let key = Key::from_reference(namespace, None, name);
        let is_known = found.iter().any(|(_, known)| known.gate == checked.gate);
        let scene = seen.scene(&key, now.at).filter(|_| !is_known);
        found.extend(scene.map(|scene| (scene, checked)));
    }
    found
}

fn warn(note: &String) {
    output::note(format_args!("warning: {note}"));
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
