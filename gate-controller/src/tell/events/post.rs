//! Events for the API server, one after another.
//!
//! They give way to everything else: while gates wait to be written, none is sent, but for a minute
//! at the most. One that is not taken now is tried again while all are young. Once one of them is old each has
//! one try, so that an API server that takes no events makes a queue of old ones short and not long. What is waited
//! for is waited for once, and not once for each event: otherwise one namespace with a new event each minute would
//! delay all others.

use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use k8s_openapi::api::events::v1::Event;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::timeout;

use super::{Sending, Waiting};
use crate::cluster::failure;
use crate::tell::counters::Counters;

/// How long sending waits for more urgent writes before it looks again.
const LET_PASS: Duration = Duration::from_millis(50);

/// How long the API server is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For one answer.
    pub answer: Duration,
    /// Before the second try of an event; doubled before each further one.
    pub first: Duration,
    /// For how long after the oldest event was reported one is retried.
    pub retry: Duration,
    /// For how long after the oldest event was reported all give way to more urgent writes.
    pub give_way: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(5),
            first: Duration::from_millis(500),
            retry: Duration::from_secs(30),
            give_way: Duration::from_secs(60),
        }
    }
}

/// Who sends, and how.
pub struct Sender {
    /// The API server.
    pub client: Client,
    /// The name of this replica.
    pub instance: String,
    /// Where what is dropped is counted.
    pub counters: Arc<Counters>,
    /// How long it waits.
    pub patience: Patience,
}

/// Why an event was not taken.
enum Untaken {
    Refused(kube::Error),
    Silent(Duration),
}

impl Sender {
    /// Sends each event that comes. `busy`: whether something more urgent has to be written.
    pub async fn send(&self, mut sending: Sending, busy: impl Fn() -> bool) {
        while let Some(waiting) = sending.recv().await {
            let waited = || sending.waited(&waiting);
            while busy() && waited() < self.patience.give_way {
                let_pass().await;
            }
            let Err(untaken) = self.post(&waiting, waited).await else {
                continue;
            };
            self.counters.events_dropped.inc();
            let why = match untaken {
                Untaken::Refused(error) => {
                    failure::of_request(&error, "create", "events", "events.k8s.io")
                }
                Untaken::Silent(patience) => {
                    format!("the API server did not answer within {patience:?}")
                }
            };
            tracing::error!("an event was not taken: {why}");
        }
    }

    async fn post(&self, waiting: &Waiting, waited: impl Fn() -> Duration) -> Result<(), Untaken> {
        let Patience {
            answer,
            first,
            retry,
            give_way: _,
        } = self.patience;
        let event = waiting.event(&self.instance);
        let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let params = PostParams::default();
        let post = || async {
            match timeout(answer, events.create(&params, &event)).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(Untaken::Refused(error)),
                Err(_) => Err(Untaken::Silent(answer)),
            }
        };
        let retries = ExponentialBuilder::default()
            .with_min_delay(first)
            .with_max_times(usize::MAX)
            .with_max_delay(retry);
        // What was not answered may have been carried out, and nobody wants to read it twice.
        let is_worth_it = |untaken: &Untaken| match untaken {
            Untaken::Refused(error) => failure::passes(error) && waited() < retry,
            Untaken::Silent(_) => false,
        };
        post.retry(retries).when(is_worth_it).await
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a pause between two looks, not a wait for an instant"
)]
async fn let_pass() {
    tokio::time::sleep(LET_PASS).await;
}

#[cfg(test)]
mod tests;
