//! How many errands are under way at once.
//!
//! What comes in: the namespace of an object, and the host that it asks. What goes out: a place, held until
//! it is dropped. Neither a host that does not answer nor a namespace with many objects takes all places,
//! and a dead host delays no other host of the same namespace. Two places are kept for what must not wait.

use sluice_egress::places::{Place, Places};
use tokio::sync::Semaphore;

/// How many are under way at once, how many of them at one host, of one namespace, and of one namespace at
/// one host.
const AT_ONCE: usize = 16;
const AT_A_HOST: usize = 4;
const OF_A_NAMESPACE: usize = 8;
const OF_BOTH: usize = 4;
/// How many more may be under way that must not wait, and how many of them at one host.
const KEPT: usize = 2;
const KEPT_AT_A_HOST: usize = 1;

/// The places of all errands.
pub(super) struct Rooms {
    of_both: Places,
    of_namespaces: Places,
    at_hosts: Places,
    kept: Places,
}

impl Default for Rooms {
    fn default() -> Self {
        let shares = |each| Places::new(Semaphore::MAX_PERMITS, each);
        Self {
            of_both: shares(OF_BOTH),
            of_namespaces: shares(OF_A_NAMESPACE),
            at_hosts: Places::new(AT_ONCE, AT_A_HOST),
            kept: Places::new(KEPT, KEPT_AT_A_HOST),
        }
    }
}

impl Rooms {
    /// Waits for a place. An errand that waits holds only places that others wait for who ask for the same
    /// or more.
    pub(super) async fn take(
        &self,
        namespace: &str,
        host: &str,
        is_urgent: bool,
    ) -> (Place, Option<[Place; 2]>) {
        let usual = async {
            // No name of a namespace has a slash.
            let of_both = self.of_both.take(&format!("{namespace}/{host}")).await;
            let of_namespace = self.of_namespaces.take(namespace).await;
            let at_host = self.at_hosts.take(host).await;
            (at_host, Some([of_namespace, of_both]))
        };
        if !is_urgent {
            return usual.await;
        }
        tokio::select! {
            biased;
            place = usual => place,
            kept = self.kept.take(host) => (kept, None),
        }
    }
}
