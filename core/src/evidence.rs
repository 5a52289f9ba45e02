//! Evidence: how something outside of the spec was observed, and for how long it counts.
//!
//! What comes in: the results of reading a text, of asking an address, of evaluating an expression over
//! an object. What goes out: what may be judged from them at an instant, or why nothing may.
//!
//! It uses [`verdict`](crate::verdict), [`time`](crate::time) and [`text`](crate::text).

pub mod expression;
pub mod polling;
pub mod reading;
