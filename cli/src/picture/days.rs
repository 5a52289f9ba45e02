//! What there is to draw of a gate's coming days.

use jiff::civil::{Date, Time};
use jiff::{SignedDuration, Timestamp, ToSpan};
use sluice_core::offline::simulate::{Stretch, Stretches};
use sluice_core::time::span::Span;
use sluice_core::time::zone;
use sluice_crds::State;

use crate::instant::Zone;

/// One gate's coming days.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    /// What the gate is called.
    pub(crate) name: String,
    /// Whose days they are.
    pub(crate) zone: Zone,
    /// The instant to mark.
    pub(crate) now: Timestamp,
    /// From when until when.
    pub(crate) span: Span,
    /// How the gate stands.
    pub(crate) stretches: Stretches,
}

/// The state of a gate in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Open,
    Closed,
    ForcedOpen,
    ForcedClosed,
    /// The revision decides.
    Conditional,
    /// It counts as closed only because nobody here can tell.
    Unknown,
}

/// What is drawn for a part of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cell {
    /// One and the same throughout.
    All(Kind),
    /// Now this, now that.
    Partly,
    /// Not part of the day: the clocks skip it.
    Skipped,
    /// Not part of the picture.
    Nothing,
}

impl Kind {
    pub(super) fn of(stretch: &Stretch) -> Self {
        match (stretch.is_forced(), stretch.unknown, stretch.answer.state) {
            (true, _, State::Open) => Kind::ForcedOpen,
            (true, _, State::Closed | State::Conditional) => Kind::ForcedClosed,
            (false, true, _) => Kind::Unknown,
            (false, false, State::Conditional) => Kind::Conditional,
            (false, false, State::Open) => Kind::Open,
            (false, false, State::Closed) => Kind::Closed,
        }
    }

    pub(super) fn state(self) -> State {
        match self {
            Kind::Open | Kind::ForcedOpen => State::Open,
            Kind::Closed | Kind::ForcedClosed | Kind::Unknown => State::Closed,
            Kind::Conditional => State::Conditional,
        }
    }

    /// What the legend says of it.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Kind::Open => "open",
            Kind::Closed => "closed",
            Kind::ForcedOpen => "forced open",
            Kind::ForcedClosed => "forced closed",
            Kind::Conditional => "depends on the revision",
            Kind::Unknown => "closed, as far as is known here",
        }
    }

    /// In the order of the legend.
    pub(super) const ALL: [Self; 6] = [
        Kind::Open,
        Kind::Closed,
        Kind::ForcedOpen,
        Kind::ForcedClosed,
        Kind::Conditional,
        Kind::Unknown,
    ];
}

impl Picture {
    /// The end of the `days`-th day from `from` on, in `zone`.
    pub(crate) fn end(from: Timestamp, days: u16, zone: &Zone) -> Timestamp {
        let first = from.to_zoned(zone.zone.clone()).date();
        let last = first
            .checked_add(i32::from(days).days())
            .unwrap_or(Date::MAX);
        start_of(last, zone)
    }

    /// The days that it shows.
    pub(super) fn days(&self) -> Vec<Date> {
        let date = |at: Timestamp| at.to_zoned(self.zone.zone.clone()).date();
        let Span { start, end } = self.span;
        let last = end.saturating_sub(SignedDuration::from_nanos(1));
        let last = date(last.unwrap_or(end));
        let days = date(start).series(1.day());
        days.take_while(|day| *day <= last).collect()
    }

    /// A day in so many equal parts of the wall clock.
    pub(super) fn cells(&self, day: Date, parts: u16) -> Vec<Cell> {
        (0..parts)
            .map(|part| self.cell(part_of(day, part, parts, &self.zone)))
            .collect()
    }

    fn cell(&self, span: Span) -> Cell {
        if span.is_empty() {
            return Cell::Skipped;
        }
        let mut kinds = self.within(span).map(|(_, stretch)| Kind::of(stretch));
        match kinds.next() {
            None => Cell::Nothing,
            Some(first) if kinds.all(|kind| kind == first) => Cell::All(first),
            Some(_) => Cell::Partly,
        }
    }

    /// Until when it is known, in a sentence, where that is before its end.
    pub(super) fn cut_off(&self) -> Option<String> {
        let known = self.zone.text(self.stretches.cut_off?);
        Some(format!("It changes too often to be shown beyond {known}."))
    }

    /// Whether nobody has looked at all that is before `end`.
    pub(super) fn is_cut_off_before(&self, end: Timestamp) -> bool {
        self.stretches.cut_off.is_some_and(|known| known < end)
    }

    /// The stretches that `span` meets, each with the part inside.
    pub(super) fn within(&self, span: Span) -> impl Iterator<Item = (Span, &Stretch)> {
        let list = &self.stretches.list;
        let first = list.partition_point(|stretch| stretch.span.end <= span.start);
        let met = list[first..]
            .iter()
            .take_while(move |stretch| stretch.span.start < span.end);
        met.filter_map(move |stretch| Some((stretch.span.within(&span)?, stretch)))
    }

    /// How it stands at the start and until when, in words that `style` has a word for a state in.
    /// From when is said unless that is now, or `from` wants it.
    pub(super) fn headline(&self, style: impl Fn(State) -> String, from: bool) -> String {
        let (state, change) = self.first_change();
        let mut line = String::new();
        if let Some(state) = state {
            line.push_str(&format!(" is {}", style(state)));
        }
        if from || self.span.start != self.now {
            line.push_str(&format!(" from {}", self.zone.text(self.span.start)));
        }
        match change {
            Some(change) => line.push_str(&format!(" until {}", self.zone.text(change))),
            None => line.push_str(&format!(" throughout ({})", self.zone.name)),
        }
        line
    }

    /// The state at the start, and when it changes.
    fn first_change(&self) -> (Option<State>, Option<Timestamp>) {
        let mut changes = self.stretches.changes();
        let first = changes.next().map(|stretch| stretch.answer.state);
        (first, changes.next().map(|stretch| stretch.span.start))
    }

    /// What it comes of that the gate is not simply open, each cause once, under a heading.
    pub(super) fn causes(&self) -> Vec<(&'static str, Vec<&str>)> {
        let headings = [
            ("closed", [Kind::Closed, Kind::Closed]),
            ("forced", [Kind::ForcedOpen, Kind::ForcedClosed]),
            ("depends", [Kind::Conditional, Kind::Conditional]),
            ("not known", [Kind::Unknown, Kind::Unknown]),
        ];
        let list = |kinds: [Kind; 2]| {
            let mut causes: Vec<&str> = Vec::new();
            let meant = self.stretches.list.iter();
            let meant = meant.filter(|it| kinds.contains(&Kind::of(it)));
            for cause in meant.flat_map(|stretch| &stretch.causes) {
                if !causes.contains(&cause.as_str()) {
                    causes.push(cause);
                }
            }
            causes
        };
        let headings = headings.into_iter();
        let listed = headings.map(|(heading, kinds)| (heading, list(kinds)));
        listed.filter(|(_, causes)| !causes.is_empty()).collect()
    }
}

/// A part of a day by its wall clock. Where the clocks skip it, it is empty; what they show twice
/// is in the first of the parts that they show.
pub(super) fn part_of(day: Date, part: u16, parts: u16, zone: &Zone) -> Span {
    let boundary = |part: u16| {
        let minute = i64::from(part) * 1440 / i64::from(parts);
        match minute {
            1440.. => day.tomorrow().ok().map(|tomorrow| start_of(tomorrow, zone)),
            _ => {
                let time = Time::midnight().wrapping_add(minute.minutes());
                zone::resolve(&zone.zone, day.to_datetime(time))
            }
        }
    };
    let at = |part| boundary(part).unwrap_or(Timestamp::MAX);
    Span {
        start: at(part),
        end: at(part + 1),
    }
}

pub(super) fn whole(day: Date, zone: &Zone) -> Span {
    part_of(day, 0, 1, zone)
}

fn start_of(day: Date, zone: &Zone) -> Timestamp {
    zone::resolve(&zone.zone, day.to_datetime(Time::midnight())).unwrap_or(Timestamp::MAX)
}
