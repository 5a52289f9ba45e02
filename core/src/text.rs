//! Texts: as people and other programs write them, and as messages show them.
//!
//! What comes in: the text of a field, of a ConfigMap or of another program. What goes out: its
//! entries, words that a message may show, or a [`Refusal`](refusal::Refusal) that says what to write
//! instead.
//!
//! It uses no other room.

pub(crate) mod lines;
pub mod names;
pub mod refusal;
pub mod words;
