//! A gated source: what is out, what waits, what its gates say of it, what is wrong.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::Serialize;
use serde_json::{Value, json};
use sluice_core::Now;
use sluice_core::delivery::gated_source::{KIND, asked_about, subject};
use sluice_core::offline::simulate::Key;
use sluice_core::revision::Revision;
use sluice_core::verdict::condition::find_true;
use sluice_core::verdict::question::Question;
use sluice_crds::gated_source::{Admitted, Candidate, Part, Pending};
use sluice_crds::{Decision, GatedSource, GatedSourceStatus};

use super::decided::{Decided, checked};
use crate::cluster::{Around, Seen};

/// The condition of one whose gates hold something back.
const BLOCKED: &str = "Blocked";
/// Conditions that people always want to know.
const WARNINGS: [&str; 3] = ["Bypassed", "SelfGated", "Stalled"];

/// What a gated source would let out next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
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

/// Everything about a gated source.
pub(crate) struct Source<'s> {
    pub(crate) source: &'s GatedSource,
    pub(crate) status: GatedSourceStatus,
    pub(crate) waits: Waits,
    /// What the gates say of what waits; of any revision, where nothing waits.
    pub(crate) decision: Decision,
    /// The gates that were asked for that.
    pub(crate) gates: Vec<Decided>,
    /// What may go out, the newest first.
    pub(crate) candidates: Vec<Asked>,
    /// The newest of them that its gates admit now, with the gates that were asked. None: there is
    /// none; it is what waits; or `spec.revision` asks for one, so that no other goes out.
    pub(crate) before: Option<(Asked, Vec<Decided>)>,
    pub(crate) around: &'s [Around],
}

/// A revision, and what the gates say of it.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Asked {
    pub(crate) revision: String,
    pub(crate) since: Timestamp,
    pub(crate) decision: Decision,
}

impl<'s> Source<'s> {
    /// Asks its gates.
    pub(crate) fn new(
        seen: &Seen,
        source: &'s GatedSource,
        around: &'s [Around],
        now: Now,
    ) -> Self {
        let status = source.status.clone().unwrap_or_default();
        let waits = waits(source);
        let decision = match &waits {
            Waits::For { asked, .. } => decide(seen, source, asked, now),
            Waits::Nothing | Waits::Settled(_) => ask(seen, source, None, now),
        };
        let candidate = |candidate: &Candidate| {
            let asked = revisions(candidate, status.admitted.as_ref());
            Asked {
                revision: candidate.revision.clone(),
                since: candidate.since.0,
                decision: decide(seen, source, &asked, now),
            }
        };
        let candidates: Vec<Asked> = status.candidates.iter().rev().map(candidate).collect();
        let gates = |decision: &Decision| {
            let revision = revision_of(source, decision);
            checked(seen, decision, Question::new(now, revision.as_ref()))
        };
        let admitted = candidates.iter().find(|it| it.decision.allowed);
        let before =
            admitted.filter(|it| source.spec.revision.is_none() && !waits.is_for(&it.revision));
        Self {
            gates: gates(&decision),
            before: before.map(|it| (it.clone(), gates(&it.decision))),
            source,
            status,
            waits,
            decision,
            candidates,
            around,
        }
    }

    /// For programs.
    pub(crate) fn data(&self) -> Value {
        let key = Key::of(&self.source.metadata);
        let waits = match &self.waits {
            Waits::For { revision, .. } => {
                json!({"revision": revision, "decision": self.decision})
            }
            Waits::Nothing | Waits::Settled(_) => Value::Null,
        };
        let gates: Vec<_> = self.gates.iter().map(Decided::entry).collect();
        let mut data = json!({
            "kind": KIND, "name": key.name, "namespace": key.namespace,
            "admitted": self.status.admitted, "waits": waits, "candidates": self.candidates,
            "gates": gates, "children": self.around.iter().map(child).collect::<Vec<_>>(),
            "conditions": self.status.conditions,
        });
        let warnings = warnings(self.source);
        if !warnings.is_empty() {
            data["warnings"] = json!(warnings);
        }
        data
    }
}

impl Waits {
    fn is_for(&self, other: &str) -> bool {
        matches!(self, Self::For { revision, .. } if revision == other)
    }
}

/// An object of Flux, for programs: what it serves, and what is wrong with it.
fn child(around: &Around) -> Value {
    let (object, unreadable) = match &around.object {
        Ok(object) => (object.as_ref(), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let artifact = object.and_then(|it| it.status.artifact.as_ref());
    let problem = object.and_then(|it| unready(&it.status.conditions));
    let mut data = json!({
        "kind": around.kind.as_str(), "name": around.name, "exists": object.is_some(),
    });
    if let Some(artifact) = artifact {
        data["serves"] = json!(artifact.revision);
    }
    if let Some(problem) = unreadable.or(problem.map(|it| it.message.clone())) {
        data["problem"] = json!(problem);
    }
    data
}

/// The condition that says why an object is not Ready.
pub(crate) fn unready(conditions: &[Condition]) -> Option<&Condition> {
    let mut conditions = conditions.iter();
    conditions.find(|it| it.type_ == "Ready" && it.status != "True")
}

/// The condition that is true of a gated source: something waits at its gates.
pub(crate) fn blocked(status: &GatedSourceStatus) -> Option<&Condition> {
    find_true(&status.conditions, BLOCKED)
}

/// What the controller said last of what waits, if its gates held that back.
pub(crate) fn held_back(status: &GatedSourceStatus) -> Option<&Decision> {
    status
        .last_decision
        .as_ref()
        .filter(|decision| !decision.allowed)
}

/// When it is the turn of what waits, where that is spread in time.
pub(crate) fn turn(status: &GatedSourceStatus) -> Option<&Time> {
    let pending: Option<&Pending> = status.pending.as_ref();
    pending.and_then(|pending| pending.admit_at.as_ref())
}

/// What a gated source would let out next, as its spec and its status have it.
pub(crate) fn waits(source: &GatedSource) -> Waits {
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
                let called = asked_about(source, wish);
                let called = called.map_or_else(|| wish.clone(), |it| it.to_string());
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
    let fresh = candidate.parts.iter().filter(|part| !is_out(part));
    let fresh: Vec<&Part> = fresh.collect();
    // The same revision of another content is news all the same.
    match fresh.is_empty() {
        true => candidate.parts.iter().collect(),
        false => fresh,
    }
}

/// The revisions that a candidate would bring, in full.
fn revisions(candidate: &Candidate, admitted: Option<&Admitted>) -> Vec<String> {
    let fresh = fresh(candidate, admitted).into_iter();
    fresh.map(|part| part.revision.clone()).collect()
}

/// What the gates say now of what would go out together: of each revision in turn, until one is held
/// back.
fn decide(seen: &Seen, source: &GatedSource, asked: &[String], now: Now) -> Decision {
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
fn ask(seen: &Seen, source: &GatedSource, text: Option<&str>, now: Now) -> Decision {
    let revision = text.and_then(|text| asked_about(source, text));
    let question = Question::new(now, revision.as_ref());
    seen.ask(Some(&source.spec.gates), subject(source, text), question)
}

/// The revision that the gates were asked about.
fn revision_of(source: &GatedSource, decision: &Decision) -> Option<Revision> {
    asked_about(source, decision.subject.revision.as_deref()?)
}

/// What is wrong with a gated source regardless of its gates, each in a line.
pub(crate) fn warnings(source: &GatedSource) -> Vec<String> {
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
