//! When a change goes out: at once, or in its turn.
//!
//! Changes that were held back together would all go out at the instant at which a window opens. With a
//! spread, each consumer waits for a part of the time: always the same part, and a different part for
//! each consumer.

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::choice::{Change, Gates};
use crate::time::span::later;
use crate::time::stamp::whole_second;

/// How the changes of a consumer are spread.
#[derive(Clone, Copy, Debug)]
pub struct Spread<'a> {
    /// The time over which the changes of all consumers are spread. Zero: they are not.
    pub over: SignedDuration,
    /// What distinguishes the consumer from others, such as its UID.
    pub uid: &'a str,
    /// The turn that it has been given already.
    pub turn: Option<Timestamp>,
}

impl Spread<'_> {
    /// When a change goes out that the gates admit now. None: now. A change that the gates have never
    /// held back, such as one that was made while they were open, does not wait for a turn.
    pub fn turn<T>(
        &self,
        gates: &Gates,
        change: &Change<T>,
        was_held_back: bool,
    ) -> Option<Timestamp> {
        let now = gates.now.at;
        if let Some(turn) = self.turn {
            return (turn > now).then_some(turn);
        }
        if !was_held_back || self.over.is_zero() {
            return None;
        }
        let end = later(now, self.over);
        let open = gates.open_until(&change.parts, end).duration_since(now);
        let at = whole_second(now.saturating_add(self.share(open)).unwrap_or(now));
        (at > now).then_some(at)
    }

    /// The part of a time that this consumer waits.
    fn share(&self, whole: SignedDuration) -> SignedDuration {
        let digest = Sha256::digest(self.uid.as_bytes());
        let part = u16::from_be_bytes([digest[0], digest[1]]);
        whole / i32::from(u16::MAX) * i32::from(part)
    }
}
