//! Tests of Sluice on the real API server: one module a subject.

#![cfg(test)]

mod admission;
mod answers;
mod artifacts;
mod audit;
mod calendars;
mod chart;
mod check;
mod cli;
mod clusters;
mod conformance;
mod flux_strip;
mod forces;
mod gate_policies;
mod gated_sources;
mod kinds;
mod notifications;
mod outages;
mod pipelines;
mod policies;
mod promotions;
mod replicas;
mod repositories;
mod restarts;
mod server;
mod stage;
mod told;
mod transitions;
mod trouble;
mod webhook;
