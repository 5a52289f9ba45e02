//! Tests with the real controllers of workloads: what Sluice relies on in them, one module a subject.

#![cfg(test)]

mod clone_sets;
mod deployments;
mod healing;
mod in_place;
mod partitions;
mod pods;
mod scene;
