//! Where the branches of a repository point to, and when they are to be listed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sluice_core::delivery::git_repository_access::report::{Failing, Listing};
use sluice_core::delivery::promotion_strategy::evidence::{Heads, Sight};
use sluice_core::delivery::pull_request::{Failure, Word};

use super::Listed;

/// How much later than its time a list may come, while the forge does not answer, before what is known of the
/// branches is too old to decide from.
const GRACE: SignedDuration = SignedDuration::from_mins(2);

/// What is known of the branches of a repository.
#[derive(Default)]
pub(super) struct Branches {
    /// How often they are listed.
    pub(super) interval: SignedDuration,
    /// What is to be listed last.
    pub(super) wide: BTreeSet<String>,
    begun_at: Option<Timestamp>,
    wanted_at: Option<Timestamp>,
    unlisted_at: Option<Timestamp>,
    /// The list that was begun last.
    begun: Option<Begun>,
    listed: Option<Known>,
    failing: Option<Failing>,
    /// Whether the forge has refused to list them since it last did, for a reason that lasts.
    is_refused: bool,
    /// Whether the access has got another spec since they were listed.
    is_respecified: bool,
    requested: Option<String>,
    handled: Option<String>,
    /// Why those who need them cannot decide, as they know it.
    shown: Option<Word>,
}

struct Begun {
    branches: BTreeSet<String>,
    request: Option<String>,
    at: Timestamp,
}

struct Known {
    /// The branches that were asked for.
    branches: BTreeSet<String>,
    heads: Arc<Heads>,
    /// Those of them of which nothing is known, and why.
    unlisted: BTreeMap<String, String>,
    at: Timestamp,
}

/// Whom a list concerns.
pub(super) enum News {
    /// All who need any branch.
    ForAll,
    /// Those who need one of these.
    For(BTreeSet<String>),
}

impl News {
    /// Whether it concerns one who needs these.
    pub(super) fn concern(&self, needs: &BTreeSet<String>) -> bool {
        match self {
            Self::ForAll => true,
            Self::For(branches) => !branches.is_disjoint(needs),
        }
    }
}

impl Branches {
    /// Somebody needs these. Returns whether that is the first need of a branch that was not listed.
    pub(super) fn need(&mut self, branches: &BTreeSet<String>, now: Timestamp) -> bool {
        let listed = self.listed.as_ref().map(|it| &it.branches);
        let begun = self.begun.as_ref().map(|it| &it.branches);
        let known = [listed, begun].into_iter().flatten();
        let is_known = |branch| known.clone().any(|known| known.contains(branch));
        let is_unlisted = self.unlisted_at.is_none() && !branches.iter().all(is_known);
        if is_unlisted {
            self.unlisted_at = Some(now);
        }
        is_unlisted
    }

    /// A fresh list is wanted. Returns whether that is new.
    pub(super) fn want(&mut self, now: Timestamp) -> bool {
        let is_new = self.wanted_at.is_none();
        self.wanted_at = self.wanted_at.or(Some(now));
        is_new
    }

    /// Whatever failed before says nothing about the next try. That they may be read is not known by that.
    pub(super) fn try_again(&mut self, now: Timestamp) {
        self.is_respecified = true;
        (self.failing, self.begun, self.wanted_at) = (None, None, Some(now));
    }

    pub(super) fn listed_at(&self) -> Option<Timestamp> {
        Some(self.listed.as_ref()?.at)
    }

    /// Whether the last list has failed.
    pub(super) fn is_failing(&self) -> bool {
        self.failing.is_some()
    }

    /// Whether they may be read. A failure that passes says nothing of that. Who is refused is refused until a list
    /// has succeeded, and who changes the spec has to read them again in time: otherwise anyone who could read them
    /// once could go on saying so.
    pub(super) fn may_be_read(&self, now: Timestamp) -> Option<bool> {
        let is_late = self.is_respecified && self.stale_at().is_some_and(|at| at <= now);
        match self.is_refused || is_late {
            true => Some(false),
            false => self.listed.is_some().then_some(true),
        }
    }

    pub(super) fn known(&self) -> Listing {
        Listing {
            is_needed: false,
            is_under_way: false,
            begun_at: self.begun_at,
            wanted_at: self.wanted_at,
            unlisted_at: self.unlisted_at,
            listed_at: self.listed_at(),
            stale_at: self.stale_at().filter(|_| self.shown.is_none()),
            failing: self.failing.clone(),
            requested: self.requested.clone(),
            handled: self.handled.clone(),
        }
    }

    /// A list is begun.
    pub(super) fn begin(
        &mut self,
        branches: BTreeSet<String>,
        request: Option<String>,
        now: Timestamp,
    ) {
        (self.wanted_at, self.unlisted_at) = (None, None);
        self.begun_at = Some(now);
        self.requested = request.clone().or(self.requested.take());
        self.begun = Some(Begun {
            branches,
            request,
            at: now,
        });
    }

    /// The list that was begun is there, or failed.
    pub(super) fn listed(&mut self, listed: Result<Listed, Failure>, now: Timestamp) -> News {
        let nobody = News::For(BTreeSet::new());
        let Some(begun) = self.begun.take() else {
            return nobody;
        };
        match listed {
            Ok(listed) => {
                self.failing = None;
                (self.is_refused, self.is_respecified) = (false, false);
                self.handled = begun.request.or(self.handled.take());
                let news = self.take(listed, begun.branches, begun.at);
                match self.note_shown(now) {
                    true => News::ForAll,
                    false => news,
                }
            }
            Err(failure) => {
                self.is_refused |= failure.word.lasts();
                let before = self.failing.as_ref();
                let is_new = before.is_none_or(|it| it.failure.word != failure.word);
                self.failing = Some(Failing::again(before, failure, now));
                match self.note_shown(now) {
                    true => News::ForAll,
                    // The others decide by the last list.
                    false if is_new => News::For(&begun.branches - &self.asked_for()),
                    false => nobody,
                }
            }
        }
    }

    fn asked_for(&self) -> BTreeSet<String> {
        let listed = self.listed.as_ref();
        listed.map(|it| it.branches.clone()).unwrap_or_default()
    }

    /// Takes a list in. A list that says the same as before is news for those alone whose branches were not
    /// listed before.
    fn take(&mut self, listed: Listed, branches: BTreeSet<String>, begun: Timestamp) -> News {
        let Listed {
            heads,
            unlisted,
            wide,
            at,
        } = listed;
        self.wide = wide;
        // It may have waited for others.
        let at = at.map_or(begun, |at| at.max(begun));
        let before = self.listed.take();
        let news = match &before {
            Some(before) if before.heads.notes == heads.notes => {
                let is_new = |branch: &&String| {
                    !before.branches.contains(*branch)
                        || before.heads.branches.get(*branch) != heads.branches.get(*branch)
                        || before.unlisted.get(*branch) != unlisted.get(*branch)
                };
                News::For(branches.iter().filter(is_new).cloned().collect())
            }
            Some(_) | None => News::ForAll,
        };
        let heads = match before {
            // Those who hold the one before hold this one.
            Some(before) if *before.heads == heads => before.heads,
            Some(_) | None => Arc::new(heads),
        };
        self.listed = Some(Known {
            branches,
            heads,
            unlisted,
            at,
        });
        news
    }

    /// As one knows them who needs these.
    pub(super) fn heads(&self, needs: &BTreeSet<String>, now: Timestamp) -> Sight<Arc<Heads>> {
        let failed = self.failing.as_ref().map(|it| &it.failure.message);
        let listed = self.listed.as_ref();
        match listed.filter(|listed| needs.is_subset(&listed.branches)) {
            Some(_) if self.hindrance(now).is_some() => {
                let late = "its branches were not listed for too long";
                Sight::Failed(failed.map_or(late, String::as_str).to_owned())
            }
            Some(listed) => {
                let mut unlisted = listed.unlisted.iter();
                let unlisted = unlisted.find(|(branch, _)| needs.contains(*branch));
                match unlisted {
                    Some((_, why)) => Sight::Failed(why.clone()),
                    None => Sight::Known(Arc::clone(&listed.heads)),
                }
            }
            None => failed.map_or(Sight::Pending, |why| Sight::Failed(why.clone())),
        }
    }

    /// Why nothing can be decided from them, in a word.
    fn hindrance(&self, now: Timestamp) -> Option<Word> {
        let failing = self.failing.as_ref().map(|it| it.failure.word);
        if self.listed.is_none() {
            return failing;
        }
        let is_stale = self.stale_at().is_some_and(|at| at <= now);
        match failing {
            Some(word) if is_stale || word.lasts() => Some(word),
            Some(_) => None,
            None => is_stale.then_some(Word::Unanswered),
        }
    }

    /// Notes what those who need them are told. Returns whether that is something else than before.
    pub(super) fn note_shown(&mut self, now: Timestamp) -> bool {
        let shown = self.hindrance(now);
        std::mem::replace(&mut self.shown, shown) != shown
    }

    fn stale_at(&self) -> Option<Timestamp> {
        let late = self.interval.saturating_add(GRACE);
        self.listed_at()?.checked_add(late).ok()
    }
}
