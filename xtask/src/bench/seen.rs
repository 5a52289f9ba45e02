//! When things happened, as somebody sees it who watches.
//!
//! What comes in: the kinds to watch. What goes out: how long after an instant each object said for the
//! first time that something has happened.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use serde_json::Value;
use sluice_tests::poll;
use tokio::task::JoinSet;

use super::ordered::Ordered;

/// How long anything may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(1_200);
/// The environments of a pipeline that are looked at: the one after the first, and the last.
pub(super) const NEXT: &str = "test";
pub(super) const LAST: &str = "prod";

/// What happens on the way of a commit, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Moment {
    /// The API server has answered the request that threw the switch. No watch sees that.
    Answered,
    /// The GatedSource says that it is pending, the pipeline that its run has begun, or the rollout that gates
    /// hold it.
    Pending,
    /// The gatekeeper's verdict is that it is open.
    Allowed,
    /// The gate's status says that it is open.
    Open,
    /// The GatedSource says that it is admitted, the pipeline that its second environment is, the strategy that
    /// the pull request of its first one is ordered to be merged, or the rollout that its second batch goes out.
    Admitted,
    /// The pipeline says that its run is completed.
    Completed,
    /// The PullRequest says that it is open at the forge, or the strategy that the one of its first
    /// environment is.
    Opened,
    /// The pipeline says that the pull request of its last environment was merged, or the strategy that its
    /// first environment has the commit.
    Merged,
    /// The child is pinned to it.
    Pinned,
    /// source-controller has fetched it for the child.
    Fetched,
    /// kustomize-controller has applied it.
    Applied,
}

/// A kind that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Gatekeeper,
    Gate,
    GatedSource,
    GitRepository,
    Kustomization,
    Pipeline,
    PullRequest,
    PromotionStrategy,
    Rollout,
}

impl Kind {
    fn resource(self) -> ApiResource {
        let (group, version, kind) = match self {
            Self::Gatekeeper => ("sluice.dev", "v1alpha1", "Gatekeeper"),
            Self::Gate => ("sluice.dev", "v1alpha1", "Gate"),
            Self::GatedSource => ("sluice.dev", "v1alpha1", "GatedSource"),
            Self::GitRepository => ("source.toolkit.fluxcd.io", "v1", "GitRepository"),
            Self::Kustomization => ("kustomize.toolkit.fluxcd.io", "v1", "Kustomization"),
            Self::Pipeline => ("sluice.dev", "v1alpha1", "Pipeline"),
            Self::PullRequest => ("sluice.dev", "v1alpha1", "PullRequest"),
            Self::PromotionStrategy => ("sluice.dev", "v1alpha1", "PromotionStrategy"),
            Self::Rollout => ("sluice.dev", "v1alpha1", "Rollout"),
        };
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
    }

    /// What an object of this kind says to have happened with `commit`.
    fn moments(self, object: &Value, commit: &str) -> Vec<Moment> {
        let says = |pointer: &str, end: &str| {
            let text = object.pointer(pointer).and_then(Value::as_str);
            text.is_some_and(|text| text.ends_with(end))
        };
        let found: &[(Moment, bool)] = match self {
            Self::Gatekeeper => &[(Moment::Allowed, says("/status/state", "Open"))],
            Self::Gate => &[(Moment::Open, says("/status/state", "Open"))],
            Self::GatedSource => &[
                (Moment::Pending, says("/status/pending/revision", commit)),
                (Moment::Admitted, says("/status/admitted/revision", commit)),
            ],
            Self::GitRepository => {
                // The upstream is pinned to nothing.
                let pinned = says("/spec/ref/commit", commit);
                let fetched = pinned && says("/status/artifact/revision", commit);
                &[(Moment::Pinned, pinned), (Moment::Fetched, fetched)]
            }
            Self::Kustomization => {
                &[(Moment::Applied, says("/status/lastAppliedRevision", commit))]
            }
            Self::Pipeline => {
                let runs = says("/status/run/revision", commit);
                let next = format!("/status/environments/{NEXT}/admitted/0/revision");
                let last = format!("/status/environments/{LAST}/promotion");
                let merged = says(&format!("{last}/pullRequest/state"), "Merged");
                &[
                    (Moment::Pending, runs),
                    (Moment::Admitted, says(&next, commit)),
                    (
                        Moment::Completed,
                        runs && says("/status/run/completedAt", "Z"),
                    ),
                    (
                        Moment::Merged,
                        merged && says(&format!("{last}/revision"), commit),
                    ),
                ]
            }
            Self::PullRequest => {
                let is_it = says("/spec/about/revision", commit);
                &[(Moment::Opened, is_it && says("/status/state", "Open"))]
            }
            Self::PromotionStrategy => {
                let first = |field: &str| format!("/status/environments/0/{field}");
                let is_there = |field: &str| object.pointer(&first(field)).is_some();
                let proposed = says(&first("proposed/drySHA"), commit);
                &[
                    (Moment::Opened, proposed && is_there("pullRequest/number")),
                    (Moment::Admitted, proposed && is_there("order")),
                    (Moment::Merged, says(&first("active/drySHA"), commit)),
                ]
            }
            Self::Rollout => {
                let runs = says("/status/run/revision", commit);
                let is_out = object.pointer("/status/batches/1/decision").is_some();
                &[
                    (Moment::Pending, says("/status/held/reason", "GatesClosed")),
                    (Moment::Admitted, runs && is_out),
                ]
            }
        };
        let found = found.iter().filter(|(_, is)| *is);
        found.map(|(moment, _)| *moment).collect()
    }
}

#[derive(Default)]
struct Notes {
    arrivals: HashMap<(Moment, String), Instant>,
    /// The kinds that have been listed, and are watched from there on.
    watched: HashSet<Kind>,
}

/// Watches from before something is set in motion, and notes when each thing was first seen.
pub(super) struct Seen {
    notes: Arc<Mutex<Notes>>,
    _watches: JoinSet<()>,
}

impl Seen {
    /// Watches objects of these kinds for what happens, where it is about a commit with this one.
    pub(super) async fn start(
        client: &Client,
        namespace: &str,
        kinds: &[Kind],
        commit: &str,
    ) -> Result<Self> {
        let notes = Arc::<Mutex<Notes>>::default();
        let mut watches = JoinSet::new();
        for &kind in kinds {
            let resource = kind.resource();
            let api = Api::namespaced_with(client.clone(), namespace, &resource);
            watches.spawn(watch(api, kind, commit.to_owned(), Arc::clone(&notes)));
        }
        poll(PATIENCE, "the watches to begin", async || {
            let watched = notes.lock().watched.len();
            ensure!(watched == kinds.len(), "{watched} have begun");
            Ok(())
        })
        .await?;
        Ok(Self {
            notes,
            _watches: watches,
        })
    }

    /// Waits until it has happened to so many.
    pub(super) async fn all(&self, moment: Moment, n: usize) -> Result<()> {
        poll(PATIENCE, &format!("{n} to be {moment:?}"), async || {
            let count = self.instants(moment).len();
            ensure!(count >= n, "{count} are");
            Ok(())
        })
        .await
    }

    /// Waits until it has happened to the one of this name. How long after `began` that was, in seconds.
    pub(super) async fn one(&self, name: &str, moment: Moment, began: Instant) -> Result<f64> {
        let what = format!("{name} to be {moment:?}");
        poll(PATIENCE, &what, async || self.of(name, moment, began)).await
    }

    /// How long after `began` it happened to the one of this name, in seconds.
    pub(super) fn of(&self, name: &str, moment: Moment, began: Instant) -> Result<f64> {
        let at = self.instants(moment).get(name).copied();
        let at = at.with_context(|| format!("{name} was never seen {moment:?}"))?;
        Ok(at.saturating_duration_since(began).as_secs_f64())
    }

    /// How long after `began` it happened to each.
    pub(super) fn since(&self, began: Instant, moment: Moment) -> Ordered {
        let instants = self.instants(moment).into_values();
        let lengths = instants.map(|at| at.saturating_duration_since(began).as_secs_f64());
        Ordered::new(lengths.collect())
    }

    /// How long it took each from the one to the other.
    pub(super) fn between(&self, from: Moment, to: Moment) -> Ordered {
        let (from, to) = (self.instants(from), self.instants(to));
        let lengths = from.iter().filter_map(|(name, began)| {
            let ended = to.get(name)?;
            Some(ended.saturating_duration_since(*began).as_secs_f64())
        });
        Ordered::new(lengths.collect())
    }

    fn instants(&self, moment: Moment) -> HashMap<String, Instant> {
        let notes = self.notes.lock();
        let found = notes.arrivals.iter().filter(|((of, _), _)| *of == moment);
        found.map(|((_, name), at)| (name.clone(), *at)).collect()
    }
}

async fn watch(api: Api<DynamicObject>, kind: Kind, commit: String, notes: Arc<Mutex<Notes>>) {
    // The first objects come over the watch itself: after a list of its own, the watch would be opened
    // while what is measured is under way, and every moment would be late by a handshake.
    let events = watcher(api, Config::default().streaming_lists()).default_backoff();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                let name = object.name_any();
                for moment in kind.moments(&object.data, &commit) {
                    let mut notes = notes.lock();
                    let first = notes.arrivals.entry((moment, name.clone()));
                    first.or_insert_with(Instant::now);
                }
            }
            Ok(Event::InitDone) => {
                notes.lock().watched.insert(kind);
            }
            Ok(Event::Init | Event::Delete(_)) => {}
            // It goes on by itself, and what was missed comes with the next list.
            Err(error) => eprintln!("a watch of {kind:?} broke: {error}"),
        }
    }
}
