//! What people and other programs are told: what was decided, what has changed, what went wrong.
//!
//! | | comes in | goes out |
//! |---|---|---|
//! | [`events`] | transitions | events on the API server, and to Flux's notification-controller |
//! | [`audit`] | records | lines of JSON, in a file or on standard output |
//! | [`decisions`] | each answer to a question | what is new in it: log, events, audit, metrics |
//! | [`definitions`] | specs that change | the same, for the specs of gates and our other kinds |
//! | [`counters`], [`metrics`] | what happens | what Prometheus reads |
//!
//! It may use [`observe`](crate::observe) and [`cluster`](crate::cluster). Nothing here decides.

pub mod audit;
pub mod counters;
pub mod decisions;
pub mod definitions;
pub mod events;
pub mod metrics;
