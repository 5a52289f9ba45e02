//! How something changes over time.

use jiff::Timestamp;
use serde::Serialize;
use sluice_core::offline::simulate::Stretches;
use sluice_crds::State;

/// A change of state, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Change<'a> {
    at: Timestamp,
    state: State,
    reason: &'static str,
    causes: &'a [String],
}

/// The changes of state, the first of them where the time starts.
pub(crate) fn changes(stretches: &Stretches) -> Vec<Change<'_>> {
    let changes = stretches.changes().map(|stretch| Change {
        at: stretch.span.start,
        state: stretch.answer.state,
        reason: stretch.answer.reason.as_str(),
        causes: &stretch.causes,
    });
    changes.collect()
}
