//! A promotion that is to begin: whether people and gates let it.

use sluice_crds::pipeline::{
    EnvironmentState, Phase, PromotionRecord, StrategyKind, WaitingApproval,
};

use super::super::approval::{self, Word};
use super::super::run::Wanted;
use super::super::words;
use super::{Ask, At, Context, Plan, Then, Wish, facts};

impl At<'_, '_> {
    /// It begins if people and gates say yes.
    pub(super) fn begin(&self, plan: &mut Plan, current: Option<PromotionRecord>, wish: Wish<'_>) {
        let now = self.context.now;
        let (run, revision) = (wish.wanted.run, wish.wanted.revision.as_str());
        let is_first = current
            .as_ref()
            .is_none_or(|record| matches!(record.phase, Phase::Unapproved | Phase::Unattempted));
        let why = match self.word(wish) {
            Word::NotNeeded | Word::Approved => None,
            // What was begun once was approved; a rejection still stops the next try.
            Word::Awaited | Word::Unverified if !is_first => None,
            Word::Awaited => Some((
                EnvironmentState::Unapproved,
                words::awaited(revision, self.name(), run),
            )),
            Word::Unverified => Some((EnvironmentState::Unapproved, words::UNVERIFIED.to_owned())),
            Word::Rejected(by) => {
                Some((EnvironmentState::Rejected, words::rejected(revision, &by)))
            }
        };
        if let Some((state, message)) = why {
            let record = match is_first {
                true => wish.record(current, Phase::Unapproved, now),
                false => current.unwrap_or_else(|| wish.fresh(Phase::Unapproved, now)),
            };
            plan.waits_for = Some(WaitingApproval {
                revision: revision.to_owned(),
                run,
                since: record.at.clone(),
            });
            plan.record = Some(record);
            plan.say(state, message);
            return;
        }
        if let Some(ring) = self.ring() {
            plan.record = current;
            return plan.say(EnvironmentState::CyclicGates, ring);
        }
        let repeats = match current
            .as_ref()
            .map(|record| (record.phase, record.repeats))
        {
            Some((Phase::Succeeded, repeats)) => repeats.saturating_add(1),
            Some((_, repeats)) => repeats,
            None => 0,
        };
        let begun = PromotionRecord {
            repeats,
            ..wish.record(current.clone(), Phase::Attempting, now)
        };
        let begun = match wish.strategy {
            StrategyKind::PullRequest(_) => {
                let is_asked = wish.asks_at_begin(self.environment.spec.gate_at);
                facts::named(self.context, begun, is_asked)
            }
            StrategyKind::Notification(_) | StrategyKind::Admission(_) => begun,
        };
        plan.record = match is_first {
            true => Some(wish.record(current, Phase::Unattempted, now)),
            false => current,
        };
        plan.ask = Some(Ask {
            wanted: wish.wanted.clone(),
            asks_own: wish.asks_at_begin(self.environment.spec.gate_at),
            then: Then::Begin(Box::new(begun)),
        });
    }

    pub(super) fn word(&self, wish: Wish<'_>) -> Word {
        let Context { given, whose, .. } = self.context;
        let Wanted { run, revision, .. } = wish.wanted;
        let is_needed = wish.promotion.manual;
        approval::word(
            &given.votes,
            is_needed,
            whose,
            self.name(),
            *run,
            revision,
            wish.key,
        )
    }

    /// The gates of this environment that depend on what it, or a later one, is admitted.
    pub(super) fn ring(&self) -> Option<String> {
        let Context {
            given,
            object,
            whose,
            ..
        } = self.context;
        let behind = &given.environments.get(self.place)?.depends_on;
        let mut later = object.spec.environments.iter().skip(self.place);
        let is_in = |name: &String| {
            let is = |it: &&(String, String, String)| {
                (it.0.as_str(), it.1.as_str()) == (whose.namespace, whose.name) && it.2 == *name
            };
            behind.iter().any(|it| is(&it))
        };
        let found = later.find(|environment| is_in(&environment.name))?;
        Some(format!(
            "its gates depend on what this Pipeline admits to {}, which waits for them: take that \
             gatekeeper out of the gates of {}",
            found.name,
            self.name()
        ))
    }
}
