//! Everything that the decision about a gate set needs: the gates that it names, those of the
//! policies that concern the subject, and all that they depend on in turn.
//!
//! What comes in: [`Sources`], from caches, a cluster or files. What goes out: [`Gathered`], which
//! decides without looking anything up.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sluice_crds::{Decision, Gate, GatePolicy, GateSet, Gatekeeper, Require, Subject};

use super::{Policy, Ruling, Set, closes, decide, news, rule};
use crate::gate::policy::{self, Concern, Labels, Readable};
use crate::gate::{Named, nested};
use crate::verdict::question::Question;

/// Where gates, gatekeepers and policies are found.
pub trait Sources: nested::Sources {
    /// Every policy with its name, in the order of the names.
    fn policies(&self) -> Vec<(String, Readable)>;
    /// The labels of a namespace. None: it is not known.
    fn labels(&self, namespace: &str) -> Option<Labels>;
}

/// The sets that a subject has to pass, with all that they depend on.
#[derive(Clone, Debug)]
pub struct Gathered(Vec<GatheredSet>);

#[derive(Clone, Debug)]
struct GatheredSet {
    require: Require,
    policy: Option<Added>,
    gates: Vec<(String, Sight)>,
}

/// A gate with all that it depends on.
type Sight = Named<(Arc<Gate>, nested::Gathered)>;

/// A policy that adds gates, and why it is not known whether it concerns the subject.
#[derive(Clone, Debug)]
struct Added {
    name: String,
    doubt: Option<String>,
    /// None: it cannot be read.
    policy: Option<Arc<GatePolicy>>,
}

/// What `subject`, which names `own`, has to pass at `at`. None: it names no gates, and those of
/// policies decide alone.
pub fn gather(
    sources: &impl Sources,
    own: Option<&GateSet>,
    subject: &Subject,
    at: Timestamp,
) -> Gathered {
    gather_among(sources, own, subject, &[&subject.namespace], at)
}

/// The same, where the subject names several sets: all of them have to let it pass.
pub fn gather_all(
    sources: &impl Sources,
    own: &[GateSet],
    subject: &Subject,
    at: Timestamp,
) -> Gathered {
    let namespace = subject.namespace.as_str();
    let mut all = gather(sources, own.first(), subject, at);
    let more = own.iter().skip(1);
    let more = more.map(|set| GatheredSet::of(sources, set, None, namespace, at));
    let place = usize::from(!own.is_empty());
    all.0.splice(place..place, more);
    all
}

/// The same, where what the subject does takes effect in several namespaces: the policies of each of them
/// concern it.
pub fn gather_among(
    sources: &impl Sources,
    own: Option<&GateSet>,
    subject: &Subject,
    namespaces: &[&str],
    at: Timestamp,
) -> Gathered {
    let own = own.map(|own| GatheredSet::of(sources, own, None, &subject.namespace, at));
    let mut sets = Vec::from_iter(own);
    for (name, policy) in sources.policies() {
        sets.extend(added(sources, name, policy, (subject, namespaces), at));
    }
    Gathered(sets)
}

/// The set that a policy adds, if it concerns the subject. A policy that cannot be read holds everything
/// back: it might name any gate for anyone.
fn added(
    sources: &impl Sources,
    name: String,
    policy: Readable,
    (subject, namespaces): (&Subject, &[&str]),
    at: Timestamp,
) -> Option<GatheredSet> {
    let policy = match policy {
        Ok(policy) => policy,
        Err(why) => return Some(GatheredSet::closed(name, None, why)),
    };
    let concerns = |namespace: &&str| {
        let there = Subject {
            namespace: (*namespace).to_owned(),
            ..subject.clone()
        };
        policy::concerns(&policy.spec, &there, || sources.labels(namespace))
    };
    let mut doubt = None;
    let mut is_concerned = false;
    for concern in namespaces.iter().map(concerns) {
        match concern {
            Concern::No => {}
            Concern::Yes => is_concerned = true,
            Concern::Unknown(why) => doubt = Some(why),
        }
    }
    let doubt = match (is_concerned, doubt) {
        (false, None) => return None,
        (true, _) => None,
        (false, Some(why)) => Some(why),
    };
    let gates = &policy.spec.gates;
    if gates.refs.is_empty() {
        return Some(GatheredSet::closed(name, doubt, "it names no gate".into()));
    }
    let added = Added {
        name,
        doubt,
        policy: Some(Arc::clone(&policy)),
    };
    // Its gates are in the namespaces that it says, which is what it is for: each is looked for
    // from there.
    Some(GatheredSet::of(sources, gates, Some(added), "", at))
}

impl GatheredSet {
    /// The gates that are named from the namespace `from`; for a policy, each from its own namespace.
    fn of(
        sources: &impl Sources,
        set: &GateSet,
        policy: Option<Added>,
        from: &str,
        at: Timestamp,
    ) -> Self {
        let gates = set.refs.iter().map(|reference| {
            let namespace = reference.namespace.as_deref().unwrap_or(from);
            let found = match (&policy, &reference.namespace) {
                (Some(_), None) => Named::Unreadable("the policy names no namespace for it".into()),
                (Some(_), Some(own)) => nested::find(sources, own, reference, at),
                (None, _) => nested::find(sources, from, reference, at),
            };
            (format!("{namespace}/{}", reference.name), found)
        });
        Self {
            require: set.require,
            gates: gates.collect(),
            policy,
        }
    }

    /// The policy itself is shown in place of its gates, which are not known.
    fn closed(name: String, doubt: Option<String>, why: Arc<str>) -> Self {
        Self {
            require: Require::All,
            gates: vec![(format!("GatePolicy {name}"), Named::Unreadable(why))],
            policy: Some(Added {
                name,
                doubt,
                policy: None,
            }),
        }
    }

    fn set(&self) -> Set<'_> {
        let gates = self.gates.iter().map(|(name, found)| {
            let view = found.as_ref().map(|(gate, gathered)| gathered.view(gate));
            (name.as_str(), view)
        });
        Set {
            require: self.require,
            policy: self.policy.as_ref().map(|added| Policy {
                name: &added.name,
                doubt: added.doubt.as_deref(),
            }),
            gates: gates.collect(),
        }
    }
}

impl Gathered {
    /// Whether nobody names any gates: then none has to let it pass.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The sets, of which the first is the subject's own if it names any gates.
    pub fn sets(&self) -> Vec<Set<'_>> {
        self.0.iter().map(GatheredSet::set).collect()
    }

    /// The sets that policies add, without the subject's own. None: no policy concerns the subject.
    pub fn of_policies(&self) -> Option<Self> {
        let added = self.0.iter().filter(|set| set.policy.is_some());
        let added: Vec<GatheredSet> = added.cloned().collect();
        (!added.is_empty()).then_some(Self(added))
    }

    /// Everything that decides: policies, gates, gatekeepers and the gates behind those, each by its
    /// kind.
    pub fn objects(&self) -> Vec<(&'static str, &ObjectMeta)> {
        let mut all = Vec::new();
        for set in &self.0 {
            let policy = set.policy.as_ref().and_then(|added| added.policy.as_ref());
            all.extend(policy.map(|policy| ("GatePolicy", &policy.metadata)));
            for (_, gate) in &set.gates {
                if let Named::Here((gate, gathered)) = gate {
                    all.push(("Gate", &gate.metadata));
                    all.extend(gathered.objects());
                }
            }
        }
        all
    }

    /// The gatekeepers of all its gates, and of the gates behind those.
    pub fn gatekeepers(&self) -> Vec<&Gatekeeper> {
        let gates = self.0.iter().flat_map(|set| &set.gates);
        let here = gates.filter_map(|(_, gate)| gate.here());
        here.flat_map(|(_, gathered)| gathered.gatekeepers())
            .collect()
    }

    /// Whether the change may pass them all, without words.
    pub fn rule<'q>(&self, question: impl Into<Question<'q>>) -> Ruling {
        rule(&self.sets(), question)
    }

    /// The first instant before `end` at which time closes what lets the change pass now. None: it stays
    /// open until then.
    pub fn closes<'q>(
        &self,
        question: impl Into<Question<'q>>,
        end: Timestamp,
    ) -> Option<Timestamp> {
        closes(&self.sets(), question, end)
    }

    /// Whether the second of two decisions says the same to a reader as the first, which was made from
    /// the same gates earlier.
    pub fn tells_the_same(
        &self,
        before: &Decision,
        now: &Decision,
        question: Question<'_>,
    ) -> bool {
        news::tells_the_same(&self.sets(), before, now, question)
    }

    /// The same with its words.
    pub fn decide<'q>(&self, subject: Subject, question: impl Into<Question<'q>>) -> Decision {
        decide(subject, &self.sets(), question)
    }
}
