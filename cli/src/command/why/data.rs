//! Why, for programs: what the trees say, in fields.

use anyhow::Result;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;
use serde_json::Value;
use sluice_core::delivery::gated_source::KIND;
use sluice_core::offline::simulate::{self, Key};
use sluice_core::revision::Revision;
use sluice_core::{Now, Question};
use sluice_crds::gated_source::Admitted;
use sluice_crds::{Decision, GatedSource};

use super::checked;
use super::of_source::Around;
use crate::cluster::Seen;
use crate::command::source::{self, Waits};
use crate::explain::Decided;

/// A gate.
#[derive(Serialize)]
struct Gate<'a> {
    kind: &'static str,
    #[serde(flatten)]
    decided: Decided<'a>,
    /// What else there is to say.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
}

/// Whoever asks.
#[derive(Serialize)]
struct Consumer<'a> {
    kind: &'static str,
    decision: &'a Decision,
    gates: Vec<Value>,
}

/// A gated source.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Source<'a> {
    kind: &'static str,
    name: String,
    namespace: String,
    /// What is out.
    admitted: Option<&'a Admitted>,
    /// What would go out next, and what the gates say of it.
    waits: Option<Candidate>,
    /// The newest first.
    candidates: Vec<Candidate>,
    /// Those that were asked about what waits.
    gates: Vec<Value>,
    children: Vec<Child>,
    conditions: &'a [Condition],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// A revision, and what the gates say of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    revision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    decision: Decision,
}

/// An object of Flux that it makes or suspends.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Child {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) exists: bool,
    /// The revision that it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) serves: Option<String>,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
}

/// A gate, as it was decided.
pub(super) fn of_gate(
    decision: &simulate::Decision,
    revision: Option<&Revision>,
    notes: &[String],
) -> Result<Value> {
    let decided = Decided::about(decision, revision);
    Ok(serde_json::to_value(Gate {
        kind: "Gate",
        decided,
        notes,
    })?)
}

/// Whoever asks, with the gates that were asked.
pub(super) fn of_consumer(
    seen: &Seen,
    decision: &Decision,
    revision: Option<&Revision>,
    now: Now,
) -> Result<Value> {
    Ok(serde_json::to_value(Consumer {
        kind: "Consumer",
        decision,
        gates: gates(seen, decision, revision, now)?,
    })?)
}

/// A gated source, with the gates that were asked about what waits.
pub(super) fn of_source(
    seen: &Seen,
    source: &GatedSource,
    around: &[Around],
    now: Now,
) -> Result<Value> {
    let status = source.status.clone().unwrap_or_default();
    let admitted = status.admitted.as_ref();
    let waits = match source::waits(source) {
        Waits::For { revision, asked } => Some(Candidate {
            revision,
            since: None,
            decision: source::decide(seen, source, &asked, now),
        }),
        Waits::Nothing | Waits::Settled(_) => None,
    };
    let any = || source::ask(seen, source, None, now);
    let asked = waits.as_ref().map_or_else(any, |it| it.decision.clone());
    let candidates = status.candidates.iter().rev().map(|candidate| Candidate {
        revision: candidate.revision.clone(),
        since: Some(candidate.since.0.to_string()),
        decision: source::decide(seen, source, &source::revisions(candidate, admitted), now),
    });
    let key = Key::of(&source.metadata);
    Ok(serde_json::to_value(Source {
        kind: KIND,
        name: key.name,
        namespace: key.namespace,
        admitted,
        candidates: candidates.collect(),
        gates: gates(
            seen,
            &asked,
            source::revision_of(source, &asked).as_ref(),
            now,
        )?,
        waits,
        children: around.iter().map(Around::child).collect(),
        conditions: &status.conditions,
        warnings: source::warnings(source),
    })?)
}

/// The gates that were checked, each as it was decided.
fn gates(
    seen: &Seen,
    decision: &Decision,
    revision: Option<&Revision>,
    now: Now,
) -> Result<Vec<Value>> {
    let question = Question::new(now, revision);
    let each = checked(seen, decision, now).into_iter();
    each.map(|(mut scene, _)| of_gate(&seen.decide(&mut scene, question), revision, &[]))
        .collect()
}
