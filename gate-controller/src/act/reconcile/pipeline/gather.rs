//! Everything that the decision about a pipeline needs, from memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sluice_clusters::{Fleet, Kind, Part, Reason, Sight as Seen, Unknown, Wanted};
use sluice_core::delivery::pipeline::{
    self, ClusterSight, Errand, Given, Missing, Outcome, Reader, ReportSight, Sight, Surroundings,
    Trouble, Votes, What,
};
use sluice_core::gate;
use sluice_core::gate::Identity;
use sluice_core::text::refusal::{Refusal, Refusals};
use sluice_core::time::clock::Now;
use sluice_crds::Pipeline;
use sluice_crds::pipeline::{ClusterReference, Environment, Target};

use super::cluster::{cluster_of, reference};
use super::{admit, available};
use crate::act::errands::Standing;
use crate::act::reconcile::{Context, owned};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind;
use crate::observe::apps::Reading;
use crate::observe::cache::Progress;
use crate::observe::named::Place;

/// What is said of an app that changes too fast.
const RESTLESS: &str =
    "it changes faster than the expressions of the spec can be read of it; make them cheaper";

/// All of it, as it is at `now`. None: something was not read yet.
pub(super) fn gather(
    context: &Context,
    key: &ObjectKey,
    object: &Arc<Pipeline>,
    now: Now,
) -> Option<Given> {
    let listed = context.world.pull_requests.progress();
    if listed == Progress::Unanswered {
        return None;
    }
    let votes = votes(context, key);
    let (checked, votes) = match (context.apps.check(key, object), votes) {
        (Ok(reader), Ok(votes)) => {
            let available = available::check(object, context.promotions.is_some(), listed);
            (available.map(|()| reader), votes)
        }
        (Err(refusals), _) | (Ok(_), Err(refusals)) => (Err(refusals), Votes::default()),
    };
    let view = View::of(context, key, object, checked.as_ref().ok());
    // It is named before it is seen, so that a change in between wakes the pipeline.
    let places = view.as_ref().map(View::places).unwrap_or_default();
    context.apps.name(key, places);
    let apps = view.as_ref().map(View::apps).unwrap_or_default();
    // All of them, also if one is not known yet: what has to be read of the others is begun.
    let sights = apps.iter().map(|apps| {
        let sights = view.iter().flat_map(|view| view.sights(apps));
        sights.collect::<Vec<_>>()
    });
    let mut sights: Vec<_> = sights.collect();
    sights.resize_with(object.spec.environments.len(), Vec::new);
    let environments = object.spec.environments.iter().zip(sights);
    let environments = environments.map(|(environment, targets)| {
        let reports = view.iter().flat_map(|view| view.reports(environment));
        Some(Surroundings {
            targets: targets.into_iter().collect::<Option<_>>()?,
            reports: reports.collect::<Option<_>>()?,
            ..surroundings(context, object, environment, now)
        })
    });
    let environments = environments.collect::<Option<_>>()?;
    context.apps.found(key);
    Some(Given {
        environments,
        checked,
        pull_requests: owned::of(
            &context.world,
            &Work::own(kind::Kind::Pipeline, key.clone()),
        ),
        votes,
        errands: errands(context, key),
        clusters: clusters(&apps),
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
    let namespaces = pipeline::namespaces(object, environment);
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
///
/// # Errors
/// One in its namespace cannot be read, and may be a rejection of any of them.
fn votes(context: &Context, key: &ObjectKey) -> Result<Votes, Refusals> {
    let world = context.world.as_ref();
    let Some(all) = world.approvals_of(key) else {
        let problem = "one of this namespace cannot be read, and may be a rejection";
        let remedy = "delete it, or upgrade gate-controller";
        return Err(Refusal::new("Approval", problem, remedy).into());
    };
    let verified = world.standing().identity != Identity::Unverified;
    Ok(Votes { all, verified })
}

/// The app in a target: where it is, and what is known of it now.
struct Found<'c> {
    target: &'c Target,
    place: Option<Place>,
    sight: Seen,
}

/// The apps of a pipeline, as they can be seen from it.
struct View<'c> {
    context: &'c Context,
    key: &'c ObjectKey,
    object: &'c Pipeline,
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
            kind: Kind {
                group: group.to_owned(),
                kind: kind.to_owned(),
            },
            reader,
        })
    }

    /// The app in each target of each environment.
    fn apps(&self) -> Vec<Vec<Found<'c>>> {
        let environments = self.object.spec.environments.iter();
        let apps = environments.map(|environment| {
            let targets = environment.targets.iter();
            targets.map(|target| self.find(target)).collect()
        });
        apps.collect()
    }

    fn find(&self, target: &'c Target) -> Found<'c> {
        let (place, sight) = match self.place(target) {
            Ok(place) => {
                let sight = self.context.apps.watched.see(&place);
                (Some(place), sight)
            }
            Err(why) => (None, Seen::Unknown(why)),
        };
        Found {
            target,
            place,
            sight,
        }
    }

    /// Where the app of a target is.
    fn place(&self, target: &Target) -> Result<Place, Unknown> {
        let cluster = cluster_of(self.context, self.key, target)?;
        let part = match self.reader.asks_expressions() {
            true => Part::Whole,
            false => Part::State,
        };
        Ok(Place {
            wanted: Wanted {
                from: self.key.namespace.to_string(),
                cluster,
                kind: self.kind.clone(),
                namespace: target.namespace.clone(),
                part,
            },
            name: self.object.spec.app_ref.name.clone(),
        })
    }

    /// The gatekeepers that admissions to an environment are reported to, in the order of its targets.
    fn gatekeepers(&self, environment: &Environment) -> Vec<Result<Place, Unknown>> {
        let named = admit::gatekeeper_of(self.object, environment);
        let targets = named.map(|named| (named, &environment.targets)).into_iter();
        let places = targets.flat_map(|(named, targets)| {
            let all = targets.iter();
            all.map(move |target| admit::place(self.context, self.key, target, named))
        });
        places.collect()
    }

    /// What those say. None: one was not read yet.
    fn reports(&self, environment: &Environment) -> Vec<Option<ReportSight>> {
        let gatekeepers = self.gatekeepers(environment);
        let sights = gatekeepers.iter();
        sights
            .map(|place| admit::sight(self.context, place))
            .collect()
    }

    /// Everything that has to be watched to see the apps, and to find their clusters.
    fn places(&self) -> BTreeSet<Place> {
        let environments = self.object.spec.environments.iter();
        let mut places = BTreeSet::new();
        for target in environments.flat_map(|environment| &environment.targets) {
            if let Some(reference) = target.cluster_ref.as_ref().map(reference) {
                let needs = Fleet::needs(&self.key.namespace, &reference);
                places.extend(needs.map(|wanted| Place {
                    wanted,
                    name: reference.name,
                }));
            }
            places.extend(self.place(target).ok());
        }
        let environments = self.object.spec.environments.iter();
        let gatekeepers = environments.flat_map(|environment| self.gatekeepers(environment));
        places.extend(gatekeepers.flatten());
        places
    }

    /// The apps of an environment. None: one was not read yet.
    fn sights(&self, apps: &[Found<'_>]) -> impl Iterator<Item = Option<Sight>> {
        apps.iter().map(|found| self.sight(found))
    }

    fn sight(&self, found: &Found<'_>) -> Option<Sight> {
        match (&found.sight, &found.place) {
            (Seen::Seen(object), Some(place)) => {
                let apps = &self.context.apps;
                match apps.read(self.key, place, object, &self.reader) {
                    Reading::Done(app) => Some(Sight::Here(app)),
                    Reading::UnderWay => None,
                    Reading::Restless => Some(Sight::Unknown(Trouble {
                        what: Missing::App,
                        message: RESTLESS.to_owned(),
                    })),
                }
            }
            (Seen::Unknown(why), _) => unknown(why),
            (Seen::Absent | Seen::Seen(_), _) => {
                let (kind, name) = (&self.kind.kind, &self.object.spec.app_ref.name);
                let namespace = &found.target.namespace;
                Some(Sight::Unknown(Trouble {
                    what: Missing::App,
                    message: format!("there is no {kind} {namespace}/{name}"),
                }))
            }
        }
    }
}

/// The other clusters that targets name. Of several targets on one, the first says why it cannot be read.
fn clusters(apps: &[Vec<Found<'_>>]) -> Vec<ClusterSight> {
    let mut clusters: BTreeMap<&ClusterReference, Option<String>> = BTreeMap::new();
    for found in apps.iter().flatten() {
        let Some(cluster) = &found.target.cluster_ref else {
            continue;
        };
        let trouble = match &found.sight {
            Seen::Unknown(why) if why.is_of_cluster() => Some(why.to_string()),
            Seen::Unknown(_) | Seen::Seen(_) | Seen::Absent => None,
        };
        clusters.entry(cluster).or_insert(trouble);
    }
    let sights = clusters.into_iter().map(|(cluster, trouble)| ClusterSight {
        cluster: cluster.clone(),
        trouble,
    });
    sights.collect()
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
