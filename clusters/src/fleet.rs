//! All clusters that are wanted.
//!
//! What comes in: the whole of what is wanted, each time that it may have changed, and the instant. What
//! goes out: what is known of each object, at once, and what has changed.
//!
//! It uses every room but [`kubeconfig`](crate::kubeconfig).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use parking_lot::{Mutex, MutexGuard};
use sluice_egress::Egress;
use sluice_watching::room::Room;
use sluice_watching::shared::{Kept, SILENCE, Shared, Signals, Used};
use tokio::sync::{broadcast, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::bounds::{other, others, own, reading, reading_one};
use crate::connection::Connection;
use crate::crowd::{ByCluster, Refused};
use crate::held::Object;
use crate::reference::{Reference, ReferenceKind};
use crate::secret::{self, Noted};
use crate::sight::{Sight, Unknown};
pub use crate::site::Scope;
use crate::site::tend::{Source, Tender};
use crate::site::{Site, Wants};
use crate::wanted::{Change, Cluster, Keep, Part, SecretKey, Wanted};

/// How many changes may wait for those who listen; a listener that falls behind is informed, and looks at
/// everything.
const BACKLOG: usize = 4096;

/// Our own cluster and others, as far as they are wanted. Clones share what is watched, which ends with
/// the last clone. It has to be made inside a runtime.
#[derive(Clone)]
pub struct Fleet(Arc<Inner>);

struct Inner {
    own: Client,
    scope: Scope,
    keep: Keep,
    egress: Egress,
    /// How long nothing may be heard of a cluster.
    silence: Duration,
    secrets: Shared<SecretKey, Option<Noted>>,
    members: Mutex<HashMap<Cluster, Member>>,
    /// What is wanted of more clusters than are seen.
    refused: Mutex<Refused>,
    news: broadcast::Sender<Change>,
    /// For the objects of all other clusters, and for what is being read of them.
    others: Arc<Room>,
    reading: Arc<Room>,
}

struct Member {
    site: Arc<Site>,
    wants: watch::Sender<Wants>,
    used: Used,
    _task: AbortOnDropHandle<()>,
}

/// How a cluster is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The cluster.
    pub cluster: Cluster,
    /// Why it cannot be read. None: it can. The words are for the namespaces that may use it.
    pub trouble: Option<Unknown>,
    /// How many watches there are.
    pub watches: usize,
}

impl Fleet {
    /// Nothing is wanted yet. Our own cluster is read by `own`, in this scope; others under the rules of
    /// `egress`.
    pub fn new(own: Client, scope: Scope, egress: Egress) -> Self {
        Self::with_silence(own, scope, egress, SILENCE)
    }

    /// The same, where what was read counts for another time after the last sign of life than five
    /// minutes. A watch on which nothing happens gives one about every minute.
    pub fn with_silence(own: Client, scope: Scope, egress: Egress, silence: Duration) -> Self {
        Self::make(own, (scope, |object| object), egress, silence)
    }

    /// The same, where this is kept of objects of which [`Part::Kept`] is wanted. Without it, that is all of them.
    pub fn keeping(own: Client, scope: Scope, egress: Egress, keep: Keep) -> Self {
        Self::make(own, (scope, keep), egress, SILENCE)
    }

    fn make(own: Client, (scope, keep): (Scope, Keep), egress: Egress, silence: Duration) -> Self {
        Self(Arc::new(Inner {
            own,
            scope,
            keep,
            egress,
            silence,
            // Nobody waits for a first answer.
            secrets: Shared::new(Duration::ZERO),
            members: Mutex::default(),
            refused: Mutex::default(),
            news: broadcast::Sender::new(BACKLOG),
            others: others(),
            reading: reading(),
        }))
    }

    /// From now on all this is wanted, and nothing else. What has not been wanted for a minute ends: its
    /// watches, and of a cluster the connection too. Returns when the next one ends if it stays unwanted:
    /// the time to call again.
    pub fn want<'w>(
        &self,
        wanted: impl IntoIterator<Item = &'w Wanted>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let mut by_cluster = ByCluster::new();
        for one in wanted {
            by_cluster.entry(&one.cluster).or_default().insert(one);
        }
        let mut members = self.members();
        let is_seen = |cluster: &Cluster| members.contains_key(cluster);
        *self.0.refused.lock() = Refused::take(&mut by_cluster, is_seen);
        for (cluster, wants) in &by_cluster {
            let member = members.entry((*cluster).clone());
            let member = member.or_insert_with(|| self.join(cluster));
            member.used = Used::default();
            member.wants.send_if_modified(|before| {
                let is_new = !before.iter().eq(wants.iter().copied());
                if is_new {
                    *before = Arc::new(wants.iter().copied().cloned().collect());
                }
                is_new
            });
        }
        let mut next: Option<Timestamp> = None;
        let mut ends_at = |end: Timestamp| next = Some(next.map_or(end, |next| next.min(end)));
        members.retain(|cluster, member| {
            match member.used.judge(by_cluster.contains_key(cluster), now) {
                Kept::Used => {
                    let wants = Arc::clone(&member.wants.borrow());
                    member
                        .site
                        .keep(&wants, now)
                        .into_iter()
                        .for_each(&mut ends_at);
                    true
                }
                Kept::Until(end) => {
                    ends_at(end);
                    true
                }
                Kept::Over => {
                    if let Some(secret) = member.site.secret() {
                        self.0.secrets.end(|key, _| *key == **secret);
                    }
                    false
                }
            }
        });
        next
    }

    /// What is known of the object `name` at this moment. What is not wanted is not known.
    pub fn look(&self, wanted: &Wanted, name: &str) -> Sight {
        if let Some(why) = (self.0.refused.lock()).why(&wanted.cluster, &wanted.from) {
            return Sight::Unknown(why.clone());
        }
        match self.members().get(&wanted.cluster) {
            Some(member) => member.site.look(wanted, name),
            None => Sight::Unknown(Unknown::NotYet),
        }
    }

    /// All objects that are wanted, by name. Those that cannot be read are left out.
    ///
    /// # Errors
    /// Nothing is known of them.
    pub fn list(&self, wanted: &Wanted) -> Result<Vec<(String, Arc<Object>)>, Unknown> {
        if let Some(why) = (self.0.refused.lock()).why(&wanted.cluster, &wanted.from) {
            return Err(why.clone());
        }
        let members = self.members();
        let member = members.get(&wanted.cluster).ok_or(Unknown::NotYet)?;
        member.site.list(wanted)
    }

    /// A client of a cluster for objects in the namespace `from`, and the host that it leads to: an empty
    /// text for our own. A cluster of which nothing is wanted has none.
    ///
    /// # Errors
    /// It cannot be asked, or that namespace may not use it.
    pub fn client(&self, from: &str, cluster: &Cluster) -> Result<(Client, String), Unknown> {
        let members = self.members();
        let member = members.get(cluster).ok_or(Unknown::NotYet)?;
        member.site.client(from)
    }

    /// What has to be wanted so that a reference of an object in the namespace `from` can be followed.
    pub fn needs(from: &str, reference: &Reference) -> Option<Wanted> {
        match reference.kind {
            ReferenceKind::Secret | ReferenceKind::Cluster => None,
            ReferenceKind::GitopsCluster => Some(Wanted {
                from: from.to_owned(),
                cluster: Cluster::Own,
                kind: Reference::gitops_clusters(),
                namespace: reference.namespace(from).to_owned(),
                part: Part::State,
            }),
        }
    }

    /// The cluster that a reference of an object in the namespace `from` leads to.
    ///
    /// # Errors
    /// The reference is wrong, or what it names is not known, not there or not ready.
    pub fn find(&self, from: &str, reference: &Reference) -> Result<Cluster, Unknown> {
        let gitops = || match Self::needs(from, reference) {
            None => Ok(None),
            Some(wanted) => match self.look(&wanted, &reference.name) {
                Sight::Seen(object) => Ok(Some(object.read())),
                Sight::Absent => Ok(None),
                Sight::Unknown(why) => Err(why),
            },
        };
        reference.cluster(from, gitops)
    }

    /// How each cluster that is wanted is reached, and each that was wanted a moment ago.
    pub fn clusters(&self) -> Vec<Standing> {
        let members = self.members();
        let standings = members.iter().map(|(cluster, member)| Standing {
            cluster: cluster.clone(),
            trouble: member.site.trouble(&member.wants.borrow()),
            watches: member.site.watched(),
        });
        let mut standings: Vec<_> = standings.collect();
        standings.sort_by(|a, b| a.cluster.cmp(&b.cluster));
        standings
    }

    /// What changes from now on.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.0.news.subscribe()
    }

    /// Lists everything that is watched again, because nothing that was read before can be relied on: the
    /// machine slept. What was read counts for a moment longer, until the lists arrive.
    pub fn list_again(&self) {
        self.0.secrets.signals().list_again();
        for member in self.members().values() {
            member.site.signals().list_again();
        }
    }

    /// Our own API server is away, for everything and not only for these watches. What was read from it
    /// counts until a moment after the last such call. Other clusters are not excused.
    pub fn away(&self) {
        self.0.secrets.signals().away();
        let members = self.members();
        let own = members.get(&Cluster::Own);
        own.map(|own| own.site.signals())
            .into_iter()
            .for_each(Signals::away);
    }

    /// Begins to tend a cluster.
    fn join(&self, cluster: &Cluster) -> Member {
        let inner = &self.0;
        let (connection, scope, room) = match cluster {
            Cluster::Own => {
                let connection = Connection::own(inner.own.clone());
                (connection, inner.scope.clone(), own())
            }
            Cluster::Remote(_) => {
                let connection = Connection::remote(reading_one(&inner.reading));
                (connection, Scope::All, other(&inner.others))
            }
        };
        let source = match cluster {
            Cluster::Own => None,
            Cluster::Remote(key) => Some(Source {
                key: Arc::clone(key),
                noted: inner
                    .secrets
                    .watch(key, || secret::watch(inner.own.clone(), key)),
                own: inner.own.clone(),
                egress: inner.egress.clone(),
            }),
        };
        let (cluster, news) = (cluster.clone(), inner.news.clone());
        let silence = inner.silence;
        let scope = (scope, inner.keep);
        let site = Site::new(cluster, scope, connection, silence, news, room);
        let site = Arc::new(site);
        let (wants, heard) = watch::channel(Wants::default());
        let task = tokio::spawn(Tender::new(Arc::clone(&site), heard, source).run());
        Member {
            site,
            wants,
            used: Used::default(),
            _task: AbortOnDropHandle::new(task),
        }
    }

    fn members(&self) -> MutexGuard<'_, HashMap<Cluster, Member>> {
        self.0.members.lock()
    }
}
