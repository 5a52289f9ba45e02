//! What goes out: the newest candidate that the gates admit, at once or in its turn.

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};
use sluice_crds::gated_source::{Admitted, Candidate, Part, Strategy};
use sluice_crds::{Decision, GatedSource, GatedSourceStatus, Subject};

use super::admission::of_candidate;
use super::identity::is_out;
use super::{Given, Holding, KIND, Times, named};
use crate::flux::content::{fingerprint, pinned, selection};
use crate::flux::identity::is_same_pin;
use crate::revision::Revision;
use crate::time::stamp::{time, whole_second};
use crate::verdict::question::Question;

/// What a GatedSource wants to do, as decisions call it.
const ACTION: &str = "admit";

/// What is asked for, and what the gates say of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    /// What would go out.
    pub(super) candidate: Candidate,
    /// What the gates say.
    pub(super) decision: Decision,
    /// What it comes to when it goes out, or why it cannot.
    pub(super) out: Result<Admitted, String>,
    /// When it goes out if the gates still admit it then. None: now.
    pub(super) admit_at: Option<Timestamp>,
    /// Until when no other candidate may be admitted while nothing is seen to change.
    pub(super) next: Option<Timestamp>,
    /// Those that the gates hold back.
    pub(super) held: Vec<Candidate>,
}

/// What is to be asked for among what could go out.
pub(super) enum Wish {
    /// Nothing is newer than what is out.
    Nothing,
    /// One of these, the newest last; all of them can be had.
    Any(Vec<Candidate>),
    /// What `spec.revision` asks for cannot be had: why.
    NotHeld(String),
}

/// What could go out now: everything that can be had, or what `spec.revision` asks for.
pub(super) fn wish(
    given: &Given<'_>,
    admitted: Option<&Admitted>,
    candidates: &[Candidate],
) -> Wish {
    let Some(asked) = given.object.spec.revision.as_deref() else {
        let held = candidates
            .iter()
            .filter(|candidate| is_held(given, candidate));
        let held: Vec<Candidate> = held.cloned().collect();
        return if held.is_empty() {
            Wish::Nothing
        } else {
            Wish::Any(held)
        };
    };
    let kinds = given.sources.iter().map(|source| source.wanted.kind);
    let is_asked = |revision: &str| {
        let mut kinds = kinds.clone();
        kinds.any(|kind| is_same_pin(kind, revision, asked))
    };
    if is_out_as_asked(given, admitted, asked) {
        return Wish::Nothing;
    }
    let known = candidates.iter().find(|it| is_asked(&it.revision));
    match (known, given.object.spec.strategy) {
        (Some(candidate), _) if is_held(given, candidate) => Wish::Any(vec![candidate.clone()]),
        (_, Strategy::Artifact) => Wish::NotHeld(format!(
            "spec.revision asks for {asked}, which is not stored here; write one of the candidates, \
             or bring the source back to it"
        )),
        (_, Strategy::Pin | Strategy::Suspend) => match asked_for(given, asked) {
            Some(candidate) => Wish::Any(vec![candidate]),
            None => Wish::NotHeld(format!(
                "spec.revision asks for {asked}, and nobody knows yet how it is fetched"
            )),
        },
    }
}

/// Whether what is asked for is out, and with the content that its source has now.
pub(super) fn is_out_as_asked(given: &Given<'_>, admitted: Option<&Admitted>, asked: &str) -> bool {
    let Some((source, admitted)) = given.sources.first().zip(admitted) else {
        return false;
    };
    let (kind, upstream) = (source.wanted.kind, source.upstream.object());
    let content = upstream.map(|object| fingerprint(kind, &object.spec));
    admitted.parts.iter().any(|part| {
        let out = || fingerprint(part.kind, &part.spec);
        (part.kind, &part.name) == (kind, &source.wanted.name)
            && is_same_pin(kind, &part.revision, asked)
            && content.as_ref().is_none_or(|content| *content == out())
    })
}

/// A candidate that no source shows now, but somebody asks for: as the source is written now, and by no
/// name that only they give it.
fn asked_for(given: &Given<'_>, asked: &str) -> Option<Candidate> {
    let [source] = given.sources.as_slice() else {
        return None;
    };
    let object = source.upstream.object()?;
    let written = Revision::parse(asked).ok()?;
    let revision = named::believed(source.wanted.kind, &object.spec, written);
    pinned(
        given.object.spec.strategy,
        source.wanted.kind,
        &object.spec,
        &revision,
    )?;
    let before = status(given).and_then(|status| status.pending.as_ref());
    let before = before.filter(|pending| pending.revision == revision.as_str());
    // It is no candidate that could say so itself.
    let last = status(given).and_then(|status| status.last_decision.as_ref());
    let is_of_it = |last: &&Decision| last.subject.revision.as_deref() == Some(revision.as_str());
    let held = before.and(last).filter(is_of_it);
    Some(Candidate {
        revision: revision.to_string(),
        since: before.map_or_else(|| time(given.now.at), |pending| pending.since.clone()),
        held: held.is_some_and(|last| !last.allowed),
        parts: vec![Part {
            kind: source.wanted.kind,
            name: source.wanted.name.clone(),
            revision: revision.to_string(),
            digest: None,
            content: fingerprint(source.wanted.kind, &object.spec),
            selection: Some(selection(source.wanted.kind, &object.spec)),
        }],
    })
}

/// Whether all of a candidate can be had: its sources are there to say how they are reached, and what
/// is served by us is stored.
fn is_held(given: &Given<'_>, candidate: &Candidate) -> bool {
    let serves = given.object.spec.strategy == Strategy::Artifact;
    (candidate.parts.iter().zip(&given.sources)).all(|(part, source)| {
        let holding = || given.holding(&source.wanted.target, part.digest.as_deref());
        source.upstream.object().is_some() && (!serves || matches!(holding(), Holding::Stored(_)))
    })
}

/// The newest of `wished` that the gates admit; if they admit none, the newest of all. `candidates` are
/// all that the sources have shown.
pub(super) fn choose(
    given: &Given<'_>,
    admitted: Option<&Admitted>,
    wished: &[Candidate],
    candidates: &[Candidate],
    times: Times,
) -> Option<Choice> {
    let asked = |candidate| asked(admitted, candidate, candidates);
    let newest = wished.last()?;
    let mut next: Option<Timestamp> = None;
    let (mut chosen, mut held) = (None, Vec::new());
    for candidate in wished.iter().rev() {
        let (admits, until) = rule(given, &asked(candidate));
        next = next.into_iter().chain(until).min();
        if admits {
            chosen = Some(candidate);
            break;
        }
        held.push(candidate.clone());
    }
    let candidate = chosen.unwrap_or(newest);
    let decision = decide(given, &asked(candidate), &candidate.revision);
    let admit_at = chosen.and_then(|it| turn(given, it, &asked(it), times));
    Some(Choice {
        out: of_candidate(given, candidate),
        candidate: candidate.clone(),
        decision,
        admit_at,
        next,
        held,
    })
}

/// The parts of a candidate that the gates are asked about: those that are not out already.
fn asked<'c>(
    admitted: Option<&Admitted>,
    candidate: &'c Candidate,
    candidates: &[Candidate],
) -> Vec<(&'c Part, Option<Revision>)> {
    let is_out = |part: &Part| {
        let mut out = admitted.iter().flat_map(|admitted| &admitted.parts);
        out.any(|admitted| is_out(part, admitted))
    };
    let parts = candidate.parts.iter().filter(|part| !is_out(part));
    let read = |part: &'c Part| (part, named::asked(&part.revision, candidates));
    parts.map(read).collect()
}

/// Whether the gates admit every part, and until when that holds.
fn rule(given: &Given<'_>, asked: &[(&Part, Option<Revision>)]) -> (bool, Option<Timestamp>) {
    let mut until: Option<Timestamp> = None;
    let mut all = true;
    for (_, revision) in asked {
        let ruling = given
            .gates
            .rule(Question::new(given.now, revision.as_ref()));
        until = until.into_iter().chain(ruling.until).min();
        all &= ruling.allowed;
    }
    (all, until)
}

/// What the gates say of a candidate: of several parts, what they say of the first that they hold
/// back. An answer that they give about all can change as soon as one of them can.
fn decide(given: &Given<'_>, asked: &[(&Part, Option<Revision>)], all: &str) -> Decision {
    let decide = |named: &str, revision: Option<&Revision>| {
        let question = Question::new(given.now, revision);
        let subject = subject(given.object, Some(named));
        given.gates.decide(subject, question)
    };
    let mut next: Option<Timestamp> = None;
    for (part, revision) in asked {
        let decision = decide(&part.revision, revision.as_ref());
        next = next
            .into_iter()
            .chain(decision.next.as_ref().map(|at| at.0))
            .min();
        if !decision.allowed {
            return decision;
        }
    }
    let revision = asked.first().and_then(|(_, revision)| revision.as_ref());
    Decision {
        next: next.map(time),
        ..decide(all, revision)
    }
}

/// Who asks, and for which revision: what its gates are gathered for, and what decisions are about.
pub fn subject(object: &GatedSource, revision: Option<&str>) -> Subject {
    let metadata = &object.metadata;
    Subject {
        kind: KIND.to_owned(),
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone(),
        action: ACTION.to_owned(),
        revision: revision.map(str::to_owned),
    }
}

/// When a candidate goes out that the gates admit. None: now. What they never held back has no turn
/// to wait for, such as what came while they were open, however long it took to store it.
fn turn(
    given: &Given<'_>,
    candidate: &Candidate,
    asked: &[(&Part, Option<Revision>)],
    times: Times,
) -> Option<Timestamp> {
    let now = given.now.at;
    let waits = status(given)
        .and_then(|status| status.pending.as_ref())
        .and_then(|pending| pending.admit_at.as_ref());
    if let Some(at) = waits {
        return (at.0 > now).then_some(at.0);
    }
    if !candidate.held || times.spread.is_zero() {
        return None;
    }
    let end = now.saturating_add(times.spread).unwrap_or(Timestamp::MAX);
    let closes = asked.iter().filter_map(|(_, revision)| {
        let question = Question::new(given.now, revision.as_ref());
        given.gates.closes(question, end)
    });
    let open = closes.fold(end, Timestamp::min).duration_since(now);
    let delay = share(given, open);
    let at = whole_second(now.saturating_add(delay).unwrap_or(now));
    (at > now).then_some(at)
}

/// The part of a time that this GatedSource waits: another for each, the same each time.
fn share(given: &Given<'_>, whole: SignedDuration) -> SignedDuration {
    let uid = given.object.metadata.uid.as_deref().unwrap_or_default();
    let digest = Sha256::digest(uid.as_bytes());
    let part = u16::from_be_bytes([digest[0], digest[1]]);
    whole / i32::from(u16::MAX) * i32::from(part)
}

pub(super) fn status<'a>(given: &Given<'a>) -> Option<&'a GatedSourceStatus> {
    given.object.status.as_ref()
}
