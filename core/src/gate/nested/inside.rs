//! What the gates say that a gate depends on, one inside of another.
//!
//! What comes in: a gate with everything that it depends on, and a question. What goes out: a tree
//! to be shown, as deep as the gates are.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sluice_crds::gate::GatekeeperVerdict;
use sluice_crds::{GatekeeperSpec, Require, State};

use super::{Gathered, Listed, Nested};
use crate::gate::{self, Named};
use crate::verdict::question::Question;

/// What one gate says to the gatekeeper that names it.
#[derive(Clone, Debug, PartialEq)]
pub struct Inside {
    /// The gate, with its namespace where that is another than the gatekeeper's.
    pub name: String,
    /// What it says.
    pub state: State,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: String,
    /// How its gatekeepers combine. None: it could not be asked.
    pub require: Option<Require>,
    /// What each of its gatekeepers says.
    pub verdicts: Vec<Said>,
}

/// What one gatekeeper says to the gate that lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Its verdict.
    pub told: GatekeeperVerdict,
    /// When time changes its state. None: time does not change it, as far as is known, or the gates
    /// behind it say so themselves.
    pub changes: Option<Timestamp>,
    /// The gates behind it.
    pub behind: Vec<Inside>,
}

impl Gathered {
    /// The gatekeepers that the gate lists, and the gates behind them with theirs: each by its kind.
    pub fn objects(&self) -> Vec<(&'static str, &ObjectMeta)> {
        let mut all = Vec::new();
        for listed in self.here() {
            all.push(("Gatekeeper", &listed.keeper.object().metadata));
            for (gate, gathered) in listed.gates().iter().filter_map(Nested::here) {
                all.push(("Gate", &gate.metadata));
                all.extend(gathered.objects());
            }
        }
        all
    }

    /// The specs of the gatekeepers that the gate lists, and of those of the gates behind them.
    pub fn specs(&self) -> Vec<&GatekeeperSpec> {
        let mut all = Vec::new();
        for listed in self.here() {
            all.push(&listed.keeper.object().spec);
            for (_, gathered) in listed.gates().iter().filter_map(Nested::here) {
                all.extend(gathered.specs());
            }
        }
        all
    }

    /// What the gatekeepers with the verdicts `told` say, in the order of the gate's spec: when that
    /// changes, and the gates behind each.
    pub fn said(&self, told: &[GatekeeperVerdict], question: Question<'_>) -> Vec<Said> {
        let said = |(named, told): (&Named<Listed>, &GatekeeperVerdict)| {
            let listed = named.here();
            let gates = listed.map_or(&[][..], Listed::gates);
            Said {
                told: told.clone(),
                changes: listed.and_then(|it| it.keeper.next_state_change(question)),
                behind: gates.iter().map(|gate| gate.inside(question)).collect(),
            }
        };
        self.listed.iter().zip(told).map(said).collect()
    }
}

impl Nested {
    fn inside(&self, question: Question<'_>) -> Inside {
        let Some((gate, gathered)) = self.here() else {
            let opinion = self.opinion(question);
            return Inside {
                name: self.name.clone(),
                state: opinion.state,
                reason: opinion.reason.as_str(),
                message: self.explain(question),
                require: None,
                verdicts: Vec::new(),
            };
        };
        let told = gate::told(&gathered.view(gate), question);
        Inside {
            name: self.name.clone(),
            state: told.answer.state,
            reason: told.answer.reason.as_str(),
            message: told.message,
            require: Some(gate.spec.require),
            verdicts: gathered.said(&told.verdicts, question),
        }
    }
}
