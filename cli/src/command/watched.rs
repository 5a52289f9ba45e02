//! What decisions are made from, watched: for anybody who waits, or goes on listing.
//!
//! What comes in: the objects that were read, and when time may change what they come to. What goes
//! out: a call as soon as it is worth looking again.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::stream::{BoxStream, SelectAll};
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use kube::api::Api;
use kube::core::NamespaceResourceScope;
use kube::runtime::{WatchStreamExt, watcher};
use sluice_core::offline::simulate::Key;
use sluice_crds::{Approval, Gate, GatePolicy, GatedSource, Gatekeeper};

use crate::clock;
use crate::cluster::{Connection, Seen};

/// How long nothing is looked at again, whatever is known: clocks are set, machines suspended,
/// ConfigMaps not watched.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// For how long changes are collected before a whole list is looked at again.
const SETTLES: Duration = Duration::from_millis(200);
/// After so many changes it is looked at again, however soon the next one comes.
const MOST_ROUNDS: usize = 100;

/// What can be watched.
trait Watch:
    kube::Resource<DynamicType = ()>
    + Clone
    + std::fmt::Debug
    + serde::de::DeserializeOwned
    + Send
    + 'static
{
}

impl Watch for Gate {}
impl Watch for Gatekeeper {}
impl Watch for GatePolicy {}
impl Watch for Approval {}
impl Watch for GatedSource {}

/// What is watched, each once.
#[derive(Default)]
pub(super) struct Watched {
    known: BTreeSet<(What, Key)>,
    changes: SelectAll<BoxStream<'static, ()>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Gate,
    Gatekeeper,
    /// All of a namespace: their names are not known before.
    Approvals,
    Sources,
    /// All there are.
    Policies,
}

impl Watched {
    pub(super) fn gate(&mut self, connection: &Connection, key: &Key) {
        self.watch::<Gate>(What::Gate, connection, key);
    }

    pub(super) fn policies(&mut self, connection: &Connection) {
        if self.known.insert((What::Policies, all(None))) {
            let api: Api<GatePolicy> = Api::all(connection.client.clone());
            self.follow(api, watcher::Config::default());
        }
    }

    /// Everything that was decided from.
    pub(super) fn everything(&mut self, connection: &Connection, seen: &Seen) {
        for key in seen.world.nested.keys() {
            self.gate(connection, key);
        }
        for gate in seen.world.gates.values().chain(seen.world.nested.values()) {
            // Those that are not there may come.
            for reference in &gate.spec.gatekeepers {
                let key = Key::named_by(gate, reference);
                self.watch::<Gatekeeper>(What::Gatekeeper, connection, &key);
            }
        }
        for (key, keeper) in &seen.world.gatekeepers {
            if keeper.spec.approval.is_some() {
                self.approvals(connection, Some(&key.namespace));
            }
        }
    }

    /// All gates of a namespace with whatever they are decided from there; of every namespace if
    /// none is named.
    pub(super) fn gates(&mut self, connection: &Connection, namespace: Option<&str>) {
        let all = all(namespace);
        self.watch::<Gate>(What::Gate, connection, &all);
        self.gatekeepers(connection, namespace);
        self.approvals(connection, namespace);
    }

    pub(super) fn gatekeepers(&mut self, connection: &Connection, namespace: Option<&str>) {
        self.watch::<Gatekeeper>(What::Gatekeeper, connection, &all(namespace));
    }

    pub(super) fn approvals(&mut self, connection: &Connection, namespace: Option<&str>) {
        self.watch::<Approval>(What::Approvals, connection, &all(namespace));
    }

    pub(super) fn sources(&mut self, connection: &Connection, namespace: Option<&str>) {
        self.watch::<GatedSource>(What::Sources, connection, &all(namespace));
    }

    /// Whether it is watched with all others of its namespace, or of every namespace.
    fn is_among(&self, what: What, key: &Key) -> bool {
        let among = [all(None), all(Some(&key.namespace)), key.clone()];
        let mut among = among.into_iter();
        among.any(|all| self.known.contains(&(what, all)))
    }

    /// The object of that name, or of a namespace all, or all there are.
    fn watch<K>(&mut self, what: What, connection: &Connection, key: &Key)
    where
        K: Watch + kube::Resource<Scope = NamespaceResourceScope>,
    {
        if self.is_among(what, key) {
            return;
        }
        self.known.insert((what, key.clone()));
        let client = connection.client.clone();
        let api: Api<K> = match key.namespace.as_str() {
            "" => Api::all(client),
            namespace => Api::namespaced(client, namespace),
        };
        let config = watcher::Config::default();
        self.follow(
            api,
            match key.name.as_str() {
                "" => config,
                name => config.fields(&format!("metadata.name={name}")),
            },
        );
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
    pub(super) async fn something(&mut self, wake: Option<Timestamp>) {
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
    pub(super) async fn settled(&mut self, wake: Option<Timestamp>) {
        self.something(wake).await;
        for _ in 0..MOST_ROUNDS {
            let more = tokio::time::timeout(SETTLES, self.changes.next()).await;
            if !matches!(more, Ok(Some(()))) {
                break;
            }
        }
    }
}

/// All of a namespace, or of all namespaces.
fn all(namespace: Option<&str>) -> Key {
    Key {
        namespace: namespace.unwrap_or_default().to_owned(),
        name: String::new(),
    }
}
