//! The apps that pipelines promote, on our own cluster and on others.
//!
//! What comes in: the apps that each pipeline names, where it finds them. What goes out: what is known of
//! an app, without waiting, and the pipelines that a change concerns. What no pipeline names is not watched.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use sluice_clusters::{Change, Fleet, Object, Sight, Wanted};
use sluice_core::delivery::pipeline::{App, Reader};
use tokio::sync::Notify;

use crate::cluster::key::ObjectKey;

/// The apps of all pipelines.
pub struct Apps {
    fleet: Fleet,
    named: Mutex<Named>,
    renewed: Notify,
}

/// An app in a target, or an object that says which cluster a target is on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Where it is.
    pub wanted: Wanted,
    /// Its name.
    pub name: String,
}

#[derive(Default)]
struct Named {
    places: HashMap<ObjectKey, BTreeSet<Place>>,
    /// What was read of their apps.
    read: HashMap<ObjectKey, HashMap<Place, Read>>,
    /// Whom a change concerns.
    concerned: HashMap<Change, HashSet<ObjectKey>>,
}

/// What was read of an object: right for as long as the object and what is read of it are the same.
struct Read {
    object: Arc<Object>,
    reader: Arc<Reader>,
    app: Arc<App>,
}

impl Apps {
    /// No pipeline names any app yet.
    pub fn new(fleet: Fleet) -> Self {
        Self {
            fleet,
            named: Mutex::default(),
            renewed: Notify::new(),
        }
    }

    /// All clusters that are watched.
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// What is known of an object now. What no pipeline has named is not known.
    pub fn see(&self, place: &Place) -> Sight {
        self.fleet.look(&place.wanted, &place.name)
    }

    /// What a pipeline reads of an app. Expressions may take a part of a second, so each is evaluated once
    /// for each version of the object.
    pub fn read(
        &self,
        pipeline: &ObjectKey,
        place: &Place,
        object: &Arc<Object>,
        reader: &Arc<Reader>,
    ) -> Arc<App> {
        let is_current =
            |known: &&Read| Arc::ptr_eq(&known.object, object) && *known.reader == **reader;
        let known = self.named().read.get(pipeline).and_then(|read| {
            let known = read.get(place).filter(is_current)?;
            Some(Arc::clone(&known.app))
        });
        if let Some(app) = known {
            return app;
        }
        let app = Arc::new(reader.read(&object.read()));
        let read = Read {
            object: Arc::clone(object),
            reader: Arc::clone(reader),
            app: Arc::clone(&app),
        };
        let mut named = self.named();
        if named.places.contains_key(pipeline) {
            let known = named.read.entry(pipeline.clone()).or_default();
            known.insert(place.clone(), read);
        }
        app
    }

    /// From now on a pipeline names these, and no others.
    pub fn name(&self, pipeline: &ObjectKey, places: BTreeSet<Place>) {
        let mut named = self.named();
        if named.places.get(pipeline).unwrap_or(&BTreeSet::new()) == &places {
            return;
        }
        named.forget(pipeline);
        for place in &places {
            for change in changes(place) {
                let concerned = named.concerned.entry(change).or_default();
                concerned.insert(pipeline.clone());
            }
        }
        if !places.is_empty() {
            named.places.insert(pipeline.clone(), places);
        }
        drop(named);
        self.renewed.notify_one();
    }

    /// No pipeline names anything: another replica leads.
    pub fn clear(&self) {
        *self.named() = Named::default();
        self.renewed.notify_one();
    }

    /// The pipelines that a change concerns.
    pub fn concerned(&self, change: &Change) -> Vec<ObjectKey> {
        let named = self.named();
        let concerned = named.concerned.get(change).into_iter().flatten();
        concerned.cloned().collect()
    }

    /// All pipelines that name anything.
    pub fn all(&self) -> Vec<ObjectKey> {
        self.named().places.keys().cloned().collect()
    }

    /// Waits until pipelines name others than before.
    pub async fn renewed(&self) {
        self.renewed.notified().await;
    }

    /// Watches what is named, and ends what has not been named for a minute. Returns when to call again.
    pub fn watch(&self, now: Timestamp) -> Option<Timestamp> {
        let wanted = {
            let named = self.named();
            let places = named.places.values().flatten();
            places.map(|place| place.wanted.clone()).collect()
        };
        self.fleet.want(&wanted, now)
    }

    fn named(&self) -> MutexGuard<'_, Named> {
        self.named.lock()
    }
}

impl Named {
    fn forget(&mut self, pipeline: &ObjectKey) {
        self.read.remove(pipeline);
        for place in self.places.remove(pipeline).iter().flatten() {
            for change in changes(place) {
                if let Some(concerned) = self.concerned.get_mut(&change) {
                    concerned.remove(pipeline);
                    if concerned.is_empty() {
                        self.concerned.remove(&change);
                    }
                }
            }
        }
    }
}

/// What may change about an object.
fn changes(place: &Place) -> [Change; 2] {
    let Wanted {
        from: _,
        cluster,
        kind,
        namespace,
        part: _,
    } = &place.wanted;
    let object = Change::Object {
        cluster: cluster.clone(),
        kind: kind.clone(),
        namespace: namespace.clone(),
        name: place.name.clone(),
    };
    [object, Change::Cluster(cluster.clone())]
}
