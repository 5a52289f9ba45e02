//! Tests of Sluice with the real Flux: one module a subject.

#![cfg(test)]

mod adopting;
mod branches;
mod children;
mod ci;
mod copies;
mod delivery;
mod events;
mod forced;
mod freeze;
mod guide;
mod guides;
mod harness;
mod kinds;
mod marks;
mod other_clusters;
mod pipelines;
mod plugin;
mod promotions;
mod pulls;
mod recovery;
mod revisions;
mod rollouts;
mod stage;
mod steady;
mod together;
mod upstream;
mod warnings;
mod wiped;
