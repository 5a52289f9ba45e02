//! A look at a GitRepositoryAccess: what its forge is asked, as errands, and what is reported of it.
//!
//! What the forge has said goes into [`Repositories`](crate::observe::repositories::Repositories), and those
//! who need it are woken. Nothing is decided from a status, so that what is asked does not wait for one.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use sluice_core::delivery::act;
use sluice_core::delivery::git_repository_access::interval;
use sluice_core::delivery::git_repository_access::report::{Act, Given, LISTED, report};
use sluice_core::verdict::condition::{READY, find};
use sluice_crds::GitRepositoryAccess;
use sluice_crds::git_repository_access::{AccessReference, GitRepositoryAccessStatus};

use super::promotion_strategy::access::may_use;
use super::{Context, Outcome, Reconciled, status};
use crate::act::forges::Located;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Cache, Change, Seen};
use crate::observe::world::World;

mod listing;
mod news;
mod reading;
pub(crate) mod readings;
#[cfg(test)]
mod tests;

impl Reconciled for GitRepositoryAccess {
    const KIND: Kind = Kind::GitRepositoryAccess;
    const MANAGER: &'static str = "gate-controller-gitrepositoryaccesses";

    fn cache(world: &World) -> &Cache<Self> {
        &world.accesses
    }

    /// It names Secrets alone, which are not watched.
    fn interests(&self, _: &ObjectKey) -> Vec<Work> {
        Vec::new()
    }

    /// Those who name it wait while it is not ready.
    fn may_matter(change: &Change<'_, Self>) -> bool {
        change.is_respecified() || change.differs(readiness)
    }

    async fn look(
        context: &Context,
        key: &ObjectKey,
        object: Arc<Self>,
        at: Timestamp,
    ) -> Result<Outcome, kube::Error> {
        let act::Report {
            status,
            changed,
            acts: _,
            wake,
        } = read(context, key, &object, at);
        if changed {
            let written = status::write(context, object.as_ref(), status).await?;
            news::tell(context, key, &object, &written);
        }
        Ok(Outcome::Wake(wake))
    }

    /// Those that this process decides about need what is known here.
    fn beside(context: &Context, key: &ObjectKey, object: Arc<Self>, at: Timestamp) -> Outcome {
        match context.repositories.is_needed(key) {
            true => Outcome::Wake(read(context, key, &object, at).wake),
            false => Outcome::NotOurs,
        }
    }
}

/// Takes in what the forge has said, wakes those to whom that is news, and begins what is to be asked next.
fn read(
    context: &Context,
    key: &ObjectKey,
    object: &Arc<GitRepositoryAccess>,
    now: Timestamp,
) -> act::Report<GitRepositoryAccessStatus, Act> {
    let (room, desk) = (&context.repositories, &context.readings);
    let interval = interval(object);
    let could = room.may_read(key);
    if room.see(object, interval.as_ref().ok().copied()) {
        desk.forget(key);
    }
    let mut woken = desk.take_in(room, key);
    woken.append(&mut room.outdated(key));
    woken.into_iter().for_each(|it| context.waker.wake(it));
    if room.may_read(key) == Some(true) {
        context.world.note_read(key);
    }
    if room.may_read(key) != could {
        // Whose a branch is may depend on it.
        let same = context.world.same_repository(key);
        for same in same.iter().filter(|it| *it != key) {
            let same = Work::own(Kind::GitRepositoryAccess, same.clone());
            context.waker.concerned(&same);
        }
    }
    desk.hasten(room, key);
    let mut known = room.known(key);
    desk.note(key, &mut known);
    let report = report(Given {
        object: Arc::clone(object),
        interval,
        known,
        now,
    });
    for act in &report.acts {
        match act {
            Act::List { request } => desk.list(context, object, request.clone()),
            Act::Answer => desk.ask(context, object),
        }
    }
    if context.world.accesses.get(key.borrowed()).is_none() {
        // It was deleted meanwhile.
        desk.forget(key);
        room.gone(key);
    }
    report
}

/// Whether what happens in a repository is for this process: something that it looks at may use the access, or nothing
/// at all may. Otherwise it is for another shard. What names the access and may not use it takes nothing away.
pub(crate) fn concerns_us(context: &Context, access: &ObjectKey) -> bool {
    let world = &context.world;
    let access = Work::own(Kind::GitRepositoryAccess, access.clone());
    let labels = |it: &Work| match it.kind {
        Kind::PromotionStrategy => {
            let object = object_of(&world.promotion_strategies, &it.key)?;
            may_use(world, &it.key, &object).then(|| object.labels().clone())
        }
        Kind::PullRequest => {
            let object = object_of(&world.pull_requests, &it.key)?;
            let (repository, into) = (&object.spec.repository, &object.spec.target_branch);
            let found = Located::find(world, &it.key.namespace, repository, into);
            found.is_ok().then(|| object.labels().clone())
        }
        _ => None,
    };
    let interested = world.interested(&access).into_iter();
    let ours = interested.filter_map(|it| Some(context.shard.holds(it.kind, &labels(&it)?)));
    let ours: Vec<_> = ours.collect();
    ours.is_empty() || ours.contains(&true)
}

fn object_of<K: Reconciled>(cache: &Cache<K>, key: &ObjectKey) -> Option<Arc<K>> {
    let seen = cache.get(key.borrowed());
    seen.as_ref().and_then(Seen::object).cloned()
}

/// Whether it can be used, and why not.
fn readiness(access: &GitRepositoryAccess) -> Option<(String, String)> {
    let ready = find(&access.status.as_ref()?.conditions, READY)?;
    Some((ready.status.clone(), ready.reason.clone()))
}

/// Whether its status says that its branches could be listed.
pub(super) fn is_listed(access: &GitRepositoryAccess) -> bool {
    readiness(access).is_some_and(|(_, reason)| reason == LISTED)
}

/// The access that an object named `key` means.
pub(super) fn named(key: &ObjectKey, access: &AccessReference) -> Work {
    let AccessReference { name, namespace } = access;
    let access = key.naming(namespace.as_deref(), name);
    Work::own(Kind::GitRepositoryAccess, access)
}
