//! The picture for a terminal.

use std::fmt::Write;

use anstyle::Style;
use jiff::civil::Date;

use super::clocks::{self, clock_text};
use super::closing::Causes;
use super::days::{Cell, Kind, Picture, part_of, whole};
use super::glyphs::{ASCII, Glyphs, UNICODE};
use crate::output;

/// What the terminal can show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// How many columns it has.
    pub(crate) width: usize,
    /// Whether it shows more than ASCII.
    pub(crate) unicode: bool,
}

impl Look {
    /// The terminal that we print on, or of it what is ASCII.
    pub(crate) fn here(ascii: bool) -> Self {
        Self {
            width: output::columns(),
            unicode: !ascii && output::is_unicode(),
        }
    }
}

/// The columns of a day's name, with the space behind it.
const LABEL: usize = 12;
/// The columns between the cells and what is noted beside them.
const GAP: usize = 2;
/// The least columns of a note.
const NOTE: usize = 16;
/// How many causes are listed under one heading.
const CAUSES: usize = 12;

/// All pictures, one below the other, with one legend.
pub(crate) fn terminal(pictures: &[Picture], look: Look) -> String {
    let drawing = Drawing::new(look);
    let mut text = String::new();
    let mut used: Vec<Cell> = Vec::new();
    for picture in pictures {
        drawing.picture(picture, &mut text, &mut used);
        text.push('\n');
    }
    if !pictures.is_empty() {
        drawing.legend(&used, &mut text);
    }
    text
}

struct Drawing {
    look: Look,
    glyphs: &'static Glyphs,
    /// How many parts a day is drawn in.
    parts: u16,
}

impl Drawing {
    fn new(look: Look) -> Self {
        let parts = if look.width >= LABEL + 48 + GAP + NOTE {
            48
        } else {
            24
        };
        Self {
            look,
            glyphs: if look.unicode { &UNICODE } else { &ASCII },
            parts,
        }
    }

    fn picture(&self, picture: &Picture, text: &mut String, used: &mut Vec<Cell>) {
        self.headline(picture, text);
        // Writing to a String does not fail.
        let _ = writeln!(text, "{:LABEL$}{}", "", self.axis());
        let beside = Causes::of(picture, self.room().saturating_sub(NOTE + 1));
        for day in picture.days() {
            if whole(day, &picture.zone).contains(picture.now) {
                self.mark(picture, day, text);
            }
            self.day(picture, day, &beside, text, used);
        }
        for (heading, causes) in picture.causes() {
            self.causes(heading, &causes, &beside, text);
        }
        if let Some(until_when) = picture.cut_off() {
            let _ = writeln!(text, "{until_when}");
        }
    }

    fn headline(&self, picture: &Picture, text: &mut String) {
        let bold = Style::new().bold();
        let name = format!("{bold}{}{bold:#}", picture.name);
        let line = format!("{name}{}", picture.headline(output::state, false));
        self.wrapped(&line, text);
    }

    /// Writes a line, broken where it is too long.
    fn wrapped(&self, line: &str, text: &mut String) {
        for line in output::wrapped(line, self.look.width) {
            let _ = writeln!(text, "{line}");
        }
    }

    /// The causes under a heading, each with its number if it has one.
    fn causes(&self, heading: &str, causes: &[&str], beside: &Causes<'_>, text: &mut String) {
        let mut heading = format!("{heading}:");
        let room = self.look.width.saturating_sub(LABEL).max(NOTE);
        let numbered = |cause: &&str| match beside.number(cause) {
            Some(number) => format!("{number} {cause}"),
            None => (*cause).to_owned(),
        };
        // A number is always explained.
        let (shown, hidden): (Vec<_>, Vec<_>) = (causes.iter().enumerate())
            .partition(|(n, cause)| *n < CAUSES || beside.number(cause).is_some());
        let shown = shown.iter();
        for line in shown.flat_map(|(_, cause)| output::wrapped(&numbered(cause), room)) {
            let _ = writeln!(text, "{heading:<LABEL$}{line}");
            heading.clear();
        }
        if !hidden.is_empty() {
            let _ = writeln!(text, "{:LABEL$}and {} more", "", hidden.len());
        }
    }

    /// The hours, each third one by its number.
    fn axis(&self) -> String {
        let step = usize::from(self.parts) / 8;
        let thirds = (0..=8).map(|third| format!("{:<step$}", third * 3));
        thirds.collect::<String>().trim_end().to_owned()
    }

    /// Where in the day the marked instant is.
    fn mark(&self, picture: &Picture, day: Date, text: &mut String) {
        let part = |part| part_of(day, part, self.parts, &picture.zone);
        let mut parts = (0..self.parts).map(part);
        let Some(column) = parts.position(|span| span.contains(picture.now)) else {
            return;
        };
        let (now, at) = (self.glyphs.now, clock_text(picture.now, day, &picture.zone));
        let at = at.get(..5).unwrap_or(&at);
        let (bold, blanks) = (Style::new().bold(), " ".repeat(LABEL + column));
        let _ = writeln!(text, "{blanks}{bold}{now} {at}{bold:#}");
    }

    fn day(
        &self,
        picture: &Picture,
        day: Date,
        beside: &Causes<'_>,
        text: &mut String,
        used: &mut Vec<Cell>,
    ) {
        let mut row = format!("{:<LABEL$}", day.strftime("%a %d %b").to_string());
        let cells = picture.cells(day, self.parts);
        for run in cells.chunk_by(|one, other| one == other) {
            if !used.contains(&run[0]) {
                used.push(run[0]);
            }
            let (glyph, style) = self.glyphs.of(run[0]);
            let drawn: String = std::iter::repeat_n(glyph, run.len()).collect();
            row.push_str(&format!("{style}{drawn}{style:#}"));
        }
        let note = self.note(picture, day, &beside.beside(day));
        row.push_str(&format!("{:GAP$}{note}", ""));
        text.push_str(row.trim_end());
        text.push('\n');
        let room = self.look.width.saturating_sub(LABEL).max(NOTE);
        for change in clocks::changes(day, &picture.zone) {
            let marked = note.contains(clocks::SECOND_TIME);
            for line in output::wrapped(&change.text(marked), room) {
                let _ = writeln!(text, "{:LABEL$}{line}", "");
            }
        }
    }

    /// The columns beside the cells.
    fn room(&self) -> usize {
        let taken = LABEL + usize::from(self.parts) + GAP;
        self.look.width.saturating_sub(taken)
    }

    /// When it is open that day, and what closes it.
    fn note(&self, picture: &Picture, day: Date, causes: &str) -> String {
        let room = self.room();
        if causes.is_empty() {
            return picture.hours(day, room);
        }
        let taken = causes.chars().count() + 1;
        let hours = picture.hours(day, room.saturating_sub(taken));
        let width = NOTE.min(room.saturating_sub(taken));
        format!("{hours:<width$} {causes}")
    }

    fn legend(&self, used: &[Cell], text: &mut String) {
        let kinds = Kind::ALL.map(|kind| (Cell::All(kind), kind.meaning()));
        let others = [
            (Cell::Partly, "changes within"),
            (Cell::Skipped, "skipped by the clocks"),
        ];
        let drawn = (kinds.iter().chain(&others)).filter(|(cell, _)| used.contains(cell));
        let entries = drawn.map(|(cell, meaning)| {
            let (glyph, style) = self.glyphs.of(*cell);
            format!("{style}{glyph}{style:#} {meaning}")
        });
        let line = entries.collect::<Vec<_>>().join("   ");
        self.wrapped(&line, text);
    }
}
