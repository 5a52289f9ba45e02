//! The watch that keeps a cache up to date.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use hashbrown::HashMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::runtime::watcher::{self, Config};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use sluice_core::gate::force::owner;
use sluice_watching::{Guard, LAST_APPLIED, Step, Watching};

use super::{Cache, Change, Progress, Seen, version_of};
use crate::cluster::key::ObjectKey;

#[cfg(test)]
mod tests;
mod trouble;

pub(super) use trouble::Failed;
use trouble::{Telling, why};

/// Whether a kind has to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Without it something is wrong, which is reported again and again.
    Required,
    /// It belongs to another project, and may be missing, for now or for good: reported once.
    Optional,
}

/// What is followed of a kind.
pub struct Following<K: Resource> {
    /// The kind.
    pub kind: K::DynamicType,
    /// Whether it has to be there.
    pub presence: Presence,
    /// Removes from an object what is not read here.
    pub trim: fn(&K::DynamicType, &mut K),
}

impl<K: Resource<DynamicType = ()>> Following<K> {
    /// One of ours, or of Kubernetes'. Of the managers of fields, those are kept that manage the spec,
    /// and the fields of the force on a gate that the controller itself owns.
    pub(super) fn required() -> Self {
        Self {
            kind: (),
            presence: Presence::Required,
            trim: |(), object| {
                let managers = object.meta_mut().managed_fields.take();
                object.meta_mut().managed_fields = Some(kept(managers.unwrap_or_default()));
                object.annotations_mut().remove(LAST_APPLIED);
            },
        }
    }
}

impl<K> Cache<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    /// Keeps the cache up to date as long as it is polled, and reports every object that was created,
    /// changed or deleted.
    pub async fn follow(
        &self,
        api: Api<Guard<K>>,
        config: Config,
        changed: impl Fn(Change<'_, K>),
    ) {
        self.follow_kind(&Following::required(), api, config, changed)
            .await;
    }
}

impl<K> Cache<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// The same for a type with several kinds: `following` names the kind.
    pub async fn follow_kind(
        &self,
        following: &Following<K>,
        api: Api<Guard<K>>,
        config: Config,
        changed: impl Fn(Change<'_, K>),
    ) {
        let mut watching = Watching::new(api, config, Arc::clone(&self.pulse));
        let mut telling = Telling::default();
        let mut listed: Vec<(ObjectKey, Seen<K>)> = Vec::new();
        loop {
            let step = watching.next().await;
            match &step {
                Step::Failed(error) => {
                    let failed = Failed::of(error);
                    telling.fails(following, failed, error);
                    self.pulse.fails(&why(following, error));
                    self.failed(following.presence, failed, error);
                    if self.is_synced() {
                        watching.hurry();
                    }
                }
                // The start or the end of a watch alone says nothing yet.
                Step::Begun | Step::Opened | Step::Ended | Step::Silent => {}
                Step::Page(_)
                | Step::Listed(_)
                | Step::Apply(_)
                | Step::Delete(_)
                | Step::Alive => {
                    telling.goes_on(following);
                }
            }
            self.take_in(step, following, &mut listed, &changed);
        }
    }

    /// Notes that a watch has failed. Objects of a kind that has to be there stay as they were listed
    /// last.
    pub(super) fn failed(&self, presence: Presence, failed: Failed, error: &watcher::Error) {
        let refusal = match failed {
            Failed::NotInstalled => Progress::NotInstalled,
            Failed::Refused => Progress::Refused,
            Failed::Expired | Failed::Busy | Failed::Otherwise => return,
        };
        let listing = matches!(error, watcher::Error::InitialListFailed(_));
        self.progress.send_if_modified(|progress| {
            let is_news = match presence {
                Presence::Required => *progress == Progress::Unanswered,
                Presence::Optional => listing && *progress != refusal,
            };
            if is_news {
                *progress = refusal;
            }
            is_news
        });
    }

    pub(super) fn take_in(
        &self,
        step: Step<Guard<K>>,
        following: &Following<K>,
        listed: &mut Vec<(ObjectKey, Seen<K>)>,
        changed: &impl Fn(Change<'_, K>),
    ) {
        match step {
            Step::Begun => {
                listed.clear();
                self.begin_list();
            }
            Step::Page(objects) => {
                listed.extend(objects.into_iter().map(|object| seen(following, object)));
            }
            Step::Listed(version) => {
                let fresh: HashMap<_, _> = std::mem::take(listed).into_iter().collect();
                let mut before = self.listed(fresh, version.unwrap_or(0));
                for (key, now) in &self.all() {
                    let before = before.remove(key);
                    changed(Change {
                        key,
                        before: before.as_ref(),
                        now: Some(now),
                    });
                }
                for (key, gone) in &before {
                    changed(Change {
                        key,
                        before: Some(gone),
                        now: None,
                    });
                }
                // After those who keep an index have been informed of everything.
                self.progress.send_replace(Progress::Synced);
            }
            Step::Apply(object) => {
                let of = version_of(&object);
                let (key, object) = seen(following, object);
                let Some(before) = self.brought(&key, of, Some(&object)) else {
                    return;
                };
                changed(Change {
                    key: &key,
                    before: before.as_ref(),
                    now: Some(&object),
                });
            }
            Step::Delete(object) => {
                let key = ObjectKey::of(&object);
                let Some(before) = self.brought(&key, version_of(&object), None) else {
                    return;
                };
                changed(Change {
                    key: &key,
                    before: before.as_ref(),
                    now: None,
                });
            }
            Step::Opened | Step::Alive | Step::Ended | Step::Failed(_) | Step::Silent => {}
        }
    }
}

/// What is kept of the managers of fields.
fn kept(entries: Vec<ManagedFieldsEntry>) -> Vec<ManagedFieldsEntry> {
    let (own, others): (Vec<_>, Vec<_>) = entries.into_iter().partition(owner::is_own);
    let mut kept = managers_of_spec(others);
    kept.extend(own);
    kept
}

/// Of the managers of an object's fields, those that manage its spec, without the fields: nothing else is
/// ever reported of them.
fn managers_of_spec(entries: Vec<ManagedFieldsEntry>) -> Vec<ManagedFieldsEntry> {
    let owns_spec = |entry: &ManagedFieldsEntry| {
        let fields = entry.fields_v1.as_ref();
        let spec = fields.and_then(|fields| fields.0.get("f:spec"));
        spec.is_some() && entry.subresource.as_deref().unwrap_or_default().is_empty()
    };
    let stripped = |entry: ManagedFieldsEntry| ManagedFieldsEntry {
        manager: entry.manager,
        time: entry.time,
        ..ManagedFieldsEntry::default()
    };
    entries
        .into_iter()
        .filter(owns_spec)
        .map(stripped)
        .collect()
}

/// An object without the parts that are not read here and that take most of its memory.
fn seen<K: Resource + Clone>(following: &Following<K>, object: Guard<K>) -> (ObjectKey, Seen<K>) {
    let key = ObjectKey::of(&object);
    let seen = match object.0 {
        Ok(mut object) => {
            (following.trim)(&following.kind, &mut object);
            // A list that was read has room for four entries where it has one. A copy does not.
            Seen::Object(Arc::new(object.clone()))
        }
        Err(unreadable) => {
            let kind = K::kind(&following.kind);
            tracing::error!(
                kind = %kind,
                namespace = %key.namespace,
                name = %key.name,
                "this version cannot read the object, which counts as closed: {}",
                unreadable.why
            );
            Seen::Unreadable(unreadable.why.into())
        }
    };
    (key, seen)
}
