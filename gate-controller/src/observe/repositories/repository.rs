//! One repository: who needs it, and what is known of it. No clock, no lock.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sluice_core::delivery::git_repository_access::report;
use sluice_core::delivery::promotion_strategy::evidence::{Heads, Question, Sight};
use sluice_core::delivery::pull_request::Failure;

use super::branches::Branches;
use super::questions::Questions;
use super::room::Whole;
use super::{Listed, Needed};
use crate::cluster::key::Work;

/// A repository, as this process knows it.
#[derive(Default)]
pub(super) struct Repository {
    /// The access as it was last looked at.
    of: Option<Of>,
    needs: HashMap<Work, BTreeSet<String>>,
    /// Who waits for the end of the next list, and of the one that was begun.
    awaited_by: BTreeSet<Work>,
    begun_for: BTreeSet<Work>,
    idle_since: Option<Timestamp>,
    pub(super) branches: Branches,
    pub(super) questions: Questions,
}

#[derive(PartialEq, Eq)]
struct Of {
    uid: Option<String>,
    generation: Option<i64>,
}

impl Repository {
    /// Its answers count together with those about all others.
    pub(super) fn of(whole: Whole) -> Self {
        Self {
            questions: Questions::of(whole),
            ..Self::default()
        }
    }

    /// Returns whether its access has to look.
    pub(super) fn need(&mut self, by: &Work, branches: BTreeSet<String>, now: Timestamp) -> bool {
        if self.needs.get(by) == Some(&branches) {
            return false;
        }
        let was_idle = self.is_idle();
        let is_unlisted = self.branches.need(&branches, now);
        match branches.is_empty() {
            true => {
                self.awaited_by.remove(by);
                self.begun_for.remove(by);
                self.needs.remove(by)
            }
            false => self.needs.insert(by.clone(), branches),
        };
        self.note_idle(now);
        self.is_idle() != was_idle || is_unlisted
    }

    /// Returns whether its access has to look.
    pub(super) fn ask(
        &mut self,
        by: &Work,
        questions: &BTreeSet<Question>,
        now: Timestamp,
    ) -> bool {
        let was_idle = self.is_idle();
        let is_new = self.questions.ask(by, questions, now);
        self.note_idle(now);
        self.is_idle() != was_idle || is_new
    }

    pub(super) fn is_needed_by(&self, by: &Work) -> bool {
        self.needs.contains_key(by) || self.questions.is_asked_by(by)
    }

    /// Whether nothing is known of it that anybody needs.
    pub(super) fn is_empty(&self) -> bool {
        self.of.is_none() && self.is_idle()
    }

    /// Whether nobody needs it.
    pub(super) fn is_idle(&self) -> bool {
        self.needs.is_empty() && self.questions.is_idle()
    }

    fn note_idle(&mut self, now: Timestamp) {
        let since = self.idle_since.unwrap_or(now);
        self.idle_since = self.is_idle().then_some(since);
    }

    /// Returns whether its access has to look.
    pub(super) fn list_now(&mut self, now: Timestamp) -> bool {
        !self.needs.is_empty() && self.branches.want(now)
    }

    /// Returns whether its access has to look.
    pub(super) fn list_for(&mut self, by: &Work, now: Timestamp) -> bool {
        let is_new = self.needs.contains_key(by) && self.awaited_by.insert(by.clone());
        self.list_now(now) || is_new
    }

    /// The uid of the access by which the branches were listed: of those of another one nothing is kept.
    pub(super) fn read_by(&self) -> Option<String> {
        self.branches.listed_at()?;
        self.of.as_ref()?.uid.clone()
    }

    pub(super) fn is_list_awaited(&self) -> bool {
        !self.awaited_by.is_empty()
    }

    pub(super) fn heads(&self, by: &Work, now: Timestamp) -> Sight<Arc<Heads>> {
        match self.needs.get(by) {
            Some(needs) => self.branches.heads(needs, now),
            None => Sight::Pending,
        }
    }

    /// Its access, as it is now. Returns whether it is another one, or has another spec. Of another one
    /// nothing is known; with another spec of the same one the forge is asked again, and what it has said
    /// before is right: neither forge nor address ever change.
    pub(super) fn see(
        &mut self,
        uid: Option<String>,
        generation: Option<i64>,
        interval: Option<SignedDuration>,
        now: Timestamp,
    ) -> bool {
        self.branches.interval = interval.unwrap_or_default();
        let of = Of { uid, generation };
        let before = self.of.take();
        let is_another = before.as_ref().is_some_and(|before| *before != of);
        match &before {
            Some(before) if before.uid != of.uid => self.reset(now),
            Some(_) if is_another => {
                self.branches.try_again(now);
                self.questions.try_again(now);
            }
            Some(_) | None => {}
        }
        self.of = Some(of);
        self.note_idle(now);
        is_another
    }

    /// Its access is gone. Who needs it still does.
    pub(super) fn gone(&mut self, now: Timestamp) {
        self.of = None;
        self.reset(now);
    }

    fn reset(&mut self, now: Timestamp) {
        let interval = self.branches.interval;
        self.branches = Branches::default();
        self.branches.interval = interval;
        self.questions.reset(now);
    }

    pub(super) fn known(&self, now: Timestamp) -> report::Known {
        report::Known {
            idle_since: self.idle_since,
            list: report::Listing {
                is_needed: !self.needs.is_empty(),
                ..self.branches.known()
            },
            questions: self.questions.known(now),
        }
    }

    /// Returns what is to be listed.
    pub(super) fn begin_list(&mut self, request: Option<String>, now: Timestamp) -> Needed {
        let branches: BTreeSet<_> = self.needs.values().flatten().cloned().collect();
        self.branches.begin(branches.clone(), request, now);
        self.begun_for.append(&mut self.awaited_by);
        Needed {
            branches,
            wide: self.branches.wide.clone(),
            is_awaited: !self.begun_for.is_empty(),
        }
    }

    /// Returns who has to look again.
    pub(super) fn listed(
        &mut self,
        listed: Result<Listed, Failure>,
        now: Timestamp,
    ) -> BTreeSet<Work> {
        let news = self.branches.listed(listed, now);
        let concerned = self.needs.iter().filter(|(_, needs)| news.concern(needs));
        let mut woken: BTreeSet<_> = concerned.map(|(by, _)| by.clone()).collect();
        woken.append(&mut self.begun_for);
        woken
    }

    /// Returns who has to look again.
    pub(super) fn outdated(&mut self, now: Timestamp) -> BTreeSet<Work> {
        let mut woken = self.questions.outdated(now);
        if self.branches.note_shown(now) {
            woken.extend(self.needs.keys().cloned());
        }
        woken
    }
}
