//! The workloads of Rollouts on our own cluster, and what else writes to them.
//!
//! What comes in: what each Rollout names. What goes out: what is known of each object, without waiting, and
//! the Rollouts that a change concerns. What no Rollout names is not watched, and of a namespace without
//! Rollouts nothing is known.
//!
//! What we have written is remembered until it is seen here: an object that is older is known to be behind.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use sluice_clusters::{Change, Cluster, Fleet, Kind, Part, Sight, Unknown, Wanted};
use sluice_core::delivery::rollout::AUTOSCALER;
use sluice_core::delivery::rollout::given::{Autoscaler, Name};

use crate::cluster::key::ObjectKey;
use crate::observe::named::{Names, Place, Watched};

/// The workloads of all Rollouts.
pub struct Workloads {
    /// The watches of them.
    pub watched: Watched,
    /// It is held while that is changed.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// What we have written last, for the Rollouts that have written it and still name it.
    written: HashMap<ObjectKey, HashMap<Place, Written>>,
    /// Since when what a Rollout names is not known, or not up to date.
    unsure: HashMap<ObjectKey, Timestamp>,
}

/// An object as we have written it.
struct Written {
    uid: String,
    version: u64,
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
    /// There is none.
    Absent,
    /// Nothing is known of it, and why.
    Unknown(Unknown),
}

/// What is wanted of a kind in a namespace of our own cluster.
pub fn wanted(namespace: &str, group: &str, kind: &str) -> Wanted {
    Wanted {
        from: namespace.to_owned(),
        cluster: Cluster::Own,
        kind: Kind {
            group: group.to_owned(),
            kind: kind.to_owned(),
        },
        namespace: namespace.to_owned(),
        part: Part::Kept,
    }
}

/// The place of a workload.
pub fn place(namespace: &str, name: &Name) -> Place {
    Place {
        wanted: wanted(namespace, name.kind.group(), name.kind.as_str()),
        name: name.name.clone(),
    }
}

/// The autoscalers of a namespace.
pub fn autoscalers(namespace: &str) -> Wanted {
    wanted(namespace, "autoscaling", AUTOSCALER)
}

impl Workloads {
    /// No Rollout names any workload yet.
    pub fn new(fleet: Fleet) -> Self {
        Self {
            watched: Watched::new(fleet),
            known: Mutex::default(),
        }
    }

    /// What is known of an object now.
    pub fn see(&self, rollout: &ObjectKey, place: &Place) -> Seen {
        match self.watched.see(place) {
            Sight::Seen(object) => {
                let object = object.read();
                let is_behind = self.is_behind(rollout, place, &object);
                Seen::Here {
                    object: Arc::new(object),
                    is_behind,
                }
            }
            Sight::Absent => Seen::Absent,
            Sight::Unknown(why) => Seen::Unknown(why),
        }
    }

    /// The autoscalers of a namespace that scale one of these workloads. Where the API server does not have the kind
    /// there are none.
    ///
    /// # Errors
    /// Nothing is known of them.
    pub fn scaling(
        &self,
        namespace: &str,
        is_ours: impl Fn(&Name) -> bool,
    ) -> Result<Vec<Autoscaler>, Unknown> {
        match self.watched.fleet().list(&autoscalers(namespace)) {
            Ok(all) => {
                let all = all.iter().map(|(_, object)| object.read());
                let all = all.filter_map(|it| Autoscaler::read(&it));
                Ok(all
                    .filter(|it| it.scales().is_some_and(|it| is_ours(&it)))
                    .collect())
            }
            Err(Unknown::NoKind(_)) => Ok(Vec::new()),
            Err(why) => Err(why),
        }
    }

    /// The API server has answered a write of ours for a Rollout with this object.
    pub fn wrote(&self, rollout: &ObjectKey, place: &Place, object: &Value) {
        let Some((uid, version)) = version(object) else {
            return;
        };
        let mut known = self.known();
        // Of one that was forgotten meanwhile nothing is remembered.
        let Some(named) = self.watched.objects_of(rollout) else {
            return;
        };
        let written = known.written.entry(rollout.clone()).or_default();
        let uid = uid.to_owned();
        written.insert(place.clone(), Written { uid, version });
        written.retain(|place, _| named.contains(place));
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

    fn is_behind(&self, rollout: &ObjectKey, place: &Place, object: &Value) -> bool {
        let Some((uid, version)) = version(object) else {
            return false;
        };
        let known = self.known();
        let written = known.written.get(rollout).and_then(|it| it.get(place));
        written.is_some_and(|written| written.uid == uid && version < written.version)
    }

    /// Forgets a Rollout.
    pub fn forget(&self, rollout: &ObjectKey) {
        let mut known = self.known();
        self.watched.name(rollout, Names::default());
        known.written.remove(rollout);
        known.unsure.remove(rollout);
    }

    /// No Rollout names anything: another replica leads.
    pub fn clear(&self) {
        let mut known = self.known();
        *known = Known::default();
        self.watched.clear();
    }

    /// The Rollouts that a change concerns: those that name the object, and of an autoscaler those that name what it
    /// scales now. What it has scaled before is known by those that have named the autoscaler itself.
    pub fn concerned(&self, change: &Change) -> BTreeSet<ObjectKey> {
        let mut all = self.watched.concerned(change);
        all.extend(
            self.scaled(change)
                .iter()
                .flat_map(|it| self.watched.of(it)),
        );
        all
    }

    /// The workload that an autoscaler scales, where the change is of one.
    fn scaled(&self, change: &Change) -> Option<Place> {
        let Change::Object {
            kind,
            namespace,
            name,
            cluster: _,
        } = change
        else {
            return None;
        };
        let wanted = autoscalers(namespace);
        if *kind != wanted.kind {
            return None;
        }
        let name = name.clone();
        let Sight::Seen(object) = self.watched.see(&Place { wanted, name }) else {
            return None;
        };
        let autoscaler = Autoscaler::read(&object.read())?;
        Some(place(namespace, &autoscaler.scales()?))
    }

    /// The Rollouts that name one of these workloads of a namespace.
    pub fn of(&self, namespace: &str, workloads: &BTreeSet<Name>) -> BTreeSet<ObjectKey> {
        let places = workloads.iter().map(|name| place(namespace, name));
        places.flat_map(|place| self.watched.of(&place)).collect()
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
    use sluice_core::delivery::rollout;
    use sluice_egress::{Egress, Rules};
    use tower::service_fn;

    use super::*;

    fn at(version: &str) -> Value {
        json!({"metadata": {"uid": "u", "resourceVersion": version}})
    }

    /// An API server with an autoscaler of `web-v1` in the namespace shop, and nothing else.
    fn answer(path: &str, query: &str) -> Option<Value> {
        let version = json!({"groupVersion": "autoscaling/v2", "version": "v2"});
        let kind = json!({
            "name": "horizontalpodautoscalers", "namespaced": true, "kind": AUTOSCALER,
            "verbs": ["list", "watch"],
        });
        let scaled = json!({
            "metadata": {"name": "hpa", "namespace": "shop", "uid": "u", "resourceVersion": "5"},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web-v1"}},
        });
        match path.trim_end_matches('/') {
            "/apis" => Some(
                json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [
                    {"name": "autoscaling", "versions": [version], "preferredVersion": version},
                ]}),
            ),
            "/apis/autoscaling/v2" => Some(json!({
                "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "autoscaling/v2",
                "resources": [kind],
            })),
            _ if query.contains("watch=") => None,
            _ => Some(json!({
                "kind": "List", "apiVersion": "autoscaling/v2",
                "metadata": {"resourceVersion": "7"}, "items": [scaled],
            })),
        }
    }

    fn played() -> Workloads {
        let service = service_fn(async |request: http::Request<Body>| {
            let query = request.uri().query().unwrap_or_default();
            match answer(request.uri().path(), query) {
                Some(answer) => {
                    let body = Body::from(answer.to_string().into_bytes());
                    Ok::<_, std::convert::Infallible>(Response::new(body))
                }
                None => std::future::pending().await,
            }
        });
        let egress = Egress::new(Rules::default()).unwrap();
        let client = Client::new(service, "shop");
        Workloads::new(Fleet::keeping(client, Scope::All, egress, rollout::kept))
    }

    /// Other Rollouts of the namespace are not looked at, however often autoscalers change there.
    #[tokio::test]
    async fn an_autoscaler_concerns_those_with_what_it_scales_or_has_scaled() {
        let workloads = played();
        let key = |name: &str| ObjectKey {
            namespace: "shop".into(),
            name: name.into(),
        };
        let deployment = |name: &str| {
            let name = Name {
                kind: rollout::workload::Kind::Deployment,
                name: name.to_owned(),
            };
            place("shop", &name)
        };
        let scaled = Place {
            wanted: autoscalers("shop"),
            name: "hpa".to_owned(),
        };
        let all = [
            ("scaled", vec![deployment("web-v1"), deployment("web-v2")]),
            ("other", vec![deployment("api-v1")]),
            ("before", vec![deployment("db"), scaled.clone()]),
        ];
        for (name, objects) in all {
            let names = Names {
                objects: objects.into_iter().collect(),
                kinds: BTreeSet::from([autoscalers("shop")]),
            };
            workloads.watched.name(&key(name), names);
        }
        workloads.watched.watch(Timestamp::UNIX_EPOCH);
        while !matches!(workloads.see(&key("before"), &scaled), Seen::Here { .. }) {
            tokio::task::yield_now().await;
        }
        let change = |name: &str| Change::Object {
            cluster: Cluster::Own,
            kind: autoscalers("shop").kind,
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        };
        let told = |change: &Change| {
            let keys = workloads.concerned(change).into_iter();
            keys.map(|key| key.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(told(&change("hpa")), ["before", "scaled"]);
        assert!(told(&change("gone")).is_empty());
        let scaling = |workload: &str| workloads.scaling("shop", |it| it.name == workload).unwrap();
        assert_eq!(scaling("web-v1").len(), 1);
        assert!(scaling("web-v2").is_empty());
        let name = Name {
            kind: rollout::workload::Kind::Deployment,
            name: "web-v2".to_owned(),
        };
        let sharing = workloads.of("shop", &BTreeSet::from([name]));
        assert_eq!(sharing, BTreeSet::from([key("scaled")]));
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
        let deployment = |name: &str| Place {
            wanted: wanted("shop", "apps", "Deployment"),
            name: name.to_owned(),
        };
        let (old, new) = (deployment("web-v1"), deployment("web-v2"));
        let named = |place: &Place| Names {
            objects: [place.clone()].into(),
            ..Names::default()
        };
        // Nobody names anything: nothing is remembered.
        workloads.wrote(&web, &old, &at("8"));
        assert!(!workloads.is_behind(&web, &old, &at("7")));

        workloads.watched.name(&web, named(&old));
        workloads.wrote(&web, &old, &at("8"));
        assert!(workloads.is_behind(&web, &old, &at("7")));
        assert!(!workloads.is_behind(&web, &old, &at("8")));
        assert!(!workloads.is_behind(&web, &old, &at("10")));
        // It was made again: of the one before nothing is remembered.
        let again = json!({"metadata": {"uid": "v", "resourceVersion": "9"}});
        workloads.wrote(&web, &old, &again);
        assert!(!workloads.is_behind(&web, &old, &at("7")));
        // So it is with what is no longer named.
        workloads.watched.name(&web, named(&new));
        workloads.wrote(&web, &new, &at("12"));
        assert!(workloads.is_behind(&web, &new, &at("11")));
        assert_eq!(workloads.known().written[&web].len(), 1);
        workloads.forget(&web);
        assert!(!workloads.is_behind(&web, &new, &at("11")));
    }
}
