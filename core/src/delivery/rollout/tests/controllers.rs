//! The controllers of workloads: one thing at a tick.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Cluster, ModelPod, image_of, replicas_of};
use crate::delivery::rollout::given::Name;
use crate::delivery::rollout::workload::Kind;

impl Cluster {
    /// Ticks until nothing moves any more.
    pub fn settle(&mut self) {
        for _ in 0..400 {
            let before = (self.pods.clone(), self.workloads.clone());
            self.tick();
            if before == (self.pods.clone(), self.workloads.clone()) {
                return;
            }
        }
        panic!("the controllers never rest");
    }

    /// Every controller does one thing, and one pod of each workload becomes available.
    pub fn tick(&mut self) {
        for of in self.workloads.keys().cloned().collect::<Vec<_>>() {
            let mut object = self.workloads[&of].clone();
            let mut pods = self.pods.remove(&of).unwrap_or_default();
            let broken = &self.broken;
            if let Some(pod) = pods
                .iter_mut()
                .find(|pod| !pod.available && !broken.contains(&pod.image))
            {
                pod.available = true;
            }
            for pod in &mut pods {
                pod.available &= !broken.contains(&pod.image);
            }
            let status = self.control(&of, &object, &mut pods);
            self.pods.insert(of.clone(), pods);
            if object["status"] != status {
                object["status"] = status;
                object["metadata"]["resourceVersion"] = self.next().into();
                self.workloads.insert(of, object);
            }
        }
    }

    fn make(&mut self, of: &Name, place: u64, revision: &str) -> ModelPod {
        let template = self.revisions[revision].clone();
        ModelPod {
            name: format!("{}-{place}", of.name),
            uid: format!("p-{}", self.next()),
            revision: revision.to_owned(),
            image: image_of(&json!({"spec": {"template": template}})),
            available: false,
        }
    }

    /// What the controller of a workload does, and the status that it writes.
    fn control(&mut self, of: &Name, object: &Value, pods: &mut Vec<ModelPod>) -> Value {
        let update = revision_of(of, object);
        let template = object["spec"]["template"].clone();
        self.revisions.insert(update.clone(), template);
        let current = object["status"]["currentRevision"].as_str();
        let current = current.unwrap_or(&update).to_owned();
        match of.kind {
            Kind::Deployment => self.deployment(of, object, pods, &update),
            Kind::StatefulSet => self.stateful_set(of, object, pods, (&current, &update)),
            Kind::CloneSet => self.clone_set(of, object, pods, (&current, &update)),
        }
        let replicas = replicas_of(object);
        let count = |counts: &dyn Fn(&ModelPod) -> bool| {
            pods.iter().filter(|pod| counts(pod)).count() as u64
        };
        let is_new = |pod: &ModelPod| pod.revision == update;
        let updated = count(&is_new);
        let all_new = updated == replicas && pods.iter().all(|pod| pod.available);
        let mut status = json!({"observedGeneration": object["metadata"]["generation"]});
        let numbers = [
            ("replicas", pods.len() as u64),
            ("availableReplicas", count(&|pod| pod.available)),
            ("updatedReplicas", updated),
            (
                "updatedAvailableReplicas",
                match of.kind {
                    Kind::CloneSet => count(&|pod| is_new(pod) && pod.available),
                    Kind::Deployment | Kind::StatefulSet => 0,
                },
            ),
        ];
        for (field, number) in numbers.into_iter().filter(|(_, number)| *number > 0) {
            status[field] = number.into();
        }
        if of.kind != Kind::Deployment {
            status["updateRevision"] = update.clone().into();
            status["currentRevision"] = if all_new { update } else { current }.into();
        }
        status
    }

    fn deployment(&mut self, of: &Name, object: &Value, pods: &mut Vec<ModelPod>, update: &str) {
        let (wanted, there) = (replicas_of(object), pods.len() as u64);
        if there < wanted {
            let pod = self.make(of, self.version, update);
            pods.push(pod);
        } else if there > wanted {
            let worst = pods.iter().position(|pod| !pod.available);
            pods.remove(worst.unwrap_or(0));
        }
    }

    fn stateful_set(
        &mut self,
        of: &Name,
        object: &Value,
        pods: &mut Vec<ModelPod>,
        (current, update): (&str, &str),
    ) {
        let partition = object.pointer("/spec/updateStrategy/rollingUpdate/partition");
        let partition = partition.and_then(Value::as_u64).unwrap_or(0);
        let wanted = replicas_of(object);
        let ordinal =
            |pod: &ModelPod| -> u64 { pod.name.rsplit('-').next().unwrap().parse().unwrap() };
        pods.sort_by_key(ordinal);
        let revision = |place: u64| if place < partition { current } else { update };
        for place in 0..wanted {
            match pods.iter().find(|pod| ordinal(pod) == place) {
                None => {
                    let pod = self.make(of, place, revision(place));
                    pods.push(pod);
                    return;
                }
                // One after another.
                Some(pod) if !pod.available => return,
                Some(_) => {}
            }
        }
        if let Some(extra) = pods.iter().rposition(|pod| ordinal(pod) >= wanted) {
            pods.remove(extra);
            return;
        }
        let old = |pod: &ModelPod| ordinal(pod) >= partition && pod.revision != update;
        if let Some(place) = pods.iter().rposition(old) {
            pods[place] = self.make(of, ordinal(&pods[place]), update);
        }
    }

    fn clone_set(
        &mut self,
        of: &Name,
        object: &Value,
        pods: &mut Vec<ModelPod>,
        (current, update): (&str, &str),
    ) {
        let (wanted, there) = (replicas_of(object), pods.len() as u64);
        let strategy = &object["spec"]["updateStrategy"];
        let held = match &strategy["partition"] {
            Value::Number(number) => number.as_u64().unwrap(),
            Value::String(_) => wanted,
            _ => 0,
        };
        let new = pods.iter().filter(|pod| pod.revision == update).count() as u64;
        if there < wanted {
            let revision = if held >= wanted { current } else { update };
            let pod = self.make(of, self.version, revision);
            pods.push(pod);
        } else if there > wanted {
            pods.remove(0);
        } else if strategy["paused"] != json!(true)
            && new < wanted.saturating_sub(held)
            && let Some(place) = replaceable(pods, update)
        {
            pods[place] = self.make(of, self.version, update);
        }
    }
}

fn revision_of(name: &Name, object: &Value) -> String {
    let digest = Sha256::digest(object["spec"]["template"].to_string().as_bytes());
    format!(
        "{}-{:02x}{:02x}{:02x}",
        name.name, digest[0], digest[1], digest[2]
    )
}

/// The pod that a CloneSet replaces next: one that is of no use, or any while all the others are available.
fn replaceable(pods: &[ModelPod], update: &str) -> Option<usize> {
    let old = |pod: &ModelPod| pod.revision != update;
    let useless = pods.iter().position(|pod| old(pod) && !pod.available);
    let all = pods.iter().all(|pod| pod.available);
    useless.or_else(|| pods.iter().position(old).filter(|_| all))
}
