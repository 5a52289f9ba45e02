//! What gatekeepers that measure something see where nothing is measured: somebody states what it would
//! be.
//!
//! What comes in: [`Given`], as it is written in a file. What goes out: [`Evidence`], in which the
//! gatekeeper has seen just that, from the first instant of a simulation to the last.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use sluice_crds::{Gatekeeper, Setting};

use super::{Evidence, kind};
use crate::evidence::polling::{Had, Polled, Trouble};
use crate::text::refusal::Refusals;

/// What is said where a gatekeeper measures nothing.
pub(super) const MEASURES_NOTHING: &str = "it measures nothing: what it is judged from is written \
     in its spec, in ConfigMaps, Approvals and Gates; add those to the files";

/// What one gatekeeper sees: exactly one of the fields, and `since`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Given {
    /// `metric`: the value of the query, a number; `NaN` means no data.
    value: Option<Value>,
    /// `http`: the status of the answer.
    status: Option<u16>,
    /// `http`: the JSON of its body.
    body: Option<Value>,
    /// `objects`: all there are.
    objects: Option<Vec<Value>>,
    /// `external`: what is reported.
    report: Option<Report>,
    /// `metric`, `http`, `objects`: why there is no answer; `onError` decides.
    unavailable: Option<String>,
    /// `metric`, `http`: what is wrong with the answer.
    broken: Option<String>,
    /// `metric` with `for`, `objects` with `soak`: since when it has been so. From the first
    /// instant on where nothing is said.
    since: Option<Timestamp>,
}

/// What a third party reports.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Report {
    pub(crate) state: Setting,
    #[serde(default)]
    pub(crate) revisions: Vec<String>,
    pub(crate) reason: Option<String>,
    pub(crate) expires_at: Option<Timestamp>,
}

/// When and where something is seen.
pub(crate) struct Course<'a> {
    /// The namespace of the gatekeeper.
    pub(crate) namespace: &'a str,
    /// The first instant.
    pub(crate) start: Timestamp,
}

impl Course<'_> {
    /// Since when it has been so.
    pub(super) fn since(&self, given: &Given) -> Timestamp {
        given.since.unwrap_or(self.start).min(self.start)
    }
}

/// What is seen, once it is known to be one thing.
pub(super) enum Sight {
    Value(Value),
    Answer(u16, Option<Value>),
    Objects(Vec<Value>),
    Trouble(Trouble),
}

impl Given {
    /// What `gatekeeper` sees if this is given.
    ///
    /// # Errors
    /// It is of a kind that sees something else, or nothing; its spec is refused.
    pub(crate) fn evidence(
        self,
        gatekeeper: &Gatekeeper,
        during: &Course<'_>,
    ) -> Result<Evidence, String> {
        match kind(&gatekeeper.spec) {
            Ok(kind) => kind.given(self, during),
            Err(_) => Err(MEASURES_NOTHING.to_owned()),
        }
    }

    /// What a third party reports, if that is given.
    ///
    /// # Errors
    /// Something else is given, too.
    pub(crate) fn report(&self) -> Result<Option<Report>, String> {
        let alone = Self {
            report: self.report.clone(),
            ..Self::default()
        };
        match &self.report {
            Some(_) if *self != alone => {
                Err("report: no other field may be next to it; remove the others".to_owned())
            }
            report => Ok(report.clone()),
        }
    }

    /// The one thing that is given. None: nothing is, or several things are.
    pub(super) fn sight(self) -> Option<Sight> {
        let Self {
            value,
            status,
            body,
            objects,
            report: _,
            unavailable,
            broken,
            since: _,
        } = self;
        if body.is_some() && status.is_none() {
            return None;
        }
        let mut given = [
            value.map(Sight::Value),
            status.map(|status| Sight::Answer(status, body)),
            objects.map(Sight::Objects),
            unavailable.map(|why| Sight::Trouble(Trouble::Unavailable(why))),
            broken.map(|why| Sight::Trouble(Trouble::Broken(why))),
        ]
        .into_iter()
        .flatten();
        given.next().filter(|_| given.next().is_none())
    }
}

/// The answer counts to the end, and was had at `at`.
pub(super) fn lasting<A>(polled: Polled<A>, at: Timestamp) -> Polled<A> {
    let last = polled.last.map(|had| Had {
        at,
        good_until: Timestamp::MAX,
        ..had
    });
    Polled { last, ..polled }
}

/// What is said where the spec of the gatekeeper is refused.
#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
pub(super) fn refused(why: Refusals) -> String {
    format!("its spec is refused: {why}")
}
