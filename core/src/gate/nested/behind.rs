//! The gates behind a gatekeeper of the kind `gates`: its rule, which is to ask them, and its
//! evidence, which is what they depend on.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::{Gate, Require, State};

use super::{Gathered, MOST_GATES};
use crate::gate::{self, Named, View, fold, words};
use crate::gatekeeper::Keeper;
use crate::gatekeeper::kind::{Basis, Judge};
use crate::time::clock::Now;
use crate::verdict::question::Question;
use crate::verdict::{Opinion, Reason};

/// How many gates, and gatekeepers of a gate, a message names.
const NAMED: usize = 3;

/// The gates that a gatekeeper names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Behind {
    pub require: Require,
    pub gates: Vec<Nested>,
}

/// A gate that a gatekeeper names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Nested {
    /// Its name, with its namespace where that is another than the gatekeeper's.
    pub name: String,
    pub found: Found,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Found {
    Gate(Named<Box<(Arc<Gate>, Gathered)>>),
    /// By this way back to where it began.
    Cycle(String),
    TooMany,
}

impl Judge for Behind {
    fn opinion(&self, question: Question<'_>) -> Opinion {
        let opinions = self.gates.iter().map(|gate| gate.opinion(question));
        let opinions: Vec<Opinion> = opinions.collect();
        let answer = fold::fold(self.require, opinions.iter().copied());
        Opinion {
            state: answer.state,
            reason: match answer.reason {
                reason @ (Reason::EvidenceUnavailable | Reason::Cycle) => reason,
                _ => Reason::Nested,
            },
            until: opinions.iter().filter_map(|opinion| opinion.until).min(),
            next: opinions.iter().filter_map(|opinion| opinion.next).min(),
        }
    }

    /// What those gates say that decide.
    fn explain(&self, opinion: &Opinion, question: Question<'_>) -> String {
        self.said(opinion.state, question, Nested::explain)
    }

    fn cause(&self, opinion: &Opinion, question: Question<'_>) -> String {
        self.said(opinion.state, question, Nested::cause)
    }

    fn basis(&self) -> Basis {
        Basis::Gates
    }

    fn is_unread(&self, _: Question<'_>) -> bool {
        false
    }

    fn good_until(&self) -> Option<Timestamp> {
        self.keepers().filter_map(Keeper::good_until).min()
    }

    fn has_volatile_message(&self) -> bool {
        self.keepers().any(Keeper::has_volatile_message)
    }

    fn weight_behind(&self) -> usize {
        self.gates.iter().map(Nested::weight).sum()
    }

    /// What has run out may not decide.
    fn good_after(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = self.keepers().filter_map(|keeper| keeper.good_after(now));
        ends.filter(|end| *end > now).min()
    }

    fn uses_status_fallback_behind(&self, now: Now) -> bool {
        self.keepers()
            .any(|keeper| keeper.uses_status_fallback(now))
    }

    fn next_change_behind(&self, question: Question<'_>) -> Option<Timestamp> {
        let here = self.gates.iter().filter_map(Nested::here);
        let change = |(gate, gathered): &(Arc<Gate>, Gathered)| {
            gate::next_change(&gathered.view(gate), question)
        };
        here.filter_map(change).min()
    }
}

impl Behind {
    pub(super) fn with_keepers(&self, make: &impl Fn(&Keeper) -> Keeper) -> Self {
        Self {
            require: self.require,
            gates: (self.gates.iter())
                .map(|gate| gate.with_keepers(make))
                .collect(),
        }
    }

    /// The gatekeepers that are found behind it.
    fn keepers(&self) -> impl Iterator<Item = &Keeper> {
        let here = self.gates.iter().filter_map(Nested::here);
        here.flat_map(|(_, gathered)| gathered.keepers().flatten())
    }

    /// The words of the gates that make it what it is.
    fn said(
        &self,
        state: State,
        question: Question<'_>,
        words: fn(&Nested, Question<'_>) -> String,
    ) -> String {
        let decides = |gate: &&Nested| gate.opinion(question).counts_as(self.require) == state;
        let decide = self.gates.iter().filter(decides).take(NAMED);
        let said = decide.map(|gate| format!("gate {}: {}", gate.name, words(gate, question)));
        said.collect::<Vec<_>>().join("; ")
    }
}

impl Nested {
    /// The gate with what it depends on, if it can be asked.
    pub(super) fn here(&self) -> Option<&(Arc<Gate>, Gathered)> {
        match &self.found {
            Found::Gate(named) => named.here().map(AsRef::as_ref),
            Found::Cycle(_) | Found::TooMany => None,
        }
    }

    /// How much there is to ask for one answer.
    fn weight(&self) -> usize {
        let listed = self.here().into_iter();
        let listed = listed.flat_map(|(_, gathered)| gathered.keepers());
        1 + listed.map(|it| it.map_or(1, Keeper::weight)).sum::<usize>()
    }

    fn with_keepers(&self, make: &impl Fn(&Keeper) -> Keeper) -> Self {
        let found = match self.here() {
            Some((gate, gathered)) => {
                let gathered = gathered.with_keepers(make);
                Found::Gate(Named::Here(Box::new((Arc::clone(gate), gathered))))
            }
            None => self.found.clone(),
        };
        Self {
            name: self.name.clone(),
            found,
        }
    }

    pub(super) fn opinion(&self, question: Question<'_>) -> Opinion {
        let asked = match &self.found {
            Found::Gate(named) => named.asked(Reason::Missing),
            Found::TooMany => Err(Opinion::closed(Reason::InvalidSpec)),
            Found::Cycle(_) => Err(Opinion::closed(Reason::Cycle)),
        };
        match asked {
            Ok(found) => {
                let (gate, gathered) = found.as_ref();
                gate::opinion(&gathered.view(gate), question)
            }
            Err(closed) => closed,
        }
    }

    pub(super) fn explain(&self, question: Question<'_>) -> String {
        match &self.found {
            Found::Gate(Named::Here(found)) => {
                let (gate, gathered) = found.as_ref();
                gate::explain(&gathered.view(gate), question).2
            }
            Found::Gate(absent) => absent.obstacle("gate").unwrap_or_default(),
            Found::Cycle(by) => format!("it depends on itself: {by}"),
            Found::TooMany => format!("it depends on more than {MOST_GATES} gates"),
        }
    }

    /// The same for pictures and calendars: without the instants that would make each day's words
    /// different.
    fn cause(&self, question: Question<'_>) -> String {
        let Some((gate, gathered)) = self.here() else {
            return self.explain(question);
        };
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
    fn causes(&self, view: &View<'_>, state: State, question: Question<'_>) -> String {
        let require = view.require();
        let said = self.keepers().enumerate().filter_map(|(place, keeper)| {
            let name = words::name(view, place);
            let Some(keeper) = keeper else {
                // One that cannot be asked admits nothing.
                let closed = state == State::Closed;
                return closed.then(|| format!("{name}: it cannot be asked"));
            };
            let decides = keeper.opinion(question).counts_as(require) == state;
            decides.then(|| format!("{name}: {}", keeper.cause(question)))
        });
        said.take(NAMED).collect::<Vec<_>>().join("; ")
    }
}
