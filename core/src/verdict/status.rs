//! What the reports of all kinds share.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::verdict::Reason;

/// The annotation by which Flux's users ask for a look: its value is answered in
/// `status.lastHandledReconcileAt`.
pub const REQUESTED_AT: &str = "reconcile.fluxcd.io/requestedAt";

/// The value of [`REQUESTED_AT`], if any.
pub(crate) fn requested_at(metadata: &ObjectMeta) -> Option<String> {
    metadata.annotations.as_ref()?.get(REQUESTED_AT).cloned()
}

/// How many changes of state a gatekeeper tells ahead.
pub const UPCOMING: usize = 8;

/// How far ahead it tells them.
pub const HORIZON: SignedDuration = SignedDuration::from_hours(90 * 24);

/// When to look again: when what is said runs out, and when the next change, told ahead by a
/// horizon, comes into view.
pub(crate) fn wake(
    until: Option<Timestamp>,
    next: Option<Timestamp>,
    now: Timestamp,
) -> Option<Timestamp> {
    let into_view = next
        .and_then(|next| next.checked_sub(HORIZON).ok())
        .filter(|into_view| *into_view > now);
    [until, next, into_view]
        .into_iter()
        .flatten()
        .filter(|at| *at > now)
        .min()
}

/// What stands before the trouble that has come up since the last answer.
pub(crate) const SINCE_THEN: &str = "since then: ";

/// What a message about something that is measured says of trouble. The rest of it is another after
/// each look although it means the same; this says what is to be done, and is news.
pub(crate) fn of_trouble(reason: &str, message: &str) -> String {
    let is_trouble = |trouble: &Reason| trouble.as_str() == reason;
    let in_trouble = [Reason::EvidenceUnavailable, Reason::EvidenceBroken]
        .iter()
        .any(is_trouble);
    let is_measured = |part: &str| part.contains(", measured ") || part.contains(", asked ");
    let tells = |part: &&str| part.starts_with(SINCE_THEN) || (in_trouble && !is_measured(part));
    let parts: Vec<_> = message.split("; ").filter(tells).collect();
    parts.join("; ")
}
