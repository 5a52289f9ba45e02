//! How a Rollout goes through its batches, when nothing but time passes.
//!
//! What comes in: a [`World`] with the Rollout, its gates and its workloads, and a span. What goes out: each batch
//! that goes out, when, and with the decision of its gates; and the Rollout at the end.
//!
//! Others are taken to do their part at once and well: pods are available as soon as they are wanted, hooks
//! answer what is expected, and metrics are within their range. So it shows the earliest instants at which gates let batches
//! out. The status of the Rollout is ignored: it begins again at the start of the span.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use sluice_crds::gatekeeper::Range;
use sluice_crds::rollout::marks;
use sluice_crds::{Decision, Rollout};

use super::{Key, World, gather_batch};
use crate::delivery::rollout::given::{Appliers, Arrived, Given, Measure, Name, Pod, Sight};
use crate::delivery::rollout::hook::Answer as HookAnswer;
use crate::delivery::rollout::metric::{ANY, Measured};
use crate::delivery::rollout::plan::Metric;
use crate::delivery::rollout::workload::{Kind, Workload};
use crate::delivery::rollout::{
    Act, Answer, Calling, Plan, Report, Told, View, apps, check, consider, report, view, wanted,
};
use crate::gate::Identity;
use crate::text::refusal::{Refusal, Refusals};
use crate::time::clock::Now;
use crate::time::span::{Span, later};
use crate::verdict::question::Question;

/// How often a Rollout is looked at, at most.
const MOST_LOOKS: usize = 2_000;
/// The revisions of an object in place: that of all its pods, and that of its template.
const OLD: &str = "old";
const NEW: &str = "new";

/// What happens to a Rollout.
#[derive(Clone, Debug)]
pub struct Rolling {
    /// The batches that go out, in their order.
    pub steps: Vec<BatchStep>,
    /// The Rollout at the end.
    pub end: View,
    /// Where there was too much to look at up to the end.
    pub cut_off: Option<Timestamp>,
}

/// A batch that goes out.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchStep {
    /// When.
    pub at: Timestamp,
    /// Which one. The first is 0.
    pub batch: usize,
    /// What the gates said. None: it has to pass no gate.
    pub decision: Option<Decision>,
}

/// How the Rollout of that name goes in `span`, both ends included. `sizes`: the replicas of workloads by their
/// names, in place of those that the objects have. None: there is no such Rollout.
///
/// # Errors
/// Its spec is refused, or nothing says how many pods a workload has.
pub fn rolling(
    world: &World,
    key: &Key,
    sizes: &BTreeMap<String, NonZeroU32>,
    identity: Identity,
    span: Span,
) -> Option<Result<Rolling, Refusals>> {
    let object = world.rollouts.get(key)?;
    let play =
        check(object).and_then(|plan| Play::new(world, key, (object, plan), sizes, identity));
    Some(play.map(|play| play.through(span)))
}

/// A Rollout with everybody around it.
struct Play<'w> {
    world: &'w World,
    object: Rollout,
    plan: Plan,
    workloads: BTreeMap<Name, Value>,
    identity: Identity,
    arrived: Vec<Arrived>,
    version: u64,
}

impl<'w> Play<'w> {
    fn new(
        world: &'w World,
        key: &Key,
        (object, plan): (&Rollout, Plan),
        sizes: &BTreeMap<String, NonZeroU32>,
        identity: Identity,
    ) -> Result<Self, Refusals> {
        let mut object = object.clone();
        object.status = None;
        object.metadata.namespace = Some(key.namespace.clone());
        object.metadata.uid = Some(key.to_string());
        object.metadata.generation = Some(1);
        let mut play = Self {
            world,
            plan,
            workloads: BTreeMap::new(),
            identity,
            arrived: Vec::new(),
            version: 1,
            object,
        };
        if let Some(app) = apps(&play.object).first() {
            let problem = format!("which workload {app} has is known only in the cluster");
            let remedy = "name the workload itself in a copy, and simulate that";
            return Err(Refusal::new("spec.targetRef", problem, remedy).into());
        }
        for name in wanted(&play.object, &Appliers::default()) {
            let workload = play.workload(&name, sizes)?;
            play.workloads.insert(name, workload);
        }
        Ok(play)
    }

    /// A workload as it is at first. One that is not among the objects, and of which it is said how many pods it
    /// has, is made up; a target that is scaled against others begins with none.
    fn workload(
        &self,
        name: &Name,
        sizes: &BTreeMap<String, NonZeroU32>,
    ) -> Result<Value, Refusal> {
        let namespace = self
            .object
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default();
        let key = Key::from_reference(namespace, None, &name.name);
        let (group, kind) = (name.kind.group(), name.kind.as_str());
        let place = (group.to_owned(), kind.to_owned(), key);
        let found = self.world.apps.get(&place).map(|it| Value::clone(it));
        let spec = &self.object.spec;
        let is_new = spec.target_ref.name == name.name && !spec.source_ref.is_empty();
        let size = sizes.get(&name.name).map(|size| size.get());
        let mut object = match (found, size) {
            (Some(found), _) => found,
            (None, Some(_)) => made_up(name),
            (None, None) if is_new => made_up(name),
            (None, None) => {
                return Err(Refusal::new(
                    "spec",
                    format!("nothing says how many pods {name} has"),
                    format!(
                        "add it to the files, or give --replicas {}=NUMBER",
                        name.name
                    ),
                ));
            }
        };
        let before = object.pointer("/spec/replicas").is_none() && is_new && size.is_none();
        if let Some(size) = size.or(before.then_some(0)) {
            object["spec"]["replicas"] = json!(size);
        }
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["uid"] = json!(name.to_string());
        object["metadata"]["generation"] = json!(1);
        object["metadata"]["resourceVersion"] = json!("1");
        let wanted = seen(name.kind, &object).seen().wanted;
        let is_scaled = self.plan.target_size.is_some_and(|size| size != wanted);
        // What the files have is the new version, and no pod has it yet, whatever the partition is.
        let updated = match (name.kind, is_scaled) {
            (Kind::Deployment, _) | (_, true) => wanted,
            (Kind::StatefulSet | Kind::CloneSet, false) => 0,
        };
        object["status"] = status(name.kind, &object, updated);
        Ok(object)
    }

    fn through(mut self, span: Span) -> Rolling {
        let mut steps = Vec::new();
        let mut at = span.start;
        let mut cut_off = Some(at);
        for _ in 0..MOST_LOOKS {
            cut_off = Some(at);
            let (report, decision) = self.look(at);
            steps.extend(self.goes_out(&report, at, decision));
            let wake = report.wake;
            match self.happens(report, at) {
                true => {}
                false => match self
                    .soaked(at)
                    .chain(wake)
                    .min()
                    .filter(|it| *it <= span.end)
                {
                    Some(wake) => at = wake.max(at),
                    None => {
                        cut_off = None;
                        break;
                    }
                },
            }
        }
        Rolling {
            steps,
            end: view(&self.object, &self.workloads),
            cut_off,
        }
    }

    /// One look, as the controller looks.
    fn look(&self, at: Timestamp) -> (Report, Option<Decision>) {
        let given = self.given(at);
        let considered = consider(&given);
        let answer = match &considered.question {
            None => Answer::NotAsked,
            Some(asked) => {
                let revision = asked.subject.revision.as_deref();
                let revision =
                    revision.and_then(|text| crate::revision::Revision::parse(text).ok());
                let question = Question::new(given.now, revision.as_ref());
                let gates = gather_batch(self.world, asked, self.identity, question);
                match gates.is_empty() {
                    true => Answer::NoGates,
                    false => {
                        let decision = gates.decide(asked.subject.clone(), question);
                        Answer::Told(Box::new(Told { gates, decision }))
                    }
                }
            }
        };
        let decision = match &answer {
            Answer::Told(told) => Some(told.decision.clone()),
            Answer::NotAsked | Answer::NoGates => None,
        };
        (report(&given, &considered, &answer), decision)
    }

    fn given(&self, at: Timestamp) -> Given {
        let here = |(name, object): (&Name, &Value)| {
            let sight = Sight::Here {
                object: Arc::new(object.clone()),
                is_behind: false,
            };
            (name.clone(), sight)
        };
        Given {
            object: Arc::new(self.object.clone()),
            workloads: self.workloads.iter().map(here).collect(),
            pods: self.pods(at),
            templates: None,
            arrived: self.arrived.clone(),
            measures: self.measures(at),
            others: BTreeMap::new(),
            autoscalers: Ok(Vec::new()),
            appliers: BTreeMap::new(),
            unsure_since: None,
            now: Now::given(at),
        }
    }

    /// The pods of a StatefulSet, of which its status says too little.
    fn pods(&self, at: Timestamp) -> Option<Vec<Pod>> {
        let target = Name::of(&self.object.spec.target_ref)?;
        let object = self.workloads.get(&target)?;
        let workload = seen(target.kind, object);
        let updated = workload.updated();
        let first = object.pointer("/spec/ordinals/start");
        let first = first.and_then(Value::as_u64).unwrap_or(0);
        let pod = |place: u32| Pod {
            name: format!("{}-{}", target.name, first + u64::from(place)),
            uid: place.to_string(),
            revision: if place < updated { NEW } else { OLD }.to_owned(),
            ready_since: Some(at),
            is_going: false,
        };
        Some((0..workload.seen().replicas).map(pod).collect())
    }

    /// Whatever metrics measure is good, and was measured now.
    fn measures(&self, at: Timestamp) -> BTreeMap<String, Measure> {
        let measured = self.metrics().map(|metric| {
            let key = Key {
                namespace: self.object.metadata.namespace.clone().unwrap_or_default(),
                name: metric.gatekeeper.clone(),
            };
            let keeper = self.world.gatekeepers.get(&key);
            let range = keeper
                .and_then(|it| it.spec.metric.as_ref())
                .map(|it| it.range);
            let range = metric.range.or(range).unwrap_or(ANY);
            let measured = Measured {
                value: within(range),
                at,
            };
            let measure = Measure {
                range,
                measured: Some(measured),
            };
            (metric.gatekeeper.clone(), measure)
        });
        measured.collect()
    }

    /// The batch that goes out by this look.
    fn goes_out(
        &self,
        report: &Report,
        at: Timestamp,
        decision: Option<Decision>,
    ) -> Option<BatchStep> {
        let before = self
            .object
            .status
            .as_ref()
            .and_then(|it| it.intent.as_ref());
        let before = before.and_then(|it| it.batch);
        let now = report.status.intent.as_ref().and_then(|it| it.batch);
        let batch = now.filter(|_| now != before)?;
        Some(BatchStep {
            at,
            batch: usize::try_from(batch).ok()?,
            decision,
        })
    }

    /// When metrics have been within their range for long enough: the controller looks again after each
    /// measurement.
    fn soaked(&self, at: Timestamp) -> impl Iterator<Item = Timestamp> {
        let status = self.object.status.iter();
        let records = status.flat_map(|it| &it.metrics);
        let until = records.filter_map(move |record| {
            let mut all = self.metrics().filter(|it| it.name == record.name);
            let interval = all.find_map(|it| it.interval)?;
            Some(later(record.within_since.as_ref()?.0, interval))
        });
        until.filter(move |until| *until > at)
    }

    /// The metrics of all batches.
    fn metrics(&self) -> impl Iterator<Item = &Metric> {
        let own =
            (0..self.plan.sizes.count()).flat_map(move |index| &self.plan.batch(index).metrics);
        self.plan.metrics.iter().chain(own)
    }

    /// What follows from a look. Whether anything has changed, so that it has to be looked at again.
    fn happens(&mut self, report: Report, at: Timestamp) -> bool {
        let Report { report, .. } = report;
        let mut changed = report.changed;
        self.object.status = Some(report.status);
        for act in report.acts {
            changed |= match act {
                Act::Finalize(on) => self.finalize(on),
                Act::Write(write) => self.write(&write.name, &write.patch),
                Act::Call(call) => self.answer(&call, at),
                Act::DeletePod(_) => false,
            };
        }
        changed
    }

    fn finalize(&mut self, on: bool) -> bool {
        let all = self.object.metadata.finalizers.get_or_insert_default();
        let was = all.iter().any(|it| it == marks::FINALIZER);
        all.retain(|it| it != marks::FINALIZER);
        if on {
            all.push(marks::FINALIZER.to_owned());
        }
        was != on
    }

    fn write(&mut self, name: &Name, patch: &Value) -> bool {
        self.version += 1;
        let version = self.version;
        let Some(object) = self.workloads.get_mut(name) else {
            return false;
        };
        json_patch::merge(object, patch);
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        object["metadata"]["generation"] = json!(version);
        settle(name.kind, object);
        true
    }

    fn answer(&mut self, call: &Calling, at: Timestamp) -> bool {
        let is_known = self.arrived.iter().any(|it| it.key == call.key);
        if !is_known {
            self.arrived.push(Arrived {
                key: call.key.clone(),
                attempt: call.attempt,
                answer: HookAnswer::Status(call.hook.expected.first()),
                error: None,
                at,
            });
        }
        !is_known
    }
}

/// A workload of which only its name is known. One in place is armed.
fn made_up(name: &Name) -> Value {
    let strategy = match name.kind {
        Kind::Deployment => Value::Null,
        Kind::StatefulSet => json!({"rollingUpdate": {"partition": i32::MAX}}),
        Kind::CloneSet => json!({"partition": "100%"}),
    };
    json!({
        "apiVersion": name.kind.api_version(), "kind": name.kind.as_str(),
        "metadata": {"name": name.name},
        "spec": {
            "selector": {"matchLabels": {"rollout": name.name}},
            "template": {"metadata": {"labels": {"rollout": name.name}}},
            "updateStrategy": strategy,
        },
    })
}

fn seen(kind: Kind, object: &Value) -> Workload<'_> {
    Workload { kind, object }
}

/// The controllers have done what the spec says, and all pods are available.
fn settle(kind: Kind, object: &mut Value) {
    let workload = seen(kind, object);
    let wanted = workload.seen().wanted;
    let is_out = workload.revisions().0 == Some(NEW);
    let updated = match (kind, is_out) {
        (Kind::Deployment, _) | (_, true) => wanted,
        (Kind::StatefulSet | Kind::CloneSet, false) => wanted.saturating_sub(workload.pods_held()),
    };
    object["status"] = status(kind, object, updated);
}

/// What controllers report of an object, of whose pods so many have the new version.
fn status(kind: Kind, object: &Value, updated: u32) -> Value {
    let wanted = seen(kind, object).seen().wanted;
    let mut status = json!({
        "observedGeneration": object.pointer("/metadata/generation"),
        "replicas": wanted, "availableReplicas": wanted, "updatedReplicas": updated,
        "updatedAvailableReplicas": updated,
    });
    if kind != Kind::Deployment {
        status["updateRevision"] = json!(NEW);
        status["currentRevision"] = json!(if updated == wanted { NEW } else { OLD });
    }
    status
}

/// A value that is within the range.
fn within(range: Range) -> f64 {
    range.min.or(range.max).unwrap_or_default()
}

#[cfg(test)]
mod tests;
