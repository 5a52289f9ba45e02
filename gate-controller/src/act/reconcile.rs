//! One look at one object: gather (I/O in), decide (pure, in `sluice-core`), apply (I/O out).
//!
//! Each kind is a file or a folder here, and states by [`Reconciled`] what the rest of the controller
//! needs to know of it. Its look collects what the decision needs, lets it be made, and carries it out:
//! statuses and other objects are written in one way ([`write`]). Events only wake; a look is given
//! nothing but the object's name.

use std::fmt::Debug;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::core::object::HasStatus;
use kube::{Client, ResourceExt};
use sluice_core::delivery::pipeline::{Errand, Outcome as Ended};
use sluice_crds::{
    CommitStatus, Gate, GatePolicy, GateReference, GatedSource, Gatekeeper, GitRepositoryAccess,
    Pipeline, PromotionStrategy, PullRequest, RevertCommit, Rollout,
};

use crate::act::errands::Errands;
use crate::act::forges::Forges;
use crate::act::queue::urgency;
use crate::act::shard::Shard;
use crate::act::waker::Waker;
use crate::artifacts::Store;
use crate::cluster::key::{Cluster, ObjectKey, Work};
use crate::cluster::kind::{Kind, Urgency};
use crate::lease::Leadership;
use crate::observe::apps::Apps;
use crate::observe::cache::{Cache, Change, Seen};
use crate::observe::clock::Clock;
use crate::observe::repositories::Repositories;
use crate::observe::workloads::Workloads;
use crate::observe::world::World;
use crate::tell::audit::Audit;
use crate::tell::counters::Counters;
use crate::tell::decisions::Decisions;
use crate::tell::definitions::{Defines, Definitions, Telling};
use crate::tell::events::Events;
use crate::tell::events::promotions::Promotions;
use commit_status::postings::Postings;
use git_repository_access::readings::Readings;
use pull_request::at_forges::AtForges;
use rollout::calls::Calls;

pub mod commit_status;
mod consumer;
pub mod gate;
pub mod gate_policy;
pub mod gated_source;
pub mod gatekeeper;
pub mod git_repository_access;
mod news;
mod owned;
mod patch;
pub mod pipeline;
pub mod promotion_strategy;
pub mod pull_request;
pub mod revert_commit;
pub(crate) mod rollout;
mod status;
#[cfg(test)]
mod tests;
mod write;

/// When to look again at objects that wait because too little is heard of the watches.
const SOON: SignedDuration = SignedDuration::from_secs(5);

/// What every look needs.
pub struct Context {
    /// The API server.
    pub client: Client,
    /// The caches.
    pub world: Arc<World>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Where events are sent.
    pub events: Events,
    /// The audit log.
    pub audit: Audit,
    /// Reports decisions about what goes out.
    pub decisions: Arc<Decisions>,
    /// Definitions of objects that are not reported yet.
    pub definitions: Arc<Definitions>,
    /// The apps that pipelines promote.
    pub apps: Arc<Apps>,
    /// What pipelines have others do.
    pub(crate) errands: Arc<Errands<Errand, Ended>>,
    /// The workloads of Rollouts.
    pub workloads: Arc<Workloads>,
    /// The hooks that Rollouts call.
    pub(crate) calls: Arc<Calls>,
    /// The way to forges.
    pub forges: Arc<Forges>,
    /// What is under way at forges for pull requests.
    pub(crate) at_forges: Arc<AtForges>,
    /// What forges are being told about commits.
    pub(crate) postings: Arc<Postings>,
    /// What is known of the repositories that promotions go through.
    pub repositories: Arc<Repositories>,
    /// What is being asked of their forges.
    pub(crate) readings: Arc<Readings>,
    /// Sends the notifications of promotions. None: there is no `--events-addr`.
    pub promotions: Option<Arc<Promotions>>,
    /// Where artifacts are stored. None: not here, since there is no `--storage-path`.
    pub artifacts: Option<Arc<Store>>,
    /// What is counted.
    pub counters: Arc<Counters>,
    /// The objects that this controller writes to.
    pub shard: Shard,
    /// Until when this replica may write.
    pub leadership: Leadership,
    /// Wakes those whom a write concerns.
    pub(crate) waker: Waker,
}

impl Context {
    /// The outcome of a look while too little is heard of a watch, and statuses do not say that yet.
    /// Questions are answered with it at once. But what is decided now is written only if the silence
    /// lasts: otherwise all of it would be reverted afterwards, and what has gone out would be held for a
    /// moment.
    fn waits(&self, at: Timestamp) -> Option<Outcome> {
        let waits = self.world.silence().is_some() && !self.world.tells_silence();
        waits.then(|| Outcome::Wake(at.checked_add(SOON).ok()))
    }

    /// Reports definitions of objects.
    pub(crate) fn telling(&self) -> Telling<'_> {
        Telling {
            definitions: &self.definitions,
            events: &self.events,
            audit: &self.audit,
        }
    }
}

/// How a look has ended.
#[derive(Debug)]
pub enum Outcome {
    /// Look again at an instant, or when something changes.
    Wake(Option<Timestamp>),
    /// The same, but something was refused, and the status says so: it has to be retried.
    Unfinished {
        /// What was refused.
        error: Box<kube::Error>,
        /// When to look again, too.
        wake: Option<Timestamp>,
    },
    /// The object is gone.
    Gone,
    /// It belongs to another shard, or is of a kind that others look at.
    NotOurs,
}

/// A kind of object that is looked at: all that the rest of the controller knows of it, except for its line
/// in the table of [`Kind`]s.
pub(crate) trait Reconciled: Defines + HasStatus + Clone + Debug + Send + Sync {
    /// Its line in the table.
    const KIND: Kind;

    /// Who owns its status.
    const MANAGER: &'static str;

    /// Where its objects are kept.
    fn cache(world: &World) -> &Cache<Self>;

    /// Whether a controller that watches these namespaces looks at objects of this kind, and reports on
    /// them.
    fn is_reported(_: &World) -> bool {
        true
    }

    /// The names of everything that it depends on, as its spec has them. `key` is its own name.
    fn interests(&self, key: &ObjectKey) -> Vec<Work>;

    /// Whether a change may matter to those who are interested in the object.
    fn may_matter(change: &Change<'_, Self>) -> bool;

    /// How urgent a look is after a change.
    fn urgency(_: &Change<'_, Self>) -> Urgency {
        urgency(Self::KIND)
    }

    /// Forgets what this process keeps for an object that was deleted during the look at it.
    fn forget(_: &Context, _: &ObjectKey) {}

    /// What is done about an object of another shard, at `at`: nothing is written to it.
    fn beside(_: &Context, _: &ObjectKey, _: Arc<Self>, _: Timestamp) -> Outcome {
        Outcome::NotOurs
    }

    /// One look: gathers what the decision at `at` needs, decides, and carries it out.
    ///
    /// # Errors
    /// The API server refused a write, or did not answer.
    fn look(
        context: &Context,
        key: &ObjectKey,
        object: Arc<Self>,
        at: Timestamp,
    ) -> impl Future<Output = Result<Outcome, kube::Error>> + Send;
}

/// What a consumer of gates of any kind depends on: the gates that it names, and everything that may make
/// it wait for others: every policy, and the labels of its namespace, by which policies select.
pub(crate) fn consumer_interests(key: &ObjectKey, gates: &[GateReference]) -> Vec<Work> {
    let named = gates
        .iter()
        .map(|it| key.naming(it.namespace.as_deref(), &it.name));
    let named = named.map(|gate| Work::own(Kind::Gate, gate));
    let namespace = ObjectKey {
        namespace: "".into(),
        name: Arc::clone(&key.namespace),
    };
    let policies = [
        Work::own(Kind::Namespace, namespace),
        Work::all(Kind::GatePolicy, ""),
    ];
    named.chain(policies).collect()
}

/// Looks at one object.
///
/// # Errors
/// The API server refused a write, or did not answer.
pub async fn look(context: &Context, work: &Work) -> Result<Outcome, kube::Error> {
    if work.cluster != Cluster::Own {
        return Ok(Outcome::NotOurs);
    }
    match work.kind {
        Kind::Gate => look_at::<Gate>(context, &work.key).await,
        Kind::Gatekeeper => look_at::<Gatekeeper>(context, &work.key).await,
        Kind::GatePolicy => look_at::<GatePolicy>(context, &work.key).await,
        Kind::GatedSource => look_at::<GatedSource>(context, &work.key).await,
        Kind::Pipeline => look_at::<Pipeline>(context, &work.key).await,
        Kind::PullRequest => look_at::<PullRequest>(context, &work.key).await,
        Kind::GitRepositoryAccess => look_at::<GitRepositoryAccess>(context, &work.key).await,
        Kind::PromotionStrategy => look_at::<PromotionStrategy>(context, &work.key).await,
        Kind::CommitStatus => look_at::<CommitStatus>(context, &work.key).await,
        Kind::RevertCommit => look_at::<RevertCommit>(context, &work.key).await,
        Kind::Rollout => look_at::<Rollout>(context, &work.key).await,
        #[cfg(test)]
        Kind::Probe => {
            look_at::<crate::observe::world::tests::probe::Probe>(context, &work.key).await
        }
        Kind::Namespace | Kind::Flux(_) => Ok(Outcome::NotOurs),
    }
}

/// An object that this version cannot read counts as gone: it admits nothing, and there is nothing to
/// write.
async fn look_at<K: Reconciled>(
    context: &Context,
    key: &ObjectKey,
) -> Result<Outcome, kube::Error> {
    let Some(Seen::Object(object)) = K::cache(&context.world).get(key.borrowed()) else {
        return Ok(Outcome::Gone);
    };
    let at = context.clock.now();
    if !context.shard.holds(K::KIND, object.labels()) {
        return Ok(K::beside(context, key, object, at));
    }
    let decides = K::KIND.look().is_some_and(|look| look.decides);
    if let Some(waits) = context.waits(at).filter(|_| decides) {
        return Ok(waits);
    }
    let outcome = K::look(context, key, object, at).await;
    if K::cache(&context.world).get(key.borrowed()).is_none() {
        K::forget(context, key);
    }
    outcome
}
