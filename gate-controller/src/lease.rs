//! Leadership by a Lease: one replica writes, the others watch and are ready.
//!
//! The Lease is taken and renewed by compare-and-swap on its resourceVersion. Whether another
//! leader has fallen silent is judged by the local monotonic clock, from when its last change was
//! *observed*, as client-go does: clocks of replicas need not agree. A leader that cannot renew
//! stops writing at the renew deadline, before anyone else may start.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::{Api, Client};
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::failure;
use crate::settings::Settings;

/// How a Lease is held.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who holds it: unique to this process.
    pub identity: String,
    /// How long others wait for a silent leader.
    pub duration: Duration,
    /// How long a leader tries to renew before it stops.
    pub renew_deadline: Duration,
    /// How long between two tries.
    pub retry_period: Duration,
}

impl Terms {
    /// The terms that the flags set.
    ///
    /// # Errors
    /// Which flags have to change.
    pub fn of(settings: &Settings, now: Timestamp) -> anyhow::Result<Self> {
        let terms = Self {
            namespace: settings.runtime_namespace.clone(),
            name: name(settings.watch_label_selector.as_deref()),
            identity: format!("{}_{}", settings.pod_name, nonce(now)),
            duration: settings.leader_election_lease_duration,
            renew_deadline: settings.leader_election_renew_deadline,
            retry_period: settings.leader_election_retry_period,
        };
        terms.check().map_err(anyhow::Error::msg)?;
        Ok(terms)
    }

    /// Whether a leader stops before anyone else may start, and tries more than once before that.
    ///
    /// # Errors
    /// Which flags have to change.
    pub fn check(&self) -> Result<(), String> {
        if self.retry_period < self.renew_deadline && self.renew_deadline < self.duration {
            return Ok(());
        }
        Err(format!(
            "--leader-election-renew-deadline={:?} must be shorter than \
             --leader-election-lease-duration={:?} and longer than \
             --leader-election-retry-period={:?}",
            self.renew_deadline, self.duration, self.retry_period
        ))
    }
}

/// The name of the Lease of a shard: each has its own.
fn name(selector: Option<&str>) -> String {
    match selector {
        None => "gate-controller".to_owned(),
        Some(selector) => {
            let digest = Sha256::digest(selector);
            let short: String = digest
                .iter()
                .take(4)
                .map(|byte| format!("{byte:02x}"))
                .collect();
            format!("gate-controller-{short}")
        }
    }
}

/// Tells processes of the same name apart, and controllers of one process.
fn nonce(now: Timestamp) -> String {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let count = STARTED.fetch_add(1, Ordering::Relaxed);
    format!(
        "{:x}-{:x}-{count:x}",
        std::process::id(),
        now.as_nanosecond()
    )
}

/// A Lease as it was last observed to change, and when that was.
struct Observed {
    lease: Lease,
    at: Instant,
}

/// Until when this replica may write. Workers ask before each write, so that a leader that cannot
/// renew stops at its deadline, whatever it was doing.
#[derive(Clone, Debug)]
pub struct Leadership(watch::Receiver<Option<Instant>>);

impl Leadership {
    /// A leadership, and what tells it until when it lasts.
    pub fn new() -> (watch::Sender<Option<Instant>>, Self) {
        let (sender, receiver) = watch::channel(None);
        (sender, Self(receiver))
    }

    /// How long this replica may still write. None: not at all.
    pub fn left(&self) -> Option<Duration> {
        let deadline = (*self.0.borrow())?;
        let left = deadline.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Waits until it may. For ever, if nobody is left to say so.
    pub async fn led(&mut self) {
        let leads = |deadline: &Option<Instant>| deadline.is_some_and(|end| Instant::now() < end);
        if self.0.wait_for(leads).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until it may not any more.
    pub async fn lost(&mut self) {
        while let Some(left) = self.left() {
            if let Ok(Err(_)) = timeout(left, self.0.changed()).await {
                // Nobody is left to renew it: it lasts until its end.
                let _ = timeout(left, std::future::pending::<()>()).await;
            }
        }
    }
}

/// A leadership without a Lease: for ever, or never, while what is returned beside it is kept.
pub fn without(leads: bool) -> (Leadership, watch::Sender<Option<Instant>>) {
    let (until, leadership) = Leadership::new();
    let for_ever = Instant::now() + Duration::from_secs(100 * 365 * 86_400);
    until.send_replace(leads.then_some(for_ever));
    (leadership, until)
}

/// Holds or waits for the Lease until `shutdown`, then gives it back. `until` is told until when
/// it is held.
pub async fn hold(
    client: Client,
    terms: Terms,
    clock: &dyn Clock,
    until: &watch::Sender<Option<Instant>>,
    shutdown: &CancellationToken,
) {
    let mut holder = Holder {
        api: Api::namespaced(client, &terms.namespace),
        terms,
        observed: None,
        renewed: None,
    };
    let mut led = false;
    loop {
        holder.try_once(clock.now()).await;
        until.send_replace(holder.deadline());
        if holder.leads() != led {
            led = holder.leads();
            tracing::info!(lease = %holder.terms.name, leads = led, "leadership changed");
        }
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = pause(holder.terms.retry_period) => {}
        }
    }
    until.send_replace(None);
    if holder.leads() {
        holder.release(clock.now()).await;
    }
}

/// Monotonic by design: how long a leader may be silent does not depend on the wall clock.
#[allow(
    clippy::disallowed_methods,
    reason = "leases run on the monotonic clock, as in client-go"
)]
async fn pause(period: Duration) {
    tokio::time::sleep(period).await;
}

struct Holder {
    api: Api<Lease>,
    terms: Terms,
    observed: Option<Observed>,
    renewed: Option<Instant>,
}

impl Holder {
    /// Until when this replica leads: so long after it last renewed.
    fn deadline(&self) -> Option<Instant> {
        Some(self.renewed? + self.terms.renew_deadline)
    }

    fn leads(&self) -> bool {
        self.deadline()
            .is_some_and(|deadline| Instant::now() < deadline)
    }

    async fn try_once(&mut self, now: Timestamp) {
        let attempt = timeout(self.terms.retry_period, self.take_or_renew(now));
        match attempt.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                let why = failure::of_request(
                    &error,
                    "get, create and update",
                    "leases",
                    "coordination.k8s.io",
                );
                tracing::error!(lease = %self.terms.name, "{why}");
            }
            Err(_) => tracing::error!(lease = %self.terms.name, "the API server does not answer"),
        }
    }

    async fn take_or_renew(&mut self, now: Timestamp) -> Result<(), kube::Error> {
        // Measured from before the request: what counts is when the others saw it at the latest.
        let began = Instant::now();
        let Some(lease) = self.api.get_opt(&self.terms.name).await? else {
            let fresh = self.lease(None, now);
            let made = self.api.create(&PostParams::default(), &fresh).await;
            return self.settle(made, began);
        };
        self.observe(&lease);
        if !self.may_take(&lease) {
            self.renewed = None;
            return Ok(());
        }
        let next = self.lease(Some(&lease), now);
        let replaced = self
            .api
            .replace(&self.terms.name, &PostParams::default(), &next)
            .await;
        self.settle(replaced, began)
    }

    /// The outcome of a write. A conflict means that another replica was faster.
    fn settle(
        &mut self,
        wrote: Result<Lease, kube::Error>,
        began: Instant,
    ) -> Result<(), kube::Error> {
        match wrote {
            Ok(lease) => {
                self.observe(&lease);
                self.renewed = Some(began);
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn observe(&mut self, lease: &Lease) {
        let same = self.observed.as_ref().is_some_and(|observed| {
            observed.lease.metadata.resource_version == lease.metadata.resource_version
        });
        if !same {
            self.observed = Some(Observed {
                lease: lease.clone(),
                at: Instant::now(),
            });
        }
    }

    fn may_take(&self, lease: &Lease) -> bool {
        let spec = lease.spec.as_ref();
        match spec.and_then(|spec| spec.holder_identity.as_deref()) {
            None | Some("") => true,
            Some(holder) if holder == self.terms.identity => true,
            Some(_) => {
                let stated = spec.and_then(|spec| spec.lease_duration_seconds);
                let patience = stated
                    .and_then(|seconds| u64::try_from(seconds).ok())
                    .map_or(self.terms.duration, Duration::from_secs);
                self.observed
                    .as_ref()
                    .is_some_and(|observed| observed.at.elapsed() >= patience)
            }
        }
    }

    fn lease(&self, before: Option<&Lease>, now: Timestamp) -> Lease {
        let spec = before
            .and_then(|lease| lease.spec.clone())
            .unwrap_or_default();
        let mine = spec.holder_identity.as_deref() == Some(&self.terms.identity);
        let mut metadata = before
            .map(|lease| lease.metadata.clone())
            .unwrap_or_default();
        metadata.name = Some(self.terms.name.clone());
        metadata.managed_fields = None;
        let transitions = spec.lease_transitions.unwrap_or(0) + i32::from(!mine);
        Lease {
            metadata,
            spec: Some(LeaseSpec {
                holder_identity: Some(self.terms.identity.clone()),
                // Rounded up: others must not take over before this replica has stopped.
                lease_duration_seconds: i32::try_from(
                    self.terms.duration.as_millis().div_ceil(1000),
                )
                .ok(),
                acquire_time: if mine {
                    spec.acquire_time.clone()
                } else {
                    Some(MicroTime(now))
                },
                renew_time: Some(MicroTime(now)),
                lease_transitions: Some(transitions),
                ..spec
            }),
        }
    }

    async fn release(&mut self, now: Timestamp) {
        let Some(observed) = self.observed.take() else {
            return;
        };
        let mut lease = self.lease(Some(&observed.lease), now);
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = None;
            spec.lease_duration_seconds = Some(1);
        }
        let params = PostParams::default();
        let given = self.api.replace(&self.terms.name, &params, &lease);
        if let Ok(Err(error)) = timeout(self.terms.retry_period, given).await {
            tracing::debug!(lease = %self.terms.name, %error, "the lease was not given back");
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(35, 30, 5, true)]
    #[case(30, 30, 5, false)]
    #[case(35, 5, 5, false)]
    fn a_leader_stops_before_another_starts(
        #[case] duration: u64,
        #[case] deadline: u64,
        #[case] retry: u64,
        #[case] makes_sense: bool,
    ) {
        let terms = Terms {
            namespace: String::new(),
            name: String::new(),
            identity: String::new(),
            duration: Duration::from_secs(duration),
            renew_deadline: Duration::from_secs(deadline),
            retry_period: Duration::from_secs(retry),
        };
        assert_eq!(terms.check().is_ok(), makes_sense);
    }
}
