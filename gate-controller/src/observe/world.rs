//! Everything that decisions are made from, in memory: the objects, the evidence, how far the
//! clock and the authors of annotations can be relied on.
//!
//! Reading it takes no request, so that a decision is right at its instant, even if the writing of
//! statuses takes long.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use hashbrown::HashMap;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use parking_lot::RwLock;
use sluice_core::gate::Named;
use sluice_core::gate::nested::{self, Sources};
use sluice_core::gate::{self, Answer, Identity, View};
use sluice_core::gatekeeper::approval::Ballot;
use sluice_core::gatekeeper::{self, Evidence, Keeper, Known};
use sluice_core::time::clock::Trust;
use sluice_crds::gate::GatekeeperReference;
use sluice_crds::gatekeeper::PipelineRule;
use sluice_crds::git_repository_access::AccessReference;
use sluice_crds::{
    Approval, CommitStatus, Gate, GatePolicy, GateReference, GatedSource, Gatekeeper,
    GitRepositoryAccess, Pipeline, PromotionStrategy, PullRequest, RevertCommit, Rollout,
};

use crate::cluster::key::{Cluster, KeyRef, ObjectKey, Work};
use crate::cluster::kind;
use crate::observe::cache::{Cache, Change, Seen};
use crate::observe::clock::Jumps;
use crate::observe::evidence::EvidenceStore;
use crate::observe::identity::Policies;

mod ballots;
mod flux;
mod interests;
mod openers;
mod policies;
mod standing;
#[cfg(test)]
pub(crate) mod tests;

use ballots::Ballots;
pub use flux::{Flux, Place};
use interests::Interests;
use openers::Openers;

/// The caches and what is derived from them.
pub struct World {
    /// All gates.
    pub gates: Cache<Gate>,
    /// All gatekeepers.
    pub gatekeepers: Cache<Gatekeeper>,
    /// All approvals.
    pub approvals: Cache<Approval>,
    /// All gate policies.
    pub policies: Cache<GatePolicy>,
    /// All pipelines.
    pub pipelines: Cache<Pipeline>,
    /// All pull requests.
    pub pull_requests: Cache<PullRequest>,
    /// All accesses to repositories.
    pub accesses: Cache<GitRepositoryAccess>,
    /// All promotion strategies.
    pub promotion_strategies: Cache<PromotionStrategy>,
    /// All commit statuses.
    pub commit_statuses: Cache<CommitStatus>,
    /// All reverts.
    pub revert_commits: Cache<RevertCommit>,
    /// All rollouts.
    pub rollouts: Cache<Rollout>,
    /// All gated sources.
    pub gated_sources: Cache<GatedSource>,
    /// All objects of the kind that tests add.
    #[cfg(test)]
    pub(crate) probes: Cache<tests::probe::Probe>,
    /// The objects of Flux that matter to them.
    pub flux: Flux,
    /// All namespaces, of which policies select some by their labels.
    pub namespaces: Cache<PartialObjectMeta<Namespace>>,
    /// The admission policies that make sure of identities.
    pub verifiers: Policies,
    /// What was observed for gatekeepers.
    pub evidence: Arc<EvidenceStore>,
    ballots: Ballots,
    keepers: RwLock<HashMap<ObjectKey, Arc<Keeper>>>,
    interests: Arc<Interests>,
    openers: Openers,
    standing: RwLock<Standing>,
    /// Watches the clock from which the instants of decisions come. None: it is set by hand.
    jumps: Option<Arc<Jumps>>,
    /// How many times the clock had jumped when it was last compared.
    compared: AtomicU64,
    /// Whether it has been found out how far the clock and the authors can be relied on.
    known: AtomicBool,
    /// Whether statuses report watches that are silent.
    tells_silence: AtomicBool,
    /// Whether forces count even if nothing verifies identities.
    trusts_all: bool,
    cross_namespace: bool,
    /// The only namespace that is watched. None: all are.
    only: Option<Arc<str>>,
}

/// How far the clock and the authors of annotations can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The clock.
    pub trust: Trust,
    /// The authors.
    pub identity: Identity,
}

impl World {
    /// An empty world.
    pub fn new(standing: Standing, cross_namespace: bool) -> Self {
        let interests = Arc::<Interests>::default();
        Self {
            gates: Cache::default(),
            gatekeepers: Cache::default(),
            approvals: Cache::default(),
            policies: Cache::default(),
            pipelines: Cache::default(),
            pull_requests: Cache::default(),
            accesses: Cache::default(),
            promotion_strategies: Cache::default(),
            commit_statuses: Cache::default(),
            revert_commits: Cache::default(),
            rollouts: Cache::default(),
            gated_sources: Cache::default(),
            #[cfg(test)]
            probes: Cache::default(),
            flux: Flux::on(Cluster::Own, Arc::clone(&interests)),
            namespaces: Cache::default(),
            verifiers: Policies::default(),
            evidence: Arc::default(),
            ballots: Ballots::default(),
            keepers: RwLock::default(),
            interests,
            openers: Openers::default(),
            standing: RwLock::new(standing),
            jumps: None,
            compared: AtomicU64::new(0),
            known: AtomicBool::new(false),
            tells_silence: AtomicBool::new(false),
            trusts_all: standing.identity == Identity::Trusted,
            cross_namespace,
            only: None,
        }
    }

    /// Whether a gate is open at `at`, decided here and now.
    pub fn answer(&self, gate: &Gate, at: Timestamp) -> Answer {
        self.with_view(gate, at, |view| gate::answer(view, self.now(at)))
    }

    /// Does something with a gate and everything that it depends on.
    pub fn with_view<R>(&self, gate: &Gate, at: Timestamp, act: impl FnOnce(&View<'_>) -> R) -> R {
        act(&nested::gather(self, gate, at).view(gate))
    }

    /// A gatekeeper, ready to be asked about `at`, with everything that it depends on.
    pub fn keeper(&self, object: &Arc<Gatekeeper>, at: Timestamp) -> Arc<Keeper> {
        let keeper = self.keeper_alone(object, at);
        match object.spec.gates {
            Some(_) => Arc::new(nested::complete(self, &keeper, at)),
            None => keeper,
        }
    }

    /// The same; of the kind `gates` without its gates.
    fn keeper_alone(&self, object: &Arc<Gatekeeper>, at: Timestamp) -> Arc<Keeper> {
        let key = KeyRef::of(object.as_ref());
        let evidence = gatekeeper::evidence(object, self.evidence.of(object), self);
        let known = self.keepers.read().get(&key).cloned();
        let keeper = match known.filter(|keeper| is_current(keeper, object, &evidence, at)) {
            Some(keeper) if Arc::ptr_eq(keeper.object(), object) => return keeper,
            // Only metadata or status have changed: what was made from its spec is still right.
            Some(keeper) => Arc::new(keeper.with_object(Arc::clone(object))),
            // Outside the lock: a calendar may take a while, and other decisions must go on.
            None => Arc::new(Keeper::new(Arc::clone(object), evidence, at)),
        };
        self.keepers.write().insert(key.into(), Arc::clone(&keeper));
        keeper
    }

    /// Notes an approval as it was, and as it is. Returns the gatekeepers that it was and is for.
    pub fn note_approval(&self, change: &Change<'_, Approval>) -> BTreeSet<ObjectKey> {
        let mut concerned = self.ballots.note(change);
        if self.ballots.note_readable(change) {
            // It is not known for which.
            let all = self.gatekeepers.keys().into_iter();
            concerned.extend(all.filter(|key| key.namespace == change.key.namespace));
        }
        concerned
    }

    /// The approvals of a pipeline's promotions. None: one in its namespace cannot be read, which may be a
    /// rejection.
    pub fn approvals_of(&self, pipeline: &ObjectKey) -> Option<Vec<Arc<Approval>>> {
        let readable = self.ballots.unreadable_in(&pipeline.namespace).is_none();
        readable.then(|| self.ballots.on(pipeline))
    }

    /// Whether objects may name those of other namespaces.
    pub fn crosses_namespaces(&self) -> bool {
        self.cross_namespace
    }

    /// Notes what an object of that name is interested in; nothing when it is gone.
    pub fn note(&self, who: &Work, what: Vec<Work>) {
        if what
            .iter()
            .any(|what| matches!(what.kind, kind::Kind::Flux(_)))
        {
            self.flux.want();
        }
        self.interests.set(who, || what);
    }

    /// The objects that have exactly this name in their spec.
    pub fn interested(&self, what: &Work) -> Vec<Work> {
        self.interests.of(what)
    }

    /// Notes what names the repository of an access. None: the access is gone, or nothing does.
    pub fn note_access(&self, access: &ObjectKey, repository: Option<&str>) {
        self.openers.set(access, repository);
    }

    /// Notes that an access has read its repository.
    pub fn note_read(&self, access: &ObjectKey) {
        self.openers.note_read(access);
    }

    /// The accesses to the same repository that have read that, and this one.
    pub fn readers(&self, access: &ObjectKey) -> Arc<BTreeSet<ObjectKey>> {
        self.openers.readers(access)
    }

    /// The accesses to the same repository, this one among them.
    pub fn same_repository(&self, access: &ObjectKey) -> Arc<BTreeSet<ObjectKey>> {
        self.openers.beside(access)
    }

    /// The objects whose decisions depend on an object of that name, directly or indirectly, whether or
    /// not it is there.
    pub fn concerned(&self, what: &Work) -> BTreeSet<Work> {
        self.interests.concerned(what)
    }

    /// Whether all namespaces are watched. A controller that sees the gates of one namespace cannot know
    /// whether the other gates of a policy are there, and several such controllers would each write a
    /// different status.
    pub fn sees_all_namespaces(&self) -> bool {
        self.only.is_none()
    }

    /// What a policy means by a gate that it names: policies name gates in any namespace.
    pub fn gate_of_policy(&self, reference: &GateReference) -> Named<Arc<Gate>> {
        let namespace = reference.namespace.as_deref().unwrap_or_default();
        self.find(&self.gates, namespace, Some(namespace), &reference.name)
    }

    /// What an object in the namespace `from` means by an access to a repository.
    pub fn access(&self, from: &str, access: &AccessReference) -> Named<Arc<GitRepositoryAccess>> {
        let AccessReference { name, namespace } = access;
        self.find(&self.accesses, from, namespace.as_deref(), name)
    }

    /// Lets what is kept ready for a gatekeeper refer to its newest object; if the gatekeeper is gone,
    /// nothing is kept. Otherwise the old object would take memory until the next question, which may
    /// never come.
    pub fn note_gatekeeper(&self, key: &ObjectKey, object: Option<&Arc<Gatekeeper>>) {
        let mut keepers = self.keepers.write();
        let Some(object) = object else {
            keepers.remove(key);
            return;
        };
        if let Some(keeper) = keepers.get_mut(key)
            && asks_the_same(keeper.object(), object)
        {
            *keeper = Arc::new(keeper.with_object(Arc::clone(object)));
        }
    }

    /// What an object in the namespace `from` means by the name of another.
    fn find<K>(
        &self,
        cache: &Cache<K>,
        from: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Named<Arc<K>> {
        let namespace = namespace.unwrap_or(from);
        let is_elsewhere = |only: &Arc<str>| **only != *namespace;
        if namespace != from && !self.cross_namespace
            || self.only.as_ref().is_some_and(is_elsewhere)
        {
            return Named::Forbidden;
        }
        match cache.get(KeyRef { namespace, name }) {
            None => Named::Missing,
            Some(Seen::Unreadable(why)) => Named::Unreadable(why),
            Some(Seen::Object(object)) => Named::Here(object),
        }
    }
}

impl Sources for World {
    fn gate(&self, from: &str, reference: &GateReference) -> Named<Arc<Gate>> {
        let GateReference { name, namespace } = reference;
        self.find(&self.gates, from, namespace.as_deref(), name)
    }

    fn gatekeeper(
        &self,
        from: &str,
        reference: &GatekeeperReference,
        at: Timestamp,
    ) -> Named<Arc<Keeper>> {
        let GatekeeperReference { name, namespace } = reference;
        let found = self.find(&self.gatekeepers, from, namespace.as_deref(), name);
        found.map(|object| self.keeper_alone(&object, at))
    }

    fn identity(&self, _: &Gate) -> Identity {
        self.standing().identity
    }

    fn unwatched(&self) -> Option<Arc<str>> {
        self.silence().map(Arc::from)
    }
}

impl Known for World {
    fn is_verified(&self, _: &Gatekeeper) -> bool {
        self.standing().identity != Identity::Unverified
    }

    fn ballot(&self, gatekeeper: &Gatekeeper) -> Arc<Ballot> {
        self.ballots.of(KeyRef::of(gatekeeper))
    }

    fn unreadable(&self, gatekeeper: &Gatekeeper) -> Option<Arc<str>> {
        self.ballots.unreadable_in(KeyRef::of(gatekeeper).namespace)
    }

    fn pipeline(
        &self,
        gatekeeper: &Gatekeeper,
        named: &PipelineRule,
    ) -> Option<Named<Arc<Pipeline>>> {
        let PipelineRule {
            name,
            namespace,
            environment: _,
        } = named;
        let from = KeyRef::of(gatekeeper).namespace;
        Some(self.find(&self.pipelines, from, namespace.as_deref(), name))
    }
}

/// Whether a keeper still matches its object and evidence.
fn is_current(keeper: &Keeper, object: &Gatekeeper, evidence: &Evidence, at: Timestamp) -> bool {
    asks_the_same(keeper.object(), object) && keeper.evidence() == evidence && keeper.reaches(at)
}

/// Whether two versions of a gatekeeper differ in nothing that it is made ready from.
fn asks_the_same(known: &Gatekeeper, seen: &Gatekeeper) -> bool {
    let (known, seen) = (&known.metadata, &seen.metadata);
    known.uid == seen.uid && known.generation == seen.generation && known.labels == seen.labels
}
