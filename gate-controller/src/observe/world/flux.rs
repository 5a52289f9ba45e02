//! The objects of Flux that matter to gated sources: sources, and the consumers that apply what they
//! bring.
//!
//! Flux is another project: any of its kinds may be missing, and nothing waits for those. Nothing of Flux
//! is watched before there is a GatedSource.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::ResourceExt;
use serde_json::{Map, json};
use sluice_core::delivery::gated_source;
use sluice_core::flux::observed::Found;
use sluice_core::flux::users::{repository, uses};
use sluice_crds::flux::{FluxKind, FluxObject, FluxStatus};
use sluice_crds::gated_source::{ConsumerKind, SourceKind, marks};
use tokio::sync::watch;

use super::interests::Interests;
use crate::cluster::failure;
use crate::cluster::key::{Cluster, KeyRef, ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Cache, Change, Following, Presence, Progress, Seen};

/// The newest releases of a HelmRelease: which one runs is among them.
const RELEASES: usize = 5;

/// What HelmCharts are from.
const REPOSITORY: FluxKind = FluxKind::Source(SourceKind::HelmRepository);

/// An object of Flux: its kind, and its name.
pub type Place = (FluxKind, ObjectKey);

/// All of them on one cluster, by kind.
pub struct Flux {
    cluster: Cluster,
    git_repositories: Cache<FluxObject>,
    oci_repositories: Cache<FluxObject>,
    helm_charts: Cache<FluxObject>,
    buckets: Cache<FluxObject>,
    helm_repositories: Cache<FluxObject>,
    external_artifacts: Cache<FluxObject>,
    kustomizations: Cache<FluxObject>,
    helm_releases: Cache<FluxObject>,
    /// Whether Flux is to be watched.
    wanted: watch::Sender<bool>,
    interests: Arc<Interests>,
}

impl Flux {
    /// Those on a cluster: nothing is known of them yet.
    pub(super) fn on(cluster: Cluster, interests: Arc<Interests>) -> Self {
        Self {
            cluster,
            git_repositories: Cache::default(),
            oci_repositories: Cache::default(),
            helm_charts: Cache::default(),
            buckets: Cache::default(),
            helm_repositories: Cache::default(),
            external_artifacts: Cache::default(),
            kustomizations: Cache::default(),
            helm_releases: Cache::default(),
            wanted: watch::Sender::new(false),
            interests,
        }
    }

    /// The objects of a kind.
    pub fn of(&self, kind: FluxKind) -> &Cache<FluxObject> {
        match kind {
            FluxKind::Source(SourceKind::GitRepository) => &self.git_repositories,
            FluxKind::Source(SourceKind::OCIRepository) => &self.oci_repositories,
            FluxKind::Source(SourceKind::HelmChart) => &self.helm_charts,
            FluxKind::Source(SourceKind::Bucket) => &self.buckets,
            FluxKind::Source(SourceKind::HelmRepository) => &self.helm_repositories,
            FluxKind::ExternalArtifact => &self.external_artifacts,
            FluxKind::Consumer(ConsumerKind::Kustomization) => &self.kustomizations,
            FluxKind::Consumer(ConsumerKind::HelmRelease) => &self.helm_releases,
        }
    }

    /// What is followed of a kind.
    pub(crate) fn following(kind: FluxKind) -> Following<FluxObject> {
        Following {
            kind,
            presence: Presence::Optional,
            trim,
        }
    }

    /// Starts to watch Flux.
    pub fn want(&self) {
        self.wanted
            .send_if_modified(|wanted| !std::mem::replace(wanted, true));
    }

    /// Waits until Flux is to be watched.
    pub async fn is_wanted(&self) {
        // The sender lives as long as `self`.
        let _ = self.wanted.subscribe().wait_for(|wanted| *wanted).await;
    }

    /// Whether the API server has answered for a kind, even if only that there is no such kind.
    pub fn has_answered(&self, kind: FluxKind) -> bool {
        self.of(kind).progress() != Progress::Unanswered
    }

    /// The result of looking up a name.
    pub fn see(&self, kind: FluxKind, key: KeyRef<'_>) -> Found {
        let cache = self.of(kind);
        match cache.progress() {
            Progress::NotInstalled => Found::NotInstalled,
            Progress::Refused => {
                let why = failure::no_right("list and watch", kind.plural(), kind.group());
                Found::Unreadable(why.into())
            }
            Progress::Unanswered | Progress::Synced => match cache.get(key) {
                None => Found::Missing,
                Some(Seen::Unreadable(why)) => Found::Unreadable(why),
                Some(Seen::Object(object)) => Found::Here(object),
            },
        }
    }

    /// The object at a place, if it is there and can be read.
    pub fn object(&self, (kind, key): &Place) -> Option<Arc<FluxObject>> {
        match self.see(*kind, key.borrowed()) {
            Found::Here(object) => Some(object),
            Found::Missing | Found::NotInstalled | Found::Unreadable(_) => None,
        }
    }

    /// Takes in what the API server has answered to a write. Returns what was there before; None if
    /// something newer is known already.
    pub(crate) fn put(&self, kind: FluxKind, mut object: FluxObject) -> Option<Put> {
        trim(&kind, &mut object);
        let now = Arc::new(object);
        let before = self.of(kind).put(Arc::clone(&now))?;
        let now = Seen::Object(now);
        Some(Put { before, now })
    }

    /// The consumers of a source; of a HelmRepository its HelmCharts, too.
    pub fn consumers_of(&self, source: &Place) -> Vec<Place> {
        self.interested(source.0.into(), &source.1)
    }

    /// What is marked as a child of a GatedSource.
    pub fn children_of(&self, gated_source: &ObjectKey) -> Vec<Place> {
        let is_child = |object: &FluxObject| parent(object).as_ref() == Some(gated_source);
        self.marked(gated_source, is_child)
    }

    /// What is marked as suspended by a GatedSource.
    pub fn suspended_by(&self, gated_source: &ObjectKey) -> Vec<Place> {
        self.marked(gated_source, |object| {
            suspending(object).contains(gated_source)
        })
    }

    fn marked(&self, gated_source: &ObjectKey, how: impl Fn(&FluxObject) -> bool) -> Vec<Place> {
        let mut marked = self.interested(Kind::GatedSource, gated_source);
        marked.retain(|place| self.object(place).is_some_and(|object| how(&object)));
        marked
    }

    /// The objects of Flux that name an object in their spec or by a mark.
    fn interested(&self, kind: Kind, key: &ObjectKey) -> Vec<Place> {
        let who = self.interests.of(&self.work(kind, key)).into_iter();
        let places = who.filter_map(|who| match who.kind {
            Kind::Flux(kind) => Some((kind, who.key)),
            _ => None,
        });
        places.collect()
    }

    fn work(&self, kind: Kind, key: &ObjectKey) -> Work {
        let (cluster, key) = (self.cluster.clone(), key.clone());
        Work { cluster, kind, key }
    }

    /// Notes what an object says of others. Returns the objects that it may concern; none if nothing has
    /// changed that matters.
    ///
    /// The watch and the writers report changes at the same time, so that an earlier change may arrive
    /// later. So the object is noted as the cache holds it now: the cache never goes back.
    pub(crate) fn note(&self, kind: FluxKind, change: &Change<'_, FluxObject>) -> BTreeSet<Work> {
        if is_same(kind, change) {
            return BTreeSet::new();
        }
        let (mut owners, mut places) = (Vec::new(), vec![(kind, change.key.clone())]);
        for object in [change.before, change.now].into_iter().flatten() {
            if let Some(object) = object.object() {
                owners.extend(owners_of(object));
                if matches!(kind, FluxKind::Consumer(_)) {
                    places.extend(used(kind, object));
                }
            }
        }
        // A HelmRelease that takes a chart out of a repository itself concerns those who gate it.
        let repositories = places.iter().filter(|(kind, _)| *kind == REPOSITORY);
        let charts = repositories.flat_map(|place| self.consumers_of(place));
        let charts = charts.filter(|(kind, _)| matches!(kind, FluxKind::Source(_)));
        let charts: Vec<Place> = charts.collect();
        places.extend(charts);
        self.interests.set(&self.work(kind.into(), change.key), || {
            let now = self.of(kind).get(change.key.borrowed());
            let now = now.as_ref().and_then(Seen::object);
            now.map_or_else(Vec::new, |now| self.named(kind, now))
        });
        let owners = owners.iter().map(|key| self.work(Kind::GatedSource, key));
        let owners = owners.filter(|owner| self.interests.has(owner));
        let concerned = |place: &Place| {
            let what = self.work(place.0.into(), &place.1);
            self.interests.concerned(&what)
        };
        owners.chain(places.iter().flat_map(concerned)).collect()
    }

    /// All that an object names: what it uses, and whose mark it bears.
    fn named(&self, kind: FluxKind, object: &FluxObject) -> Vec<Work> {
        let used = used(kind, object).into_iter();
        let used = used.map(|(kind, key)| self.work(kind.into(), &key));
        let owners = owners_of(object).into_iter();
        let owners = owners.map(|key| self.work(Kind::GatedSource, &key));
        used.chain(owners).collect()
    }
}

/// A write that was taken in.
pub(crate) struct Put {
    /// What was there before.
    pub(crate) before: Option<Seen<FluxObject>>,
    /// What is there now.
    pub(crate) now: Seen<FluxObject>,
}

/// The GatedSources that have marked an object.
fn owners_of(object: &FluxObject) -> Vec<ObjectKey> {
    let mut owners = suspending(object);
    owners.extend(parent(object));
    owners
}

/// The GatedSource whose child an object is.
fn parent(object: &FluxObject) -> Option<ObjectKey> {
    let name = object.annotations().get(marks::CHILD_OF)?;
    Some(beside(object, name))
}

/// The GatedSources that suspend an object.
fn suspending(object: &FluxObject) -> Vec<ObjectKey> {
    let holders = gated_source::holders(object).into_iter();
    holders.map(|name| beside(object, &name)).collect()
}

fn beside(object: &FluxObject, name: &str) -> ObjectKey {
    ObjectKey {
        namespace: KeyRef::of(object).namespace.into(),
        name: name.into(),
    }
}

/// The sources that an object uses: of a HelmChart its repository.
fn used(kind: FluxKind, object: &FluxObject) -> Vec<Place> {
    let used = match kind {
        FluxKind::Consumer(kind) => uses(kind, object),
        FluxKind::Source(kind) => repository(kind, object).into_iter().collect(),
        FluxKind::ExternalArtifact => Vec::new(),
    };
    let place = |(kind, namespace, name): (&str, &str, &str)| {
        let kind = FluxKind::ALL.into_iter().find(|it| it.as_str() == kind)?;
        let (namespace, name) = (namespace.into(), name.into());
        Some((kind, ObjectKey { namespace, name }))
    };
    used.into_iter().filter_map(place).collect()
}

/// Whether nothing has changed that is read here. Consumers write into their status all the time that
/// they are at work.
fn is_same(kind: FluxKind, change: &Change<'_, FluxObject>) -> bool {
    match (change.before, change.now) {
        (Some(Seen::Object(before)), Some(Seen::Object(now))) => {
            let said = |object: &FluxObject| {
                let metadata = &object.metadata;
                (
                    metadata.uid.clone(),
                    metadata.generation,
                    metadata.labels.clone(),
                    metadata.annotations.clone(),
                    metadata.deletion_timestamp.clone(),
                )
            };
            let shown = match kind {
                FluxKind::Source(_) | FluxKind::ExternalArtifact => before.status == now.status,
                FluxKind::Consumer(_) => is_said_the_same(before, now),
            };
            said(before) == said(now) && before.spec == now.spec && shown
        }
        (Some(Seen::Unreadable(before)), Some(Seen::Unreadable(now))) => before == now,
        (None, None) => true,
        _ => false,
    }
}

/// Whether two statuses of a consumer say the same: what it applied, whether it is ready with that, and why
/// not.
fn is_said_the_same(before: &FluxObject, now: &FluxObject) -> bool {
    let failure = |object: &FluxObject| {
        let mut conditions = object.status.conditions.iter();
        let ready = conditions.find(|it| it.type_ == "Ready" && it.status == "False")?;
        Some((ready.reason.clone(), ready.last_transition_time.clone()))
    };
    let tried = |object: &FluxObject| {
        let FluxStatus {
            last_applied_revision,
            last_applied_origin_revision,
            last_attempted_revision,
            ..
        } = object.status.clone();
        let mut conditions = object.status.conditions.iter();
        let is_ready = conditions.any(|it| it.type_ == "Ready" && it.status == "True");
        let is_observed = object.status.observed_generation == object.metadata.generation;
        (
            last_applied_revision,
            last_applied_origin_revision,
            last_attempted_revision,
            is_ready,
            is_observed,
        )
    };
    tried(before) == tried(now)
        && before.status.history == now.status.history
        && failure(before) == failure(now)
}

/// Removes from an object what is not read here.
fn trim(kind: &FluxKind, object: &mut FluxObject) {
    sluice_watching::trim(object);
    let FluxKind::Consumer(kind) = kind else {
        return;
    };
    object.metadata.annotations = None;
    object.metadata.labels = None;
    object.metadata.finalizers = None;
    object.status.conditions.retain(|it| it.type_ == "Ready");
    object.status.history.truncate(RELEASES);
    let mut spec = std::mem::take(&mut object.spec);
    let chart = spec
        .get_mut("chart")
        .and_then(|chart| chart.get_mut("spec")?.as_object_mut());
    let chart = chart.map(std::mem::take);
    let kept: &[&str] = match kind {
        ConsumerKind::Kustomization => &["sourceRef", "suspend"],
        ConsumerKind::HelmRelease => &["chartRef", "suspend"],
    };
    spec.retain(|field, _| kept.contains(&field.as_str()));
    object.spec = Map::from_iter(spec);
    if let Some(mut chart) = chart {
        chart.retain(|field, _| ["chart", "sourceRef"].contains(&field.as_str()));
        let chart = json!({ "spec": chart });
        object.spec.insert("chart".to_owned(), chart);
    }
}
