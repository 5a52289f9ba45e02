//! Decisions in words, for people and for programs.

use std::fmt::Write;

use serde::Serialize;
use sluice_core::Refusal;
use sluice_core::gate::nested::{Inside, Said};
use sluice_core::offline::simulate::{Decision, Scene};
use sluice_core::revision::Revision;
use sluice_core::verdict::Reason;
use sluice_crds::gate::{GatekeeperVerdict, Override};
use sluice_crds::{Require, State, Transition};

use crate::instant::Zone;
use crate::output;

/// A decision for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Decided<'a> {
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

/// What a gatekeeper says, for programs.
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

/// A gate that another gate's gatekeeper names, for programs.
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

/// What is wrong with the annotations that force a gate, in words.
pub(crate) fn ignored(complaints: &[Refusal]) -> Vec<String> {
    complaints.iter().map(ToString::to_string).collect()
}

impl<'a> Decided<'a> {
    /// What was decided about `revision`, or about any.
    pub(crate) fn about(decision: &'a Decision, revision: Option<&Revision>) -> Self {
        let said = decision.said.iter().zip(&decision.verdicts);
        Self {
            gate: &decision.gate.name,
            namespace: &decision.gate.namespace,
            revision: revision.map(ToString::to_string),
            at: decision.at.to_string(),
            state: decision.state,
            reason: &decision.reason,
            message: &decision.message,
            decided_by: decision.decided_by.as_deref(),
            forced: decision.r#override.as_ref(),
            next: decision.upcoming.first(),
            verdicts: said.map(|(said, told)| Keeper::of(said, told)).collect(),
            ignored: ignored(&decision.complaints),
        }
    }
}

/// A decision in one line.
pub(crate) fn line(decision: &Decision) -> String {
    let Decision {
        gate,
        state,
        reason,
        message,
        ..
    } = decision;
    format!(
        "{} is {} ({reason}): {message}",
        gate.name,
        output::state(*state)
    )
}

/// What several gates come to, in one line: whether `who` may go on.
pub(crate) fn sum(who: &str, decision: &sluice_crds::Decision) -> String {
    let (state, word) = match decision.allowed {
        true => (State::Open, "allowed"),
        false => (State::Closed, "not allowed"),
    };
    let style = output::style(state);
    let is = if who.is_empty() { "" } else { " is " };
    format!("{who}{is}{style}{word}{style:#}: {}\n", decision.message)
}

/// A branch of a tree: its lines, and the branches inside.
#[derive(Default)]
pub(crate) struct Branch {
    pub(crate) lines: Vec<String>,
    pub(crate) inside: Vec<Branch>,
}

impl Branch {
    pub(crate) fn of(line: String) -> Self {
        Self {
            lines: vec![line],
            inside: Vec::new(),
        }
    }
}

/// How a tree is drawn.
struct Drawing {
    /// Before a branch, before the last one, beside one, beside the last one.
    glyphs: [&'static str; 4],
    /// None: lines are as long as they are.
    columns: Option<usize>,
}

impl Drawing {
    fn new() -> Self {
        let glyphs = match output::is_unicode() {
            true => ["├─ ", "└─ ", "│  ", "   "],
            false => ["|- ", "`- ", "|  ", "   "],
        };
        Self {
            glyphs,
            columns: output::width(),
        }
    }

    fn draw(&self, branches: &[Branch], before: &str, text: &mut String) {
        let [more, last, beside, beneath] = self.glyphs;
        for (n, branch) in branches.iter().enumerate() {
            let is_last = n + 1 == branches.len();
            let mut lead = if is_last { last } else { more };
            let after = if is_last { beneath } else { beside };
            let taken = before.chars().count() + lead.chars().count();
            let room = self
                .columns
                .map_or(usize::MAX, |columns| columns.saturating_sub(taken));
            for line in branch
                .lines
                .iter()
                .flat_map(|line| output::wrapped(line, room))
            {
                // Writing to a String does not fail.
                let _ = writeln!(text, "{before}{lead}{line}");
                lead = after;
            }
            self.draw(&branch.inside, &format!("{before}{after}"), text);
        }
    }
}

/// Branches one below the other.
pub(crate) fn branches(branches: &[Branch]) -> String {
    let mut text = String::new();
    Drawing::new().draw(branches, "", &mut text);
    text
}

/// A decision about `revision`, or about any, with everything that led to it, as a tree, whose
/// instants are in `zone`. `notes` are further branches.
pub(crate) fn tree(
    scene: &Scene,
    decision: &Decision,
    revision: Option<&Revision>,
    zone: &Zone,
    notes: &[String],
) -> String {
    let mut branches = vec![
        keepers(scene, decision, zone),
        Branch::of(force(decision, zone)),
    ];
    let ignored = ignored(&decision.complaints).into_iter();
    branches.extend(ignored.map(|why| Branch::of(format!("ignored: {why}"))));
    branches.push(Branch::of(next(decision, zone)));
    branches.extend(notes.iter().cloned().map(Branch::of));

    let Decision {
        gate,
        state,
        reason,
        ..
    } = decision;
    let about = revision.map(|revision| format!(" for {revision}"));
    let mut text = format!(
        "Gate {gate} is {}{} ({reason})\n",
        output::state(*state),
        about.unwrap_or_default()
    );
    Drawing::new().draw(&branches, "", &mut text);
    text
}

fn keepers(scene: &Scene, decision: &Decision, zone: &Zone) -> Branch {
    let spec = &scene.gate().spec;
    if spec.suspend {
        return Branch::of("suspended: it counts as closed until it is resumed".to_owned());
    }
    let head = match (decision.verdicts.len(), spec.require) {
        (0, _) => format!("no gatekeepers: {} by default", spec.default),
        (1, _) => "1 gatekeeper".to_owned(),
        (many, Require::All) => format!("{many} gatekeepers, all of which must admit"),
        (many, Require::OneOf) => format!("{many} gatekeepers, one of which must admit"),
    };
    // What is said of a gatekeeper in the end may be more than its gate knows.
    let said = decision.said.iter().zip(&decision.verdicts);
    let inside = said.map(|(said, told)| {
        let decides = decision.decided_by.as_ref() == Some(&told.gatekeeper);
        keeper(
            said,
            told,
            zone,
            if decides { ", which decides" } else { "" },
        )
    });
    Branch {
        lines: vec![head],
        inside: inside.collect(),
    }
}

/// What one gatekeeper says and until when, with the gates behind it.
fn keeper(said: &Said, told: &GatekeeperVerdict, zone: &Zone, decides: &str) -> Branch {
    let GatekeeperVerdict {
        gatekeeper,
        verdict,
    } = told;
    let until = said.changes.map(|at| format!(" until {}", zone.text(at)));
    let until = until.unwrap_or_default();
    let (state, reason) = (output::state(verdict.state), &verdict.reason);
    let mut lines = vec![format!(
        "{gatekeeper} is {state}{until} ({reason}){decides}"
    )];
    // The gates behind it say the same again, each for itself.
    if said.behind.is_empty() {
        lines.push(verdict.message.clone());
    }
    Branch {
        lines,
        inside: (said.behind.iter())
            .map(|gate| gate_inside(gate, zone))
            .collect(),
    }
}

/// A gate that another gate's gatekeeper names.
fn gate_inside(gate: &Inside, zone: &Zone) -> Branch {
    let (state, reason) = (output::state(gate.state), gate.reason);
    let mut lines = vec![format!("gate {} is {state} ({reason})", gate.name)];
    if gate.verdicts.is_empty() || gate.reason == Reason::Forced.as_str() {
        lines.push(gate.message.clone());
    }
    if gate.require == Some(Require::OneOf) && gate.verdicts.len() > 1 {
        lines.push("one of its gatekeepers must admit".to_owned());
    }
    let keepers = gate.verdicts.iter();
    Branch {
        lines,
        inside: keepers
            .map(|said| keeper(said, &said.told, zone, ""))
            .collect(),
    }
}

fn force(decision: &Decision, zone: &Zone) -> String {
    match &decision.r#override {
        Some(force) => format!(
            "forced {} by {} since {} until {}: {}",
            force.state,
            force.by,
            zone.text(force.since.0),
            zone.text(force.until.0),
            force.reason
        ),
        None => "not forced".to_owned(),
    }
}

fn next(decision: &Decision, zone: &Zone) -> String {
    let change = |Transition { at, state }: &Transition| {
        let verb = match state {
            State::Open => "opens",
            State::Closed => "closes",
            State::Conditional => "depends on the revision from",
        };
        format!("{verb} {}", zone.text(at.0))
    };
    match decision.upcoming.as_slice() {
        [] => "no change of state is known ahead".to_owned(),
        [first] => change(first),
        [first, second, ..] => format!("{}, {}", change(first), change(second)),
    }
}
