//! Everything that the decision about a Rollout needs: from memory, but for the pods of a StatefulSet and the
//! ControllerRevision that a revert brings back, which are asked for when they count.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod as ApiPod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use kube::api::{GetParams, ListParams};
use kube::core::{ObjectList, Request, Selector};
use serde_json::Value;
use sluice_clusters::{Unknown, Wanted};
use sluice_core::delivery::rollout::claim::Claim;
use sluice_core::delivery::rollout::given::{
    Applier, Appliers, Autoscaler, Measure, Name, Pod, Sight, Templates,
};
use sluice_core::delivery::rollout::metric::Measured;
use sluice_core::delivery::rollout::workload::Workload;
use sluice_core::delivery::rollout::{
    Given, appliers, apps, former, is_unsure, needs_pods, target_of_run, wanted,
};
use sluice_core::time::clock::Now;
use sluice_crds::Rollout;
use sluice_crds::flux::FluxKind;
use sluice_crds::gatekeeper::Kind as GatekeeperKind;

use super::account::{Account, Unread};
use super::{measured, requests};
use crate::act::reconcile::Context;
use crate::cluster::failure;
use crate::cluster::key::{KeyRef, ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Cache, Seen as Cached};
use crate::observe::named::{Names, Place};
use crate::observe::workloads::{Seen, autoscalers, place, wanted as of_kind};

/// How many pods are read at once: only a few words of each are kept.
const PAGE: u32 = 200;

/// The label that says of which revision a pod is.
const REVISION: &str = "controller-revision-hash";

/// What memory has of everything that a Rollout names.
pub(super) struct InMemory {
    workloads: BTreeMap<Name, Sight>,
    /// The Kustomizations and HelmReleases that it names, and that the labels of the workloads name.
    appliers: Appliers,
    /// The autoscalers that scale one of the workloads.
    autoscalers: Result<Vec<Autoscaler>, Unknown>,
}

impl InMemory {
    /// All of it.
    pub(super) fn read(context: &Context, key: &ObjectKey, object: &Rollout) -> Self {
        let is_going = object.metadata.deletion_timestamp.is_some();
        let apps = apps(object).into_iter().map(|app| {
            let sight = sight(context.workloads.see(key, &applied(key, &app)));
            (app, sight)
        });
        let mut known: Appliers = apps.collect();
        let workloads = wanted(object, &known).into_iter().map(|name| {
            let seen = context.workloads.see(key, &place(&key.namespace, &name));
            let sight = match seen {
                // A kind is removed with all that is of it: nothing is left in order there.
                Seen::Unknown(Unknown::NoKind(_)) if is_going => Sight::Absent,
                seen => sight(seen),
            };
            (name, sight)
        });
        let workloads: BTreeMap<Name, Sight> = workloads.collect();
        let here = workloads
            .iter()
            .filter_map(|(name, sight)| Some((name.kind, sight.object()?)));
        for applier in here.flat_map(|(kind, object)| appliers(&Workload { kind, object })) {
            let seen = context.workloads.see(key, &applied(key, &applier));
            let sight = match seen {
                // What is not served, or in no namespace, applies nothing, whatever the labels say.
                Seen::Unknown(Unknown::NoKind(_)) => Sight::Absent,
                _ if !may_exist(context, key, &applier) => Sight::Absent,
                seen => sight(seen),
            };
            known.entry(applier).or_insert(sight);
        }
        let is_ours = |name: &Name| workloads.contains_key(name);
        let autoscalers = context.workloads.scaling(&key.namespace, is_ours);
        Self {
            workloads,
            appliers: known,
            autoscalers,
        }
    }

    /// Everything that the Rollout names on the cluster: its applications, its workloads, what writes to these, and
    /// the autoscalers of its namespace.
    pub(super) fn names(&self, context: &Context, key: &ObjectKey) -> Names {
        // Anyone who writes a workload writes its labels.
        let appliers = self.appliers.keys();
        let appliers = appliers.filter(|it| may_exist(context, key, it));
        let appliers = appliers.map(|it| applied(key, it));
        let places = self.workloads.keys();
        let places = places.map(|name| place(&key.namespace, name));
        Names {
            objects: places.chain(appliers).chain(self.scaling(key)).collect(),
            kinds: [autoscalers(&key.namespace)].into(),
        }
    }

    /// The autoscalers of the workloads: when they scale them no longer, that concerns the Rollout.
    fn scaling(&self, key: &ObjectKey) -> impl Iterator<Item = Place> {
        self.autoscalers.iter().flatten().map(|it| Place {
            wanted: autoscalers(&key.namespace),
            name: it.name.clone(),
        })
    }
}

/// Whether the namespace of a Kustomization or HelmRelease is there. Nothing is watched in one that is not.
fn may_exist(context: &Context, key: &ObjectKey, applier: &Applier) -> bool {
    let namespace = KeyRef {
        namespace: "",
        name: &applier.namespace,
    };
    *applier.namespace == *key.namespace || context.world.namespaces.get(namespace).is_some()
}

/// All of its kind are watched together, in all namespaces: an open watch costs the API server and us more than what
/// is kept of an object here.
fn applied(key: &ObjectKey, applier: &Applier) -> Place {
    let kind = FluxKind::Consumer(applier.kind);
    let (group, kind) = (kind.group(), kind.as_str());
    Place {
        wanted: Wanted {
            namespace: applier.namespace.clone(),
            ..of_kind(&key.namespace, group, kind)
        },
        name: applier.name.clone(),
    }
}

/// All of it, as it is at `now`.
///
/// # Errors
/// What could not be read, and why.
pub(super) async fn gather(
    context: &Context,
    key: &ObjectKey,
    object: &Arc<Rollout>,
    memory: InMemory,
    now: Now,
) -> Result<Given, Unread> {
    let InMemory {
        workloads,
        appliers,
        autoscalers,
    } = memory;
    let pods = match target(object, &workloads).filter(|_| needs_pods(object)) {
        Some(target) => {
            let pods = pods(context, key, object, target).await;
            unless_going(object, pods.map(Some), None)?
        }
        None => None,
    };
    let is_here = |name: &Name| workloads.get(name).is_some_and(|it| it.object().is_some());
    let templates = match former(object).filter(|(name, _)| is_here(name)) {
        Some(former) => {
            let templates = templates(context, key, object, former).await;
            unless_going(object, templates, Some(Templates::default()))?
        }
        None => None,
    };
    let own = Work::own(Kind::Rollout, key.clone());
    let mut given = Given {
        arrived: context.calls.arrived(&own, now.at),
        measures: measures(context, key, object, now.at),
        others: others(&context.world.rollouts, key, &workloads),
        autoscalers: autoscalers.map_err(|why| why.to_string()),
        object: Arc::clone(object),
        workloads,
        pods,
        templates,
        appliers,
        unsure_since: None,
        now,
    };
    given.unsure_since = context.workloads.unsure(key, is_unsure(&given), now.at);
    Ok(given)
}

/// What was read. A Rollout that is deleted goes also where its account may not read any more: in a namespace that is
/// deleted, the rights may go first.
fn unless_going<T>(object: &Rollout, read: Result<T, Unread>, without: T) -> Result<T, Unread> {
    let is_going = object.metadata.deletion_timestamp.is_some();
    match read {
        Err(Unread { error, .. }) if is_going && failure::is_refusal(&error) => Ok(without),
        read => read,
    }
}

fn sight(seen: Seen) -> Sight {
    match seen {
        Seen::Here { object, is_behind } => Sight::Here { object, is_behind },
        Seen::Absent => Sight::Absent,
        Seen::Unknown(why) => Sight::Unknown(why.to_string().into()),
    }
}

/// The other Rollouts that have claimed one of these workloads. A claim has the name of its Rollout, by which that is
/// found: a namespace may have very many.
fn others(
    rollouts: &Cache<Rollout>,
    key: &ObjectKey,
    workloads: &BTreeMap<Name, Sight>,
) -> BTreeMap<String, String> {
    let claims = workloads.values().filter_map(|it| Claim::of(it.object()?));
    let others = claims.filter_map(|claim| {
        let other = key.naming(None, &claim.name);
        let seen = rollouts.get(other.borrowed()).filter(|_| other != *key)?;
        let is_its = seen.object()?.metadata.uid.as_ref() == Some(&claim.uid);
        is_its.then_some((claim.uid, claim.name))
    });
    others.collect()
}

/// What the gatekeepers of its metrics have measured.
fn measures(
    context: &Context,
    key: &ObjectKey,
    object: &Rollout,
    at: Timestamp,
) -> BTreeMap<String, Measure> {
    let names = measured(&object.spec.rollout_plan).into_iter();
    let measures = names.filter_map(|name| {
        let gatekeeper = context
            .world
            .gatekeepers
            .get(key.naming(None, name).borrowed())?;
        let Cached::Object(gatekeeper) = gatekeeper else {
            return None;
        };
        let Ok(GatekeeperKind::Metric(metric)) = gatekeeper.spec.kind() else {
            return None;
        };
        let evidence = context.world.evidence.of(&gatekeeper);
        let measured = evidence.measured_at(at);
        let measured = measured.map(|(value, at)| Measured { value, at });
        let measure = Measure {
            range: metric.range,
            measured,
        };
        Some((name.to_owned(), measure))
    });
    measures.collect()
}

/// The target of the run, if it is here.
fn target<'w>(object: &Rollout, workloads: &'w BTreeMap<Name, Sight>) -> Option<&'w Value> {
    workloads.get(&target_of_run(object)?)?.object()
}

/// The pods that a StatefulSet selects, and has made.
async fn pods(
    context: &Context,
    key: &ObjectKey,
    object: &Rollout,
    target: &Value,
) -> Result<Vec<Pod>, Unread> {
    let name = target.pointer("/metadata/name").and_then(Value::as_str);
    let what = |error| Unread {
        what: format!("pods of {}", name.unwrap_or_default()),
        error,
    };
    let selector = target
        .pointer("/spec/selector")
        .cloned()
        .unwrap_or_default();
    let selector = serde_json::from_value::<LabelSelector>(selector);
    let selector = selector.map_err(|error| what(kube::Error::SerdeError(error)))?;
    let selector = Selector::try_from(selector);
    let selector = selector.map_err(|error| what(kube::Error::Service(Box::new(error))))?;
    let requests = Request::new(format!("/api/v1/namespaces/{}/pods", key.namespace));
    let account = Account::of(context, key, object);
    let uid = target.pointer("/metadata/uid").and_then(Value::as_str);
    let mut params = ListParams::default().labels_from(&selector).limit(PAGE);
    let mut pods = Vec::new();
    loop {
        let page: ObjectList<ApiPod> = account.ask(requests.list(&params)).await.map_err(what)?;
        pods.extend(page.items.iter().filter(|it| is_of(it, uid)).map(read));
        match page.metadata.continue_.filter(|it| !it.is_empty()) {
            Some(next) => params.continue_token = Some(next),
            None => return Ok(pods),
        }
    }
}

/// Whether the object of this UID has made the pod. Other owners are whatever somebody has written.
fn is_of(pod: &ApiPod, uid: Option<&str>) -> bool {
    let mut owners = pod.owner_references().iter();
    owners.any(|it| it.controller == Some(true) && Some(it.uid.as_str()) == uid)
}

fn read(pod: &ApiPod) -> Pod {
    let conditions = pod.status.iter().filter_map(|it| it.conditions.as_ref());
    let mut conditions = conditions.flatten();
    let ready = conditions.find(|it| it.type_ == "Ready" && it.status == "True");
    Pod {
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        revision: pod.labels().get(REVISION).cloned().unwrap_or_default(),
        ready_since: ready.and_then(|it| Some(it.last_transition_time.as_ref()?.0)),
        is_going: pod.metadata.deletion_timestamp.is_some(),
    }
}

/// The templates of a workload that goes back in place: its own, and the ControllerRevision with the old one. None:
/// the workload has just gone.
async fn templates(
    context: &Context,
    key: &ObjectKey,
    object: &Rollout,
    (name, former): (Name, Option<&str>),
) -> Result<Option<Templates>, Unread> {
    let unread = |what: String| move |error| Unread { what, error };
    let request = requests(key, &name).get(&name.name, &GetParams::default());
    let read = async {
        let request = request.map_err(kube::Error::BuildRequest)?;
        context.client.request::<Value>(request).await
    };
    let mut whole = match read.await {
        Err(error) if failure::is_gone(&error) => return Ok(None),
        whole => whole.map_err(unread(name.to_string()))?,
    };
    let now = whole["spec"]["template"].take();
    // It is from an annotation that anybody may have written.
    let Some(former) = former.filter(|it| is_name(it)) else {
        return Ok(Some(Templates { now, former: None }));
    };
    let namespace = &key.namespace;
    let requests = Request::new(format!(
        "/apis/apps/v1/namespaces/{namespace}/controllerrevisions"
    ));
    let request = requests.get(former, &GetParams::default());
    let account = Account::of(context, key, object);
    let former = match account.ask::<Value>(request).await {
        Ok(object) => Some(object),
        Err(error) if failure::is_gone(&error) => None,
        Err(error) => return Err(unread(format!("ControllerRevision {former}"))(error)),
    };
    Ok(Some(Templates { now, former }))
}

/// Whether this may be the name of an object, and leads nowhere else in a path.
fn is_name(text: &str) -> bool {
    let is_of_name = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || b"-.".contains(&it);
    !text.contains("..") && text.bytes().all(is_of_name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sluice_core::delivery::rollout::workload::Kind::Deployment;
    use sluice_crds::rollout::marks;

    use super::*;
    use crate::act::reconcile::gated_source::tests::{api, context, noon, world};

    /// Half a look: a workload of an application, and another one beside it, of which one is behind.
    async fn unsure_since(behind: &str) -> Option<Timestamp> {
        let context = context(api("5", &Arc::default()), world(), noon());
        let object: Rollout = serde_json::from_value(json!({
            "metadata": {"namespace": "shop", "name": "web"},
            "spec": {
                "targetRef": {"kind": "Kustomization", "name": "shop"}, "component": "web",
                "rolloutPlan": {},
            },
        }))
        .unwrap();
        let here = |object: Value, is_behind| Sight::Here {
            object: Arc::new(object),
            is_behind,
        };
        let workload = |name: &str| {
            let labels = json!({"app.kubernetes.io/component": name});
            let object = json!({
                "metadata": {"labels": labels, "generation": 1}, "status": {"observedGeneration": 1},
            });
            let called = Name {
                kind: Deployment,
                name: name.to_owned(),
            };
            (called, here(object, name == behind))
        };
        let names = ["web", "worker"];
        let entries = names.map(|it| json!({"id": format!("shop_{it}_apps_Deployment")}));
        let app = json!({"status": {"inventory": {"entries": entries}}});
        let shop = apps(&object)
            .into_iter()
            .map(|it| (it, here(app.clone(), false)));
        let memory = InMemory {
            workloads: names.map(workload).into(),
            appliers: shop.collect(),
            autoscalers: Ok(Vec::new()),
        };
        let (key, now) = (ObjectKey::of(&object), Now::given(context.clock.now()));
        let given = gather(&context, &key, &Arc::new(object), memory, now).await;
        given.map_err(|it| it.error).unwrap().unsure_since
    }

    #[tokio::test]
    async fn since_when_it_waits_is_remembered_of_what_the_run_needs() {
        assert_eq!(unsure_since("web").await, Some(noon().now()));
        assert_eq!(unsure_since("worker").await, None);
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        assert!(is_name("db-6d8f9c.2"));
        for other in ["../secrets/a", "a/b", "a?b", "..", "A", "a b", "a%2fb"] {
            assert!(!is_name(other), "{other}");
        }
    }

    /// Only claims are followed, whatever else there is in the namespace.
    #[test]
    fn others_are_those_that_have_claimed_a_workload() {
        let key = |namespace: &str, name: &str| ObjectKey {
            namespace: namespace.into(),
            name: name.into(),
        };
        let rollouts = Cache::default();
        for (namespace, name) in [
            ("shop", "own"),
            ("shop", "first"),
            ("shop", "idle"),
            ("else", "far"),
        ] {
            let object: Rollout = serde_json::from_value(json!({
                "metadata": {"namespace": namespace, "name": name, "uid": format!("u-{name}")},
                "spec": {"targetRef": {"kind": "Deployment", "name": "web"}, "rolloutPlan": {}},
            }))
            .unwrap();
            rollouts.hold(
                &key(namespace, name),
                Some(Cached::Object(Arc::new(object))),
            );
        }
        let claimed = |name: &str, uid: &str| {
            let claim = json!({
                "name": name, "uid": uid, "workload": "shop/web", "run": 1, "identity": "i", "of": 1, "was": 1, "start": 1, "wrote": {},
            });
            let object = json!({"metadata": {"namespace": "shop", "name": "web", "annotations": {marks::CLAIM: claim.to_string()}}});
            let kind = sluice_core::delivery::rollout::workload::Kind::Deployment;
            let called = Name {
                kind,
                name: format!("{name} {uid}"),
            };
            (
                called,
                Sight::Here {
                    object: Arc::new(object),
                    is_behind: false,
                },
            )
        };
        let workloads = BTreeMap::from([
            claimed("own", "u-own"),
            claimed("first", "u-first"),
            claimed("idle", "u-before"),
            claimed("far", "u-far"),
            claimed("gone", "u-gone"),
        ]);
        let found = others(&rollouts, &key("shop", "own"), &workloads);
        assert_eq!(
            found,
            BTreeMap::from([("u-first".to_owned(), "first".to_owned())])
        );
    }

    #[test]
    fn a_pod_is_of_those_who_have_made_it() {
        let owner = |uid: &str, controller: bool| json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": uid, "controller": controller});
        let pod = |owners: Value| -> ApiPod {
            serde_json::from_value(json!({"metadata": {"name": "p", "ownerReferences": owners}}))
                .unwrap()
        };
        assert!(is_of(&pod(json!([owner("u-1", true)])), Some("u-1")));
        assert!(!is_of(&pod(json!([owner("u-2", true)])), Some("u-1")));
        // The pod of another one, onto which somebody has written ours.
        let both = json!([owner("u-2", true), owner("u-1", false)]);
        assert!(!is_of(&pod(both), Some("u-1")));
        assert!(!is_of(&pod(json!([])), None));
    }
}
