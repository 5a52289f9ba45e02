//! What the gates say, here and now, of what is next.
//!
//! What comes in: a decision about it. What goes out: the decision in words, with the tree of each gate.

use serde::Serialize;
use sluice_core::verdict::question::Question;
use sluice_crds::Decision;

use crate::cluster::Seen;
use crate::explain;
use crate::instant::Zone;
use crate::view::{Decided, checked};

pub(super) struct Asked<T> {
    /// The environment of a promotion, or the number of a batch.
    pub(super) of: T,
    /// None: no gate has to be asked.
    pub(super) decision: Option<Decision>,
    gates: Vec<Decided>,
}

impl<T> Asked<T> {
    pub(super) fn new(
        seen: &Seen,
        of: T,
        decision: Option<Decision>,
        question: Question<'_>,
    ) -> Self {
        let gates = decision.as_ref().map(|it| checked(seen, it, question));
        Self {
            of,
            gates: gates.unwrap_or_default(),
            decision,
        }
    }

    /// For people: whether `who` may go on, and why.
    pub(super) fn text(&self, who: &str, zone: &Zone) -> String {
        let sum = match &self.decision {
            None => format!("{who} has to pass no gate\n"),
            Some(decision) => explain::sum(who, decision),
        };
        let trees = self.gates.iter().map(|gate| explain::tree(gate, zone));
        sum + &trees.collect::<String>()
    }

    /// The gates, for programs.
    pub(super) fn entries(&self) -> Vec<impl Serialize> {
        self.gates.iter().map(Decided::entry).collect()
    }
}
