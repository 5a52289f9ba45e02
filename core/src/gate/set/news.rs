//! Whether a decision says anything new to a reader.
//!
//! A new measurement alone is not new: otherwise it would be written at each look. What people did is
//! new, such as the first of two approvals, although state and reason stay the same.

use sluice_crds::{CheckedGate, Decision};

use super::Set;
use crate::gate::{self, Named};
use crate::verdict::question::Question;

/// Whether the second decision says the same as the first. `sets` are what the second was made from, and
/// `question` is what it answers.
pub(super) fn tells_the_same(
    sets: &[Set<'_>],
    before: &Decision,
    now: &Decision,
    question: Question<'_>,
) -> bool {
    is_the_same(before, now) && {
        let gates = sets.iter().flat_map(|set| &set.gates);
        let told = before.checked.iter().zip(&now.checked);
        let mut all = gates.zip(told);
        all.all(|((_, gate), (before, now))| says_the_same(gate, question, before, now))
    }
}

/// All but the words.
fn is_the_same(before: &Decision, now: &Decision) -> bool {
    let checked = |decision: &Decision| -> Vec<_> {
        let checked = decision.checked.iter();
        let told = checked.map(|it| {
            let (gate, policy) = (it.gate.clone(), it.policy.clone());
            (gate, policy, it.state, it.reason.clone())
        });
        told.collect()
    };
    before.allowed == now.allowed
        && before.subject == now.subject
        && before.require == now.require
        && before.decided_by == now.decided_by
        && before.next == now.next
        && checked(before) == checked(now)
}

/// Whether a gate says the same in words. Where some of them change with each measurement, only those of
/// its other gatekeepers count.
fn says_the_same(
    gate: &Named<gate::View<'_>>,
    question: Question<'_>,
    before: &CheckedGate,
    now: &CheckedGate,
) -> bool {
    let Named::Here(view) = gate else {
        return before.message == now.message;
    };
    match gate::steady_words(view, question) {
        None => before.message == now.message,
        Some(words) => words
            .iter()
            .all(|words| before.message.contains(words) || !now.message.contains(words.as_str())),
    }
}
