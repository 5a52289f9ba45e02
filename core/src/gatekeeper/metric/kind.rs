//! How `metric` answers as a kind of gatekeeper: its range with the results of the query.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::Setting;
use sluice_crds::gatekeeper::{EvidenceStatus, Metric};

use super::{Answer, Observed, Rule, cause, explain, opinion, read};
use crate::evidence::polling::Trouble;
use crate::gatekeeper::Evidence;
use crate::gatekeeper::given::{self, Given, Sight, lasting};
use crate::gatekeeper::kind::{Basis, Judge, KindSpec, Setup};
use crate::text::refusal::Refusals;
use crate::verdict::Opinion;
use crate::verdict::question::Question;

const FIELD: &str = "spec.metric";

impl KindSpec for Metric {
    fn judge(&self, setup: &Setup<'_>) -> Result<Arc<dyn Judge>, Refusals> {
        Ok(Arc::new(Measured {
            rule: read(self, FIELD)?,
            on_error: setup.on_error,
            observed: setup.evidence.shared(),
        }))
    }

    fn given(&self, given: Given, during: &given::Course<'_>) -> Result<Evidence, String> {
        let rule = read(self, FIELD).map_err(given::refused)?;
        let since = during.since(&given);
        let before = Observed::next(None, attempt(given)?, &rule, since);
        Ok(Evidence::of(Observed {
            polled: lasting(before.polled, during.start),
            // It is answered all the time.
            within_until: before.within_until.map(|_| Timestamp::MAX),
            ..before
        }))
    }
}

/// The result of the query that somebody states.
fn attempt(given: Given) -> Result<Result<Answer, Trouble>, String> {
    match given.sight() {
        Some(Sight::Value(value)) => {
            let text = value.as_str().map(str::to_owned);
            let text = text.unwrap_or_else(|| value.to_string());
            let answer = Answer::of(&text);
            let answer = answer.ok_or_else(|| format!("value: `{text}` is not a number"))?;
            Ok(Ok(answer))
        }
        Some(Sight::Trouble(trouble)) => Ok(Err(trouble)),
        Some(Sight::Answer(..) | Sight::Objects(_)) | None => {
            Err("it is of the kind metric: write value, unavailable or broken".to_owned())
        }
    }
}

/// The rule with its evidence.
#[derive(Debug)]
struct Measured {
    rule: Rule,
    on_error: Setting,
    /// None: it was not asked.
    observed: Option<Arc<Observed>>,
}

impl Judge for Measured {
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
        let observed = self.observed.as_ref();
        EvidenceStatus {
            metric: observed.map(|observed| observed.status(&self.rule)),
            ..EvidenceStatus::default()
        }
    }

    fn remove_measurements(&self, shown: &mut EvidenceStatus) {
        if let Some(metric) = &mut shown.metric {
            (metric.value, metric.observed_at) = (None, None);
        }
    }
}
