//! Objects of Flux: what they fetch, what they show, and who uses them.
//!
//! What comes in: an object of Flux as it is. What goes out: what its fields say, for every kind of
//! delivery. Nothing here knows about gates.
//!
//! It uses [`revision`](crate::revision).

pub mod content;
pub(crate) mod identity;
pub mod observed;
pub(crate) mod replaced;
pub(crate) mod shown;
pub mod users;
