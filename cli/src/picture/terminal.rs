//! The picture for a terminal.

use std::fmt::Write;

use anstyle::Style;
use jiff::civil::Date;

use super::glyphs::{ASCII, Glyphs, UNICODE};
use super::{Cell, Kind, Picture, clock_text, whole};
use crate::output;

/// What the terminal can show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// How many columns it has.
    pub(crate) width: usize,
    /// Whether it shows more than ASCII.
    pub(crate) unicode: bool,
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
        for day in picture.days() {
            if whole(day, &picture.zone).contains(picture.now) {
                self.mark(picture, day, text);
            }
            self.day(picture, day, text, used);
        }
        for (heading, causes) in picture.causes() {
            self.causes(heading, &causes, text);
        }
        if let Some(known) = picture.stretches.cut_off {
            let _ = writeln!(
                text,
                "It changes too often to be shown beyond {}.",
                picture.zone.text(known)
            );
        }
    }

    fn headline(&self, picture: &Picture, text: &mut String) {
        let (state, change) = picture.first_change();
        let bold = Style::new().bold();
        let mut line = format!("{bold}{}{bold:#}", picture.name);
        if let Some(state) = state {
            line.push_str(&format!(" is {}", output::state(state)));
        }
        if picture.span.start != picture.now {
            line.push_str(&format!(" from {}", picture.zone.text(picture.span.start)));
        }
        match change {
            Some(change) => line.push_str(&format!(" until {}", picture.zone.text(change))),
            None => line.push_str(&format!(" throughout ({})", picture.zone.name)),
        }
        text.push_str(&output::wrapped(&line, self.look.width).join("\n"));
        text.push('\n');
    }

    fn causes(&self, heading: &str, causes: &[&str], text: &mut String) {
        let mut heading = format!("{heading}:");
        let room = self.look.width.saturating_sub(LABEL).max(NOTE);
        for line in causes
            .iter()
            .take(CAUSES)
            .flat_map(|cause| output::wrapped(cause, room))
        {
            let _ = writeln!(text, "{heading:<LABEL$}{line}");
            heading.clear();
        }
        if causes.len() > CAUSES {
            let _ = writeln!(text, "{:LABEL$}and {} more", "", causes.len() - CAUSES);
        }
    }

    /// The hours, each third one by its number.
    fn axis(&self) -> String {
        let step = usize::from(self.parts) / 8;
        (0..=8)
            .map(|third| format!("{:<step$}", third * 3))
            .collect::<String>()
            .trim_end()
            .to_owned()
    }

    /// Where in the day the marked instant is.
    fn mark(&self, picture: &Picture, day: Date, text: &mut String) {
        let spans =
            (0..self.parts).map(|part| super::part_of(day, part, self.parts, &picture.zone));
        let Some(column) = spans
            .into_iter()
            .position(|span| span.contains(picture.now))
        else {
            return;
        };
        let (now, at) = (self.glyphs.now, clock_text(picture.now, day, &picture.zone));
        let at = at.get(..5).unwrap_or(&at);
        let bold = Style::new().bold();
        let _ = writeln!(
            text,
            "{:width$}{bold}{now} {at}{bold:#}",
            "",
            width = LABEL + column
        );
    }

    fn day(&self, picture: &Picture, day: Date, text: &mut String, used: &mut Vec<Cell>) {
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
        let room = self
            .look
            .width
            .saturating_sub(LABEL + usize::from(self.parts) + GAP);
        let note = self.note(picture, day, room);
        row.push_str(&format!("{:GAP$}{note}", ""));
        text.push_str(row.trim_end());
        text.push('\n');
    }

    /// When it is open that day and, where there is room, what closes it.
    fn note(&self, picture: &Picture, day: Date, room: usize) -> String {
        let hours = picture.hours(day, room);
        let rest = room.saturating_sub(hours.len().max(NOTE) + GAP);
        let closing = closing(picture, day);
        if rest < NOTE || closing.is_empty() {
            return hours;
        }
        format!(
            "{hours:<NOTE$}{:GAP$}{}",
            "",
            self.cut(&closing.join("; "), rest)
        )
    }

    fn cut(&self, text: &str, room: usize) -> String {
        if text.chars().count() <= room {
            return text.to_owned();
        }
        let keep = room.saturating_sub(self.glyphs.cut.chars().count());
        text.chars().take(keep).collect::<String>() + self.glyphs.cut
    }

    fn legend(&self, used: &[Cell], text: &mut String) {
        let meanings = [
            (Cell::All(Kind::Open), "open"),
            (Cell::All(Kind::Closed), "closed"),
            (Cell::Partly, "partly open"),
            (Cell::All(Kind::ForcedOpen), "forced open"),
            (Cell::All(Kind::ForcedClosed), "forced closed"),
            (Cell::All(Kind::Unknown), "closed, as far as is known here"),
        ];
        let entries =
            meanings
                .iter()
                .filter(|(cell, _)| used.contains(cell))
                .map(|(cell, meaning)| {
                    let (glyph, style) = self.glyphs.of(*cell);
                    format!("{style}{glyph}{style:#} {meaning}")
                });
        let _ = writeln!(text, "{}", entries.collect::<Vec<_>>().join("   "));
    }
}

/// What closes or forces the gate that day, besides that no window is open: each cause once,
/// without the name of its gatekeeper.
fn closing(picture: &Picture, day: Date) -> Vec<&str> {
    const WITHOUT_A_WINDOW: [&str; 2] = ["outside every open window", "too late to start in"];
    let mut closing: Vec<&str> = Vec::new();
    let stretches = picture
        .within(whole(day, &picture.zone))
        .map(|(_, stretch)| stretch);
    for stretch in stretches.filter(|stretch| Kind::of(stretch) != Kind::Open) {
        for cause in &stretch.causes {
            let short = cause
                .split_once("closed by window ")
                .or_else(|| cause.split_once(": "));
            let short = short.map_or(cause.as_str(), |(_, short)| short);
            let counts = !WITHOUT_A_WINDOW
                .iter()
                .any(|words| short.starts_with(words));
            if counts && !closing.contains(&short) {
                closing.push(short);
            }
        }
    }
    closing
}
