//! Reasons that records have for how far they are, and for which pull requests are closed, where others read
//! them.

use sluice_crds::pipeline::PromotionRecord;

/// The reason of a record whose admission this cluster alone reads.
pub const ADMITTED: &str = "Admitted";
/// The reason of a record whose pull request had nothing to change: the target branch has it already.
pub(super) const ALREADY_IN_BASE: &str = "AlreadyInBase";
/// The reason of a record whose environment has run the revision.
pub(super) const ARRIVED: &str = "Arrived";
/// The reason of a record whose admission all gatekeepers have been told.
pub(super) const REPORTED: &str = "Reported";
/// The reason of a record whose pull request was merged.
pub const MERGED: &str = "Merged";
/// The reason of a record whose notification was sent.
pub(super) const SENT: &str = "Sent";
/// The reason of a record whose pull request was merged although the gates held that back.
pub const MERGED_PAST_GATE: &str = "MergedPastGate";
/// The reason of a record of which nothing but its end is wanted: it is closed, and the promotion begins again
/// with a new run. It is of a pull request that is open at the forge and of which nothing else is known, so
/// that anybody who may push could have opened it; or of one that had to be closed before the status was lost.
pub const RECALLED: &str = "Recalled";
/// Why a pull request is closed when its environment is to have another promotion.
pub const SUPERSEDED: &str = "another promotion takes its place";

/// Whether a promotion belongs to no run any more, and nobody asks for its pull request.
pub(in crate::delivery) fn is_recalled(record: &PromotionRecord) -> bool {
    record.reason.as_deref() == Some(RECALLED)
}
