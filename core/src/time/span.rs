//! Stretches of time, half open: `[start, end)`.

use jiff::{SignedDuration, Timestamp};

/// The shortest time that there is.
pub(crate) const MOMENT: SignedDuration = SignedDuration::from_nanos(1);

/// From `start`, itself inside, to `end`, itself outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The first instant inside.
    pub start: Timestamp,
    /// The first instant outside again.
    pub end: Timestamp,
}

impl Span {
    /// Whether `instant` lies inside.
    pub fn contains(&self, instant: Timestamp) -> bool {
        self.start <= instant && instant < self.end
    }

    /// Whether any instant lies inside.
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// The same without its last part.
    #[must_use]
    pub fn shortened(&self, by: SignedDuration) -> Span {
        Span {
            start: self.start,
            end: self.end.saturating_sub(by).unwrap_or(self.start),
        }
    }

    /// The part of this span inside `other`, if any.
    pub fn within(&self, other: &Span) -> Option<Span> {
        let both = Span {
            start: self.start.max(other.start),
            end: self.end.min(other.end),
        };
        (!both.is_empty()).then_some(both)
    }
}

/// The instant so much later, or the last one that there is.
pub fn later(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// The instant so much earlier, or the first one that there is.
pub(crate) fn earlier(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.saturating_sub(by).unwrap_or(Timestamp::MIN)
}

/// The union of spans, as the fewest spans in ascending order. Empty ones count for nothing.
pub fn union(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans.into_iter().filter(|span| !span.is_empty()) {
        match merged.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: i64, end: i64) -> Span {
        let at = |second| Timestamp::from_second(second).unwrap();
        Span {
            start: at(start),
            end: at(end),
        }
    }

    #[test]
    fn touching_and_overlapping_spans_become_one_and_empty_ones_none() {
        let spans = vec![span(5, 7), span(1, 3), span(3, 4), span(6, 9), span(11, 11)];
        assert_eq!(union(spans), vec![span(1, 4), span(5, 9)]);
    }
}
