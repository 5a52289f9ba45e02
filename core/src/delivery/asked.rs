//! What gates are asked about one revision, and what they say.
//!
//! What comes in: the gates, who asks, and the revision. What goes out: the answer, as it has to be recorded
//! before anything is done by it.

use jiff::Timestamp;
use sluice_crds::{Decision, Require, Subject};

use crate::gate::set::Gathered;
use crate::revision::Revision;
use crate::time::clock::Now;
use crate::time::stamp::time;
use crate::verdict::question::Question;

/// A question to the gates, with their answer. `W` is what a consumer may want to do.
#[derive(Clone, Debug)]
pub struct Asked<W> {
    /// The environment whose gates were asked.
    pub environment: String,
    /// What was asked.
    pub what: W,
    /// What the gates say.
    pub decision: Decision,
    /// Whether something is begun by it now, if it is recorded. Otherwise it was acted on before, or holds
    /// something back.
    pub takes_effect: bool,
    /// Until when the answer holds if no change is seen.
    pub(super) until: Option<Timestamp>,
    pub(super) revision: Revision,
}

/// What gates say of a revision, and until when that holds if no change is seen. Where nobody has to be asked,
/// it may pass.
pub(super) fn decide(
    gates: Option<&Gathered>,
    subject: Subject,
    revision: &Revision,
    now: Now,
) -> (Decision, Option<Timestamp>) {
    let question = Question::new(now, Some(revision));
    match gates.filter(|gates| !gates.sets().is_empty()) {
        Some(gates) => {
            let until = gates.rule(question).until;
            (gates.decide(subject, question), until)
        }
        None => {
            let decision = Decision {
                allowed: true,
                at: time(now.at),
                subject,
                require: Require::default(),
                checked: Vec::new(),
                decided_by: Vec::new(),
                message: "no gate has to be asked".to_owned(),
                next: None,
            };
            (decision, None)
        }
    }
}
