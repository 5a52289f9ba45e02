//! The controller, put together: serving, watches, standing, leadership, workers.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, bail};
use kube::Client;
use sluice_core::clock::Trust;
use sluice_gatekeepers::Egress;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::artifacts::Store;
use crate::audit::Audit;
use crate::clock::Clock;
use crate::decisions::Decisions;
use crate::definitions::Definitions;
use crate::events::Events;
use crate::events::notifications::{Notifications, Patience};
use crate::key::Work;
use crate::metrics::Counters;
use crate::queue::Shared;
use crate::reconcile::{Context, Written};
use crate::settings::Settings;
use crate::shard::Shard;
use crate::waker::Waker;
use crate::worker::{self, Retry, Workers};
use crate::world::{Standing, World};
use crate::{events, evidence, identity, lease};

mod serving;
mod standing;
mod storage;
mod watches;

use storage::Storage;

/// A controller that runs.
pub struct Controller {
    /// What it knows: decisions can be asked of it at any instant.
    pub world: Arc<World>,
    /// What it counts.
    pub counters: Arc<Counters>,
    /// What it has answered to those who asked.
    pub decisions: Arc<Decisions>,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// Where health is served.
    pub health: Option<SocketAddr>,
    /// Where those who ask are answered.
    pub check: Option<SocketAddr>,
    /// Where artifacts are served.
    pub artifacts: Option<SocketAddr>,
    audit: Audit,
    queue: Arc<Shared<Work>>,
    tasks: TaskTracker,
    background: Background,
}

impl Controller {
    /// How many objects are due to be looked at.
    pub fn backlog(&self) -> usize {
        self.queue.backlog()
    }

    /// Whether it is looking at an object. What such a look has written may be there already, and not
    /// be counted yet.
    pub fn looking(&self) -> bool {
        self.queue.looking()
    }

    /// Waits until a part of it has ended that must not, which never happens but by a defect. What
    /// goes on would decide from what it no longer keeps up to date.
    ///
    /// # Errors
    /// Always: that it did.
    pub async fn broken(&self) -> anyhow::Result<()> {
        self.background.broken.cancelled().await;
        bail!("a part of the controller has ended by a defect; please report it")
    }

    /// Waits until it has stopped: what was under way is finished, the Lease given back.
    pub async fn stopped(mut self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.decisions.finish().await;
        self.audit.finish().await;
        self.background.watching.abort();
        // It ends by being aborted.
        let _ = (&mut self.background.watching).await;
    }
}

/// What runs beside the workers, and must not end before they do.
struct Background {
    watching: JoinHandle<()>,
    broken: CancellationToken,
}

impl Background {
    fn watch(mut parts: JoinSet<()>) -> Self {
        let broken = CancellationToken::new();
        let told = broken.clone();
        let watching = tokio::spawn(async move {
            parts.join_next().await;
            told.cancel();
        });
        Self { watching, broken }
    }
}

/// What the parts of a controller share.
#[derive(Clone)]
struct Parts {
    settings: Arc<Settings>,
    client: Client,
    clock: Arc<dyn Clock>,
    world: Arc<World>,
    counters: Arc<Counters>,
    queue: Arc<Shared<Work>>,
    written: Arc<Written>,
    events: Events,
    audit: Audit,
    decisions: Arc<Decisions>,
    definitions: Arc<Definitions>,
    egress: Egress,
    /// None: artifacts are not stored here.
    artifacts: Option<Arc<Store>>,
    shard: Shard,
    /// Until when this replica may write; empty before it has asked to.
    leadership: Arc<OnceLock<lease::Leadership>>,
}

impl Parts {
    fn waker(&self) -> Waker {
        Waker {
            world: Arc::clone(&self.world),
            queue: Arc::clone(&self.queue),
            clock: Arc::clone(&self.clock),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

/// Starts a controller that runs until `shutdown`.
///
/// # Errors
/// A flag that makes no sense, or an address that cannot be listened at. Everything else is
/// waited for.
pub async fn start(
    settings: Settings,
    client: Client,
    clock: Arc<dyn Clock>,
    shutdown: CancellationToken,
) -> anyhow::Result<Controller> {
    let shard = Shard::parse(settings.watch_label_selector.as_deref())
        .map_err(|why| anyhow::anyhow!("--watch-label-selector: {why}"))?;
    let standing = Standing {
        trust: Trust::Good,
        identity: identity::at_start(settings.trust_unverified_identity),
    };
    let world = Arc::new(World::new(standing, !settings.no_cross_namespace_refs));
    let counters = Arc::<Counters>::default();
    let (events, sending) = Events::new(Arc::clone(&counters), Arc::clone(&clock));
    let audit = audit(&settings, &clock, &counters)?;
    let decisions = Decisions::new(
        Arc::clone(&world),
        Arc::clone(&clock),
        Arc::clone(&counters),
        events.clone(),
        audit.clone(),
    );
    let egress = evidence::egress(&settings.egress_allow)?;
    let storage = storage::listen(&settings).await?;
    let served = storage.as_ref().map(Storage::address);
    let artifacts = storage
        .as_ref()
        .map(|storage| storage.store(&egress, &clock, &counters));
    let parts = Parts {
        world,
        settings: Arc::new(settings),
        client,
        clock,
        counters,
        queue: Arc::default(),
        written: Arc::default(),
        events,
        audit,
        decisions: Arc::new(decisions),
        definitions: Arc::default(),
        egress,
        artifacts,
        shard,
        leadership: Arc::default(),
    };
    let (metrics, health) = serving::serve(&parts, &shutdown).await?;
    let mut background = JoinSet::new();
    watches::follow(&parts, &mut background);
    let known = standing::follow(&parts, &mut background);
    let notifications = notify(&parts, &mut background)?;
    background.spawn(send_events(&parts, sending, notifications));
    let decisions = Arc::clone(&parts.decisions);
    background.spawn(async move { decisions.sweep().await });

    let tasks = TaskTracker::new();
    let check = serving::serve_check(&parts, &tasks, &shutdown).await?;
    let (leadership, work_ended) = lead(&parts, &tasks, &shutdown)?;
    parts.leadership.get_or_init(|| leadership.clone());
    if let (Some(storage), Some(store)) = (storage, &parts.artifacts) {
        storage.serve(store, &tasks, &shutdown);
        background.spawn(Arc::clone(store).run(leadership.clone()));
    }
    let workers = Arc::new(workers(&parts));
    let concurrent = parts.settings.concurrent;
    tasks.spawn(async move {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = known => worker::work(workers, concurrent, leadership, shutdown.clone()).await,
        }
        work_ended.cancel();
    });
    Ok(Controller {
        world: parts.world,
        counters: parts.counters,
        decisions: parts.decisions,
        metrics,
        health,
        check,
        artifacts: served,
        audit: parts.audit,
        queue: parts.queue,
        tasks,
        background: Background::watch(background),
    })
}

/// The audit log of the settings.
fn audit(
    settings: &Settings,
    clock: &Arc<dyn Clock>,
    counters: &Arc<Counters>,
) -> anyhow::Result<Audit> {
    let Some(destination) = settings.audit_log.clone() else {
        return Ok(Audit::default());
    };
    let (clock, counters) = (Arc::clone(clock), Arc::clone(counters));
    let (required, by) = (settings.audit_required, settings.pod_name.as_str());
    let started = Audit::start(destination, required, by, clock, counters);
    started.context("--audit-log: no thread can be had to write it")
}

fn workers(parts: &Parts) -> Workers {
    let (parts, waker) = (parts.clone(), parts.waker());
    Workers {
        retry: Retry {
            first: parts.settings.min_retry_delay,
            longest: parts.settings.max_retry_delay,
        },
        context: Context {
            client: parts.client,
            world: parts.world,
            clock: parts.clock,
            events: parts.events,
            audit: parts.audit,
            definitions: parts.definitions,
            artifacts: parts.artifacts,
            counters: parts.counters,
            shard: parts.shard,
            written: parts.written,
            decisions: parts.decisions,
            waker,
        },
        queue: parts.queue,
        failures: std::sync::Mutex::default(),
    }
}

/// Sends events while nothing more urgent waits.
fn send_events(
    parts: &Parts,
    sending: events::Sending,
    notifications: Option<Notifications>,
) -> impl Future<Output = ()> + Send + 'static {
    let Parts {
        client,
        settings,
        queue,
        counters,
        ..
    } = parts.clone();
    let busy = move || queue.backlog() > 0;
    async move {
        let notifications = notifications.as_ref();
        let instance = &settings.pod_name;
        events::send(client, instance, sending, busy, &counters, notifications).await;
    }
}

/// Tells notification-controller of events, where there is one.
fn notify(parts: &Parts, background: &mut JoinSet<()>) -> anyhow::Result<Option<Notifications>> {
    let Some(url) = parts.settings.events_addr.0.clone() else {
        return Ok(None);
    };
    let (counters, patience) = (Arc::clone(&parts.counters), Patience::default());
    let (notifications, sending) =
        Notifications::new(url, counters, patience).context("--events-addr")?;
    background.spawn(sending);
    Ok(Some(notifications))
}

/// Leads by a Lease, or alone. The token is to be cancelled when the last worker has stopped: only
/// then is the Lease given back.
fn lead(
    parts: &Parts,
    tasks: &TaskTracker,
    shutdown: &CancellationToken,
) -> anyhow::Result<(lease::Leadership, CancellationToken)> {
    let settings = &parts.settings;
    let work_ended = CancellationToken::new();
    if !settings.enable_leader_election || settings.standby {
        let shutdown = shutdown.clone();
        let (leadership, leading) = lease::without(!settings.standby);
        tasks.spawn(async move {
            shutdown.cancelled().await;
            drop(leading);
        });
        return Ok((leadership, work_ended));
    }
    let terms = lease::Terms::of(settings, parts.clock.now())?;
    let (client, clock, ended) = (
        parts.client.clone(),
        Arc::clone(&parts.clock),
        work_ended.clone(),
    );
    let (until, leadership) = lease::Leadership::new();
    tasks.spawn(async move { lease::hold(client, terms, clock.as_ref(), &until, &ended).await });
    Ok((leadership, work_ended))
}
