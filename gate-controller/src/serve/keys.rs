//! The keys that requests are signed with.
//!
//! What comes in: a Secret by its name, and the time. What goes out: its key, or why there is none. An
//! answer of the API server is kept for [`KEPT`], and who asks meanwhile waits for it: however many
//! requests come, and from wherever, each Secret is read once in that time. That there was no answer counts
//! for [`AGAIN`] alone, so that an outage ends here when it ends there. Only Secrets are asked for that an
//! object of ours names, and what is too old is forgotten by the next who asks for any of them.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use kube::Client;
use parking_lot::Mutex;
use sluice_egress::secrets::{self, Unread};

use crate::observe::clock::Clock;

/// For how long an answer counts. So long a key that was taken away still signs.
pub(super) const KEPT: SignedDuration = SignedDuration::from_secs(5);
/// How soon the API server is asked again that has not answered.
pub(super) const AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// The fewest bytes of such a key: those of a SHA-256.
const SHORTEST: usize = 32;

/// The keys.
pub(super) struct Keys {
    client: Client,
    /// What such a key is called in its Secret.
    called: &'static str,
    known: Mutex<HashMap<Secret, Arc<tokio::sync::Mutex<Option<Read>>>>>,
}

/// A Secret: its namespace and its name.
type Secret = (String, String);

/// What was read of it.
struct Read {
    at: Timestamp,
    key: Result<Arc<[u8]>, Unread>,
}

impl Read {
    /// Not if the clock was set back.
    fn is_fresh(&self, now: Timestamp) -> bool {
        let kept = match self.key {
            Err(Unread::NoAnswer(_)) => AGAIN,
            Ok(_) | Err(Unread::NoRight(_) | Unread::NotUsable(_)) => KEPT,
        };
        let ago = now.duration_since(self.at);
        !ago.is_negative() && ago < kept
    }
}

impl Keys {
    /// None is known yet.
    pub(super) fn new(client: Client, called: &'static str) -> Self {
        Self {
            client,
            called,
            known: Mutex::default(),
        }
    }

    /// The key in a Secret.
    ///
    /// # Errors
    /// Why there is none, for the log. That there was no answer is logged here, once for all who waited.
    pub(super) async fn get(
        &self,
        namespace: &str,
        name: &str,
        clock: &dyn Clock,
    ) -> Result<Arc<[u8]>, Unread> {
        let place = self.place((namespace.to_owned(), name.to_owned()), clock.now());
        let mut known = place.lock().await;
        // Who has waited takes what came meanwhile.
        let now = clock.now();
        if let Some(read) = known.as_ref().filter(|read| read.is_fresh(now)) {
            return read.key.clone();
        }
        let key = signing_key(&self.client, namespace, name, self.called).await;
        if let Err(Unread::NoAnswer(why)) = &key {
            tracing::warn!(why, "what is signed cannot be verified");
        }
        *known = Some(Read {
            at: clock.now(),
            key: key.clone(),
        });
        key
    }

    fn place(&self, secret: Secret, now: Timestamp) -> Arc<tokio::sync::Mutex<Option<Read>>> {
        let mut all = self.known.lock();
        all.retain(|_, place| match Arc::get_mut(place) {
            Some(known) => known.get_mut().as_ref().is_some_and(|it| it.is_fresh(now)),
            // Somebody reads it, or waits for it.
            None => true,
        });
        Arc::clone(all.entry(secret).or_default())
    }
}

/// The key in a Secret, without line breaks at its end. There is none, or it is too short, if an error says
/// that it cannot be used. No error holds anything of the Secret.
async fn signing_key(
    client: &Client,
    namespace: &str,
    name: &str,
    called: &str,
) -> Result<Arc<[u8]>, Unread> {
    let wrong = |what: String| Unread::NotUsable(format!("the Secret {namespace}/{name} {what}"));
    let secret = secrets::read(client, namespace, name).await?;
    let ByteString(mut key) = secret
        .data
        .and_then(|mut data| data.remove(called))
        .ok_or_else(|| wrong(format!("has no key `{called}`")))?;
    while key.last().is_some_and(|byte| matches!(byte, b'\r' | b'\n')) {
        key.pop();
    }
    match key.len() {
        SHORTEST.. => Ok(Arc::from(key)),
        _ => Err(wrong(format!(
            "has a `{called}` that is too short: it needs at least {SHORTEST} bytes"
        ))),
    }
}
