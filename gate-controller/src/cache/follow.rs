//! The watch that keeps a cache up to date.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use futures::StreamExt;
use hashbrown::HashMap;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher::Config};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::{Cache, Change, Objects, Progress, Seen, version, version_of};
use crate::definitions::managers_of_spec;
use crate::failure;
use crate::key::ObjectKey;

/// The annotation in which `kubectl apply` keeps a copy of the whole object.
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether a kind has to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Without it something is wrong, which is told again and again.
    Required,
    /// It is another project's, and may be missing, for now or for good: told once.
    Optional,
}

/// What is followed of a kind.
pub struct Following<K: Resource> {
    /// The kind.
    pub kind: K::DynamicType,
    /// Whether it has to be there.
    pub presence: Presence,
    /// Takes away from an object what nobody here reads.
    pub trim: fn(&K::DynamicType, &mut K),
}

impl<K: Resource<DynamicType = ()>> Following<K> {
    /// One of ours, or of Kubernetes'. Of who manages fields, those are kept that manage the spec.
    pub(super) fn required() -> Self {
        Self {
            kind: (),
            presence: Presence::Required,
            trim: |(), object| {
                let managers = object.meta_mut().managed_fields.take();
                object.meta_mut().managed_fields = managers.map(managers_of_spec);
                object.annotations_mut().remove(LAST_APPLIED);
            },
        }
    }
}

impl<K> Cache<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    /// Keeps the cache up to date for as long as it is polled, and tells of every object that has
    /// come, changed or gone.
    pub async fn follow(
        &self,
        api: Api<DeserializeGuard<K>>,
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
    /// The same for kinds of which one is named here.
    pub async fn follow_kind(
        &self,
        following: &Following<K>,
        api: Api<DeserializeGuard<K>>,
        config: Config,
        changed: impl Fn(Change<'_, K>),
    ) {
        let kind = K::kind(&following.kind);
        let mut events = Box::pin(watcher::watcher(api, config).default_backoff());
        let mut listed: Vec<(ObjectKey, Seen<K>)> = Vec::new();
        let mut trouble = None;
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    // That it begins to list says nothing yet.
                    if !matches!(event, Event::Init) && trouble.take().is_some() {
                        tracing::info!(%kind, "watching again");
                    }
                    self.take_in(event, following, &mut listed, &changed);
                }
                // The watcher tries again by itself, with a growing delay.
                Err(error) => {
                    let failed = Failed::of(&error);
                    let is_news = trouble.replace(failed) != Some(failed);
                    if is_news || following.presence == Presence::Required {
                        tell(following, failed, &error);
                    }
                    self.failed(following.presence, failed, &error);
                }
            }
        }
    }

    /// Notes that a watch has failed. What has to be there stays as it was listed once.
    pub(super) fn failed(&self, presence: Presence, failed: Failed, error: &watcher::Error) {
        let refusal = match failed {
            Failed::NotInstalled => Progress::NotInstalled,
            Failed::Refused => Progress::Refused,
            Failed::Expired | Failed::Otherwise => return,
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
        event: Event<DeserializeGuard<K>>,
        following: &Following<K>,
        listed: &mut Vec<(ObjectKey, Seen<K>)>,
        changed: &impl Fn(Change<'_, K>),
    ) {
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(object) => listed.push(seen(following, object)),
            Event::InitDone => {
                // Whatever was known before: after a restored backup versions have gone back.
                let fresh: HashMap<_, _> = std::mem::take(listed).into_iter().collect();
                let all: Vec<_> = fresh.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
                let fresh = Objects {
                    latest: fresh.values().filter_map(version).max().unwrap_or(0),
                    by_key: fresh,
                };
                let mut before = std::mem::replace(&mut *self.write(), fresh).by_key;
                for (key, now) in &all {
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
                // After whoever keeps an index has heard of everything.
                self.progress.send_replace(Progress::Synced);
            }
            Event::Apply(object) => {
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
            Event::Delete(object) => {
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
        }
    }
}

/// How a watch has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// There is no such kind.
    NotInstalled,
    /// The API server has refused it.
    Refused,
    /// It begins anew with a list.
    Expired,
    /// In any other way.
    Otherwise,
}

impl Failed {
    pub(super) fn of(error: &watcher::Error) -> Self {
        if failure::is_not_installed(error) {
            Self::NotInstalled
        } else if failure::is_refused(error) {
            Self::Refused
        } else if failure::is_expired(error) {
            Self::Expired
        } else {
            Self::Otherwise
        }
    }
}

/// Tells that a watch has failed.
fn tell<K: Resource>(following: &Following<K>, failed: Failed, error: &watcher::Error) {
    let Following { kind, presence, .. } = following;
    let (name, plural, group) = (K::kind(kind), K::plural(kind), K::group(kind));
    let why = failure::of_watch(error, &plural, &group);
    match (failed, presence) {
        (Failed::NotInstalled, Presence::Optional) => tracing::info!(
            kind = %name,
            "this API server has no {plural}.{group}; they are looked for again now and then"
        ),
        (Failed::Expired, _) => tracing::info!(kind = %name, "{why}; listing anew"),
        (Failed::NotInstalled | Failed::Refused | Failed::Otherwise, _) => {
            tracing::error!(kind = %name, "{why}");
        }
    }
}

/// An object without what nobody here reads and much of its memory is.
fn seen<K: Resource>(
    following: &Following<K>,
    object: DeserializeGuard<K>,
) -> (ObjectKey, Seen<K>) {
    let key = ObjectKey::of(&object);
    let seen = match object.0 {
        Ok(mut object) => {
            (following.trim)(&following.kind, &mut object);
            Seen::Object(Arc::new(object))
        }
        Err(invalid) => {
            let kind = K::kind(&following.kind);
            tracing::error!(
                kind = %kind,
                namespace = %key.namespace,
                name = %key.name,
                "this version cannot read the object, which counts as closed: {}",
                invalid.error
            );
            Seen::Unreadable(invalid.error.into())
        }
    };
    (key, seen)
}
