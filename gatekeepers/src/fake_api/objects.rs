//! Objects of any kind that are given to the API server in memory: discovery, lists in pages, watches
//! with bookmarks, service accounts, and reviews of their rights.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::FakeApi;
pub(super) use serving::serve;

// By their paths from here: this file is included by its path, too.
#[path = "objects/serving.rs"]
mod serving;
#[path = "objects/watching.rs"]
mod watching;

/// The API server's objects.
#[derive(Default)]
pub(super) struct Objects {
    known: Mutex<Known>,
    news: watch::Sender<()>,
}

#[derive(Default)]
struct Known {
    kinds: Vec<Kind>,
    objects: BTreeMap<Place, Value>,
    history: Vec<(usize, Collection, Option<String>, Value)>,
    hang_ups: usize,
    /// Watches from before this version are refused.
    compacted: usize,
    accounts: HashSet<(String, String)>,
    /// Users, and the plurals that they may read anywhere.
    allowed: HashSet<(String, String)>,
    reviews: Vec<Value>,
    /// Reviews are answered with an error.
    mute: bool,
}

#[derive(Clone)]
struct Kind {
    api_version: String,
    kind: String,
    plural: String,
    namespaced: bool,
}

/// The version and plural of a kind.
type Collection = (String, String);
/// Where an object is.
type Place = (Collection, Option<String>, String);

impl Objects {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap()
    }

    fn change<R>(&self, change: impl FnOnce(&mut Known) -> R) -> R {
        let changed = change(&mut self.known());
        self.news.send_replace(());
        changed
    }
}

fn collection(api_version: &str, plural: &str) -> Collection {
    (api_version.to_owned(), plural.to_owned())
}

impl FakeApi {
    /// There is a kind from now on.
    pub(crate) fn serve_kind(&self, api_version: &str, kind: &str, plural: &str, namespaced: bool) {
        self.0.objects.change(|known| {
            known.kinds.push(Kind {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                plural: plural.to_owned(),
                namespaced,
            });
        });
    }

    /// A kind is gone, with its objects and their watches.
    pub(crate) fn drop_kind(&self, kind: &str) {
        self.0.objects.change(|known| {
            let gone = known.kinds.iter().position(|known| known.kind == kind);
            let gone = known.kinds.remove(gone.unwrap());
            let of = collection(&gone.api_version, &gone.plural);
            known
                .objects
                .retain(|(collection, ..), _| *collection != of);
            known.hang_ups += 1;
        });
    }

    /// Creates or replaces an object.
    pub(crate) fn put_object(
        &self,
        (api_version, plural): (&str, &str),
        namespace: Option<&str>,
        name: &str,
        mut object: Value,
    ) {
        let version = self.next_version();
        object["metadata"]["name"] = json!(name);
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-{name}"));
        }
        self.0.objects.change(|known| {
            let of = collection(api_version, plural);
            let namespace = namespace.map(str::to_owned);
            let place = (of.clone(), namespace.clone(), name.to_owned());
            let before = known.objects.insert(place, object.clone());
            let kind = before.map_or("ADDED", |_| "MODIFIED");
            let event = json!({ "type": kind, "object": object });
            known.history.push((version, of, namespace, event));
        });
    }

    pub(crate) fn delete_object(
        &self,
        (api_version, plural): (&str, &str),
        namespace: Option<&str>,
        name: &str,
    ) {
        let version = self.next_version();
        self.0.objects.change(|known| {
            let of = collection(api_version, plural);
            let namespace = namespace.map(str::to_owned);
            let place = (of.clone(), namespace.clone(), name.to_owned());
            let mut object = known.objects.remove(&place).unwrap();
            object["metadata"]["resourceVersion"] = json!(version.to_string());
            let event = json!({ "type": "DELETED", "object": object });
            known.history.push((version, of, namespace, event));
        });
    }

    /// Sends a sign of life to the watches of a kind in a namespace.
    pub(crate) fn bookmark(&self, (api_version, plural): (&str, &str), namespace: Option<&str>) {
        let version = self.next_version();
        self.0.objects.change(|known| {
            let event = json!({ "type": "BOOKMARK", "object": {
                "apiVersion": api_version, "kind": "Any",
                "metadata": { "resourceVersion": version.to_string() },
            } });
            let namespace = namespace.map(str::to_owned);
            let of = collection(api_version, plural);
            known.history.push((version, of, namespace, event));
        });
    }

    /// Ends all watches of objects. With `forget`, nobody may go on from where they were.
    pub(crate) fn hang_up(&self, forget: bool) {
        let version = self.next_version();
        self.0.objects.change(|known| {
            known.hang_ups += 1;
            if forget {
                known.compacted = version;
            }
        });
    }

    /// A service account, which may read these kinds, or of a kind (`deployments/web`) one object.
    pub(crate) fn put_account(&self, namespace: &str, name: &str, plurals: &[&str]) {
        self.0.objects.change(|known| {
            known
                .accounts
                .insert((namespace.to_owned(), name.to_owned()));
            let user = format!("system:serviceaccount:{namespace}:{name}");
            known.allowed.retain(|(known, _)| *known != user);
            let allowed = plurals
                .iter()
                .map(|plural| (user.clone(), (*plural).to_owned()));
            known.allowed.extend(allowed);
        });
    }

    pub(crate) fn delete_account(&self, namespace: &str, name: &str) {
        let account = (namespace.to_owned(), name.to_owned());
        self.0
            .objects
            .change(|known| known.accounts.remove(&account));
    }

    /// The reviews that were asked for, as their specs have it.
    pub(crate) fn reviews(&self) -> Vec<Value> {
        self.0.objects.known().reviews.clone()
    }

    /// Whether reviews fail.
    pub(crate) fn fail_reviews(&self, fail: bool) {
        self.0.objects.change(|known| known.mute = fail);
    }

    fn next_version(&self) -> usize {
        self.0
            .version
            .fetch_add(1, std::sync::atomic::Ordering::SeqCst)
    }
}
