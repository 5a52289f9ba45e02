//! `revisions`: lists of what may, and may not, go out. What denies wins.

use sluice_crds::gatekeeper::{ListSource, Revisions as Spec};
use sluice_crds::{Setting, State};

use crate::revision::Revision;
use crate::revision::pattern::{self, Pattern};
use crate::text::lines;
use crate::text::refusal::{Refusal, Refusals};
use crate::verdict::{Opinion, Reason};

mod kind;
#[cfg(test)]
mod tests;

/// The most entries of a list in a ConfigMap.
const MOST_ENTRIES: usize = 10_000;

/// The rule that a spec describes.
#[derive(Clone, Debug)]
pub struct Revisions {
    allow: Vec<Pattern>,
    deny: Vec<Pattern>,
    allow_from: Vec<ListSource>,
    deny_from: Vec<ListSource>,
}

/// A list as it stands in a ConfigMap.
#[derive(Clone, Debug)]
pub struct List(Vec<Pattern>);

/// What came of reading a list.
pub type Reading = crate::evidence::reading::Reading<List>;

impl List {
    /// Reads a list: an entry a line, with comments after a `#`.
    ///
    /// # Errors
    /// The first line that is no entry, and why.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut entries = Vec::new();
        for (number, entry) in lines::entries(text) {
            if entries.len() == MOST_ENTRIES {
                return Err(format!("it has more than {MOST_ENTRIES} entries"));
            }
            let pattern = Pattern::parse(entry).map_err(|why| format!("line {number}: {why}"))?;
            entries.push(pattern);
        }
        Ok(Self(entries))
    }
}

/// The same entries.
impl PartialEq for List {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self
                .0
                .iter()
                .zip(&other.0)
                .all(|(a, b)| a.as_str() == b.as_str())
    }
}

/// What a revision was found on.
enum Found<'a> {
    /// An entry.
    Entry(&'a Pattern),
    /// Nothing, and everything was read.
    Nothing,
    /// Nothing in what was read, and one was not: what came of it, if anything.
    Unread(Option<&'a Reading>),
}

impl Revisions {
    /// Reads a spec. `field` is where it stands.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(spec: &Spec, field: &str) -> Result<Self, Refusals> {
        let Spec {
            allow,
            allow_from,
            deny,
            deny_from,
        } = spec;
        let mut mistakes = Vec::new();
        let rule = Self {
            allow: entries(allow, &format!("{field}.allow"), &mut mistakes),
            deny: entries(deny, &format!("{field}.deny"), &mut mistakes),
            allow_from: allow_from.clone(),
            deny_from: deny_from.clone(),
        };
        if allow.len() + allow_from.len() + deny.len() + deny_from.len() == 0 {
            mistakes.push(Refusal::new(
                field,
                "revisions without a list say nothing",
                "write at least one of allow, allowFrom, deny, denyFrom",
            ));
        }
        Refusals::unless_empty(mistakes, rule)
    }

    /// The lists in ConfigMaps, in the order in which [`Revisions::opinion`] takes their readings.
    pub fn sources(&self) -> impl Iterator<Item = &ListSource> {
        self.allow_from.iter().chain(&self.deny_from)
    }

    /// What it says of a revision. `lists` are the readings of [`Revisions::sources`], as far as
    /// they have been read.
    pub fn opinion(
        &self,
        lists: &[Reading],
        revision: Option<&Revision>,
        on_error: Setting,
    ) -> Opinion {
        let (allowed, denied) = self.readings(lists);
        if lists.iter().any(|list| matches!(list, Reading::Broken(_))) {
            return Opinion::closed(Reason::EvidenceBroken);
        }
        let Some(revision) = revision else {
            return self.of_any(lists, on_error);
        };
        let unread = |reading: Option<&Reading>| match reading {
            None => Opinion::closed(Reason::NotObserved),
            Some(_) => Opinion::of(on_error.into(), Reason::EvidenceUnavailable),
        };
        let denies = |entry: &Pattern| entry.covers(revision);
        let not_denied = match find(&self.deny, &self.deny_from, denied, denies) {
            Found::Entry(_) => return Opinion::closed(Reason::RevisionDenied),
            Found::Unread(reading) => unread(reading),
            Found::Nothing => Opinion::of(State::Open, Reason::RevisionNotDenied),
        };
        if not_denied.state == State::Closed || self.allows_any() {
            return not_denied;
        }
        let allows = |entry: &Pattern| entry.matches(revision);
        match find(&self.allow, &self.allow_from, allowed, allows) {
            // It may be denied, but that is not known.
            Found::Entry(_) if not_denied.reason == Reason::EvidenceUnavailable => not_denied,
            Found::Entry(_) => Opinion::of(State::Open, Reason::RevisionAllowed),
            Found::Unread(reading) => unread(reading),
            Found::Nothing => Opinion::closed(Reason::RevisionNotListed),
        }
    }

    /// What it says to a question about no particular revision. It reports a list that cannot be read,
    /// though the lists that are known may still let some revisions pass.
    fn of_any(&self, lists: &[Reading], on_error: Setting) -> Opinion {
        let read = |reading: Option<&Reading>| matches!(reading, Some(Reading::Read(_)));
        let (mut unread, mut blind) = (None, false);
        for (place, _) in self.sources().enumerate() {
            let reading = lists.get(place);
            if read(reading) {
                continue;
            }
            unread = unread.or(Some(match reading {
                None => Reason::NotObserved,
                Some(_) => Reason::EvidenceUnavailable,
            }));
            // Without a list that denies nothing may pass; without one that allows, others may.
            blind |= place >= self.allow_from.len();
        }
        let allows = !self.allow.is_empty()
            || (0..self.allow_from.len()).any(|place| read(lists.get(place)))
            || self.allows_any();
        match unread {
            None => Opinion::of(State::Conditional, Reason::DependsOnRevision),
            Some(Reason::EvidenceUnavailable) if on_error == Setting::Open => {
                Opinion::of(State::Conditional, Reason::EvidenceUnavailable)
            }
            Some(reason) if blind || !allows => Opinion::closed(reason),
            Some(reason) => Opinion::of(State::Conditional, reason),
        }
    }

    /// Whether everything may pass that nothing denies.
    fn allows_any(&self) -> bool {
        self.allow.is_empty() && self.allow_from.is_empty()
    }

    /// Why it says so, in a sentence.
    pub fn explain(
        &self,
        lists: &[Reading],
        revision: Option<&Revision>,
        opinion: &Opinion,
    ) -> String {
        let (allowed, denied) = self.readings(lists);
        let Some(revision) = revision else {
            return self.explain_lists(lists);
        };
        let (own, from, readings) = match opinion.reason {
            Reason::RevisionDenied => (&self.deny, &self.deny_from, denied),
            Reason::RevisionAllowed => (&self.allow, &self.allow_from, allowed),
            Reason::RevisionNotListed if revision.has_unknown_name() => {
                return format!(
                    "{revision} is not on a list of what may go out: no source shows its name, so its \
                     commit or digest has to be listed"
                );
            }
            Reason::RevisionNotListed => {
                return format!("{revision} is not on a list of what may go out");
            }
            Reason::RevisionNotDenied => {
                return format!("{revision} is not on a list of what may not go out");
            }
            _ => return self.explain_lists(lists),
        };
        let what = match opinion.state {
            State::Open => "may go out",
            State::Closed | State::Conditional => "may not go out",
        };
        let denies = opinion.reason == Reason::RevisionDenied;
        let is_doubt = |entry: &Pattern| revision.has_unknown_name() && !entry.matches(revision);
        let decides = |entry: &Pattern| match denies {
            true => entry.covers(revision) && !is_doubt(entry),
            false => entry.matches(revision),
        };
        if let Found::Entry(entry) = find(own, from, readings, decides) {
            return format!("{revision} {what}: it matches `{}`", entry.as_str());
        }
        match find(own, from, readings, |entry| {
            denies && entry.covers(revision)
        }) {
            Found::Entry(entry) => format!(
                "{revision} {what}: no source shows its name, which may match `{}`; wait until the \
                 source shows it, or list what is denied by its commit or digest",
                entry.as_str()
            ),
            Found::Nothing | Found::Unread(_) => format!("{revision} {what}"),
        }
    }

    /// What is wrong with the lists, or how many entries they have.
    fn explain_lists(&self, lists: &[Reading]) -> String {
        for (place, source) in self.sources().enumerate() {
            let reference = &source.config_map_ref;
            let list = format!("the list {}/{}", reference.name, reference.key);
            match lists.get(place) {
                None => return format!("{list} has not been read yet"),
                Some(Reading::Unavailable(why)) => return format!("{list} is unavailable: {why}"),
                Some(Reading::Broken(why)) => return format!("{list} is broken: {why}"),
                Some(Reading::Read(_)) => {}
            }
        }
        let count = |own: &[Pattern], readings: &[Reading]| {
            let read = readings.iter().map(|reading| match reading {
                Reading::Read(list) => list.0.len(),
                Reading::Unavailable(_) | Reading::Broken(_) => 0,
            });
            own.len() + read.sum::<usize>()
        };
        let (allowed, denied) = self.readings(lists);
        format!(
            "it depends on the revision: {} entries allow, {} deny",
            count(&self.allow, allowed),
            count(&self.deny, denied)
        )
    }

    /// The readings of what allows, and of what denies.
    fn readings<'a>(&self, lists: &'a [Reading]) -> (&'a [Reading], &'a [Reading]) {
        lists.split_at(self.allow_from.len().min(lists.len()))
    }
}

fn entries(texts: &[String], field: &str, mistakes: &mut Vec<Refusal>) -> Vec<Pattern> {
    let mut patterns = Vec::new();
    for (place, text) in texts.iter().enumerate() {
        match Pattern::parse(text) {
            Ok(pattern) => patterns.push(pattern),
            Err(why) => {
                mistakes.push(Refusal::new(
                    format!("{field}[{place}]"),
                    why,
                    pattern::REMEDY,
                ));
            }
        }
    }
    patterns
}

/// Looks among the entries of the spec, then in every list that was read.
fn find<'a>(
    own: &'a [Pattern],
    from: &'a [ListSource],
    readings: &'a [Reading],
    decides: impl Fn(&Pattern) -> bool,
) -> Found<'a> {
    let read = readings.iter().flat_map(|reading| match reading {
        Reading::Read(list) => list.0.as_slice(),
        Reading::Unavailable(_) | Reading::Broken(_) => &[],
    });
    if let Some(entry) = own.iter().chain(read).find(|entry| decides(entry)) {
        return Found::Entry(entry);
    }
    let unread = |place: &usize| !matches!(readings.get(*place), Some(Reading::Read(_)));
    match (0..from.len()).find(unread) {
        Some(place) => Found::Unread(readings.get(place)),
        None => Found::Nothing,
    }
}
