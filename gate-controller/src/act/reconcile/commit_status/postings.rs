//! What forges are being told about commits: at most one thing at once for each CommitStatus, and for each
//! PromotionStrategy of its dry commit, so that what is told last is what stays.
//!
//! What comes in: tasks. What goes out: how the last one of each stands. One that is not wanted any more when its
//! turn comes tells nothing.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use sluice_core::delivery::commit_status::report::{Errand, Task, may_tell};
use sluice_core::delivery::commit_status::{Post, Shown};
use sluice_core::delivery::promotion_strategy::dry_commit_status;
use sluice_core::delivery::pull_request::{Failure, Word};
use sluice_crds::git_repository_access::AccessReference;
use sluice_forges::{
    Forge, ForgeError, May, Missing, Sha, Status, StatusState, Trouble, Undone, Urgency,
};
use tokio::time::Instant;

use super::refusal;
use crate::act::claim::Claim;
use crate::act::errands::{Errands, Standing, Term, Turn};
use crate::act::forges::{Failure as Stopped, Forges, Located};
use crate::act::reconcile::Context;
use crate::act::waker::Waker;
use crate::cluster::key::Work;
use crate::cluster::kind::Kind;
use crate::lease::Leadership;
use crate::observe::cache::Seen;
use crate::observe::clock::Clock;
use crate::observe::repositories::Repositories;
use crate::observe::world::World;

/// What is under way.
pub(crate) struct Postings {
    errands: Arc<Errands<Post, Result<(), Failure>>>,
    /// Whether the last one of each may have told something.
    claims: Mutex<HashMap<Work, Arc<Claim>>>,
}

impl Postings {
    /// Nothing is under way. Each that ends wakes whose it is.
    pub(crate) fn new(leadership: Leadership, waker: Waker) -> Self {
        let wake = move |work: &Work| waker.wake(work.clone());
        Self {
            errands: Errands::new(leadership, wake),
            claims: Mutex::default(),
        }
    }

    /// How the last one stands.
    pub(in crate::act::reconcile) fn errand(&self, of: &Work) -> Errand {
        match self.errands.of(of).into_iter().next() {
            None => Errand::None,
            Some((post, Standing::UnderWay)) => Errand::UnderWay {
                post: Box::new(post),
                is_sent: self.claim(of).is_some_and(|claim| claim.is_sent()),
            },
            Some((post, Standing::Over(outcome))) => {
                let unfinished = |why| Err(Failure::new(Word::Unanswered, format!("{why}")));
                let outcome = outcome.unwrap_or_else(unfinished);
                Errand::Over(Box::new((post, outcome)))
            }
        }
    }

    pub(super) fn claim(&self, of: &Work) -> Option<Arc<Claim>> {
        self.claims.lock().get(of).cloned()
    }

    /// The status that says how it ended was accepted.
    pub(in crate::act::reconcile) fn accepted(&self, of: &Work) {
        self.forget(of);
    }

    /// It is gone, or another shard looks at it.
    pub(crate) fn forget(&self, of: &Work) {
        self.errands.keep(of, |_| false);
        self.claims.lock().remove(of);
    }

    /// Another replica leads.
    pub(crate) fn clear(&self) {
        self.errands.clear();
        self.claims.lock().clear();
    }

    /// Begins to tell something to the forge of that access. What is under way for it ends, if that has told nothing
    /// yet; otherwise nothing is begun before its end.
    pub(in crate::act::reconcile) fn begin(
        &self,
        context: &Context,
        of: &Work,
        access: &AccessReference,
        task: Task,
    ) {
        let Task { post, is_urgent } = task;
        let is_sent = self.claim(of).is_some_and(|claim| !claim.end());
        if is_sent && !self.errands.of(of).is_empty() {
            return;
        }
        self.forget(of);
        let claim = Arc::<Claim>::default();
        self.claims.lock().insert(of.clone(), Arc::clone(&claim));
        let found = Located::to_tell(&context.world, &of.key.namespace, access);
        let line = found.map_or_else(|_| String::new(), |at| at.credential());
        let telling = Telling {
            world: Arc::clone(&context.world),
            repositories: Arc::clone(&context.repositories),
            forges: Arc::clone(&context.forges),
            clock: Arc::clone(&context.clock),
            of: of.clone(),
            access: access.clone(),
            post: post.clone(),
            claim,
            urgency: match is_urgent {
                true => Urgency::Withdrawal,
                false => Urgency::Status,
            },
        };
        let run = |term: Term| async move {
            let told = telling.tell(&term).await;
            told.map_err(|stopped| stopped.at(telling.clock.now()))
        };
        let turn = match is_urgent {
            true => Turn::First,
            false => Turn::Usual,
        };
        self.errands.begin_by(turn, of, &post, &line, run);
    }
}

/// What is told to whom.
struct Telling {
    world: Arc<World>,
    repositories: Arc<Repositories>,
    forges: Arc<Forges>,
    clock: Arc<dyn Clock>,
    of: Work,
    access: AccessReference,
    post: Post,
    claim: Arc<Claim>,
    urgency: Urgency,
}

impl Telling {
    async fn tell(&self, term: &Term) -> Result<(), Stopped> {
        // It may have waited for others.
        let at = self.located()?;
        let commit = Sha::parse(&self.post.sha);
        let wrong = || Stopped::new(Word::InvalidSpec, "spec.sha: it is no id of a commit");
        let commit = commit.ok_or_else(wrong)?;
        let asks = (&*self.of.key.namespace, self.urgency);
        let forge = self.forges.open(&at, asks, self.clock.now()).await?;
        self.until(term, &at)?;
        // It is asked again when it is its turn.
        let may = |wants| {
            let until = self.until(term, &at).ok();
            until.filter(|_| self.claim.allows(wants))
        };
        tell(&forge, &commit, &self.post, at.url(), &may).await
    }

    fn located(&self) -> Result<Located, Stopped> {
        Located::to_tell(&self.world, &self.of.key.namespace, &self.access)
    }

    /// Until when it may be sent, if it may be sent now.
    fn until(&self, term: &Term, at: &Located) -> Result<Instant, Stopped> {
        let is_allowed = self.located().is_ok_and(|now| now == *at);
        let until = term.may_act().filter(|_| is_allowed && self.is_wanted());
        until.ok_or_else(|| {
            let why = "there was no time left to tell the forge, or it is not wanted any more";
            Stopped::new(Word::Changed, why)
        })
    }

    /// Whether it is still what the object says, as this process knows it now.
    fn is_wanted(&self) -> bool {
        let (world, key, now) = (&self.world, &self.of.key, self.clock.now());
        if self.of.kind == Kind::PromotionStrategy {
            let seen = world.promotion_strategies.get(key.borrowed());
            let object = seen.as_ref().and_then(Seen::object);
            let wanted = object.and_then(|it| dry_commit_status(it));
            return wanted.is_some_and(|it| Post::at(&it, now) == self.post);
        }
        let seen = world.commit_statuses.get(key.borrowed());
        seen.as_ref().and_then(Seen::object).is_some_and(|object| {
            let refusal = refusal(world, &self.repositories, key, object);
            Post::at(object, now) == self.post
                && may_tell(object.status.as_ref(), &self.post, refusal.as_ref())
        })
    }
}

/// Tells it. `page` is shown where nothing else is: Bitbucket requires one.
async fn tell(
    forge: &Forge,
    commit: &Sha,
    post: &Post,
    page: &str,
    may: May<'_>,
) -> Result<(), Stopped> {
    let Post {
        access: _,
        sha: _,
        name,
        shown,
        description,
        url,
    } = post;
    let status = Status {
        context: name,
        state: match shown {
            Shown::Pending => StatusState::Pending,
            Shown::Success => StatusState::Success,
            Shown::Failure => StatusState::Failure,
        },
        description,
        url: url.as_deref().unwrap_or(page),
    };
    let told = forge.set_status(commit, &status, may).await;
    told.map_err(|undone| match undone {
        Undone::Refused(error) | Undone::NotDone(error) | Undone::Unknown(error) => stopped(error),
    })
}

/// That there is no such commit lasts: nobody but a person writes another one.
fn stopped(error: ForgeError) -> Stopped {
    match error.trouble {
        Trouble::Absent(Missing::Commit) => Stopped::new(Word::NoCommit, error.to_string()),
        _ => error.into(),
    }
}
