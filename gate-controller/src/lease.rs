//! Leadership by a Lease: one replica writes, the others watch and are ready.
//!
//! What comes in: the terms. What goes out: a [`Leadership`], which has to be asked before each write. It
//! may use the clock in [`observe`](crate::observe), and [`cluster`](crate::cluster).
//!
//! The Lease is taken and renewed by compare-and-swap on its resourceVersion. Whether another
//! leader has fallen silent is judged by the local monotonic clock, from when its last change was
//! *observed*, as client-go does: clocks of replicas need not agree. A leader that cannot renew
//! stops writing at the renew deadline, before anyone else may start.
//!
//! The monotonic clock stops while a machine sleeps. So a leader whose wall clock has jumped renews
//! before it writes again: another replica may have led since then.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::cluster::failure;
use crate::observe::clock::{Clock, Jumps};

mod leadership;

pub use leadership::{Held, Leadership};

/// How often a problem that lasts is logged.
const TELL_AGAIN: Duration = Duration::from_secs(300);

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

/// A Lease as it was last observed to change, and when that was.
struct Observed {
    lease: Lease,
    at: Instant,
}

/// Holds or waits for the Lease until `shutdown`, then gives it back. Sends to `until` until when it is
/// held.
pub async fn hold(
    client: Client,
    terms: Terms,
    clock: &dyn Clock,
    jumps: &Jumps,
    until: &watch::Sender<Option<Held>>,
    shutdown: &CancellationToken,
) {
    let mut holder = Holder {
        api: Api::namespaced(client, &terms.namespace),
        terms,
        observed: None,
        renewed: None,
        trouble: None,
    };
    let mut led = false;
    loop {
        let known = jumps.count();
        holder.try_once(clock.now(), known).await;
        until.send_replace(holder.held());
        if holder.leads() != led {
            led = holder.leads();
            tracing::info!(lease = %holder.terms.name, leads = led, "leadership changed");
        }
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = pause(holder.terms.retry_period) => {}
            () = jumps.beyond(known) => {}
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
    /// When it was renewed last, and how often the clock had jumped before that.
    renewed: Option<(Instant, u64)>,
    /// The last problem with renewing that was logged, and when.
    trouble: Option<(String, Instant)>,
}

/// Whether to log why the Lease cannot be renewed: not if the same was logged a short while ago.
fn is_news(told: Option<&(String, Instant)>, why: &str, now: Instant) -> bool {
    told.is_none_or(|(before, at)| {
        before != why || now.saturating_duration_since(*at) >= TELL_AGAIN
    })
}

impl Holder {
    /// Until when this replica leads: for a fixed time after it last renewed.
    fn held(&self) -> Option<Held> {
        let (renewed, jumps) = self.renewed?;
        Some(Held {
            until: renewed + self.terms.renew_deadline,
            jumps: Some(jumps),
        })
    }

    fn leads(&self) -> bool {
        self.held().is_some_and(|held| Instant::now() < held.until)
    }

    async fn try_once(&mut self, now: Timestamp, jumps: u64) {
        let attempt = timeout(self.terms.retry_period, self.take_or_renew(now, jumps));
        let why = match attempt.await {
            Ok(Ok(())) => {
                if self.trouble.take().is_some() {
                    tracing::info!(lease = %self.terms.name, "the lease can be read and written again");
                }
                return;
            }
            Ok(Err(error)) => failure::of_request(
                &error,
                "get, create and update",
                "leases",
                "coordination.k8s.io",
            ),
            Err(_) => "the API server does not answer".to_owned(),
        };
        if is_news(self.trouble.as_ref(), &why, Instant::now()) {
            tracing::error!(lease = %self.terms.name, "{why}");
            self.trouble = Some((why, Instant::now()));
        }
    }

    async fn take_or_renew(&mut self, now: Timestamp, jumps: u64) -> Result<(), kube::Error> {
        // Measured from before the request: what counts is when the others saw it at the latest.
        let began = (Instant::now(), jumps);
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
        began: (Instant, u64),
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

    #[test]
    fn a_trouble_that_lasts_is_told_now_and_then() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let told = ("refused".to_owned(), start);
        assert!(is_news(None, "refused", start));
        assert!(!is_news(Some(&told), "refused", after(299)));
        assert!(is_news(Some(&told), "refused", after(300)));
        assert!(is_news(Some(&told), "silent", after(5)));
    }

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
