//! The hours of a day in words, beside what is drawn of it.

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use sluice_core::time::span::{Span, union};
use sluice_crds::State;

use super::clocks::clock_text;
use super::days::{Kind, Picture, whole};
use crate::instant::Zone;

/// How many times of a day are written out.
const WRITTEN_OUT: usize = 3;
/// What is said of hours in which the revision decides.
const BY_REVISION: &str = " maybe";

impl Picture {
    /// The parts of `day` in which it is so, apart from each other.
    pub(super) fn spans_on(&self, day: Date, is_so: impl Fn(Kind) -> bool) -> Vec<Span> {
        let so = self.within(whole(day, &self.zone));
        let so = so.filter(|(_, stretch)| is_so(Kind::of(stretch)));
        union(so.map(|(span, _)| span).collect())
    }

    /// When it is open on `day`; where it never is, when it may be. At most `room` columns, unless
    /// the shortest form takes more.
    pub(super) fn hours(&self, day: Date, room: usize) -> String {
        let whole = whole(day, &self.zone);
        if whole.is_empty() {
            return "no such day".to_owned();
        }
        let open = self.spans_on(day, |kind| kind.state() == State::Open);
        let maybe = self.spans_on(day, |kind| kind == Kind::Conditional);
        if open == [whole] {
            "open all day".to_owned()
        } else if maybe == [whole] {
            "by revision".to_owned()
        } else if !open.is_empty() {
            self.spans_text(&open, day, room, "")
        } else if !maybe.is_empty() {
            self.spans_text(&maybe, day, room, BY_REVISION)
        } else if !self.spans_on(day, |kind| kind == Kind::Unknown).is_empty()
            || self.is_cut_off_before(whole.end)
        {
            "not known".to_owned()
        } else {
            "closed".to_owned()
        }
    }

    /// The first of these that there is room for: the times, the times in full hours, how long they
    /// are in all.
    fn spans_text(&self, spans: &[Span], day: Date, room: usize, after: &str) -> String {
        let fits = |text: &String| text.len() + after.len() <= room;
        let times = || {
            let shown = spans.iter().map(|span| self.span_text(span, day));
            shown.collect::<Vec<_>>()
        };
        let exact = Some(times().join(" "));
        let short = || {
            let short = times().into_iter().map(|times| in_hours(&times));
            Some(short.collect::<Option<Vec<_>>>()?.join(" "))
        };
        let few = spans.len() <= WRITTEN_OUT;
        let text = exact.filter(|_| few).filter(fits);
        let text = text.or_else(|| short().filter(|_| few).filter(fits));
        text.unwrap_or_else(|| total(spans)) + after
    }

    fn span_text(&self, span: &Span, day: Date) -> String {
        let clock = |at| clock_text(self.whole_minute(at), day, &self.zone);
        format!("{}-{}", clock(span.start), clock(span.end))
    }

    /// The seconds at which somebody looks are no news.
    fn whole_minute(&self, at: Timestamp) -> Timestamp {
        let second = at.as_second();
        match at == self.span.start {
            true => Timestamp::from_second(second - second.rem_euclid(60)).unwrap_or(at),
            false => at,
        }
    }
}

/// `09:00-17:00` as `09-17`. None: there are minutes.
fn in_hours(times: &str) -> Option<String> {
    let (from, to) = times.split_once('-')?;
    Some(format!(
        "{}-{}",
        from.strip_suffix(":00")?,
        to.strip_suffix(":00")?
    ))
}

/// How long they are in all: `8h30m in all`.
fn total(spans: &[Span]) -> String {
    let lengths = spans.iter().map(|span| span.end.duration_since(span.start));
    let minutes = lengths
        .fold(SignedDuration::ZERO, SignedDuration::saturating_add)
        .as_mins();
    let text = match (minutes / 60, minutes % 60) {
        (0, 0) => "under 1m".to_owned(),
        (0, minutes) => format!("{minutes}m"),
        (hours, 0) => format!("{hours}h"),
        (hours, minutes) => format!("{hours}h{minutes:02}m"),
    };
    format!("{text} in all")
}

/// Whose days are drawn, and from when until when, in words.
pub(super) fn days_text(first: Date, last: Date, zone: &Zone) -> String {
    let day = |day: Date| day.strftime("%a %d %b %Y").to_string();
    match first == last {
        true => format!("{} ({})", day(first), zone.name),
        false => format!("{} to {} ({})", day(first), day(last), zone.name),
    }
}
