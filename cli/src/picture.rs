//! The coming days of a gate as a picture: a row for each day, a cell for each half hour.
//!
//! What comes in: the stretches in which the gate stays as it is, a zone, an instant to mark. What
//! goes out: text for a terminal of any width, or SVG. Both are pure functions of the data. Uses the
//! rooms `instant` and `output`.

mod clocks;
mod closing;
mod days;
mod glyphs;
mod hours;
mod svg;
mod terminal;
#[cfg(test)]
mod tests;

pub(crate) use days::Picture;
pub(crate) use svg::svg;
pub(crate) use terminal::{Look, terminal};
