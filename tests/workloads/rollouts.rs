//! Rollouts that the controller carries out on real workloads: one module a subject.

mod conflicts;
mod ends;
mod gates;
mod hooks;
mod in_place;
mod kills;
mod metrics;
mod news;
mod pairs;
mod play;
mod quiet;
mod replicas;
mod rights;
mod scaling;
mod waits;
