//! The cluster as somebody outside of it sees it: how to talk to its API server, what its refusals
//! mean, and how its objects are named.
//!
//! | | comes in | goes out |
//! |---|---|---|
//! | [`connect`] | a kubeconfig, or the service account | a client, which limits what an answer may take |
//! | [`failure`] | an error of the API server | what it means, and what to do about it |
//! | [`key`] | an object | its name, and its key in the queue |
//! | [`kind`] | a kind | what the API calls it, and how its objects are looked at |
//!
//! It uses no other room.

pub mod connect;
pub(crate) mod failure;
pub mod key;
pub mod kind;
