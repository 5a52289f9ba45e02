//! The admission policies, judged by the API server itself: who may force a gate, under which
//! name, who writes status, and who may let something go out that no gate has admitted.
//!
//! `editor` may write gates, but not force them. `carol` and `dave` may do both. `oncall` may force
//! gates, and nothing else.

mod children;
mod ended;
mod force;
mod pipelines;
mod pull_requests;
mod revert_commits;
pub mod scene;
mod spec;
mod status;
mod values;
