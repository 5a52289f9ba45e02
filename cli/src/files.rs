//! Objects from files, without a cluster.
//!
//! What comes in: paths of files and folders, or `-` for standard input. What goes out: the
//! objects in them as an [`Input`], with everything that is wrong and where it stands; or as a
//! [`World`](sluice_core::offline::simulate::World), where nothing is refused. In a folder there may be
//! anything: what is none of ours is skipped, and said to be. Uses the room `output`.

mod finding;
mod input;
mod names;
mod scalar;
mod source;
mod world;
mod yaml;

pub(crate) use finding::Finding;
pub(crate) use input::Input;
#[cfg(test)]
pub(crate) use source::{Content, Source};
pub(crate) use source::{STDIN, read};
#[cfg(test)]
pub(crate) use world::objects_in;
pub(crate) use world::{choose, chosen, give, objects, world};
