//! The system clock: the one place where it is read. Uses no other room.

use jiff::Timestamp;

/// The present instant, as this machine has it.
#[allow(clippy::disallowed_methods, reason = "this is where the clock is read")]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}
