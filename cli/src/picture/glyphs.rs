//! What cells are drawn as in a terminal.

use anstyle::{AnsiColor, Style};

use super::days::{Cell, Kind};

/// What cells are drawn as.
pub(super) struct Glyphs {
    open: char,
    closed: char,
    partly: char,
    forced_open: char,
    forced_closed: char,
    conditional: char,
    unknown: char,
    skipped: char,
    /// Where the marked instant is.
    pub(super) now: char,
}

pub(super) const UNICODE: Glyphs = Glyphs {
    open: '█',
    closed: '░',
    partly: '▌',
    forced_open: '▲',
    forced_closed: '▼',
    conditional: '▒',
    unknown: '?',
    skipped: '·',
    now: '↓',
};

pub(super) const ASCII: Glyphs = Glyphs {
    open: '#',
    closed: '.',
    partly: '+',
    forced_open: 'O',
    forced_closed: 'X',
    conditional: '~',
    unknown: '?',
    skipped: '-',
    now: 'v',
};

impl Glyphs {
    /// A cell's letter and color.
    pub(super) fn of(&self, cell: Cell) -> (char, Style) {
        match cell {
            Cell::All(Kind::Open) => (self.open, AnsiColor::Green.on_default()),
            Cell::All(Kind::Closed) => (self.closed, AnsiColor::Red.on_default()),
            Cell::All(Kind::ForcedOpen) => {
                (self.forced_open, AnsiColor::BrightGreen.on_default().bold())
            }
            Cell::All(Kind::ForcedClosed) => {
                (self.forced_closed, AnsiColor::BrightRed.on_default().bold())
            }
            Cell::All(Kind::Unknown) => (self.unknown, AnsiColor::Magenta.on_default()),
            Cell::All(Kind::Conditional) => (self.conditional, AnsiColor::Blue.on_default()),
            Cell::Skipped => (self.skipped, AnsiColor::BrightBlack.on_default()),
            Cell::Partly => (self.partly, AnsiColor::Yellow.on_default()),
            Cell::Nothing => (' ', Style::new()),
        }
    }
}
