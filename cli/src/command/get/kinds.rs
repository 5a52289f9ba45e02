//! What `get` lists, by the words that people have for it.

use anyhow::Result;
use sluice_core::offline::simulate::Key;

use crate::cluster;

/// What is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::command) enum Listed {
    Gates,
    Gatekeepers,
    Sources,
    Approvals,
    Policies,
}

impl Listed {
    /// The words for each.
    const WORDS: [(Self, &[&str]); 5] = [
        (Self::Gates, &["gate", "gates", "gt"]),
        (Self::Gatekeepers, &["gatekeeper", "gatekeepers", "gk"]),
        (
            Self::Sources,
            &["gatedsource", "gatedsources", "gs", "source", "sources"],
        ),
        (Self::Approvals, &["approval", "approvals", "apv"]),
        (
            Self::Policies,
            &["gatepolicy", "gatepolicies", "gp", "policy", "policies"],
        ),
    ];

    /// What a word stands for.
    pub(in crate::command) fn of(word: &str) -> Option<Self> {
        let mut all = Self::WORDS.iter();
        let found = all.find(|(_, words)| words.contains(&word))?;
        Some(found.0)
    }

    /// The kind of an object, as messages have it.
    pub(super) fn called(self) -> &'static str {
        match self {
            Self::Gates => "gate",
            Self::Gatekeepers => "gatekeeper",
            Self::Sources => "gated source",
            Self::Approvals => "approval",
            Self::Policies => "gate policy",
        }
    }

    /// An object as `get -o name` prints it.
    pub(super) fn named(self, key: &Key) -> String {
        let kind = match self {
            Self::Gates => "gate",
            Self::Gatekeepers => "gatekeeper",
            Self::Sources => "gatedsource",
            Self::Approvals => "approval",
            Self::Policies => "gatepolicy",
        };
        format!("{kind}.sluice.dev/{}", key.name)
    }
}

/// What is asked for, and the names.
pub(super) fn split(what: &[String]) -> Result<(Listed, Vec<String>)> {
    let kind = what.first().and_then(|word| Listed::of(word));
    let names = if kind.is_some() { &what[1..] } else { what };
    let sources: Option<Vec<String>> = names
        .iter()
        .map(|name| cluster::source_name(name))
        .collect();
    match (kind, sources) {
        (None, Some(names)) if !names.is_empty() => Ok((Listed::Sources, names)),
        (None | Some(Listed::Gates), _) => {
            let names = names.iter().map(|name| cluster::gate_name(name));
            Ok((Listed::Gates, names.collect::<Result<_>>()?))
        }
        (Some(kind), _) => Ok((kind, names.to_vec())),
    }
}
