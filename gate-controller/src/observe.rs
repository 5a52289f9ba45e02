//! What is known, in memory: everything that a decision is made from.
//!
//! What comes in: what the watches of the API server bring, what gatekeepers find out, and the time.
//! What goes out: the [`world`], which answers without a request, and a call for each change.
//!
//! | | holds |
//! |---|---|
//! | [`apps`] | the apps that pipelines promote, on any cluster |
//! | [`cache`] | the objects of one kind, kept up to date by a watch |
//! | [`clock`] | the time, its jumps, and how far it is from the API server's |
//! | [`evidence`] | what gatekeepers are judged from, in addition to spec and clock |
//! | [`repositories`] | what is known of the repositories that promotions go through |
//! | [`identity`] | whether the admission policies are there that verify who forces a gate |
//! | [`named`] | which objects of other kinds ours name, and whom a change concerns |
//! | [`workloads`] | the workloads of Rollouts, and what else writes to them |
//! | [`world`] | all of it together |
//!
//! It may use [`cluster`](crate::cluster). It writes nothing, and does not know who asks, or what is done
//! with the answers.

pub mod apps;
pub mod cache;
pub mod clock;
pub mod evidence;
pub mod identity;
pub mod named;
pub mod repositories;
pub mod workloads;
pub mod world;
