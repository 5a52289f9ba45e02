//! Calls of hooks: they are made in the background, and their answers are observations.
//!
//! What comes in: a call, under its key. What goes out: its answer, and a wake of the Rollout. An answer is kept
//! until the status has recorded it, so that nothing is called twice for a status that was refused.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sluice_core::delivery::rollout::Calling;
use sluice_core::delivery::rollout::given::Arrived;
use sluice_core::delivery::rollout::hook::Answer;
use sluice_core::delivery::rollout::plan::Hook;
use sluice_crds::rollout::Method as Verb;
use sluice_egress::{Content, Credentials, Egress, Method, Once, Request, Schemes, Sent, secrets};

use tokio::time::Instant;

use crate::act::errands::{Errands, Standing, Term};
use crate::act::reconcile::Context;
use crate::act::waker::Waker;
use crate::cluster::key::Work;
use crate::lease::Leadership;

/// Names a call that was made before by the same key.
const KEY: &str = "idempotency-key";

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
            errands: Errands::new(leadership, wake),
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
    pub(super) fn begin(&self, context: &Context, of: &Work, calling: Calling) {
        let call = (calling.key.clone(), calling.attempt);
        let host = host(&calling.hook.url);
        let namespace = of.key.namespace.to_string();
        let (egress, client) = (self.egress.clone(), context.client.clone());
        let clock = Arc::clone(&context.clock);
        let run = |term: Term| async move {
            let sent = send(&egress, &client, &namespace, &calling, &term).await;
            let (answer, error) = match sent {
                Ok(status) => (Answer::Status(status), None),
                Err(why) => (Answer::Nothing, Some(why)),
            };
            let at = clock.now();
            Ended { answer, error, at }
        };
        self.errands.begin(of, &call, &host, run);
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
    term: &Term,
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
    let credentials = match secret {
        Some(name) => Some(secrets::credentials(client, namespace, name, url).await?),
        None => None,
    };
    let leads = term.may_act();
    leads.ok_or("this replica does not lead any more, or there was no time left")?;
    let time = Duration::try_from(*timeout).unwrap_or_default();
    // The call ends with the errand, also when this replica no longer leads.
    let until = Instant::now() + time;
    let body = payload.to_string();
    let content = Content {
        media_type: "application/json",
        body: body.as_bytes(),
    };
    let method = match method {
        Verb::Get => return get(egress, namespace, calling, credentials.as_ref(), time).await,
        Verb::Post => Method::Post,
        Verb::Put => Method::Put,
    };
    let once = Once {
        method,
        content: Some(content),
        until,
    };
    let request = Request {
        namespace,
        schemes: Schemes::HttpToo,
        headers: &[(KEY, key)],
        credentials: credentials.as_ref(),
        time: Some(time),
        ..Request::once(once, url)
    };
    match egress.send(&request, |_| false).await {
        Sent::Replied(reply) => Ok(reply.status),
        Sent::NotSent(error) | Sent::Unknown(error) => Err(error.to_string()),
    }
}

/// A GET has no body.
async fn get(
    egress: &Egress,
    namespace: &str,
    calling: &Calling,
    credentials: Option<&Credentials>,
    time: Duration,
) -> Result<u16, String> {
    let request = Request {
        namespace,
        schemes: Schemes::HttpToo,
        headers: &[(KEY, &calling.key)],
        credentials,
        time: Some(time),
        ..Request::to(&calling.hook.url)
    };
    let reply = egress.ask(&request, |_| false).await;
    reply.map(|it| it.status).map_err(|error| error.to_string())
}
