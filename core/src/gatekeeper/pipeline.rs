//! `pipeline`: what a Pipeline has admitted to one of its environments.
//!
//! What comes in: the spec, and what is known of the Pipeline that it names. What goes out: open for what
//! the status of the Pipeline says was admitted there. That status is the admission itself: it counts
//! only where the admission policies keep it from everybody but the controller.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::gatekeeper::PipelineRule;
use sluice_crds::pipeline::StrategyKind;
use sluice_crds::{Gatekeeper, Pipeline, State};

use super::Evidence;
use super::kind::{Basis, Judge, KindSpec, Known, Setup};
use super::named::Named;
use crate::revision::{self, Revision};
use crate::text::refusal::{Refusal, Refusals};
use crate::verdict::question::Question;
use crate::verdict::{Opinion, Reason};

/// What was found in its place: the evidence of the rule.
#[derive(Clone, Debug, PartialEq)]
enum Found {
    Missing,
    Forbidden,
    Unreadable(Arc<str>),
    WithoutEnvironment,
    /// What the environment was admitted, the newest first.
    Environment {
        admitted: Vec<String>,
        /// How it is promoted to instead of by an admission. None: by an admission.
        otherwise: Option<Otherwise>,
    },
}

/// Why an environment is never admitted anything.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Otherwise {
    /// It is the first one.
    First,
    /// Nothing is said of how it is promoted to.
    People,
    /// Another strategy.
    By(&'static str),
}

/// The evidence with who stands for it.
#[derive(Clone, Debug, PartialEq)]
struct Observed {
    found: Found,
    /// Whether it is verified that only the controller writes statuses.
    verified: bool,
}

impl Found {
    fn of(named: &Named<Arc<Pipeline>>, environment: &str) -> Self {
        let pipeline = match named {
            Named::Missing => return Found::Missing,
            Named::Forbidden => return Found::Forbidden,
            Named::Unreadable(why) => return Found::Unreadable(Arc::clone(why)),
            Named::Here(pipeline) => pipeline,
        };
        let spec = &pipeline.spec;
        let mut environments = spec.environments.iter().enumerate();
        let Some((place, known)) = environments.find(|(_, it)| it.name == environment) else {
            return Found::WithoutEnvironment;
        };
        let status = pipeline.status.as_ref();
        let status = status.and_then(|it| it.environments.get(environment));
        let admitted = status.into_iter().flat_map(|it| &it.admitted);
        let strategy = spec.promotion_of(known).and_then(|it| it.strategy.kind());
        Found::Environment {
            admitted: admitted.map(|it| it.revision.clone()).collect(),
            otherwise: match strategy {
                _ if place == 0 => Some(Otherwise::First),
                None => Some(Otherwise::People),
                Some(StrategyKind::Admission(_)) => None,
                Some(other) => Some(Otherwise::By(other.as_str())),
            },
        }
    }
}

impl KindSpec for PipelineRule {
    fn judge(&self, setup: &Setup<'_>) -> Result<Arc<dyn Judge>, Refusals> {
        check(self)?;
        let observed: Option<Arc<Observed>> = setup.evidence.shared();
        let admitted = match observed.as_deref().map(|it| &it.found) {
            Some(Found::Environment { admitted, .. }) => admitted.as_slice(),
            Some(_) | None => &[],
        };
        // What is no revision is the same as none.
        let admitted = admitted.iter().filter_map(|it| Revision::parse(it).ok());
        Ok(Arc::new(Admitting {
            spec: self.clone(),
            admitted: admitted.collect(),
            observed,
        }))
    }

    fn complete(&self, object: &Gatekeeper, _: Evidence, known: &dyn Known) -> Evidence {
        match known.pipeline(object, self) {
            None => Evidence::default(),
            Some(named) => Evidence::of(Observed {
                found: Found::of(&named, &self.environment),
                verified: known.is_verified(object),
            }),
        }
    }
}

/// What is wrong with a spec.
fn check(spec: &PipelineRule) -> Result<(), Refusals> {
    let PipelineRule {
        name,
        namespace: _,
        environment,
    } = spec;
    let fields = [("name", name), ("environment", environment)];
    let empty = fields.into_iter().filter(|(_, text)| text.is_empty());
    let refuse = |(field, _)| {
        let field = format!("spec.pipeline.{field}");
        Refusal::new(
            field,
            "it is empty",
            "name a Pipeline and an environment of it",
        )
    };
    Refusals::unless_empty(empty.map(refuse).collect(), ())
}

/// The rule with its evidence.
#[derive(Debug)]
struct Admitting {
    spec: PipelineRule,
    /// What the environment was admitted.
    admitted: Vec<Revision>,
    /// None: nobody has looked.
    observed: Option<Arc<Observed>>,
}

impl Judge for Admitting {
    fn opinion(&self, question: Question<'_>) -> Opinion {
        let Some(Observed { found, verified }) = self.observed.as_deref() else {
            return Opinion::closed(Reason::NotObserved);
        };
        match found {
            Found::Missing => return Opinion::closed(Reason::PipelineMissing),
            Found::Forbidden => return Opinion::closed(Reason::CrossNamespaceRef),
            Found::Unreadable(_) => return Opinion::closed(Reason::EvidenceBroken),
            Found::WithoutEnvironment => return Opinion::closed(Reason::EnvironmentMissing),
            Found::Environment { .. } => {}
        }
        if self.admitted.is_empty() {
            return Opinion::closed(Reason::NothingAdmitted);
        }
        if !verified {
            return Opinion::closed(Reason::UnverifiedIdentity);
        }
        match question.revision {
            None => Opinion::of(State::Conditional, Reason::DependsOnRevision),
            Some(revision) if self.admitted.iter().any(|it| it.is(revision)) => {
                Opinion::of(State::Open, Reason::Admitted)
            }
            Some(_) => Opinion::closed(Reason::NotAdmitted),
        }
    }

    fn explain(&self, opinion: &Opinion, question: Question<'_>) -> String {
        let namespace = self.spec.namespace.as_ref().map(|it| format!("{it}/"));
        let name = format!("{}{}", namespace.unwrap_or_default(), self.spec.name);
        let pipeline = format!("the Pipeline {name}");
        let environment = &self.spec.environment;
        let Some(Observed { found, .. }) = self.observed.as_deref() else {
            return format!("{pipeline} has not been looked at yet");
        };
        let otherwise = match found {
            Found::Missing => return format!("there is no Pipeline {name}"),
            Found::Forbidden => {
                return format!(
                    "{pipeline} is in another namespace, which --no-cross-namespace-refs or \
                     --watch-all-namespaces=false forbids"
                );
            }
            Found::Unreadable(why) => return format!("{pipeline} cannot be read: {why}"),
            Found::WithoutEnvironment => {
                return format!("{pipeline} has no environment {environment}");
            }
            Found::Environment { otherwise, .. } => *otherwise,
        };
        match (opinion.reason, question.revision) {
            (Reason::NothingAdmitted, _) => {
                let why = otherwise.map(Otherwise::words).unwrap_or_default();
                format!("{pipeline} has admitted nothing to {environment}{why}")
            }
            (Reason::UnverifiedIdentity, _) => format!(
                "{pipeline} says what it admitted to {environment}, but nobody verified who wrote \
                 that; install the admission policies of the chart, or run the controller with \
                 --trust-unverified-identity"
            ),
            (Reason::Admitted, Some(revision)) => {
                format!("{pipeline} has admitted {revision} to {environment}")
            }
            (_, Some(revision)) => format!(
                "{pipeline} has not admitted {revision} to {environment}, but {}",
                self.newest()
            ),
            (_, None) => format!(
                "it depends on the revision: {pipeline} has admitted {} to {environment}",
                self.newest()
            ),
        }
    }

    fn basis(&self) -> Basis {
        Basis::Texts
    }

    fn is_unread(&self, question: Question<'_>) -> bool {
        question.revision.is_none() && self.observed.is_none()
    }

    fn good_until(&self) -> Option<Timestamp> {
        None
    }
}

impl Admitting {
    /// The newest one that was admitted, in short.
    fn newest(&self) -> String {
        let newest = self.admitted.first().map(|it| revision::short(it.as_str()));
        newest.unwrap_or_default()
    }
}

impl Otherwise {
    /// What follows `has admitted nothing to …`.
    fn words(self) -> String {
        match self {
            Otherwise::First => {
                ", which is its first environment: nothing is promoted there".to_owned()
            }
            Otherwise::People => {
                ", which has no promotion; write one with strategy: {admission: {}}".to_owned()
            }
            Otherwise::By(strategy) => format!(
                ", to which it promotes by {strategy}; write strategy: {{admission: {{}}}} instead"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
