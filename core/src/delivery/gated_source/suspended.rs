//! The strategy `suspend`: the sources themselves stand still while the gates are closed.

use std::collections::BTreeSet;

use jiff::Timestamp;
use sluice_crds::flux::FluxObject;
use sluice_crds::gated_source::{SourceKind, marks};
use sluice_crds::{Decision, State};

use super::conditions::NAMED;
use super::observed::here;
use super::{Act, Given};
use crate::gate::set::Ruling;
use crate::verdict::condition::listed;
use crate::verdict::question::Question;

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
    /// The gates that hold everything back since their answer depends on the revision.
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
    let course = course(given, allowed);
    acts.extend(course.acts);
    Sources {
        held: course.held,
        others: course.others,
        all: given.sources.len(),
        troubles: course.troubles,
        choosy: if allowed {
            Vec::new()
        } else {
            choosy(decision)
        },
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
        match here(&source.upstream, &called) {
            Err(trouble) => course.troubles.push(trouble.message),
            Ok(object) => {
                let obstacle = cannot_hold(given, source.wanted.kind, object);
                let let_go = let_go || obstacle.is_some();
                let obstacle = obstacle.map(|why| format!("the {called} {why}"));
                course.troubles.extend(obstacle);
                course.take(given, source.wanted.kind, object, let_go);
            }
        }
    }
    course
}

impl Course {
    fn take(&mut self, given: &Given<'_>, kind: SourceKind, object: &FluxObject, let_go: bool) {
        let is_suspended = object.spec.get("suspend") == Some(&true.into());
        let (is_ours, others) = holds(given, object);
        let is_marked = is_ours || !others.is_empty();
        let holders = match let_go {
            true => is_ours.then(|| others.clone()),
            // What somebody has suspended who is no GatedSource stays as it is.
            false => (!is_suspended || (is_marked && !is_ours)).then(|| {
                let own = given.object.metadata.name.clone();
                others.iter().cloned().chain(own).collect()
            }),
        };
        if !let_go && (is_ours || holders.is_some()) {
            self.held += 1;
        } else if is_suspended && (!is_ours || !others.is_empty()) {
            self.others += 1;
        }
        self.acts.extend(holders.map(|holders| Act::Suspend {
            kind,
            holders,
            before: Box::new(object.clone()),
        }));
    }
}

/// What the gates of policies say of sources that this GatedSource holds no longer. To name other
/// sources is no way past them: those that were named stay suspended until these gates admit. None:
/// there are no such sources, or no such gates.
fn on_letting_go(given: &Given<'_>) -> Option<Ruling> {
    let policies = given
        .gates
        .of_policies()
        .filter(|_| !given.dropped.is_empty())?;
    Some(policies.rule(Question::new(given.now, None)))
}

/// Whether sources that this GatedSource holds no longer may be resumed.
pub(super) fn may_let_go(given: &Given<'_>) -> bool {
    on_letting_go(given).is_none_or(|ruling| ruling.allowed)
}

/// Until when the gates of policies say so.
pub(super) fn until_letting_go(given: &Given<'_>) -> Option<Timestamp> {
    on_letting_go(given)?.until
}

/// What there is to say of sources that are held no longer and stay suspended all the same, to go on
/// with after what else is said.
pub(super) fn still_held(given: &Given<'_>) -> String {
    if may_let_go(given) {
        return String::new();
    }
    let ours = given
        .dropped
        .iter()
        .filter(|(_, object)| holds(given, object).0);
    let names = ours.map(|(kind, object)| {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        format!("{} {name}", kind.as_str())
    });
    let names: Vec<String> = names.collect();
    format!(
        "; {} stay suspended, although they are not named any more, until the gates of GatePolicies \
         admit",
        listed(&names, NAMED)
    )
}

/// What was suspended and is held no longer is let go. What somebody else suspends stays so, and
/// whatever has lost the mark.
pub(super) fn dropped(given: &Given<'_>) -> Vec<Act> {
    let dropped = given.dropped.iter().filter_map(|(kind, object)| {
        let (is_ours, holders) = holds(given, object);
        is_ours.then(|| Act::Suspend {
            kind: *kind,
            holders,
            before: Box::new((*object).clone()),
        })
    });
    dropped.collect()
}

/// The GatedSources that suspend a source, by its mark. With several the last one to let it go resumes
/// it: so nothing gets past the gates of another.
pub fn holders(object: &FluxObject) -> BTreeSet<String> {
    let mark = object.metadata.annotations.as_ref();
    let mark = mark.and_then(|all| all.get(marks::SUSPENDED_BY));
    let names = mark.into_iter().flat_map(|names| names.split(','));
    let names = names.map(str::trim).filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// Whether this GatedSource suspends a source, and which others do.
fn holds(given: &Given<'_>, object: &FluxObject) -> (bool, BTreeSet<String>) {
    let mut holders = holders(object);
    let own = given.object.metadata.name.as_deref().unwrap_or_default();
    (holders.remove(own), holders)
}

/// Why suspending a source does not hold it back, and what to do instead.
fn cannot_hold(given: &Given<'_>, kind: SourceKind, object: &FluxObject) -> Option<String> {
    // It has no artifact, and nothing to suspend.
    if kind == SourceKind::HelmRepository && object.spec.get("type") == Some(&"oci".into()) {
        let why = "is of type oci, which suspending does not hold back; suspend the HelmCharts of \
                   it instead";
        return Some(why.to_owned());
    }
    // Its GatedSource would resume it, since that writes its spec whole.
    let marks = object.metadata.annotations.as_ref();
    let parent = marks.and_then(|all| all.get(marks::CHILD_OF));
    let parent = parent.filter(|it| given.object.metadata.name.as_ref() != Some(*it))?;
    Some(format!(
        "is the child of the GatedSource {parent}, which writes it; name these gates in that one"
    ))
}
