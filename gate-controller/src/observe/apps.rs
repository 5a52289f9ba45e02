//! The apps that pipelines promote, on our own cluster and on others.
//!
//! What comes in: the apps that each pipeline names, where it finds them. What goes out: what is known of
//! an app, without waiting, and the pipelines that a change concerns. What no pipeline names is not watched.
//!
//! Expressions over an app may take a part of a second. They are evaluated beside the looks, once for each
//! version of an object: a few at a time, of each namespace and each pipeline one after the other, so that
//! one with many of them delays no other. What is named when they begin is a round, and its end leads to the
//! next look. No pipeline waits for ever, however often its apps, its expressions or its targets change:
//! after [`ROUNDS`] of them an app that is still unread counts as not known, so that nothing is promoted, and
//! everything else is decided.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use sluice_clusters::{Fleet, Object};
use sluice_core::delivery::pipeline::{self, App, Reader};
use sluice_core::text::refusal::Refusals;
use sluice_crds::Pipeline;
use sluice_egress::places::Places;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;

use crate::cluster::key::ObjectKey;
use crate::observe::named::{Names, Place, Watched};

#[cfg(test)]
mod tests;

/// What is said of an app where reading it was stopped.
const DEFECT: &str = "an expression was stopped by a defect of the controller; please report it";

/// How many objects are read by expressions at the same time, and how many of them for one namespace.
const AT_ONCE: usize = 2;
const OF_A_NAMESPACE: usize = 1;
/// How many rounds a pipeline waits until all of its apps are read.
const ROUNDS: u32 = 3;

/// The apps of all pipelines.
pub struct Apps {
    /// The watches of them.
    pub watched: Watched,
    /// It is held while that is changed.
    known: Mutex<Known>,
    /// Some pipelines have apps that were being read and are read now.
    is_read: Notify,
    turns: Places,
}

#[derive(Default)]
struct Known {
    /// What was read of their apps.
    read: HashMap<ObjectKey, HashMap<Place, Read>>,
    /// Those whose apps are being read.
    reading: HashSet<ObjectKey>,
    /// Those that have to look, because all that was being read of their apps is read.
    done: BTreeSet<ObjectKey>,
    /// How many rounds there were since they were last decided.
    rounds: HashMap<ObjectKey, u32>,
    /// What is wrong with their specs, or how their apps are read.
    checked: HashMap<ObjectKey, Checked>,
}

/// What a pipeline reads of an app.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// This.
    Done(Arc<App>),
    /// It is being read, and the pipeline is among those that [`Apps::read_now`] brings when that is done.
    UnderWay,
    /// The same, and the pipeline has waited long enough.
    Restless,
}

/// What was read of an object: right for as long as the object and what is read of it are the same.
struct Read {
    object: Arc<Object>,
    reader: Arc<Reader>,
    /// None: it is still being read.
    app: Option<Arc<App>>,
}

/// What was found in a spec: right for as long as the generation is the same.
struct Checked {
    of: (Option<String>, i64),
    found: Result<Arc<Reader>, Refusals>,
}

impl Apps {
    /// No pipeline names any app yet.
    pub fn new(fleet: Fleet) -> Self {
        Self {
            watched: Watched::new(fleet),
            known: Mutex::default(),
            is_read: Notify::new(),
            turns: Places::new(AT_ONCE, OF_A_NAMESPACE),
        }
    }

    /// What is wrong with the spec of a pipeline, or how its apps are read. Expressions are compiled once
    /// for each generation.
    ///
    /// # Errors
    /// The mistakes.
    pub fn check(&self, key: &ObjectKey, object: &Pipeline) -> Result<Arc<Reader>, Refusals> {
        let of = object.metadata.generation;
        let of = of.map(|generation| (object.metadata.uid.clone(), generation));
        let known = self.known().checked.get(key).and_then(|checked| {
            let is_current = of.as_ref() == Some(&checked.of);
            is_current.then(|| checked.found.clone())
        });
        if let Some(known) = known {
            return known;
        }
        let found = pipeline::check(object).map(Arc::new);
        if let Some(of) = of {
            let found = found.clone();
            let checked = Checked { of, found };
            self.known().checked.insert(key.clone(), checked);
        }
        found
    }

    /// What a pipeline reads of an app.
    pub fn read(
        self: &Arc<Self>,
        pipeline: &ObjectKey,
        place: &Place,
        object: &Arc<Object>,
        reader: &Arc<Reader>,
    ) -> Reading {
        let mut known = self.known();
        let is_named = self.watched.is_naming(pipeline);
        let read = known.read.get(pipeline).and_then(|read| read.get(place));
        if let Some(app) = read.and_then(|read| read.app_of(object, reader)) {
            return Reading::Done(app);
        }
        let next = Read::new(object, reader);
        let app = next.app.clone();
        if is_named {
            let read = known.read.entry(pipeline.clone()).or_default();
            read.insert(place.clone(), next);
        }
        if let Some(app) = app {
            return Reading::Done(app);
        }
        if is_named && known.reading.insert(pipeline.clone()) {
            let round = self.watched.objects_of(pipeline).unwrap_or_default();
            tokio::spawn(Arc::clone(self).read_all(pipeline.clone(), round));
        }
        let rounds = known.rounds.get(pipeline).copied();
        match rounds >= Some(ROUNDS) {
            true => Reading::Restless,
            false => Reading::UnderWay,
        }
    }

    /// Everything that a pipeline waits for was found: it waits again from now on.
    pub fn found(&self, pipeline: &ObjectKey) {
        self.known().rounds.remove(pipeline);
    }

    /// Reads the apps of a pipeline that are still to be read, one after the other, and each once: one that
    /// changes meanwhile, or that is named meanwhile, is left to the next round.
    async fn read_all(self: Arc<Self>, pipeline: ObjectKey, mut round: BTreeSet<Place>) {
        while let Some((place, object, reader)) = self.unread(&pipeline, &mut round) {
            let _turn = self.turns.take(&pipeline.namespace).await;
            let of = (Arc::clone(&object), Arc::clone(&reader));
            let app = spawn_blocking(move || Arc::new(reader.read(&object.read()))).await;
            let mut known = self.known();
            let read = known.read.get_mut(&pipeline);
            let Some(read) = read.and_then(|read| read.get_mut(&place)) else {
                continue;
            };
            // The next version of the object may be without what has stopped it.
            let app = app.unwrap_or_else(|_| Arc::new(App::unread(DEFECT)));
            if read.is_of(&of.0, &of.1) {
                read.app = Some(app);
            }
        }
        self.is_read.notify_one();
    }

    /// An app of a pipeline that is still to be read, among those that are left of the round. None: the round
    /// is over, and the pipeline has to look.
    fn unread(
        &self,
        pipeline: &ObjectKey,
        left: &mut BTreeSet<Place>,
    ) -> Option<(Place, Arc<Object>, Arc<Reader>)> {
        let mut known = self.known();
        let mut read = known.read.get(pipeline).into_iter().flatten();
        let found = read.find(|(place, read)| read.app.is_none() && left.contains(*place));
        let found = found.map(|(place, read)| {
            let (object, reader) = (Arc::clone(&read.object), Arc::clone(&read.reader));
            (place.clone(), object, reader)
        });
        match &found {
            Some((place, ..)) => {
                left.remove(place);
            }
            None => known.end_round(pipeline, self.watched.is_naming(pipeline)),
        }
        found
    }

    /// Waits for pipelines whose apps were being read, and are read now.
    pub async fn read_now(&self) -> BTreeSet<ObjectKey> {
        loop {
            let done = std::mem::take(&mut self.known().done);
            if !done.is_empty() {
                return done;
            }
            self.is_read.notified().await;
        }
    }

    /// From now on a pipeline names these, and no others.
    pub fn name(&self, pipeline: &ObjectKey, objects: BTreeSet<Place>) {
        let kinds = BTreeSet::new();
        let mut known = self.known();
        if self.watched.name(pipeline, Names { objects, kinds }) {
            // The rounds count on: otherwise it could wait for ever.
            known.read.remove(pipeline);
        }
    }

    /// Forgets a pipeline.
    pub fn forget(&self, pipeline: &ObjectKey) {
        self.name(pipeline, BTreeSet::new());
        let mut known = self.known();
        known.checked.remove(pipeline);
        known.rounds.remove(pipeline);
    }

    /// No pipeline names anything: another replica leads.
    pub fn clear(&self) {
        let mut known = self.known();
        *known = Known::default();
        self.watched.clear();
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }
}

impl Read {
    /// What is read of a version of an object in one way. What takes long is still to be read.
    fn new(object: &Arc<Object>, reader: &Arc<Reader>) -> Self {
        let takes_long = reader.asks_expressions();
        Self {
            object: Arc::clone(object),
            reader: Arc::clone(reader),
            app: (!takes_long).then(|| Arc::new(reader.read(&object.read()))),
        }
    }

    fn is_of(&self, object: &Arc<Object>, reader: &Arc<Reader>) -> bool {
        Arc::ptr_eq(&self.object, object) && self.reader == *reader
    }

    fn app_of(&self, object: &Arc<Object>, reader: &Arc<Reader>) -> Option<Arc<App>> {
        self.app.clone().filter(|_| self.is_of(object, reader))
    }
}

impl Known {
    /// All that was to be read of the apps of a pipeline was read, and it has to look.
    fn end_round(&mut self, pipeline: &ObjectKey, is_named: bool) {
        self.reading.remove(pipeline);
        if is_named {
            *self.rounds.entry(pipeline.clone()).or_default() += 1;
        }
        self.done.insert(pipeline.clone());
    }
}
