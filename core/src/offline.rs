//! Offline: what can be found out about objects without a controller.
//!
//! What comes in: objects from files or from a cluster. What goes out: their mistakes ([`lint`]), and
//! what their gates say as time passes ([`simulate`]).
//!
//! It uses all rooms but [`flux`](crate::flux), [`evidence`](crate::evidence) and
//! [`operation`](crate::operation).

pub mod lint;
pub mod simulate;
