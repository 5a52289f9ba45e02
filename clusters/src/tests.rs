//! Fleets over API servers in memory: our own is asked directly, others over TLS by their kubeconfigs.

use std::collections::BTreeSet;
use std::future::pending;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::{Value, json};
use sluice_egress::{Egress, Limits, Names, Rules};
use tokio::sync::broadcast;
use tokio::time::timeout;

use fake_api::FakeApi;

use super::*;

#[path = "../../gatekeepers/src/fake_api.rs"]
mod fake_api;
mod own;
mod remote;
mod server;
#[path = "../../egress/src/test_server.rs"]
mod test_server;

const DEADLINE: Duration = Duration::from_secs(20);
const RELEASES: (&str, &str) = ("helm.toolkit.fluxcd.io/v2", "helmreleases");

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn releases() -> Kind {
    Kind {
        group: "helm.toolkit.fluxcd.io".to_owned(),
        kind: "HelmRelease".to_owned(),
    }
}

fn wanted(cluster: &Cluster, namespace: &str) -> Wanted {
    Wanted {
        from: "pipes".to_owned(),
        cluster: cluster.clone(),
        kind: releases(),
        namespace: namespace.to_owned(),
        part: Part::State,
    }
}

fn release(revision: &str) -> Value {
    json!({
        "metadata": {"generation": 2, "managedFields": [{"manager": "helm"}]},
        "spec": {"values": {"secret": "s3cret"}},
        "status": {"observedGeneration": 2, "lastAttemptedRevision": revision},
    })
}

/// Each name is that of this machine.
struct Here;

impl Names for Here {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) }.boxed()
    }
}

fn egress(allow: &[&str]) -> Egress {
    let rules = Rules {
        allow: allow.iter().map(|range| range.parse().unwrap()).collect(),
        ..Rules::default()
    };
    Egress::with(rules, Limits::default(), Arc::new(Here)).unwrap()
}

/// A fleet whose own cluster has HelmReleases.
struct Stage {
    own: FakeApi,
    fleet: Fleet,
    changes: broadcast::Receiver<Change>,
}

impl Stage {
    fn new() -> Self {
        Self::with(Scope::All, &["127.0.0.0/8"])
    }

    fn with(scope: Scope, allow: &[&str]) -> Self {
        let own = FakeApi::new();
        own.serve_kind(RELEASES.0, "HelmRelease", RELEASES.1, true);
        own.serve_kind("v1", "Secret", "secrets", true);
        let fleet = Fleet::new(own.client(), scope, egress(allow));
        let changes = fleet.changes();
        Self {
            own,
            fleet,
            changes,
        }
    }

    fn want(&self, wanted: &[&Wanted], second: i64) -> Option<Timestamp> {
        let wanted: BTreeSet<_> = wanted.iter().map(|one| (*one).clone()).collect();
        self.fleet.want(&wanted, at(second))
    }

    fn put(&self, namespace: &str, name: &str, object: Value) {
        self.own.put_object(RELEASES, Some(namespace), name, object);
    }

    /// Waits until it is seen with this revision.
    async fn runs(&self, wanted: &Wanted, name: &str, revision: &str) {
        self.until(wanted, name, |sight| {
            attempted(sight).as_deref() == Some(revision)
        })
        .await;
    }

    /// Waits until it is unknown, with these words.
    async fn is_unknown(&self, wanted: &Wanted, name: &str, words: &str) {
        self.until(
            wanted,
            name,
            |sight| matches!(sight, Sight::Unknown(why) if why.to_string().contains(words)),
        )
        .await;
    }

    async fn until(&self, wanted: &Wanted, name: &str, is: impl Fn(&Sight) -> bool) {
        eventually(|| {
            let sight = self.fleet.look(wanted, name);
            match is(&sight) {
                true => Ok(()),
                false => Err(format!("{sight:?}")),
            }
        })
        .await;
    }

    /// How many watches a cluster has. None: it is not in the fleet.
    fn watches(&self, cluster: &Cluster) -> Option<usize> {
        let clusters = self.fleet.clusters();
        let found = clusters.iter().find(|it| it.cluster == *cluster);
        found.map(|it| it.watches)
    }

    fn trouble(&self, cluster: &Cluster) -> Option<String> {
        let clusters = self.fleet.clusters();
        let found = clusters.iter().find(|it| it.cluster == *cluster).unwrap();
        found.trouble.as_ref().map(ToString::to_string)
    }

    /// The objects that have changed since it was asked last, by their names.
    fn changed(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        while let Ok(change) = self.changes.try_recv() {
            match change {
                Change::Object { name, .. } => names.push(name),
                Change::Objects { .. } | Change::Cluster(_) => {}
            }
        }
        names
    }
}

fn attempted(sight: &Sight) -> Option<String> {
    match sight {
        Sight::Seen(object) => {
            let revision = object.read()["status"]["lastAttemptedRevision"].clone();
            revision.as_str().map(str::to_owned)
        }
        Sight::Absent | Sight::Unknown(_) => None,
    }
}

/// Waits for a condition; what was seen last is shown if it never comes.
async fn eventually(mut check: impl FnMut() -> Result<(), String>) {
    let mut last = String::new();
    let waiting = async {
        while let Err(seen) = check() {
            last = seen;
            after(Duration::from_millis(5)).await;
        }
    };
    let waited = timeout(DEADLINE, waiting).await;
    assert!(waited.is_ok(), "seen last: {last}");
}

/// Between two looks; on a clock that is stopped, it goes on by this.
async fn after(time: Duration) {
    let _ = timeout(time, pending::<()>()).await;
}
