//! What commands show, computed apart from how it is printed.
//!
//! What comes in: what was read of a cluster or of files. What goes out: rows, decisions and changes,
//! as they are printed for people and for programs. Uses the rooms `arguments`, `cluster` and
//! `instant`.

mod changes;
mod decided;
pub(crate) mod listing;
pub(crate) mod pending;
mod promoting;
mod rolling;
pub(crate) mod rows;
mod source;
pub(crate) mod strategy;

pub(crate) use changes::{Change, changes};
pub(crate) use decided::{Decided, checked};
pub(crate) use promoting::{Promoting, promoting};
pub(crate) use rolling::{Rolling, rolling};
pub(crate) use source::{Source, Waits, turn, unready, waits, warnings};
pub(crate) use strategy::Strategy;
