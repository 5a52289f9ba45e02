//! Clusters by kubeconfig: what runs on other clusters, and on our own, seen without waiting.
//!
//! What comes in: which clusters and kinds are wanted, a client of our own API server, and the way out.
//! What goes out: a [`Sight`] of each object, from memory, and the [`Change`]s that somebody has to look
//! at. Each cluster is watched by a task of its own, with one watch for each kind, so that one that is
//! dead costs the others nothing. What is not known is [`Sight::Unknown`], with the reason; nothing is
//! decided here, and nothing is written. For those who have to write something there is [`Fleet::client`].
//!
//! A cluster is known by the Secret that has its kubeconfig. Of that Secret the metadata are watched by
//! name; its data are read when it has changed, or when the cluster says 401, and are kept in the client
//! alone. Connections to other clusters are made under the rules of [`sluice_egress`].

mod bounds;
mod connection;
mod crowd;
mod fleet;
mod held;
pub mod kubeconfig;
pub mod reference;
mod secret;
mod sight;
mod site;
#[cfg(test)]
mod tests;
mod wanted;

pub use fleet::{Fleet, Scope, Standing};
pub use held::Object;
pub use reference::{Reference, ReferenceKind};
pub use sight::{Reason, Sight, Unknown};
pub use wanted::{Change, Cluster, Keep, Kind, Part, SecretKey, Wanted};
