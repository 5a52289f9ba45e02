//! How far what is in memory can be relied on: the clock, the authors of annotations, and whether
//! changes on the API server are still seen.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sluice_core::gate::Identity;
use sluice_core::time::clock::{Now, Trust};
use sluice_crds::flux::FluxKind;
use sluice_watching::Pulse;
use tokio::time::Instant;

use super::{Standing, World};
use crate::observe::clock::Jumps;
use crate::observe::clock::skew;

impl World {
    /// How far the clock and the authors of annotations can be relied on.
    pub fn standing(&self) -> Standing {
        *self.standing.read()
    }

    /// Changes that. Returns whether it was different before.
    pub fn stand(&self, change: impl FnOnce(&mut Standing)) -> bool {
        let mut standing = self.standing.write();
        let before = *standing;
        change(&mut standing);
        before != *standing
    }

    /// The same, with a clock that may jump: after a jump, nothing that was found out before is relied
    /// on.
    #[must_use]
    pub fn with_jumps(self, jumps: Arc<Jumps>) -> Self {
        for (_, pulse) in self.pulses() {
            pulse.heed(jumps.clone());
        }
        self.gated_sources.pulse().heed(jumps.clone());
        for kind in FluxKind::ALL {
            self.flux.of(kind).pulse().heed(jumps.clone());
        }
        self.verifiers.heed(&jumps);
        Self {
            jumps: Some(jumps),
            ..self
        }
    }

    /// Notes how far the clock can be relied on, as it was compared after this many jumps. Returns
    /// whether that has changed.
    pub fn compared(&self, trust: Trust, jumps: u64) -> bool {
        let is_news = |known: &Standing| !skew::is_as_good(known.trust, trust);
        let changed = is_news(&self.standing()) && self.stand(|standing| standing.trust = trust);
        let before = self.compared.swap(jumps, Ordering::Relaxed);
        changed || before != jumps
    }

    /// Whether the clock has not jumped since it was compared.
    pub fn is_compared(&self) -> bool {
        self.jumped().is_none()
    }

    /// By how much the clock has jumped since it was compared.
    fn jumped(&self) -> Option<SignedDuration> {
        let jumps = self.jumps.as_ref()?;
        let is_compared = jumps.count() == self.compared.load(Ordering::Relaxed);
        (!is_compared).then(|| jumps.last())
    }

    /// The present instant, with how far its clock can be relied on. A clock that has jumped cannot be
    /// relied on until it is compared with the API server's.
    pub fn now(&self, at: Timestamp) -> Now {
        let trust = match self.jumped() {
            Some(by) => Trust::Lost(by),
            None => self.standing().trust,
        };
        Now { at, trust }
    }

    /// Whether everything that gates are decided from is listed: before that, no gate is decided.
    pub fn is_synced(&self) -> bool {
        self.gates.is_synced() && self.gatekeepers.is_synced() && self.approvals.is_synced()
    }

    /// Whether questions can be answered: everything is listed, gate policies and namespaces too, the
    /// admission policies have been looked for, the clocks compared.
    pub fn is_ready(&self) -> bool {
        self.is_synced()
            && self.policies.is_synced()
            && self.namespaces.is_synced()
            && self.known.load(Ordering::Relaxed)
    }

    /// From now on questions can be answered.
    pub(crate) fn ready(&self) {
        self.known.store(true, Ordering::Relaxed);
    }

    /// Waits until everything that gates are decided from is listed.
    pub async fn synced(&self) {
        self.gates.synced().await;
        self.gatekeepers.synced().await;
        self.approvals.synced().await;
    }

    /// The same world, for a controller that sees only this namespace.
    #[must_use]
    pub fn only_in(self, namespace: &str) -> Self {
        Self {
            only: Some(namespace.into()),
            ..self
        }
    }

    /// The watches that have to be alive for gates to be decided, with their plurals.
    pub fn pulses(&self) -> [(&'static str, &Pulse); 5] {
        [
            ("gates", self.gates.pulse()),
            ("gatekeepers", self.gatekeepers.pulse()),
            ("approvals", self.approvals.pulse()),
            ("gatepolicies", self.policies.pulse()),
            ("namespaces", self.namespaces.pulse()),
        ]
    }

    /// Why changes are not seen any more, if too little is heard of a watch: then every gate is closed,
    /// because somebody may have closed it since then. If forces count because of admission policies that
    /// are not seen any more, a force that opens may be forged, and without a force that closes a gate
    /// would open.
    pub fn silence(&self) -> Option<String> {
        let now = Instant::now();
        let mut pulses = self.pulses().into_iter();
        let silence = pulses.find_map(|(plural, pulse)| {
            let why = pulse.silence(now)?;
            Some(format!("changes of {plural} are not seen any more: {why}"))
        });
        silence.or_else(|| {
            self.verifiers
                .silence(now)
                .filter(|_| self.needs_verifiers())
        })
    }

    /// For how long nothing was heard of each watch that gates are decided from, by their plurals.
    pub fn ages(&self, now: Instant) -> Vec<(&'static str, Duration)> {
        let pulses = self.pulses().into_iter();
        let ages = pulses.filter_map(|(plural, pulse)| Some((plural, pulse.age(now)?)));
        let verifiers = self.verifiers.ages(now);
        ages.chain(verifiers.filter(|_| self.needs_verifiers()))
            .collect()
    }

    /// Whether forces count only because admission policies verify who they are from.
    fn needs_verifiers(&self) -> bool {
        self.standing().identity == Identity::Verified && !self.trusts_all
    }

    /// Whether statuses have to report such a silence. Not a short one, which is over before all of them
    /// are written.
    pub fn tells_silence(&self) -> bool {
        self.tells_silence.load(Ordering::Relaxed)
    }

    /// From now on statuses report it, or do not.
    pub(crate) fn tell_silence(&self, is_told: bool) {
        self.tells_silence.store(is_told, Ordering::Relaxed);
    }
}
