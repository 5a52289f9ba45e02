//! Reports decisions: in the log, by events, as metrics, in the audit log.
//!
//! What comes in: each answer to a question. What goes out: the same answer, or no, if it had to be
//! recorded and could not be; and, if it differs from the answer before, a report of it. Equal answers to
//! the same question are counted, so that a client that asks ten thousand times a second fills neither
//! the log nor the disk.
//!
//! | | another answer | the same again |
//! |---|---|---|
//! | log | a line | a line at the level debug |
//! | events | one on each gate that decided | for those who wait: each [`TELL_AGAIN`] |
//! | audit log | a line | counted, and reported each [`FOLD`]; where it is required, each yes is a line |
//!
//! An answer that something is done by, such as a revision that goes out, always has a line of its own in
//! the audit log: it is an act, and not just another look ([`Decisions::act`]).
//!
//! A look that only reads the answer again, and does nothing by it, is not a question: it is reported
//! only if the answer is new ([`Decisions::look`]).

use std::sync::Arc;

use jiff::SignedDuration;
use parking_lot::Mutex;
use sluice_core::delivery::{CONSUMERS, gated_source, pipeline, promotion_strategy, rollout};
use sluice_core::time::span::later;
use sluice_crds::audit::{Decided, Event};
use sluice_crds::{Decision, Subject};

use crate::observe::cache::Seen;
use crate::observe::clock::{self, Clock};
use crate::observe::world::World;
use crate::tell::audit::Audit;
use crate::tell::counters::Counters;
use crate::tell::events::Events;

mod budget;
mod known;
mod labels;
mod news;

use known::Known;
pub use known::Waiting;

/// How often it is reported again that something waits, while it goes on asking.
pub const TELL_AGAIN: SignedDuration = SignedDuration::from_mins(30);
/// How often equal answers are reported in the audit log.
pub const FOLD: SignedDuration = SignedDuration::from_mins(5);
/// After how long a question that is not asked any more is forgotten.
pub const FORGET: SignedDuration = SignedDuration::from_hours(1);
/// How often to check for questions to forget.
const SWEEP: SignedDuration = SignedDuration::from_mins(1);
/// How many counted answers are written to the audit log at once, at most: others need room there, too.
const TOGETHER: usize = 1_024;

/// The word for an answer that could not be recorded, and so is not allowed.
pub const UNRECORDED: &str = "AuditUnavailable";

/// An answer as it is given.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The decision.
    pub decision: Decision,
    /// Why it is no, in one word, where no gate is the cause.
    pub reason: Option<&'static str>,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asker<'a> {
    /// The controller itself, for an object that is there.
    Controller,
    /// Somebody of this name, who may check gates in the namespace of the subject.
    Caller(&'a str),
    /// The caller is not known: what it asks for gets neither events nor gauges.
    Stranger,
}

impl<'a> Asker<'a> {
    /// The name that records have. None: there is none.
    fn name(self) -> Option<&'a str> {
        match self {
            Asker::Caller(name) => Some(name),
            Asker::Controller | Asker::Stranger => None,
        }
    }

    /// Whether to report to others what `subject` waits for because this asker says so. Of what the controller
    /// asks gates for only it may say it.
    fn speaks_for(self, subject: &Subject) -> bool {
        match self {
            Asker::Controller => true,
            Asker::Caller(_) => !CONSUMERS.contains(&&*subject.kind),
            Asker::Stranger => false,
        }
    }
}

/// Which answers the audit log reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lines {
    /// None: it is not kept, or has the line already.
    None,
    /// Those that differ from the answer before.
    News,
    /// Those, and the equal ones, counted.
    All,
    /// Every answer, each by itself: something is done by it.
    Each,
}

/// All recent answers.
pub struct Decisions {
    known: Mutex<Known>,
    world: Arc<World>,
    clock: Arc<dyn Clock>,
    counters: Arc<Counters>,
    events: Events,
    audit: Audit,
}

impl Decisions {
    /// No answers yet. `world` has the gates that events are about.
    pub fn new(
        world: Arc<World>,
        clock: Arc<dyn Clock>,
        counters: Arc<Counters>,
        events: Events,
        audit: Audit,
    ) -> Self {
        labels::serve_from_the_start(&counters);
        Self {
            known: Mutex::default(),
            world,
            clock,
            counters,
            events,
            audit,
        }
    }

    /// Reports a decision that is to be given as an answer, and returns what to answer.
    pub async fn tell(&self, decision: Decision, asker: Asker<'_>) -> Answer {
        self.give(decision, asker, Lines::All).await
    }

    /// The same for a decision by which this controller does something now. Even if the same was answered
    /// before, the audit log has a line each time that it is done.
    pub async fn act(&self, decision: Decision) -> Answer {
        self.give(decision, Asker::Controller, Lines::Each).await
    }

    async fn give(&self, decision: Decision, asker: Asker<'_>, lines: Lines) -> Answer {
        let alone = decision.allowed && self.audit.is_required();
        let answer = match alone {
            true => self.record(decision, asker.name()).await,
            false => Answer {
                decision,
                reason: None,
            },
        };
        let recorded = alone && answer.reason.is_none();
        let lines = match self.audit.is_kept() && !recorded {
            true => lines,
            false => Lines::None,
        };
        self.note(&answer.decision, asker, lines);
        self.count(&answer.decision);
        answer
    }

    /// Reports the result of another look that does nothing by it now: it was reported before, or it is
    /// no, or it takes effect later. Nothing waits until it is recorded, and it is counted only if it is
    /// new.
    pub fn look(&self, decision: &Decision) {
        let lines = match self.audit.is_kept() {
            true => Lines::News,
            false => Lines::None,
        };
        if self.note(decision, Asker::Controller, lines) {
            self.count(decision);
        }
    }

    fn count(&self, decision: &Decision) {
        let labels = labels::of(decision);
        self.counters.decisions.get_or_create(&labels).inc();
    }

    /// Notes an answer, and reports it as far as needed. Returns whether it differs from the one before.
    fn note(&self, decision: &Decision, asker: Asker<'_>, lines: Lines) -> bool {
        let news = self.known.lock().note(decision, asker, lines);
        let asked_by = asker.name();
        news::log(decision, asked_by, news.is_new);
        let told = (decision, asked_by);
        news::events(&self.events, &self.world, told, news.since, news.events);
        self.counters.events_dropped.inc_by(news.dropped);
        for decided in news.counted {
            self.audit.tell(|| Event::Decision(Box::new(decided)));
        }
        if let Some(repeated) = news.line {
            self.audit
                .tell(|| line(decision.clone(), asked_by, repeated));
        }
        news.is_new
    }

    /// Records a decision before it is given.
    async fn record(&self, decision: Decision, asked_by: Option<&str>) -> Answer {
        let recorded = self.audit.record(line(decision.clone(), asked_by, 0));
        match recorded.await {
            Ok(()) => Answer {
                decision,
                reason: None,
            },
            Err(why) => Answer {
                decision: Decision {
                    allowed: false,
                    decided_by: Vec::new(),
                    message: format!(
                        "held back because the decision cannot be recorded, which --audit-required \
                         asks for: the audit log: {why}"
                    ),
                    next: None,
                    ..decision
                },
                reason: Some(UNRECORDED),
            },
        }
    }

    /// Everything that has a name and asked recently, and whether it waits. Of Rollouts their statuses say that: one
    /// that is held asks again only when something changes.
    pub fn waiting(&self) -> Vec<Waiting> {
        let mut all = self.known.lock().waiting(self.clock.now());
        let world = &self.world;
        all.retain_mut(|asked| match &*asked.kind {
            gated_source::KIND => self.is_current(asked),
            pipeline::KIND => world.pipelines.get(asked.key()).is_some(),
            promotion_strategy::KIND => world.promotion_strategies.get(asked.key()).is_some(),
            promotion_strategy::REVERT => world.revert_commits.get(asked.key()).is_some(),
            rollout::KIND => false,
            _ => true,
        });
        let rollouts = self.world.rollouts.objects();
        all.extend(rollouts.iter().filter_map(|it| Waiting::rollout(it)));
        all
    }

    /// Notes whether a gated source still waits for its gates. Returns false if it is gone.
    fn is_current(&self, asked: &mut Waiting) -> bool {
        let seen = self.world.gated_sources.get(asked.key());
        if let Some(object) = seen.as_ref().and_then(Seen::object) {
            asked.waits &= gated_source::may_wait(object);
        }
        seen.is_some()
    }

    /// Now and then forgets questions that are not asked any more, and reports what was counted. It never
    /// ends.
    pub async fn sweep(&self) {
        loop {
            let now = self.clock.now();
            let next = later(now, SWEEP);
            clock::reach(self.clock.as_ref(), next).await;
            let counted = self.known.lock().sweep(self.clock.now());
            self.tell_counted(counted).await;
        }
    }

    /// Reports what was counted and not reported yet: before the audit log ends.
    pub async fn finish(&self) {
        let counted = self.known.lock().drain();
        self.tell_counted(counted).await;
    }

    /// Reports what was counted, no faster than it is written: what cannot be written is lost.
    async fn tell_counted(&self, counted: Vec<Decided>) {
        let mut is_written = true;
        for (n, decided) in counted.into_iter().enumerate() {
            if n > 0 && n % TOGETHER == 0 && is_written {
                is_written = self.audit.finish().await;
            }
            self.audit.tell(|| Event::Decision(Box::new(decided)));
        }
    }
}

fn line(decision: Decision, asked_by: Option<&str>, repeated: u64) -> Event {
    Event::Decision(Box::new(Decided {
        asked_by: asked_by.map(str::to_owned),
        repeated,
        decision,
    }))
}

#[cfg(test)]
mod tests;
