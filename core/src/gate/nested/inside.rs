//! What the gates say that a gate depends on, one inside of another.
//!
//! What comes in: a gate with everything that it depends on, and a question. What goes out: a tree
//! to be shown, as deep as the gates are.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sluice_crds::gate::GatekeeperVerdict;
use sluice_crds::{Gate, Require, State};

use super::{Found, Gathered, Named, Nested};
use crate::gate;
use crate::gatekeeper::Keeper;
use crate::question::Question;

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
    /// What each of its gatekeepers says, and the gates behind that one.
    pub verdicts: Vec<(GatekeeperVerdict, Vec<Inside>)>,
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

    /// The gates behind each gatekeeper of the gate, in the order of its spec.
    pub fn inside(&self, question: Question<'_>) -> Vec<Vec<Inside>> {
        let behind = |named: &Named<Arc<Keeper>>| match named {
            Named::Here(keeper) => {
                let gates = keeper.evidence().gates().iter();
                gates.map(|gate| gate.inside(question)).collect()
            }
            Named::Missing | Named::Forbidden | Named::Unreadable(_) => Vec::new(),
        };
        self.keepers.iter().map(behind).collect()
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
            verdicts: (told.verdicts.into_iter())
                .zip(gathered.inside(question))
                .collect(),
        }
    }
}
