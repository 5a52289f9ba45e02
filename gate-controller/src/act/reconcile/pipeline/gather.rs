//! Everything that the decision about a pipeline needs, from memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sluice_clusters::{
    Cluster, Fleet, Kind, Part, Reason, Reference, ReferenceKind, Sight as Seen, Unknown, Wanted,
};
use sluice_core::delivery::pipeline::{
    self, ClusterSight, Errand, Given, Missing, Outcome, Reader, Sight, Surroundings, Trouble,
    Votes, What,
};
use sluice_core::gate;
use sluice_core::gate::Identity;
use sluice_core::time::clock::Now;
use sluice_crds::Pipeline;
use sluice_crds::pipeline::{ClusterKind, ClusterReference, Environment, Target};

use super::available;
use crate::act::errands::Standing;
use crate::act::reconcile::Context;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind;
use crate::observe::apps::Place;

/// All of it, as it is at `now`. None: something was not read yet.
pub(super) fn gather(
    context: &Context,
    key: &ObjectKey,
    object: &Arc<Pipeline>,
    now: Now,
) -> Option<Given> {
    let checked = pipeline::check(object).and_then(|reader| {
        available::check(object, context.promotions.is_some())?;
        available::votes(context.world.as_ref(), key)?;
        Ok(Arc::new(reader))
    });
    let view = View::of(context, key, object, checked.as_ref().ok());
    let places = view.as_ref().map(View::places).unwrap_or_default();
    context.apps.name(key, places);
    let environments = object.spec.environments.iter();
    let environments = environments.map(|environment| {
        let targets = view.iter().flat_map(|view| view.targets(environment));
        Some(Surroundings {
            targets: targets.collect::<Option<_>>()?,
            ..surroundings(context, object, environment, now)
        })
    });
    let environments = environments.collect::<Option<_>>()?;
    Some(Given {
        checked,
        environments,
        pull_requests: Vec::new(),
        votes: votes(context, key),
        errands: errands(context, key),
        clusters: view.iter().flat_map(View::clusters).collect(),
        object: Arc::clone(object),
        now,
    })
}

/// What surrounds an environment, without its targets.
pub(super) fn surroundings(
    context: &Context,
    object: &Pipeline,
    environment: &Environment,
    now: Now,
) -> Surroundings {
    let world = context.world.as_ref();
    let subject = pipeline::subject(object, &environment.name, What::Promote, None);
    // A promotion takes effect where the targets are: their policies count as well.
    let targets = environment
        .targets
        .iter()
        .filter(|it| it.cluster_ref.is_none());
    let mut namespaces: Vec<&str> = targets.map(|it| it.namespace.as_str()).collect();
    namespaces.push(&subject.namespace);
    let own = environment.gates.as_ref();
    let gates = gate::set::gather_among(world, own, &subject, &namespaces, now.at);
    Surroundings {
        targets: Vec::new(),
        depends_on: pipeline::depends_on(&gates),
        gates,
        reports: Vec::new(),
    }
}

/// What has come of its errands.
pub(super) fn errands(context: &Context, key: &ObjectKey) -> BTreeMap<Errand, Outcome> {
    let work = Work::own(kind::Kind::Pipeline, key.clone());
    let standings = context.errands.of(&work).into_iter();
    let outcomes = standings.map(|(errand, standing)| {
        let outcome = match standing {
            Standing::UnderWay => Outcome::UnderWay,
            Standing::Over(Ok(outcome)) => outcome,
            Standing::Over(Err(unfinished)) => Outcome::Failed {
                why: unfinished.to_string(),
                not_before: None,
            },
        };
        (errand, outcome)
    });
    outcomes.collect()
}

/// The approvals of its promotions.
fn votes(context: &Context, key: &ObjectKey) -> Votes {
    let world = context.world.as_ref();
    let all = world.approvals_of(key);
    Votes {
        verified: all.is_some() && world.standing().identity != Identity::Unverified,
        all: all.unwrap_or_default(),
    }
}

/// The apps of a pipeline, as they can be seen from it.
struct View<'c> {
    context: &'c Context,
    key: &'c ObjectKey,
    object: &'c Pipeline,
    namespace: &'c str,
    kind: Kind,
    reader: Arc<Reader>,
}

impl<'c> View<'c> {
    /// None: the spec is refused, and nothing has to be seen.
    fn of(
        context: &'c Context,
        key: &'c ObjectKey,
        object: &'c Pipeline,
        reader: Option<&Arc<Reader>>,
    ) -> Option<Self> {
        let reader = Arc::clone(reader?);
        let (group, kind) = pipeline::kind_of(&object.spec.app_ref)?;
        Some(Self {
            context,
            key,
            object,
            namespace: &key.namespace,
            kind: Kind {
                group: group.to_owned(),
                kind: kind.to_owned(),
            },
            reader,
        })
    }

    /// Everything that has to be watched for it.
    fn places(&self) -> BTreeSet<Place> {
        let targets = self.object.spec.environments.iter();
        let targets = targets.flat_map(|environment| &environment.targets);
        let mut places = BTreeSet::new();
        for target in targets {
            if let Some(reference) = target.cluster_ref.as_ref().map(reference) {
                let needs = Fleet::needs(self.namespace, &reference);
                places.extend(needs.map(|wanted| Place {
                    wanted,
                    name: reference.name,
                }));
            }
            places.extend(self.place(target).ok());
        }
        places
    }

    /// Where the app of a target is.
    fn place(&self, target: &Target) -> Result<Place, Unknown> {
        let cluster = match &target.cluster_ref {
            None if self.is_out_of_bounds(target) => return Err(Unknown::OutOfScope),
            None => Cluster::Own,
            Some(it) => self
                .context
                .apps
                .fleet()
                .find(self.namespace, &reference(it))?,
        };
        let part = match self.reader.asks_expressions() {
            true => Part::Whole,
            false => Part::State,
        };
        Ok(Place {
            wanted: Wanted {
                from: self.namespace.to_owned(),
                cluster,
                kind: self.kind.clone(),
                namespace: target.namespace.clone(),
                part,
            },
            name: self.object.spec.app_ref.name.clone(),
        })
    }

    /// Whether it may not see this namespace of our own cluster.
    fn is_out_of_bounds(&self, target: &Target) -> bool {
        target.namespace != self.namespace && !self.context.world.crosses_namespaces()
    }

    /// The app in each target. None: it was not read yet.
    fn targets(&self, environment: &'c Environment) -> impl Iterator<Item = Option<Sight>> {
        environment.targets.iter().map(|target| self.target(target))
    }

    fn target(&self, target: &Target) -> Option<Sight> {
        let apps = &self.context.apps;
        let place = match self.place(target) {
            Ok(place) => place,
            Err(why) => return unknown(&why),
        };
        match apps.see(&place) {
            Seen::Seen(object) => {
                let app = apps.read(self.key, &place, &object, &self.reader);
                Some(Sight::Here(app))
            }
            Seen::Absent => {
                let (kind, name) = (&self.kind.kind, &self.object.spec.app_ref.name);
                Some(Sight::Unknown(Trouble {
                    what: Missing::App,
                    message: format!("there is no {kind} {}/{name}", target.namespace),
                }))
            }
            Seen::Unknown(why) => unknown(&why),
        }
    }

    /// The other clusters that its targets name.
    fn clusters(&self) -> Vec<ClusterSight> {
        let environments = self.object.spec.environments.iter();
        let targets = environments.flat_map(|environment| &environment.targets);
        let mut clusters: BTreeMap<&ClusterReference, Option<String>> = BTreeMap::new();
        for target in targets {
            let Some(cluster) = &target.cluster_ref else {
                continue;
            };
            let trouble = match self
                .place(target)
                .map(|place| self.context.apps.see(&place))
            {
                Ok(Seen::Unknown(why)) | Err(why) if why.is_of_cluster() => Some(why.to_string()),
                Ok(_) | Err(_) => None,
            };
            clusters
                .entry(cluster)
                .or_default()
                .get_or_insert_with(|| trouble.unwrap_or_default());
        }
        let sights = clusters.into_iter().map(|(cluster, trouble)| ClusterSight {
            cluster: cluster.clone(),
            trouble: trouble.filter(|it| !it.is_empty()),
        });
        sights.collect()
    }
}

/// What is said of an app that is not known. None: it was not read yet.
fn unknown(why: &Unknown) -> Option<Sight> {
    if *why == Unknown::NotYet {
        return None;
    }
    let what = match why.reason() {
        Reason::TargetClusterNotFound => Missing::Cluster,
        Reason::TargetClusterNotReady => Missing::Connection,
        Reason::TargetNotReadable => Missing::App,
    };
    let message = why.to_string();
    Some(Sight::Unknown(Trouble { what, message }))
}

fn reference(named: &ClusterReference) -> Reference {
    let ClusterReference {
        api_version,
        kind,
        name,
        namespace,
    } = named;
    Reference {
        kind: match kind {
            ClusterKind::Secret => ReferenceKind::Secret,
            ClusterKind::Cluster => ReferenceKind::Cluster,
            ClusterKind::GitopsCluster => ReferenceKind::GitopsCluster,
        },
        name: name.clone(),
        namespace: namespace.clone(),
        api_version: api_version.clone(),
    }
}
