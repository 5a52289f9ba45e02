//! Reads the annotations of both dialects: what comes out is forces, what is wrong with them, and
//! what the controller should write.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use sluice_crds::gate::annotations::{FORCE, FORCE_BY, FORCE_REASON, FORCE_SEEN, FORCE_UNTIL};
use sluice_crds::{Duration, Setting};

use super::note::{Note, Notes, PARTS, Slot};
use super::{Force, Forces, Identity, field};
use crate::gate::Terms;
use crate::text::refusal::Refusal;
use crate::text::words::{clean, instant_utc};
use crate::time::clock::{Now, Trust};
use crate::time::duration;
use crate::time::span::{earlier, later};

/// How far apart from ours the clock may be that wrote a force.
const CLOCKS_APART: SignedDuration = SignedDuration::from_secs(60);

/// The most characters of a user's name that are shown.
const LONGEST_NAME: usize = 200;
/// The most characters of a reason that are shown.
const LONGEST_REASON: usize = 500;
/// The most characters of a value that makes no sense that are shown.
const LONGEST_NONSENSE: usize = 40;

/// A gate's annotations, and all they are judged by.
pub(super) struct Reader<'a> {
    annotations: &'a BTreeMap<String, String>,
    /// `spec.window`, as it is written.
    window: &'a Duration,
    terms: Terms,
    identity: Identity,
    notes: Notes,
    now: Now,
}

/// The result of reading the forces that are not noted yet.
#[derive(Default)]
struct Fresh {
    /// Those that are in order.
    right: Vec<Slot>,
    /// Those that are wrong, and would become right by waiting.
    wrong: Vec<Slot>,
}

/// Why a force does not count.
struct Wrong {
    complaint: Refusal,
    /// When it would become right by waiting, unless it is noted that it was wrong.
    ripens: Option<Timestamp>,
}

impl From<Refusal> for Wrong {
    fn from(complaint: Refusal) -> Self {
        Self {
            complaint,
            ripens: None,
        }
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        annotations: &'a BTreeMap<String, String>,
        window: &'a Duration,
        terms: Terms,
        identity: Identity,
        now: Now,
    ) -> Self {
        Self {
            annotations,
            window,
            terms,
            identity,
            notes: Notes::of(annotations, now.at),
            now,
        }
    }

    /// Whether the controller has noted any of the forces.
    pub(super) fn has_noted(&self) -> bool {
        !self.notes.is_empty()
    }

    pub(super) fn read(&self) -> Forces {
        let mut forces = Forces::none(Ok(self.terms));
        let mut fresh = Fresh::default();
        for slot in Slot::ALL {
            let read = match slot.request() {
                None => self.own_dialect(),
                Some((annotation, state)) => self.request(slot, annotation, state),
            };
            match read {
                Ok(None) => {}
                Ok(Some(force)) => {
                    fresh.right.extend((!force.accepted).then_some(slot));
                    forces.forces.push(force);
                }
                Err(wrong) => {
                    fresh.wrong.extend(wrong.ripens.map(|_| slot));
                    forces.complaints.push(wrong.complaint);
                    forces.ripening.extend(wrong.ripens);
                }
            }
        }
        forces.completion = self.completion(&forces, fresh);
        forces
    }

    /// The annotations with the notes of the forces that are new, and with the end of a force that names
    /// none. None: there is nothing to note.
    ///
    /// What is noted is for good. A clock that is off by so little that it is only reported is good
    /// enough to accept, for forces may be off by more; but none is refused by it.
    fn completion(&self, forces: &Forces, fresh: Fresh) -> Option<BTreeMap<String, String>> {
        let accepts = forces.waiting(self.now.at).next().is_some();
        let wrong = match self.now.trust {
            Trust::Good => fresh.wrong,
            Trust::Drifting(_) => Vec::new(),
            Trust::Lost(_) => return None,
        };
        if !accepts && wrong.is_empty() {
            return None;
        }
        let mut complete: BTreeMap<String, String> = PARTS
            .iter()
            .filter_map(|part| Some(((*part).to_owned(), self.get(part)?.to_owned())))
            .collect();
        if forces.forces.iter().any(Force::is_endless) {
            let until = later(self.now.at, self.terms.window);
            complete.insert(FORCE_UNTIL.to_owned(), until.to_string());
        }
        let mut notes = self.notes.clone();
        for slot in fresh.right.into_iter().chain(wrong) {
            let words = self.words(slot);
            notes.add(slot, &complete, self.now.at, words, self.window);
        }
        complete.insert(FORCE_SEEN.to_owned(), notes.text());
        Some(complete)
    }

    fn get(&self, annotation: &str) -> Option<&str> {
        self.annotations.get(annotation).map(String::as_str)
    }

    /// When the force was judged first.
    fn seen(&self, slot: Slot) -> Timestamp {
        self.notes.get(slot).map_or(self.now.at, |note| note.at)
    }

    /// Who forces, and why, fit to be shown: as they were when the force was noted. A request of
    /// the RFC may come without: what stands there for another force is not its own. Its name is,
    /// where the admission policies make sure that people write their own.
    fn words(&self, slot: Slot) -> (Option<String>, Option<String>) {
        if let Some(Note { by, reason, .. }) = self.notes.get(slot) {
            return (
                shown(by.as_deref(), LONGEST_NAME),
                shown(reason.as_deref(), LONGEST_REASON),
            );
        }
        let by = shown(self.get(FORCE_BY), LONGEST_NAME);
        let reason = shown(self.get(FORCE_REASON), LONGEST_REASON);
        let anothers = slot != Slot::Force && self.notes.belong_to_another(slot, self.annotations);
        match (anothers, self.identity) {
            (false, _) => (by, reason),
            (true, Identity::Verified) => (by, None),
            (true, Identity::Trusted | Identity::Unverified) => (None, None),
        }
    }

    /// `sluice.dev/force` and its companions.
    fn own_dialect(&self) -> Result<Option<Force>, Wrong> {
        let state = match self.get(FORCE) {
            Some("open") => Setting::Open,
            Some("closed") => Setting::Closed,
            Some(other) => {
                let problem = format!("`{}` is not a state", clean(other, LONGEST_NONSENSE));
                return Err(Refusal::new(field(FORCE), problem, "write open or closed").into());
            }
            None => return Ok(self.companions_alone().map(|()| None)?),
        };
        let (by, reason) = self.words(Slot::Force);
        let reason = required(reason, FORCE_REASON, "say why the gate is forced")?;
        let by = required(
            by,
            FORCE_BY,
            "write the user name of the person who forces the gate",
        )?;
        let until = match self.get(FORCE_UNTIL) {
            Some(text) => self.end(instant(FORCE_UNTIL, text)?)?,
            None => match self.notes.get(Slot::Force) {
                Some(note) => later(note.at, self.terms.window),
                None => Timestamp::MAX,
            },
        };
        let since = self.seen(Slot::Force);
        Ok(Some(Force {
            state,
            by,
            reason,
            since,
            until,
            accepted: self.notes.get(Slot::Force).is_some(),
        }))
    }

    /// An end, a reason or a name without a force: report it, because somebody meant something by it.
    fn companions_alone(&self) -> Result<(), Refusal> {
        match self.get(FORCE_UNTIL) {
            Some(_) => Err(Refusal::new(
                field(FORCE_UNTIL),
                format!("it does nothing without {FORCE}"),
                format!("write {FORCE} too, or remove it"),
            )),
            None => Ok(()),
        }
    }

    /// An end that a force names, if it may.
    fn end(&self, until: Timestamp) -> Result<Timestamp, Wrong> {
        let length = until.duration_since(self.seen(Slot::Force));
        let longest = self.terms.max_override.saturating_add(CLOCKS_APART);
        if length > longest {
            let most = duration::text(self.terms.max_override);
            // What is not noted is judged at another instant each time: no length, for the words
            // must not change while nothing else does.
            let length = match self.notes.get(Slot::Force) {
                Some(_) => duration::text(length),
                None => format!("longer than {most}"),
            };
            return Err(Wrong {
                complaint: Refusal::new(
                    field(FORCE_UNTIL),
                    format!("the force would last {length}"),
                    format!("write an end at most {most} (spec.maxOverride) ahead"),
                ),
                ripens: self.unless_noted(Slot::Force, earlier(until, longest)),
            });
        }
        if length.is_positive() {
            return Ok(until);
        }
        let problem = format!("the end {} has passed", instant_utc(until));
        let remedy = "write a later end, or remove it";
        Err(Refusal::new(field(FORCE_UNTIL), problem, remedy).into())
    }

    /// The RFC's request: an instant, from which `spec.window` counts, as it was when the request
    /// was accepted.
    fn request(
        &self,
        slot: Slot,
        annotation: &str,
        state: Setting,
    ) -> Result<Option<Force>, Wrong> {
        let Some(text) = self.get(annotation) else {
            return Ok(None);
        };
        let since = instant(annotation, text)?;
        if since > later(self.seen(slot), CLOCKS_APART) {
            let problem = format!("{} is in the future", instant_utc(since));
            return Err(Wrong {
                complaint: Refusal::new(field(annotation), problem, "write the current time"),
                ripens: self.unless_noted(slot, earlier(since, CLOCKS_APART)),
            });
        }
        let (by, reason) = self.words(slot);
        let note = self.notes.get(slot);
        let noted = note.and_then(Note::length);
        let window = noted.map_or(self.terms.window, |noted| {
            noted.min(self.terms.max_override)
        });
        Ok(Some(Force {
            state,
            by: by.unwrap_or_else(|| "unknown".to_owned()),
            reason: reason.unwrap_or_else(|| format!("requested by {annotation}")),
            // What closes a gate waits neither for anybody nor for a clock that is ahead of ours: until
            // it counts, it could be removed without the right to force.
            since: match state {
                Setting::Open => since,
                Setting::Closed => since.min(self.seen(slot)),
            },
            until: later(since, window),
            accepted: note.is_some(),
        }))
    }

    fn unless_noted(&self, slot: Slot, at: Timestamp) -> Option<Timestamp> {
        self.notes.get(slot).is_none().then_some(at)
    }
}

/// A text that people wrote, fit to be shown. None: there is nothing to show.
fn shown(text: Option<impl AsRef<str>>, longest: usize) -> Option<String> {
    let text = clean(text?.as_ref().trim(), longest);
    (!text.is_empty()).then_some(text)
}

fn required(text: Option<String>, annotation: &str, remedy: &str) -> Result<String, Refusal> {
    text.ok_or_else(|| {
        let problem = "it is missing, so the force does not count";
        Refusal::new(field(annotation), problem, remedy)
    })
}

fn instant(annotation: &str, text: &str) -> Result<Timestamp, Refusal> {
    text.parse().map_err(|_| {
        Refusal::new(
            field(annotation),
            format!("`{}` is not an instant", clean(text, LONGEST_NONSENSE)),
            "write RFC 3339, such as 2026-11-20T18:00:00Z",
        )
    })
}
