//! `sluice.dev/force-seen`: the controller's note of what it made of the forces on a gate, and when.
//!
//! What comes in: annotations. What goes out: for each of the three that force a gate, when the
//! controller judged this very one first, who wrote it and why, and how long a request of the
//! gating RFC lasts. As text that is JSON: `{"force":{"at":"2026-11-20T12:00:00Z",…}}`.
//!
//! Each force is noted for itself, so that another one beside it changes nothing about it. Name and
//! reason are annotations that all of them share: whichever force is new has brought them.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sluice_crds::gate::annotations::{
    FORCE, FORCE_BY, FORCE_REASON, FORCE_SEEN, FORCE_UNTIL, RFC_CLOSE, RFC_OPEN,
};
use sluice_crds::{Duration, Setting};

use crate::time::duration;

/// Every annotation that is part of a force, the controller's own note apart.
pub(super) const PARTS: [&str; 6] = [
    FORCE,
    FORCE_UNTIL,
    FORCE_REASON,
    FORCE_BY,
    RFC_OPEN,
    RFC_CLOSE,
];

/// One of the forces that a gate may have at the same time, by what asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Slot {
    /// `sluice.dev/force`.
    Force,
    /// The RFC's request to open.
    Open,
    /// The RFC's request to close.
    Close,
}

impl Slot {
    pub(super) const ALL: [Self; 3] = [Self::Force, Self::Open, Self::Close];

    /// What the RFC's request asks for, and the annotation that it is. None: it is none.
    pub(super) fn request(self) -> Option<(&'static str, Setting)> {
        match self {
            Self::Force => None,
            Self::Open => Some((RFC_OPEN, Setting::Open)),
            Self::Close => Some((RFC_CLOSE, Setting::Closed)),
        }
    }

    /// The annotations that are this force's alone, the first of which has to be there.
    fn own(self) -> &'static [&'static str] {
        match self {
            Self::Force => &[FORCE, FORCE_UNTIL],
            Self::Open => &[RFC_OPEN],
            Self::Close => &[RFC_CLOSE],
        }
    }

    fn is_in(self, annotations: &BTreeMap<String, String>) -> bool {
        annotations.contains_key(self.own()[0])
    }
}

/// What the controller noted of one force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// When it judged this very force first.
    pub(super) at: Timestamp,
    /// Which force it was: a fingerprint of the annotations that are its own.
    is: String,
    /// With which name and reason it came: a fingerprint of both annotations.
    with: String,
    /// Who, fit to be shown. None: nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<String>,
    /// Why, fit to be shown. None: nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// How long a request of the RFC lasts, as `spec.window` was then. None: it is no request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window: Option<Duration>,
}

impl Note {
    /// How long a request of the RFC lasts.
    pub(super) fn length(&self) -> Option<SignedDuration> {
        duration::parse(self.window.as_ref()?).ok()
    }

    /// Whether it is about the force that the annotations hold.
    fn is_about(&self, slot: Slot, annotations: &BTreeMap<String, String>) -> bool {
        let whole = match slot.request() {
            Some(_) => self.length().is_some(),
            None => self.window.is_none(),
        };
        whole && slot.is_in(annotations) && self.is == fingerprint(annotations, slot.own())
    }
}

/// What the controller noted of the forces on a gate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Notes(BTreeMap<Slot, Note>);

impl Notes {
    /// The notes of the forces that these annotations have, if there are any and they are not from the
    /// future.
    pub(super) fn of(annotations: &BTreeMap<String, String>, now: Timestamp) -> Self {
        let text = annotations.get(FORCE_SEEN).map(String::as_str);
        let all = text.and_then(|text| serde_json::from_str(text).ok());
        let mut notes: BTreeMap<Slot, Note> = all.unwrap_or_default();
        notes.retain(|slot, note| note.at <= now && note.is_about(*slot, annotations));
        let notes = Self(notes);
        if notes.is_taken_over(annotations) {
            return Self::default();
        }
        notes
    }

    /// Whether somebody has given the forces another name or reason without a new force: then the forces
    /// are theirs from now on.
    fn is_taken_over(&self, annotations: &BTreeMap<String, String>) -> bool {
        let is_new = |slot: &Slot| slot.is_in(annotations) && !self.0.contains_key(slot);
        !Slot::ALL.iter().any(is_new) && !self.came_with(None, annotations)
    }

    /// Whether a force other than `except` came with the name and the reason that are there now.
    fn came_with(&self, except: Option<Slot>, annotations: &BTreeMap<String, String>) -> bool {
        let with = companions(annotations);
        let mut others = self.0.iter().filter(|(slot, _)| Some(**slot) != except);
        others.any(|(_, note)| note.with == with)
    }

    /// The note of a force.
    pub(super) fn get(&self, slot: Slot) -> Option<&Note> {
        self.0.get(&slot)
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the name and the reason that are there now were written for another force than this
    /// one, which is not noted yet.
    pub(super) fn belong_to_another(
        &self,
        slot: Slot,
        annotations: &BTreeMap<String, String>,
    ) -> bool {
        self.came_with(Some(slot), annotations)
    }

    /// Adds the note of a force that is judged at `at` for the first time. `window` is how long it
    /// lasts if it is a request of the RFC.
    pub(super) fn add(
        &mut self,
        slot: Slot,
        annotations: &BTreeMap<String, String>,
        at: Timestamp,
        (by, reason): (Option<String>, Option<String>),
        window: &Duration,
    ) {
        let note = Note {
            at,
            is: fingerprint(annotations, slot.own()),
            with: companions(annotations),
            by,
            reason,
            window: slot.request().map(|_| window.clone()),
        };
        self.0.insert(slot, note);
    }

    /// As text.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }
}

fn companions(annotations: &BTreeMap<String, String>) -> String {
    fingerprint(annotations, &[FORCE_BY, FORCE_REASON])
}

/// The first 12 hexadecimal digits of a hash over these of the annotations.
fn fingerprint(annotations: &BTreeMap<String, String>, parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        if let Some(value) = annotations.get(*part) {
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
