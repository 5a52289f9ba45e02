//! What the gates say that a gate depends on, one inside of another.
//!
//! What comes in: a gate with everything that it depends on, and a question. What goes out: a tree
//! to be shown, as deep as the gates are.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sluice_crds::gate::GatekeeperVerdict;
use sluice_crds::{Gate, GatekeeperSpec, Require, State};

use super::{Found, Gathered, Named, Nested};
use crate::gate;
use crate::gatekeeper::Keeper;
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
    /// When time changes its state. None: not by time, as far as is known, or the gates behind it
    /// say so themselves.
    pub changes: Option<Timestamp>,
    /// The gates behind it.
    pub behind: Vec<Inside>,
}

impl Gathered {
    /// The gatekeepers that the gate lists, and the gates behind them with theirs: each by its kind.
    pub fn objects(&self) -> Vec<(&'static str, &ObjectMeta)> {
        let mut all = Vec::new();
        for keeper in &self.keepers {
            let Named::Here(keeper) = keeper else {
                continue;
            };
            all.push(("Gatekeeper", &keeper.object().metadata));
            for nested in keeper.evidence().gates() {
                if let Found::Gate(Named::Here(found)) = &nested.found {
                    all.push(("Gate", &found.0.metadata));
                    all.extend(found.1.objects());
                }
            }
        }
        all
    }

    /// The specs of the gatekeepers that the gate lists, and of those of the gates behind them.
    pub fn specs(&self) -> Vec<&GatekeeperSpec> {
        let mut all = Vec::new();
        for keeper in &self.keepers {
            let Named::Here(keeper) = keeper else {
                continue;
            };
            all.push(&keeper.object().spec);
            for nested in keeper.evidence().gates() {
                if let Found::Gate(Named::Here(found)) = &nested.found {
                    all.extend(found.1.specs());
                }
            }
        }
        all
    }

    /// What the gatekeepers say whose verdicts are `told`, in the order of the gate's spec: when that
    /// changes, and the gates behind each.
    pub fn said(&self, told: &[GatekeeperVerdict], question: Question<'_>) -> Vec<Said> {
        let said = |(named, told): (&Named<Arc<Keeper>>, &GatekeeperVerdict)| {
            let told = told.clone();
            match named {
                Named::Here(keeper) => Said {
                    told,
                    changes: keeper.changes(question),
                    behind: (keeper.evidence().gates().iter())
                        .map(|gate| gate.inside(question))
                        .collect(),
                },
                Named::Missing | Named::Forbidden | Named::Unreadable(_) => Said {
                    told,
                    changes: None,
                    behind: Vec::new(),
                },
            }
        };
        self.keepers.iter().zip(told).map(said).collect()
    }
}

impl Nested {
    fn inside(&self, question: Question<'_>) -> Inside {
        let Found::Gate(Named::Here(found)) = &self.found else {
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
        let (gate, gathered): &(Arc<Gate>, Gathered) = found;
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
