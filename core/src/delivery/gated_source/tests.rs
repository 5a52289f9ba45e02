//! Looks at GatedSources, one after another, beside a source-controller that is played.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sluice_crds::flux::{FluxKind, FluxObject};
use sluice_crds::gated_source::{ConsumerKind, Origin, SourceKind};
use sluice_crds::{Decision, GatedSource, GatedSourceStatus};

use super::*;
use crate::flux::{content, identity};
use crate::gate::Identity;
use crate::offline::lint::{self, Object};
use crate::offline::simulate::{self, Key, World};
use crate::time::stamp::time;
use crate::verdict::question::Question;

mod baselines;
mod charts;
mod fields;
mod going;
mod kinds;
mod measured;
mod named;
mod order;
mod reasons;
mod refused;
mod replaced;
mod reviewed;
mod selection;
mod stories;
mod told;
mod users;
mod words;

const NOON: &str = "2026-11-20T12:00:00Z";

/// A commit that is all one digit.
fn commit(digit: char) -> String {
    digit.to_string().repeat(40)
}

/// That commit as the source shows it.
fn revision(digit: char) -> String {
    format!("main@sha1:{}", commit(digit))
}

/// A GatedSource and everything around it, in the namespace apps.
struct Play {
    world: World,
    object: GatedSource,
    kind: SourceKind,
    upstream: Option<FluxObject>,
    child: Option<FluxObject>,
    /// What an index takes for children of sources that it no longer names.
    strays: Vec<FluxObject>,
    /// What it has suspended and does not hold any more.
    dropped: Vec<FluxObject>,
    consumers: Vec<(ConsumerKind, FluxObject)>,
    carried: Vec<Carried>,
    held: BTreeMap<String, Holding>,
    unreadable: Unreadable,
    now: Timestamp,
    told: Vec<Decision>,
    /// How many of those something was done by at once.
    effects: usize,
    /// How often its status was written, and how often anything else.
    writes: (usize, usize),
}

/// What the API server does not allow to be read.
#[derive(Default)]
struct Unreadable {
    upstream: bool,
    child: bool,
}

fn found(object: Option<&FluxObject>, unreadable: bool) -> Found {
    match unreadable {
        true => Found::Unreadable("the list is refused".into()),
        false => object.map_or(Found::Missing, here),
    }
}

fn here(object: &FluxObject) -> Found {
    Found::Here(Arc::new(object.clone()))
}

impl Store for BTreeMap<String, Holding> {
    fn holding(&self, _: &str, _: &str, digest: &str) -> Holding {
        self.get(digest).cloned().unwrap_or(Holding::Absent)
    }
}

fn flux(value: Value) -> FluxObject {
    serde_json::from_value(value).unwrap()
}

/// A GitRepository as source-controller has fetched it.
fn git(name: &str, spec: &Value, revision: &str) -> FluxObject {
    let mut object = flux(json!({
        "metadata": { "name": name, "namespace": "apps", "generation": 1, "uid": name },
        "spec": spec,
    }));
    fetched(&mut object, revision);
    object
}

/// source-controller has fetched this.
fn fetched(object: &mut FluxObject, revision: &str) {
    let generation = object.metadata.generation;
    let digest = format!("sha256:of {revision}");
    object.status = serde_json::from_value(json!({
        "observedGeneration": generation,
        "conditions": [condition("Ready", "True", "Succeeded", generation)],
        "artifact": {
            "path": "p", "url": format!("http://source-controller/{revision}"),
            "revision": revision, "digest": digest, "lastUpdateTime": NOON,
        },
    }))
    .unwrap();
}

fn condition(type_: &str, status: &str, reason: &str, generation: Option<i64>) -> Value {
    json!({
        "type": type_, "status": status, "reason": reason, "message": format!("it says {reason}"),
        "lastTransitionTime": NOON, "observedGeneration": generation,
    })
}

fn upstream_spec() -> Value {
    json!({
        "url": "https://git.example.com/app", "interval": "1m0s", "timeout": "60s",
        "ref": { "branch": "main" }, "secretRef": { "name": "one" },
    })
}

impl Play {
    /// A GitRepository behind one gate, which is a switch.
    fn new(spec: &Value) -> Self {
        let mut whole = json!({
            "sourceRef": { "kind": "GitRepository", "name": "upstream" },
            "gates": { "refs": [{ "name": "production" }] },
        });
        whole
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        let object = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "GatedSource",
            "metadata": {
                "name": "app", "namespace": "apps", "generation": 1,
                "uid": "0b8a6f2e-6c1d-4f6b-9a57-2d0d7c3f1a11",
            },
            "spec": whole,
        }));
        let mut play = Self {
            world: World::default(),
            object: object.unwrap(),
            kind: SourceKind::GitRepository,
            upstream: Some(git("upstream", &upstream_spec(), &revision('a'))),
            child: None,
            strays: Vec::new(),
            dropped: Vec::new(),
            consumers: Vec::new(),
            carried: Vec::new(),
            held: BTreeMap::new(),
            unreadable: Unreadable::default(),
            now: NOON.parse().unwrap(),
            told: Vec::new(),
            effects: 0,
            writes: (0, 0),
        };
        play.keep("{manual: {state: closed, reason: freeze}}");
        play
    }

    /// The gate `production` is kept by this.
    fn keep(&mut self, spec: &str) {
        crate::delivery::tests::keep(&mut self.world, spec);
    }

    fn open(&mut self) {
        self.keep("{manual: {state: open}}");
    }

    fn close(&mut self) {
        self.keep("{manual: {state: closed, reason: freeze}}");
    }

    /// The source shows a commit.
    fn push(&mut self, digit: char) {
        fetched(self.upstream.as_mut().unwrap(), &revision(digit));
    }

    fn pass(&mut self, minutes: i64) {
        self.now += SignedDuration::from_mins(minutes);
    }

    fn ours(&self) -> &GatedSourceStatus {
        self.object.status.as_ref().unwrap()
    }

    fn admitted(&self) -> Option<&str> {
        Some(self.ours().admitted.as_ref()?.revision.as_str())
    }

    fn pending(&self) -> Option<&str> {
        Some(self.ours().pending.as_ref()?.revision.as_str())
    }

    /// A condition as `True Reason`.
    fn says(&self, type_: &str) -> Option<String> {
        let mut conditions = self.ours().conditions.iter();
        let found = conditions.find(|condition| condition.type_ == type_)?;
        Some(format!("{} {}", found.status, found.reason))
    }

    fn message(&self, type_: &str) -> String {
        let mut conditions = self.ours().conditions.iter();
        conditions
            .find(|condition| condition.type_ == type_)
            .unwrap()
            .message
            .clone()
    }

    /// The child's field, such as `/ref/commit`.
    fn child(&self, pointer: &str) -> Option<String> {
        let spec = Value::Object(self.child.as_ref()?.spec.clone());
        Some(spec.pointer(pointer)?.as_str()?.to_owned())
    }

    /// One look without carrying anything out.
    fn look(&mut self) -> Report {
        let sources = wanted(&self.object).into_iter().map(|wanted| Source {
            wanted,
            upstream: found(self.upstream.as_ref(), self.unreadable.upstream),
            child: found(self.child.as_ref(), self.unreadable.child),
        });
        let gates = gates(&self.world, &self.object, self.now);
        let given = Given {
            object: Arc::new(self.object.clone()),
            sources: sources.collect(),
            strays: (self.strays.iter())
                .map(|it| (FluxKind::Source(self.kind), Arc::new(it.clone())))
                .collect(),
            dropped: (self.dropped.iter())
                .map(|it| (self.kind, Arc::new(it.clone())))
                .collect(),
            consumers: self
                .consumers
                .iter()
                .map(|(kind, it)| (*kind, Arc::new(it.clone())))
                .collect(),
            carried: self.carried.clone(),
            gates,
            store: Box::new(self.held.clone()),
            now: Now::given(self.now),
        };
        let considered = consider(given);
        let told = considered.decision().cloned();
        self.effects += usize::from(considered.takes_effect());
        let report = report(considered, told.as_ref());
        self.told.extend(told);
        report
    }

    /// Writes the status, and nothing else: as if the writer were killed then.
    fn write_status(&mut self, report: &Report) {
        if report.changed {
            self.object.status = Some(report.status.clone());
            self.writes.0 += 1;
        }
    }

    fn carry_out(&mut self, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Write(child) => self.write_child(*child),
                Act::Serve { artifact, .. } => {
                    let child = self.child.as_mut().unwrap();
                    fetched(child, &artifact.revision);
                    child.status.artifact = Some(*artifact);
                    self.writes.1 += 1;
                }
                Act::Fetch { digest, .. } => {
                    self.held.insert(digest, Holding::Fetching);
                }
                Act::Retain { digests, .. } => {
                    let kept = |digest: &String| digests.contains(digest);
                    self.held.retain(|digest, _| kept(digest));
                }
                Act::Suspend {
                    holders, before, ..
                } => self.suspend(&holders, &before),
                Act::Delete { before, .. } => {
                    assert_eq!(Some(before.as_ref()), self.child.as_ref());
                    self.child = None;
                    self.writes.1 += 1;
                }
                Act::Finalize(on) => {
                    let mark = sluice_crds::gated_source::marks::FINALIZER.to_owned();
                    self.object.metadata.finalizers = on.then(|| vec![mark]);
                    self.writes.1 += 1;
                }
            }
        }
    }

    fn write_child(&mut self, child: Child) {
        assert_eq!(child.before.as_deref(), self.child.as_ref());
        self.writes.1 += 1;
        let mut object = child.before.map(Arc::unwrap_or_clone).unwrap_or_default();
        let is_other = object.spec != child.spec;
        object.metadata.name = Some(child.name);
        object.metadata.namespace = Some("apps".to_owned());
        let generation = object.metadata.generation.unwrap_or(0);
        object.metadata.generation = Some(generation + i64::from(is_other));
        object
            .metadata
            .annotations
            .get_or_insert_default()
            .extend(child.annotations);
        let labels = object.metadata.labels.get_or_insert_default();
        for (name, value) in child.labels {
            match value {
                Some(value) => drop(labels.insert(name, value)),
                None => drop(labels.remove(&name)),
            }
        }
        object.spec = child.spec;
        self.child = Some(object);
    }

    fn suspend(&mut self, holders: &BTreeSet<String>, before: &FluxObject) {
        use sluice_crds::gated_source::marks::SUSPENDED_BY;
        let mut all = self.upstream.iter_mut().chain(&mut self.dropped);
        let source = all.find(|it| *it == before).unwrap();
        let suspend = !holders.is_empty();
        source.spec.insert("suspend".to_owned(), suspend.into());
        let annotations = source.metadata.annotations.get_or_insert_default();
        match suspend {
            true => {
                let names: Vec<_> = holders.iter().cloned().collect();
                annotations.insert(SUSPENDED_BY.to_owned(), names.join(","))
            }
            false => annotations.remove(SUSPENDED_BY),
        };
        self.writes.1 += 1;
        // What has lost the mark is found by it no longer.
        self.dropped.retain(|it| {
            let marks = it.metadata.annotations.as_ref();
            marks.is_some_and(|marks| marks.contains_key(SUSPENDED_BY))
        });
    }

    /// The store has fetched all that it was asked for.
    fn store(&mut self) {
        let stored = Stored {
            path: "p".into(),
            url: "http://ours/p".into(),
            size: 7,
        };
        for holding in self.held.values_mut() {
            *holding = Holding::Stored(stored.clone());
        }
    }

    /// source-controller fetches what the child is pinned to.
    fn fetch_child(&mut self) {
        let Some(child) = &mut self.child else { return };
        if child.status.observed_generation != child.metadata.generation
            && let Some((revision, _)) = content::of_pin(self.kind, &child.spec)
        {
            fetched(child, revision.as_str());
            let upstream = self
                .upstream
                .as_ref()
                .and_then(|it| it.status.artifact.as_ref());
            let is_it =
                |it: &&Artifact| identity::is_same_pin(self.kind, &it.revision, revision.as_str());
            // The same content is the same file, however its revision is written.
            if let (SourceKind::OCIRepository, Some(shown)) = (self.kind, upstream.filter(is_it)) {
                let artifact = child.status.artifact.as_mut().unwrap();
                artifact.digest.clone_from(&shown.digest);
            }
        }
    }

    /// Admits what is there, and has the child fetched once.
    fn write_status_and_child(&mut self) {
        let report = self.look();
        self.write_status(&report);
        self.carry_out(report.acts);
        self.fetch_child();
    }

    /// Looks until there is nothing left to do, and asserts that there soon is nothing.
    fn settle(&mut self) {
        for _ in 0..6 {
            let report = self.look();
            let is_quiet = !report.changed && report.acts.iter().all(is_of_the_store);
            self.write_status(&report);
            self.carry_out(report.acts);
            self.fetch_child();
            if is_quiet {
                return;
            }
        }
        panic!("it never comes to rest: {:#?}", self.look());
    }
}

/// Nothing that reaches the API server.
fn is_of_the_store(act: &Act) -> bool {
    matches!(act, Act::Retain { .. })
}

fn gates(world: &World, object: &GatedSource, now: Timestamp) -> Gathered {
    let question = Question::from(Now::given(now));
    let own = Some(&object.spec.gates);
    simulate::gather(
        world,
        own,
        &subject(object, None),
        Identity::Trusted,
        question,
    )
}
