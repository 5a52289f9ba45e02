//! One cluster of the fleet: the way to it, the kinds that it serves, and what is watched there.
//!
//! What comes in: what is wanted of it. What goes out: a [`Sight`] of each object. A [`tend`] task brings
//! it up to date, whenever something that it depends on has changed.
//!
//! It uses every room but [`fleet`](crate::fleet).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::ApiResource;
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use parking_lot::{Mutex, MutexGuard};
use sluice_watching::room::{Room, Rooms};
use sluice_watching::shared::{self, Shared, Signals};
use tokio::sync::broadcast;

use crate::bounds::namespaces;
use crate::connection::Connection;
use crate::held::{Found, Held, How, Keeper, Object};
use crate::reference::allows;
use crate::sight::{Sight, Unknown};
use crate::wanted::{Change, Cluster, Keep, Kind, Part, Wanted};

mod kinds;
pub(crate) mod tend;

/// Which namespaces of a cluster may be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All.
    All,
    /// This one alone.
    Namespace(String),
}

/// What is wanted of a cluster.
pub(crate) type Wants = Arc<BTreeSet<Wanted>>;

/// A cluster.
pub(crate) struct Site {
    cluster: Cluster,
    scope: Scope,
    keep: Keep,
    connection: Connection,
    watches: Shared<Key, Held>,
    known: Mutex<Known>,
    news: broadcast::Sender<Change>,
    /// For the objects that its watches hold.
    rooms: Arc<Rooms>,
}

/// What a watch is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    kind: Kind,
    /// None: all namespaces.
    namespace: Option<String>,
    part: Part,
}

/// What is known of the way to the objects.
struct Known {
    link: Link,
    /// The annotation of the Secret that says who may use it.
    allowed: Option<String>,
    kinds: BTreeMap<Kind, Result<ApiResource, Unknown>>,
    /// What was last said of watches that say nothing.
    said: HashMap<Key, Unknown>,
}

/// Whether the cluster can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Link {
    /// It is not known yet.
    NotYet,
    /// The Secret is there, and nobody who wants the cluster may use it: it is not read.
    Unread,
    /// It cannot, and why.
    Down(Unknown),
    /// It can.
    Up,
}

impl Site {
    pub(crate) fn new(
        cluster: Cluster,
        (scope, keep): (Scope, Keep),
        connection: Connection,
        silence: Duration,
        news: broadcast::Sender<Change>,
        room: Arc<Room>,
    ) -> Self {
        let link = match cluster {
            Cluster::Own => Link::Up,
            Cluster::Remote(_) => Link::NotYet,
        };
        Self {
            cluster,
            scope,
            keep,
            connection,
            // Nobody waits for a first answer.
            watches: Shared::new(Duration::ZERO).silent_after(silence),
            known: Mutex::new(Known {
                link,
                allowed: None,
                kinds: BTreeMap::new(),
                said: HashMap::new(),
            }),
            news,
            rooms: Arc::new(namespaces(room)),
        }
    }

    /// What is announced to all its watches.
    pub(crate) fn signals(&self) -> &Signals {
        self.watches.signals()
    }

    /// How many watches there are.
    pub(crate) fn watched(&self) -> usize {
        self.watches.watched()
    }

    /// What is known of an object.
    pub(crate) fn look(&self, wanted: &Wanted, name: &str) -> Sight {
        let held = match self.held(wanted) {
            Ok(held) => held,
            Err(why) => return Sight::Unknown(why),
        };
        match held.find(&wanted.namespace, name) {
            Found::Here(Ok(object)) => Sight::Seen(object),
            Found::Here(Err(why)) => Sight::Unknown(Unknown::Unreadable(why.to_string())),
            Found::Full(why) => Sight::Unknown(Unknown::TooMuch(why.to_string())),
            Found::Nothing => Sight::Absent,
        }
    }

    /// All objects that are wanted, by name. Those that cannot be read are left out.
    pub(crate) fn list(&self, wanted: &Wanted) -> Result<Vec<(String, Arc<Object>)>, Unknown> {
        let all = self.held(wanted)?.all(&wanted.namespace);
        all.map_err(|why| Unknown::TooMuch(why.to_string()))
    }

    /// Why the cluster cannot be read, if it cannot: of what is wanted nothing is known, or it says
    /// nothing of a part of it.
    pub(crate) fn trouble(&self, wants: &BTreeSet<Wanted>) -> Option<Unknown> {
        if let Link::Down(why) = &self.known().link {
            return Some(why.clone());
        }
        let looks: Vec<_> = wants.iter().map(|wanted| self.held(wanted)).collect();
        let mut unknown = looks.iter().filter_map(|look| look.as_ref().err());
        if let Some(why) = unknown.clone().find(|why| why.is_of_cluster()) {
            return Some(why.clone());
        }
        match looks.iter().any(Result::is_ok) {
            true => None,
            false => unknown.next().cloned(),
        }
    }

    /// Ends the watches that have not been used for a while, as [`Shared::keep`] does.
    pub(crate) fn keep(&self, wants: &BTreeSet<Wanted>, now: Timestamp) -> Option<Timestamp> {
        let in_use: HashSet<_> = self.needed(wants).into_iter().collect();
        self.known().said.retain(|key, _| in_use.contains(key));
        self.watches.keep(&in_use, now)
    }

    /// A client of the cluster for objects in the namespace `from`, and the host that it leads to.
    pub(crate) fn client(&self, from: &str) -> Result<(Client, String), Unknown> {
        self.open(&self.known(), from)?;
        Ok((self.connection.client(), self.connection.host()))
    }

    fn held(&self, wanted: &Wanted) -> Result<Held, Unknown> {
        self.way(wanted)?;
        if !self.is_followed_everywhere(wanted) {
            return self.told(&Key::one(wanted));
        }
        match self.told(&Key::all(wanted)) {
            Err(Unknown::Forbidden { .. }) => self.told(&Key::one(wanted)),
            told => told,
        }
    }

    /// Whether one watch is for all namespaces. Where whole objects are looked at, and of kinds of which
    /// there may be anything, only what is wanted is followed.
    fn is_followed_everywhere(&self, wanted: &Wanted) -> bool {
        let is_small = match wanted.part {
            Part::State | Part::Kept => true,
            Part::Whole => false,
        };
        is_small && self.scope == Scope::All && wanted.kind.is_of_flux()
    }

    /// Why what is wanted cannot be asked for at all.
    fn way(&self, wanted: &Wanted) -> Result<(), Unknown> {
        if !self.is_in_scope(wanted) {
            return Err(Unknown::OutOfScope);
        }
        let known = self.known();
        self.open(&known, &wanted.from)?;
        match known.kinds.get(&wanted.kind) {
            None => Err(Unknown::NotYet),
            Some(Ok(_)) => Ok(()),
            Some(Err(why)) => Err(why.clone()),
        }
    }

    /// Why objects in the namespace `from` cannot ask the cluster, if they cannot.
    fn open(&self, known: &Known, from: &str) -> Result<(), Unknown> {
        match (&known.link, self.is_allowed(known, from)) {
            (Link::NotYet, _) => Err(Unknown::NotYet),
            (_, Err(why)) => Err(why),
            (Link::Unread, Ok(())) => Err(Unknown::NotYet),
            (Link::Down(why), Ok(())) => Err(why.clone()),
            (Link::Up, Ok(())) => Ok(()),
        }
    }

    fn is_in_scope(&self, wanted: &Wanted) -> bool {
        match &self.scope {
            Scope::All => true,
            Scope::Namespace(own) => *own == wanted.namespace,
        }
    }

    fn is_allowed(&self, known: &Known, from: &str) -> Result<(), Unknown> {
        match &self.cluster {
            Cluster::Own => Ok(()),
            Cluster::Remote(secret) => match allows(secret, known.allowed.as_deref(), from) {
                true => Ok(()),
                false => Err(Unknown::NotAllowed {
                    secret: (**secret).clone(),
                    from: from.to_owned(),
                }),
            },
        }
    }

    /// What a watch has told. Trouble of one kind is told in the same words until it is over.
    fn told(&self, key: &Key) -> Result<Held, Unknown> {
        let told = self.told_now(key);
        let mut known = self.known();
        match told {
            Ok(held) => {
                known.said.remove(key);
                Ok(held)
            }
            Err(why) => {
                let why = why.after(known.said.get(key));
                known.said.insert(key.clone(), why.clone());
                Err(why)
            }
        }
    }

    fn told_now(&self, key: &Key) -> Result<Held, Unknown> {
        match self.watches.sight(key) {
            Some(shared::Sight::Told(held)) => Ok(held),
            None | Some(shared::Sight::Nothing(None)) => Err(Unknown::NotYet),
            Some(shared::Sight::Nothing(Some(trouble))) => Err(self.unanswered(trouble)),
            Some(shared::Sight::Silent(why)) => {
                let why = why.unwrap_or_else(|| "it says nothing".to_owned());
                let newer = self.connection.trouble().map(|trouble| trouble.why);
                Err(Unknown::Silent(newer.unwrap_or(why)))
            }
            Some(shared::Sight::Refused(verb)) => Err(Unknown::Forbidden {
                whom: match self.cluster {
                    Cluster::Own => "the controller",
                    Cluster::Remote(_) => "the user of the kubeconfig",
                },
                verb,
                what: key.to_string(),
            }),
            Some(shared::Sight::Vanished) => Err(Unknown::NoKind(key.kind.clone())),
            Some(shared::Sight::TooMuch(why)) => Err(Unknown::TooMuch(why)),
        }
    }

    /// With what has happened to the connection, if it has answered nothing.
    fn unanswered(&self, trouble: shared::Trouble) -> Unknown {
        let shared::Trouble { why, passes } = trouble;
        let (why, passes) = match self.connection.trouble() {
            Some(trouble) => (trouble.why, trouble.passes),
            None => (why, passes),
        };
        match passes {
            true => Unknown::Away(why),
            false => Unknown::Unreachable(why),
        }
    }

    /// The watches that are needed for what is wanted: one for each kind of Flux, of all namespaces; one for
    /// each namespace where that is refused, for other kinds, and where whole objects are looked at.
    fn needed(&self, wants: &BTreeSet<Wanted>) -> BTreeSet<Key> {
        let mut needed = BTreeSet::new();
        let known = self.known();
        for wanted in wants {
            if !self.is_in_scope(wanted) || self.is_allowed(&known, &wanted.from).is_err() {
                continue;
            }
            if !self.is_followed_everywhere(wanted) {
                needed.insert(Key::one(wanted));
                continue;
            }
            let all = Key::all(wanted);
            let refused = self.watches.sight(&all);
            if matches!(refused, Some(shared::Sight::Refused(_))) {
                needed.insert(Key::one(wanted));
            }
            // It is retried, so that a right that is granted later is used.
            needed.insert(all);
        }
        needed
    }

    /// Starts the watches that are needed and can be started.
    fn start(&self, wants: &BTreeSet<Wanted>) {
        if self.known().link != Link::Up {
            return;
        }
        for key in self.needed(wants) {
            let resource = match self.known().kinds.get(&key.kind) {
                Some(Ok(resource)) => resource.clone(),
                Some(Err(_)) | None => continue,
            };
            self.watches.watch(&key, || {
                let client = self.connection.client();
                let api = match &key.namespace {
                    Some(namespace) => Api::namespaced_with(client, namespace, &resource),
                    None => Api::all_with(client, &resource),
                };
                let keeper = Keeper::new(How {
                    cluster: self.cluster.clone(),
                    kind: key.kind.clone(),
                    resource: resource.clone(),
                    part: key.part,
                    keep: self.keep,
                    news: self.news.clone(),
                    rooms: Arc::clone(&self.rooms),
                });
                (api, Config::default(), keeper)
            });
        }
    }

    /// Notes whether the cluster can be asked.
    fn set_link(&self, link: &Link) {
        let is_new = {
            let mut known = self.known();
            let link = match (&known.link, link.clone()) {
                (Link::Down(before), Link::Down(why)) => Link::Down(why.after(Some(before))),
                (_, link) => link,
            };
            std::mem::replace(&mut known.link, link.clone()) != link
        };
        if is_new {
            self.tell();
        }
    }

    /// Forgets all that was read of it.
    fn forget(&self) {
        self.known().kinds.clear();
        self.watches.end(|_, _| true);
    }

    /// All who look at this cluster have to look again.
    fn tell(&self) {
        // Nobody listens: nobody waits.
        let _ = self.news.send(Change::Cluster(self.cluster.clone()));
    }

    /// All who look at objects of this kind, in this namespace or in all, have to look again.
    fn tell_of(&self, kind: &Kind, namespace: Option<&str>) {
        let _ = self.news.send(Change::Objects {
            cluster: self.cluster.clone(),
            kind: kind.clone(),
            namespace: namespace.map(str::to_owned),
        });
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }
}

impl Key {
    fn all(wanted: &Wanted) -> Self {
        Self {
            kind: wanted.kind.clone(),
            namespace: None,
            part: wanted.part,
        }
    }

    fn one(wanted: &Wanted) -> Self {
        Self {
            namespace: Some(wanted.namespace.clone()),
            ..Self::all(wanted)
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} in namespace {namespace}", self.kind),
            None => write!(f, "{} in all namespaces", self.kind),
        }
    }
}
