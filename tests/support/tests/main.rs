//! Tests of what tests stand on: the local control plane, and Prometheus.

#![cfg(test)]
mod building;
mod killing;
mod lifecycle;
mod prometheus;
