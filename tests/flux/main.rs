//! Tests of Sluice with the real Flux: one module a subject.

#![cfg(test)]

mod events;
mod harness;
mod stage;
mod wiped;
