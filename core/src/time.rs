//! Time: instants and how far they can be relied on, stretches of time, and when something is on.
//!
//! What comes in: cron expressions, time zones, durations and calendars as text, and an instant. What
//! goes out: the instants at which windows and events start and end, and the
//! [`Timeline`](timeline::Timeline) that they make together.
//!
//! It uses [`text`](crate::text).

pub mod calendar;
pub mod clock;
pub mod cron;
pub mod duration;
pub mod span;
pub(crate) mod stamp;
pub mod timeline;
pub mod window;
pub mod zone;
