//! How `http` answers as a kind of gatekeeper: what it expects with what the address answered.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::Setting;
use sluice_crds::gatekeeper::{EvidenceStatus, Http};

use super::{Answer, Observed, Rule, cause, explain, opinion, read, status};
use crate::evidence::polling::{Polled, Trouble};
use crate::gatekeeper::Evidence;
use crate::gatekeeper::given::{self, Given, Sight, lasting};
use crate::gatekeeper::kind::{Basis, Judge, KindSpec, Setup};
use crate::text::refusal::Refusals;
use crate::verdict::Opinion;
use crate::verdict::question::Question;

const FIELD: &str = "spec.http";

impl KindSpec for Http {
    fn judge(&self, setup: &Setup<'_>) -> Result<Arc<dyn Judge>, Refusals> {
        Ok(Arc::new(Answered {
            rule: read(self, FIELD)?,
            on_error: setup.on_error,
            observed: setup.evidence.shared(),
        }))
    }

    fn given(&self, given: Given, during: &given::Course<'_>) -> Result<Evidence, String> {
        let rule = read(self, FIELD).map_err(given::refused)?;
        let attempt = attempt(given, &rule)?;
        let polled = Polled::next(None, attempt, rule.cadence, during.start);
        Ok(Evidence::of(lasting(polled, during.start)))
    }
}

/// The answer of the address that somebody states.
fn attempt(given: Given, rule: &Rule) -> Result<Result<Answer, Trouble>, String> {
    match given.sight() {
        Some(Sight::Answer(status, body)) => {
            let body = body.map(|body| body.to_string()).unwrap_or_default();
            Ok(Ok(rule.answer(status, body.as_bytes())))
        }
        Some(Sight::Trouble(trouble)) => Ok(Err(trouble)),
        Some(Sight::Value(_) | Sight::Objects(_)) | None => {
            Err("it is of the kind http: write status and body, unavailable or broken".to_owned())
        }
    }
}

/// The rule with its evidence.
#[derive(Debug)]
struct Answered {
    rule: Rule,
    on_error: Setting,
    /// None: it was not asked.
    observed: Option<Arc<Observed>>,
}

impl Judge for Answered {
    fn opinion(&self, question: Question<'_>) -> Opinion {
        let observed = self.observed.as_deref();
        opinion(&self.rule, observed, self.on_error, question.evidence_at())
    }

    fn explain(&self, opinion: &Opinion, question: Question<'_>) -> String {
        explain(&self.rule, self.observed.as_deref(), opinion, question.now)
    }

    fn cause(&self, opinion: &Opinion, question: Question<'_>) -> String {
        cause(&self.rule, self.observed.as_deref(), opinion, question.now)
    }

    fn basis(&self) -> Basis {
        Basis::Measurements
    }

    fn is_unread(&self, _: Question<'_>) -> bool {
        self.observed.is_none()
    }

    fn good_until(&self) -> Option<Timestamp> {
        self.observed.as_ref()?.good_until()
    }

    fn has_volatile_message(&self) -> bool {
        true
    }

    fn status(&self, _: Timestamp) -> EvidenceStatus {
        EvidenceStatus {
            http: self.observed.as_deref().map(status),
            ..EvidenceStatus::default()
        }
    }

    fn remove_measurements(&self, shown: &mut EvidenceStatus) {
        if let Some(http) = &mut shown.http {
            (http.status, http.observed_at) = (None, None);
        }
    }
}
