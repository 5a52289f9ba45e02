//! Values of YAML files that are marked to be promoted.
//!
//! A comment behind a value says which environment's revision the value is, and perhaps which part:
//!
//! ```yaml
//! version: "6.1.0"   # {"$promotion": "flux-system:podinfo:prod"}
//! commit: 4f2a9c1e…  # {"$promotion": "flux-system:podinfo:prod:commit"}
//! ```
//!
//! What comes in: the bytes of a file, a promotion, and a revision. What goes out: the file with the
//! revision in each value that is marked for the promotion, in the value's own quoting, and every other
//! byte as it was; or that nothing is left to change; or a [`Mistake`], with which nothing is changed.
//!
//! What was written is read again: the two texts have to differ in those values alone.

use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span, Tag};

use super::Promotion;
use crate::revision::{Revision, short};
use crate::text::words::clean;

mod comment;
mod mistake;
mod scalar;

use comment::Part;
pub use mistake::{Mistake, Problem};

/// The most characters of what others wrote that a message shows.
const LONGEST: usize = 64;

/// The most bytes of a file, and the most events of its YAML: what is read takes many times as much.
const LONGEST_FILE: usize = 256 << 10;
const MOST_EVENTS: usize = 20_000;

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edited {
    /// Each marked value is the revision already.
    AlreadyThere,
    /// The file as it has to be.
    Changed(String),
}

/// The file with `revision` in each value that is marked for `promotion`.
///
/// Markers of other promotions and other comments are left alone. A plain value gets double quotes where
/// YAML would read the new text as a number, a date or anything else that is no text.
///
/// # Errors
/// Nothing is marked for `promotion`, or the first marker or value with which that cannot be done.
pub fn edited(
    file: &[u8],
    promotion: &Promotion<'_>,
    revision: &Revision,
) -> Result<Edited, Mistake> {
    if file.len() > LONGEST_FILE {
        return Err(Mistake::TooLong(LONGEST_FILE));
    }
    let text = str::from_utf8(file).map_err(|error| {
        let before = file.iter().take(error.valid_up_to());
        Problem::NotUtf8.at(1 + before.filter(|byte| **byte == b'\n').count())
    })?;
    let before = parsed(text)?;
    let values = values(&before);
    let edits = edits(&before, &values, promotion, revision)?;
    let Some(first) = edits.first() else {
        return Ok(Edited::AlreadyThere);
    };
    let new = with(text, &edits).filter(|new| is_read_as(&before, &edits, new));
    new.map(Edited::Changed)
        .ok_or_else(|| Problem::NotReadBack.at(first.place.line))
}

/// What a text of YAML consists of, comments included.
type Events<'t> = Vec<(Event<'t>, Span)>;

fn parsed(text: &str) -> Result<Events<'_>, Mistake> {
    // As many comments as there are: a file of values is mostly that.
    let options = granit_parser::options! { max_buffered_comment_events: usize::MAX };
    let events = Parser::new_from_str_with_options(text, options);
    let events: Events<'_> = events
        .take(MOST_EVENTS + 1)
        .collect::<Result<_, _>>()
        .map_err(|error| Problem::NotYaml(error.info().to_owned()).at(error.marker().line()))?;
    match events.len() > MOST_EVENTS {
        true => Err(Mistake::TooMuch(MOST_EVENTS)),
        false => Ok(events),
    }
}

/// A scalar or an alias that is the value of something.
struct Value<'e, 't> {
    event: &'e Event<'t>,
    /// Which of the events it is.
    index: usize,
    /// Its bytes.
    range: Range<usize>,
    /// The line on which it ends, from 1.
    line: usize,
}

/// What the next node is to the collection around it.
enum Next {
    Item,
    Key,
    Value,
}

impl Next {
    /// Goes on to what comes after the next node. Whether that node is a key.
    fn pass(&mut self) -> bool {
        let is_key = matches!(self, Self::Key);
        *self = match self {
            Self::Item => Self::Item,
            Self::Key => Self::Value,
            Self::Value => Self::Key,
        };
        is_key
    }
}

/// The values that a comment on their last line can mark, in the order of the text: no keys, nothing
/// that is empty, no blocks.
fn values<'e, 't>(events: &'e Events<'t>) -> Vec<Value<'e, 't>> {
    let mut values = Vec::new();
    let mut around = Vec::new();
    for (index, (event, span)) in events.iter().enumerate() {
        if matches!(event, Event::SequenceEnd | Event::MappingEnd) {
            around.pop();
        }
        if !event.is_node() {
            continue;
        }
        let is_key = around.last_mut().is_some_and(Next::pass);
        let can_be_marked = match event {
            Event::SequenceStart(..) => {
                around.push(Next::Item);
                false
            }
            Event::MappingStart(..) => {
                around.push(Next::Key);
                false
            }
            Event::Scalar(_, style, ..) => {
                !matches!(style, ScalarStyle::Literal | ScalarStyle::Folded)
            }
            _ => true,
        };
        let range = span.byte_range().filter(|range| !range.is_empty());
        if let Some(range) = range.filter(|_| can_be_marked && !is_key) {
            let line = span.end.line();
            values.push(Value {
                event,
                index,
                range,
                line,
            });
        }
    }
    values
}

/// A value that has to become another.
struct Edit<'v, 'e, 't> {
    place: &'v Value<'e, 't>,
    /// What it says then.
    new: String,
    /// How that is written.
    style: ScalarStyle,
    written: String,
}

/// What has to change, in the order of the text.
fn edits<'v, 'e, 't>(
    events: &Events<'_>,
    values: &'v [Value<'e, 't>],
    promotion: &Promotion<'_>,
    revision: &Revision,
) -> Result<Vec<Edit<'v, 'e, 't>>, Mistake> {
    let mut is_marked = false;
    let mut edits = Vec::new();
    for (event, span) in events {
        let (Event::Comment(comment, _), Some(place)) = (event, span.byte_range()) else {
            continue;
        };
        let at = |problem: Problem| problem.at(span.start.line());
        let Some(part) = comment::part(comment, promotion).map_err(at)? else {
            continue;
        };
        is_marked = true;
        let value = marked(values, span.start.line(), place.start).map_err(at)?;
        edits.extend(edit(value, part, revision).map_err(at)?);
    }
    match is_marked {
        true => Ok(edits),
        false => Err(Mistake::NoMarker(promotion.to_string())),
    }
}

/// The one value that ends on the line, before the byte at which the comment starts.
fn marked<'v, 'e, 't>(
    values: &'v [Value<'e, 't>],
    line: usize,
    comment: usize,
) -> Result<&'v Value<'e, 't>, Problem> {
    let (before, _) = values.split_at(values.partition_point(|value| value.range.end <= comment));
    let mut on_line = before.iter().rev().take_while(|value| value.line == line);
    match (on_line.next(), on_line.next()) {
        (None, _) => Err(Problem::NoValue),
        (Some(value), None) => Ok(value),
        (Some(_), Some(_)) => Err(Problem::SeveralValues),
    }
}

/// What has to be done to a marked value. None: it is right.
fn edit<'v, 'e, 't>(
    place: &'v Value<'e, 't>,
    part: Part,
    revision: &Revision,
) -> Result<Option<Edit<'v, 'e, 't>>, Problem> {
    let Event::Scalar(old, old_style, _, tag) = place.event else {
        return Err(Problem::Alias);
    };
    let is_text = |tag: &Tag| tag.core_suffix() == Some("str");
    if !tag.as_deref().is_none_or(is_text) {
        return Err(Problem::Tag);
    }
    let new = part.of(revision).ok_or_else(|| Problem::Missing {
        part: part.word(),
        revision: clean(&short(revision.as_str()), LONGEST),
    })?;
    let (style, written) = scalar::written(&new, *old_style);
    let is_right = *old == new && *old_style == style;
    Ok((!is_right).then_some(Edit {
        place,
        new,
        style,
        written,
    }))
}

/// The text with the edits. None: they do not lie one after another within it.
fn with(text: &str, edits: &[Edit<'_, '_, '_>]) -> Option<String> {
    let mut new = String::with_capacity(text.len());
    let mut done = 0;
    for edit in edits {
        let Range { start, end } = edit.place.range;
        new.push_str(text.get(done..start)?);
        new.push_str(&edit.written);
        done = end;
    }
    new.push_str(text.get(done..)?);
    Some(new)
}

/// Whether the text is read as the one that has the events `before`, but for the values of `edits`.
fn is_read_as(before: &Events<'_>, edits: &[Edit<'_, '_, '_>], text: &str) -> bool {
    let events = before.iter().map(|(event, _)| event.clone());
    let mut expected: Vec<_> = events.collect();
    for edit in edits {
        if let Some(Event::Scalar(text, style, ..)) = expected.get_mut(edit.place.index) {
            *text = edit.new.as_str().into();
            *style = edit.style;
        }
    }
    parsed(text).is_ok_and(|after| expected.iter().eq(after.iter().map(|(event, _)| event)))
}

#[cfg(test)]
mod tests;
