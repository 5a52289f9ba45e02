//! What is under way at forges for PullRequests, and what this process remembers of them.
//!
//! What comes in: tasks. What goes out: how the last one of each PullRequest stands. All of it is forgotten
//! when this replica no longer leads: the next leader asks the forges again.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use sluice_core::delivery::pull_request::{Errand, Failure, Outcome, Recent, Task, Word};
use sluice_crds::PullRequest;

use super::lists::{Key, Lists};
use super::task::{self, Desk};
use crate::act::errands::{Errands, Standing, Term};
use crate::act::forges::Forges;
use crate::act::reconcile::Context;
use crate::act::waker::Waker;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::lease::Leadership;
use crate::observe::clock::Clock;

/// What is under way, and what is remembered.
pub(crate) struct AtForges {
    errands: Arc<Errands<Task, Outcome>>,
    lists: Arc<Lists>,
    recent: Mutex<HashMap<ObjectKey, Recent>>,
}

impl AtForges {
    /// Nothing is under way. Each errand that ends wakes its PullRequest.
    pub(crate) fn new(leadership: Leadership, waker: Waker) -> Self {
        Self {
            errands: Errands::new(leadership, move |work| waker.wake(work.clone())),
            lists: Arc::default(),
            recent: Mutex::default(),
        }
    }

    /// How the last errand stands.
    pub(super) fn errand(&self, of: &ObjectKey) -> Errand {
        let standing = self.errands.of(&work(of)).into_iter().next();
        match standing {
            None => Errand::None,
            Some((_, Standing::UnderWay)) => Errand::UnderWay,
            Some((task, Standing::Over(Ok(outcome)))) => Errand::Over(Box::new((task, outcome))),
            Some((task, Standing::Over(Err(unfinished)))) => {
                let failure = Failure::new(Word::Unanswered, unfinished.to_string());
                Errand::Over(Box::new((task, Outcome::Failed(failure))))
            }
        }
    }

    /// The status that says how the last errand ended was accepted.
    pub(super) fn accepted(&self, of: &ObjectKey) {
        self.errands.keep(&work(of), |_| false);
    }

    /// What is remembered of one.
    pub(super) fn recent(&self, of: &ObjectKey) -> Recent {
        let recent = self.recent.lock();
        recent.get(of).cloned().unwrap_or_default()
    }

    pub(super) fn remember(&self, of: &ObjectKey, recent: Recent) {
        self.recent.lock().insert(of.clone(), recent);
    }

    /// It is gone.
    pub(crate) fn forget(&self, of: &ObjectKey) {
        self.recent.lock().remove(of);
        self.errands.keep(&work(of), |_| false);
    }

    /// Another replica leads.
    pub(crate) fn clear(&self) {
        self.recent.lock().clear();
        self.errands.clear();
    }

    /// Begins a task.
    pub(super) fn begin(
        &self,
        context: &Context,
        key: &ObjectKey,
        object: Arc<PullRequest>,
        task: Task,
    ) {
        let (forges, clock) = (Arc::clone(&context.forges), Arc::clone(&context.clock));
        let lists = Arc::clone(&self.lists);
        let host = Forges::host(&object.spec.repository);
        let errand = task.clone();
        self.errands
            .begin(&work(key), &errand, &host, |term| async move {
                run(&forges, &lists, clock.as_ref(), &object, &task, &term).await
            });
    }
}

/// Opens the way to the forge, unless a list that is known says enough.
async fn run(
    forges: &Forges,
    lists: &Lists,
    clock: &dyn Clock,
    object: &PullRequest,
    task: &Task,
    term: &Term,
) -> Outcome {
    if let Task::Look {
        number,
        alone: false,
        ..
    } = task
        && let Ok(number) = u64::try_from(*number)
        && let Some(open) = lists.known(&Key::of(object), clock.now(), number)
    {
        return open.into_outcome(number);
    }
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    match forges.open(namespace, &object.spec.repository).await {
        Ok(forge) => {
            let desk = Desk {
                forge: &forge,
                lists,
                clock,
                may_act: &|| term.may_act(),
            };
            task::perform(&desk, object, task).await
        }
        Err(failure) => Outcome::Failed(failure.at(clock.now())),
    }
}

fn work(key: &ObjectKey) -> Work {
    Work::own(Kind::PullRequest, key.clone())
}
