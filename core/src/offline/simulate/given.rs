//! What gatekeepers see that measure something, where nobody looks: somebody says what it would be.
//!
//! What comes in: [`Given`], as it is written in a file. What goes out: a [`World`] in which the
//! gatekeeper has seen just that, from the first instant of the simulation to the last.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;
use serde_json::Value;
use sluice_crds::gatekeeper::{ExternalReport, Kind};
use sluice_crds::{Gatekeeper, Setting};

use super::{Key, World};
use crate::evidence::polling::{Had, Polled, Trouble};
use crate::gatekeeper::objects::{self, Course, Part, Sighting};
use crate::gatekeeper::{Evidence, http, metric};

/// What one gatekeeper sees: exactly one of the fields, and `since`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Given {
    /// `metric`: the value of the query, a number; `NaN` stands for no data.
    value: Option<Value>,
    /// `http`: the status of the answer.
    status: Option<u16>,
    /// `http`: the JSON of its body.
    body: Option<Value>,
    /// `objects`: all there are.
    objects: Option<Vec<Value>>,
    /// `external`: what is reported.
    report: Option<Report>,
    /// `metric`, `http`, `objects`: why nobody answers; `onError` decides.
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
struct Report {
    state: Setting,
    #[serde(default)]
    revisions: Vec<String>,
    reason: Option<String>,
    expires_at: Option<Timestamp>,
}

impl World {
    /// From `start` on the gatekeeper of that name sees what is given.
    ///
    /// # Errors
    /// There is no such gatekeeper; it is of a kind that sees something else, or nothing.
    pub fn give(&mut self, key: &Key, given: Given, start: Timestamp) -> Result<(), String> {
        let Some(object) = self.gatekeepers.get_mut(key) else {
            let known: Vec<String> = self.gatekeepers.keys().map(Key::to_string).collect();
            return Err(format!(
                "there is no such gatekeeper; there are {}",
                known.join(", ")
            ));
        };
        if let Some(report) = &given.report {
            let alone = Given {
                report: Some(report.clone()),
                ..Given::default()
            };
            if given != alone {
                return Err("report: it stands alone; remove what is beside it".to_owned());
            }
            return self::report(Arc::make_mut(object), report.clone());
        }
        let evidence = given.evidence(object, start)?;
        self.given.insert(key.clone(), evidence);
        Ok(())
    }
}

/// What is seen, once it is known to be one thing.
enum Sight {
    Value(Value),
    Answer(u16, Option<Value>),
    Objects(Vec<Value>),
    Trouble(Trouble),
}

impl Given {
    fn evidence(self, gatekeeper: &Gatekeeper, start: Timestamp) -> Result<Evidence, String> {
        let since = self.since.unwrap_or(start).min(start);
        let refused = |why: crate::text::refusal::Refusals| format!("its spec is refused: {why}");
        match gatekeeper.spec.kind() {
            Ok(Kind::Metric(spec)) => {
                let rule = metric::read(spec, "spec.metric").map_err(refused)?;
                let before = metric::Observed::next(None, self.metric()?, &rule, since);
                Ok(Evidence::Metric(metric::Observed {
                    polled: lasting(before.polled, start),
                    // It is answered all the time.
                    within_until: before.within_until.map(|_| Timestamp::MAX),
                    ..before
                }))
            }
            Ok(Kind::Http(spec)) => {
                let rule = http::read(spec, "spec.http").map_err(refused)?;
                let polled = Polled::next(None, self.http(&rule)?, rule.cadence, start);
                Ok(Evidence::Http(lasting(polled, start)))
            }
            Ok(Kind::Objects(spec)) => {
                let rule = objects::Rule::read(spec, "spec.objects").map_err(refused)?;
                let namespace = Key::of(&gatekeeper.metadata).namespace;
                Ok(Evidence::Objects(self.objects(&rule, &namespace, since)?))
            }
            Ok(Kind::External(_)) => Err("it is of the kind external: write report".to_owned()),
            Ok(
                Kind::Schedule(_)
                | Kind::Revisions(_)
                | Kind::Approval(_)
                | Kind::Manual(_)
                | Kind::Gates(_),
            )
            | Err(_) => Err(
                "it measures nothing: what it is judged from is written in its spec, in \
                 ConfigMaps, Approvals and Gates; add those to the files"
                    .to_owned(),
            ),
        }
    }

    /// The one thing that is given. None: nothing is, or several things are.
    fn sight(self) -> Option<Sight> {
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

    fn metric(self) -> Result<Result<metric::Answer, Trouble>, String> {
        match self.sight() {
            Some(Sight::Value(value)) => {
                let text = value.as_str().map(str::to_owned);
                let text = text.unwrap_or_else(|| value.to_string());
                let answer = metric::Answer::of(&text);
                Ok(Ok(
                    answer.ok_or_else(|| format!("value: `{text}` is no number"))?
                ))
            }
            Some(Sight::Trouble(trouble)) => Ok(Err(trouble)),
            Some(Sight::Answer(..) | Sight::Objects(_)) | None => {
                Err("it is of the kind metric: write value, unavailable or broken".to_owned())
            }
        }
    }

    fn http(self, rule: &http::Rule) -> Result<Result<http::Answer, Trouble>, String> {
        match self.sight() {
            Some(Sight::Answer(status, body)) => {
                let body = body.map(|body| body.to_string()).unwrap_or_default();
                Ok(Ok(rule.answer(status, body.as_bytes())))
            }
            Some(Sight::Trouble(trouble)) => Ok(Err(trouble)),
            Some(Sight::Value(_) | Sight::Objects(_)) | None => Err(
                "it is of the kind http: write status and body, unavailable or broken".to_owned(),
            ),
        }
    }

    fn objects(
        self,
        rule: &objects::Rule,
        namespace: &str,
        since: Timestamp,
    ) -> Result<objects::Observed, String> {
        match self.sight() {
            Some(Sight::Objects(all)) => {
                let course = |part: &Part| course(part, &all, namespace, since);
                let courses: Vec<Course> = rule.parts().iter().map(course).collect();
                let parts: Vec<_> = rule.parts().iter().zip(&courses).collect();
                let sighting = Sighting::of(&parts, Timestamp::MAX);
                Ok(objects::Observed::Seen(sighting))
            }
            Some(Sight::Trouble(Trouble::Unavailable(why))) => {
                Ok(objects::Observed::Unavailable(why))
            }
            Some(Sight::Value(_) | Sight::Answer(..) | Sight::Trouble(_)) | None => {
                Err("it is of the kind objects: write objects or unavailable".to_owned())
            }
        }
    }
}

/// The answer counts to the end, and was had at `at`.
fn lasting<A>(polled: Polled<A>, at: Timestamp) -> Polled<A> {
    let last = polled.last.map(|had| Had {
        at,
        good_until: Timestamp::MAX,
        ..had
    });
    Polled { last, ..polled }
}

/// The objects that a part is about, as they have been since then.
fn course(part: &Part, all: &[Value], namespace: &str, since: Timestamp) -> Course {
    let spec = part.spec();
    let namespace = spec.namespace.as_deref().unwrap_or(namespace);
    let text = |object: &Value, pointer| object.pointer(pointer)?.as_str().map(str::to_owned);
    let is_its = |object: &&Value| {
        let place = text(object, "/metadata/namespace");
        text(object, "/apiVersion").as_ref() == Some(&spec.api_version)
            && text(object, "/kind").as_ref() == Some(&spec.kind)
            && place.is_none_or(|place| place == namespace)
    };
    let mut course = Course::begin(Some(namespace));
    for object in all.iter().filter(is_its) {
        let name = text(object, "/metadata/name").unwrap_or_default();
        course.follow(part, &name, Some(object.clone()), since);
    }
    course
}

/// Writes a report into the status of a gatekeeper, as one of its writers would.
fn report(gatekeeper: &mut Gatekeeper, report: Report) -> Result<(), String> {
    let Some(external) = &gatekeeper.spec.external else {
        return Err("report: only a gatekeeper of the kind external has reports".to_owned());
    };
    let by = external.writers.first().cloned().unwrap_or_default();
    // The API server has yet to count its generations.
    let generation = *gatekeeper.metadata.generation.get_or_insert(1);
    let written = ExternalReport {
        state: report.state,
        revisions: report.revisions,
        reason: report.reason,
        expires_at: Time(report.expires_at.unwrap_or(FAR)),
        for_generation: generation,
        by,
    };
    gatekeeper.status.get_or_insert_default().report = Some(Box::new(written));
    Ok(())
}

/// The latest instant that the definition of a report admits.
const FAR: Timestamp = Timestamp::constant(253_402_127_999, 0);

#[cfg(test)]
mod tests;
