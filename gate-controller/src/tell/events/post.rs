//! Events for the API server, one after another.
//!
//! They give way to everything else: while gates wait to be written, none is sent, but for a minute
//! at the most. One that is not taken now is tried again while it is young. After that each has one
//! try, so that an API server that takes no events makes a queue of old ones short and not long.
//!
//! No namespace makes others wait: all give way together, for as long as the oldest has waited, and the others have
//! their turn before one that was not taken is tried again.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use k8s_openapi::api::events::v1::Event;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::timeout;

use super::{Sending, Waiting};
use crate::cluster::failure;
use crate::tell::counters::Counters;

/// How long sending waits for more urgent writes before it looks again.
const LET_PASS: Duration = Duration::from_millis(50);

/// Between two tries at most. What comes meanwhile waits for as long.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How long the API server is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For one answer.
    pub answer: Duration,
    /// Before the second try where none is taken; doubled before each further one, up to 5 seconds.
    pub first: Duration,
    /// For how long after it was reported an event is retried.
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
        // How many were not taken, one after another.
        let mut untaken = 0;
        let mut pauses = self.pauses();
        while let Some(waiting) = sending.recv().await {
            while busy() && sending.waited(&waiting) < self.patience.give_way {
                pause(LET_PASS).await;
            }
            match self.post(&waiting).await {
                Ok(()) => (untaken, pauses) = (0, self.pauses()),
                Err(Untaken::Refused(error))
                    if failure::passes(&error) && waiting.since.elapsed() < self.patience.retry =>
                {
                    sending.put_back(waiting);
                    untaken += 1;
                    // Nobody else is left to have a turn.
                    if untaken >= sending.namespaces() {
                        pause(pauses.next().unwrap_or(LONGEST_PAUSE)).await;
                    }
                }
                Err(why) => self.dropped(&why),
            }
        }
    }

    /// Between two tries, while none is taken.
    fn pauses(&self) -> impl Iterator<Item = Duration> + use<> {
        ExponentialBuilder::default()
            .with_min_delay(self.patience.first)
            .with_max_times(usize::MAX)
            .with_max_delay(LONGEST_PAUSE)
            .build()
    }

    fn dropped(&self, why: &Untaken) {
        self.counters.events_dropped.inc();
        let why = match why {
            Untaken::Refused(error) => {
                failure::of_request(error, "create", "events", "events.k8s.io")
            }
            Untaken::Silent(patience) => {
                format!("the API server did not answer within {patience:?}")
            }
        };
        tracing::error!("an event was not taken: {why}");
    }

    async fn post(&self, waiting: &Waiting) -> Result<(), Untaken> {
        let answer = self.patience.answer;
        let event = waiting.event(&self.instance);
        let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        // What was not answered may have been carried out, and nobody wants to read it twice.
        match timeout(answer, events.create(&PostParams::default(), &event)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(Untaken::Refused(error)),
            Err(_) => Err(Untaken::Silent(answer)),
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a pause between two looks, not a wait for an instant"
)]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

#[cfg(test)]
mod tests;
