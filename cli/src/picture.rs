//! Pictures: the coming days of a gate, with a row for each day and a cell for each half hour; and the
//! environments of a pipeline, and the batches of a rollout.
//!
//! What comes in: the stretches in which the gate stays as it is, or the view of a pipeline or rollout; a zone, an
//! instant to mark. What goes out: text for a terminal of any width, or SVG. All are pure functions of
//! the data. Uses the rooms `instant` and `output`.

mod clocks;
mod closing;
mod days;
mod glyphs;
mod hours;
mod pipeline;
mod rollout;
mod svg;
mod terminal;
#[cfg(test)]
mod tests;

pub(crate) use days::Picture;
pub(crate) use pipeline::{pipeline, revisions};
pub(crate) use rollout::rollout;
pub(crate) use svg::svg;
pub(crate) use terminal::{Look, terminal};
