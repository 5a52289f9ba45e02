//! Rollouts: a new version takes the place of an old one, batch by batch.
//!
//! What comes in: a Rollout, what is known of its workloads, hooks, metrics and gates, and an instant. What
//! goes out: how far the run is, and what has to be done next. Nothing here carries it out.
//!
//! | part | makes |
//! |---|---|
//! | [`plan`] | what a spec says, as types that cannot say anything wrong, or what is wrong with it |
//! | [`size`], `course` | how many pods of the new version there are after each batch |
//! | `identity`, [`claim`], `begin` | what a run is, and how it begins |
//! | [`state`], [`signals`] | how far the run is, and what is seen of it |
//! | [`step`] | what the run does next, for every state and every signal |
//! | [`given`], `needed` | what a look is decided from, and what has to be read for it |
//! | `app`, `applied` | which workload of a Kustomization or HelmRelease is meant, and what Flux writes again |
//! | `conflict`, `look` | who stands in the way, and which signals hold: `why` |
//! | [`batch`], [`workload`] | what the workloads are to have, what they have, and how it is written |
//! | [`hook`], `calls`, [`metric`], [`hold`] | which hook is called next, whether a value is good, and the deadline |
//! | `transition`, `chain` | the status of the next state, and how far a look goes |
//! | `kept` | what is kept of the objects that a look reads |
//! | `ending`, `restore` | what is settled, brought back and released |
//! | [`acts`], `conditions`, [`report`](report()) | the status, and what has to be done |
//! | [`view`](view()) | a Rollout as it is shown |
//!
//! A look takes two steps. [`consider`] says whether gates are asked, for which batch, and by which revision, so
//! that the answer can be recorded; [`report`](report()) says what the status has to be, what has to be done, and
//! when to look again. The status is the intent: it is accepted before anything is done, and what is done is
//! only what an accepted status intends. At most one intent is new in a look.

pub mod acts;
mod app;
mod applied;
pub mod batch;
mod begin;
mod calls;
mod chain;
pub mod claim;
mod conditions;
mod conflict;
mod considered;
mod course;
mod desk;
mod ending;
pub mod given;
pub mod hold;
pub mod hook;
mod identity;
mod kept;
mod look;
pub mod metric;
mod needed;
mod past;
pub mod plan;
mod refused;
mod report;
mod restore;
pub mod signals;
pub mod size;
pub mod state;
pub mod step;
#[cfg(test)]
mod tests;
mod transition;
pub mod view;
mod why;
pub mod workload;

pub use acts::{Act, What, Write};
pub use applied::{MANAGER, appliers};
pub use calls::Calling;
pub use conditions::BLOCKED;
pub use considered::{Answer, Considered, Question, Told, asks, consider, subject};
pub use given::Given;
pub use kept::{AUTOSCALER, kept};
pub use needed::{apps, former, is_unsure, needs_pods, target_of_run, wanted};
pub use plan::{Plan, check};
pub use refused::unread;
pub use report::{Report, is_under_way, waits_for_gates};
pub use transition::News;
pub use view::{View, is_retry_due, view};

/// The kind, as it is written in subjects.
pub const KIND: &str = "Rollout";
/// Why a run is held, in one word, while its gates are closed.
pub const CLOSED: &str = "GatesClosed";

/// What the status has to be, and what has to be done.
pub fn report(given: &Given, considered: &Considered, answer: &Answer) -> Report {
    match &considered.checked {
        Ok(plan) => report::report(given, plan, considered, answer),
        Err(refusals) => refused::report(given, refusals),
    }
}
