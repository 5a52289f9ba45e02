//! The admission policies, judged by the API server itself: who may force a gate, under which
//! name, and who writes status.
//!
//! `editor` may write gates, but not force them. `carol` and `dave` may do both. `oncall` may force
//! gates, and nothing else.

mod force;
pub mod scene;
mod spec;
mod status;
mod values;
