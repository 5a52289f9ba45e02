//! What several commands say of a gated source: what waits, what its gates say of it, what is wrong.

use sluice_core::Now;
use sluice_core::delivery::gated_source::{asked_about, subject};
use sluice_core::revision::Revision;
use sluice_core::verdict::question::Question;
use sluice_crds::gated_source::{Admitted, Candidate, Part};
use sluice_crds::{Decision, GatedSource};

use crate::cluster::Seen;

/// Conditions of which people want to know whatever else they look at.
pub(super) const WARNINGS: [&str; 3] = ["Bypassed", "SelfGated", "Stalled"];

/// What a gated source would let out next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// It knows of nothing.
    Nothing,
    /// What `spec.revision` asks for, or else what its status says is pending.
    For {
        /// The revision; of several sources all of theirs, with commas between them.
        revision: String,
        /// The revisions that the gates are asked about.
        asked: Vec<String>,
    },
    /// `spec.revision` asks for this, which is out: nothing else goes out.
    Settled(String),
}

/// What a gated source would let out next, as its spec and its status have it.
pub(super) fn waits(source: &GatedSource) -> Waits {
    let status = source.status.clone().unwrap_or_default();
    let admitted = status.admitted.as_ref();
    let candidate = |candidate: &Candidate| Waits::For {
        revision: candidate.revision.clone(),
        asked: revisions(candidate, admitted),
    };
    let mut newest_first = status.candidates.iter().rev();
    match &source.spec.revision {
        Some(wish) if admitted.is_some_and(|it| is_same(wish, &it.revision)) => {
            Waits::Settled(wish.clone())
        }
        Some(wish) => match newest_first.find(|it| is_same(wish, &it.revision)) {
            Some(known) => candidate(known),
            // No source has shown it, perhaps not its name either.
            None => {
                let called = asked_about(source, wish).map(|revision| revision.to_string());
                let called = called.unwrap_or_else(|| wish.clone());
                Waits::For {
                    revision: called.clone(),
                    asked: vec![called],
                }
            }
        },
        None => {
            let pending = status.pending.as_ref().map(|it| &it.revision);
            let known = newest_first.find(|it| Some(&it.revision) == pending);
            let known = known.or(status.candidates.last());
            known.map_or(Waits::Nothing, candidate)
        }
    }
}

fn is_same(one: &str, other: &str) -> bool {
    match (Revision::parse(one), Revision::parse(other)) {
        (Ok(one), Ok(other)) => one.is(&other),
        _ => one == other,
    }
}

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

/// What the gates say now of what would go out together: of each revision in turn, until one is held
/// back.
pub(super) fn decide(seen: &Seen, source: &GatedSource, asked: &[String], now: Now) -> Decision {
    let mut next = None;
    let mut all = None;
    for text in asked {
        let decision = ask(seen, source, Some(text), now);
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
    let revision = text.and_then(|text| asked_about(source, text));
    let question = Question::new(now, revision.as_ref());
    seen.ask(Some(&source.spec.gates), subject(source, text), question)
}

/// The revision that the gates were asked about.
pub(super) fn revision_of(source: &GatedSource, decision: &Decision) -> Option<Revision> {
    asked_about(source, decision.subject.revision.as_deref()?)
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

    fn source(revision: Option<&str>) -> GatedSource {
        let candidate = |revision: &str, at: &str| {
            let part = json!({"kind": "GitRepository", "name": "app", "revision": revision, "content": "a"});
            json!({"revision": revision, "since": at, "parts": [part]})
        };
        let status = json!({
            "pending": {"revision": revision.unwrap_or(NEW), "since": "2026-11-20T12:00:00Z"},
            "candidates": [candidate(OLD, "2026-11-20T11:00:00Z"), candidate(NEW, "2026-11-20T12:00:00Z")],
            "admitted": {"revision": OUT, "at": "2026-11-20T10:00:00Z", "origin": "Gates", "parts": [
                {"kind": "GitRepository", "name": "app", "revision": OUT},
            ]},
        });
        let reference = json!({"kind": "GitRepository", "name": "app"});
        let gates = json!({"refs": [{"name": "production"}]});
        let mut source: GatedSource = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "GatedSource", "metadata": {"name": "app"},
            "spec": {"sourceRef": reference, "gates": gates}, "status": status,
        }))
        .unwrap();
        source.spec.revision = revision.map(str::to_owned);
        source
    }

    const OUT: &str = "main@sha1:1111111111111111111111111111111111111111";
    const OLD: &str = "main@sha1:2222222222222222222222222222222222222222";
    const NEW: &str = "main@sha1:3333333333333333333333333333333333333333";
    const UNSEEN: &str = "main@sha1:4444444444444444444444444444444444444444";

    #[rstest]
    #[case::the_newest(None, NEW)]
    #[case::an_earlier_one(Some("2222222222222222222222222222222222222222"), OLD)]
    #[case::one_that_nobody_has_seen(Some(UNSEEN), UNSEEN)]
    fn what_is_asked_for_goes_out_next(#[case] wish: Option<&str>, #[case] expected: &str) {
        let waits = waits(&source(wish));
        let wanted = Waits::For {
            revision: expected.to_owned(),
            asked: vec![expected.to_owned()],
        };
        assert_eq!(waits, wanted);
    }

    /// A name that only `spec.revision` gives it is none that anybody should vote on.
    #[test]
    fn what_no_source_shows_is_called_as_the_controller_calls_it() {
        let nameless = UNSEEN.replace("main@", "");
        let mut source = source(Some(&UNSEEN.replace("main", "v1.4.9")));
        for pending in [Some(&nameless), None] {
            let status = source.status.as_mut().unwrap();
            status.pending = status.pending.take().filter(|_| pending.is_some());
            if let (Some(it), Some(pending)) = (&mut status.pending, pending) {
                it.revision.clone_from(pending);
            }
            let wanted = Waits::For {
                revision: nameless.clone(),
                asked: vec![nameless.clone()],
            };
            assert_eq!(waits(&source), wanted);
            let mut decision = Decision {
                allowed: false,
                at: serde_json::from_value(json!("2026-11-20T12:00:00Z")).unwrap(),
                subject: subject(&source, Some(&nameless)),
                require: sluice_crds::Require::All,
                checked: Vec::new(),
                decided_by: Vec::new(),
                message: String::new(),
                next: None,
            };
            let about = revision_of(&source, &decision).unwrap();
            assert!(about.has_unknown_name());
            decision.subject.revision = Some(NEW.to_owned());
            let about = revision_of(&source, &decision).unwrap();
            assert_eq!(about.to_string(), NEW);
        }
    }

    #[test]
    fn nothing_goes_out_next_while_what_is_asked_for_is_out() {
        assert_eq!(waits(&source(Some(OUT))), Waits::Settled(OUT.to_owned()));
        let mut quiet = source(None);
        quiet.status = None;
        assert_eq!(waits(&quiet), Waits::Nothing);
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
