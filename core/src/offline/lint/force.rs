//! Annotations that force a gate and make no sense at any time. What makes none at one instant,
//! such as an end that has passed, is reported by the decision at that instant.

use jiff::{SignedDuration, Timestamp};
use sluice_crds::Gate;
use sluice_crds::gate::annotations::{FORCE_UNTIL, RFC_CLOSE, RFC_OPEN};

use crate::gate::Identity;
use crate::gate::force::read;
use crate::text::refusal::Refusal;

/// The complaints that do not depend on when one looks.
pub(super) fn check(gate: &Gate) -> Vec<Refusal> {
    let complaints = |at| read(gate, Identity::Trusted, at).complaints;
    let mut looks = looks(gate).into_iter().map(complaints);
    let Some(first) = looks.next() else {
        return Vec::new();
    };
    looks.fold(first, |complaints, others| {
        complaints
            .into_iter()
            .filter(|one| others.iter().any(|o| o.field == one.field))
            .collect()
    })
}

/// Instants at which an annotation that makes sense at any time does: just before the end that
/// one names, and when one was requested.
fn looks(gate: &Gate) -> Vec<Timestamp> {
    let annotations = gate.metadata.annotations.as_ref();
    let instant = |name: &str| annotations?.get(name)?.parse::<Timestamp>().ok();
    let moment = SignedDuration::from_millis(1);
    let before_end = instant(FORCE_UNTIL).and_then(|end| end.checked_sub(moment).ok());
    let mut looks = vec![before_end.unwrap_or(Timestamp::UNIX_EPOCH)];
    looks.extend([RFC_OPEN, RFC_CLOSE].into_iter().filter_map(instant));
    looks
}
