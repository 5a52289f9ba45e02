//! Step 5: what the children have to be, or the sources themselves if there are no children.

use sluice_crds::Decision;
use sluice_crds::gated_source::{AdmittedPart, Strategy};

use super::admission::Admission;
use super::child::{self, Look, State};
use super::considered::Step;
use super::deletion::{self, Former};
use super::sources::{Child, Observed, Seen};
use super::suspended::Sources;
use super::{Act, Holding, served};

/// The objects that a look handles.
pub(super) enum Objects {
    /// Nothing is done.
    Untouched,
    /// There are children.
    Children(Children),
    /// The strategy `suspend`: there are the sources alone.
    Sources(Sources),
}

/// The states of the children.
#[derive(Default)]
pub(super) struct Children {
    /// Those children whose state is known.
    pub(super) states: Vec<State>,
    /// Why what was admitted cannot be fetched again.
    pub(super) lost: Option<String>,
    /// Why what was admitted has never been fetched, if a child has tried and failed.
    unfetched: Option<String>,
    /// Why the artifact of a candidate could not be stored.
    pub(super) unstored: Option<String>,
}

impl Objects {
    /// The state of the objects, and what has to be done about them, in this order.
    pub(super) fn look(
        seen: &Seen,
        former: &mut Former,
        step: &Step,
        admission: &Admission<'_>,
        recorded: Option<&Decision>,
    ) -> (Self, Vec<Act>) {
        if !step.may_act() {
            return (Self::Untouched, Vec::new());
        }
        let mut acts = Vec::from_iter(deletion::finalizer(&seen.object));
        let objects = match step {
            Step::Suspend(..) => {
                let allowed = recorded.is_some_and(|recorded| recorded.allowed);
                let mut sources = Sources::new(seen, allowed);
                acts.append(&mut sources.acts);
                Self::Sources(sources)
            }
            _ => {
                let children = Children::look(seen, admission, &mut acts);
                acts.append(&mut former.children);
                Self::Children(children)
            }
        };
        if former.may_resume() {
            acts.append(&mut former.sources);
        }
        (objects, acts)
    }

    /// Why what was admitted has never been fetched, if a child has tried and failed.
    pub(super) fn unfetched(&self) -> Option<&str> {
        match self {
            Self::Children(children) => children.unfetched.as_deref(),
            Self::Untouched | Self::Sources(_) => None,
        }
    }

    /// Whether an object of somebody else has the name of a child.
    pub(super) fn are_taken(&self) -> bool {
        let is_taken = |it: &State| matches!(it, State::Taken(_));
        matches!(self, Self::Children(children) if children.states.iter().any(is_taken))
    }

    /// Whether a fetch has to be retried.
    pub(super) fn retries(&self) -> bool {
        matches!(self, Self::Children(children) if children.unstored.is_some())
    }
}

impl Children {
    /// Looks at the child of each source.
    fn look(seen: &Seen, admission: &Admission<'_>, acts: &mut Vec<Act>) -> Self {
        let mut children = Self::default();
        for source in &seen.sources {
            let out = admission.of(source);
            if seen.strategy() == Strategy::Artifact {
                let shown = served::keep(seen, source, admission, acts);
                children.take_shown(shown, out.is_some());
            }
            match out {
                Some(out) => children.take(look(seen, source, out), acts),
                // Nothing has gone out yet, and an object of somebody else has the name already.
                None if matches!(source.child, Child::Taken) => {
                    children.states.push(taken(source));
                }
                None => {}
            }
        }
        children
    }

    fn take(&mut self, look: Look, acts: &mut Vec<Act>) {
        if matches!(look.state, State::Fails(..)) && self.unfetched.is_none() {
            self.unfetched.clone_from(&look.lost);
        }
        self.states.push(look.state);
        self.lost = self.lost.take().or(look.lost);
        acts.extend(look.acts);
    }

    /// Takes in whether what a source shows is stored. If its child serves something already, the child's
    /// own state is reported, and not this one.
    fn take_shown(&mut self, shown: Option<Holding>, serves: bool) {
        let fails = match shown {
            Some(Holding::Failed(why)) => {
                let message = format!("the artifact is unavailable: {why}");
                self.unstored.get_or_insert(why);
                State::Fails("FetchFailed".into(), message)
            }
            Some(Holding::Off) => State::Fails("StorageDisabled".into(), served::OFF.into()),
            _ => return,
        };
        if !serves {
            self.states.push(fails);
        }
    }
}

/// Looks at the child of a source of which something has gone out.
fn look(seen: &Seen, source: &Observed, admitted: &AdmittedPart) -> Look {
    let kind = source.child_kind.as_str();
    let called = format!("{kind} {}", source.wanted.target);
    let fails = |reason: &str, message| Look::from(State::Fails(reason.to_owned(), message));
    let present = match &source.child {
        Child::Ours(child) => Some(child),
        Child::Missing => None,
        Child::Taken => {
            return Look {
                lost: Some(format!("the {called} does not belong to this GatedSource")),
                ..Look::from(taken(source))
            };
        }
        Child::NotInstalled => {
            let message = format!("Flux's CRD of {kind} is not installed");
            return fails("FluxNotInstalled", message);
        }
        Child::Unreadable(why) => {
            let message = format!("the {called} cannot be read: {why}");
            return fails("ChildUnreadable", message);
        }
    };
    match seen.strategy() {
        Strategy::Pin | Strategy::Suspend => {
            child::pinned(seen, source, admitted, present, &called)
        }
        Strategy::Artifact => served::look(seen, source, admitted, present, &called),
    }
}

fn taken(source: &Observed) -> State {
    State::Taken(format!(
        "there is a {} {} already that this GatedSource has not made; delete it, or write another \
         target",
        source.child_kind.as_str(),
        source.wanted.target
    ))
}
