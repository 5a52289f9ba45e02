//! `sluice.dev/force-seen`: the controller's note of what it made of a force, and when.
//!
//! What comes in: annotations. What goes out: when the controller judged these very ones first,
//! and how long a request of the gating RFC among them lasts. As text that is the instant and a
//! fingerprint of the force, and with a request the window: `2026-11-20T12:00:00Z 5d41402abc4b
//! window=1h`.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};
use sluice_crds::Duration;
use sluice_crds::gate::annotations::{
    FORCE, FORCE_BY, FORCE_REASON, FORCE_SEEN, FORCE_UNTIL, RFC_CLOSE, RFC_OPEN,
};

use crate::duration;

/// Every annotation that is part of a force, the controller's own note apart.
pub(super) const PARTS: [&str; 6] = [
    FORCE,
    FORCE_UNTIL,
    FORCE_REASON,
    FORCE_BY,
    RFC_OPEN,
    RFC_CLOSE,
];

/// What stands before the window.
const WINDOW: &str = "window=";

/// What the controller noted of a force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Note {
    /// When it judged this very force first.
    pub(super) at: Timestamp,
    /// How long a request of the RFC lasts, as `spec.window` was then. None: there is none.
    pub(super) window: Option<SignedDuration>,
}

impl Note {
    /// The note of these very annotations, as far as there is one and it is not from the future.
    pub(super) fn of(annotations: &BTreeMap<String, String>, now: Timestamp) -> Option<Self> {
        let mut words = annotations.get(FORCE_SEEN)?.split(' ');
        let at: Timestamp = words.next()?.parse().ok()?;
        if words.next()? != fingerprint(annotations) || at > now {
            return None;
        }
        let window = match words.next() {
            Some(word) => Some(window(word)?),
            None => None,
        };
        let whole = words.next().is_none() && window.is_some() == has_request(annotations);
        whole.then_some(Self { at, window })
    }
}

/// The note, as text, of `annotations` judged at `at` by the terms of a spec with `window`.
pub(super) fn text(
    annotations: &BTreeMap<String, String>,
    at: Timestamp,
    window: &Duration,
) -> String {
    let seen = format!("{at} {}", fingerprint(annotations));
    if has_request(annotations) {
        format!("{seen} {WINDOW}{window}")
    } else {
        seen
    }
}

fn window(word: &str) -> Option<SignedDuration> {
    duration::parse(&Duration::from(word.strip_prefix(WINDOW)?)).ok()
}

fn has_request(annotations: &BTreeMap<String, String>) -> bool {
    annotations.contains_key(RFC_OPEN) || annotations.contains_key(RFC_CLOSE)
}

/// Which force it is: the first 12 hexadecimal digits of a hash over all its parts.
fn fingerprint(annotations: &BTreeMap<String, String>) -> String {
    let mut hash = Sha256::new();
    for part in PARTS {
        if let Some(value) = annotations.get(part) {
            hash.update(part);
            hash.update([0]);
            hash.update(value);
            hash.update([0]);
        }
    }
    hash.finalize()
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
