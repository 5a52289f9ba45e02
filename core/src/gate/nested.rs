//! Gates that keep gates: `(a and b) or c`.
//!
//! What comes in: a gate, and [`Sources`] of whatever it names. What goes out: the gate with
//! everything that it depends on, gatekeepers, their gates, and theirs in turn. A gate that comes
//! to depend on itself is closed, and so is every other on that way; each says by which way.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::{Gate, GateReference, GateSet, Require};

use super::{Identity, Sight, View, explain as explain_gate, fold};
use crate::gatekeeper::{Evidence, Keeper};
use crate::text::refusal::{Refusal, Refusals};
use crate::time::clock::Now;
use crate::verdict::question::Question;
use crate::verdict::{Opinion, Reason};

mod cause;
mod inside;

pub(crate) use cause::cause;
pub use inside::{Inside, Said};

/// The most gates that one gate may depend on, counted along every way.
const MOST_GATES: usize = 128;

/// What is said of a gate that may not be named.
pub const FORBIDDEN: &str = "it is in another namespace, which --no-cross-namespace-refs or \
     --watch-all-namespaces=false forbids";
/// How many gates a message names.
const NAMED: usize = 3;

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Named<T> {
    /// There is none of that name.
    Missing,
    /// It lives in another namespace, and such references are off.
    Forbidden,
    /// There is one, but the API server holds something that this version cannot read.
    Unreadable(Arc<str>),
    /// Here it is.
    Here(T),
}

impl<T> Named<T> {
    /// The same of what is here, borrowed.
    pub fn as_ref(&self) -> Named<&T> {
        match self {
            Named::Missing => Named::Missing,
            Named::Forbidden => Named::Forbidden,
            Named::Unreadable(why) => Named::Unreadable(Arc::clone(why)),
            Named::Here(here) => Named::Here(here),
        }
    }

    /// The same, with something made of what is here.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Named<U> {
        match self {
            Named::Missing => Named::Missing,
            Named::Forbidden => Named::Forbidden,
            Named::Unreadable(why) => Named::Unreadable(why),
            Named::Here(here) => Named::Here(make(here)),
        }
    }
}

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
    keepers: Vec<Named<Arc<Keeper>>>,
    identity: Identity,
    cycle: Option<String>,
    unwatched: Option<Arc<str>>,
}

/// A gate that a gatekeeper names.
#[derive(Clone, Debug, PartialEq)]
pub struct Nested {
    name: String,
    found: Found,
}

#[derive(Clone, Debug, PartialEq)]
enum Found {
    Gate(Named<Box<(Arc<Gate>, Gathered)>>),
    /// By this way back to where it began.
    Cycle(String),
    TooMany,
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
    Walk::new(sources, at).nest(keeper).0
}

impl Gathered {
    /// `gate`, which it was gathered for, with all this.
    pub fn view<'a>(&'a self, gate: &'a Gate) -> View<'a> {
        let sight = |named: &'a Named<Arc<Keeper>>| match named {
            Named::Missing => Sight::Missing,
            Named::Forbidden => Sight::Forbidden,
            Named::Unreadable(why) => Sight::Unreadable(why),
            Named::Here(keeper) => Sight::Seen(keeper),
        };
        View {
            gate,
            keepers: self.keepers.iter().map(sight).collect(),
            identity: self.identity,
            cycle: self.cycle.as_deref(),
            unwatched: self.unwatched.as_deref(),
            terms: super::check(gate),
        }
    }

    /// The same with every gatekeeper, near and far, made anew.
    #[must_use]
    pub fn with_keepers(&self, make: &impl Fn(&Keeper) -> Keeper) -> Self {
        let made = |named: &Named<Arc<Keeper>>| {
            named.as_ref().map(|keeper| {
                let made = make(keeper);
                Arc::new(match keeper.evidence() {
                    Evidence::Gates(gates) => {
                        let gates = gates.iter().map(|gate| gate.with_keepers(make));
                        made.with_evidence(Evidence::Gates(gates.collect()))
                    }
                    _ => made,
                })
            })
        };
        Self {
            keepers: self.keepers.iter().map(made).collect(),
            ..self.clone()
        }
    }

    /// The gatekeepers, in the order of the gate's spec.
    pub fn keepers(&self) -> &[Named<Arc<Keeper>>] {
        &self.keepers
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
        let mut keepers = Vec::with_capacity(gate.spec.gatekeepers.len());
        for reference in &gate.spec.gatekeepers {
            let keeper = self.sources.gatekeeper(&namespace, reference, self.at);
            keepers.push(match keeper {
                Named::Here(keeper) if keeper.object().spec.gates.is_some() => {
                    let (keeper, by) = self.nest(&keeper);
                    back = furthest(back, by);
                    Named::Here(Arc::new(keeper))
                }
                other => other,
            });
        }
        self.way.pop();
        let gathered = Gathered {
            keepers,
            identity: self.sources.identity(gate),
            cycle: back.as_ref().map(|back| back.by.clone()),
            unwatched: self.sources.unwatched(),
        };
        (gathered, back.filter(|back| back.to < place))
    }

    fn nest(&mut self, keeper: &Keeper) -> (Keeper, Option<Back>) {
        let object = keeper.object();
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        let mut back = None;
        let references = object.spec.gates.iter().flat_map(|gates| &gates.refs);
        let mut nested = Vec::new();
        for reference in references {
            let (found, by) = self.find(namespace, reference);
            back = furthest(back, by);
            nested.push(Nested {
                name: match &reference.namespace {
                    Some(other) if other != namespace => format!("{other}/{}", reference.name),
                    _ => reference.name.clone(),
                },
                found,
            });
        }
        (keeper.with_evidence(Evidence::Gates(nested.into())), back)
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
        match self.sources.gate(from, reference) {
            Named::Missing => (Found::Gate(Named::Missing), None),
            Named::Forbidden => (Found::Gate(Named::Forbidden), None),
            Named::Unreadable(why) => (Found::Gate(Named::Unreadable(why)), None),
            Named::Here(gate) => {
                let (gathered, back) = self.gate(&gate);
                (Found::Gate(Named::Here(Box::new((gate, gathered)))), back)
            }
        }
    }
}

/// Of two ways back the one that leads furthest.
fn furthest(one: Option<Back>, other: Option<Back>) -> Option<Back> {
    match (one, other) {
        (Some(one), Some(other)) if other.to < one.to => Some(other),
        (one, other) => one.or(other),
    }
}

/// Everything that is wrong with a spec of the kind `gates`.
pub(crate) fn check(spec: &GateSet, field: &str) -> Result<(), Refusals> {
    let mut mistakes = Vec::new();
    if spec.refs.is_empty() {
        mistakes.push(Refusal::new(
            format!("{field}.refs"),
            "it names no gate",
            "name at least one",
        ));
    }
    for (place, reference) in spec.refs.iter().enumerate() {
        if spec.refs[..place].contains(reference) {
            mistakes.push(Refusal::new(
                format!("{field}.refs[{place}]"),
                format!("`{}` is listed twice", reference.name),
                "list each gate once",
            ));
        }
    }
    Refusals::unless_empty(mistakes, ())
}

/// What the gates come to.
pub(crate) fn opinion(require: Require, nested: &[Nested], question: Question<'_>) -> Opinion {
    let opinions: Vec<Opinion> = nested.iter().map(|gate| gate.opinion(question)).collect();
    let answer = fold::fold(require, opinions.iter().copied());
    let next = opinions.iter().filter_map(|opinion| opinion.next).min();
    Opinion {
        state: answer.state,
        reason: match answer.reason {
            reason @ (Reason::EvidenceUnavailable | Reason::Cycle) => reason,
            _ => Reason::Nested,
        },
        until: opinions.iter().filter_map(|opinion| opinion.until).min(),
        next,
    }
}

/// Why, in a sentence: what those gates say that decide.
pub(crate) fn explain(require: Require, nested: &[Nested], question: Question<'_>) -> String {
    let state = opinion(require, nested, question).state;
    let said: Vec<String> = nested
        .iter()
        .filter(|gate| gate.opinion(question).counts_as(require) == state)
        .take(NAMED)
        .map(|gate| format!("gate {}: {}", gate.name, gate.explain(question)))
        .collect();
    said.join("; ")
}

impl Nested {
    /// Whether the words of anything behind it waver.
    pub(crate) fn wavers(&self) -> bool {
        let wavers = |keeper: &Keeper| keeper.wavers() || keeper.evidence().nested_wavers();
        self.keepers().any(wavers)
    }

    /// The gatekeepers that are found behind it.
    fn keepers(&self) -> impl Iterator<Item = &Keeper> {
        let keepers = match &self.found {
            Found::Gate(Named::Here(found)) => found.1.keepers(),
            Found::Gate(Named::Missing | Named::Forbidden | Named::Unreadable(_))
            | Found::Cycle(_)
            | Found::TooMany => &[],
        };
        keepers.iter().filter_map(|named| match named {
            Named::Here(keeper) => Some(keeper.as_ref()),
            Named::Missing | Named::Forbidden | Named::Unreadable(_) => None,
        })
    }

    /// Until when everything that was read behind it may be relied on.
    pub(crate) fn good_until(&self) -> Option<Timestamp> {
        self.keepers().filter_map(Keeper::good_until).min()
    }

    /// The same of whatever has not run out at `now`: what has may not decide.
    pub(crate) fn good_after(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = self.keepers().filter_map(|keeper| keeper.good_after(now));
        ends.filter(|end| *end > now).min()
    }

    /// Whether anything behind it only repeats what its status reports.
    pub(crate) fn stands_in(&self, now: Now) -> bool {
        self.keepers().any(|keeper| keeper.stands_in(now))
    }

    /// How much there is to ask for one answer.
    pub(crate) fn weight(&self) -> usize {
        let Found::Gate(Named::Here(found)) = &self.found else {
            return 1;
        };
        let weight = |named: &Named<Arc<Keeper>>| match named {
            Named::Here(keeper) => keeper.weight(),
            Named::Missing | Named::Forbidden | Named::Unreadable(_) => 1,
        };
        1 + found.1.keepers.iter().map(weight).sum::<usize>()
    }

    fn with_keepers(&self, make: &impl Fn(&Keeper) -> Keeper) -> Self {
        let found = match &self.found {
            Found::Gate(Named::Here(found)) => {
                let (gate, gathered) = found.as_ref();
                let gathered = gathered.with_keepers(make);
                Found::Gate(Named::Here(Box::new((Arc::clone(gate), gathered))))
            }
            other => other.clone(),
        };
        Self {
            name: self.name.clone(),
            found,
        }
    }

    fn opinion(&self, question: Question<'_>) -> Opinion {
        let (gate, gathered) = match &self.found {
            Found::Gate(Named::Here(found)) => found.as_ref(),
            Found::Gate(Named::Missing) => return Opinion::closed(Reason::Missing),
            Found::Gate(Named::Forbidden) => return Opinion::closed(Reason::CrossNamespaceRef),
            Found::Gate(Named::Unreadable(_)) | Found::TooMany => {
                return Opinion::closed(Reason::InvalidSpec);
            }
            Found::Cycle(_) => return Opinion::closed(Reason::Cycle),
        };
        super::opinion(&gathered.view(gate), question)
    }

    /// When time changes what it says, as [`Keeper::turns`] has it.
    pub(crate) fn turns(&self, question: Question<'_>) -> Option<Timestamp> {
        let Found::Gate(Named::Here(found)) = &self.found else {
            return None;
        };
        let (gate, gathered) = found.as_ref();
        super::turns(&gathered.view(gate), question)
    }

    fn explain(&self, question: Question<'_>) -> String {
        match &self.found {
            Found::Gate(Named::Here(found)) => {
                let (gate, gathered) = found.as_ref();
                explain_gate(&gathered.view(gate), question).2
            }
            Found::Gate(Named::Missing) => "there is no such gate".to_owned(),
            Found::Gate(Named::Forbidden) => FORBIDDEN.to_owned(),
            Found::Gate(Named::Unreadable(why)) => format!("it cannot be read: {why}"),
            Found::Cycle(by) => format!("it depends on itself: {by}"),
            Found::TooMany => format!("more than {MOST_GATES} gates hang together here"),
        }
    }
}
