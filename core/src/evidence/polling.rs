//! Evidence that is asked for at intervals: how its spec is read, and for how long an answer
//! counts.
//!
//! What comes in: the fields that all such kinds share, and what came of each attempt. What goes
//! out: a [`Cadence`], and what may be judged from at an instant ([`Polled::at`]).

use jiff::{SignedDuration, Timestamp};
use sluice_crds::{Duration, Setting, State};

use crate::text::refusal::Refusal;
use crate::text::words;
use crate::time::duration;
use crate::time::span::later;
use crate::verdict::{Opinion, Reason};

/// An answer counts for so many intervals.
const GOOD_FOR: i32 = 3;
/// The shortest interval.
const MOST_OFTEN: SignedDuration = SignedDuration::from_secs(5);
/// The longest interval.
const LEAST_OFTEN: SignedDuration = SignedDuration::from_hours(24);
/// The longest that one answer may take.
const PATIENCE: SignedDuration = SignedDuration::from_secs(10);
/// The most bytes of an address.
const LONGEST_ADDRESS: usize = 2048;

/// How often something is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cadence {
    /// From one attempt to the next.
    pub interval: SignedDuration,
    /// The longest that one answer may take; never longer than the interval.
    pub timeout: SignedDuration,
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No answer: `onError` decides once the last answer has expired.
    Unavailable(String),
    /// It was not asked, because it got no turn: closed once the last answer has expired. A user who
    /// delays others must not open their gates that way.
    Unasked(String),
    /// Somebody answers, and the answer makes no sense: closed once the last good answer has expired,
    /// until somebody fixes it.
    Broken(String),
}

impl Trouble {
    /// What is wrong, in words.
    pub fn why(&self) -> &str {
        match self {
            Trouble::Unavailable(why) | Trouble::Unasked(why) | Trouble::Broken(why) => why,
        }
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Had<A> {
    /// What it says.
    pub answer: A,
    /// When it was asked for.
    pub at: Timestamp,
    /// Until when it counts.
    pub good_until: Timestamp,
}

/// What came of all attempts so far: a failure leaves the last answer, for as long as that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polled<A> {
    /// The last answer.
    pub last: Option<Had<A>>,
    /// Why there is no newer one.
    pub trouble: Option<Trouble>,
}

/// What there is to judge from at an instant.
#[derive(Debug)]
pub(crate) enum Standing<'a, A> {
    /// An answer that counts.
    Good(&'a Had<A>),
    /// None any more, and why.
    Trouble(&'a Trouble),
    /// It has had no answer that counts since then; it was not asked again.
    Expired(Timestamp),
    /// It was not asked yet.
    Nothing,
}

impl<A> Polled<A> {
    /// After an attempt at `at`.
    #[must_use]
    pub fn next(
        before: Option<Self>,
        attempt: Result<A, Trouble>,
        cadence: Cadence,
        at: Timestamp,
    ) -> Self {
        match attempt {
            Ok(answer) => Self {
                last: Some(Had {
                    answer,
                    at,
                    good_until: later(at, cadence.interval * GOOD_FOR),
                }),
                trouble: None,
            },
            Err(trouble) => Self {
                last: before
                    .and_then(|before| before.last)
                    .filter(|last| at < last.good_until),
                trouble: Some(trouble),
            },
        }
    }

    /// What may be judged from at `now`.
    pub(crate) fn at(&self, now: Timestamp) -> Standing<'_, A> {
        match (&self.last, &self.trouble) {
            (Some(last), _) if now < last.good_until => Standing::Good(last),
            (_, Some(trouble)) => Standing::Trouble(trouble),
            (Some(last), None) => Standing::Expired(last.good_until),
            (None, None) => Standing::Nothing,
        }
    }

    /// Until when the last answer counts. None: there is none.
    pub fn good_until(&self) -> Option<Timestamp> {
        self.last.as_ref().map(|last| last.good_until)
    }

    /// What is wrong with the newest attempt, if anything is.
    pub fn error(&self) -> Option<&str> {
        self.trouble.as_ref().map(Trouble::why)
    }
}

impl<A> Standing<'_, A> {
    /// The opinion where no answer counts.
    pub(crate) fn opinion(&self, on_error: Setting) -> Opinion {
        match self {
            Standing::Good(_) | Standing::Nothing => Opinion::closed(Reason::NotObserved),
            Standing::Trouble(Trouble::Unavailable(_)) => {
                Opinion::of(on_error.into(), Reason::EvidenceUnavailable)
            }
            Standing::Trouble(Trouble::Unasked(_)) => Opinion::closed(Reason::Expired),
            Standing::Trouble(Trouble::Broken(_)) => Opinion::closed(Reason::EvidenceBroken),
            Standing::Expired(_) => Opinion::closed(Reason::Expired),
        }
    }

    /// The same in words.
    pub(crate) fn explain(&self, opinion: &Opinion) -> String {
        match self {
            Standing::Good(_) | Standing::Nothing => "it has not been asked for yet".to_owned(),
            Standing::Trouble(trouble) => match opinion.state {
                State::Open => format!("{}; onError is open", trouble.why()),
                State::Closed | State::Conditional => trouble.why().to_owned(),
            },
            Standing::Expired(end) => format!("its evidence expired {}", words::instant_utc(*end)),
        }
    }
}

/// What all kinds say of whom they ask.
pub(crate) struct Asked<'a> {
    /// The path of the kind, such as `spec.metric`.
    pub(crate) path: &'a str,
    /// The name of the field with the address.
    pub(crate) field: &'a str,
    pub(crate) address: &'a str,
    /// Whether the address may have a query of its own.
    pub(crate) with_query: bool,
    pub(crate) has_secret: bool,
    pub(crate) has_authorities: bool,
    pub(crate) interval: &'a Duration,
    pub(crate) timeout: &'a Duration,
}

impl Asked<'_> {
    /// Checks all of it, and adds what is wrong to `mistakes`.
    pub(crate) fn read(&self, mistakes: &mut Vec<Refusal>) -> Cadence {
        if let Err((problem, remedy)) = is_address(self.address, self.with_query) {
            mistakes.push(Refusal::new(self.at(self.field), problem, remedy));
        }
        let secure = self.address.starts_with("https://");
        if self.has_secret && !secure {
            mistakes.push(Refusal::new(
                self.at("secretRef"),
                "secrets are sent over https only",
                "write an https address",
            ));
        }
        if self.has_authorities && !secure {
            mistakes.push(Refusal::new(
                self.at("certSecretRef"),
                "it belongs to an https address",
                "remove it, or write an https address",
            ));
        }
        let interval = self.duration("interval", self.interval, mistakes, |length| {
            (MOST_OFTEN..=LEAST_OFTEN)
                .contains(&length)
                .then_some(length)
                .ok_or("must be between 5s and 24h")
        });
        let timeout = self.duration("timeout", self.timeout, mistakes, |length| {
            (length > SignedDuration::ZERO && length <= PATIENCE)
                .then_some(length)
                .ok_or("must be longer than zero and at most 10s")
        });
        Cadence {
            interval,
            timeout: timeout.min(interval),
        }
    }

    fn at(&self, field: &str) -> String {
        format!("{}.{field}", self.path)
    }

    fn duration(
        &self,
        field: &str,
        text: &Duration,
        mistakes: &mut Vec<Refusal>,
        within: impl Fn(SignedDuration) -> Result<SignedDuration, &'static str>,
    ) -> SignedDuration {
        let read = duration::parse(text)
            .map_err(|problem| (problem, duration::REMEDY))
            .and_then(|length| {
                within(length).map_err(|limits| (format!("`{text}` {limits}"), duration::REMEDY))
            });
        read.unwrap_or_else(|(problem, remedy)| {
            mistakes.push(Refusal::new(self.at(field), problem, remedy));
            LEAST_OFTEN
        })
    }
}

/// Whether something may be asked at an address that a user has written.
///
/// # Errors
/// What is wrong with it, and what to write instead.
pub(crate) fn is_address(address: &str, with_query: bool) -> Result<(), (String, &'static str)> {
    let scheme = ["https://", "http://"];
    let rest = scheme
        .iter()
        .find_map(|scheme| address.strip_prefix(scheme));
    let remedy = "write one that starts with https:// or http://";
    let Some(rest) = rest.filter(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#']))
    else {
        return Err(("it is not an http or https address".to_owned(), remedy));
    };
    if address.len() > LONGEST_ADDRESS {
        let problem = format!("the address is longer than {LONGEST_ADDRESS} characters");
        return Err((problem, "write a shorter one"));
    }
    if rest.contains('@') {
        let remedy = "remove it; credentials are read from secretRef";
        return Err(("the address has an @".to_owned(), remedy));
    }
    if rest.contains(char::is_whitespace) {
        return Err((
            "the address has a space in it".to_owned(),
            "write it as %20, or remove it",
        ));
    }
    if !with_query && rest.contains(['?', '#']) {
        let remedy = "write what comes before /api/v1/query";
        return Err(("the address has a query of its own".to_owned(), remedy));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
