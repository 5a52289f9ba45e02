//! The labels by which decisions are counted: one of a list each, for those who ask choose their
//! words.

use sluice_crds::Decision;

use crate::tell::counters::{Counters, DecisionLabels};

/// The kinds that are counted by their name.
const KINDS: [&str; 8] = [
    "Canary",
    "Check",
    "GatedSource",
    "HelmRelease",
    "Kustomization",
    "Pipeline",
    "PromotionStrategy",
    "Rollout",
];
/// What they want to do that is counted by its name.
const ACTIONS: [&str; 13] = [
    "admit",
    "advance",
    "check",
    "confirm-promotion",
    "confirm-rollout",
    "confirm-traffic-increase",
    "deploy",
    "merge",
    "promote",
    "release",
    "rollback",
    "rollout",
    "sync",
];
/// Any other.
const OTHER: &str = "other";

/// The labels of a decision.
pub(super) fn of(decision: &Decision) -> DecisionLabels {
    let subject = &decision.subject;
    DecisionLabels {
        kind: one_of(&KINDS, &subject.kind),
        action: one_of(&ACTIONS, &subject.action),
        outcome: outcome(decision.allowed),
    }
}

fn outcome(allowed: bool) -> &'static str {
    match allowed {
        true => "allowed",
        false => "held",
    }
}

fn one_of(words: &[&'static str], word: &str) -> &'static str {
    let known = words.iter().find(|known| **known == word);
    known.copied().unwrap_or(OTHER)
}

/// Of a series whose first value is 1 Prometheus does not know that it has grown.
pub(super) fn serve_from_the_start(counters: &Counters) {
    for allowed in [true, false] {
        let labels = DecisionLabels {
            kind: "Check",
            action: "check",
            outcome: outcome(allowed),
        };
        drop(counters.decisions.get_or_create(&labels));
    }
}
