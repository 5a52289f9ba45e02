//! How many errands of one desk are under way at once: pull requests, commit statuses, lists of repositories and
//! pipelines have a desk each.
//!
//! What comes in: the namespace of an object, and the line that its errand stands in: that of the host that it
//! asks, or at a forge of the credential that it asks with, because what a forge asks to wait for counts for that.
//! What goes out: a place, held until it is dropped. No namespace takes all places of a line, and anyone who waits in a
//! line holds nothing that those of another namespace wait for elsewhere: a host that does not answer, or a forge
//! that wants to be left alone, delays only those who ask it in the same way.
//!
//! | who | has |
//! |---|---|
//! | an errand that has one part | the usual places |
//! | what must not wait, and a merge | these, or one of its own kind: it waits for nothing else |
//! | a part of an errand that has several | places of its own: one errand asks many hosts, and if all of them are dead, it delays neither what has one part, nor the parts of another |

use sluice_egress::places::{Place, Places};
use tokio::sync::Semaphore;

/// How many parts of one errand may have a place, or wait for one.
pub(super) const OF_AN_ERRAND: usize = 8;

/// How many places there are of one kind.
struct Numbers {
    /// For one namespace in one line.
    of_both: usize,
    of_a_namespace: usize,
    /// More than one namespace can have.
    in_a_line: usize,
    /// Many times what one namespace can have: what all errands hold in memory has a bound.
    at_once: usize,
}

/// Of the errands that have one part: how many of a namespace in one line, of a namespace, and of all have a place.
/// A way out that gives each of them its turn at once has the same limits.
pub(crate) const OF_BOTH: usize = 3;
pub(crate) const OF_A_NAMESPACE: usize = 8;
pub(crate) const AT_ONCE: usize = 128;

const USUAL: Numbers = Numbers {
    of_both: OF_BOTH,
    of_a_namespace: OF_A_NAMESPACE,
    in_a_line: 4,
    at_once: AT_ONCE,
};
const PARTS: Numbers = Numbers {
    of_a_namespace: 16,
    ..USUAL
};
/// These are short.
const KEPT: Numbers = Numbers {
    of_both: 1,
    of_a_namespace: 2,
    in_a_line: 1,
    at_once: 32,
};

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
    usual: Room,
    parts: Room,
    first: Room,
    merges: Room,
}

/// The places of one kind.
struct Room {
    of_both: Places,
    of_namespaces: Places,
    in_lines: Places,
}

impl Default for Rooms {
    fn default() -> Self {
        Self {
            usual: Room::new(&USUAL),
            parts: Room::new(&PARTS),
            first: Room::new(&KEPT),
            merges: Room::new(&KEPT),
        }
    }
}

impl Rooms {
    /// Waits for a place.
    pub(super) async fn take(&self, namespace: &str, line: &str, turn: Turn) -> [Place; 3] {
        let kept = match turn {
            Turn::Usual => return self.usual.take(namespace, line).await,
            Turn::InParts => return self.parts.take(namespace, line).await,
            Turn::First => &self.first,
            Turn::Merge => &self.merges,
        };
        tokio::select! {
            biased;
            places = self.usual.take(namespace, line) => places,
            places = kept.take(namespace, line) => places,
        }
    }
}

impl Room {
    fn new(numbers: &Numbers) -> Self {
        let shares = |each| Places::new(Semaphore::MAX_PERMITS, each);
        Self {
            of_both: shares(numbers.of_both),
            of_namespaces: shares(numbers.of_a_namespace),
            in_lines: Places::new(numbers.at_once, numbers.in_a_line),
        }
    }

    /// An errand that waits holds only places that others wait for who ask for the same or more.
    async fn take(&self, namespace: &str, line: &str) -> [Place; 3] {
        // No name of a namespace has a slash.
        let of_both = self.of_both.take(&format!("{namespace}/{line}")).await;
        let of_namespace = self.of_namespaces.take(namespace).await;
        let in_line = self.in_lines.take(line).await;
        [in_line, of_namespace, of_both]
    }
}
