//! Why a gated source holds something back, or lets it out.
//!
//! What comes in: the GatedSource, its gates and policies, its children, an instant. What goes out:
//! a tree: what is out, what waits and what the gates say of each, the children, the conditions.

use anyhow::Result;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::ListParams;
use sluice_core::delivery::gated_source::{self, KIND};
use sluice_core::offline::simulate::Key;
use sluice_core::revision::short;
use sluice_core::{Now, Question};
use sluice_crds::flux::{FluxKind, FluxObject};
use sluice_crds::gated_source::{Admitted, Candidate, Origin, Strategy, marks};
use sluice_crds::{CheckedGate, Decision, GatedSource, GatedSourceStatus, State};

use super::super::source::{self, Waits};
use super::checked;
use super::data::Child;
use crate::cluster::{self, Connection, Seen, explain_flux};
use crate::explain::{self, Branch};
use crate::instant::Zone;
use crate::output;

/// The conditions of objects of Flux and of ours.
const READY: &str = "Ready";
/// The condition of a gated source that something waits at.
const BLOCKED: &str = "Blocked";

/// An object of Flux around a gated source.
pub(super) struct Around {
    kind: FluxKind,
    name: String,
    /// None: it is not there. Err: it cannot be read.
    object: Result<Option<FluxObject>>,
}

/// The children of a gated source; where it makes none, the sources that it suspends.
pub(super) async fn around(connection: &Connection, source: &GatedSource) -> Vec<Around> {
    let mut around = Vec::new();
    for wanted in gated_source::wanted(source) {
        let kind = wanted.child(source.spec.strategy);
        let name = match source.spec.strategy {
            Strategy::Pin | Strategy::Artifact => wanted.target,
            Strategy::Suspend => wanted.name,
        };
        let object = cluster::flux_object(connection, kind, &connection.namespace, &name).await;
        around.push(Around { kind, name, object });
    }
    let Some(selector) = &source.spec.selector else {
        return around;
    };
    let kind = FluxKind::Source(selector.kind);
    let labels = selector.match_labels.iter();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let page = ListParams::default().labels(&labels.join(","));
    let api = cluster::flux(&connection.client, kind, &connection.namespace);
    match api.list(&page).await {
        Ok(found) => around.extend(found.items.into_iter().map(|object| Around {
            kind,
            name: object.metadata.name.clone().unwrap_or_default(),
            object: Ok(Some(object)),
        })),
        Err(error) => around.push(Around {
            kind,
            name: format!("with {}", labels.join(",")),
            object: Err(explain_flux(error, "list the sources that it selects")),
        }),
    }
    around
}

/// Everything about it, and the trees of the gates that hold back what is newest, or let it out; then
/// of what goes out before it, if that is another one.
pub(super) fn told(seen: &Seen, source: &GatedSource, around: &[Around], now: Now) -> String {
    let status = source.status.clone().unwrap_or_default();
    let waits = source::waits(source);
    let decision = match &waits {
        Waits::For { asked, .. } => source::decide(seen, source, asked, now),
        Waits::Nothing | Waits::Settled(_) => source::ask(seen, source, None, now),
    };
    let name = format!("{KIND} {}", Key::of(&source.metadata));
    let zone = seen.zone(now.at);
    let mut text = head(&name, source, &waits, &decision);
    text += &explain::branches(&branches(seen, source, &status, around, now, &zone));
    text += &trees(seen, source, &decision, None, now, &zone);
    if let Some((candidate, next)) = next(seen, source, &status, now)
        && !matches!(&waits, Waits::For { revision, .. } if *revision == candidate.revision)
    {
        text += &explain::sum(&format!("before it: {}", short(&candidate.revision)), &next);
        text += &trees(seen, source, &next, Some(&decision), now, &zone);
    }
    text
}

/// The newest candidate that its gates admit now, with what they say. None where `spec.revision` asks
/// for one: no other goes out.
fn next<'s>(
    seen: &Seen,
    source: &GatedSource,
    status: &'s GatedSourceStatus,
    now: Now,
) -> Option<(&'s Candidate, Decision)> {
    if source.spec.revision.is_some() {
        return None;
    }
    let decide = |candidate: &'s Candidate| {
        let asked = source::revisions(candidate, status.admitted.as_ref());
        (candidate, source::decide(seen, source, &asked, now))
    };
    let mut known = status.candidates.iter().rev().map(decide);
    known.find(|(_, decision)| decision.allowed)
}

/// The trees of the gates that were checked, each once; where they say the same of `told` as well,
/// they have been shown with that.
fn trees(
    seen: &Seen,
    source: &GatedSource,
    decision: &Decision,
    told: Option<&Decision>,
    now: Now,
    zone: &Zone,
) -> String {
    let revision = source::revision_of(source, decision);
    let question = Question::new(now, revision.as_ref());
    let known = told.map_or(&[][..], |told| &told.checked);
    let is_known = |checked: &CheckedGate| {
        let mut known = known.iter();
        known.any(|it| {
            (&it.gate, it.state, &it.message) == (&checked.gate, checked.state, &checked.message)
        })
    };
    let mut text = String::new();
    for (mut scene, _) in
        (checked(seen, decision, now).into_iter()).filter(|(_, gate)| !is_known(gate))
    {
        let told = seen.decide(&mut scene, question);
        text += &explain::tree(&scene, &told, revision.as_ref(), zone, &[]);
    }
    text
}

fn head(name: &str, source: &GatedSource, waits: &Waits, decision: &Decision) -> String {
    match waits {
        Waits::For { revision, .. } => {
            let who = format!("{name}: {}", short(revision));
            match not_held(source) {
                Some(why) => format!("{who} cannot be had: {why}\n"),
                None => explain::sum(&who, decision),
            }
        }
        Waits::Settled(revision) => {
            let revision = short(revision);
            format!("{name}: nothing is pending: spec.revision asks for {revision}, which is out\n")
        }
        Waits::Nothing if source.spec.strategy == Strategy::Suspend => {
            let who = format!("{name}: whatever its sources bring");
            explain::sum(&who, decision)
        }
        Waits::Nothing => format!("{name}: nothing is pending\n"),
    }
}

/// Why the controller cannot have what the present spec asks for.
fn not_held(source: &GatedSource) -> Option<&str> {
    let status = source.status.as_ref()?;
    let is_of_now = status.observed_generation == source.metadata.generation;
    let is_it = |it: &&Condition| (&*it.type_, &*it.reason) == (BLOCKED, "RevisionNotHeld");
    let blocked = status.conditions.iter().find(is_it).filter(|_| is_of_now)?;
    Some(&blocked.message)
}

fn branches(
    seen: &Seen,
    source: &GatedSource,
    status: &GatedSourceStatus,
    around: &[Around],
    now: Now,
    zone: &Zone,
) -> Vec<Branch> {
    let mut branches = vec![Branch::of(purpose(source))];
    if source.spec.suspend {
        let line = "suspended: it admits nothing and changes nothing until it is resumed";
        branches.push(Branch::of(line.to_owned()));
    }
    branches.extend(source.spec.revision.as_ref().map(|asked| {
        let asked = short(asked);
        Branch::of(format!("spec.revision asks for {asked}, and for no other"))
    }));
    if source.spec.strategy != Strategy::Suspend {
        branches.push(Branch::of(admitted(status.admitted.as_ref(), zone)));
    }
    if !status.candidates.is_empty() {
        branches.push(candidates(seen, source, status, now, zone));
    }
    let turn = status.pending.as_ref().and_then(|it| it.admit_at.as_ref());
    branches.extend(turn.map(|at| {
        let at = zone.text(at.0);
        Branch::of(format!(
            "spread: its turn comes {at}, if the gates still admit it then"
        ))
    }));
    let strategy = source.spec.strategy;
    branches.extend(around.iter().map(|it| Branch::of(it.line(strategy))));
    branches.extend(conditions(source, status));
    branches
}

/// What it is for.
fn purpose(source: &GatedSource) -> String {
    let strategy = source.spec.strategy;
    let wanted = gated_source::wanted(source);
    let each = wanted.iter().map(|it| {
        let source = format!("{} {}", it.kind.as_str(), it.name);
        match strategy {
            Strategy::Suspend => source,
            Strategy::Pin | Strategy::Artifact => {
                format!("{source} as {} {}", it.child(strategy).as_str(), it.target)
            }
        }
    });
    let mut named = each.collect::<Vec<_>>().join(", ");
    if let Some(selector) = &source.spec.selector {
        named = format!(
            "the {} that it selects",
            FluxKind::Source(selector.kind).plural()
        );
    }
    match strategy {
        Strategy::Pin => format!("pins {named}"),
        Strategy::Artifact => format!("serves {named}"),
        Strategy::Suspend => format!("suspends {named} while its gates are closed"),
    }
}

fn admitted(admitted: Option<&Admitted>, zone: &Zone) -> String {
    let Some(Admitted {
        revision,
        at,
        origin,
        parts: _,
        short: _,
    }) = admitted
    else {
        return "nothing has gone out yet".to_owned();
    };
    let how = match origin {
        Origin::Gates => "its gates admitted it",
        Origin::Baseline => "it ran already: the baseline",
        Origin::Adopted => "found at the child",
    };
    format!(
        "{} is out since {} ({how})",
        short(revision),
        zone.text(at.0)
    )
}

/// Each with what the gates say of it here and now.
fn candidates(
    seen: &Seen,
    source: &GatedSource,
    status: &GatedSourceStatus,
    now: Now,
    zone: &Zone,
) -> Branch {
    let each = status.candidates.iter().rev().map(|candidate| {
        let asked = source::revisions(candidate, status.admitted.as_ref());
        let decision = source::decide(seen, source, &asked, now);
        let (state, word) = match decision.allowed {
            true => (State::Open, "allowed"),
            false => (State::Closed, "not allowed"),
        };
        let style = output::style(state);
        let mut lines = vec![
            format!(
                "{} since {} is {style}{word}{style:#}",
                short(&candidate.revision),
                zone.text(candidate.since.0),
            ),
            decision.message.clone(),
        ];
        let next = decision.next.as_ref().map(|next| zone.text(next.0));
        lines.extend(next.map(|next| format!("that may change {next}")));
        Branch {
            lines,
            inside: Vec::new(),
        }
    });
    let count = match status.candidates.len() {
        1 => "1 candidate".to_owned(),
        many => format!("{many} candidates, the newest first"),
    };
    let head = match (&source.spec.revision, status.candidates.len()) {
        (Some(_), _) => format!("{count}: only what spec.revision asks for goes out"),
        (None, 1) => count,
        (None, _) => format!("{count}: the newest that is allowed goes out"),
    };
    Branch {
        lines: vec![head],
        inside: each.collect(),
    }
}

impl Around {
    /// The same for programs.
    pub(super) fn child(&self) -> Child {
        let object = self.object.as_ref().ok().and_then(Option::as_ref);
        let artifact = object.and_then(|it| it.status.artifact.as_ref());
        let mut conditions = object.into_iter().flat_map(|it| &it.status.conditions);
        let not_ready = conditions.find(|it| is_unready(it));
        let unreadable = self.object.as_ref().err().map(ToString::to_string);
        Child {
            kind: self.kind.as_str(),
            name: self.name.clone(),
            exists: object.is_some(),
            serves: artifact.map(|it| it.revision.clone()),
            problem: unreadable.or(not_ready.map(|it| it.message.clone())),
        }
    }

    fn line(&self, strategy: Strategy) -> String {
        let name = format!("{} {}", self.kind.as_str(), self.name);
        let object = match &self.object {
            Err(error) => return format!("{name}: {error}"),
            Ok(None) => return format!("{name} is not there"),
            Ok(Some(object)) => object,
        };
        let mut said = match strategy {
            Strategy::Suspend => suspension(&name, object),
            Strategy::Pin | Strategy::Artifact => service(&name, object),
        };
        let mut conditions = object.status.conditions.iter();
        if let Some(not) = conditions.find(|it| is_unready(it)) {
            said += &format!(", and is not Ready ({}): {}", not.reason, not.message);
        }
        if strategy != Strategy::Suspend && cluster::parent(object).is_none() {
            said += ", and is no child: without the annotation it is left alone";
        }
        said
    }
}

fn is_unready(condition: &Condition) -> bool {
    condition.type_ == READY && condition.status != "True"
}

fn service(name: &str, object: &FluxObject) -> String {
    match &object.status.artifact {
        Some(artifact) => format!("{name} serves {}", short(&artifact.revision)),
        None => format!("{name} serves nothing"),
    }
}

fn suspension(name: &str, object: &FluxObject) -> String {
    let suspended = object.spec.get("suspend") == Some(&true.into());
    match (suspended, cluster::mark(object, marks::SUSPENDED_BY)) {
        (true, Some(by)) => format!("{name} is suspended by {by}"),
        (true, None) => format!("{name} is suspended, and not by a gated source"),
        (false, _) => service(name, object),
    }
}

/// The conditions in words, and what to say where there are none.
fn conditions(source: &GatedSource, status: &GatedSourceStatus) -> Vec<Branch> {
    if status.conditions.is_empty() {
        let line = "it has no status: no controller has seen it yet";
        return vec![Branch::of(line.to_owned())];
    }
    let mut said: Vec<Branch> = (status.conditions.iter())
        .map(|it| {
            let is = match it.status.as_str() {
                "True" => String::new(),
                "False" => "not ".to_owned(),
                other => format!("{other} whether "),
            };
            Branch::of(format!("{is}{} ({}): {}", it.type_, it.reason, it.message))
        })
        .collect();
    if status.observed_generation != source.metadata.generation {
        let line = "its status speaks of an earlier spec: the controller has not looked yet";
        said.push(Branch::of(line.to_owned()));
    }
    said
}
