//! What decisions are made from, watched: for anybody who waits, or goes on listing.
//!
//! What comes in: the objects that were read, and when time may change what is decided from them.
//! What goes out: a call as soon as it is worth looking again.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Error, Result};
use futures::stream::{BoxStream, SelectAll};
use futures::{FutureExt, StreamExt};
use jiff::{SignedDuration, Timestamp};
use kube::Resource;
use kube::api::Api;
use kube::core::NamespaceResourceScope;
use kube::runtime::{WatchStreamExt, watcher};
use serde::de::DeserializeOwned;
use sluice_core::offline::simulate::Key;
use sluice_crds::{Approval, Gate, GatePolicy, Gatekeeper, Pipeline};

use super::connection::Connection;
use super::fault::is_passing;
use super::seen::Seen;
use crate::clock;

/// How long nothing is looked at again, whatever is known: clocks are set, machines suspended,
/// ConfigMaps not watched.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// For how long changes are collected before a whole list is looked at again.
const SETTLES: Duration = Duration::from_millis(200);
/// After so many changes it is looked at again, however soon the next one comes.
const MOST_ROUNDS: usize = 100;

/// How soon an API server that did not answer is asked again.
const TRY_AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// What is watched, each once.
#[derive(Default)]
pub(crate) struct Watched {
    /// The kind and the name. Without a name: all of a namespace, or of all namespaces.
    known: BTreeSet<(String, Key)>,
    changes: SelectAll<BoxStream<'static, ()>>,
}

impl Watched {
    /// Everything that was decided from.
    pub(crate) fn everything(&mut self, connection: &Connection, seen: &Seen) {
        for key in seen.world.nested.keys() {
            self.one::<Gate>(connection, key);
        }
        for gate in seen.world.gates.values().chain(seen.world.nested.values()) {
            // Those that are not there may come.
            for reference in &gate.spec.gatekeepers {
                self.one::<Gatekeeper>(connection, &Key::named_by(gate, reference));
            }
        }
        for (key, keeper) in &seen.world.gatekeepers {
            if keeper.spec.approval.is_some() {
                // Their names are not known before.
                self.all::<Approval>(connection, Some(&key.namespace));
            }
            if let Some(named) = &keeper.spec.pipeline {
                let namespace = named.namespace.as_deref();
                let key = Key::from_reference(&key.namespace, namespace, &named.name);
                self.one::<Pipeline>(connection, &key);
            }
        }
    }

    /// All objects of a namespace; of every namespace if none is named.
    pub(crate) fn all<K>(&mut self, connection: &Connection, namespace: Option<&str>)
    where
        K: Watch + Resource<Scope = NamespaceResourceScope>,
    {
        self.one::<K>(connection, &all(namespace));
    }

    /// All gate policies.
    pub(crate) fn policies(&mut self, connection: &Connection) {
        if self.is_new::<GatePolicy>(&all(None)) {
            self.follow::<GatePolicy>(connection.all(), watcher::Config::default());
        }
    }

    /// The object of that name, or of a namespace all, or all there are.
    pub(crate) fn one<K>(&mut self, connection: &Connection, key: &Key)
    where
        K: Watch + Resource<Scope = NamespaceResourceScope>,
    {
        if !self.is_new::<K>(key) {
            return;
        }
        let some = |text: &'_ String| (!text.is_empty()).then(|| text.clone());
        let api: Api<K> = connection.api(some(&key.namespace).as_deref());
        let config = watcher::Config::default();
        let config = match some(&key.name) {
            Some(name) => config.fields(&format!("metadata.name={name}")),
            None => config,
        };
        self.follow(api, config);
    }

    /// Whether it is not watched yet, alone, with all of its namespace, or with all there are. From now
    /// on it is.
    fn is_new<K: Watch>(&mut self, key: &Key) -> bool {
        let kind = K::kind(&());
        let mut among = [all(None), all(Some(&key.namespace)), key.clone()].into_iter();
        let is_known = among.any(|all| self.known.contains(&(kind.to_string(), all)));
        !is_known && self.known.insert((kind.to_string(), key.clone()))
    }

    /// What cannot be watched is looked at every now and then all the same.
    fn follow<K: Watch>(&mut self, api: Api<K>, config: watcher::Config) {
        let events = watcher(api, config).default_backoff();
        let changes = events.filter_map(async |event| event.ok().map(|_| ()));
        self.changes.push(changes.boxed());
    }

    /// Waits until an object has changed, or the time may have changed the answer.
    #[allow(
        clippy::disallowed_methods,
        reason = "waits for the known instant of the next change"
    )]
    pub(crate) async fn something(&mut self, wake: Option<Timestamp>) {
        let until_wake = wake.map(|wake| {
            let ahead = wake.duration_since(clock::now());
            // Timers count in milliseconds: one more, so as not to come too early.
            Duration::try_from(ahead).unwrap_or_default() + Duration::from_millis(1)
        });
        let pause = until_wake.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = self.changes.next(), if !self.changes.is_empty() => {
                // What comes together is looked at once.
                while self.changes.next().now_or_never().flatten().is_some() {}
            }
        }
    }

    /// The same, and until nothing more has changed for a moment: what changes together is listed
    /// together.
    pub(crate) async fn settled(&mut self, wake: Option<Timestamp>) {
        self.something(wake).await;
        for _ in 0..MOST_ROUNDS {
            let more = tokio::time::timeout(SETTLES, self.changes.next()).await;
            if !matches!(more, Ok(Some(()))) {
                break;
            }
        }
    }
}

/// When to look again after an error: an API server that restarts is no reason to give up, unless it
/// was never there. `began`: it was.
///
/// # Errors
/// The same, where it is one.
pub(crate) fn again(error: Error, began: bool) -> Result<Option<Timestamp>> {
    match began && is_passing(&error) {
        true => Ok(clock::now().saturating_add(TRY_AGAIN).ok()),
        false => Err(error),
    }
}

/// What can be watched.
pub(crate) trait Watch:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static
{
}

impl<K> Watch for K where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static
{
}

/// All of a namespace, or of all namespaces.
fn all(namespace: Option<&str>) -> Key {
    Key {
        namespace: namespace.unwrap_or_default().to_owned(),
        name: String::new(),
    }
}
