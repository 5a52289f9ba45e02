//! Decisions in words, for people.
//!
//! What comes in: what was decided about gates. What goes out: lines, and trees with everything that
//! led to it. Uses the rooms `instant`, `output` and `view`.

use std::fmt::Write;

use sluice_core::gate::nested::{Inside, Said};
use sluice_core::offline::simulate::Decision;
use sluice_core::verdict::Reason;
use sluice_crds::gate::GatekeeperVerdict;
use sluice_crds::{Require, State, Transition};

use crate::instant::Zone;
use crate::output;
use crate::view::Decided;

/// A decision in one line.
pub(crate) fn line(decision: &Decision) -> String {
    let (name, state) = (&decision.gate.name, output::state(decision.state));
    format!(
        "{name} is {state} ({}): {}",
        decision.reason, decision.message
    )
}

/// What several gates result in, in one line: whether `who` may go on.
pub(crate) fn sum(who: &str, decision: &sluice_crds::Decision) -> String {
    let is = if who.is_empty() { "" } else { " is " };
    let allowed = output::allowed(decision.allowed);
    format!("{who}{is}{allowed}: {}\n", decision.message)
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
            let columns = self.columns.unwrap_or(usize::MAX);
            let lines = branch.lines.iter();
            for line in lines.flat_map(|line| output::wrapped(line, columns.saturating_sub(taken)))
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

/// A decision with everything that led to it, as a tree, whose instants are in `zone`.
pub(crate) fn tree(decided: &Decided, zone: &Zone) -> String {
    let Decided {
        decision, revision, ..
    } = decided;
    let ignored = decided.ignored().map(|why| format!("ignored: {why}"));
    let lines = ([force(decision, zone)].into_iter().chain(ignored))
        .chain([next(decision, zone)])
        .chain(decided.notes.iter().cloned());
    let mut all = vec![keepers(decided, zone)];
    all.extend(lines.map(Branch::of));
    let about = revision.as_ref().map(|revision| format!(" for {revision}"));
    format!(
        "Gate {} is {}{} ({})\n{}",
        decision.gate,
        output::state(decision.state),
        about.unwrap_or_default(),
        decision.reason,
        branches(&all)
    )
}

fn keepers(decided: &Decided, zone: &Zone) -> Branch {
    let Decided { spec, decision, .. } = decided;
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
        let decides = match decision.decided_by.as_ref() == Some(&told.gatekeeper) {
            true => ", which decides",
            false => "",
        };
        keeper(said, told, zone, decides)
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
    let inside = said.behind.iter().map(|gate| gate_inside(gate, zone));
    Branch {
        lines,
        inside: inside.collect(),
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
    let inside = gate.verdicts.iter();
    let inside = inside.map(|said| keeper(said, &said.told, zone, ""));
    Branch {
        lines,
        inside: inside.collect(),
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
