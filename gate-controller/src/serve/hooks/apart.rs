//! Wakes an access at once, and then at most once a second. What comes meanwhile is heard at the end of that second.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::cluster::key::ObjectKey;

/// The least time between two wakes.
const APART: Duration = Duration::from_secs(1);

/// Who was woken just now.
pub(super) struct Apart {
    wake: Box<dyn Fn(&ObjectKey) + Send + Sync>,
    /// Whether it is to be woken again.
    just_now: Mutex<HashMap<ObjectKey, bool>>,
}

impl Apart {
    pub(super) fn new(wake: impl Fn(&ObjectKey) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            wake: Box::new(wake),
            just_now: Mutex::default(),
        })
    }

    pub(super) fn wake(self: &Arc<Self>, access: &ObjectKey) {
        match self.just_now.lock().entry(access.clone()) {
            Entry::Occupied(mut again) => {
                again.insert(true);
                return;
            }
            Entry::Vacant(new) => new.insert(false),
        };
        (self.wake)(access);
        let (all, access) = (Arc::clone(self), access.clone());
        tokio::spawn(async move {
            pause().await;
            while all.is_wanted_again(&access) {
                (all.wake)(&access);
                pause().await;
            }
        });
    }

    fn is_wanted_again(&self, access: &ObjectKey) -> bool {
        let mut just_now = self.just_now.lock();
        match just_now.get_mut(access) {
            Some(again) if *again => {
                *again = false;
                true
            }
            Some(_) | None => {
                just_now.remove(access);
                false
            }
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a pause between two wakes, not a wait for an instant"
)]
async fn pause() {
    tokio::time::sleep(APART).await;
}
