//! Reads the annotations of both dialects: what comes out is forces, what is wrong with them, and
//! what the controller should write.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use sluice_crds::gate::annotations::{
    FORCE, FORCE_BY, FORCE_REASON, FORCE_SEEN, FORCE_UNTIL, RFC_CLOSE, RFC_OPEN,
};
use sluice_crds::{Duration, Setting};

use super::note::{self, Note, PARTS};
use super::{Force, Forces, field};
use crate::clock::{Now, Trust};
use crate::duration;
use crate::gate::Terms;
use crate::refusal::Refusal;
use crate::words::{clean, instant_utc};

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
    note: Option<Note>,
    now: Now,
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
        now: Now,
    ) -> Self {
        Self {
            annotations,
            window,
            terms,
            note: Note::of(annotations, now.at),
            now,
        }
    }

    pub(super) fn read(&self) -> Forces {
        let mut forces = Forces::none(Ok(self.terms));
        for read in [
            self.own_dialect(),
            self.request(RFC_OPEN, Setting::Open),
            self.request(RFC_CLOSE, Setting::Closed),
        ] {
            match read {
                Ok(force) => forces.forces.extend(force),
                Err(wrong) => {
                    forces.complaints.push(wrong.complaint);
                    forces.ripening.extend(wrong.ripens);
                }
            }
        }
        let accepts = forces.waiting(self.now.at).next().is_some();
        let refuses = !forces.ripening.is_empty();
        // What is noted is for good. A clock that is off by so little that it is only reported is
        // good enough to accept, for forces may be off by more; but none is refused by it.
        let notes = match self.now.trust {
            Trust::Good => accepts || refuses,
            Trust::Drifting(_) => accepts && !refuses,
            Trust::Lost(_) => false,
        };
        if notes {
            forces.completion = Some(self.completion(&forces));
        }
        forces
    }

    /// The annotations with the note, and with the end of a force that names none.
    fn completion(&self, forces: &Forces) -> BTreeMap<String, String> {
        let mut complete: BTreeMap<String, String> = PARTS
            .iter()
            .filter_map(|part| Some(((*part).to_owned(), self.get(part)?.to_owned())))
            .collect();
        if forces.forces.iter().any(Force::is_endless) {
            let until = later(self.now.at, self.terms.window);
            complete.insert(FORCE_UNTIL.to_owned(), until.to_string());
        }
        let note = note::text(&complete, self.now.at, self.window);
        complete.insert(FORCE_SEEN.to_owned(), note);
        complete
    }

    fn get(&self, annotation: &str) -> Option<&str> {
        self.annotations.get(annotation).map(String::as_str)
    }

    /// When the force was judged first.
    fn seen(&self) -> Timestamp {
        self.note.map_or(self.now.at, |note| note.at)
    }

    /// `sluice.dev/force` and its companions.
    fn own_dialect(&self) -> Result<Option<Force>, Wrong> {
        let state = match self.get(FORCE) {
            Some("open") => Setting::Open,
            Some("closed") => Setting::Closed,
            Some(other) => {
                let problem = format!("`{}` is no state", clean(other, LONGEST_NONSENSE));
                return Err(Refusal::new(field(FORCE), problem, "write open or closed").into());
            }
            None => return Ok(self.companions_alone().map(|()| None)?),
        };
        let reason = self.required(FORCE_REASON, LONGEST_REASON, "say why the gate is forced")?;
        let remedy = "write the user name of who forces the gate";
        let by = self.required(FORCE_BY, LONGEST_NAME, remedy)?;
        let until = match self.get(FORCE_UNTIL) {
            Some(text) => self.end(instant(FORCE_UNTIL, text)?)?,
            None => match self.note {
                Some(note) => later(note.at, self.terms.window),
                None => Timestamp::MAX,
            },
        };
        Ok(Some(self.force(state, by, reason, self.seen(), until)))
    }

    /// An end, a reason or a name that forces nothing: tell, for somebody meant something by it.
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

    fn required(&self, annotation: &str, longest: usize, remedy: &str) -> Result<String, Refusal> {
        self.shown(annotation, longest).ok_or_else(|| {
            let problem = "it is missing, so the force does not count";
            Refusal::new(field(annotation), problem, remedy)
        })
    }

    /// A text that people wrote, fit to be shown. None: there is nothing to show.
    fn shown(&self, annotation: &str, longest: usize) -> Option<String> {
        let text = clean(self.get(annotation)?.trim(), longest);
        (!text.is_empty()).then_some(text)
    }

    /// An end that a force names, if it may.
    fn end(&self, until: Timestamp) -> Result<Timestamp, Wrong> {
        let length = until.duration_since(self.seen());
        let longest = self.terms.max_override.saturating_add(CLOCKS_APART);
        if length > longest {
            let most = duration::text(self.terms.max_override);
            // What is not noted is judged at another instant each time: no length, for the words
            // must not change while nothing else does.
            let length = match self.note {
                Some(_) => duration::text(length),
                None => format!("longer than {most}"),
            };
            return Err(Wrong {
                complaint: Refusal::new(
                    field(FORCE_UNTIL),
                    format!("the force would last {length}"),
                    format!("write an end at most {most} (spec.maxOverride) ahead"),
                ),
                ripens: self.unless_noted(earlier(until, longest)),
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
    fn request(&self, annotation: &str, state: Setting) -> Result<Option<Force>, Wrong> {
        let Some(text) = self.get(annotation) else {
            return Ok(None);
        };
        let since = instant(annotation, text)?;
        if since > later(self.seen(), CLOCKS_APART) {
            let problem = format!("{} lies ahead", instant_utc(since));
            return Err(Wrong {
                complaint: Refusal::new(field(annotation), problem, "write the present instant"),
                ripens: self.unless_noted(earlier(since, CLOCKS_APART)),
            });
        }
        let by = self.shown(FORCE_BY, LONGEST_NAME);
        let reason = self.shown(FORCE_REASON, LONGEST_REASON);
        let noted = self.note.and_then(|note| note.window);
        let window = noted.map_or(self.terms.window, |noted| {
            noted.min(self.terms.max_override)
        });
        Ok(Some(self.force(
            state,
            by.unwrap_or_else(|| "unknown".to_owned()),
            reason.unwrap_or_else(|| format!("requested by {annotation}")),
            since,
            later(since, window),
        )))
    }

    fn unless_noted(&self, at: Timestamp) -> Option<Timestamp> {
        self.note.is_none().then_some(at)
    }

    fn force(
        &self,
        state: Setting,
        by: String,
        reason: String,
        since: Timestamp,
        until: Timestamp,
    ) -> Force {
        Force {
            state,
            by,
            reason,
            since,
            until,
            accepted: self.note.is_some(),
        }
    }
}

fn instant(annotation: &str, text: &str) -> Result<Timestamp, Refusal> {
    text.parse().map_err(|_| {
        Refusal::new(
            field(annotation),
            format!("`{}` is no instant", clean(text, LONGEST_NONSENSE)),
            "write RFC 3339, such as 2026-11-20T18:00:00Z",
        )
    })
}

fn later(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.saturating_add(by).unwrap_or(Timestamp::MAX)
}

fn earlier(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.saturating_sub(by).unwrap_or(Timestamp::MIN)
}
