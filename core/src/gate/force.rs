//! Forces: people who open or close a gate, whatever its gatekeepers say.
//!
//! Two dialects of annotations. `sluice.dev/force` with who, why and until when; and the gating
//! RFC's `open.gate.fluxcd.io/requestedAt` and `close.gate.fluxcd.io/requestedAt`, an instant from
//! which `spec.window` counts. A malformed value is reported and changes nothing. Closed beats
//! open.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};
use sluice_crds::gate::annotations::{
    FORCE, FORCE_BY, FORCE_REASON, FORCE_SEEN, FORCE_UNTIL, RFC_CLOSE, RFC_OPEN,
};
use sluice_crds::{Gate, Setting};

use super::Terms;
use crate::duration;
use crate::refusal::Refusal;
use crate::words;

/// How far ahead of us the clock may be that wrote a request.
const CLOCKS_APART: SignedDuration = SignedDuration::from_secs(60);

/// Every annotation that is part of a force, the controller's own note apart.
const PARTS: [&str; 6] = [
    FORCE,
    FORCE_UNTIL,
    FORCE_REASON,
    FORCE_BY,
    RFC_OPEN,
    RFC_CLOSE,
];

/// Whether the author of an annotation is known to be who it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Admission policies make sure of it.
    Verified,
    /// Nobody makes sure, and the operator says that this is all right.
    Trusted,
    /// Nobody makes sure: forces do not count.
    Unverified,
}

/// A force: who, why, until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Force {
    /// The forced state.
    pub state: Setting,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
    /// Until when, itself outside.
    pub until: Timestamp,
}

/// What a gate's annotations come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forces {
    /// The forces that count, at some time.
    forces: Vec<Force>,
    /// What is wrong with the annotations.
    pub complaints: Vec<Refusal>,
    /// The annotations as the controller should complete and co-own them. None: they are complete.
    pub completion: Option<BTreeMap<String, String>>,
}

impl Forces {
    /// The force in effect at `at`: closed beats open, then the one that lasts longest.
    pub fn in_effect(&self, at: Timestamp) -> Option<&Force> {
        let current = self
            .forces
            .iter()
            .filter(|force| force.since <= at && at < force.until);
        current.max_by_key(|force| (force.state == Setting::Closed, force.until))
    }

    /// When each of them starts or ends.
    pub(super) fn ends(&self) -> impl Iterator<Item = Timestamp> {
        self.forces
            .iter()
            .flat_map(|force| [force.since, force.until])
    }
}

/// Whether anybody forces the gate, or means to.
pub fn is_asked_for(gate: &Gate) -> bool {
    let annotations = gate.metadata.annotations.as_ref();
    annotations.is_some_and(|all| PARTS.iter().any(|part| all.contains_key(*part)))
}

/// Reads a gate's annotations at `now`.
pub fn read(gate: &Gate, identity: Identity, now: Timestamp) -> Forces {
    let Some(annotations) = &gate.metadata.annotations else {
        return Forces::default();
    };
    if !is_asked_for(gate) {
        return Forces::default();
    }
    if identity == Identity::Unverified {
        return Forces {
            complaints: vec![unverified()],
            ..Forces::default()
        };
    }
    let terms = super::check(gate).unwrap_or(Terms {
        window: SignedDuration::ZERO,
        max_override: SignedDuration::ZERO,
    });
    let reader = Reader {
        annotations,
        terms,
        now,
    };
    reader.read()
}

fn field(annotation: &str) -> String {
    format!("metadata.annotations[{annotation}]")
}

fn unverified() -> Refusal {
    Refusal::new(
        "metadata.annotations",
        "the gate is forced by somebody whose identity nobody verified, so the force does not count",
        "install the admission policies of the chart, or run the controller with --trust-unverified-identity",
    )
}

struct Reader<'a> {
    annotations: &'a BTreeMap<String, String>,
    terms: Terms,
    now: Timestamp,
}

impl Reader<'_> {
    fn get(&self, annotation: &str) -> Option<&str> {
        self.annotations.get(annotation).map(String::as_str)
    }

    fn read(&self) -> Forces {
        let mut forces = Forces::default();
        let mut until = None;
        match self.own_dialect() {
            Ok(Some(force)) => {
                until = Some(force.until);
                forces.forces.push(force);
            }
            Ok(None) => {}
            Err(complaint) => forces.complaints.push(complaint),
        }
        for (annotation, state) in [(RFC_OPEN, Setting::Open), (RFC_CLOSE, Setting::Closed)] {
            match self.rfc_dialect(annotation, state) {
                Ok(force) => forces.forces.extend(force),
                Err(complaint) => forces.complaints.push(complaint),
            }
        }
        let ahead = forces.forces.iter().any(|force| self.now < force.until);
        let refused_for_good = self.too_long().is_some()
            || [RFC_OPEN, RFC_CLOSE]
                .into_iter()
                .any(|request| self.lies_ahead(request));
        if ahead || refused_for_good {
            forces.completion = self.completion(until);
        }
        forces
    }

    /// `sluice.dev/force` and its companions.
    fn own_dialect(&self) -> Result<Option<Force>, Refusal> {
        let Some(state) = self.get(FORCE) else {
            return self.companions_alone();
        };
        let state = match state {
            "open" => Setting::Open,
            "closed" => Setting::Closed,
            other => {
                let problem = format!("`{other}` is no state");
                return Err(Refusal::new(field(FORCE), problem, "write open or closed"));
            }
        };
        let reason = self.required(FORCE_REASON, "say why the gate is forced")?;
        let by = self.required(FORCE_BY, "write the user name of who forces the gate")?;
        let given = self.given_until()?;
        let since = self.seen().unwrap_or(self.now);
        if let Some(problem) = self.too_long() {
            let most = duration::text(self.terms.max_override);
            let remedy = format!("write an end at most {most} (spec.maxOverride) ahead");
            return Err(Refusal::new(field(FORCE_UNTIL), problem, remedy));
        }
        let until = given.unwrap_or_else(|| later(since, self.terms.window));
        if until <= since {
            let problem = format!("the end {} has passed", words::instant_utc(until));
            return Err(Refusal::new(
                field(FORCE_UNTIL),
                problem,
                "write a later end, or remove it",
            ));
        }
        Ok(Some(Force {
            state,
            by: by.to_owned(),
            reason: reason.to_owned(),
            since,
            until,
        }))
    }

    /// An end, a reason or a name that forces nothing: tell, for somebody meant something by it.
    fn companions_alone(&self) -> Result<Option<Force>, Refusal> {
        match self.get(FORCE_UNTIL) {
            Some(_) => Err(Refusal::new(
                field(FORCE_UNTIL),
                format!("it does nothing without {FORCE}"),
                format!("write {FORCE} too, or remove it"),
            )),
            None => Ok(None),
        }
    }

    fn required(&self, annotation: &str, remedy: &str) -> Result<&str, Refusal> {
        match self.get(annotation).map(str::trim) {
            Some(value) if !value.is_empty() => Ok(value),
            _ => Err(Refusal::new(
                field(annotation),
                "it is missing, so the force does not count",
                remedy,
            )),
        }
    }

    fn given_until(&self) -> Result<Option<Timestamp>, Refusal> {
        self.get(FORCE_UNTIL)
            .map(|text| instant(FORCE_UNTIL, text))
            .transpose()
    }

    /// What is wrong with the length of the force, counted from when it was first seen: it does
    /// not become right by waiting.
    fn too_long(&self) -> Option<String> {
        self.get(FORCE)?;
        let until = self.given_until().ok()??;
        let since = self.seen().unwrap_or(self.now);
        let length = until.duration_since(since);
        (length > self.terms.max_override)
            .then(|| format!("the force would last {}", duration::text(length)))
    }

    /// When the controller first saw these very annotations.
    fn seen(&self) -> Option<Timestamp> {
        let (instant, fingerprint) = self.get(FORCE_SEEN)?.split_once(' ')?;
        let instant: Timestamp = instant.parse().ok()?;
        (fingerprint == fingerprint_of(self.annotations) && instant <= self.now).then_some(instant)
    }

    fn completion(&self, until: Option<Timestamp>) -> Option<BTreeMap<String, String>> {
        if self.seen().is_some() {
            return None;
        }
        let mut complete: BTreeMap<String, String> = PARTS
            .iter()
            .filter_map(|part| Some(((*part).to_owned(), self.get(part)?.to_owned())))
            .collect();
        if let Some(until) = until {
            complete
                .entry(FORCE_UNTIL.to_owned())
                .or_insert_with(|| until.to_string());
        }
        let seen = format!("{} {}", self.now, fingerprint_of(&complete));
        complete.insert(FORCE_SEEN.to_owned(), seen);
        Some(complete)
    }

    /// Whether a request of the RFC is of an instant that lay ahead when it was first seen: it
    /// does not become right by waiting.
    fn lies_ahead(&self, annotation: &str) -> bool {
        let request = self.get(annotation).and_then(|text| text.parse().ok());
        let latest = later(self.seen().unwrap_or(self.now), CLOCKS_APART);
        request.is_some_and(|request: Timestamp| request > latest)
    }

    /// The RFC's request: an instant, from which `spec.window` counts.
    fn rfc_dialect(&self, annotation: &str, state: Setting) -> Result<Option<Force>, Refusal> {
        let Some(text) = self.get(annotation) else {
            return Ok(None);
        };
        let since = instant(annotation, text)?;
        if self.lies_ahead(annotation) {
            let problem = format!("{} lies ahead", words::instant_utc(since));
            return Err(Refusal::new(
                field(annotation),
                problem,
                "write the present instant",
            ));
        }
        Ok(Some(Force {
            state,
            by: self.get(FORCE_BY).unwrap_or("unknown").to_owned(),
            reason: self
                .get(FORCE_REASON)
                .map_or_else(|| format!("requested by {annotation}"), str::to_owned),
            since,
            until: later(since, self.terms.window),
        }))
    }
}

fn instant(annotation: &str, text: &str) -> Result<Timestamp, Refusal> {
    text.parse().map_err(|_| {
        Refusal::new(
            field(annotation),
            format!("`{text}` is no instant"),
            "write RFC 3339, such as 2026-11-20T18:00:00Z",
        )
    })
}

fn later(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// Which force it is: the first 12 hexadecimal digits of a hash over all its parts.
fn fingerprint_of(annotations: &BTreeMap<String, String>) -> String {
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
