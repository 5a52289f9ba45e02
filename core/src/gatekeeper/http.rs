//! `http`: an address that answers as expected.
//!
//! What comes in: a spec, and each answer ([`Rule::answer`] looks at it). What goes out: an [`Observed`],
//! and the opinion that follows from it at an instant. Of an answer only the status code and whether the
//! body was as expected are kept: it may be somebody's secret.

use jiff::Timestamp;
use serde_json::json;
use sluice_crds::Setting;
use sluice_crds::State;
use sluice_crds::gatekeeper::{self as api, HttpStatus};

use crate::evidence::expression::{self, Expression, ExpressionError, Unread};
use crate::evidence::polling::{Asked, Cadence, Polled, Standing};
use crate::text::refusal::{Refusal, Refusals};
use crate::text::words;
use crate::time::clock::Now;
use crate::time::stamp::time;
use crate::verdict::status::SINCE_THEN;
use crate::verdict::{Opinion, Reason};

mod kind;
#[cfg(test)]
mod tests;

/// What an expression is about.
const VARIABLES: [&str; 2] = ["status", "body"];
/// The most times that an address is asked again.
const MOST_RETRIES: i32 = 5;
/// The most statuses that may be expected.
const MOST_STATUSES: usize = 16;

/// The rule that a spec describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// How often the address is asked.
    pub cadence: Cadence,
    /// How many more times it is asked when it does not answer.
    pub retries: usize,
    path: String,
    statuses: Vec<u16>,
    expression: Option<Expression>,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// How the body was judged.
    pub body: Body,
}

/// How a body was judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Not judged: there is no expression, or the status was not expected.
    Unread,
    /// The expression is true.
    Satisfies,
    /// The expression is false.
    Fails,
    /// There is an expression, and this is no JSON.
    NotJson,
    /// The expression gave no result.
    Unjudged(ExpressionError),
}

/// What is known of the address by what it answered so far: the evidence of the rule.
pub type Observed = Polled<Answer>;

/// Reads a spec, whose path in its object is `path` (such as `spec.http`).
///
/// # Errors
/// Every mistake in it.
pub fn read(spec: &api::Http, path: &str) -> Result<Rule, Refusals> {
    let mut mistakes = Vec::new();
    let cadence = Asked {
        path,
        field: "url",
        address: &spec.url,
        with_query: true,
        has_secret: spec.secret_ref.is_some(),
        has_authorities: spec.cert_secret_ref.is_some(),
        interval: &spec.interval,
        timeout: &spec.timeout,
    }
    .read(&mut mistakes);
    let statuses = statuses(spec, path, &mut mistakes);
    let expression = spec.expression.as_ref().and_then(|text| {
        let read = Expression::parse(text, &VARIABLES);
        read.map_err(|problem| {
            let field = format!("{path}.expression");
            mistakes.push(Refusal::new(field, problem, expression::REMEDY));
        })
        .ok()
    });
    if !(0..=MOST_RETRIES).contains(&spec.retries) {
        mistakes.push(Refusal::new(
            format!("{path}.retries"),
            format!("{} is not between 0 and {MOST_RETRIES}", spec.retries),
            "write a number from 0 to 5",
        ));
    }
    let rule = Rule {
        cadence,
        retries: usize::try_from(spec.retries).unwrap_or_default(),
        path: path.to_owned(),
        statuses,
        expression,
    };
    Refusals::unless_empty(mistakes, rule)
}

fn statuses(spec: &api::Http, path: &str, mistakes: &mut Vec<Refusal>) -> Vec<u16> {
    let field = format!("{path}.expectedStatuses");
    let expected = &spec.expected_statuses;
    if expected.is_empty() || expected.len() > MOST_STATUSES {
        let problem = format!("it has {} statuses", expected.len());
        let remedy = "write between 1 and 16 of them, such as [200]";
        mistakes.push(Refusal::new(&field, problem, remedy));
    }
    let read = expected.iter().enumerate().filter_map(|(place, status)| {
        let read = u16::try_from(*status)
            .ok()
            .filter(|status| (100..600).contains(status));
        if read.is_none() {
            let field = format!("{field}[{place}]");
            let problem = format!("{status} is not an HTTP status");
            mistakes.push(Refusal::new(field, problem, "write one from 100 to 599"));
        }
        read
    });
    read.collect()
}

impl Rule {
    /// Whether bodies are judged at all.
    pub fn has_expression(&self) -> bool {
        self.expression.is_some()
    }

    /// Whether the body of an answer with this status is looked at.
    pub fn wants_body(&self, status: u16) -> bool {
        self.expression.is_some() && self.statuses.contains(&status)
    }

    /// How an answer is judged. With an expression this takes part of a second at worst.
    pub fn answer(&self, status: u16, body: &[u8]) -> Answer {
        let body = match &self.expression {
            Some(expression) if self.wants_body(status) => judge(expression, status, body),
            Some(_) | None => Body::Unread,
        };
        Answer { status, body }
    }

    /// What a status that was written about exactly this spec says, as far as it still counts at `now`.
    pub fn restored(&self, status: &HttpStatus, now: Timestamp) -> Option<Observed> {
        let code = u16::try_from(status.status?).ok()?;
        let at = status.observed_at.as_ref()?.0;
        let body = match (self.wants_body(code), status.satisfied) {
            (true, Some(true)) => Body::Satisfies,
            (true, Some(false)) => Body::Fails,
            (true, None) => return None,
            (false, _) => Body::Unread,
        };
        let answer = Answer { status: code, body };
        let observed = Polled::next(None, Ok(answer), self.cadence, at);
        let counts = at <= now && matches!(observed.at(now), Standing::Good(_));
        counts.then_some(observed)
    }
}

fn judge(expression: &Expression, status: u16, body: &[u8]) -> Body {
    let body = match expression::input(body) {
        Ok(body) => body,
        Err(Unread::NotJson) => return Body::NotJson,
        Err(Unread::TooLarge(error)) => return Body::Unjudged(error),
    };
    let [status_, body_] = VARIABLES;
    match expression.evaluate(&[(status_, json!(status)), (body_, body)]) {
        Ok(true) => Body::Satisfies,
        Ok(false) => Body::Fails,
        Err(error) => Body::Unjudged(error),
    }
}

/// As statuses have it.
pub fn status(observed: &Observed) -> HttpStatus {
    let last = observed.last.as_ref();
    HttpStatus {
        status: last.map(|last| last.answer.status.into()),
        satisfied: last.and_then(|last| match last.answer.body {
            Body::Unread => None,
            Body::Satisfies => Some(true),
            Body::Fails | Body::NotJson | Body::Unjudged(_) => Some(false),
        }),
        observed_at: last.map(|last| time(last.at)),
        error: observed.error().map(str::to_owned),
    }
}

/// What the rule says at `now`. None: it was not asked yet.
fn opinion(rule: &Rule, observed: Option<&Observed>, on_error: Setting, now: Now) -> Opinion {
    let Some(observed) = observed else {
        return Opinion::closed(Reason::NotObserved);
    };
    let last = match observed.at(now.at) {
        Standing::Good(last) => last,
        nothing => return nothing.opinion(on_error),
    };
    let (state, reason) = match &last.answer.body {
        _ if !rule.statuses.contains(&last.answer.status) => {
            (State::Closed, Reason::UnexpectedStatus)
        }
        Body::Unread | Body::Satisfies => (State::Open, Reason::AsExpected),
        Body::Fails => (State::Closed, Reason::UnexpectedBody),
        Body::NotJson | Body::Unjudged(_) => (State::Closed, Reason::EvidenceBroken),
    };
    Opinion {
        until: Some(last.good_until),
        ..Opinion::of(state, reason)
    }
}

/// Why the rule says what it says, in a sentence:
/// `it answered 503, expected 200, Sat 2026-11-21 12:03:10 UTC`.
fn explain(rule: &Rule, observed: Option<&Observed>, opinion: &Opinion, now: Now) -> String {
    let Some(observed) = observed else {
        return "the address has not been asked yet".to_owned();
    };
    match observed.at(now.at) {
        Standing::Good(last) => {
            let found = found(rule, &last.answer);
            let at = words::instant_utc(last.at);
            let since = observed.error();
            let since = since.map_or_else(String::new, |why| format!("; {SINCE_THEN}{why}"));
            format!("{found}, asked {at}{since}")
        }
        nothing => nothing.explain(opinion),
    }
}

/// The same without what changes from one answer to the next.
fn cause(rule: &Rule, observed: Option<&Observed>, opinion: &Opinion, now: Now) -> String {
    match observed.map(|observed| observed.at(now.at)) {
        Some(Standing::Good(last)) => found(rule, &last.answer),
        _ => explain(rule, observed, opinion, now),
    }
}

fn found(rule: &Rule, answer: &Answer) -> String {
    let Answer { status, body } = answer;
    let field = format!("{}.expression", rule.path);
    if !rule.statuses.contains(status) {
        let expected: Vec<_> = rule.statuses.iter().map(u16::to_string).collect();
        let remark = match status {
            300..=399 => "; redirects are not followed",
            _ => "",
        };
        return format!(
            "it answered {status}, expected {}{remark}",
            expected.join(" or ")
        );
    }
    match body {
        Body::Unread => format!("it answered {status}"),
        Body::Satisfies => format!("it answered {status}, and the body satisfies {field}"),
        Body::Fails => format!("the body does not satisfy {field}"),
        Body::NotJson => "the body is not JSON".to_owned(),
        Body::Unjudged(error) => format!("{field} cannot be evaluated: {error}"),
    }
}
