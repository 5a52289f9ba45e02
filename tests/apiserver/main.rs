//! Tests of Sluice on the real API server: one module a subject.

#![cfg(test)]

mod calendars;
mod chart;
mod cli;
mod policies;
mod server;
mod stage;
