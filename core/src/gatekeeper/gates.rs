//! `gates`: other gates, each by itself or all of them.
//!
//! What comes in: the spec. What goes out: what is wrong with it, and the rule as long as those gates
//! were not asked. The room `gate` finds them (its module `nested`), and has the rule with their answers.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::GateSet;

use super::kind::{Basis, Judge, KindSpec, Setup};
use crate::text::refusal::{Refusal, Refusals};
use crate::verdict::question::Question;
use crate::verdict::{Opinion, Reason};

impl KindSpec for GateSet {
    fn judge(&self, _: &Setup<'_>) -> Result<Arc<dyn Judge>, Refusals> {
        check(self, "spec.gates").map(|()| Arc::new(Unasked) as Arc<dyn Judge>)
    }
}

/// Everything that is wrong with a set of gates. `field` is where it is.
///
/// # Errors
/// The mistakes.
pub(crate) fn check(set: &GateSet, field: &str) -> Result<(), Refusals> {
    let mut mistakes = Vec::new();
    if set.refs.is_empty() {
        mistakes.push(Refusal::new(
            format!("{field}.refs"),
            "it names no gate",
            "name at least one",
        ));
    }
    for (place, reference) in set.refs.iter().enumerate() {
        if set.refs[..place].contains(reference) {
            mistakes.push(Refusal::new(
                format!("{field}.refs[{place}]"),
                format!("`{}` is listed twice", reference.name),
                "list each gate once",
            ));
        }
    }
    Refusals::unless_empty(mistakes, ())
}

/// Gates that were not asked.
#[derive(Debug)]
struct Unasked;

impl Judge for Unasked {
    fn opinion(&self, _: Question<'_>) -> Opinion {
        Opinion::closed(Reason::Nested)
    }

    fn explain(&self, _: &Opinion, _: Question<'_>) -> String {
        "its gates have not been asked yet".to_owned()
    }

    fn basis(&self) -> Basis {
        Basis::Gates
    }

    fn is_unread(&self, _: Question<'_>) -> bool {
        false
    }

    fn good_until(&self) -> Option<Timestamp> {
        None
    }
}
