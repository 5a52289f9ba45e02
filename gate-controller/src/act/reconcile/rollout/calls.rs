//! Calls of hooks: they are made in the background, and their answers are observations.
//!
//! What comes in: a call, under its key. What goes out: its answer, and a wake of the Rollout. An answer is kept
//! until the status has recorded it, so that nothing is called twice for a status that was refused, or for a spec
//! that is refused for a while.
//!
//! Each call is one try with the whole time that its hook may take; the next look decides whether there is another.
//! A hook may be slow, and a namespace may have many: no namespace takes the places of another, not even at a host
//! that both call.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sluice_core::delivery::rollout::Calling;
use sluice_core::delivery::rollout::given::Arrived;
use sluice_core::delivery::rollout::hook::Answer;
use sluice_core::delivery::rollout::plan::Hook;
use sluice_crds::Rollout;
use sluice_crds::rollout::{BatchRollingState, Method as Verb, RollingState};
use sluice_egress::{
    Content, Credentials, Egress, Limits, Method, Once, Request, Schemes, Sent, secrets,
};
use tokio::time::Instant;

use crate::act::errands::{AT_ONCE, Errands, OF_A_NAMESPACE, OF_BOTH, Standing, Term};
use crate::act::reconcile::Context;
use crate::act::waker::Waker;
use crate::cluster::key::Work;
use crate::lease::Leadership;
use crate::observe::cache::Seen;

/// Names a call that was made before by the same key.
const KEY: &str = "idempotency-key";

/// The longest that one answer may take, as the spec allows it.
const LONGEST: Duration = Duration::from_secs(60);
/// How long the Secret may take that is read before, and everything else around a call.
const BESIDE: Duration = Duration::from_secs(15);

/// The limits of the way that calls take. Each call that has a place has its turn at once: its time does not run while
/// it waits for others. Their answers are not read.
pub(crate) fn limits() -> Limits {
    Limits {
        time: LONGEST,
        in_flight: AT_ONCE,
        slow: AT_ONCE,
        per_namespace: OF_A_NAMESPACE,
        per_host: OF_BOTH,
        ..Limits::default()
    }
}

/// The key of a call, and which call of that key it is.
type Call = (String, i32);

/// How a call has ended.
#[derive(Clone)]
struct Ended {
    answer: Answer,
    error: Option<String>,
    at: Timestamp,
}

/// What is under way.
pub(crate) struct Calls {
    errands: Arc<Errands<Call, Ended>>,
    egress: Egress,
}

impl Calls {
    /// Nothing is under way. Each call that ends wakes the Rollout whose it is.
    pub(crate) fn new(leadership: Leadership, waker: Waker, egress: Egress) -> Self {
        let wake = move |work: &Work| waker.wake(work.clone());
        Self {
            errands: Errands::lasting(LONGEST + BESIDE, leadership, wake),
            egress,
        }
    }

    /// The answers that have come for a Rollout, as of `now`.
    pub(super) fn arrived(&self, of: &Work, now: Timestamp) -> Vec<Arrived> {
        let all = self.errands.of(of).into_iter();
        let over = all.filter_map(|((key, attempt), standing)| {
            let Standing::Over(ended) = standing else {
                return None;
            };
            let ended = ended.unwrap_or_else(|why| Ended {
                answer: Answer::Nothing,
                error: Some(why.to_string()),
                at: now,
            });
            let Ended { answer, error, at } = ended;
            Some(Arrived {
                key,
                attempt,
                answer,
                error,
                at,
            })
        });
        over.collect()
    }

    /// The status has been accepted that was decided from these answers.
    pub(super) fn accepted(&self, of: &Work, arrived: &[Arrived]) {
        let is_in = |(key, attempt): &Call| {
            let mut all = arrived.iter();
            all.any(|it| (&it.key, it.attempt) == (key, *attempt))
        };
        self.errands.keep(of, |call| !is_in(call));
    }

    /// It is gone, or another shard looks at it.
    pub(crate) fn forget(&self, of: &Work) {
        self.errands.keep(of, |_| false);
    }

    /// Another replica leads.
    pub(crate) fn clear(&self) {
        self.errands.clear();
    }

    /// Begins a call, unless it was begun.
    pub(super) fn begin(&self, context: &Context, object: &Rollout, of: &Work, calling: Calling) {
        let call = (calling.key.clone(), calling.attempt);
        let namespace = of.key.namespace.to_string();
        let line = format!("{namespace} {}", host(&calling.hook.url));
        let (egress, client) = (self.egress.clone(), context.client.clone());
        let (clock, world) = (Arc::clone(&context.clock), Arc::clone(&context.world));
        let (moment, key) = (Moment::of(object), of.key.clone());
        let run = |term: Term| async move {
            // It may have waited for others.
            let is_wanted = || {
                let found = world.rollouts.get(key.borrowed());
                let now = found.as_ref().and_then(Seen::object);
                now.is_some_and(|now| Moment::of(now) == moment)
            };
            let may_send = || term.may_act().is_some() && is_wanted();
            let sent = send(&egress, &client, &namespace, &calling, may_send).await;
            let (answer, error) = match sent {
                Ok(status) => (Answer::Status(status), None),
                Err(why) => (Answer::Nothing, Some(why)),
            };
            let at = clock.now();
            Ended { answer, error, at }
        };
        self.errands.begin(of, &call, &line, run);
    }
}

/// How far a run is: a hook is called for that alone.
#[derive(PartialEq)]
struct Moment {
    uid: Option<String>,
    run: Option<i64>,
    state: Option<RollingState>,
    batch: (Option<i32>, Option<BatchRollingState>),
}

impl Moment {
    fn of(object: &Rollout) -> Self {
        let status = object.status.as_ref();
        Self {
            uid: object.metadata.uid.clone(),
            run: status.and_then(|it| Some(it.run.as_ref()?.id)),
            state: status.and_then(|it| it.rolling_state),
            batch: status.map_or((None, None), |it| {
                (it.current_batch, it.batch_rolling_state)
            }),
        }
    }
}

/// What stands for the host of an address: that of a mistaken one stands for itself.
fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#'])
        .next()
        .unwrap_or(rest)
        .to_owned()
}

/// The status that the hook answers with. Its body is not read.
async fn send(
    egress: &Egress,
    client: &kube::Client,
    namespace: &str,
    calling: &Calling,
    may_send: impl Fn() -> bool,
) -> Result<u16, String> {
    let Calling {
        key, hook, payload, ..
    } = calling;
    let Hook {
        url,
        method,
        timeout,
        secret,
        ..
    } = hook;
    let (credentials, authorities) = match secret {
        Some(name) => secrets::of_hook(client, namespace, name, url).await?,
        None => (None, None),
    };
    if !may_send() {
        return Err("it was not called, for the rollout is somewhere else by now".to_owned());
    }
    let time = Duration::try_from(*timeout).unwrap_or_default();
    let way = Way {
        namespace,
        headers: [(KEY, key)],
        credentials: credentials.as_ref(),
        authorities: authorities.as_deref(),
        time,
    };
    let body = payload.to_string();
    let once = |method| Once {
        method,
        content: Some(Content {
            media_type: "application/json",
            body: body.as_bytes(),
        }),
        // The call ends with the errand, also when this replica no longer leads.
        until: Instant::now() + time,
    };
    let once = match method {
        // It has no body.
        Verb::Get => {
            let reply = egress.ask(&way.of(Request::to(url)), |_| false).await;
            return reply.map(|it| it.status).map_err(|error| error.to_string());
        }
        Verb::Post => once(Method::Post),
        Verb::Put => once(Method::Put),
    };
    match egress
        .send(&way.of(Request::once(once, url)), |_| false)
        .await
    {
        Sent::Replied(reply) => Ok(reply.status),
        Sent::NotSent(error) | Sent::Unknown(error) => Err(error.to_string()),
    }
}

/// What every call has, by whichever method.
struct Way<'a> {
    namespace: &'a str,
    headers: [(&'a str, &'a str); 1],
    credentials: Option<&'a Credentials>,
    authorities: Option<&'a [u8]>,
    time: Duration,
}

impl Way<'_> {
    /// A request that goes this way.
    fn of<'r, A>(&'r self, request: Request<'r, A>) -> Request<'r, A> {
        Request {
            namespace: self.namespace,
            schemes: Schemes::HttpToo,
            headers: &self.headers,
            credentials: self.credentials,
            authorities: self.authorities,
            time: Some(self.time),
            ..request
        }
    }
}

#[cfg(test)]
mod tests;
