//! The cluster: the only part of it that `kubectl gate` talks to is its API server.
//!
//! What comes in: the arguments that kubectl has too. What goes out: a [`Connection`], the objects
//! on it as a [`World`](sluice_core::offline::simulate::World), what is decided from them, and errors
//! of one line. Uses the rooms `clock`, `instant` and `arguments`.

mod apps;
mod connection;
mod controllers;
mod fault;
mod flux;
mod load;
mod policies;
mod reach;
mod request;
mod seen;
mod unaccepted;
mod waiting;
mod watched;
mod workloads;

pub(crate) use apps::{Apps, SourceName};
pub(crate) use connection::{Connection, Use, User, annotate, connect, patch, post};
pub(crate) use controllers::{Controller, controllers};
pub(crate) use fault::{Cannot, code};
pub(crate) use flux::{
    Around, CannotFlux, Consumer, around, consumers, flux, flux_object, mark, parent,
};
pub(crate) use load::{Scope, load};
pub(crate) use policies::gates_of;
pub(crate) use request::{existing, find, list, missing, read, resources, served, zone};
pub(crate) use seen::{Asked, Seen, key_of};
pub(crate) use waiting::{Waiting, waiting};
pub(crate) use watched::{Watched, again};
pub(crate) use workloads::workloads;
