//! How many errands are under way at once.
//!
//! What comes in: the namespace of an object, and the host that it asks. What goes out: a place, held until
//! it is dropped. Neither a host that does not answer nor a namespace with many objects takes all places,
//! and a dead host delays no other host of the same namespace. Two places are kept for what must not wait, and
//! two for merges, so that they wait for nothing but each other.
//!
//! The parts of errands have places of their own in a namespace: one errand asks many hosts, and if all of
//! them are dead, it delays neither what has one part, nor the parts of another.

use sluice_egress::places::{Place, Places};
use tokio::sync::Semaphore;

/// How many are under way at once, and how many of them at one host. It is more than one namespace can have.
const AT_ONCE: usize = 32;
const AT_A_HOST: usize = 4;
/// How many are of one namespace, without and with the parts of errands, and of one namespace at one host.
const OF_A_NAMESPACE: usize = 8;
const PARTS_OF_A_NAMESPACE: usize = 16;
const OF_BOTH: usize = 4;
/// How many parts of one errand may have a place, or wait for one.
pub(super) const OF_AN_ERRAND: usize = 8;
/// How many more may be under way that must not wait, and how many of them at one host.
const KEPT: usize = 2;
const KEPT_AT_A_HOST: usize = 1;

/// Who takes a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// An errand that has one part.
    Usual,
    /// One that must not wait behind others.
    First,
    /// One that only waits behind others of its kind.
    Merge,
    /// A part of an errand that has several.
    InParts,
}

/// The places of all errands.
pub(super) struct Rooms {
    usual: Shares,
    parts: Shares,
    at_hosts: Places,
    first: Places,
    merges: Places,
}

/// The places of each namespace.
struct Shares {
    of_both: Places,
    of_namespaces: Places,
}

impl Shares {
    fn new(of_a_namespace: usize) -> Self {
        let shares = |each| Places::new(Semaphore::MAX_PERMITS, each);
        Self {
            of_both: shares(OF_BOTH),
            of_namespaces: shares(of_a_namespace),
        }
    }
}

impl Default for Rooms {
    fn default() -> Self {
        Self {
            usual: Shares::new(OF_A_NAMESPACE),
            parts: Shares::new(PARTS_OF_A_NAMESPACE),
            at_hosts: Places::new(AT_ONCE, AT_A_HOST),
            first: Places::new(KEPT, KEPT_AT_A_HOST),
            merges: Places::new(KEPT, KEPT_AT_A_HOST),
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
        turn: Turn,
    ) -> (Place, Option<[Place; 2]>) {
        let shares = match turn {
            Turn::Usual | Turn::First | Turn::Merge => &self.usual,
            Turn::InParts => &self.parts,
        };
        let usual = async {
            // No name of a namespace has a slash.
            let of_both = shares.of_both.take(&format!("{namespace}/{host}")).await;
            let of_namespace = shares.of_namespaces.take(namespace).await;
            let at_host = self.at_hosts.take(host).await;
            (at_host, Some([of_namespace, of_both]))
        };
        let kept = match turn {
            Turn::Usual | Turn::InParts => return usual.await,
            Turn::First => &self.first,
            Turn::Merge => &self.merges,
        };
        tokio::select! {
            biased;
            place = usual => place,
            kept = kept.take(host) => (kept, None),
        }
    }
}
