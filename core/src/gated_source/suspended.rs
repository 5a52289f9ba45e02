//! The strategy `suspend`: the sources themselves stand still while the gates are closed.

use jiff::Timestamp;
use sluice_crds::flux::FluxObject;
use sluice_crds::gated_source::{SourceKind, marks};
use sluice_crds::{Decision, State};

use super::observed::here;
use super::{Act, Given, Source};
use crate::question::Question;

/// What the gates say of whatever comes next: no revision is known.
pub(super) fn decide(given: &Given<'_>) -> Decision {
    let subject = super::subject(given.object, None);
    given.gates.decide(subject, Question::new(given.now, None))
}

/// Until when that holds while nothing is seen to change.
pub(super) fn until(given: &Given<'_>) -> Option<Timestamp> {
    given.gates.rule(Question::new(given.now, None)).until
}

/// Whether open gates would let any source go that stands still for us.
pub(super) fn resumes(given: &Given<'_>) -> bool {
    !course(given, true).acts.is_empty()
}

/// The gates whose answer depends on the revision, which a suspended source does not show.
fn choosy(decision: &Decision) -> Vec<String> {
    let checked = decision.checked.iter();
    let choosy = checked.filter(|checked| checked.state == State::Conditional);
    choosy.map(|checked| checked.gate.clone()).collect()
}

/// How the sources stand.
pub(super) struct Sources {
    /// How many stand still for us, when all is done.
    pub(super) held: usize,
    /// How many stand still for somebody else.
    pub(super) others: usize,
    /// How many there are.
    pub(super) all: usize,
    /// What cannot be held: why.
    pub(super) troubles: Vec<String>,
    /// The gates whose answer depends on the revision.
    pub(super) choosy: Vec<String>,
    /// Whether the gates are closed.
    pub(super) waits: bool,
}

/// Suspends or resumes, as the gates say.
pub(super) fn hold(
    given: &Given<'_>,
    decision: &Decision,
    allowed: bool,
    acts: &mut Vec<Act>,
) -> Sources {
    let choosy = choosy(decision);
    // Fail closed: what depends on the revision holds everything back.
    let course = course(given, allowed && choosy.is_empty());
    acts.extend(course.acts);
    Sources {
        held: course.held,
        others: course.others,
        all: given.sources.len(),
        troubles: course.troubles,
        choosy,
        waits: !allowed,
    }
}

/// What becomes of the sources.
pub(super) struct Course {
    pub(super) acts: Vec<Act>,
    held: usize,
    others: usize,
    troubles: Vec<String>,
}

/// Lets the sources go, or holds them.
pub(super) fn course(given: &Given<'_>, let_go: bool) -> Course {
    let mut course = Course {
        acts: Vec::new(),
        held: 0,
        others: 0,
        troubles: Vec::new(),
    };
    for source in &given.sources {
        let called = format!("{} {}", source.wanted.kind.as_str(), source.wanted.name);
        let object = match here(&source.upstream, &called) {
            Ok(object) => object,
            Err(trouble) => {
                course.troubles.push(trouble.message);
                continue;
            }
        };
        if !let_go && has_no_suspension(source.wanted.kind, object) {
            course.troubles.push(format!(
                "the {called} is of type oci, which suspending does not hold back; suspend the \
                 HelmCharts of it instead"
            ));
            continue;
        }
        course.take(given, source, object, let_go);
    }
    course
}

/// What was suspended and is held no longer is resumed. What somebody else suspends stays so, and
/// whatever has lost the mark.
pub(super) fn dropped(given: &Given<'_>) -> Vec<Act> {
    let dropped = given.dropped.iter();
    let ours = dropped.filter(|(_, object)| is_ours(given, object));
    let resume = ours.map(|(kind, object)| Act::Suspend {
        kind: *kind,
        suspend: false,
        before: Box::new((*object).clone()),
    });
    resume.collect()
}

/// Whether the mark says that this GatedSource has suspended it.
fn is_ours(given: &Given<'_>, object: &FluxObject) -> bool {
    let mark = object.metadata.annotations.as_ref();
    let mark = mark.and_then(|all| all.get(marks::SUSPENDED_BY));
    mark.is_some() && mark == given.object.metadata.name.as_ref()
}

impl Course {
    fn take(&mut self, given: &Given<'_>, source: &Source<'_>, object: &FluxObject, let_go: bool) {
        let is_suspended = object.spec.get("suspend") == Some(&true.into());
        let is_ours = is_ours(given, object);
        let suspend = match (is_suspended, is_ours, let_go) {
            (_, true, true) => Some(false),
            (false, _, false) => Some(true),
            (true, _, false) | (_, false, true) => None,
        };
        if !let_go && (is_ours || !is_suspended) {
            self.held += 1;
        } else if is_suspended && !is_ours {
            self.others += 1;
        }
        self.acts.extend(suspend.map(|suspend| Act::Suspend {
            kind: source.wanted.kind,
            suspend,
            before: Box::new(object.clone()),
        }));
    }
}

/// A HelmRepository of the type oci has no artifact, and nothing to suspend.
fn has_no_suspension(kind: SourceKind, object: &FluxObject) -> bool {
    kind == SourceKind::HelmRepository && object.spec.get("type") == Some(&"oci".into())
}
