//! `kubectl gate why`

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use sluice_core::Now;
use sluice_core::delivery::rollout::view;
use sluice_core::offline::simulate::{Decision, Key};
use sluice_crds::{PromotionStrategy, Rollout};

use crate::arguments::{
    About, Asker, Globals, consumer, gate_names, promotion_name, rollout_of, source_name,
    strategies,
};
use crate::cluster::{self, Connection, Scope, Seen, Use};
use crate::explain;
use crate::instant::Zone;
use crate::outcome::Outcome;
use crate::output::{self, Data, warn};
use crate::view::{Decided, Source, Strategy, checked};

mod asked;
mod of_pipeline;
mod of_rollout;
mod of_source;
mod of_strategy;

use of_pipeline::Told;
use of_strategy::Shown;

/// Explain why a gate is open or closed: what each gatekeeper says and has measured, the gates that it
/// asks, who forces it, and what changes next
///
/// Names may also be consumers. For an object that asks, such as Deployment/api, every gate is
/// explained that gate policies require it to pass. For a gated source, such as gatedsource/app, the
/// answer shows what is out, what waits, and what each gate says about it. For a pipeline, such as
/// pipeline/podinfo, it shows the environments, and what each gate says about the promotion that is next;
/// for pipeline/podinfo/prod, about a promotion to that environment. For a promotion strategy, such as
/// promotionstrategy/shop, and for environments that are named behind it, it shows everything that each
/// waits for, its checks, and how it came to what it has, as the status of the strategy says. For a rollout,
/// such as rollout/web, it shows the workloads and the batches, and what each gate says about the batch that is
/// next. If time alone changes the verdict of a gatekeeper, the answer says when. With --output, the answer is
/// a list with one entry for each name.
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Gates by name, gated sources as gatedsource/NAME, pipelines as pipeline/NAME[/ENVIRONMENT], promotion
    /// strategies as promotionstrategy/NAME [ENVIRONMENT], rollouts as rollout/NAME, or other consumers as
    /// KIND/NAME
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    about: About,

    /// Let forces count even if nobody has verified who wrote them
    #[arg(long)]
    trust_unverified_identity: bool,

    /// Print in a form for programs
    #[arg(long, short = 'o', value_name = "FORMAT")]
    output: Option<Data>,
}

impl Why {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let (strategies, others) = strategies(&self.names);
        let (sources, others): (Vec<_>, Vec<_>) =
            (others.into_iter()).partition(|name| source_name(name).is_some());
        let (pipelines, others): (Vec<_>, Vec<_>) =
            (others.into_iter()).partition(|name| promotion_name(name).is_some());
        let (rollouts, others): (Vec<_>, Vec<_>) =
            (others.into_iter()).partition(|name| rollout_of(name).is_some());
        let (consumers, gates): (Vec<_>, Vec<_>) =
            (others.into_iter()).partition(|name| consumer(name).is_ok());
        let gates = gate_names(gates)?;
        let connection = cluster::connect(globals, Use::Requests).await?;
        let mut all = Vec::new();
        if !gates.is_empty() {
            let scope = Scope::Named(&gates, None);
            let (seen, now) = self.load(&connection, &scope).await?;
            for name in &gates {
                let key = connection.key(name);
                self.gate(&seen, &key, now, &mut all)?;
            }
        }
        for name in sources.iter().filter_map(|name| source_name(name)) {
            let source = cluster::existing(&connection, &name).await?;
            let (seen, now) = self.load(&connection, &Scope::Of(&source)).await?;
            let around = cluster::around(&connection, &source).await;
            let source = Source::new(&seen, &source, &around, now);
            match self.output {
                None => output::text(of_source::told(&source, &seen.zone(now.at)))?,
                Some(_) => all.push(source.data()),
            }
            seen.notes.iter().for_each(warn);
        }
        for (name, environment) in pipelines.iter().filter_map(|name| promotion_name(name)) {
            let environment = environment.as_deref();
            self.pipeline(&connection, &name, environment, &mut all)
                .await?;
        }
        for (name, environments) in &strategies {
            self.strategy(&connection, name, environments, &mut all)
                .await?;
        }
        for name in rollouts.iter().filter_map(|name| rollout_of(name)) {
            self.rollout(&connection, name, &mut all).await?;
        }
        for name in consumers {
            self.consumer(&connection, name, &mut all).await?;
        }
        if let Some(form) = self.output {
            output::data(form, &all)?;
        }
        Ok(Outcome::Yes)
    }

    async fn load(&self, connection: &Connection, scope: &Scope<'_>) -> Result<(Seen, Now)> {
        let seen = cluster::load(connection, scope, self.trust_unverified_identity).await?;
        Ok((seen, connection.present().await.now))
    }

    fn gate(&self, seen: &Seen, key: &Key, now: Now, all: &mut Vec<Value>) -> Result<()> {
        let scene = seen.scene(key, now.at);
        let mut scene = scene.context("a gate went away")?;
        let decision = seen.decide(&mut scene, self.about.at(now));
        let mut decided = Decided::new(&scene, decision, self.about.revision.as_ref());
        // A status speaks of no revision in particular.
        if self.about.revision.is_none() {
            decided.notes.extend(lag(seen, &decided.decision));
        }
        match self.output {
            None => output::text(explain::tree(&decided, &Zone::of(&scene))),
            Some(_) => {
                all.push(serde_json::to_value(decided.entry())?);
                Ok(())
            }
        }
    }

    /// A pipeline, with what the gates say of the promotion that is next, or of that to an environment.
    async fn pipeline(
        &self,
        connection: &Connection,
        name: &str,
        environment: Option<&str>,
        all: &mut Vec<Value>,
    ) -> Result<()> {
        let object = cluster::existing(connection, name).await?;
        let (seen, now) = self.load(connection, &Scope::Promoting(&object)).await?;
        let revision = self.about.revision.as_ref();
        let told = Told::new(&seen, &object, environment, revision, now)?;
        match self.output {
            None => output::text(told.text(&seen.zone(now.at)))?,
            Some(_) => all.push(told.data()),
        }
        seen.notes.iter().for_each(warn);
        Ok(())
    }

    /// A promotion strategy, with these environments or all.
    async fn strategy(
        &self,
        connection: &Connection,
        name: &str,
        environments: &[String],
        all: &mut Vec<Value>,
    ) -> Result<()> {
        let object: PromotionStrategy = cluster::existing(connection, name).await?;
        let strategy = Strategy::of(&object);
        let shown = Shown::new(&strategy, environments)?;
        if self.output.is_some() {
            all.push(shown.data());
            return Ok(());
        }
        let zone = cluster::zone(connection, false).await;
        output::text(shown.text(&zone))
    }

    /// A rollout, with what the gates say of the batch that is next.
    async fn rollout(
        &self,
        connection: &Connection,
        name: &str,
        all: &mut Vec<Value>,
    ) -> Result<()> {
        let object: Rollout = cluster::existing(connection, name).await?;
        let shown = view(&object, &cluster::workloads(connection, &object).await);
        let (seen, now) = self.load(connection, &Scope::Rolling(&object)).await?;
        let revision = self.about.revision.as_ref();
        let told = of_rollout::Told::new(&seen, (&object, shown), revision, now);
        match self.output {
            None => output::text(told.text(&seen.zone(now.at)))?,
            Some(_) => all.push(told.data()),
        }
        seen.notes.iter().for_each(warn);
        Ok(())
    }

    /// The decision about somebody who asks, and each gate that was asked for it.
    async fn consumer(
        &self,
        connection: &Connection,
        name: &str,
        all: &mut Vec<Value>,
    ) -> Result<()> {
        let subject = Asker::named(name)?.subject(&connection.namespace, &self.about);
        let scope = Scope::Named(&[], Some(&subject));
        let (seen, now) = self.load(connection, &scope).await?;
        let question = self.about.at(now);
        let decision = seen.ask(None, subject, question);
        let gates = checked(&seen, &decision, question);
        if self.output.is_some() {
            let gates: Vec<_> = gates.iter().map(Decided::entry).collect();
            all.push(json!({"kind": "Consumer", "decision": decision, "gates": gates}));
        } else {
            let subject = &decision.subject;
            let name = subject.name.as_deref().unwrap_or_default();
            let name = format!("{} {}/{name}", subject.kind, subject.namespace);
            let zone = seen.zone(now.at);
            let trees = gates.iter().map(|decided| explain::tree(decided, &zone));
            output::text(explain::sum(&name, &decision) + &trees.collect::<String>())?;
        }
        seen.notes.iter().for_each(warn);
        Ok(())
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
