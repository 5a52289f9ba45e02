//! From bytes to lines: unfolded (RFC 5545, section 3.1), and only then read as UTF-8, because a fold
//! may stand inside of a character.

use std::borrow::Cow;

use super::CalendarError;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The lines of a text, unfolded, without blank ones, each with its number in the text, from 1.
pub(super) struct Lines<'a> {
    rest: &'a [u8],
    number: usize,
}

impl<'a> Lines<'a> {
    pub fn of(text: &'a [u8]) -> Self {
        let mut rest = text;
        while let Some(behind) = rest.strip_prefix(BYTE_ORDER_MARK) {
            rest = behind;
        }
        Self { rest, number: 1 }
    }

    /// The next line with those that continue it, still folded.
    fn folded(&mut self) -> (usize, &'a [u8]) {
        let number = self.number;
        let mut end = 0;
        loop {
            let line = self.rest[end..].iter().position(|byte| *byte == b'\n');
            end = line.map_or(self.rest.len(), |at| end + at + 1);
            self.number += 1;
            if !self.rest[end..].starts_with(b" ") && !self.rest[end..].starts_with(b"\t") {
                break;
            }
        }
        let (mut folded, rest) = self.rest.split_at(end);
        self.rest = rest;
        while let [before @ .., b'\r' | b'\n'] = folded {
            folded = before;
        }
        (number, folded)
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Result<(usize, Cow<'a, str>), CalendarError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let (number, folded) = self.folded();
            match unfolded(number, folded) {
                Ok(line) if line.trim().is_empty() => {}
                Ok(line) => return Some(Ok((number, line))),
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }
}

/// The text of a folded line, without its line breaks and the one blank after each.
fn pieces(folded: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = folded.split(|byte| *byte == b'\n');
    lines.enumerate().map(|(place, line)| {
        let line = line.get(usize::from(place > 0)..).unwrap_or_default();
        line.strip_suffix(b"\r").unwrap_or(line)
    })
}

fn unfolded(number: usize, folded: &[u8]) -> Result<Cow<'_, str>, CalendarError> {
    let whole: Cow<[u8]> = match folded.contains(&b'\n') {
        true => pieces(folded).flatten().copied().collect(),
        false => folded.into(),
    };
    let text = match whole {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).map(Cow::from),
        Cow::Owned(bytes) => String::from_utf8(bytes)
            .map(Cow::from)
            .map_err(|error| error.utf8_error()),
    };
    text.map_err(|error| {
        let ends = pieces(folded).scan(0, |end, piece| {
            *end += piece.len();
            Some(*end)
        });
        let before = ends.take_while(|end| *end <= error.valid_up_to()).count();
        wrong(number + before, "it is not UTF-8", "save the file as UTF-8")
    })
}

pub(super) fn wrong(
    line: usize,
    problem: impl Into<String>,
    remedy: impl Into<String>,
) -> CalendarError {
    CalendarError::Line {
        line,
        problem: problem.into(),
        remedy: remedy.into(),
    }
}
