//! Tests of what is asked and told of forges, with a real Gitea: one module a subject.

#![cfg(test)]

mod changes;
mod desk;
mod git;
mod merging;
mod names;
mod pulls;
mod rights;
mod scene;
mod statuses;
