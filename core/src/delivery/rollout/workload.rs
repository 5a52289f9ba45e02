//! Workloads: what is read of each kind, and how a size is written.
//!
//! What comes in: an object as the API server has it. What goes out: its numbers, what stands in the way of a
//! rollout, and patches. Counts that are zero are absent from the status of all these kinds.
//!
//! Another kind is a variant of [`Kind`]: the compiler names the rest.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::batch::{ARMED, Seen};

#[cfg(test)]
mod tests;

/// A kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Has one version: two of them are scaled against each other.
    Deployment,
    /// Has both versions: pods whose number is below the partition are old.
    StatefulSet,
    /// Of OpenKruise. Has both versions: so many pods are old as the partition says.
    CloneSet,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 3] = [Kind::Deployment, Kind::StatefulSet, Kind::CloneSet];

    /// The word, as objects have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Deployment => "Deployment",
            Kind::StatefulSet => "StatefulSet",
            Kind::CloneSet => "CloneSet",
        }
    }

    /// Its group and version, as objects have them.
    pub fn api_version(self) -> &'static str {
        match self {
            Kind::Deployment | Kind::StatefulSet => "apps/v1",
            Kind::CloneSet => "apps.kruise.io/v1alpha1",
        }
    }

    /// Its group, as inventories have it.
    pub fn group(self) -> &'static str {
        match self {
            Kind::Deployment | Kind::StatefulSet => "apps",
            Kind::CloneSet => "apps.kruise.io",
        }
    }

    /// The kind, as paths and rights name it.
    pub fn plural(self) -> &'static str {
        match self {
            Kind::Deployment => "deployments",
            Kind::StatefulSet => "statefulsets",
            Kind::CloneSet => "clonesets",
        }
    }

    /// The fields that a rollout writes, as pointers: nobody else may.
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Kind::Deployment => &["/spec/replicas", "/spec/paused"],
            Kind::StatefulSet => &["/spec/updateStrategy/rollingUpdate/partition"],
            Kind::CloneSet => &[
                "/spec/updateStrategy/partition",
                "/spec/updateStrategy/paused",
            ],
        }
    }

    /// Where its partition is. None: it has none.
    fn partition(self) -> Option<&'static str> {
        match self {
            Kind::Deployment => None,
            Kind::StatefulSet => Some("/spec/updateStrategy/rollingUpdate/partition"),
            Kind::CloneSet => Some("/spec/updateStrategy/partition"),
        }
    }
}

/// A workload as it is.
#[derive(Clone, Copy, Debug)]
pub struct Workload<'a> {
    /// Its kind.
    pub kind: Kind,
    /// The object.
    pub object: &'a Value,
}

impl Workload<'_> {
    fn count(&self, pointer: &str) -> Option<u32> {
        let count = self.object.pointer(pointer)?.as_u64()?;
        u32::try_from(count).ok()
    }

    /// Its numbers. A spec without `replicas` wants one.
    pub fn seen(&self) -> Seen {
        let generation = |pointer| self.object.pointer(pointer).and_then(Value::as_i64);
        let observed = generation("/status/observedGeneration");
        Seen {
            wanted: self.count("/spec/replicas").unwrap_or(1),
            is_observed: observed.is_some() && observed >= generation("/metadata/generation"),
            replicas: self.count("/status/replicas").unwrap_or(0),
            available: self.count("/status/availableReplicas").unwrap_or(0),
        }
    }

    /// How many of its pods are of the new version.
    pub fn updated(&self) -> u32 {
        self.count("/status/updatedReplicas").unwrap_or(0)
    }

    /// How many of those are available, where the object says it. A StatefulSet counts the available pods of
    /// all its versions together: there the pods themselves have to be counted, by the label
    /// `controller-revision-hash`.
    pub fn updated_available(&self) -> Option<u32> {
        match self.kind {
            // It has no other version, once its counts are about its spec.
            Kind::Deployment => Some(self.seen().available),
            Kind::StatefulSet => None,
            Kind::CloneSet => Some(self.count("/status/updatedAvailableReplicas").unwrap_or(0)),
        }
    }

    /// The pods that stay old. None: the kind has no partition, or it cannot be read.
    pub fn partition(&self) -> Option<u32> {
        let written = self.object.pointer(self.kind.partition()?);
        match written {
            None | Some(Value::Null) => Some(0),
            Some(Value::Number(_)) => self.count(self.kind.partition()?),
            Some(Value::String(text)) => {
                let percent: u32 = text.strip_suffix('%')?.parse().ok()?;
                Some(of_percent(percent, self.seen().wanted))
            }
            Some(Value::Bool(_) | Value::Array(_) | Value::Object(_)) => None,
        }
    }

    /// Whether a new template waits. A CloneSet waits also while it is paused.
    pub fn is_armed(&self) -> bool {
        let is_paused = match self.kind {
            Kind::Deployment => return false,
            Kind::StatefulSet => false,
            Kind::CloneSet => {
                let paused = self.object.pointer("/spec/updateStrategy/paused");
                paused.and_then(Value::as_bool) == Some(true)
            }
        };
        is_paused || self.partition() == Some(ARMED)
    }

    /// Whether its pods are replaced only when somebody deletes them: then no partition rolls anything.
    pub fn is_on_delete(&self) -> bool {
        match self.kind {
            Kind::Deployment | Kind::CloneSet => false,
            Kind::StatefulSet => {
                self.object.pointer("/spec/updateStrategy/type") == Some(&json!("OnDelete"))
            }
        }
    }

    /// Whether it makes no pods of a new template because of a field that a run unsets when it starts.
    pub fn is_paused(&self) -> bool {
        let field = match self.kind {
            Kind::Deployment => "/spec/paused",
            Kind::StatefulSet => return false,
            Kind::CloneSet => "/spec/updateStrategy/paused",
        };
        self.object.pointer(field).and_then(Value::as_bool) == Some(true)
    }

    /// The partition that counts: whatever is armed has [`ARMED`], and so has one that cannot be read.
    pub fn pods_held(&self) -> u32 {
        match self.is_armed() {
            true => ARMED,
            false => self.partition().unwrap_or(ARMED),
        }
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.object.pointer(pointer).and_then(Value::as_str)
    }

    /// Its UID.
    pub fn uid(&self) -> &str {
        self.text("/metadata/uid").unwrap_or_default()
    }

    /// The ControllerRevision that its pods have had before, and the one that they are to have. It is the
    /// same only when all pods are of it.
    pub fn revisions(&self) -> (Option<&str>, Option<&str>) {
        let revision = |which| self.text(which);
        (
            revision("/status/currentRevision"),
            revision("/status/updateRevision"),
        )
    }

    /// For how long a pod has to be ready before it counts as available.
    pub fn soak(&self) -> SignedDuration {
        let seconds = self.count("/spec/minReadySeconds").unwrap_or(0);
        SignedDuration::from_secs(seconds.into())
    }

    /// Whether pods are to be replaced by others of a newer template.
    pub fn is_updating(&self) -> bool {
        let (current, update) = self.revisions();
        update.is_some() && current != update
    }

    /// Whether its pods are replaced one after another, so that one that is broken stops all: it is not
    /// replaced when the template is another one, either.
    pub fn is_ordered(&self) -> bool {
        self.kind == Kind::StatefulSet && self.text("/spec/podManagementPolicy") != Some("Parallel")
    }

    /// Whether a pod of a StatefulSet has one of the names that its pods have: those of its places, and no other.
    pub fn has_place(&self, pod: &str) -> bool {
        let name = self.text("/metadata/name").unwrap_or_default();
        let place = pod.strip_prefix(name).and_then(|it| it.strip_prefix('-'));
        let number = place.and_then(|it| it.parse::<u32>().ok());
        let start = self.count("/spec/ordinals/start").unwrap_or(0);
        let places = start..start.saturating_add(self.seen().wanted);
        // No name of theirs has zeros before its number.
        number.is_some_and(|it| places.contains(&it) && place == Some(&it.to_string()))
    }

    /// What writes its replicas, onto the version that was seen and no other.
    pub fn scale(&self, replicas: u32) -> Value {
        self.patch(&json!({ "replicas": replicas }))
    }

    /// What writes its partition. None: the kind has none. A CloneSet that is paused goes on with it.
    pub fn part(&self, partition: u32) -> Option<Value> {
        let strategy = match self.kind {
            Kind::Deployment => return None,
            Kind::StatefulSet => json!({"rollingUpdate": {"partition": partition}}),
            // As a percentage it stays armed whatever it is scaled to.
            Kind::CloneSet if partition == ARMED => json!({"partition": "100%", "paused": false}),
            Kind::CloneSet => json!({"partition": partition, "paused": false}),
        };
        Some(self.patch(&json!({ "updateStrategy": strategy })))
    }

    /// What writes its replicas, and lets it make pods. Only of a target: the template of a source that is
    /// paused may be one that nobody wants to have.
    pub fn start(&self, replicas: u32) -> Value {
        match self.kind {
            Kind::Deployment => self.patch(&json!({ "replicas": replicas, "paused": false })),
            Kind::StatefulSet | Kind::CloneSet => self.scale(replicas),
        }
    }

    /// What writes this into the spec.
    pub fn respec(&self, spec: &Value) -> Value {
        self.patch(spec)
    }

    /// A merge patch of the spec that the API server refuses for any other object, and any other version.
    fn patch(&self, spec: &Value) -> Value {
        let metadata = |field: &str| self.object.pointer(&format!("/metadata/{field}")).cloned();
        json!({
            "metadata": {"uid": metadata("uid"), "resourceVersion": metadata("resourceVersion")},
            "spec": spec,
        })
    }
}

/// The pods that a percentage of OpenKruise keeps old: rounded up, but below 100% one is always updated. From
/// 100% on it holds whatever the number of replicas is.
fn of_percent(percent: u32, replicas: u32) -> u32 {
    if percent >= 100 {
        return ARMED;
    }
    let part = (u64::from(replicas) * u64::from(percent)).div_ceil(100);
    u32::try_from(part)
        .unwrap_or(replicas)
        .min(replicas.saturating_sub(1))
}
