//! Why a gated source holds something back, or lets it out, in words.
//!
//! What comes in: everything about it. What goes out: a tree: what is out, what waits and what the
//! gates say of each, the children, the conditions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sluice_core::delivery::gated_source::{self, KIND};
use sluice_core::offline::simulate::Key;
use sluice_core::revision::short;
use sluice_crds::flux::{FluxKind, FluxObject};
use sluice_crds::gated_source::{Admitted, Origin, Strategy, marks};
use sluice_crds::{CheckedGate, GatedSource, GatedSourceStatus};

use crate::cluster::{self, Around};
use crate::explain::{self, Branch};
use crate::instant::Zone;
use crate::output;
use crate::view::{Source, Waits, turn, unready};

/// Everything about it, and the trees of the gates that hold back what is newest, or let it out; then
/// of what goes out before it, if that is another one.
pub(super) fn told(view: &Source<'_>, zone: &Zone) -> String {
    let mut text = head(view);
    text += &explain::branches(&branches(view, zone));
    let trees = view.gates.iter().map(|gate| explain::tree(gate, zone));
    text.extend(trees);
    let Some((next, gates)) = &view.before else {
        return text;
    };
    let who = format!("before it: {}", short(&next.revision));
    text += &explain::sum(&who, &next.decision);
    // Those that say the same of both have been shown.
    let says = |gate: &CheckedGate| (gate.gate.clone(), gate.state, gate.message.clone());
    let known: Vec<_> = view.decision.checked.iter().map(says).collect();
    for gate in gates {
        let name = gate.decision.gate.to_string();
        let mut checked = next.decision.checked.iter();
        let is_known = checked
            .find(|it| it.gate == name)
            .is_some_and(|it| known.contains(&says(it)));
        if !is_known {
            text += &explain::tree(gate, zone);
        }
    }
    text
}

/// What waits, and what its gates say of that.
fn head(view: &Source<'_>) -> String {
    let Source {
        source, decision, ..
    } = view;
    let name = format!("{KIND} {}", Key::of(&source.metadata));
    match &view.waits {
        Waits::For { revision, .. } => {
            let who = format!("{name}: {}", short(revision));
            match not_held(source) {
                Some(why) => format!("{who} is unavailable: {why}\n"),
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
    let is_it = |it: &&Condition| (&*it.type_, &*it.reason) == ("Blocked", "RevisionNotHeld");
    let blocked = status.conditions.iter().find(is_it).filter(|_| is_of_now)?;
    Some(&blocked.message)
}

fn branches(view: &Source<'_>, zone: &Zone) -> Vec<Branch> {
    let Source { source, status, .. } = view;
    let strategy = source.spec.strategy;
    let mut branches = vec![Branch::of(purpose(source))];
    if source.spec.suspend {
        let line = "suspended: it admits nothing and changes nothing until it is resumed";
        branches.push(Branch::of(line.to_owned()));
    }
    branches.extend(source.spec.revision.as_ref().map(|asked| {
        let asked = short(asked);
        Branch::of(format!("spec.revision asks for {asked}, and for no other"))
    }));
    if strategy != Strategy::Suspend {
        branches.push(Branch::of(admitted(status.admitted.as_ref(), zone)));
    }
    if !view.candidates.is_empty() {
        branches.push(candidates(view, zone));
    }
    branches.extend(turn(status).map(|at| {
        let at = zone.text(at.0);
        Branch::of(format!(
            "spread: its turn comes {at}, if the gates still admit it then"
        ))
    }));
    let around = view.around.iter();
    branches.extend(around.map(|it| Branch::of(line(it, strategy))));
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
fn candidates(view: &Source<'_>, zone: &Zone) -> Branch {
    let each = view.candidates.iter().map(|candidate| {
        let decision = &candidate.decision;
        let (what, since) = (short(&candidate.revision), zone.text(candidate.since));
        let allowed = output::allowed(decision.allowed);
        let mut lines = vec![
            format!("{what} since {since} is {allowed}"),
            decision.message.clone(),
        ];
        let next = decision.next.as_ref().map(|next| zone.text(next.0));
        lines.extend(next.map(|next| format!("that may change {next}")));
        Branch {
            lines,
            inside: Vec::new(),
        }
    });
    let count = match view.candidates.len() {
        1 => "1 candidate".to_owned(),
        many => format!("{many} candidates, the newest first"),
    };
    let head = match (&view.source.spec.revision, view.candidates.len()) {
        (Some(_), _) => format!("{count}: only what spec.revision asks for goes out"),
        (None, 1) => count,
        (None, _) => format!("{count}: the newest that is allowed goes out"),
    };
    Branch {
        lines: vec![head],
        inside: each.collect(),
    }
}

/// What is said of a child, or of a source that is suspended.
fn line(around: &Around, strategy: Strategy) -> String {
    let name = format!("{} {}", around.kind.as_str(), around.name);
    let object = match &around.object {
        Err(error) => return format!("{name}: {error}"),
        Ok(None) => return format!("{name} is not there"),
        Ok(Some(object)) => object,
    };
    let mut said = match strategy {
        Strategy::Suspend => suspension(&name, object),
        Strategy::Pin | Strategy::Artifact => service(&name, object),
    };
    if let Some(not) = unready(&object.status.conditions) {
        said += &format!(", and is not Ready ({}): {}", not.reason, not.message);
    }
    if strategy != Strategy::Suspend && cluster::parent(object).is_none() {
        said += ", and is no child: without the annotation it is left alone";
    }
    said
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
