//! Deliveries: what goes out once the gates allow it.
//!
//! What comes in: an object that wants to make changes (a *consumer* of gates), everything that it
//! depends on as it is now, and an instant. What goes out: its status, what has to be done to other
//! objects, and when to look again.
//!
//! Every consumer of gates uses [`choice`] (the newest change that the gates admit) and [`spread`] (when it
//! goes out), or [`asked`] (what the gates say of one revision), and [`current`] (whether its status says that
//! already) and [`act`] (what follows from the status). [`gated_source`], [`pipeline`] and
//! [`promotion_strategy`] are such consumers. The last two share `order` (how long an order to merge holds).
//! What goes out by a repository of Git goes out by a [`pull_request`]. By a [`git_repository_access`] it is
//! opened, by a [`commit_status`] it is said what was found out about a commit, and by a [`revert_commit`] a
//! promotion is taken back.
//!
//! It uses [`gate`](crate::gate), [`gatekeeper`](crate::gatekeeper), [`evidence`](crate::evidence),
//! [`flux`](crate::flux), [`verdict`](crate::verdict), [`revision`](crate::revision),
//! [`time`](crate::time) and [`text`](crate::text).

pub mod act;
pub mod asked;
pub mod choice;
pub mod commit_status;
pub mod current;
pub mod gated_source;
pub mod git_repository_access;
mod order;
pub mod pipeline;
pub mod promotion_strategy;
pub mod pull_request;
pub mod revert_commit;
pub mod rollout;
pub mod spread;
#[cfg(test)]
mod tests;

/// The kinds of our objects that ask gates, as subjects have them. What they wait for only the controller says.
pub const CONSUMERS: [&str; 5] = [
    gated_source::KIND,
    pipeline::KIND,
    promotion_strategy::KIND,
    promotion_strategy::REVERT,
    rollout::KIND,
];
