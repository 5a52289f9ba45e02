//! The admission policies, judged by the API server itself: who may force a gate, under which
//! name, and who writes status.
//!
//! `editor` may write gates, but not force them. `carol` and `dave` may do both.

mod force;
mod scene;
mod status;
mod values;
