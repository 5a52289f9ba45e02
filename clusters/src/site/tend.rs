//! Brings one cluster up to date: reads its Secret, finds its kinds, and starts its watches.
//!
//! It takes no input: each time that something may have changed, it looks at all of it and does what is
//! missing. Each cluster has a task of its own, so that one that does not answer delays no other.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use sluice_egress::Egress;
use sluice_watching::shared;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, timeout_at};

use super::{Key, Link, Site, Wants, kinds};
use crate::kubeconfig::Kubeconfig;
use crate::secret::{self, Noted};
use crate::sight::Unknown;
use crate::wanted::{Cluster, Kind, SecretKey, Wanted};

/// How soon a Secret or a kind is looked for again that could not be had.
const RETRY: Duration = Duration::from_secs(10);
/// How soon the same version of a Secret is read again for a second time, whatever the cluster says of its
/// credentials: its watch shows each new version anyway.
const DENIED: Duration = Duration::from_secs(60);

/// Where a kubeconfig comes from.
pub(crate) struct Source {
    /// The Secret.
    pub(crate) key: Arc<SecretKey>,
    /// What is known of its metadata.
    pub(crate) noted: watch::Receiver<shared::Sight<Option<Noted>>>,
    /// A client of our own API server.
    pub(crate) own: Client,
    /// The rules for addresses.
    pub(crate) egress: Egress,
}

/// Tends one cluster.
pub(crate) struct Tender {
    site: Arc<Site>,
    wants: watch::Receiver<Wants>,
    /// None: our own cluster.
    source: Option<Source>,
    /// The version of the Secret that was read last.
    version: Option<String>,
    /// What it held, if that is used.
    kubeconfig: Option<Kubeconfig>,
    /// The cluster has refused the credentials since they were read.
    is_denied: bool,
    /// Before that, the same version is not read again.
    not_before: Option<Instant>,
    /// When kinds are looked for again that were not found.
    again: BTreeMap<Kind, Instant>,
}

impl Tender {
    pub(crate) fn new(
        site: Arc<Site>,
        wants: watch::Receiver<Wants>,
        source: Option<Source>,
    ) -> Self {
        Self {
            site,
            wants,
            source,
            version: None,
            kubeconfig: None,
            is_denied: false,
            not_before: None,
            again: BTreeMap::new(),
        }
    }

    /// Until nobody wants anything of the cluster any more.
    pub(crate) async fn run(mut self) {
        let mut watched = self.site.watches.changes();
        loop {
            let wants = Arc::clone(&self.wants.borrow_and_update());
            let secret = self.tend_link(&wants).await;
            let kinds = self.tend_kinds(&wants).await;
            self.site.start(&wants);
            let next = [secret, kinds].into_iter().flatten().min();
            tokio::select! {
                changed = self.wants.changed() => if changed.is_err() {
                    return;
                },
                change = watched.recv() => match change {
                    Ok(key) => self.site.tell_of(&key.kind, key.namespace.as_deref()),
                    Err(broadcast::error::RecvError::Lagged(_)) => self.site.tell(),
                    // It lives as long as the site.
                    Err(broadcast::error::RecvError::Closed) => return,
                },
                () = changed(self.source.as_mut()) => {}
                () = self.site.connection.denied() => self.is_denied = true,
                () = pass(next) => {}
            }
        }
    }

    /// Reads the Secret if it has changed, or if its credentials are refused. Returns when to try again.
    async fn tend_link(&mut self, wants: &BTreeSet<Wanted>) -> Option<Instant> {
        let source = self.source.as_mut()?;
        let key = Arc::clone(&source.key);
        let noted = source.noted.borrow_and_update().clone();
        let noted = match noted {
            shared::Sight::Told(Some(noted)) => noted,
            shared::Sight::Told(None) => {
                self.leave(Unknown::NoSecret((*key).clone()));
                return None;
            }
            shared::Sight::Refused(verb) => {
                let secret = (*key).clone();
                self.leave(Unknown::NoRight { verb, secret });
                return None;
            }
            // What was read counts again once the Secret is heard of, if it is still the same.
            shared::Sight::Silent(why) => {
                let why = why.unwrap_or_else(|| "our own API server says nothing".to_owned());
                self.site.set_link(&Link::Down(Unknown::Silent(why)));
                return None;
            }
            shared::Sight::Nothing(Some(trouble)) => {
                let why = format!(
                    "our own API server does not show its Secret: {}",
                    trouble.why
                );
                self.site.set_link(&Link::Down(Unknown::Away(why)));
                return None;
            }
            shared::Sight::Nothing(None) | shared::Sight::Vanished | shared::Sight::TooMuch(_) => {
                return None;
            }
        };
        self.note_allowed(noted.allowed.as_deref());
        if !self.is_allowed(wants) {
            self.leave_to(&Link::Unread);
            return None;
        }
        let is_same = self.version.as_ref() == Some(&noted.version);
        if is_same && self.kubeconfig.is_some() {
            self.site.set_link(&Link::Up);
        }
        if is_same && !self.is_denied {
            return None;
        }
        if is_same {
            let now = Instant::now();
            if let Some(not_before) = self.not_before.filter(|it| now < *it) {
                return Some(not_before);
            }
            self.not_before = Some(now + DENIED);
        }
        self.read(&key, noted.version).await
    }

    async fn read(&mut self, key: &SecretKey, version: String) -> Option<Instant> {
        let source = self.source.as_ref()?;
        let again = Instant::now() + RETRY;
        self.is_denied = false;
        let data = match secret::read(&source.own, key).await {
            Ok(data) => data,
            Err(why) => {
                // The version was not read: it is tried again.
                self.version = None;
                if self.kubeconfig.is_none() {
                    self.site.set_link(&Link::Down(why));
                }
                return Some(again);
            }
        };
        self.version = Some(version);
        match Kubeconfig::read(&data) {
            Ok(kubeconfig) => self.follow(key, kubeconfig),
            Err(why) => self.refuse(key, why),
        }
        None
    }

    /// Goes where a kubeconfig leads.
    fn follow(&mut self, key: &SecretKey, kubeconfig: Kubeconfig) {
        let Some(source) = &self.source else { return };
        let before = self.kubeconfig.take();
        if !before.is_some_and(|before| before.leads_as(&kubeconfig)) {
            // Versions of another cluster say nothing here.
            self.site.forget();
        } else {
            // What fails begins again at once, with the new credentials.
            let is_told = |sight: &_| matches!(sight, shared::Sight::Told(_));
            self.site.watches.end(|_, sight| !is_told(sight));
            self.site.known().kinds.retain(|_, kind| kind.is_ok());
        }
        self.again.clear();
        match self.site.connection.lead(&kubeconfig, &source.egress) {
            Ok(()) => {
                self.kubeconfig = Some(kubeconfig);
                self.site.set_link(&Link::Up);
            }
            Err(why) => self.refuse(key, why),
        }
    }

    fn refuse(&mut self, key: &SecretKey, why: crate::kubeconfig::Refusal) {
        let secret = key.clone();
        let version = self.version.take();
        self.leave(Unknown::Kubeconfig { secret, why });
        // The same text would be refused again.
        self.version = version;
    }

    /// Nothing of the cluster is kept.
    fn leave(&mut self, why: Unknown) {
        self.leave_to(&Link::Down(why));
    }

    fn leave_to(&mut self, link: &Link) {
        self.site.connection.close();
        self.site.forget();
        if matches!(
            link,
            Link::Down(Unknown::NoSecret(_) | Unknown::NoRight { .. })
        ) {
            self.note_allowed(None);
        }
        self.site.set_link(link);
        (self.version, self.kubeconfig, self.is_denied) = (None, None, false);
        self.again.clear();
    }

    fn note_allowed(&self, allowed: Option<&str>) {
        let before = {
            let mut known = self.site.known();
            std::mem::replace(&mut known.allowed, allowed.map(str::to_owned))
        };
        if before.as_deref() != allowed {
            self.site.tell();
        }
    }

    fn is_allowed(&self, wants: &BTreeSet<Wanted>) -> bool {
        let known = self.site.known();
        let mut wants = wants.iter();
        wants.any(|wanted| self.site.is_allowed(&known, &wanted.from).is_ok())
    }

    /// Finds the kinds that are wanted and not found yet. Returns when to look for the others again.
    async fn tend_kinds(&mut self, wants: &BTreeSet<Wanted>) -> Option<Instant> {
        if self.site.known().link != Link::Up {
            return None;
        }
        let needed = self.site.needed(wants);
        self.lose_vanished(&needed);
        let kinds: BTreeSet<_> = needed.into_iter().map(|key| key.kind).collect();
        self.again.retain(|kind, _| kinds.contains(kind));
        self.site
            .known()
            .kinds
            .retain(|kind, _| kinds.contains(kind));
        for kind in kinds {
            let is_found = matches!(self.site.known().kinds.get(&kind), Some(Ok(_)));
            let is_due = |again: &Instant| *again <= Instant::now();
            if is_found || !self.again.get(&kind).is_none_or(is_due) {
                continue;
            }
            let found = kinds::find(&self.site.connection.client(), &kind).await;
            let found = found.map_err(|why| self.explained(why));
            match found.is_ok() {
                true => drop(self.again.remove(&kind)),
                false => drop(self.again.insert(kind.clone(), Instant::now() + RETRY)),
            }
            let before = self.site.known().kinds.get(&kind).cloned();
            let known = before.as_ref().and_then(|before| before.as_ref().err());
            let found = found.map_err(|why| why.after(known));
            self.site.known().kinds.insert(kind.clone(), found.clone());
            if found.is_err() && before != Some(found) {
                self.site.tell_of(&kind, None);
            }
        }
        self.again.values().min().copied()
    }

    /// Kinds that the API server does not know any more.
    fn lose_vanished(&mut self, needed: &BTreeSet<Key>) {
        for key in needed {
            let sight = self.site.watches.sight(key);
            if matches!(sight, Some(shared::Sight::Vanished)) {
                let missing = Err(Unknown::NoKind(key.kind.clone()));
                self.site.known().kinds.insert(key.kind.clone(), missing);
                self.again.insert(key.kind.clone(), Instant::now() + RETRY);
                self.site.watches.end(|other, _| other == key);
            }
        }
    }

    /// With what has happened to the connection.
    fn explained(&self, why: Unknown) -> Unknown {
        let unanswered = |why, passes| self.site.unanswered(shared::Trouble { why, passes });
        match why {
            Unknown::Away(why) => unanswered(why, true),
            Unknown::Unreachable(why) => unanswered(why, false),
            why => why,
        }
    }
}

/// Waits until something is said of the Secret.
async fn changed(source: Option<&mut Source>) {
    match source {
        Some(source) => match source.noted.changed().await {
            Ok(()) => {}
            // Nothing more is said of it: the fleet ends.
            Err(_) => pending().await,
        },
        None => pending().await,
    }
}

/// Waits until then. None: for ever.
async fn pass(until: Option<Instant>) {
    match until {
        Some(until) => drop(timeout_at(until, pending::<()>()).await),
        None => pending().await,
    }
}

impl Site {
    /// The Secret that it is known by.
    pub(crate) fn secret(&self) -> Option<&Arc<SecretKey>> {
        match &self.cluster {
            Cluster::Own => None,
            Cluster::Remote(secret) => Some(secret),
        }
    }
}
