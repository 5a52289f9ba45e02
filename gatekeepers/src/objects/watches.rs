//! The kinds that somebody looks at, each watched once in each namespace. How long a watch lasts, and
//! its word counts, is in [`shared`](sluice_watching::shared).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::runtime::watcher::Config;
use kube::{Api, Client};
use tokio::sync::{Semaphore, broadcast};

use super::DEADLINE;
use super::follow::{Follower, Held};
use super::kinds::{Kind, Kinds};
use super::rights::Rights;
use super::store::{Cursor, Limits, News};
use crate::source::ObjectsKey;
use sluice_watching::room::Rooms;
use sluice_watching::shared::{SILENCE, Shared, Sight};

/// How many gatekeepers judge their objects at once.
const AT_ONCE: usize = 2;

/// The watched objects. Clones share their watches, which end with the last clone.
#[derive(Clone)]
pub struct ObjectWatches(Arc<Inner>);

struct Inner {
    client: Client,
    limits: Limits,
    /// Where all text is counted, by namespace; of objects in none, too.
    rooms: Rooms,
    watches: Shared<ObjectsKey, Held>,
    kinds: Kinds,
    rights: Rights,
    turns: Semaphore,
}

/// Why objects cannot be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unseen {
    /// The API server knows the kind no more.
    Vanished,
    /// Anything else, in words.
    Because(String),
}

impl ObjectWatches {
    /// The objects that `client` may see. Nothing is read yet.
    pub fn new(client: Client) -> Self {
        Self::with(client, Limits::default(), DEADLINE)
    }

    /// The same, with other limits, and another one to the wait for the API server's first answer.
    pub fn with(client: Client, limits: Limits, deadline: Duration) -> Self {
        Self(Arc::new(Inner {
            kinds: Kinds::new(client.clone()),
            rights: Rights::new(client.clone()),
            client,
            rooms: limits.rooms(),
            limits,
            watches: Shared::new(deadline),
            turns: Semaphore::new(AT_ONCE),
        }))
    }

    /// What is watched and changes from now on. Its first sight is a change too.
    pub fn changes(&self) -> broadcast::Receiver<ObjectsKey> {
        self.0.watches.changes()
    }

    /// How many kinds and namespaces are watched.
    pub fn watched(&self) -> usize {
        self.0.watches.watched()
    }

    pub(crate) fn watches(&self) -> &Shared<ObjectsKey, Held> {
        &self.0.watches
    }

    pub(super) fn kinds(&self) -> &Kinds {
        &self.0.kinds
    }

    pub(super) fn rights(&self) -> &Rights {
        &self.0.rights
    }

    pub(super) fn turns(&self) -> &Semaphore {
        &self.0.turns
    }

    /// What is new of the objects of `key` to somebody who has read as far as `cursor`. From the
    /// first call on they are watched; the answer waits for the API server's first one.
    pub(super) async fn read(
        &self,
        key: &ObjectsKey,
        kind: &Kind,
        cursor: Option<Cursor>,
    ) -> Result<(News, Cursor), Unseen> {
        let how = || {
            let client = self.0.client.clone();
            let api = match &key.namespace {
                Some(namespace) => Api::namespaced_with(client, namespace, &kind.resource),
                None => Api::all_with(client, &kind.resource),
            };
            let room = self
                .0
                .rooms
                .of(key.namespace.as_deref().unwrap_or_default());
            let follower = Follower::new(kind.resource.clone(), self.0.limits, room);
            (api, Config::default(), follower)
        };
        let what = Named { key, kind };
        let why = match self.0.watches.look(key, how).await {
            Sight::Told(held) => return Ok(held.since(cursor)),
            Sight::Vanished => return Err(Unseen::Vanished),
            Sight::Refused(verb) => {
                format!("may not {verb} {what}: grant gate-controller get, list, watch")
            }
            Sight::TooMuch(why) => format!("cannot watch {what}: {why}"),
            Sight::Silent(_) => {
                let silence = SILENCE.as_secs();
                format!("nothing was heard of the {what} for {silence}s")
            }
            Sight::Nothing(trouble) => {
                let trouble = trouble.map(|trouble| format!(": {}", trouble.why));
                let deadline = self.0.watches.deadline().as_secs();
                let trouble = trouble.unwrap_or_default();
                format!("the API server has not told the {what} within {deadline}s{trouble}")
            }
        };
        Err(Unseen::Because(why))
    }
}

/// Objects as the API server's rules of access call them.
struct Named<'a> {
    key: &'a ObjectsKey,
    kind: &'a Kind,
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = &self.kind.resource;
        f.write_str(&resource.plural)?;
        if !resource.group.is_empty() {
            write!(f, ".{}", resource.group)?;
        }
        match &self.key.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}
