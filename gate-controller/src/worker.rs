//! Workers: they take what is due, look at it, and say when to look again.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use jiff::SignedDuration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::failure;
use crate::key::Work;
use crate::lease::Leadership;
use crate::metrics::KindLabels;
use crate::queue::{Shared, Urgency};
use crate::reconcile::{self, Context, Outcome};

/// How long one look may take: longer than any request should.
const PATIENCE: Duration = Duration::from_secs(20);

/// The longest delay after failures that pass by themselves: what fell due while the API server
/// was away is written soon after it is back.
const LONGEST_FOR_PASSING: Duration = Duration::from_secs(10);

/// How often a look may be overtaken in a row before that is told as trouble: somebody else writes
/// all the time, or the watch is late.
const OVERTAKEN: u32 = 5;

/// How long to wait after failures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry {
    /// After the first.
    pub(crate) first: Duration,
    /// After many.
    pub(crate) longest: Duration,
}

impl Retry {
    fn delay(self, failures: u32, passes: bool) -> Duration {
        let doublings = failures.saturating_sub(1).min(20);
        let longest = if passes {
            self.longest.min(LONGEST_FOR_PASSING)
        } else {
            self.longest
        };
        self.first.saturating_mul(1 << doublings).min(longest)
    }
}

/// What workers share.
pub(crate) struct Workers {
    pub(crate) context: Context,
    pub(crate) queue: Arc<Shared<Work>>,
    pub(crate) retry: Retry,
    pub(crate) failures: Mutex<HashMap<Work, u32>>,
}

/// What follows when the API server refuses a request of a look.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// What was looked at is gone, and there is nothing left to do.
    Gone,
    /// The look was made of what is not so any more. The next one is made of what the watch brings,
    /// and is tried by itself in case it brings nothing.
    Overtaken,
    /// It has failed.
    Failed,
}

impl Refusal {
    fn of(work: &Work, error: &kube::Error) -> Self {
        match work {
            _ if failure::is_overtaken(error) => Self::Overtaken,
            // A look at a gated source writes to others: what is not there may be a child or a source,
            // or a kind that only some of the API servers know yet.
            Work::GatedSource(_) if failure::is_gone(error) => Self::Overtaken,
            Work::Gate(_) | Work::Gatekeeper(_) | Work::GatePolicy(_)
                if failure::is_gone(error) =>
            {
                Self::Gone
            }
            _ => Self::Failed,
        }
    }
}

/// Why a look came to nothing.
enum Failure {
    Refused(kube::Error),
    Silent(Duration),
    Panicked,
}

/// Has so many work until `shutdown`.
pub(crate) async fn work(
    workers: Arc<Workers>,
    concurrent: u16,
    leadership: Leadership,
    shutdown: CancellationToken,
) {
    let mut all = JoinSet::new();
    for _ in 0..concurrent {
        all.spawn(Arc::clone(&workers).work(leadership.clone(), shutdown.clone()));
    }
    while all.join_next().await.is_some() {}
}

impl Workers {
    /// Works until `shutdown`, while this replica leads.
    pub(crate) async fn work(
        self: Arc<Self>,
        mut leadership: Leadership,
        shutdown: CancellationToken,
    ) {
        loop {
            let next = async {
                leadership.led().await;
                self.queue.next(self.context.clock.as_ref()).await
            };
            let work = tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                work = next => work,
            };
            match leadership.left() {
                Some(left) => self.look(&work, left.min(PATIENCE)).await,
                None => self.again(&work, self.context.clock.now()),
            }
            self.queue.done(&work);
        }
    }

    /// Looks, for so long at most: what a leader has begun must not outlive its leadership.
    async fn look(&self, work: &Work, patience: Duration) {
        let began = Instant::now();
        let look = AssertUnwindSafe(reconcile::look(&self.context, work)).catch_unwind();
        let outcome = match tokio::time::timeout(patience, look).await {
            Ok(Ok(Ok(outcome))) => Ok(outcome),
            Ok(Ok(Err(error))) => Err(Failure::Refused(error)),
            Ok(Err(_)) => Err(Failure::Panicked),
            Err(_) => Err(Failure::Silent(patience)),
        };
        match outcome {
            Ok(outcome) => self.came_to(work, outcome, began.elapsed()),
            Err(Failure::Refused(error)) => match Refusal::of(work, &error) {
                Refusal::Gone => self.forgive(work),
                Refusal::Overtaken => self.overtaken(work, &error),
                Refusal::Failed => self.failed(work, &Failure::Refused(error)),
            },
            Err(failure) => self.failed(work, &failure),
        }
    }

    /// Looks again, each time later: a watch that is late for thousands must not have all of them
    /// write as fast as they can.
    fn overtaken(&self, work: &Work, error: &kube::Error) {
        let times = self.again_and_again(work);
        let delay = self.retry.delay(times, true);
        match times {
            ..OVERTAKEN => tracing::debug!(%work, %error, "overtaken"),
            _ => tracing::warn!(%work, %error, times, "overtaken again; next try in {delay:?}"),
        }
        self.after(work, delay);
    }

    /// Counts a look that came to nothing. Returns how many did in a row.
    fn again_and_again(&self, work: &Work) -> u32 {
        let mut all = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let failures = all.entry(work.clone()).or_default();
        *failures = failures.saturating_add(1);
        *failures
    }

    fn came_to(&self, work: &Work, outcome: Outcome, took: Duration) {
        let reconciles = &self.context.counters.reconciles;
        let wake = match outcome {
            Outcome::Wake(at) => {
                self.forgive(work);
                reconciles.observe(work, took.as_secs_f64());
                at
            }
            Outcome::Unfinished { error, wake } => {
                self.failed(work, &Failure::Refused(*error));
                wake
            }
            Outcome::Gone | Outcome::NotOurs => {
                self.forgive(work);
                reconciles.forget(work);
                None
            }
        };
        if let Some(at) = wake {
            self.again(work, at);
        }
    }

    fn failed(&self, work: &Work, failure: &Failure) {
        let failures = self.again_and_again(work);
        let kind = work.kind();
        self.context
            .counters
            .failures
            .get_or_create(&KindLabels { kind })
            .inc();
        let passes = match failure {
            Failure::Refused(error) => failure::passes(error),
            Failure::Silent(_) => true,
            Failure::Panicked => false,
        };
        let delay = self.retry.delay(failures, passes);
        let why = match failure {
            Failure::Refused(error) => {
                failure::of_request(error, "patch", plural(work), sluice_crds::GROUP)
            }
            Failure::Silent(patience) => {
                format!("the API server did not answer within {patience:?}")
            }
            Failure::Panicked => "a defect of the controller; please report it".to_owned(),
        };
        let key = work.key();
        tracing::error!(
            kind,
            namespace = %key.namespace,
            name = %key.name,
            failures,
            "{why}; next try in {delay:?}"
        );
        self.after(work, delay);
    }

    fn after(&self, work: &Work, delay: Duration) {
        let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
        let now = self.context.clock.now();
        self.again(work, now.saturating_add(delay).unwrap_or(now));
    }

    fn forgive(&self, work: &Work) {
        self.failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(work);
    }

    fn again(&self, work: &Work, at: jiff::Timestamp) {
        self.queue.push(work.clone(), urgency(work), at);
    }
}

/// How urgent a look is that nobody in particular asked for.
pub(crate) fn urgency(work: &Work) -> Urgency {
    match work {
        Work::GatedSource(_) => Urgency::Delivery,
        Work::Gate(_) => Urgency::Gate,
        Work::Gatekeeper(_) | Work::GatePolicy(_) => Urgency::Report,
    }
}

fn plural(work: &Work) -> &'static str {
    match work {
        Work::Gate(_) => "gates and gates/status",
        Work::Gatekeeper(_) => "gatekeepers/status",
        Work::GatePolicy(_) => "gatepolicies/status",
        Work::GatedSource(_) => "gatedsources and gatedsources/status",
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use rstest::rstest;

    use super::*;
    use crate::key::ObjectKey;

    #[rstest]
    #[case(404, Refusal::Gone, Refusal::Overtaken)]
    #[case(409, Refusal::Overtaken, Refusal::Overtaken)]
    #[case(403, Refusal::Failed, Refusal::Failed)]
    #[case(503, Refusal::Failed, Refusal::Failed)]
    fn what_is_not_there_may_be_another_object_than_a_gated_source(
        #[case] code: u16,
        #[case] of_gate: Refusal,
        #[case] of_gated_source: Refusal,
    ) {
        let key = ObjectKey {
            namespace: "apps".into(),
            name: "app".into(),
        };
        let error = kube::Error::Api(Status::failure("", "").with_code(code).boxed());
        assert_eq!(Refusal::of(&Work::Gate(key.clone()), &error), of_gate);
        let work = Work::GatedSource(key);
        assert_eq!(Refusal::of(&work, &error), of_gated_source);
    }

    #[test]
    fn delays_double_up_to_the_longest() {
        let retry = Retry {
            first: Duration::from_millis(750),
            longest: Duration::from_secs(900),
        };
        let delays = |passes| [1, 2, 3, 30].map(|n| retry.delay(n, passes).as_millis());
        assert_eq!(delays(false), [750, 1500, 3000, 900_000]);
        assert_eq!(delays(true), [750, 1500, 3000, 10_000]);
    }
}
