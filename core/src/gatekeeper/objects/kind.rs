//! How `objects` answers as a kind of gatekeeper: how objects should be with how they were seen.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use sluice_crds::Setting;
use sluice_crds::gatekeeper::{EvidenceStatus, Objects};

use super::{Course, Observed, Part, Rule, Sighting, explain, opinion};
use crate::evidence::polling::Trouble;
use crate::gatekeeper::Evidence;
use crate::gatekeeper::given::{self, Given, Sight};
use crate::gatekeeper::kind::{Basis, Judge, KindSpec, Setup};
use crate::text::refusal::Refusals;
use crate::verdict::Opinion;
use crate::verdict::question::Question;

const FIELD: &str = "spec.objects";

impl KindSpec for Objects {
    fn judge(&self, setup: &Setup<'_>) -> Result<Arc<dyn Judge>, Refusals> {
        Ok(Arc::new(Seen {
            rule: Rule::read(self, FIELD)?,
            on_error: setup.on_error,
            observed: setup.evidence.shared(),
        }))
    }

    fn given(&self, given: Given, during: &given::Course<'_>) -> Result<Evidence, String> {
        let rule = Rule::read(self, FIELD).map_err(given::refused)?;
        let since = during.since(&given);
        let observed = match given.sight() {
            Some(Sight::Objects(all)) => {
                let course = |part: &Part| course(part, &all, during.namespace, since);
                let courses: Vec<Course> = rule.parts().iter().map(course).collect();
                let parts: Vec<_> = rule.parts().iter().zip(&courses).collect();
                Observed::Seen(Sighting::of(&parts, Timestamp::MAX))
            }
            Some(Sight::Trouble(Trouble::Unavailable(why))) => Observed::Unavailable(why),
            Some(Sight::Value(_) | Sight::Answer(..) | Sight::Trouble(_)) | None => {
                let problem = "it is of the kind objects: write objects or unavailable";
                return Err(problem.to_owned());
            }
        };
        Ok(Evidence::of(observed))
    }
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

/// The rule with its evidence.
#[derive(Debug)]
struct Seen {
    rule: Rule,
    on_error: Setting,
    /// None: nothing was observed.
    observed: Option<Arc<Observed>>,
}

impl Judge for Seen {
    fn opinion(&self, question: Question<'_>) -> Opinion {
        let observed = self.observed.as_deref();
        opinion(&self.rule, observed, self.on_error, question)
    }

    fn explain(&self, opinion: &Opinion, _: Question<'_>) -> String {
        explain(&self.rule, self.observed.as_deref(), opinion)
    }

    fn basis(&self) -> Basis {
        Basis::Measurements
    }

    fn is_unread(&self, question: Question<'_>) -> bool {
        // What its status says is about no revision in particular.
        let is_about_one = self.rule.asks_for_revision() && question.revision.is_some();
        self.observed.is_none() && !is_about_one
    }

    fn good_until(&self) -> Option<Timestamp> {
        self.observed.as_ref()?.good_until()
    }

    fn status(&self, _: Timestamp) -> EvidenceStatus {
        EvidenceStatus {
            objects: self.observed.as_ref().and_then(|seen| seen.status()),
            ..EvidenceStatus::default()
        }
    }

    fn remove_measurements(&self, shown: &mut EvidenceStatus) {
        if let Some(objects) = &mut shown.objects {
            (objects.seen, objects.satisfied) = (0, 0);
        }
    }
}
