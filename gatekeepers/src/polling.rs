//! When to ask again what is asked at intervals, and what such kinds need for it.
//!
//! What comes in: the interval, who asks, and the result. What goes out: what was [`Seen`], and when to
//! ask again, by the [`Beat`] of the one who asks, a pure rule over instants; the [`Keys`] that an
//! address asks for; and attempts that [`persist`] where that may help.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};
use sluice_core::evidence::polling::{Cadence, Trouble};
use sluice_core::gatekeeper::Evidence;
use sluice_core::time::duration;
use sluice_core::time::span::later;
use sluice_crds::gatekeeper::{CertificateReference, SecretReference};
use sluice_egress::secrets;
use sluice_egress::{Credentials, EgressError, shown};

use crate::Clients;
use crate::observation::{self, Observation};

/// The wait after the first failure, where the interval is longer; each further one doubles it.
const RETRY: SignedDuration = SignedDuration::from_mins(1);
/// The wait before the second try of an attempt; each further one doubles it.
const PAUSE: Duration = Duration::from_millis(250);
/// The longest such wait.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What was seen for a spec `S`, which is the rule `R`.
#[derive(Clone, Debug)]
pub(crate) struct Seen<S, R, O> {
    spec: S,
    /// The rule that the spec describes.
    pub(crate) rule: Arc<R>,
    /// The evidence.
    pub(crate) observed: O,
    due: Due,
    /// In a row.
    failures: u32,
}

impl<S: Clone + PartialEq, R, O> Seen<S, R, O> {
    /// After an attempt at `now`, by the beat of the one who asks. `last` was about the same spec.
    pub(crate) fn next(
        last: Option<&Self>,
        (spec, rule): (&S, Arc<R>),
        observed: O,
        failed: bool,
        beat: &Beat,
        now: Timestamp,
    ) -> Self {
        let failures = match failed {
            true => last.map_or(0, |last| last.failures).saturating_add(1),
            false => 0,
        };
        Self {
            spec: spec.clone(),
            rule,
            observed,
            due: beat.after(now, failures),
            failures,
        }
    }

    /// Whether it is about exactly this spec.
    pub(crate) fn is_about(&self, spec: &S) -> bool {
        self.spec == *spec
    }

    /// Whether to ask at `now`.
    pub(crate) fn is_due(&self, now: Timestamp, beat: &Beat) -> bool {
        self.due.is_due(now, beat.interval)
    }

    /// When to look again.
    pub(crate) fn again(&self) -> Timestamp {
        self.due.again()
    }

    /// What is known of `spec`, if it was asked for already.
    pub(crate) fn known(spec: &S, last: &Observation) -> Option<Evidence>
    where
        Self: observation::Seen,
        O: Clone + Debug + PartialEq + Send + Sync + 'static,
    {
        let seen = last.seen::<Self>().filter(|seen| seen.is_about(spec))?;
        Some(Evidence::of(seen.observed.clone()))
    }

    /// The whole observation. Nothing if the spec is refused.
    pub(crate) fn observation(seen: Option<Self>) -> Observation
    where
        Self: observation::Seen,
        O: Clone + Debug + PartialEq + Send + Sync + 'static,
    {
        seen.map_or_else(Observation::default, |seen| {
            let evidence = Evidence::of(seen.observed.clone());
            Observation::new(evidence, Some(seen.again()), seen)
        })
    }
}

impl<S, R, O> observation::Seen for Seen<S, R, O>
where
    S: Clone + Send + Sync + 'static,
    R: Clone + Send + Sync + 'static,
    O: Clone + Send + Sync + 'static,
{
    /// The next look asks, independent of the interval.
    fn make_due(&mut self) {
        self.due = Due::AtOnce;
    }
}

/// When to ask next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// At the next look.
    AtOnce,
    /// Not before.
    At(Timestamp),
}

impl Due {
    /// When to look again.
    pub(crate) fn again(self) -> Timestamp {
        match self {
            Due::AtOnce => Timestamp::MIN,
            Due::At(due) => due,
        }
    }

    /// Whether to ask at `now` what is asked at this interval. If the due instant is farther away than it
    /// can be, it is due: the clock was set back.
    pub(crate) fn is_due(self, now: Timestamp, interval: SignedDuration) -> bool {
        match self {
            Due::AtOnce => true,
            Due::At(due) => due <= now || due > later(now, interval * 2),
        }
    }
}

/// How long to wait after so many failures in a row. None: there was none, or it is longer than can be.
pub(crate) fn retry(failures: u32) -> Option<SignedDuration> {
    let doubled = 2_i32.checked_pow(failures.checked_sub(1)?)?;
    RETRY.checked_mul(doubled)
}

/// The instants at which a gatekeeper asks: an interval apart, and at a different offset in the interval
/// for each gatekeeper, so that many that begin together do not ask together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    interval: SignedDuration,
    /// In milliseconds, below the interval.
    phase: i64,
}

impl Beat {
    /// The beat of the gatekeeper with this uid: always the same.
    pub(crate) fn new(cadence: Cadence, uid: &str) -> Self {
        let [a, b, c, d, e, f, ..] = <[u8; 32]>::from(Sha256::digest(uid));
        let drawn = i64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        let interval = cadence.interval;
        let phase = drawn % millis(interval);
        Self { interval, phase }
    }

    /// When to ask after an attempt at `now`, which was the `failures`th in a row to fail.
    fn after(&self, now: Timestamp, failures: u32) -> Due {
        let beat = self.next(now);
        Due::At(retry(failures).map_or(beat, |wait| beat.min(later(now, wait))))
    }

    /// The next beat that is at least a tenth of the interval away.
    fn next(&self, now: Timestamp) -> Timestamp {
        let interval = millis(self.interval);
        let now = now.as_millisecond();
        let into = (now - self.phase).rem_euclid(interval);
        let wait = interval - into;
        let wait = match wait * 10 < interval {
            true => wait + interval,
            false => wait,
        };
        Timestamp::from_millisecond(now.saturating_add(wait)).unwrap_or(Timestamp::MAX)
    }
}

fn millis(interval: SignedDuration) -> i64 {
    i64::try_from(interval.as_millis()).map_or(i64::MAX, |millis| millis.max(1))
}

/// An attempt that failed.
#[derive(Clone, Debug)]
pub(crate) struct Miss {
    pub(crate) trouble: Trouble,
    /// Whether the same attempt a moment later may have another outcome.
    pub(crate) may_pass: bool,
}

impl Miss {
    /// There is no proper answer; there may be one in a moment.
    pub(crate) fn passing(why: String) -> Self {
        Self {
            trouble: Trouble::Unavailable(why),
            may_pass: true,
        }
    }

    /// The same, but a moment later it will not be different.
    pub(crate) fn lasting(why: String) -> Self {
        Self {
            trouble: Trouble::Unavailable(why),
            may_pass: false,
        }
    }

    /// The answer makes no sense.
    pub(crate) fn broken(why: String) -> Self {
        Self {
            trouble: Trouble::Broken(why),
            may_pass: false,
        }
    }

    /// From the error of asking `url`, of which only the host is shown.
    pub(crate) fn of(url: &str, error: &EgressError) -> Self {
        let why = format!("{}: {error}", shown(url));
        match error.may_pass() {
            true => Self::passing(why),
            false => Self::lasting(why),
        }
    }
}

/// Tries once, and `retries` more times where that may help: all of it within one interval.
pub(crate) async fn persist<A, Trying>(
    cadence: Cadence,
    retries: usize,
    attempt: impl FnMut() -> Trying,
) -> Result<A, Trouble>
where
    Trying: Future<Output = Result<A, Miss>>,
{
    let pauses = ExponentialBuilder::default()
        .with_min_delay(PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .with_max_times(retries);
    let mut latest = None;
    let trying = attempt
        .retry(pauses)
        .when(|miss: &Miss| miss.may_pass)
        .notify(|miss: &Miss, _| latest = Some(miss.trouble.clone()));
    match tokio::time::timeout(cadence.interval.unsigned_abs(), trying).await {
        Ok(tried) => tried.map_err(|miss| miss.trouble),
        Err(_) => Err(latest.unwrap_or_else(|| {
            let interval = duration::text(cadence.interval);
            Trouble::Unasked(format!("no turn to ask within the interval of {interval}"))
        })),
    }
}

/// What an address asks for, from Secrets in the gatekeeper's namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    pub(crate) authorities: Option<Vec<u8>>,
    pub(crate) credentials: Option<Credentials>,
}

impl Keys {
    /// Reads the Secrets that are named, those with credentials if they may be sent to `url`.
    pub(crate) async fn read(
        clients: &Clients,
        namespace: &str,
        authorities: Option<&CertificateReference>,
        credentials: Option<&SecretReference>,
        url: &str,
    ) -> Result<Self, Miss> {
        let client = &clients.kubernetes;
        let mut keys = Self::default();
        if let Some(reference) = authorities {
            let read = secrets::authorities(client, namespace, &reference.name).await;
            keys.authorities = Some(read.map_err(Miss::lasting)?);
        }
        if let Some(reference) = credentials {
            let read = secrets::credentials(client, namespace, &reference.name, url).await;
            keys.credentials = Some(read.map_err(Miss::lasting)?);
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests;
