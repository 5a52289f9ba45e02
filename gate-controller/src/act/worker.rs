//! Workers: they take what is due, look at it, and say when to look again.
//!
//! Each look is a task of its own. The queue decides how many there are at once, and of what kind. It is
//! informed of a look that takes longer than most, so that others may begin.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use jiff::SignedDuration;
use parking_lot::Mutex;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::act::queue::{Shared, urgency};
use crate::act::reconcile::{self, Context, Outcome};
use crate::cluster::failure;
use crate::cluster::key::Work;
use crate::cluster::kind::Urgency;
use crate::tell::counters::KindLabels;

mod bounded;

use bounded::bounded;

/// How long one look may take: longer than any request should.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a look may go on after a shutdown: together with the time to give the Lease back and to
/// finish the audit log, less than the 30 seconds that Kubernetes gives a pod to end.
const LAST_LOOK: Duration = Duration::from_secs(10);

/// A look that takes longer than this waits for something that is slow, or does not answer.
const SLOW: Duration = Duration::from_secs(1);

/// The longest delay after failures that end by themselves: what became due while the API server was away
/// is written soon after it is back.
const LONGEST_FOR_PASSING: Duration = Duration::from_secs(10);

/// How many times in a row a look may be overtaken before that is reported as a problem: somebody else
/// writes all the time, or the watch is late.
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
    pub(crate) context: Arc<Context>,
    pub(crate) queue: Arc<Shared>,
    pub(crate) retry: Retry,
    pub(crate) failures: Arc<Failures>,
}

/// How many looks at each object have failed, in a row.
#[derive(Default)]
pub(crate) struct Failures(Mutex<HashMap<Work, u32>>);

impl Failures {
    /// Counts another one. Returns how many there were.
    fn count(&self, work: &Work) -> u32 {
        let mut all = self.0.lock();
        let failures = all.entry(work.clone()).or_default();
        *failures = failures.saturating_add(1);
        *failures
    }

    /// A look has succeeded, or the object is gone: the count for its name starts again.
    pub(crate) fn forget(&self, work: &Work) {
        self.0.lock().remove(work);
    }
}

/// Whether a look used an object that has changed or gone since then. The next look uses what the watch
/// brings, and is retried by itself in case the watch brings nothing: what is not there may be another
/// object than the one that was looked at, or of a kind that only some of the API servers know yet.
fn is_overtaken(error: &kube::Error) -> bool {
    failure::is_overtaken(error) || failure::is_gone(error)
}

/// Why a look has failed.
enum Failure {
    Refused(kube::Error),
    Silent(Duration),
    Panicked,
}

/// How a look has ended.
struct Looked {
    outcome: Result<Outcome, Failure>,
    took: Duration,
}

/// Works until `shutdown`, while this replica leads.
pub(crate) async fn work(workers: Arc<Workers>, shutdown: CancellationToken) {
    let mut leadership = workers.context.leadership.clone();
    let mut looks = JoinSet::new();
    loop {
        let next = async {
            leadership.led().await;
            workers.queue.next(workers.context.clock.as_ref()).await
        };
        let work = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(ended) = looks.join_next() => {
                pass_on_panic(ended);
                continue;
            }
            work = next => work,
        };
        let (workers, shutdown) = (Arc::clone(&workers), shutdown.clone());
        looks.spawn(async move { workers.work(&work, &shutdown).await });
    }
    while let Some(ended) = looks.join_next().await {
        pass_on_panic(ended);
    }
}

/// Reports a panic to those who wait for the workers. Other looks could go on, but perhaps with data that
/// the panic has left half changed.
fn pass_on_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

impl Workers {
    /// Looks at what was taken from the queue, while this replica leads.
    async fn work(&self, work: &Work, shutdown: &CancellationToken) {
        let leadership = &self.context.leadership;
        let (mut lead, may) = (leadership.clone(), || leadership.left().is_some());
        match bounded(self.look(work), may, lead.lost(), shutdown, LAST_LOOK).await {
            Some(looked) => self.conclude(work, looked),
            None => self.again(work, self.context.clock.now()),
        }
        self.queue.done(work);
    }

    async fn look(&self, work: &Work) -> Looked {
        let began = Instant::now();
        let look = AssertUnwindSafe(reconcile::look(&self.context, work)).catch_unwind();
        let mut look = pin!(timeout(PATIENCE, look));
        let ended = match timeout(SLOW, look.as_mut()).await {
            Ok(ended) => ended,
            Err(_) => {
                self.queue.slow(work);
                look.await
            }
        };
        let outcome = match ended {
            Ok(Ok(Ok(outcome))) => Ok(outcome),
            Ok(Ok(Err(error))) => Err(Failure::Refused(error)),
            Ok(Err(_)) => Err(Failure::Panicked),
            Err(_) => Err(Failure::Silent(PATIENCE)),
        };
        let took = began.elapsed();
        Looked { outcome, took }
    }

    fn conclude(&self, work: &Work, Looked { outcome, took }: Looked) {
        match outcome {
            Ok(outcome) => self.ended(work, outcome, took),
            Err(Failure::Refused(error)) if is_overtaken(&error) => self.overtaken(work, &error),
            Err(failure) => self.failed(work, &failure, took),
        }
    }

    /// Looks again, each time later: a watch that is late for thousands of objects must not make all of
    /// them write as fast as they can.
    fn overtaken(&self, work: &Work, error: &kube::Error) {
        let times = self.failures.count(work);
        let delay = self.retry.delay(times, true);
        match times {
            ..OVERTAKEN => tracing::debug!(%work, %error, "overtaken"),
            _ => tracing::warn!(%work, %error, times, "overtaken again; next try in {delay:?}"),
        }
        self.after(work, delay, urgency(work.kind));
    }

    fn ended(&self, work: &Work, outcome: Outcome, took: Duration) {
        let reconciles = &self.context.counters.reconciles;
        let wake = match outcome {
            Outcome::Wake(at) => {
                self.failures.forget(work);
                reconciles.observe(work, took.as_secs_f64());
                at
            }
            Outcome::Unfinished { error, wake } => {
                self.failed(work, &Failure::Refused(*error), took);
                wake
            }
            Outcome::Gone | Outcome::NotOurs => {
                self.failures.forget(work);
                reconciles.forget(work);
                self.context.counters.promoted.forget(work);
                self.context.counters.branches.forget(work);
                None
            }
        };
        if let Some(at) = wake {
            self.again(work, at);
        }
    }

    fn failed(&self, work: &Work, failure: &Failure, took: Duration) {
        let failures = self.failures.count(work);
        let kind = work.kind.as_str();
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
                failure::of_request(error, "patch", &work.kind.writes(), work.kind.group())
            }
            Failure::Silent(patience) => {
                format!("the API server did not answer within {patience:?}")
            }
            Failure::Panicked => "a defect of the controller; please report it".to_owned(),
        };
        let key = &work.key;
        tracing::error!(
            kind,
            namespace = %key.namespace,
            name = %key.name,
            failures,
            "{why}; next try in {delay:?}"
        );
        let urgency = if took < SLOW {
            urgency(work.kind)
        } else {
            Urgency::Hung
        };
        self.after(work, delay, urgency);
    }

    fn after(&self, work: &Work, delay: Duration, urgency: Urgency) {
        let delay = SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX);
        let now = self.context.clock.now();
        let due = now.saturating_add(delay).unwrap_or(now);
        self.queue.push(work.clone(), urgency, due);
    }

    fn again(&self, work: &Work, at: jiff::Timestamp) {
        self.queue.push(work.clone(), urgency(work.kind), at);
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use rstest::rstest;

    use super::*;
    use crate::cluster::key::KeyRef;
    use crate::cluster::kind::Kind;

    #[rstest]
    #[case(404, true)]
    #[case(409, true)]
    #[case(403, false)]
    #[case(503, false)]
    fn what_is_not_there_is_looked_at_again_until_the_watch_says_that_it_is_gone(
        #[case] code: u16,
        #[case] overtaken: bool,
    ) {
        let error = kube::Error::Api(Status::failure("", "").with_code(code).boxed());
        assert_eq!(is_overtaken(&error), overtaken);
    }

    #[test]
    fn failures_are_counted_in_a_row_and_forgotten_with_the_object() {
        let failures = Failures::default();
        let of = |name: &str| {
            let namespace = "apps";
            Work::own(Kind::Gate, KeyRef { namespace, name }.into())
        };
        assert_eq!([1, 2].map(|_| failures.count(&of("app"))), [1, 2]);
        failures.forget(&of("another"));
        assert_eq!(failures.count(&of("app")), 3);
        failures.forget(&of("app"));
        assert_eq!(failures.count(&of("app")), 1);
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
