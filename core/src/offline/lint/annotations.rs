//! Annotations that look as if they did something, and do nothing.
//!
//! What comes in: an object's metadata, and the annotations that its kind has. What goes out: the others
//! that begin as ours or as those of Flux's gating RFC do.

use kube::core::ObjectMeta;
use sluice_crds::GROUP;

use super::{group, schema};
use crate::text::refusal::Refusal;

/// The domains whose annotations are ours to read.
const DOMAINS: [&str; 3] = [GROUP, "open.gate.fluxcd.io", "close.gate.fluxcd.io"];

/// Annotations that nothing reads.
pub(super) fn unknown(metadata: &ObjectMeta, known: &'static [&'static str]) -> Vec<Refusal> {
    let annotations = metadata.annotations.iter().flatten();
    let is_ours = |name: &str| {
        let domain = name.split_once('/').map(|(domain, _)| domain);
        domain.is_some_and(|domain| DOMAINS.contains(&domain)) && !known.contains(&name)
    };
    annotations
        .filter(|(name, _)| is_ours(name))
        .map(|(name, value)| {
            let remedy = match (name.ends_with(".gate.fluxcd.io/revision"), known) {
                (true, _) => group::allow(value),
                (false, []) => "remove it: this kind has no annotations of its own".to_owned(),
                (false, known) => schema::in_place_of(name, known.iter().copied()),
            };
            Refusal::new(
                format!("metadata.annotations[{name}]"),
                "nothing reads it",
                remedy,
            )
        })
        .collect()
}
