//! The objects of one part, one event after another: what of them is as it should be, and since
//! when without a break.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::core::Selector;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use sluice_crds::gatekeeper::ObjectsStatus;

use super::judge::labels;
use super::{Judged, Part, Sighting, Unsatisfied, Which};
use crate::revision::{Revision, short};

/// How much of a digest is shown, in bytes.
const DIGEST: usize = 16;

/// The objects of one part, followed over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Course {
    /// Where they are. None: in no namespace.
    namespace: Option<String>,
    judged: BTreeMap<String, Judged>,
    /// How many of them are as they should be.
    satisfied: usize,
    /// Whether all of them are at one revision, where that is asked.
    at: At,
    satisfied_since: Option<Timestamp>,
}

impl Course {
    /// Begins without any objects. `namespace` is where they are (None: in no namespace).
    pub fn begin(namespace: Option<&str>) -> Self {
        Self {
            namespace: namespace.map(str::to_owned),
            judged: BTreeMap::new(),
            satisfied: 0,
            at: At::Any,
            satisfied_since: None,
        }
    }

    /// Goes on: at `at` the object `name` of the part's kind is so, or is not there any more.
    pub fn follow(&mut self, part: &Part, name: &str, object: Option<Value>, at: Timestamp) {
        let object = object.filter(|object| part.selects(name, &labels(object)));
        let now = object.map(|object| part.judge(object));
        let is_satisfied = |judged: &Judged| usize::from(judged.why.is_none());
        self.satisfied += now.as_ref().map_or(0, is_satisfied);
        let before = match now {
            Some(now) => self.judged.insert(name.to_owned(), now),
            None => self.judged.remove(name),
        };
        self.satisfied -= before.as_ref().map_or(0, is_satisfied);
        let revision = self.revision(part);
        if revision != self.at {
            self.satisfied_since = None;
            self.at = revision;
        }
        self.count(at);
    }

    /// What happened until now is not known: the count of time starts again.
    pub fn lose_sight(&mut self, at: Timestamp) {
        self.satisfied_since = None;
        self.count(at);
    }

    /// If the clock was set back, the count of time starts again.
    pub fn not_after(&mut self, at: Timestamp) {
        self.satisfied_since = self.satisfied_since.map(|since| since.min(at));
    }

    /// Whether an object with this name and these labels is, or was, one of its objects.
    pub fn concerns(&self, part: &Part, name: &str, labels: &BTreeMap<String, String>) -> bool {
        self.judged.contains_key(name) || part.selects(name, labels)
    }

    /// Since when all of them have been as they should be, without a break. None: they are not, or
    /// there are none.
    pub fn satisfied_since(&self) -> Option<Timestamp> {
        self.satisfied_since
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.judged.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.judged.is_empty()
    }

    fn count(&mut self, at: Timestamp) {
        self.satisfied_since = match self.is_satisfied() {
            true => Some(self.satisfied_since.unwrap_or(at)),
            false => None,
        };
    }

    fn is_satisfied(&self) -> bool {
        !self.is_empty() && self.satisfied == self.len() && self.at != At::Several
    }

    /// Where its objects are.
    fn revision(&self, part: &Part) -> At {
        if part.revision.is_none() {
            return At::Any;
        }
        let mut all = self.placed(part).map(|(_, revision)| revision);
        match all.next() {
            Some(first) if all.all(|other| other.is(first)) => At::One(first.clone()),
            Some(_) => At::Several,
            None => At::Any,
        }
    }

    /// The objects of which it is known at which revision they are.
    fn placed(&self, part: &Part) -> impl Iterator<Item = (String, &Revision)> {
        self.judged.iter().filter_map(|(name, judged)| {
            let revision = judged.revision.as_ref()?;
            Some((self.called(&part.spec.kind, name), revision))
        })
    }

    fn first_unsatisfied(&self, part: &Part) -> Option<Unsatisfied> {
        let kind = &part.spec.kind;
        match &part.which {
            Which::Named(name) if self.is_empty() => {
                Some(Unsatisfied::Missing(self.called(kind, name)))
            }
            Which::Selected(selector) if self.is_empty() => {
                Some(Unsatisfied::NothingSelected(self.none_of(kind, selector)))
            }
            Which::Named(_) | Which::Selected(_) => {
                let unsatisfied = |(name, judged): (&String, &Judged)| {
                    let why = judged.why.clone()?;
                    let object = self.called(kind, name);
                    Some(Unsatisfied::Object { object, why })
                };
                self.judged.iter().find_map(unsatisfied)
            }
        }
    }

    fn none_of(&self, kind: &str, selector: &Selector) -> String {
        let mut words = kind.to_owned();
        if let Some(namespace) = &self.namespace {
            words.push_str(&format!(" in namespace {namespace}"));
        }
        if !selector.selects_all() {
            words.push_str(&format!(" with labels {selector}"));
        }
        words
    }

    fn called(&self, kind: &str, name: &str) -> String {
        match &self.namespace {
            Some(namespace) => format!("{kind} {namespace}/{name}"),
            None => format!("{kind} {name}"),
        }
    }
}

/// Where the objects of a part are.
#[derive(Clone, Debug, PartialEq, Eq)]
enum At {
    /// That is not asked, or not known.
    Any,
    /// All that are as they should be are at this revision.
    One(Revision),
    /// They are at several.
    Several,
}

/// Two objects that are not at the same revision.
fn apart(parts: &[(&Part, &Course)]) -> Option<Unsatisfied> {
    let mut all = parts.iter().flat_map(|(part, course)| course.placed(part));
    let (object, revision) = all.next()?;
    let (other, another) = all.find(|(_, another)| !another.is(revision))?;
    let (here, there) = (short(revision.as_str()), short(another.as_str()));
    Some(Unsatisfied::Object {
        object: other,
        why: format!("it is at {there}, and {object} at {here}"),
    })
}

impl Sighting {
    /// What was seen of a rule's parts, each with its course, in the order of the spec.
    pub fn of(parts: &[(&Part, &Course)], good_until: Timestamp) -> Self {
        let courses = || parts.iter().map(|(_, course)| *course);
        let unsatisfied = |(part, course): &(&Part, &Course)| course.first_unsatisfied(part);
        let first_unsatisfied = parts.iter().find_map(unsatisfied).or_else(|| apart(parts));
        let since = courses().map(|course| course.satisfied_since);
        let since: Option<Vec<Timestamp>> = since.collect();
        // All have been since the last of them has.
        let since = since.filter(|_| first_unsatisfied.is_none());
        let since = since.and_then(|since| since.into_iter().max());
        let placed = parts.iter().flat_map(|(part, course)| course.placed(part));
        let revision = placed
            .map(|(_, revision)| Box::new(revision.clone()))
            .next();
        Self {
            seen: courses().map(Course::len).sum(),
            satisfied: courses().map(|course| course.satisfied).sum(),
            revision: revision.filter(|_| first_unsatisfied.is_none()),
            first_unsatisfied,
            satisfied_since: since,
            digest: since.and_then(|_| digest(courses())),
            good_until,
        }
    }
}

/// See [`ObjectsStatus::digest`]. None where some object has no mark.
fn digest<'a>(courses: impl Iterator<Item = &'a Course>) -> Option<String> {
    let mut digest = Sha256::new();
    for course in courses {
        for (name, judged) in &course.judged {
            digest.update(name);
            digest.update(" ");
            digest.update(judged.mark.as_ref()?);
            digest.update("\n");
        }
        digest.update("\n");
    }
    let bytes = digest.finalize();
    Some(
        bytes
            .iter()
            .take(DIGEST)
            .map(|byte| format!("{byte:02x}"))
            .collect(),
    )
}

/// Goes on where a controller that ended has left off: `courses`, just begun, are those of one
/// rule, and `said` is what was last reported of it. If nothing can have happened in between, the
/// time that was counted counts.
pub fn resume<'a>(
    courses: impl Iterator<Item = &'a mut Course>,
    said: &ObjectsStatus,
    at: Timestamp,
) {
    let mut courses: Vec<_> = courses.collect();
    let same = said.digest.is_some()
        && said.digest == digest(courses.iter().map(|course| &**course))
        && courses.iter().all(|course| course.is_satisfied());
    let Some(since) = said.satisfied_since.as_ref().filter(|_| same) else {
        return;
    };
    for course in &mut courses {
        course.satisfied_since = Some(since.0.min(at));
    }
}
