//! What was decided about a gate.

use serde::Serialize;
use sluice_core::Question;
use sluice_core::gate::nested::{Inside, Said};
use sluice_core::offline::simulate::{Decision, Scene};
use sluice_core::revision::Revision;
use sluice_crds::gate::{GatekeeperVerdict, Override};
use sluice_crds::{GateSpec, State, Transition};

use crate::cluster::{Seen, key_of};

/// A gate, as it was decided.
pub(crate) struct Decided {
    pub(crate) spec: GateSpec,
    pub(crate) decision: Decision,
    /// The revision that it was decided about. None: any.
    pub(crate) revision: Option<Revision>,
    /// What else there is to say.
    pub(crate) notes: Vec<String>,
}

impl Decided {
    /// The gate of a scene, without notes.
    pub(crate) fn new(scene: &Scene, decision: Decision, revision: Option<&Revision>) -> Self {
        Self {
            spec: scene.gate().spec.clone(),
            decision,
            revision: revision.cloned(),
            notes: Vec::new(),
        }
    }

    /// For programs.
    pub(crate) fn data(&self) -> Data<'_> {
        let decision = &self.decision;
        let said = decision.said.iter().zip(&decision.verdicts);
        Data {
            gate: &decision.gate.name,
            namespace: &decision.gate.namespace,
            revision: self.revision.as_ref().map(ToString::to_string),
            at: decision.at.to_string(),
            state: decision.state,
            reason: &decision.reason,
            message: &decision.message,
            decided_by: decision.decided_by.as_deref(),
            forced: decision.r#override.as_ref(),
            next: decision.upcoming.first(),
            verdicts: said.map(|(said, told)| Keeper::of(said, told)).collect(),
            ignored: self.ignored().collect(),
        }
    }

    /// The same, as one of several things of different kinds.
    pub(crate) fn entry(&self) -> impl Serialize {
        Entry {
            kind: "Gate",
            data: self.data(),
            notes: &self.notes,
        }
    }

    /// What is wrong with the annotations that force the gate, in words.
    pub(crate) fn ignored(&self) -> impl Iterator<Item = String> {
        self.decision.complaints.iter().map(ToString::to_string)
    }
}

/// The gates that were checked for `decision`, each once and as it is decided itself. One that is not
/// there is mentioned in its sentence.
pub(crate) fn checked(
    seen: &Seen,
    decision: &sluice_crds::Decision,
    question: Question<'_>,
) -> Vec<Decided> {
    let mut names: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for name in decision.checked.iter().map(|checked| &*checked.gate) {
        let scene = key_of(name).and_then(|key| seen.scene(&key, question.now.at));
        if let Some(mut scene) = scene.filter(|_| !names.contains(&name)) {
            let decision = seen.decide(&mut scene, question);
            found.push(Decided::new(&scene, decision, question.revision));
            names.push(name);
        }
    }
    found
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Data<'a> {
    gate: &'a str,
    namespace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    at: String,
    state: State,
    reason: &'a str,
    message: &'a str,
    decided_by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forced: Option<&'a Override>,
    next: Option<&'a Transition>,
    verdicts: Vec<Keeper<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ignored: Vec<String>,
}

#[derive(Serialize)]
struct Entry<'a> {
    kind: &'static str,
    #[serde(flatten)]
    data: Data<'a>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
}

/// What a gatekeeper says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Keeper<'a> {
    #[serde(flatten)]
    told: &'a GatekeeperVerdict,
    /// When time changes its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes_at: Option<String>,
    /// The gates behind it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gates: Vec<Behind<'a>>,
}

/// A gate that another gate's gatekeeper names.
#[derive(Debug, Serialize)]
struct Behind<'a> {
    gate: &'a str,
    state: State,
    reason: &'a str,
    message: &'a str,
    verdicts: Vec<Keeper<'a>>,
}

impl<'a> Keeper<'a> {
    fn of(said: &'a Said, told: &'a GatekeeperVerdict) -> Self {
        Self {
            told,
            changes_at: said.changes.map(|at| at.to_string()),
            gates: said.behind.iter().map(Behind::of).collect(),
        }
    }
}

impl<'a> Behind<'a> {
    fn of(inside: &'a Inside) -> Self {
        let verdicts = inside.verdicts.iter();
        Self {
            gate: &inside.name,
            state: inside.state,
            reason: inside.reason,
            message: &inside.message,
            verdicts: verdicts.map(|said| Keeper::of(said, &said.told)).collect(),
        }
    }
}
