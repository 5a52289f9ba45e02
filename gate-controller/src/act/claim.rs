//! Whether an errand has changed something yet.
//!
//! What comes in: the errand, right before it sends a change; and the one who has something more urgent to say. What
//! goes out: which of both was first. One that has sent nothing leaves nothing behind when it is ended. Of one that
//! has, nobody knows what it has done before its end.

use parking_lot::Mutex;
use sluice_forges::Wants;

/// Of one errand.
#[derive(Debug, Default)]
pub(crate) struct Claim(Mutex<State>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Waiting,
    Sending,
    Ended,
}

impl Claim {
    /// Whether a change still may wait for its turn, or be sent. One that waits has changed nothing.
    pub(crate) fn allows(&self, wants: Wants) -> bool {
        match wants {
            Wants::Turn => *self.0.lock() != State::Ended,
            Wants::Sending => self.send(),
        }
    }

    /// A change is to be sent now. Returns whether it still may be.
    pub(crate) fn send(&self) -> bool {
        let mut state = self.0.lock();
        if *state == State::Waiting {
            *state = State::Sending;
        }
        *state == State::Sending
    }

    /// Something else is to be done instead. Returns whether nothing was sent, and nothing will be.
    pub(crate) fn end(&self) -> bool {
        let mut state = self.0.lock();
        if *state == State::Waiting {
            *state = State::Ended;
        }
        *state == State::Ended
    }

    /// Whether something may have been sent.
    pub(crate) fn is_sent(&self) -> bool {
        *self.0.lock() == State::Sending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_first_decides() {
        let sent = Claim::default();
        assert!(!sent.is_sent());
        assert!(sent.send() && sent.is_sent());
        assert!(!sent.end());
        assert!(sent.send());
        let ended = Claim::default();
        assert!(ended.end() && !ended.is_sent());
        assert!(!ended.send());
        assert!(ended.end());
    }

    #[test]
    fn what_waits_for_its_turn_can_be_ended() {
        let claim = Claim::default();
        assert!(claim.allows(Wants::Turn) && !claim.is_sent());
        assert!(claim.end());
        assert!(!claim.allows(Wants::Turn) && !claim.allows(Wants::Sending));
        let sent = Claim::default();
        assert!(sent.allows(Wants::Turn) && sent.allows(Wants::Sending));
        assert!(sent.is_sent() && !sent.end());
        // The next request of the same errand.
        assert!(sent.allows(Wants::Turn));
    }
}
