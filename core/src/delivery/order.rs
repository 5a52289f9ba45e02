//! How long an order to merge holds: as long as the gates admit the merge, and a minute at most.
//!
//! `until`: until when the answer of the gates holds if no change is seen.

use jiff::{SignedDuration, Timestamp};
use sluice_crds::pipeline::Order;

use crate::time::stamp::whole_second;

/// How long an order to merge holds at most.
const LONGEST: SignedDuration = SignedDuration::from_secs(60);

/// Whether an order holds now, and not for longer than the gates admit the merge.
pub(super) fn holds(order: &Order, until: Option<Timestamp>, now: Timestamp) -> bool {
    order.not_after.0 > now && until.is_none_or(|until| order.not_after.0 <= until)
}

/// When an order ends that is given now. None: it would be over at once.
pub(super) fn end(until: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    let longest = now.saturating_add(LONGEST).unwrap_or(now);
    let end = whole_second(until.map_or(longest, |until| until.min(longest)));
    (end > now).then_some(end)
}
