//! The objects of one watch, as they are kept: trimmed to what is read.
//!
//! What comes in: the steps of a watch. What goes out: each object by its name, and a [`Change`] for each
//! that has changed in what is kept of it. Objects are kept as text, which takes a fraction of the memory
//! of values.
//!
//! It uses [`wanted`](crate::wanted).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject, TypeMeta};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use sluice_watching::shared::{Setback, Sink};
use sluice_watching::{Guard, Step, Unreadable};
use tokio::sync::broadcast;

use crate::wanted::{Change, Cluster, Kind, Part};

/// The annotation in which `kubectl apply` keeps a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// How much of a message of a condition is kept, in characters.
const MESSAGE: usize = 512;
/// How many releases of a history are kept, the newest first.
const HISTORY: usize = 5;
/// What an object takes in addition to its text, in bytes.
const BESIDE: usize = 200;
/// How many bytes of objects a watch may hold, and all watches of a cluster.
const WATCH: usize = 16 << 20;
const CLUSTER: usize = 32 << 20;

/// An object as it is kept.
///
/// Of [`Part::State`] it has what says how it is and what it runs: `metadata.name`, `namespace`, `uid`,
/// `generation` and `deletionTimestamp`; `spec.suspend`, `secretRef` and `capiClusterRef`;
/// `status.observedGeneration`, `lastAppliedRevision`, `lastAttemptedRevision`, the conditions without
/// their times, and of `history` the versions, digests and states. Of [`Part::Whole`] it has everything
/// but `managedFields` and what `kubectl apply` has noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object(Box<str>);

impl Object {
    /// The object, in the fields that it has at the API server.
    pub fn read(&self) -> Value {
        // It was made from a value.
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    fn new(object: DynamicObject, resource: &ApiResource, part: Part) -> Self {
        let value = match part {
            Part::State => state(&object, resource),
            Part::Whole => whole(object, resource),
        };
        Self(value.to_string().into())
    }

    fn size(&self) -> usize {
        self.0.len() + BESIDE
    }
}

fn whole(mut object: DynamicObject, resource: &ApiResource) -> Value {
    object.types = Some(TypeMeta {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
    });
    object.metadata.managed_fields = None;
    if let Some(annotations) = &mut object.metadata.annotations {
        annotations.remove(LAST_APPLIED);
    }
    serde_json::to_value(object).unwrap_or_default()
}

fn state(object: &DynamicObject, resource: &ApiResource) -> Value {
    let metadata = &object.metadata;
    let (spec, status) = (&object.data["spec"], &object.data["status"]);
    let mut kept = pick(
        status,
        &[
            "observedGeneration",
            "lastAppliedRevision",
            "lastAttemptedRevision",
        ],
    );
    if let Some(conditions) = status["conditions"].as_array() {
        let conditions: Vec<_> = conditions.iter().map(condition).collect();
        kept.insert("conditions".to_owned(), conditions.into());
    }
    if let Some(history) = status["history"].as_array() {
        let fields = ["chartVersion", "appVersion", "status", "ociDigest"];
        let history = history.iter().take(HISTORY);
        let history: Vec<_> = history.map(|it| pick(it, &fields).into()).collect();
        kept.insert("history".to_owned(), Value::Array(history));
    }
    json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "generation": metadata.generation,
            "deletionTimestamp": metadata.deletion_timestamp,
        },
        "spec": pick(spec, &["suspend", "secretRef", "capiClusterRef"]),
        "status": kept,
    })
}

/// When a condition has changed is not read: controllers of Flux set it at every interval.
fn condition(condition: &Value) -> Value {
    let mut kept = pick(
        condition,
        &["type", "status", "reason", "observedGeneration"],
    );
    if let Some(message) = condition["message"].as_str() {
        let message: String = message.chars().take(MESSAGE).collect();
        kept.insert("message".to_owned(), message.into());
    }
    kept.into()
}

fn pick(from: &Value, fields: &[&str]) -> Map<String, Value> {
    let found = fields.iter().filter_map(|field| {
        let value = from.get(field)?;
        Some(((*field).to_owned(), value.clone()))
    });
    found.collect()
}

/// An object, or why it cannot be read. One that cannot be read hides no other.
pub(crate) type Entry = Result<Arc<Object>, Arc<str>>;

fn size(entry: &Entry) -> usize {
    match entry {
        Ok(object) => object.size(),
        Err(why) => why.len() + BESIDE,
    }
}

/// Entries by namespace and name.
type Entries = HashMap<String, HashMap<String, Entry>>;

/// What a watch holds.
#[derive(Clone, Debug)]
pub(crate) struct Held(Arc<Mutex<Entries>>);

/// Which objects it holds is told by changes, object by object.
impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Held {
    /// What is known of an object. None: there is none.
    pub(crate) fn find(&self, namespace: &str, name: &str) -> Option<Entry> {
        self.lock().get(namespace)?.get(name).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock()
    }
}

/// How a watch is kept: of what, where, and who is told.
pub(crate) struct How {
    pub(crate) cluster: Cluster,
    pub(crate) kind: Kind,
    pub(crate) resource: ApiResource,
    pub(crate) part: Part,
    pub(crate) news: broadcast::Sender<Change>,
    /// How many bytes all watches of the cluster hold.
    pub(crate) room: Arc<AtomicUsize>,
}

/// Keeps what a watch brings.
pub(crate) struct Keeper {
    how: How,
    held: Held,
    /// How many bytes it holds.
    bytes: usize,
    /// What the list that is under way has so far.
    listed: Entries,
    listed_bytes: usize,
    /// A list was complete: from then on each change is told by itself.
    is_told: bool,
}

impl Keeper {
    pub(crate) fn new(how: How) -> Self {
        Self {
            how,
            held: Held(Arc::default()),
            bytes: 0,
            listed: Entries::default(),
            listed_bytes: 0,
            is_told: false,
        }
    }

    fn entry(&self, object: Guard<DynamicObject>) -> (String, String, Entry) {
        let namespace = object.namespace().unwrap_or_default();
        let name = object.name_any();
        let entry = match object.0 {
            Ok(object) => Ok(Arc::new(Object::new(
                object,
                &self.how.resource,
                self.how.part,
            ))),
            Err(Unreadable { why, .. }) => Err(why.into()),
        };
        (namespace, name, entry)
    }

    fn list(&mut self, page: Vec<Guard<DynamicObject>>) -> Result<(), Setback> {
        for object in page {
            let (namespace, name, entry) = self.entry(object);
            self.listed_bytes += size(&entry);
            self.listed
                .entry(namespace)
                .or_default()
                .insert(name, entry);
            check(self.listed_bytes, 0)?;
        }
        Ok(())
    }

    /// What was listed takes the place of what was held.
    fn replace(&mut self) -> Result<(), Setback> {
        let listed = std::mem::take(&mut self.listed);
        self.count(self.listed_bytes, self.bytes);
        let before = std::mem::replace(&mut *self.held.lock(), listed);
        if self.is_told {
            self.tell_differences(&before);
        }
        self.is_told = true;
        check(self.bytes, self.how.room.load(Ordering::Relaxed))
    }

    fn tell_differences(&self, before: &Entries) {
        let now = self.held.lock().clone();
        let places = |entries: &Entries| -> Vec<(String, String)> {
            let all = entries.iter();
            let all = all.flat_map(|(namespace, names)| {
                names.keys().map(|name| (namespace.clone(), name.clone()))
            });
            all.collect()
        };
        let mut all = places(before);
        all.extend(places(&now));
        all.sort_unstable();
        all.dedup();
        for (namespace, name) in all {
            let of = |entries: &Entries| entries.get(&namespace)?.get(&name).cloned();
            if of(before) != of(&now) {
                self.tell(namespace, name);
            }
        }
    }

    /// An object has become this. None: it is gone.
    fn change(
        &mut self,
        namespace: String,
        name: String,
        entry: Option<&Entry>,
    ) -> Result<(), Setback> {
        let more = entry.map_or(0, size);
        let before = {
            let mut all = self.held.lock();
            match entry {
                Some(entry) => {
                    let names = all.entry(namespace.clone()).or_default();
                    names.insert(name.clone(), entry.clone())
                }
                None => {
                    let gone = all.get_mut(&namespace).and_then(|it| it.remove(&name));
                    all.retain(|_, names| !names.is_empty());
                    gone
                }
            }
        };
        self.count(more, before.as_ref().map_or(0, size));
        if before.as_ref() != entry {
            self.tell(namespace, name);
        }
        check(self.bytes, self.how.room.load(Ordering::Relaxed))
    }

    fn count(&mut self, more: usize, less: usize) {
        self.bytes = self.bytes + more - less;
        self.how.room.fetch_add(more, Ordering::Relaxed);
        self.how.room.fetch_sub(less, Ordering::Relaxed);
    }

    fn tell(&self, namespace: String, name: String) {
        // Nobody listens: nobody waits.
        let _ = self.how.news.send(Change::Object {
            cluster: self.how.cluster.clone(),
            kind: self.how.kind.clone(),
            namespace,
            name,
        });
    }
}

fn check(of_watch: usize, of_cluster: usize) -> Result<(), Setback> {
    let too_much =
        |who: &str, most: usize| Setback::TooMuch(format!("{who} more than {most} bytes"));
    if of_watch > WATCH {
        return Err(too_much("the objects of this kind take", WATCH));
    }
    if of_cluster > CLUSTER {
        return Err(too_much("all objects of this cluster take", CLUSTER));
    }
    Ok(())
}

impl Sink for Keeper {
    type Object = DynamicObject;
    type Told = Held;
    const VANISHES: bool = true;

    fn take(&mut self, step: Step<Guard<DynamicObject>>) -> Result<Option<Held>, Setback> {
        match step {
            Step::Begun => {
                (self.listed, self.listed_bytes) = (Entries::default(), 0);
                return Ok(None);
            }
            Step::Page(page) => return self.list(page).map(|()| None),
            Step::Listed(_) => self.replace()?,
            Step::Apply(object) => {
                let (namespace, name, entry) = self.entry(object);
                self.change(namespace, name, Some(&entry))?;
            }
            Step::Delete(object) => {
                let namespace = object.namespace().unwrap_or_default();
                self.change(namespace, object.name_any(), None)?;
            }
            Step::Opened | Step::Alive | Step::Ended | Step::Failed(_) | Step::Silent => {
                return Ok(None);
            }
        }
        Ok(Some(self.held.clone()))
    }

    fn clear(&mut self) {
        self.held.lock().clear();
        self.count(0, self.bytes);
        self.listed.clear();
        self.is_told = false;
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.count(0, self.bytes);
    }
}

#[cfg(test)]
mod tests;
