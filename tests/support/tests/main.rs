//! Tests of the local control plane itself.

#![cfg(test)]
mod building;
mod killing;
mod lifecycle;
