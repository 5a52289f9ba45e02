//! Pure decisions. What comes in: objects, evidence, and an instant. What goes out: verdicts,
//! decisions, and what to write about them.
//!
//! Nothing here reads a clock, a file or a network: the same input at the same instant gives the
//! same answer, in the controller, in `kubectl gate simulate`, and a year later in an audit.

pub mod delivery;
pub mod evidence;
pub mod flux;
pub mod gate;
pub mod gatekeeper;
pub mod offline;
pub mod operation;
pub mod revision;
pub mod text;
pub mod time;
pub mod verdict;

pub use text::refusal::{Refusal, Refusals};
pub use time::clock::Now;
pub use verdict::question::Question;
pub use verdict::{Reason, Verdict};
