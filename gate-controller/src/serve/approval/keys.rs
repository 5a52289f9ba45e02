//! The keys that approvals are signed with.
//!
//! What comes in: a Secret by its name, and the instant. What goes out: its key, or why there is none. An
//! answer of the API server is kept for [`KEPT`], and whoever asks meanwhile waits for it: however many
//! requests come, and from wherever, each Secret is read once in that time. Only Secrets are asked for that
//! a Pipeline names, so there are never more answers than those.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use parking_lot::Mutex;
use sluice_egress::secrets;

/// For how long an answer counts. So long a key that was taken away still signs.
pub(super) const KEPT: SignedDuration = SignedDuration::from_secs(5);

/// The keys.
pub(super) struct Keys {
    client: Client,
    known: Mutex<HashMap<Secret, Arc<tokio::sync::Mutex<Option<Read>>>>>,
}

/// A Secret: its namespace and its name.
type Secret = (String, String);

/// What was read of it.
struct Read {
    at: Timestamp,
    key: Result<Arc<[u8]>, String>,
}

impl Read {
    /// Not if the clock was set back.
    fn is_fresh(&self, now: Timestamp) -> bool {
        let ago = now.duration_since(self.at);
        !ago.is_negative() && ago < KEPT
    }
}

impl Keys {
    /// None is known yet.
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            known: Mutex::default(),
        }
    }

    /// The key in a Secret.
    ///
    /// # Errors
    /// Why there is none, for the log.
    pub(super) async fn get(
        &self,
        namespace: &str,
        name: &str,
        now: Timestamp,
    ) -> Result<Arc<[u8]>, String> {
        let place = self.place((namespace.to_owned(), name.to_owned()), now);
        let mut known = place.lock().await;
        if let Some(read) = known.as_ref().filter(|read| read.is_fresh(now)) {
            return read.key.clone();
        }
        let key = secrets::signing_key(&self.client, namespace, name).await;
        let key = key.map(Arc::from);
        *known = Some(Read {
            at: now,
            key: key.clone(),
        });
        key
    }

    fn place(&self, secret: Secret, now: Timestamp) -> Arc<tokio::sync::Mutex<Option<Read>>> {
        let mut all = self.known.lock();
        if !all.contains_key(&secret) {
            all.retain(|_, place| match place.try_lock() {
                Ok(known) => known.as_ref().is_some_and(|read| read.is_fresh(now)),
                // It is being read.
                Err(_) => true,
            });
        }
        Arc::clone(all.entry(secret).or_default())
    }
}
