//! Reasons that records have for how far they are, and that later looks read.

use sluice_crds::pipeline::PromotionRecord;

/// The reason of a record whose environment has run the revision.
pub(super) const ARRIVED: &str = "Arrived";
/// The reason of a record whose admission all gatekeepers have been told.
pub(super) const REPORTED: &str = "Reported";
/// The reason of a record whose pull request was merged although the gates held that back.
pub const MERGED_PAST_GATE: &str = "MergedPastGate";
/// The reason of a record of a pull request that is open at the forge, and of which nothing else is known:
/// anybody who may push could have opened it. It is closed, and the promotion begins again.
pub(super) const RECALLED: &str = "Recalled";

/// Whether nothing but the forge says that this was promoted.
pub(super) fn is_recalled(record: &PromotionRecord) -> bool {
    record.reason.as_deref() == Some(RECALLED)
}
