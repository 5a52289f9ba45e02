//! What is being asked of forges for GitRepositoryAccesses: at most one list and one row of questions for each
//! at once. A list that a merge waits for goes first.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sluice_core::delivery::git_repository_access::report::Known;
use sluice_core::delivery::promotion_strategy::evidence::Question;
use sluice_core::delivery::pull_request::{Failure, Word};
use sluice_crds::GitRepositoryAccess;
use sluice_forges::Urgency;
use tokio::time::Instant;

use super::{listing, reading};
use crate::act::claim::Claim;
use crate::act::errands::{Errands, Standing, Term, Turn, Unfinished};
use crate::act::forges::Located;
use crate::act::reconcile::Context;
use crate::act::waker::Waker;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::lease::Leadership;
use crate::observe::repositories::{Begun, Listed, Needed, Repositories, Said};

/// After so long no further question is begun, so that the errand ends before it is ended.
const BEGINS: Duration = Duration::from_secs(40);

/// What is under way.
pub(crate) struct Readings {
    errands: Arc<Errands<Reading, Brought>>,
    /// Whether the list of each that stands in the usual queue has left that.
    queued: Mutex<HashMap<ObjectKey, Arc<Claim>>>,
}

/// One of the two for each access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reading {
    List,
    Questions,
}

#[derive(Clone, Debug)]
enum Brought {
    Heads(Result<Listed, Failure>),
    Answers(Result<Vec<(Question, Said)>, Failure>),
}

impl Readings {
    /// Nothing is under way. Each that ends wakes its access.
    pub(crate) fn new(leadership: Leadership, waker: Waker) -> Self {
        let wake = move |work: &Work| waker.wake(work.clone());
        Self {
            errands: Errands::new(leadership, wake),
            queued: Mutex::default(),
        }
    }

    /// Takes in what has come of those that are over. Returns who has to look again because of it.
    pub(super) fn take_in(&self, repositories: &Repositories, of: &ObjectKey) -> BTreeSet<Work> {
        let mut woken = BTreeSet::new();
        for (reading, standing) in self.standing(of) {
            let Standing::Over(outcome) = standing else {
                continue;
            };
            let brought = outcome.unwrap_or_else(|unfinished| reading.unfinished(unfinished));
            woken.append(&mut match brought {
                Brought::Heads(heads) => repositories.listed(of, heads),
                Brought::Answers(said) => repositories.answered(of, said),
            });
            self.errands.forget_over(&work(of), &reading);
        }
        woken
    }

    /// Says what is under way.
    pub(super) fn note(&self, of: &ObjectKey, known: &mut Known) {
        for reading in self.standing(of).into_keys() {
            match reading {
                Reading::List => known.list.is_under_way = true,
                Reading::Questions => known.questions.is_under_way = true,
            }
        }
    }

    #[cfg(test)]
    pub(super) fn is_under_way(&self, of: &ObjectKey) -> bool {
        let mut standing = self.standing(of).into_values();
        standing.any(|it| matches!(it, Standing::UnderWay))
    }

    fn standing(&self, of: &ObjectKey) -> BTreeMap<Reading, Standing<Brought>> {
        self.errands.of(&work(of))
    }

    /// Ends a list for which a merge waits by now, if it only waits for others so far: the next one goes first.
    pub(super) fn hasten(&self, repositories: &Repositories, of: &ObjectKey) {
        if !repositories.is_list_awaited(of) {
            return;
        }
        let queued = self.queued.lock().remove(of);
        if queued.is_some_and(|claim| claim.end()) {
            let others = |reading: &Reading| *reading != Reading::List;
            self.errands.keep(&work(of), others);
        }
    }

    /// Begins a list of the branches that somebody needs.
    pub(super) fn list(
        &self,
        context: &Context,
        object: &GitRepositoryAccess,
        request: Option<String>,
    ) {
        let key = ObjectKey::of(object);
        let Needed {
            branches,
            wide,
            is_awaited,
        } = context.repositories.begin_list(&key, request);
        let forges = Arc::clone(&context.forges);
        let clock = Arc::clone(&context.clock);
        let (at, of) = (Located::by(object), work(&key));
        let line = at.credential();
        let (turn, claim) = (turn(is_awaited), Arc::<Claim>::default());
        let queued = Arc::clone(&claim);
        match is_awaited {
            true => self.queued.lock().remove(&key),
            false => self.queued.lock().insert(key.clone(), queued),
        };
        let run = move |_: Term| async move {
            claim.send();
            let (until, asked) = (Instant::now() + BEGINS, Some(clock.now()));
            let asks = (&*key.namespace, Urgency::Other);
            let listed = match forges.open(&at, asks, clock.now()).await {
                Ok(forge) => {
                    let listed = listing::list(&forge, &branches, &wide, until).await;
                    listed.map(|listed| Listed {
                        at: asked,
                        ..listed
                    })
                }
                Err(failure) => Err(failure),
            };
            Brought::Heads(listed.map_err(|failure| failure.at(clock.now())))
        };
        self.errands.begin_by(turn, &of, &Reading::List, &line, run);
    }

    /// Begins to ask the next questions.
    pub(super) fn ask(&self, context: &Context, object: &GitRepositoryAccess) {
        let key = ObjectKey::of(object);
        let begun = context.repositories.begin_questions(&key);
        let forges = Arc::clone(&context.forges);
        let clock = Arc::clone(&context.clock);
        let (at, of) = (Located::by(object), work(&key));
        let line = at.credential();
        let run = |_: Term| async move {
            let until = Instant::now() + BEGINS;
            let asks = (&*key.namespace, urgency(&begun));
            Brought::Answers(match forges.open(&at, asks, clock.now()).await {
                Ok(forge) => {
                    let questions = begun.questions;
                    Ok(reading::answer(&forge, questions, clock.as_ref(), until).await)
                }
                Err(failure) => Err(failure.at(clock.now())),
            })
        };
        self.errands.begin(&of, &Reading::Questions, &line, run);
    }

    /// Stops what is under way for one that is gone, or has another spec.
    pub(crate) fn forget(&self, of: &ObjectKey) {
        self.queued.lock().remove(of);
        self.errands.keep(&work(of), |_| false);
    }

    /// Another replica leads.
    pub(crate) fn clear(&self) {
        self.queued.lock().clear();
        self.errands.clear();
    }
}

/// A merge is ordered from a fresh list: it waits for no other.
pub(super) fn turn(is_awaited: bool) -> Turn {
    match is_awaited {
        true => Turn::Merge,
        false => Turn::Usual,
    }
}

/// Something waits for what nobody knows.
pub(super) fn urgency(begun: &Begun) -> Urgency {
    match begun.are_needed {
        true => Urgency::Needed,
        false => Urgency::Other,
    }
}

impl Reading {
    fn unfinished(self, unfinished: Unfinished) -> Brought {
        let failure = Failure::new(Word::Unanswered, unfinished.to_string());
        match self {
            Self::List => Brought::Heads(Err(failure)),
            Self::Questions => Brought::Answers(Err(failure)),
        }
    }
}

fn work(key: &ObjectKey) -> Work {
    Work::own(Kind::GitRepositoryAccess, key.clone())
}
