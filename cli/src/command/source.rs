//! What several commands say of a gated source: what waits, what its gates say of it, what is wrong.

use sluice_core::Now;
use sluice_core::gated_source::subject;
use sluice_core::question::Question;
use sluice_core::revision::Revision;
use sluice_crds::gated_source::{Admitted, Candidate, Part};
use sluice_crds::{Decision, GatedSource};

use crate::cluster::Seen;

/// As many digits of a digest as tell revisions apart.
const DIGITS: usize = 12;

/// Conditions of which people want to know whatever else they look at.
pub(super) const WARNINGS: [&str; 3] = ["Bypassed", "SelfGated", "Stalled"];

/// What of a candidate has not gone out yet: what the gates are asked about.
fn fresh<'a>(candidate: &'a Candidate, admitted: Option<&Admitted>) -> Vec<&'a Part> {
    let out = admitted.map_or(&[][..], |admitted| &admitted.parts);
    let is_out = |part: &&Part| {
        out.iter().any(|out| {
            (out.kind, &out.name, &out.revision) == (part.kind, &part.name, &part.revision)
        })
    };
    let fresh: Vec<&Part> = candidate
        .parts
        .iter()
        .filter(|part| !is_out(part))
        .collect();
    // The same revision of another content is news all the same.
    match fresh.is_empty() {
        true => candidate.parts.iter().collect(),
        false => fresh,
    }
}

/// The revisions that a candidate would bring, in full.
pub(super) fn revisions(candidate: &Candidate, admitted: Option<&Admitted>) -> Vec<String> {
    let fresh = fresh(candidate, admitted).into_iter();
    fresh.map(|part| part.revision.clone()).collect()
}

/// What the gates say now of a candidate: of each part that has not gone out, until one is held
/// back.
pub(super) fn decide(
    seen: &Seen,
    source: &GatedSource,
    candidate: &Candidate,
    now: Now,
) -> Decision {
    let admitted = source.status.as_ref().and_then(|it| it.admitted.as_ref());
    let mut next = None;
    let mut all = None;
    for text in revisions(candidate, admitted) {
        let decision = ask(seen, source, Some(&text), now);
        next = [next, decision.next.clone()].into_iter().flatten().min();
        let held = !decision.allowed;
        all = Some(decision);
        if held {
            break;
        }
    }
    let mut decision = all.unwrap_or_else(|| ask(seen, source, None, now));
    decision.next = next;
    decision
}

/// What the gates say now of a revision, or of any.
pub(super) fn ask(seen: &Seen, source: &GatedSource, text: Option<&str>, now: Now) -> Decision {
    let revision = text.and_then(|text| Revision::parse(text).ok());
    let question = Question::new(now, revision.as_ref());
    seen.ask(Some(&source.spec.gates), subject(source, text), question)
}

/// Revisions as people tell them apart: digests are cut.
pub(super) fn short(revision: &str) -> String {
    let each = revision.split(", ").map(|one| {
        let start = one.rfind(':').map_or(0, |colon| colon + 1);
        let (before, digest) = one.split_at(start);
        let is_digest = digest.len() > DIGITS && digest.bytes().all(|it| it.is_ascii_hexdigit());
        match is_digest {
            true => format!("{before}{}", &digest[..DIGITS]),
            false => one.to_owned(),
        }
    });
    each.collect::<Vec<_>>().join(", ")
}

/// What is wrong with a gated source whatever its gates say, each in a line.
pub(super) fn warnings(source: &GatedSource) -> Vec<String> {
    let conditions = source.status.iter().flat_map(|status| &status.conditions);
    let holds = conditions.filter(|it| it.status == "True" && WARNINGS.contains(&&*it.type_));
    holds
        .map(|it| format!("{}: {}", it.type_, it.message))
        .collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(
        "main@sha1:4f2a9c1d4f2a9c1d4f2a9c1d4f2a9c1d4f2a9c1d",
        "main@sha1:4f2a9c1d4f2a"
    )]
    #[case(
        "sha256:4f2a9c1d4f2a9c1d4f2a9c1d4f2a9c1d4f2a9c1d4f2a9c1d4f2a9c1d4f2a9c1d, 6.7.1+3",
        "sha256:4f2a9c1d4f2a, 6.7.1+3"
    )]
    #[case("nightly-of-november", "nightly-of-november")]
    fn digests_are_cut(#[case] revision: &str, #[case] expected: &str) {
        assert_eq!(short(revision), expected);
    }

    #[test]
    fn the_gates_are_asked_about_what_has_not_gone_out() {
        let part = |name: &str, revision: &str| json!({"kind": "GitRepository", "name": name, "revision": revision, "content": "a"});
        let candidate = json!({"revision": "v2, v1", "since": "2026-11-20T12:00:00Z", "parts": [part("a", "v2"), part("b", "v1")]});
        let admitted = |b: &str| {
            let parts = [part("a", "v1"), part("b", b)];
            let admitted = json!({"revision": "v1, v1", "at": "2026-11-20T12:00:00Z", "origin": "Gates", "parts": parts});
            serde_json::from_value::<Admitted>(admitted).unwrap()
        };
        let candidate: Candidate = serde_json::from_value(candidate).unwrap();
        assert_eq!(revisions(&candidate, None), ["v2", "v1"]);
        assert_eq!(revisions(&candidate, Some(&admitted("v1"))), ["v2"]);
        assert_eq!(revisions(&candidate, Some(&admitted("v0"))), ["v2", "v1"]);
    }
}
