//! An API server with workloads, their controllers and their pods, as far as rollouts see them. What the real
//! controllers were seen to do, these do: pods come one tick after another, a StatefulSet replaces them in their
//! order, and one that is broken stops it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use sluice_crds::rollout::marks;
use sluice_crds::{Rollout, RolloutStatus};

use crate::delivery::rollout::given::{
    Applier, Arrived, Autoscaler, Given, Measure, Name, Pod, Sight, Templates,
};
use crate::delivery::rollout::workload::Kind;
use crate::delivery::rollout::{Act, Write, former, kept, needs_pods, target_of_run, wanted};
use crate::time::clock::Now;

#[path = "controllers.rs"]
mod controllers;

/// A pod.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelPod {
    pub name: String,
    pub uid: String,
    pub revision: String,
    pub image: String,
    pub available: bool,
}

/// The API server refuses a write: the version, or the object, is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict;

/// Everything that the API server has.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub rollout: Option<Rollout>,
    pub workloads: BTreeMap<Name, Value>,
    pub pods: BTreeMap<Name, Vec<ModelPod>>,
    pub revisions: BTreeMap<String, Value>,
    pub autoscalers: Vec<Autoscaler>,
    pub others: BTreeMap<String, String>,
    /// Null: there is none. Those that are not here are not listed yet.
    pub appliers: BTreeMap<Applier, Value>,
    /// Pods of these images never become available.
    pub broken: BTreeSet<String>,
    version: u64,
}

pub fn name(kind: Kind, name: &str) -> Name {
    Name {
        kind,
        name: name.to_owned(),
    }
}

pub fn image_of(object: &Value) -> String {
    let image = object.pointer("/spec/template/spec/containers/0/image");
    image.and_then(Value::as_str).unwrap_or_default().to_owned()
}

pub fn replicas_of(object: &Value) -> u64 {
    object["spec"]["replicas"].as_u64().unwrap_or(1)
}

impl Cluster {
    pub fn new(rollout: Rollout) -> Self {
        Self {
            rollout: Some(rollout),
            workloads: BTreeMap::new(),
            pods: BTreeMap::new(),
            revisions: BTreeMap::new(),
            autoscalers: Vec::new(),
            others: BTreeMap::new(),
            appliers: BTreeMap::new(),
            broken: BTreeSet::new(),
            version: 100,
        }
    }

    fn next(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    /// Adds a workload whose pods are there.
    pub fn add(&mut self, kind: Kind, called: &str, replicas: u64, image: &str, spec: &Value) {
        let version = self.next();
        let mut object = json!({
            "apiVersion": kind.api_version(), "kind": kind.as_str(),
            "metadata": {
                "name": called, "namespace": "shop", "uid": format!("u-{called}-{version}"),
                "resourceVersion": version, "generation": 1,
            },
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": called}},
                "template": {
                    "metadata": {"labels": {"app": called}},
                    "spec": {"containers": [{"name": "c", "image": image}]},
                },
            },
            "status": {},
        });
        json_patch::merge(&mut object["spec"], spec);
        let of = name(kind, called);
        self.workloads.insert(of.clone(), object);
        self.pods.insert(of, Vec::new());
        self.settle();
    }

    /// Carries out a write.
    pub fn write(&mut self, write: &Write) -> Result<(), Conflict> {
        let Some(mut object) = self.workloads.get(&write.name).cloned() else {
            return Err(Conflict);
        };
        for field in ["uid", "resourceVersion"] {
            if write.patch["metadata"][field] != object["metadata"][field] {
                return Err(Conflict);
            }
        }
        let before = object["spec"].clone();
        json_patch::merge(&mut object, &write.patch);
        self.replace(&write.name, object, &before, None);
        Ok(())
    }

    fn replace(&mut self, of: &Name, mut object: Value, before: &Value, by: Option<Value>) {
        object["metadata"]["resourceVersion"] = self.next().into();
        if object["spec"] != *before {
            let generation = object["metadata"]["generation"].as_i64().unwrap() + 1;
            object["metadata"]["generation"] = generation.into();
        }
        if let Some(by) = by {
            object["metadata"]["managedFields"] = json!([by]);
        }
        self.workloads.insert(of.clone(), object);
    }

    /// Somebody else writes.
    pub fn foreign(&mut self, of: &Name, pointer: &str, value: Value, manager: &str) {
        let Some(mut object) = self.workloads.get(of).cloned() else {
            return;
        };
        let before = object["spec"].clone();
        let mut patch = value;
        let mut fields = json!({});
        for part in pointer.rsplit('/').filter(|part| !part.is_empty()) {
            patch = json!({ part: patch });
            fields = json!({ format!("f:{part}"): fields });
        }
        json_patch::merge(&mut object, &patch);
        let by = json!({
            "manager": manager, "operation": "Update", "time": "2026-11-23T12:00:00Z",
            "fieldsV1": fields,
        });
        self.replace(of, object, &before, Some(by));
    }

    pub fn delete_pod(&mut self, pod: &Pod) {
        for pods in self.pods.values_mut() {
            pods.retain(|it| it.uid != pod.uid);
        }
    }

    /// Writes the status of the Rollout onto the version that it was decided from.
    pub fn write_status(&mut self, seen: &Rollout, status: RolloutStatus) -> Result<(), Conflict> {
        let version = self.next();
        let here = self.rollout.as_mut().ok_or(Conflict)?;
        if here.metadata.resource_version != seen.metadata.resource_version {
            return Err(Conflict);
        }
        here.status = Some(status);
        here.metadata.resource_version = Some(version);
        Ok(())
    }

    pub fn finalize(&mut self, on: bool) {
        let version = self.next();
        let Some(here) = self.rollout.as_mut() else {
            return;
        };
        let all = here.metadata.finalizers.get_or_insert_default();
        all.retain(|it| it != marks::FINALIZER);
        if on {
            all.push(marks::FINALIZER.to_owned());
        }
        here.metadata.resource_version = Some(version);
        if all.is_empty() && here.metadata.deletion_timestamp.is_some() {
            self.rollout = None;
        }
    }

    /// Somebody deletes the Rollout.
    pub fn delete(&mut self, now: Timestamp) {
        let version = self.next();
        let Some(here) = self.rollout.as_mut() else {
            return;
        };
        here.metadata.resource_version = Some(version);
        here.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now));
        if here.metadata.finalizers.iter().flatten().count() == 0 {
            self.rollout = None;
        }
    }

    /// Somebody changes the spec, or an annotation.
    pub fn respecify(&mut self, change: impl FnOnce(&mut Rollout)) {
        let version = self.next();
        let Some(here) = self.rollout.as_mut() else {
            return;
        };
        let spec = here.spec.clone();
        change(here);
        here.metadata.resource_version = Some(version);
        if here.spec != spec {
            here.metadata.generation = here.metadata.generation.map(|it| it + 1);
        }
    }

    /// Everything that a look is decided from, if there is a Rollout.
    pub fn given(
        &self,
        arrived: &[Arrived],
        measures: &BTreeMap<String, Measure>,
        now: Now,
    ) -> Option<Given> {
        let object = Arc::new(self.rollout.clone()?);
        let sight = |of: Name| {
            let here = self.workloads.get(&of).map(seen);
            (of, here.unwrap_or(Sight::Absent))
        };
        let templates = former(&object).map(|(of, former)| Templates {
            now: self.workloads[&of]["spec"]["template"].clone(),
            former: former.and_then(|it| self.revision(&of, it)),
        });
        let target = target_of_run(&object);
        let pods = target.and_then(|target| self.pods.get(&target));
        let pods = pods.into_iter().flatten().map(|pod| Pod {
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            revision: pod.revision.clone(),
            ready_since: pod.available.then_some(Timestamp::UNIX_EPOCH),
            is_going: false,
        });
        let appliers = self.appliers.iter().map(|(of, object)| {
            let sight = match object {
                Value::Null => Sight::Absent,
                object => seen(object),
            };
            (of.clone(), sight)
        });
        let appliers = appliers.collect();
        Some(Given {
            workloads: wanted(&object, &appliers).into_iter().map(sight).collect(),
            pods: needs_pods(&object).then(|| pods.collect()),
            templates,
            arrived: arrived.to_vec(),
            measures: measures.clone(),
            others: self.others.clone(),
            autoscalers: Ok(self.autoscalers.clone()),
            appliers,
            unsure_since: Some(now.at),
            now,
            object,
        })
    }

    /// A ControllerRevision of a workload, with what it says to a strategic merge.
    fn revision(&self, of: &Name, called: &str) -> Option<Value> {
        let mut template = self.revisions.get(called)?.clone();
        template["$patch"] = "replace".into();
        Some(json!({
            "metadata": {"ownerReferences": [{"uid": self.workloads[of]["metadata"]["uid"]}]},
            "data": {"spec": {"template": template}},
        }))
    }

    /// Carries out an act, unless it is a call.
    pub fn act(&mut self, act: &Act) -> Result<(), Conflict> {
        match act {
            Act::Finalize(on) => self.finalize(*on),
            Act::Write(write) => self.write(write)?,
            Act::DeletePod(pod) => self.delete_pod(pod),
            Act::Call(_) => {}
        }
        Ok(())
    }

    pub fn replicas(&self, of: &Name) -> u64 {
        self.workloads.get(of).map_or(0, replicas_of)
    }

    pub fn available(&self, of: &Name) -> usize {
        let pods = self.pods.get(of).into_iter().flatten();
        pods.filter(|pod| pod.available).count()
    }
}

/// An object as it is kept in memory.
fn seen(object: &Value) -> Sight {
    Sight::Here {
        object: Arc::new(kept(object.clone())),
        is_behind: false,
    }
}

/// What a write has done, in a line.
pub fn line(write: &Write) -> String {
    let spec = &write.patch["spec"];
    let size = [
        "/replicas",
        "/updateStrategy/rollingUpdate/partition",
        "/updateStrategy/partition",
    ]
    .iter()
    .find_map(|pointer| spec.pointer(pointer));
    let size = size.map(|size| format!(" {size}")).unwrap_or_default();
    format!("{:?} {}{size}", write.what, write.name.name)
}
