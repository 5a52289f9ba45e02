//! `metric`: a value that Prometheus measures, within a range.
//!
//! What comes in: a spec, and the result of the query each time that it was asked ([`Answer`]). What goes
//! out: an [`Observed`] that holds all that matters of the past, and the opinion that follows from it at
//! an instant.

use jiff::{SignedDuration, Timestamp};
use sluice_crds::gatekeeper::{self as api, MetricStatus};
use sluice_crds::{Setting, State};

use crate::evidence::polling::{Asked, Cadence, Had, Polled, Standing, Trouble};
use crate::text::refusal::{Refusal, Refusals};
use crate::time::clock::{Now, Trust};
use crate::time::duration;
use crate::time::span::later;
use crate::time::stamp::time;
use crate::verdict::{Opinion, Reason};

mod kind;
#[cfg(test)]
mod tests;
mod words;

use words::{cause, explain};

/// The longest that a value may have to be within its range.
const LONGEST_FOR: SignedDuration = SignedDuration::from_hours(168);
/// The most bytes of a query.
const LONGEST_QUERY: usize = 4096;
/// The most bytes of a value.
const LONGEST_VALUE: usize = 64;

/// The rule that a spec describes.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// How often the query is asked.
    pub cadence: Cadence,
    range: api::Range,
    /// Zero: at once.
    for_: SignedDuration,
    on_no_data: Setting,
}

/// The result of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A value.
    Value(Sample),
    /// No sample, or one that is not a number.
    NoData,
    /// Several samples where one is wanted.
    TooMany(usize),
}

/// A number, as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    value: f64,
    text: String,
}

/// A sample is never `NaN`, so each is equal to itself.
impl Eq for Sample {}

/// What is known of the query from its results so far: the evidence of the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The last answer, and what is wrong since.
    pub polled: Polled<Answer>,
    /// Since when every answer was one that the rule admits.
    pub within_since: Option<Timestamp>,
    /// When the last of those answers was asked for: nothing later is known.
    pub within_until: Option<Timestamp>,
}

/// Reads a spec, whose path in its object is `path` (such as `spec.metric`).
///
/// # Errors
/// Every mistake in it.
pub fn read(spec: &api::Metric, path: &str) -> Result<Rule, Refusals> {
    let mut mistakes = Vec::new();
    let cadence = Asked {
        path,
        field: "address",
        address: &spec.address,
        with_query: false,
        has_secret: spec.secret_ref.is_some(),
        has_authorities: spec.cert_secret_ref.is_some(),
        interval: &spec.interval,
        timeout: &spec.timeout,
    }
    .read(&mut mistakes);
    if spec.query.trim().is_empty() {
        mistakes.push(Refusal::new(
            format!("{path}.query"),
            "the query is empty",
            "write a query in PromQL that returns one value",
        ));
    }
    if spec.query.len() > LONGEST_QUERY {
        mistakes.push(Refusal::new(
            format!("{path}.query"),
            format!("the query is longer than {LONGEST_QUERY} characters"),
            "write a shorter one, or record it with a rule of Prometheus",
        ));
    }
    check_range(spec.range, &format!("{path}.range"), &mut mistakes);
    let for_ = match &spec.r#for {
        None => SignedDuration::ZERO,
        Some(text) => read_for(text, path, &mut mistakes),
    };
    let rule = Rule {
        cadence,
        range: spec.range,
        for_,
        on_no_data: spec.on_no_data,
    };
    Refusals::unless_empty(mistakes, rule)
}

/// Adds what is wrong with a range, whose path in its object is `path`.
pub(crate) fn check_range(range: api::Range, path: &str, mistakes: &mut Vec<Refusal>) {
    let mut refuse = |field: String, problem: &str, remedy: &str| {
        mistakes.push(Refusal::new(field, problem, remedy));
    };
    match (range.min, range.max) {
        (None, None) => refuse(
            path.to_owned(),
            "a range without limits admits everything",
            "write min, max or both",
        ),
        (Some(min), Some(max)) if min > max => refuse(
            format!("{path}.min"),
            "it is above max",
            "write the smaller limit as min",
        ),
        // JSON has no such numbers; who builds a spec otherwise might.
        (Some(limit), _) | (_, Some(limit)) if limit.is_nan() => {
            refuse(path.to_owned(), "a limit is not a number", "write a number");
        }
        _ => {}
    }
}

fn read_for(
    text: &sluice_crds::Duration,
    path: &str,
    mistakes: &mut Vec<Refusal>,
) -> SignedDuration {
    let problem = match duration::parse(text) {
        Ok(length) if length > SignedDuration::ZERO && length <= LONGEST_FOR => return length,
        Ok(_) => format!("`{text}` must be longer than zero and at most 168h"),
        Err(problem) => problem,
    };
    mistakes.push(Refusal::new(
        format!("{path}.for"),
        problem,
        duration::REMEDY,
    ));
    SignedDuration::ZERO
}

impl Answer {
    /// The answer for a number as Prometheus writes it (`0.982`, `1e+09`, `+Inf`, `NaN`). None: it is no
    /// number.
    pub fn of(text: &str) -> Option<Self> {
        if text.len() > LONGEST_VALUE {
            return None;
        }
        let value: f64 = text.parse().ok()?;
        Some(match value.is_nan() {
            true => Answer::NoData,
            false => Answer::Value(Sample {
                value,
                text: text.to_owned(),
            }),
        })
    }
}

impl Sample {
    /// The number. Never `NaN`.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Rule {
    /// Whether an answer counts as one within the range.
    fn admits(&self, answer: &Answer) -> bool {
        match answer {
            Answer::Value(sample) => self.limit_broken(sample.value).is_none(),
            Answer::NoData => self.on_no_data == Setting::Open,
            Answer::TooMany(_) => false,
        }
    }

    /// The limit that a value is beyond.
    fn limit_broken(&self, value: f64) -> Option<Limit> {
        match (self.range.min, self.range.max) {
            (Some(min), _) if value < min => Some(Limit::Min(min)),
            (_, Some(max)) if value > max => Some(Limit::Max(max)),
            _ => None,
        }
    }

    /// When a row that began at `since` is long enough.
    fn enough(&self, since: Timestamp) -> Timestamp {
        later(since, self.for_)
    }
}

/// What a value may be beyond.
enum Limit {
    Min(f64),
    Max(f64),
}

impl Observed {
    /// After an attempt at `at`, made as `rule` has it.
    #[must_use]
    pub fn next(
        before: Option<Self>,
        attempt: Result<Answer, Trouble>,
        rule: &Rule,
        at: Timestamp,
    ) -> Self {
        let (before, since, until) = match before {
            Some(before) => (
                Some(before.polled),
                before.within_since,
                before.within_until,
            ),
            None => (None, None, None),
        };
        // A gap that is too long for the last answer to count breaks the row; so does a clock that
        // was set back behind its beginning.
        let unbroken = before
            .as_ref()
            .is_some_and(|before| matches!(before.at(at), Standing::Good(_)));
        let since = since.filter(|since| unbroken && *since <= at);
        let (within_since, within_until) = match &attempt {
            Ok(answer) if rule.admits(answer) => (Some(since.unwrap_or(at)), Some(at)),
            Ok(_) => (None, None),
            Err(_) => (since, until.filter(|_| since.is_some())),
        };
        Self {
            polled: Polled::next(before, attempt, rule.cadence, at),
            within_since,
            within_until,
        }
    }

    /// What a status that was written about exactly this spec says, as far as it still counts at `now`:
    /// after a restart the row of answers goes on.
    pub fn restored(status: &MetricStatus, rule: &Rule, now: Timestamp) -> Option<Self> {
        let answer = Answer::of(status.value.as_deref()?)?;
        let at = status.observed_at.as_ref()?.0;
        let since = status.within_since.as_ref().map(|since| since.0);
        let since = since.filter(|since| *since <= at);
        let polled = Polled::next(None, Ok(answer), rule.cadence, at);
        let counts = at <= now && matches!(polled.at(now), Standing::Good(_));
        counts.then(|| Self {
            within_since: since,
            within_until: since.map(|_| at),
            polled,
        })
    }

    /// Until when it may be relied on. None: there is no answer.
    pub fn good_until(&self) -> Option<Timestamp> {
        self.polled.good_until()
    }

    /// The last value, while it counts at `at`.
    pub fn value(&self, at: Timestamp) -> Option<f64> {
        self.value_and_instant(at).map(|(value, _)| value)
    }

    /// The last value and when it was asked for, while it counts at `at`.
    pub fn value_and_instant(&self, at: Timestamp) -> Option<(f64, Timestamp)> {
        match self.polled.at(at) {
            Standing::Good(last) => match &last.answer {
                Answer::Value(sample) => Some((sample.value, last.at)),
                Answer::NoData | Answer::TooMany(_) => None,
            },
            Standing::Trouble(_) | Standing::Expired(_) | Standing::Nothing => None,
        }
    }

    /// As statuses have it.
    pub fn status(&self, rule: &Rule) -> MetricStatus {
        let last = self.polled.last.as_ref();
        MetricStatus {
            value: last.and_then(|last| match &last.answer {
                Answer::Value(sample) => Some(sample.text.clone()),
                Answer::NoData | Answer::TooMany(_) => None,
            }),
            range: words::range(rule.range),
            observed_at: last.map(|last| time(last.at)),
            within_since: self.within_since.map(time),
            error: self.polled.error().map(str::to_owned),
        }
    }
}

/// What the rule says at `now`. None: it was not asked yet.
fn opinion(rule: &Rule, observed: Option<&Observed>, on_error: Setting, now: Now) -> Opinion {
    let Some(observed) = observed else {
        return Opinion::closed(Reason::NotObserved);
    };
    let last = match observed.polled.at(now.at) {
        Standing::Good(last) => last,
        nothing => return nothing.opinion(on_error),
    };
    let closed = |reason| Opinion {
        until: Some(last.good_until),
        ..Opinion::closed(reason)
    };
    match &last.answer {
        Answer::TooMany(_) => closed(Reason::EvidenceBroken),
        Answer::Value(_) if !rule.admits(&last.answer) => closed(Reason::OutOfRange),
        Answer::NoData if !rule.admits(&last.answer) => closed(Reason::NoData),
        Answer::Value(_) => admitted(rule, observed, last, Reason::InRange, now),
        Answer::NoData => admitted(rule, observed, last, Reason::NoData, now),
    }
}

/// The opinion for an answer that the rule admits: whether it has done so for long enough.
fn admitted(
    rule: &Rule,
    observed: &Observed,
    last: &Had<Answer>,
    reason: Reason,
    now: Now,
) -> Opinion {
    let closed = Opinion {
        until: Some(last.good_until),
        ..Opinion::closed(Reason::Soaking)
    };
    let enough = rule.enough(observed.within_since.unwrap_or(last.at));
    let answered = observed.within_until.unwrap_or(last.at);
    match now.trust {
        _ if enough > now.at => Opinion {
            until: Some(enough.min(last.good_until)),
            next: Some(enough),
            ..closed
        },
        // The time has passed, but it is not known yet what the value was at its end.
        _ if enough > answered && !rule.for_.is_zero() => closed,
        // The row would be long enough only by a clock that cannot be relied on.
        Trust::Lost(_) if !rule.for_.is_zero() => Opinion {
            reason: Reason::ClockSkew,
            ..closed
        },
        Trust::Good | Trust::Drifting(_) | Trust::Lost(_) => Opinion {
            state: State::Open,
            reason,
            ..closed
        },
    }
}
