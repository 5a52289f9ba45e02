//! Decisions in words, for people and for programs.

use std::fmt::Write;

use serde::Serialize;
use sluice_core::simulate::{Decision, Scene};
use sluice_core::words;
use sluice_crds::gate::GatekeeperVerdict;
use sluice_crds::{Require, State, Transition};

use crate::instant::Zone;
use crate::output;

/// A decision for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Decided<'a> {
    gate: &'a str,
    namespace: &'a str,
    at: String,
    state: State,
    reason: &'a str,
    message: &'a str,
    decided_by: Option<&'a str>,
    next: Option<&'a Transition>,
    verdicts: &'a [GatekeeperVerdict],
}

impl<'a> From<&'a Decision> for Decided<'a> {
    fn from(decision: &'a Decision) -> Self {
        Self {
            gate: &decision.gate.name,
            namespace: &decision.gate.namespace,
            at: decision.at.to_string(),
            state: decision.state,
            reason: &decision.reason,
            message: &decision.message,
            decided_by: decision.decided_by.as_deref(),
            next: decision.upcoming.first(),
            verdicts: &decision.verdicts,
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

/// The branches of a tree.
struct Branches {
    more: &'static str,
    last: &'static str,
    beside: &'static str,
}

impl Branches {
    fn new() -> Self {
        if output::is_unicode() {
            Self {
                more: "├─ ",
                last: "└─ ",
                beside: "│  ",
            }
        } else {
            Self {
                more: "|- ",
                last: "`- ",
                beside: "|  ",
            }
        }
    }
}

/// A decision with everything that led to it, as a tree. `notes` are further branches.
pub(crate) fn tree(scene: &Scene, decision: &Decision, notes: &[String]) -> String {
    let mut branches = vec![keepers(scene, decision)];
    branches.push(vec![force(decision)]);
    branches.extend(
        decision
            .complaints
            .iter()
            .map(|complaint| vec![format!("ignored: {complaint}")]),
    );
    branches.push(vec![next(decision, &Zone::of(scene))]);
    branches.extend(notes.iter().map(|note| vec![note.clone()]));

    let Decision {
        gate,
        state,
        reason,
        ..
    } = decision;
    let mut text = format!("Gate {gate} is {} ({reason})\n", output::state(*state));
    let drawn = Branches::new();
    let count = branches.len();
    for (n, branch) in branches.into_iter().enumerate() {
        let (first, rest) = if n + 1 == count {
            (drawn.last, "   ")
        } else {
            (drawn.more, drawn.beside)
        };
        for (n, line) in branch.into_iter().enumerate() {
            let lead = if n == 0 { first } else { rest };
            // Writing to a String does not fail.
            let _ = writeln!(text, "{lead}{line}");
        }
    }
    text
}

fn keepers(scene: &Scene, decision: &Decision) -> Vec<String> {
    let spec = &scene.gate().spec;
    if spec.suspend {
        return vec!["suspended: it counts as closed until it is resumed".to_owned()];
    }
    if decision.verdicts.is_empty() {
        return vec![format!("no gatekeepers: {} by default", spec.default)];
    }
    let head = match (decision.verdicts.len(), spec.require) {
        (1, _) => "1 gatekeeper".to_owned(),
        (many, Require::All) => format!("{many} gatekeepers, all of which must admit"),
        (many, Require::OneOf) => format!("{many} gatekeepers, one of which must admit"),
    };
    let drawn = Branches::new();
    let mut lines = vec![head];
    for (
        n,
        GatekeeperVerdict {
            gatekeeper,
            verdict,
        },
    ) in decision.verdicts.iter().enumerate()
    {
        let last = n + 1 == decision.verdicts.len();
        let (lead, beside) = if last {
            (drawn.last, "   ")
        } else {
            (drawn.more, drawn.beside)
        };
        let by = if decision.decided_by.as_ref() == Some(gatekeeper) {
            ", which decides"
        } else {
            ""
        };
        let until = verdict.valid_until.as_ref();
        let until = until
            .map(|until| format!(" until {}", until.0))
            .unwrap_or_default();
        let state = output::state(verdict.state);
        lines.push(format!(
            "{lead}{gatekeeper} is {state}{until} ({}){by}",
            verdict.reason
        ));
        lines.push(format!("{beside}{}", verdict.message));
    }
    lines
}

fn force(decision: &Decision) -> String {
    match &decision.r#override {
        Some(force) => format!(
            "forced {} by {} since {} until {}: {}",
            force.state,
            force.by,
            words::instant_utc(force.since.0),
            words::instant_utc(force.until.0),
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
        };
        format!("{verb} {}", zone.text(at.0))
    };
    match decision.upcoming.as_slice() {
        [] => "no change of state is known ahead".to_owned(),
        [first] => change(first),
        [first, second, ..] => format!("{}, {}", change(first), change(second)),
    }
}
