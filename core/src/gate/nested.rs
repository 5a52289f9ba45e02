//! Gates that keep gates: `(a and b) or c`.
//!
//! What comes in: a gate, and [`Sources`] of everything that it names. What goes out: the gate with
//! everything that it depends on: gatekeepers, their gates, the gatekeepers of these, and so on. A gate
//! that depends on itself is closed, and so is every other gate on that path; each says what the path is.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::{Gate, GateReference};

use super::{Identity, Named, View};
use crate::gatekeeper::Keeper;

mod behind;
mod inside;

use behind::{Behind, Found, Nested};
pub use inside::{Inside, Said};

/// The most gates that one gate may depend on, counted along every way.
const MOST_GATES: usize = 128;

/// Where gates and gatekeepers are found.
pub trait Sources {
    /// The gate that an object in `from` names.
    fn gate(&self, from: &str, reference: &GateReference) -> Named<Arc<Gate>>;
    /// The gatekeeper that a gate in `from` names, ready to be asked about `at`; of the kind
    /// `gates` without its gates.
    fn gatekeeper(
        &self,
        from: &str,
        reference: &sluice_crds::gate::GatekeeperReference,
        at: Timestamp,
    ) -> Named<Arc<Keeper>>;
    /// Whether the author of an annotation on a gate is known to be who it says.
    fn identity(&self, gate: &Gate) -> Identity;
    /// Why changes of what is found here are not seen any more. None: they are.
    fn unwatched(&self) -> Option<Arc<str>> {
        None
    }
}

/// What a gate depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct Gathered {
    listed: Vec<Named<Listed>>,
    identity: Identity,
    cycle: Option<String>,
    unwatched: Option<Arc<str>>,
}

/// A gatekeeper that a gate lists.
#[derive(Clone, Debug, PartialEq)]
struct Listed {
    keeper: Arc<Keeper>,
    /// The gates that it names, if it is of the kind `gates`: then they are its rule, too.
    behind: Option<Arc<Behind>>,
}

/// Everything that `gate` depends on, as it is found in `sources`.
pub fn gather(sources: &impl Sources, gate: &Gate, at: Timestamp) -> Gathered {
    Walk::new(sources, at).gate(gate).0
}

/// The gate that an object in `from` names, with everything that it depends on.
pub fn find(
    sources: &impl Sources,
    from: &str,
    reference: &GateReference,
    at: Timestamp,
) -> Named<(Arc<Gate>, Gathered)> {
    sources.gate(from, reference).map(|gate| {
        let gathered = gather(sources, &gate, at);
        (gate, gathered)
    })
}

/// A gatekeeper of the kind `gates`, with its gates.
pub fn complete(sources: &impl Sources, keeper: &Keeper, at: Timestamp) -> Keeper {
    match Walk::new(sources, at).behind(keeper).0 {
        Some(behind) => keeper.judged_by(Arc::new(behind)),
        None => keeper.clone(),
    }
}

impl Gathered {
    /// `gate`, which it was gathered for, with all this.
    pub fn view<'a>(&'a self, gate: &'a Gate) -> View<'a> {
        let keepers = self.listed.iter().map(Named::as_ref);
        View {
            gate,
            keepers: keepers.map(|it| it.map(|listed| &*listed.keeper)).collect(),
            identity: self.identity,
            cycle: self.cycle.as_deref(),
            unwatched: self.unwatched.as_deref(),
            terms: super::check(gate),
        }
    }

    /// The same with every gatekeeper, near and far, made again.
    #[must_use]
    pub fn with_keepers(&self, make: &impl Fn(&Keeper) -> Keeper) -> Self {
        let made = |named: &Named<Listed>| {
            named.as_ref().map(|Listed { keeper, behind }| {
                let behind = behind.as_ref().map(|behind| behind.with_keepers(make));
                Listed::new(&make(keeper), behind.map(Arc::new))
            })
        };
        Self {
            listed: self.listed.iter().map(made).collect(),
            ..self.clone()
        }
    }

    /// The gatekeepers, in the order of the gate's spec. None: there is none of that name, or it cannot
    /// be read.
    pub fn keepers(&self) -> impl Iterator<Item = Option<&Keeper>> {
        let listed = self.listed.iter().map(Named::here);
        listed.map(|listed| listed.map(|listed| listed.keeper.as_ref()))
    }

    /// What is listed and can be asked.
    fn here(&self) -> impl Iterator<Item = &Listed> {
        self.listed.iter().filter_map(Named::here)
    }
}

impl Listed {
    fn new(keeper: &Keeper, behind: Option<Arc<Behind>>) -> Self {
        let keeper = match &behind {
            Some(behind) => keeper.judged_by(Arc::clone(behind) as _),
            None => keeper.clone(),
        };
        Self {
            keeper: Arc::new(keeper),
            behind,
        }
    }

    /// The gates that it names.
    fn gates(&self) -> &[Nested] {
        self.behind.as_ref().map_or(&[], |behind| &behind.gates)
    }
}

/// A way through gates.
struct Walk<'s, S> {
    sources: &'s S,
    at: Timestamp,
    /// The gates on the way, as `namespace/name`.
    way: Vec<String>,
    left: usize,
}

/// The way leads back to a gate on it.
#[derive(Clone)]
struct Back {
    /// The place of that gate.
    to: usize,
    by: String,
}

impl<'s, S: Sources> Walk<'s, S> {
    fn new(sources: &'s S, at: Timestamp) -> Self {
        Self {
            sources,
            at,
            way: Vec::new(),
            left: MOST_GATES,
        }
    }

    fn gate(&mut self, gate: &Gate) -> (Gathered, Option<Back>) {
        let place = self.way.len();
        let namespace = gate.metadata.namespace.clone().unwrap_or_default();
        let name = gate.metadata.name.as_deref().unwrap_or_default();
        self.way.push(format!("{namespace}/{name}"));
        let mut back: Option<Back> = None;
        let mut listed = Vec::with_capacity(gate.spec.gatekeepers.len());
        for reference in &gate.spec.gatekeepers {
            let keeper = self.sources.gatekeeper(&namespace, reference, self.at);
            listed.push(keeper.map(|keeper| match self.behind(&keeper) {
                (None, _) => Listed {
                    keeper,
                    behind: None,
                },
                (Some(behind), by) => {
                    back = furthest(back.take(), by);
                    Listed::new(&keeper, Some(Arc::new(behind)))
                }
            }));
        }
        self.way.pop();
        let gathered = Gathered {
            listed,
            identity: self.sources.identity(gate),
            cycle: back.as_ref().map(|back| back.by.clone()),
            unwatched: self.sources.unwatched(),
        };
        (gathered, back.filter(|back| back.to < place))
    }

    /// The gates that a gatekeeper names. None: it is of another kind.
    fn behind(&mut self, keeper: &Keeper) -> (Option<Behind>, Option<Back>) {
        let object = keeper.object();
        let Some(set) = &object.spec.gates else {
            return (None, None);
        };
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        let mut back = None;
        let mut gates = Vec::with_capacity(set.refs.len());
        for reference in &set.refs {
            let (found, by) = self.find(namespace, reference);
            back = furthest(back, by);
            gates.push(Nested {
                name: match &reference.namespace {
                    Some(other) if other != namespace => format!("{other}/{}", reference.name),
                    _ => reference.name.clone(),
                },
                found,
            });
        }
        let require = set.require;
        (Some(Behind { require, gates }), back)
    }

    fn find(&mut self, from: &str, reference: &GateReference) -> (Found, Option<Back>) {
        let namespace = reference.namespace.as_deref().unwrap_or(from);
        let name = format!("{namespace}/{}", reference.name);
        if let Some(to) = self.way.iter().position(|gate| *gate == name) {
            let by = format!("{} → {name}", self.way[to..].join(" → "));
            return (Found::Cycle(by.clone()), Some(Back { to, by }));
        }
        if self.left == 0 {
            return (Found::TooMany, None);
        }
        self.left -= 1;
        let mut back = None;
        let found = self.sources.gate(from, reference).map(|gate| {
            let gathered;
            (gathered, back) = self.gate(&gate);
            Box::new((gate, gathered))
        });
        (Found::Gate(found), back)
    }
}

/// Of two ways back the one that leads furthest.
fn furthest(one: Option<Back>, other: Option<Back>) -> Option<Back> {
    match (one, other) {
        (Some(one), Some(other)) if other.to < one.to => Some(other),
        (one, other) => one.or(other),
    }
}
