//! The objects that a look does something about: the children, or the sources themselves.

use sluice_crds::gated_source::{Pending, Strategy};
use sluice_crds::{Decision, GatedSourceStatus};

use super::child::{self, Standing};
use super::considered::{Considered, Step};
use super::suspended::{self, Sources};
use super::{Act, Given, Holding, Source, deletion, served};

/// How the objects stand that something is done about.
pub(super) enum Objects {
    /// Nothing is done.
    Untouched,
    /// There are children.
    Children(Children),
    /// The strategy `suspend`: there are the sources alone.
    Sources(Sources),
}

/// How the children stand.
#[derive(Default)]
pub(super) struct Children {
    /// Those of which something can be said.
    pub(super) standings: Vec<Standing>,
    /// Why what was admitted cannot be had again.
    pub(super) lost: Option<String>,
    /// Why what was admitted has never been fetched.
    unfetched: Option<String>,
    /// Why the artifact of a candidate could not be stored.
    pub(super) unstored: Option<String>,
}

impl Objects {
    /// How they stand, and what is to be done about them, in this order.
    pub(super) fn look(
        given: &Given<'_>,
        considered: &Considered,
        status: &GatedSourceStatus,
        told: Option<&Decision>,
    ) -> (Self, Vec<Act>) {
        if !considered.is_at_work() {
            return (Self::Untouched, Vec::new());
        }
        let mut acts = Vec::from_iter(deletion::finalizer(given));
        let objects = match &considered.step {
            Step::Hold(decision) => {
                let allowed = told.is_some_and(|told| told.allowed);
                let sources = suspended::hold(given, decision, allowed, &mut acts);
                Self::Sources(sources)
            }
            _ => {
                let children = Children::look(given, status, &mut acts);
                acts.extend(deletion::strays(given));
                Self::Children(children)
            }
        };
        if suspended::may_let_go(given) {
            acts.extend(suspended::dropped(given));
        }
        (objects, acts)
    }

    /// Whether anything waits.
    pub(super) fn waits(&self, pending: Option<&Pending>) -> bool {
        match self {
            Self::Untouched => false,
            Self::Children(_) => pending.is_some(),
            Self::Sources(sources) => sources.waits,
        }
    }

    /// Why what was admitted has never been fetched, where a child has tried and could not.
    pub(super) fn unfetched(&self) -> Option<&str> {
        match self {
            Self::Children(children) => children.unfetched.as_deref(),
            Self::Untouched | Self::Sources(_) => None,
        }
    }

    /// Whether the name of a child is somebody else's.
    pub(super) fn are_taken(&self) -> bool {
        let is_taken = |it: &Standing| matches!(it, Standing::Taken(_));
        matches!(self, Self::Children(children) if children.standings.iter().any(is_taken))
    }

    /// Whether a fetch is to be tried again.
    pub(super) fn retry(&self) -> bool {
        matches!(self, Self::Children(children) if children.unstored.is_some())
    }
}

impl Children {
    /// Looks at the child of each source.
    fn look(given: &Given<'_>, status: &GatedSourceStatus, acts: &mut Vec<Act>) -> Self {
        let mut children = Self::default();
        for source in &given.sources {
            let out = status.admitted.iter().flat_map(|admitted| &admitted.parts);
            let is_of_it =
                |kind, name: &String| (kind, name) == (source.wanted.kind, &source.wanted.name);
            let out = { out }.find(|part| is_of_it(part.kind, &part.name));
            if given.object.spec.strategy == Strategy::Artifact && served::may_keep(given, source) {
                let shown = served::keep(given, source, out, &status.candidates, acts);
                children.take_shown(shown, out.is_some());
            }
            match out {
                Some(out) => {
                    let look = child::look(given, source, out);
                    if matches!(look.standing, Standing::Fails(..)) && children.unfetched.is_none()
                    {
                        children.unfetched = look.lost.clone();
                    }
                    children.standings.push(look.standing);
                    children.lost = children.lost.take().or(look.lost);
                    acts.extend(look.acts);
                }
                None => children.standings.extend(taken(given, source)),
            }
        }
        children
    }

    /// Takes in how what a source shows is stored. Of one that serves something already, its child
    /// says what is wrong with that.
    fn take_shown(&mut self, shown: Option<Holding>, serves: bool) {
        let fails = match shown {
            Some(Holding::Failed(why)) => {
                let message = format!("the artifact cannot be had: {why}");
                self.unstored.get_or_insert(why);
                Standing::Fails("FetchFailed".into(), message)
            }
            Some(Holding::Off) => Standing::Fails("StorageDisabled".into(), served::OFF.into()),
            _ => return,
        };
        if !serves {
            self.standings.push(fails);
        }
    }
}

/// The name that a child is to have is somebody else's, although nothing has gone out yet.
fn taken(given: &Given<'_>, source: &Source<'_>) -> Option<Standing> {
    child::is_taken(given, source).then(|| child::taken(given, source))
}
