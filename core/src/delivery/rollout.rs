//! Rollouts: a new version takes the place of an old one, batch by batch.
//!
//! What comes in: a Rollout, what is known of its workloads, hooks, metrics and gates, and an instant. What
//! goes out: how far the run is, and what has to be done next. Nothing here carries it out.
//!
//! | part | makes |
//! |---|---|
//! | [`plan`] | what a spec says, as types that cannot say anything wrong, or what is wrong with it |
//! | [`size`] | how many pods of the new version there are after each batch |
//! | [`state`], [`signals`] | how far the run is, and what is seen of it |
//! | [`step`] | what the run does next, for every state and every signal |
//! | [`batch`], [`workload`] | what the workloads are to have, what they have, and how it is written |
//! | [`hook`], [`metric`], [`hold`] | which hook is called next, whether a value is good, and the deadline |

pub mod batch;
pub mod hold;
pub mod hook;
pub mod metric;
pub mod plan;
pub mod signals;
pub mod size;
pub mod state;
pub mod step;
pub mod workload;

pub use plan::{Plan, check};

/// The kind, as it is written in subjects.
pub const KIND: &str = "Rollout";
