//! A look at a Rollout.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use kube::core::Request;
use sluice_core::delivery::rollout::given::Name;
use sluice_core::delivery::rollout::{self, Answer, Given, Question, Told};
use sluice_core::gate;
use sluice_core::revision::Revision;
use sluice_core::verdict::question;
use sluice_crds::rollout::RolloutPlan;
use sluice_crds::{GateReference, Rollout, RolloutSpec};

use super::{Context, Outcome, Reconciled, consumer, consumer_interests};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Cache, Change, Progress};
use crate::observe::world::World;

mod account;
mod apply;
pub(crate) mod calls;
mod gather;
mod news;
#[cfg(test)]
mod tests;

use gather::InMemory;

impl Reconciled for Rollout {
    const KIND: Kind = Kind::Rollout;
    const MANAGER: &'static str = rollout::MANAGER;

    fn cache(world: &World) -> &Cache<Self> {
        &world.rollouts
    }

    /// The gates of all batches, and the gatekeepers of its metrics.
    fn interests(&self, key: &ObjectKey) -> Vec<Work> {
        let mut all = consumer_interests(key, &gates(&self.spec));
        let measured = measured(&self.spec.rollout_plan).into_iter();
        all.extend(measured.map(|name| Work::own(Kind::Gatekeeper, key.naming(None, name))));
        all
    }

    /// That it is gone matters to those with a workload of its own: the watch of Rollouts wakes them.
    fn may_matter(_: &Change<'_, Self>) -> bool {
        false
    }

    fn forget(context: &Context, key: &ObjectKey) {
        context.forget_rollout(key);
    }

    /// What its gates let out goes out, batch by batch.
    async fn look(
        context: &Context,
        key: &ObjectKey,
        object: Arc<Self>,
        began: Timestamp,
    ) -> Result<Outcome, kube::Error> {
        let world = &context.world;
        // What is not known yet wakes this object as soon as it is known.
        if !world.is_ready() || world.rollouts.progress() == Progress::Unanswered {
            return Ok(Outcome::Wake(None));
        }
        let mut memory = InMemory::read(context, key, &object);
        let names = memory.names(context, key);
        if context.workloads.watched.name(key, names) {
            // Only from now on it is woken by changes of what it names.
            memory = InMemory::read(context, key, &object);
        }
        let now = world.now(context.clock.now());
        let given = match gather::gather(context, key, &object, memory, now).await {
            Ok(given) => given,
            Err(error) => return account::refused(context, key, &object, error, now).await,
        };
        let considered = rollout::consider(&given);
        let answer = match &considered.question {
            None => Answer::NotAsked,
            Some(question) => ask(context, &given, question, considered.takes_effect).await,
        };
        let report = rollout::report(&given, &considered, &answer);
        let rollout::Report {
            report,
            news,
            hears,
        } = report;
        let before = object.status.clone().unwrap_or_default();
        let after = report.status.clone();
        let outcome = consumer::apply(context, key, &object, report).await?;
        let own = Work::own(Kind::Rollout, key.clone());
        let batches = &context.counters.batches;
        batches.note(&own, (&before, &after), (began, context.clock.now()));
        // Where there is news nothing was done but the status, which was accepted.
        for item in news {
            news::tell(context, key, (&object, &after), item);
        }
        if hears {
            context.calls.accepted(&own, &given.arrived);
        }
        Ok(outcome)
    }
}

/// The requests for a workload.
fn requests(key: &ObjectKey, name: &Name) -> Request {
    let (version, plural) = (name.kind.api_version(), name.kind.plural());
    let namespace = &key.namespace;
    Request::new(format!("/apis/{version}/namespaces/{namespace}/{plural}"))
}

/// Asks the gates that a batch has to pass. The answer is recorded, but for a yes that does not take effect yet.
async fn ask(context: &Context, given: &Given, question: &Question, takes_effect: bool) -> Answer {
    let Question { subject, sets, .. } = question;
    let gates = gate::set::gather_all(context.world.as_ref(), sets, subject, given.now.at);
    if gates.is_empty() {
        return Answer::NoGates;
    }
    let revision = subject.revision.as_deref();
    let revision = revision.and_then(|it| Revision::parse(it).ok());
    let asked = question::Question::new(given.now, revision.as_ref());
    let decision = gates.decide(subject.clone(), asked);
    let decision = match (decision.allowed, takes_effect) {
        // It is asked again when it takes effect: only that answer is reported.
        (true, false) => decision,
        // By a no nothing is done.
        (allowed, _) => consumer::record(context, &decision, allowed).await,
    };
    Answer::Told(Box::new(Told { gates, decision }))
}

/// The gates of a Rollout and of its batches.
fn gates(spec: &RolloutSpec) -> Vec<GateReference> {
    let batches = spec.rollout_plan.rollout_batches.iter();
    let sets = batches.filter_map(|batch| batch.gates.as_ref());
    let sets = spec.gates.iter().chain(sets);
    sets.flat_map(|set| set.refs.iter().cloned()).collect()
}

/// The names of the gatekeepers that measure for a plan.
fn measured(plan: &RolloutPlan) -> BTreeSet<&str> {
    let batches = plan.rollout_batches.iter();
    let metrics = batches.flat_map(|batch| &batch.canary_metric);
    let metrics = plan.canary_metric.iter().chain(metrics);
    let named = metrics.map(|metric| match &metric.template_ref {
        Some(template) => template.name.as_str(),
        None => metric.name.as_str(),
    });
    named.collect()
}

impl Context {
    /// A Rollout is gone, or another shard looks at it.
    pub(crate) fn forget_rollout(&self, key: &ObjectKey) {
        let own = Work::own(Kind::Rollout, key.clone());
        self.workloads.forget(key);
        self.calls.forget(&own);
        self.counters.batches.forget(&own);
    }
}
