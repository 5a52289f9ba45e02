//! What is under way at forges for PullRequests, and what this process remembers of them.
//!
//! What comes in: tasks. What goes out: how the last one of each PullRequest stands. All of it is forgotten
//! when this replica no longer leads: the next leader asks the forges again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use sluice_core::delivery::pull_request::{Errand, Failure, Outcome, Recent, Task, Word};
use sluice_crds::PullRequest;
use sluice_crds::pipeline::MergeGate;
use sluice_forges::{May, Urgency};

use super::lists::{Key, Lists};
use super::owners::Found;
use super::task::{self, Desk};
use crate::act::claim::Claim;
use crate::act::errands::{Errands, Standing, Term, Turn};
use crate::act::forges::{Failure as Unlocated, Forges, Located};
use crate::act::reconcile::Context;
use crate::act::waker::Waker;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::lease::Leadership;
use crate::observe::cache::Seen;
use crate::observe::clock::Clock;
use crate::observe::world::World;

/// How a forge is asked about a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ask {
    /// By a list that does for many.
    ByList,
    /// Alone: it has probably been merged.
    Alone,
}

/// What is under way, and what is remembered.
pub(crate) struct AtForges {
    errands: Arc<Errands<Task, Outcome>>,
    lists: Arc<Lists>,
    /// Whether the errand that was begun last for each may have changed something.
    claims: Mutex<HashMap<ObjectKey, Arc<Claim>>>,
    recent: Mutex<HashMap<ObjectKey, Recent>>,
    /// Those whose forge is to be asked now, and not when it is their time.
    asked: Mutex<HashMap<ObjectKey, Ask>>,
    /// The owners whose status this process has decided since it leads.
    decided: Mutex<HashSet<Work>>,
}

impl AtForges {
    /// Nothing is under way. Each errand that ends wakes its PullRequest.
    pub(crate) fn new(leadership: Leadership, waker: Waker) -> Self {
        Self {
            errands: Errands::new(leadership, move |work| waker.wake(work.clone())),
            lists: Arc::default(),
            claims: Mutex::default(),
            recent: Mutex::default(),
            asked: Mutex::default(),
            decided: Mutex::default(),
        }
    }

    /// How the last errand stands.
    pub(super) fn errand(&self, of: &ObjectKey) -> Errand {
        let standing = self.errands.of(&work(of)).into_iter().next();
        match standing {
            None => Errand::None,
            Some((task, Standing::UnderWay)) => Errand::UnderWay {
                is_sent: self.claim(of).is_some_and(|claim| claim.is_sent()),
                task,
            },
            Some((task, Standing::Over(Ok(outcome)))) => Errand::Over(Box::new((task, outcome))),
            Some((task, Standing::Over(Err(unfinished)))) => {
                let failure = Failure::new(Word::Unanswered, unfinished.to_string());
                Errand::Over(Box::new((task, Outcome::Failed(failure))))
            }
        }
    }

    pub(super) fn claim(&self, of: &ObjectKey) -> Option<Arc<Claim>> {
        self.claims.lock().get(of).cloned()
    }

    /// The status that says how the last errand ended was accepted.
    pub(super) fn accepted(&self, of: &ObjectKey) {
        self.errands.keep(&work(of), |_| false);
        self.claims.lock().remove(of);
    }

    /// What is remembered of one.
    pub(super) fn recent(&self, of: &ObjectKey) -> Recent {
        let recent = self.recent.lock();
        recent.get(of).cloned().unwrap_or_default()
    }

    pub(super) fn remember(&self, of: &ObjectKey, recent: Recent) {
        self.recent.lock().insert(of.clone(), recent);
    }

    /// Has one asked about by its next look, which is now, if this process looks at it. If that is
    /// forgotten, its forge is asked at the usual time.
    pub(crate) fn look_now(&self, context: &Context, of: &ObjectKey) {
        self.ask(context, of, Ask::Alone);
    }

    /// Something has changed in the repository of this access. All that name it are looked at now, by lists that are
    /// got anew, unless so much has changed of late that they are looked at in their usual time.
    pub(crate) fn look_now_by(&self, context: &Context, access: &ObjectKey) {
        let seen = context.world.accesses.get(access.borrowed());
        let object = seen.as_ref().and_then(Seen::object);
        let now = context.clock.now();
        if object.is_some_and(|object| !self.lists.outdate(&Located::by(object), now)) {
            return;
        }
        let access = Work::own(Kind::GitRepositoryAccess, access.clone());
        let by = context.world.interested(&access).into_iter();
        for it in by.filter(|it| it.kind == Kind::PullRequest) {
            self.ask(context, &it.key, Ask::ByList);
        }
    }

    fn ask(&self, context: &Context, of: &ObjectKey, ask: Ask) {
        let seen = context.world.pull_requests.get(of.borrowed());
        let Some(object) = seen.as_ref().and_then(Seen::object) else {
            return;
        };
        let labels = object.metadata.labels.clone().unwrap_or_default();
        if context.shard.holds(Kind::PullRequest, &labels) {
            let mut asked = self.asked.lock();
            let known = asked.entry(of.clone()).or_insert(ask);
            *known = ask.max(*known);
            context.waker.wake(work(of));
        }
    }

    /// How it is to be asked about now, if it is. It is said once.
    pub(super) fn take_asked(&self, of: &ObjectKey) -> Option<Ask> {
        self.asked.lock().remove(of)
    }

    /// Whether it is still to be asked about.
    pub(super) fn is_asked(&self, of: &ObjectKey) -> bool {
        self.asked.lock().contains_key(of)
    }

    /// The API server has accepted what was decided about an owner: what it says of its pull requests is of
    /// this leader.
    pub(crate) fn decided(&self, context: &Context, kind: Kind, owner: &ObjectKey) {
        let owner = Work::own(kind, owner.clone());
        if self.decided.lock().insert(owner.clone()) {
            let interested = context.world.interested(&owner).into_iter();
            let own = interested.filter(|it| it.kind == Kind::PullRequest);
            own.for_each(|it| context.waker.wake(it));
        }
    }

    /// Whether what an owner says is of the one who decides about it now. Where that is another process, it
    /// has a leader of its own, which does not change with this one.
    pub(super) fn is_current(&self, context: &Context, owner: &Found) -> bool {
        let work = owner.work();
        let is_ours = context.shard.holds(work.kind, owner.labels());
        !is_ours || self.decided.lock().contains(&work)
    }

    /// An owner is gone, or another shard looks at it.
    pub(crate) fn forget_owner(&self, kind: Kind, owner: &ObjectKey) {
        self.decided.lock().remove(&Work::own(kind, owner.clone()));
    }

    /// It is gone, or another shard looks at it. That it may not be merged now is still said to its forge.
    pub(crate) fn forget(&self, of: &ObjectKey) {
        self.recent.lock().remove(of);
        self.asked.lock().remove(of);
        self.claims.lock().remove(of);
        self.errands.leave(&work(of), Task::withdraws);
    }

    /// Another replica leads.
    pub(crate) fn clear(&self) {
        self.recent.lock().clear();
        self.claims.lock().clear();
        self.asked.lock().clear();
        self.decided.lock().clear();
        self.errands.clear();
    }

    /// Begins a task. What is under way for it ends; if that may have changed something by now, its end leads to
    /// another look, and nothing is begun.
    pub(super) fn begin(
        &self,
        context: &Context,
        key: &ObjectKey,
        object: Arc<PullRequest>,
        task: Task,
    ) {
        let work = work(key);
        let is_sent = self.claim(key).is_some_and(|claim| !claim.end());
        if is_sent && !self.errands.of(&work).is_empty() {
            return;
        }
        let dropped = self.errands.of(&work).into_keys();
        if dropped
            .into_iter()
            .any(|it| matches!(it, Task::Merge { .. }))
        {
            let mut recent = self.recent.lock();
            recent.entry(key.clone()).or_default().is_merge_dropped = true;
        }
        self.errands.keep(&work, |_| false);
        let claim = Arc::<Claim>::default();
        self.claims.lock().insert(key.clone(), Arc::clone(&claim));
        let (forges, clock) = (Arc::clone(&context.forges), Arc::clone(&context.clock));
        let (lists, world) = (Arc::clone(&self.lists), Arc::clone(&context.world));
        let found = located(&world, key, &object, &task);
        let line = found.map_or_else(|_| String::new(), |at| at.credential());
        let (errand, key) = (task.clone(), key.clone());
        let turn = match urgency(&object, &task) {
            Urgency::Withdrawal => Turn::First,
            Urgency::Merge => Turn::Merge,
            Urgency::Needed | Urgency::Status | Urgency::Opening | Urgency::Other => Turn::Usual,
        };
        let run = |term: Term| async move {
            // It may have waited for others.
            let at = match located(&world, &key, &object, &task) {
                Ok(at) => at,
                Err(failure) => return task::unsent(&task, failure, clock.now()),
            };
            let may_act = |wants| {
                let may_act = term.may_act();
                let is_allowed = located(&world, &key, &object, &task).is_ok_and(|now| now == at);
                let is_wanted = is_allowed && is_still_ordered(&world, &key, &object, &task);
                may_act.filter(|_| is_wanted && claim.allows(wants))
            };
            let (lists, clock) = (&lists, clock.as_ref());
            run(&forges, &at, (lists, clock), &object, &task, &may_act).await
        };
        self.errands.begin_by(turn, &work, &errand, &line, run);
    }
}

/// How urgent it is. What takes no success back does not go before merges.
pub(super) fn urgency(object: &PullRequest, task: &Task) -> Urgency {
    let shown = object
        .status
        .as_ref()
        .and_then(|status| status.commit_status);
    match task {
        Task::SetStatus(_) if task.withdraws() => match shown {
            Some(MergeGate::Success) => Urgency::Withdrawal,
            Some(MergeGate::Pending) | None => Urgency::Status,
        },
        Task::Merge { .. } | Task::SetStatus(_) => Urgency::Merge,
        Task::Commit | Task::Open { .. } | Task::Join(_) => Urgency::Opening,
        Task::Look { .. } | Task::Edit { .. } | Task::Close { .. } | Task::DeleteBranch { .. } => {
            Urgency::Other
        }
    }
}

/// Whether a merge, a join or a success is still what the owner wants, as this process knows it now.
pub(super) fn is_still_ordered(
    world: &World,
    key: &ObjectKey,
    object: &PullRequest,
    task: &Task,
) -> bool {
    let about = &object.spec.about;
    let says = || Found::of(world, key, about).and_then(|owner| owner.says(object));
    match task {
        Task::Merge {
            commit,
            method,
            not_after,
            ..
        } => {
            let order = says().and_then(|says| says.order);
            // One that was given since may end earlier.
            order.is_some_and(|order| {
                order.key == about.key
                    && order.head_sha == *commit
                    && order.method == *method
                    && order.not_after.0 >= *not_after
            })
        }
        Task::Join(joining) => says().is_some_and(|says| says.join.as_ref() == Some(joining)),
        Task::SetStatus(telling) if telling.gate == MergeGate::Success => {
            says().is_some_and(|says| {
                let is_about = |head: &String| *head == telling.commit;
                says.gate == MergeGate::Success && says.head.as_ref().is_none_or(is_about)
            })
        }
        _ => true,
    }
}

/// Where its repository is, as its namespace may use it now for this task: to merge into the target branch, and
/// to join that branch into the source branch.
fn located(
    world: &World,
    key: &ObjectKey,
    object: &PullRequest,
    task: &Task,
) -> Result<Located, Unlocated> {
    let spec = &object.spec;
    let find = |branch: &str| Located::find(world, &key.namespace, &spec.repository, branch);
    if matches!(task, Task::Join(_)) {
        find(&spec.source_branch)?;
    }
    find(&spec.target_branch)
}

/// Opens the way to the forge, unless a list that is known says enough.
async fn run(
    forges: &Forges,
    at: &Located,
    (lists, clock): (&Lists, &dyn Clock),
    object: &PullRequest,
    task: &Task,
    may_act: May<'_>,
) -> Outcome {
    if let Task::Look {
        number,
        alone: false,
        ..
    } = task
        && let Ok(number) = u64::try_from(*number)
        && let Some(open) = lists.known(&Key::of(object, at), clock.now(), number)
    {
        return open.into_outcome();
    }
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let asks = (namespace, urgency(object, task));
    match forges.open(at, asks, clock.now()).await {
        Ok(forge) => {
            let desk = Desk {
                forge: &forge,
                at,
                lists,
                clock,
                may_act,
            };
            task::perform(&desk, object, task).await
        }
        Err(failure) => task::unsent(task, failure, clock.now()),
    }
}

fn work(key: &ObjectKey) -> Work {
    Work::own(Kind::PullRequest, key.clone())
}
