//! Why gates behind a gatekeeper keep it as it is, for pictures and courses of time: without the
//! instants that would make each day's words different.

use sluice_crds::Require;

use super::{Found, Gathered, NAMED, Named, Nested};
use crate::gate::{self, View, words};
use crate::verdict::question::Question;

/// What those gates say that decide.
pub(crate) fn cause(require: Require, nested: &[Nested], question: Question<'_>) -> String {
    let state = super::opinion(require, nested, question).state;
    let decide = nested
        .iter()
        .filter(|gate| gate.opinion(question).counts_as(require) == state);
    let said = decide
        .take(NAMED)
        .map(|gate| format!("gate {}: {}", gate.name, gate.cause(question)));
    said.collect::<Vec<_>>().join("; ")
}

impl Nested {
    fn cause(&self, question: Question<'_>) -> String {
        let Found::Gate(Named::Here(found)) = &self.found else {
            return self.explain(question);
        };
        let (gate, gathered) = found.as_ref();
        let view = gathered.view(gate);
        let answer = gate::answer(&view, question);
        // A force, a suspension and the like have the same words every day.
        match answer.decided_by {
            None => self.explain(question),
            Some(_) => gathered.causes(&view, answer.state, question),
        }
    }
}

impl Gathered {
    /// What those of the gatekeepers say that make the gate what it is.
    fn causes(&self, view: &View<'_>, state: sluice_crds::State, question: Question<'_>) -> String {
        let require = view.require();
        let keepers = self.keepers.iter().enumerate();
        let said = keepers.filter_map(|(place, named)| {
            let name = words::name(view, place);
            match named {
                Named::Here(keeper) => {
                    let decides = keeper.opinion(question).counts_as(require) == state;
                    decides.then(|| format!("{name}: {}", keeper.cause(question)))
                }
                // None of these admits anything.
                Named::Missing | Named::Forbidden | Named::Unreadable(_) => {
                    let closed = state == sluice_crds::State::Closed;
                    closed.then(|| format!("{name}: it cannot be asked"))
                }
            }
        });
        said.take(NAMED).collect::<Vec<_>>().join("; ")
    }
}
