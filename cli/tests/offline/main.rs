//! The program as people and scripts run it, without a cluster.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod adopt;
mod course;
mod evidence;
mod lint;
mod patience;
mod pipelines;
mod program;
mod rollouts;
mod simulate;
mod surface;
