//! Tests with the real controllers of workloads: what Sluice relies on in them, one module a subject, and
//! Rollouts that are carried out on them.

#![cfg(test)]

mod clone_sets;
mod deployments;
mod healing;
mod in_place;
mod partitions;
mod pods;
mod rollouts;
mod scene;
