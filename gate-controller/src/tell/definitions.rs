//! Changes of what gates, gatekeepers, policies and gated sources are: that is what auditors ask.
//!
//! What comes in: what the watches bring, and what the statuses say was seen. What goes out, once, from
//! the replica that leads: a line in the log, an event, a record. A spec is reported when the status
//! first has its generation, so that it is not reported again after a restart. Only a replica that has
//! seen the spec change knows what was in it before.

use std::collections::HashMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::Resource;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use sluice_core::operation::differences;
use sluice_crds::audit::{Change as What, Defined, Event, Manager, Object};

use crate::cluster::key::Work;
use crate::observe::cache::{Change, Seen};
use crate::tell::audit::Audit;
use crate::tell::events::{About, Events, Told};

/// The specs before their changes, where these were not reported yet.
#[derive(Default)]
pub struct Definitions(Mutex<HashMap<Work, Former>>);

/// What a spec was before it changed.
#[derive(Clone, Debug)]
struct Former {
    generation: i64,
    spec: Value,
    managers: Vec<Manager>,
}

/// What a definition is, of any kind.
pub trait Defines: Resource<DynamicType = ()> {
    /// Its spec.
    fn spec(&self) -> &impl Serialize;

    /// The generation that its status has observed.
    fn observed(&self) -> Option<i64>;
}

/// All our kinds have both at the same places.
macro_rules! defines {
    ($($kind:ident)*) => {$(
        impl Defines for sluice_crds::$kind {
            fn spec(&self) -> &impl Serialize {
                &self.spec
            }

            fn observed(&self) -> Option<i64> {
                self.status.as_ref()?.observed_generation
            }
        }
    )*};
}

defines!(Gate Gatekeeper GatePolicy GatedSource Pipeline PullRequest);
defines!(GitRepositoryAccess PromotionStrategy CommitStatus RevertCommit Rollout);

/// Whether the status does not report this generation of the spec yet.
pub fn is_untold<K: Defines>(object: &K) -> bool {
    object.meta().generation.is_some() && object.observed() != object.meta().generation
}

impl Definitions {
    /// Notes what the watch has brought: the last spec that was reported is remembered until the next one
    /// is reported, too. A replica that does not lead keeps one spec of each object that changed.
    pub(crate) fn note<K: Defines>(&self, work: &Work, change: &Change<'_, K>) {
        let Some(now) = change.now else {
            self.0.lock().remove(work);
            return;
        };
        let (Some(before), Some(now)) = (change.before.and_then(Seen::object), now.object()) else {
            return;
        };
        let (was, is) = (before.meta(), now.meta());
        let (true, Some(generation)) = (is_another(was, is), was.generation) else {
            return;
        };
        let former = Former {
            generation,
            spec: json(before.spec()),
            managers: managers(was),
        };
        let mut all = self.0.lock();
        if !is_untold(before.as_ref()) {
            all.insert(work.clone(), former);
        } else {
            all.entry(work.clone()).or_insert(former);
        }
    }

    /// What the spec was before this generation, if that is known. It is returned once.
    fn take(&self, work: &Work, generation: Option<i64>) -> Option<Former> {
        let mut all = self.0.lock();
        let is_before = all.get(work)?.generation < generation?;
        is_before.then(|| all.remove(work)).flatten()
    }
}

/// Another spec of the same object.
fn is_another(was: &ObjectMeta, is: &ObjectMeta) -> bool {
    was.uid == is.uid && was.generation != is.generation
}

/// Reports definitions.
pub struct Telling<'a> {
    /// What is remembered of them.
    pub definitions: &'a Definitions,
    /// Where events are put.
    pub events: &'a Events,
    /// Where it is recorded.
    pub audit: &'a Audit,
}

impl Telling<'_> {
    /// Reports the definition of an object whose status has just been written, if it is new. `object` is
    /// as it was before.
    pub fn tell<K: Defines>(&self, work: &Work, object: &K) {
        if !is_untold(object) {
            return;
        }
        let generation = object.meta().generation;
        let (spec, former) = (json(object.spec()), self.definitions.take(work, generation));
        let differences = former
            .as_ref()
            .map(|former| differences::between(&former.spec, &spec))
            .unwrap_or_default();
        let changed_by = changed_by(object.meta(), former.as_ref());
        let defined = Defined {
            object: named(work),
            change: match object.observed() {
                None => What::Created,
                Some(_) => What::Changed,
            },
            generation,
            last_told: former.map(|it| it.generation).or(object.observed()),
            differences,
            spec,
            changed_by,
        };
        let by = by(&defined);
        let message = in_words(&defined);
        log(work, &defined, &by, &message);
        if defined.change == What::Changed {
            self.events
                .tell(event(About::new(work.clone(), object), &by, &message));
        }
        self.audit.tell(|| Event::Definition(Box::new(defined)));
    }

    /// Reports that an object is gone.
    pub fn gone<K: Defines>(&self, work: &Work, object: &K) {
        let defined = Defined {
            object: named(work),
            change: What::Deleted,
            generation: None,
            last_told: object.observed(),
            differences: Vec::new(),
            spec: json(object.spec()),
            changed_by: Vec::new(),
        };
        log(work, &defined, "", &in_words(&defined));
        self.audit.tell(|| Event::Definition(Box::new(defined)));
    }
}

/// Who changed it, in a line.
fn by(defined: &Defined) -> String {
    let managers = defined.changed_by.iter().map(|it| it.manager.as_str());
    managers.collect::<Vec<_>>().join(", ")
}

fn in_words(defined: &Defined) -> String {
    match (defined.change, defined.differences.is_empty()) {
        (What::Created, _) => "it is new".to_owned(),
        (What::Deleted, _) => "it is gone".to_owned(),
        (What::Changed, true) => {
            "the spec was changed, and what it was before is not known".to_owned()
        }
        (What::Changed, false) => differences::in_words(&defined.differences),
    }
}

fn event(about: About, by: &str, message: &str) -> Told {
    let by = match by.is_empty() {
        true => String::new(),
        false => format!(" by {by}"),
    };
    Told {
        about,
        warning: false,
        reason: "DefinitionChanged".into(),
        action: "Define",
        note: format!("changed{by}: {message}").into(),
        more: None,
    }
}

/// One line. After the installation all objects are new: people need not read that.
fn log(work: &Work, defined: &Defined, by: &str, message: &str) {
    let key = &work.key;
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                target: "definition",
                kind = work.kind.as_str(),
                namespace = %key.namespace,
                name = %key.name,
                change = ?defined.change,
                generation = defined.generation,
                by,
                "{message}"
            )
        };
    }
    match defined.change {
        What::Created => line!(debug),
        What::Changed | What::Deleted => line!(info),
    }
}

fn named(work: &Work) -> Object {
    let key = &work.key;
    Object {
        kind: work.kind.as_str().to_owned(),
        namespace: (!key.namespace.is_empty()).then(|| key.namespace.to_string()),
        name: key.name.to_string(),
    }
}

/// A spec as JSON: it was read from JSON.
fn json(spec: &impl Serialize) -> Value {
    serde_json::to_value(spec).unwrap_or_default()
}

/// All who manage a part of the spec: the cache does not keep which fields each of them manages.
fn managers(metadata: &ObjectMeta) -> Vec<Manager> {
    let manager = |entry: &ManagedFieldsEntry| {
        if entry.fields_v1.is_some() {
            return None;
        }
        Some(Manager {
            manager: entry.manager.clone()?,
            at: entry.time.clone(),
        })
    };
    let all = metadata.managed_fields.iter().flatten();
    all.filter_map(manager).collect()
}

/// Which of those managers changed it: all that have written since the spec before; if that is not known,
/// those that wrote last. Times are in seconds, so that there may be several.
fn changed_by(metadata: &ObjectMeta, former: Option<&Former>) -> Vec<Manager> {
    let mut all = managers(metadata);
    if let Some(former) = former
        && all.iter().any(|it| !former.managers.contains(it))
    {
        all.retain(|it| !former.managers.contains(it));
        return all;
    }
    let at = |it: &Manager| it.at.as_ref().map(|at| at.0);
    let last = all.iter().map(at).max().flatten();
    all.retain(|it| at(it) == last);
    all
}

#[cfg(test)]
mod tests;
