//! The workloads of Rollouts on our own cluster, and what else writes to them.
//!
//! What comes in: what each Rollout names. What goes out: what is known of each object, without waiting, and
//! the Rollouts that a change concerns. What no Rollout names is not watched, and of a namespace without
//! Rollouts nothing is known.
//!
//! What we have written is remembered until it is seen here: an object that is older is known to be behind.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use sluice_clusters::{Change, Cluster, Fleet, Kind, Part, Sight, Unknown, Wanted};
use tokio::sync::Notify;

use crate::cluster::key::ObjectKey;
use crate::observe::named::{Named, Names, Place};

/// The workloads of all Rollouts.
pub struct Workloads {
    fleet: Fleet,
    known: Mutex<Known>,
    renewed: Notify,
}

#[derive(Default)]
struct Known {
    named: Named,
    /// The versions that we have written last, by the UIDs of the objects, for the Rollouts that have written
    /// them.
    written: HashMap<ObjectKey, HashMap<String, u64>>,
    /// Since when what a Rollout names is not known, or not up to date.
    unsure: HashMap<ObjectKey, Timestamp>,
}

/// What is known of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// Here it is.
    Here {
        /// The object, as the API server has it.
        object: Arc<Value>,
        /// Whether it is older than what we have written.
        is_behind: bool,
    },
    /// There is none, or the API server does not have the kind.
    Absent,
    /// Nothing is known of it, and why.
    Unknown(Unknown),
}

/// What is wanted of a kind in a namespace of our own cluster. `part`: how much of it is looked at.
pub fn wanted(namespace: &str, group: &str, kind: &str, part: Part) -> Wanted {
    Wanted {
        from: namespace.to_owned(),
        cluster: Cluster::Own,
        kind: Kind {
            group: group.to_owned(),
            kind: kind.to_owned(),
        },
        namespace: namespace.to_owned(),
        part,
    }
}

impl Workloads {
    /// No Rollout names any workload yet.
    pub fn new(fleet: Fleet) -> Self {
        Self {
            fleet,
            known: Mutex::default(),
            renewed: Notify::new(),
        }
    }

    /// All that is watched.
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// What is known of an object now.
    pub fn see(&self, rollout: &ObjectKey, place: &Place) -> Seen {
        match self.fleet.look(&place.wanted, &place.name) {
            Sight::Seen(object) => {
                let object = object.read();
                let is_behind = self.is_behind(rollout, &object);
                Seen::Here {
                    object: Arc::new(object),
                    is_behind,
                }
            }
            Sight::Absent | Sight::Unknown(Unknown::NoKind(_)) => Seen::Absent,
            Sight::Unknown(why) => Seen::Unknown(why),
        }
    }

    /// All objects of a kind in a namespace. Where the API server does not have the kind there are none.
    ///
    /// # Errors
    /// Nothing is known of them.
    pub fn all(&self, wanted: &Wanted) -> Result<Vec<Value>, Unknown> {
        match self.fleet.list(wanted) {
            Ok(all) => Ok(all.iter().map(|(_, object)| object.read()).collect()),
            Err(Unknown::NoKind(_)) => Ok(Vec::new()),
            Err(why) => Err(why),
        }
    }

    /// The API server has answered a write of ours for a Rollout with this object.
    pub fn wrote(&self, rollout: &ObjectKey, object: &Value) {
        let Some((uid, version)) = version(object) else {
            return;
        };
        let mut known = self.known();
        // Of one that was forgotten meanwhile nothing is remembered.
        if known.named.names(rollout).is_some() {
            let written = known.written.entry(rollout.clone()).or_default();
            written.insert(uid.to_owned(), version);
        }
    }

    /// Notes whether what a Rollout names is not known or not up to date, and says since when that is so.
    pub fn unsure(&self, rollout: &ObjectKey, is: bool, now: Timestamp) -> Option<Timestamp> {
        let mut known = self.known();
        match is {
            true => Some(*known.unsure.entry(rollout.clone()).or_insert(now)),
            false => {
                known.unsure.remove(rollout);
                None
            }
        }
    }

    fn is_behind(&self, rollout: &ObjectKey, object: &Value) -> bool {
        let Some((uid, version)) = version(object) else {
            return false;
        };
        let known = self.known();
        let written = known.written.get(rollout).and_then(|it| it.get(uid));
        written.is_some_and(|written| version < *written)
    }

    /// From now on a Rollout names these, and no others.
    pub fn name(&self, rollout: &ObjectKey, names: Names) {
        if self.known().named.name(rollout, names) {
            self.renewed.notify_one();
        }
    }

    /// Forgets a Rollout.
    pub fn forget(&self, rollout: &ObjectKey) {
        self.name(rollout, Names::default());
        let mut known = self.known();
        known.written.remove(rollout);
        known.unsure.remove(rollout);
    }

    /// No Rollout names anything: another replica leads.
    pub fn clear(&self) {
        *self.known() = Known::default();
        self.renewed.notify_one();
    }

    /// The Rollouts that a change concerns.
    pub fn concerned(&self, change: &Change) -> impl IntoIterator<Item = ObjectKey> {
        self.known().named.concerned(change)
    }

    /// All Rollouts that name anything.
    pub fn of_all(&self) -> Vec<ObjectKey> {
        self.known().named.all()
    }

    /// Waits until Rollouts name others than before.
    pub async fn renewed(&self) {
        self.renewed.notified().await;
    }

    /// Watches what is named, and ends what has not been named for a minute. Returns when to call again.
    pub fn watch(&self, now: Timestamp) -> Option<Timestamp> {
        self.fleet.want(self.known().named.wanted(), now)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }
}

/// The UID of an object, and its version, where that is a number.
fn version(object: &Value) -> Option<(&str, u64)> {
    let metadata = object.get("metadata")?;
    let version = metadata.get("resourceVersion")?.as_str()?;
    Some((metadata.get("uid")?.as_str()?, version.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use http::Response;
    use kube::Client;
    use kube::client::Body;
    use serde_json::json;
    use sluice_clusters::Scope;
    use sluice_egress::{Egress, Rules};
    use tower::service_fn;

    use super::*;

    fn at(version: &str) -> Value {
        json!({"metadata": {"uid": "u", "resourceVersion": version}})
    }

    #[tokio::test]
    async fn an_object_that_is_older_than_what_was_written_is_behind() {
        let refuse = service_fn(async |_: http::Request<Body>| {
            Ok::<_, std::convert::Infallible>(Response::new(Body::empty()))
        });
        let egress = Egress::new(Rules::default()).unwrap();
        let fleet = Fleet::new(Client::new(refuse, "shop"), Scope::All, egress);
        let workloads = Workloads::new(fleet);
        let web = ObjectKey {
            namespace: "shop".into(),
            name: "web".into(),
        };
        // Nobody names anything: nothing is remembered.
        workloads.wrote(&web, &at("8"));
        assert!(!workloads.is_behind(&web, &at("7")));

        let kinds = BTreeSet::from([wanted("shop", "apps", "Deployment", Part::Owned)]);
        let names = Names {
            kinds,
            ..Names::default()
        };
        workloads.name(&web, names);
        workloads.wrote(&web, &at("8"));
        assert!(workloads.is_behind(&web, &at("7")));
        assert!(!workloads.is_behind(&web, &at("8")));
        assert!(!workloads.is_behind(&web, &at("10")));
        workloads.forget(&web);
        assert!(!workloads.is_behind(&web, &at("7")));
    }
}
