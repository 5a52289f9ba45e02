//! One gatekeeper, observed as long as it exists.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::Gatekeeper;
use sluice_gatekeepers::{Observation, observe, sources};
use tokio::sync::{Notify, watch};

use super::users::User;
use super::{Shared, requested_at};
use crate::cluster::key::ObjectKey;
use crate::observe::clock::{self, Clock};

pub(super) struct Observer {
    shared: Arc<Shared>,
    id: u64,
    key: ObjectKey,
    objects: watch::Receiver<Arc<Gatekeeper>>,
}

/// Nobody is interested in this gatekeeper any more.
struct Gone;

impl Observer {
    pub(super) fn new(
        shared: Arc<Shared>,
        id: u64,
        key: ObjectKey,
        objects: watch::Receiver<Arc<Gatekeeper>>,
    ) -> Self {
        Self {
            shared,
            id,
            key,
            objects,
        }
    }

    /// Observes, stores, waits, and again.
    pub(super) async fn run(mut self) {
        let woken = Arc::new(Notify::new());
        let mut user = User::new(Arc::clone(&self.shared.users), self.id, Arc::clone(&woken));
        let mut last = Observation::default();
        let mut answered = requested_at(&self.objects.borrow()).map(str::to_owned);
        loop {
            let object = Arc::clone(&self.objects.borrow_and_update());
            if requested_at(&object) != answered.as_deref() {
                answered = requested_at(&object).map(str::to_owned);
                last = last.made_due();
            }
            // Before the look, so that no change falls between the two.
            user.uses(sources(&object));
            let now = self.shared.clock.now();
            last = tokio::select! {
                observation = observe(&object, &self.shared.clients, &last, now) => observation,
                // Another spec: what the look waits for may not be wanted any more.
                changed = self.objects.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
            };
            if self
                .shared
                .store
                .put(&self.key, self.id, &object, last.clone())
            {
                (self.shared.changed)(&self.key);
            }
            if let Err(Gone) = self.wait(last.again, &woken).await {
                return;
            }
        }
    }

    /// Waits for a reason to look again.
    async fn wait(&mut self, again: Option<Timestamp>, woken: &Notify) -> Result<(), Gone> {
        let clock = Arc::clone(&self.shared.clock);
        tokio::select! {
            () = woken.notified() => Ok(()),
            changed = self.objects.changed() => changed.map_err(|_| Gone),
            () = reach(clock.as_ref(), again) => Ok(()),
        }
    }
}

/// Waits until the clock shows `at`, or is set back; for ever if there is no such instant.
async fn reach(clock: &dyn Clock, at: Option<Timestamp>) {
    match at {
        Some(at) => clock::reach(clock, at).await,
        None => std::future::pending().await,
    }
}
