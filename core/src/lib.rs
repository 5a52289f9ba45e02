//! Pure decisions. What comes in: objects, evidence, and an instant. What goes out: verdicts,
//! decisions, and what to write about them.
//!
//! Nothing here reads a clock, a file or a network: the same input at the same instant gives the
//! same answer, in the controller, in `kubectl gate simulate`, and a year later in an audit.

pub mod calendar;
pub mod cron;
pub mod duration;
pub mod refusal;
pub mod span;
pub mod zone;

pub use refusal::{Refusal, Refusals};
