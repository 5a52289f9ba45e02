//! Everything that the decision about a Rollout needs: from memory, but for the pods of a StatefulSet and the
//! ControllerRevision that a revert brings back, which are asked for when they count.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod as ApiPod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use kube::api::{GetParams, ListParams};
use kube::core::{ObjectList, Request, Selector};
use serde_json::Value;
use sluice_clusters::{Part, Wanted};
use sluice_core::delivery::rollout::given::{Applier, Autoscaler, Measure, Name, Pod, Sight};
use sluice_core::delivery::rollout::metric::Measured;
use sluice_core::delivery::rollout::workload::Workload;
use sluice_core::delivery::rollout::{Given, appliers, needs_pods, wanted};
use sluice_core::time::clock::Now;
use sluice_crds::flux::FluxKind;
use sluice_crds::gatekeeper::Kind as GatekeeperKind;
use sluice_crds::rollout::RollingState;
use sluice_crds::{Rollout, RolloutStatus};

use super::account::{Account, Unread};
use super::measured;
use crate::act::reconcile::Context;
use crate::cluster::failure;
use crate::cluster::key::{KeyRef, ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::Seen as Cached;
use crate::observe::named::{Names, Place};
use crate::observe::workloads::{Seen, wanted as of_kind};

/// The label that says of which revision a pod is.
const REVISION: &str = "controller-revision-hash";

/// Everything that a Rollout names on the cluster: its workloads, what writes to these, and the autoscalers of
/// its namespace.
pub(super) fn names(context: &Context, key: &ObjectKey, object: &Rollout) -> Names {
    let workloads = wanted(object);
    let seen = workloads.iter().filter_map(|name| {
        let seen = context.workloads.see(key, &place(key, name));
        let Seen::Here { object, .. } = seen else {
            return None;
        };
        Some((name.kind, object))
    });
    let appliers = seen.flat_map(|(kind, object)| {
        let object = object.as_ref();
        appliers(&Workload { kind, object })
    });
    // Anyone who writes a workload writes its labels.
    let exists = |namespace: &str| {
        let namespace = KeyRef {
            namespace: "",
            name: namespace,
        };
        context.world.namespaces.get(namespace).is_some()
    };
    let appliers = appliers.filter(|it| *it.namespace == *key.namespace || exists(&it.namespace));
    let appliers = appliers.map(|it| applied(key, &it));
    let workloads = workloads.iter().map(|name| place(key, name));
    Names {
        objects: workloads.chain(appliers).collect(),
        kinds: [autoscalers(key)].into(),
    }
}

fn place(key: &ObjectKey, name: &Name) -> Place {
    let version = name.kind.api_version();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    Place {
        wanted: of_kind(&key.namespace, group, name.kind.as_str(), Part::Owned),
        name: name.name.clone(),
    }
}

fn applied(key: &ObjectKey, applier: &Applier) -> Place {
    let kind = FluxKind::Consumer(applier.kind);
    let (group, kind) = (kind.group(), kind.as_str());
    Place {
        wanted: Wanted {
            namespace: applier.namespace.clone(),
            ..of_kind(&key.namespace, group, kind, Part::Whole)
        },
        name: applier.name.clone(),
    }
}

fn autoscalers(key: &ObjectKey) -> Wanted {
    let kind = "HorizontalPodAutoscaler";
    of_kind(&key.namespace, "autoscaling", kind, Part::Whole)
}

/// All of it, as it is at `now`.
///
/// # Errors
/// What could not be read, and why.
pub(super) async fn gather(
    context: &Context,
    key: &ObjectKey,
    object: &Arc<Rollout>,
    now: Now,
) -> Result<Given, Unread> {
    let workloads = wanted(object).into_iter().map(|name| {
        let sight = sight(context.workloads.see(key, &place(key, &name)));
        (name, sight)
    });
    let workloads: BTreeMap<Name, Sight> = workloads.collect();
    let appliers = applying(context, key, &workloads);
    let scaled = context.workloads.all(&autoscalers(key)).ok();
    let pods = match target(object, &workloads).filter(|_| needs_pods(object)) {
        Some(target) => {
            let pods = pods(context, key, object, (target, now.at)).await;
            unless_going(object, pods.map(Some), None)?
        }
        None => None,
    };
    let former = former(context, key, object).await;
    let own = Work::own(Kind::Rollout, key.clone());
    let is_unsure = is_unsure(&workloads) || scaled.is_none();
    let unsure_since = context.workloads.unsure(key, is_unsure, now.at);
    Ok(Given {
        former: unless_going(object, former, Sight::Absent)?,
        arrived: context.calls.arrived(&own, now.at),
        measures: measures(context, key, object, now.at),
        others: others(context, key),
        autoscalers: scaled.map(|all| all.iter().filter_map(autoscaler).collect()),
        object: Arc::clone(object),
        workloads,
        pods,
        appliers,
        unsure_since,
        now,
    })
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
        Seen::Unknown(_) => Sight::NotListed,
    }
}

fn is_unsure(workloads: &BTreeMap<Name, Sight>) -> bool {
    workloads.iter().any(|(name, sight)| match sight {
        Sight::NotListed => true,
        Sight::Absent => false,
        Sight::Here { object, is_behind } => {
            let (kind, object) = (name.kind, object.as_ref());
            *is_behind || !Workload { kind, object }.seen().is_observed
        }
    })
}

fn applying(
    context: &Context,
    key: &ObjectKey,
    workloads: &BTreeMap<Name, Sight>,
) -> BTreeMap<Applier, Sight> {
    let here = workloads
        .iter()
        .filter_map(|(name, sight)| Some((name.kind, sight.object()?)));
    let all = here.flat_map(|(kind, object)| appliers(&Workload { kind, object }));
    all.map(|it| {
        let seen = context.workloads.see(key, &applied(key, &it));
        (it, sight(seen))
    })
    .collect()
}

/// The other Rollouts of the namespace.
fn others(context: &Context, key: &ObjectKey) -> BTreeMap<String, String> {
    let all = context
        .world
        .rollouts
        .select(|other, _| other.namespace == key.namespace && other != key);
    all.into_iter()
        .filter_map(|(other, it)| Some((it.uid()?, other.name.to_string())))
        .collect()
}

fn autoscaler(object: &Value) -> Option<Autoscaler> {
    let text = |pointer: &str| object.pointer(pointer)?.as_str().map(str::to_owned);
    Some(Autoscaler {
        name: text("/metadata/name")?,
        kind: text("/spec/scaleTargetRef/kind")?,
        target: text("/spec/scaleTargetRef/name")?,
    })
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

/// The target, if it is here.
fn target<'w>(object: &Rollout, workloads: &'w BTreeMap<Name, Sight>) -> Option<&'w Value> {
    let name = Name::of(&object.spec.target_ref)?;
    workloads.get(&name)?.object()
}

/// The pods that a StatefulSet selects.
async fn pods(
    context: &Context,
    key: &ObjectKey,
    object: &Rollout,
    (target, now): (&Value, Timestamp),
) -> Result<Vec<Pod>, Unread> {
    let name = &object.spec.target_ref.name;
    let what = |error| Unread {
        what: format!("pods of {name}"),
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
    let params = ListParams::default().labels_from(&selector);
    let request = Request::new(format!("/api/v1/namespaces/{}/pods", key.namespace)).list(&params);
    let account = Account::of(context, key, object);
    let listed: ObjectList<ApiPod> = account.ask(request).await.map_err(what)?;
    let soak = target
        .pointer("/spec/minReadySeconds")
        .and_then(Value::as_i64);
    let soak = SignedDuration::from_secs(soak.unwrap_or(0));
    let uid = target.pointer("/metadata/uid").and_then(Value::as_str);
    let owned = listed.items.into_iter().filter(|pod| {
        let mut owners = pod.owner_references().iter();
        owners.any(|it| Some(it.uid.as_str()) == uid)
    });
    Ok(owned.map(|pod| read(&pod, soak, now)).collect())
}

fn read(pod: &ApiPod, soak: SignedDuration, now: Timestamp) -> Pod {
    let conditions = pod.status.iter().filter_map(|it| it.conditions.as_ref());
    let mut conditions = conditions.flatten();
    let is_available = conditions.any(|it| {
        let since = it.last_transition_time.as_ref().map(|it| it.0);
        let is_soaked = since.is_some_and(|since| now.duration_since(since) >= soak);
        it.type_ == "Ready" && it.status == "True" && (soak.is_zero() || is_soaked)
    });
    Pod {
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        revision: pod.labels().get(REVISION).cloned().unwrap_or_default(),
        is_available,
        is_going: pod.metadata.deletion_timestamp.is_some(),
    }
}

/// Whether the run is at an end at which the old version may be brought back.
fn may_revert(status: &RolloutStatus) -> bool {
    let ends = [RollingState::RolloutFailing, RollingState::RolloutDeleting];
    status.rolling_state.is_some_and(|it| ends.contains(&it))
}

/// The ControllerRevision that a revert would bring back, where the run has noted one.
async fn former(context: &Context, key: &ObjectKey, object: &Rollout) -> Result<Sight, Unread> {
    let Some(status) = object.status.as_ref().filter(|it| may_revert(it)) else {
        return Ok(Sight::NotListed);
    };
    let record = status.run.as_ref().and_then(|run| run.workloads.first());
    let Some(name) = record.and_then(|it| it.former.as_deref()) else {
        return Ok(Sight::Absent);
    };
    let namespace = &key.namespace;
    let requests = Request::new(format!(
        "/apis/apps/v1/namespaces/{namespace}/controllerrevisions"
    ));
    let request = requests.get(name, &GetParams::default());
    let account = Account::of(context, key, object);
    match account.ask::<Value>(request).await {
        Ok(object) => Ok(Sight::Here {
            object: Arc::new(object),
            is_behind: false,
        }),
        Err(error) if failure::is_gone(&error) => Ok(Sight::Absent),
        Err(error) => Err(Unread {
            what: format!("ControllerRevision {name}"),
            error,
        }),
    }
}
