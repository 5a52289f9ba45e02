//! Why a metric opens or closes, in a sentence.

use sluice_crds::State;
use sluice_crds::gatekeeper as api;

use super::{Answer, Limit, Observed, Rule, Sample};
use crate::evidence::polling::Standing;
use crate::text::words;
use crate::time::duration;
use crate::verdict::status::SINCE_THEN;
use crate::verdict::{Opinion, Reason};

/// With value, threshold and time of observation:
/// `0.982 is below min 0.99, measured Sat 2026-11-21 12:03:10 UTC`.
pub(super) fn explain(
    rule: &Rule,
    observed: Option<&Observed>,
    opinion: &Opinion,
    now: crate::time::clock::Now,
) -> String {
    let Some(observed) = observed else {
        return "the query has not been asked yet".to_owned();
    };
    let last = match observed.polled.at(now.at) {
        Standing::Good(last) => last,
        nothing => return nothing.explain(opinion),
    };
    let found = match &last.answer {
        Answer::Value(sample) => {
            let place = place(rule, sample);
            format!("{} is {place}", sample.text())
        }
        Answer::NoData => no_data(rule).to_owned(),
        Answer::TooMany(samples) => too_many(*samples),
    };
    let row = match (observed.within_since, opinion.reason) {
        (Some(since), Reason::Soaking) => format!(
            " since {}, and has to be for {}, which an answer from {} on can show",
            words::instant_utc(since),
            duration::text(rule.for_),
            words::instant_utc(rule.enough(since)),
        ),
        (Some(since), _) if !rule.for_.is_zero() => {
            format!(" since {}", words::instant_utc(since))
        }
        _ => String::new(),
    };
    let measured = match last.answer {
        Answer::Value(_) => "measured",
        Answer::NoData | Answer::TooMany(_) => "asked",
    };
    let at = words::instant_utc(last.at);
    let since = observed.polled.error();
    let since = since.map_or_else(String::new, |why| format!("; {SINCE_THEN}{why}"));
    format!("{found}{row}, {measured} {at}{since}")
}

/// The same without what changes from one answer to the next.
pub(super) fn cause(
    rule: &Rule,
    observed: Option<&Observed>,
    opinion: &Opinion,
    now: crate::time::clock::Now,
) -> String {
    let Some(Standing::Good(last)) = observed.map(|observed| observed.polled.at(now.at)) else {
        return explain(rule, observed, opinion, now);
    };
    let found = match &last.answer {
        Answer::Value(sample) => format!("the value is {}", place(rule, sample)),
        Answer::NoData => no_data(rule).to_owned(),
        Answer::TooMany(_) => "the query returns several samples".to_owned(),
    };
    match opinion.reason {
        Reason::Soaking => format!("{found}, but not yet for {}", duration::text(rule.for_)),
        _ => found,
    }
}

/// Where a value stands.
fn place(rule: &Rule, sample: &Sample) -> String {
    match rule.limit_broken(sample.value()) {
        Some(Limit::Min(min)) => format!("below min {min}"),
        Some(Limit::Max(max)) => format!("above max {max}"),
        None => format!("within {}", range(rule.range)),
    }
}

fn no_data(rule: &Rule) -> &'static str {
    match State::from(rule.on_no_data) {
        State::Open => "the query returns no value, and onNoData is open",
        State::Closed | State::Conditional => "the query returns no value",
    }
}

fn too_many(samples: usize) -> String {
    format!(
        "the query returns {samples} samples; write one that returns a single one: aggregate, \
         as in sum(...), or select one by its labels"
    )
}

pub(super) fn range(range: api::Range) -> String {
    let min = range.min.map(|min| format!("min {min}"));
    let max = range.max.map(|max| format!("max {max}"));
    let limits: Vec<_> = [min, max].into_iter().flatten().collect();
    limits.join(", ")
}
