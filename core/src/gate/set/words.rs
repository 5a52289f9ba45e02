//! Why a change may pass, or not, in a sentence.

use sluice_crds::CheckedGate;

use super::{Policy, Ruling, Set};

/// How many gates a message names before it only counts them.
pub(super) const NAMED: usize = 3;

/// A gate that decided, once for all the sets that name it.
pub(super) struct Decisive<'a> {
    pub(super) name: &'a str,
    message: &'a str,
    /// Whether the subject itself asks for it.
    own: bool,
    policies: Vec<Policy<'a>>,
}

/// The gates that decided. `checked` are the gates of all sets, one after the other.
pub(super) fn decisive<'a>(
    sets: &[Set<'a>],
    ruling: &Ruling,
    checked: &'a [CheckedGate],
) -> Vec<Decisive<'a>> {
    let mut found: Vec<Decisive<'a>> = Vec::new();
    let mut first = 0;
    for (set, outcome) in sets.iter().zip(&ruling.outcomes) {
        let gates = &checked[first..first + outcome.said.len()];
        first += gates.len();
        if outcome.allowed != ruling.allowed {
            continue;
        }
        for place in outcome.decided_by(set.require) {
            let CheckedGate { gate, message, .. } = &gates[place];
            let known = found.iter().position(|known| known.name == gate);
            let known = known.unwrap_or_else(|| {
                found.push(Decisive {
                    name: gate,
                    message,
                    own: false,
                    policies: Vec::new(),
                });
                found.len() - 1
            });
            match set.policy {
                None => found[known].own = true,
                Some(policy) => found[known].policies.push(policy),
            }
        }
    }
    found
}

/// What the gates say that decided.
pub(super) fn explain(sets: &[Set<'_>], ruling: &Ruling, decisive: &[Decisive<'_>]) -> String {
    let mut said: Vec<String> = decisive.iter().take(NAMED).map(Decisive::said).collect();
    if decisive.len() > NAMED {
        said.push(format!("and {} more", decisive.len() - NAMED));
    }
    if sets.first().is_none_or(|own| own.gates.is_empty()) {
        return match said.is_empty() {
            true => "no gate is named, so nothing may pass".to_owned(),
            false => format!("no gate is named, so nothing may pass; {}", said.join("; ")),
        };
    }
    let verb = match ruling.allowed {
        true => "let pass by",
        false => "held back by",
    };
    format!("{verb} {}", said.join("; "))
}

impl Decisive<'_> {
    fn said(&self) -> String {
        let Self {
            name,
            message,
            own,
            policies,
        } = self;
        let mut because: Vec<String> = Vec::new();
        for Policy {
            name: policy,
            doubt,
        } in policies
        {
            let policy = format!("GatePolicy {policy}");
            match doubt {
                Some(doubt) => because.push(format!("{policy}, because {doubt}")),
                // It is shown in place of its own gates, which are not known.
                None if policy == **name => {}
                None => because.push(policy),
            }
        }
        let because = because.join(", ");
        match (because.is_empty(), own) {
            (true, _) => format!("{name}: {message}"),
            (false, true) => format!("{name} (and {because}): {message}"),
            (false, false) => format!("{name} ({because}): {message}"),
        }
    }
}
