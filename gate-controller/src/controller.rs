//! The controller, put together: serving, watches, standing, leadership, workers.
//!
//! What comes in: the flags ([`settings`]), a client and a clock. What goes out: a [`Controller`] that
//! runs. What a flag means for a part is said here, and handed down: no other room knows the flags. It may
//! use every room.

use std::env;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use kube::Client;
use sluice_clusters::{Fleet, Scope};
use sluice_core::delivery::rollout;
use sluice_core::time::clock::Trust;
use sluice_egress::{Egress, Endpoints, Limits, Rules};
use sluice_gatekeepers::Clients;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::act::errands::Errands;
use crate::act::forges::Forges;
use crate::act::queue::Shared;
use crate::act::reconcile::Context;
use crate::act::reconcile::commit_status::postings::Postings;
use crate::act::reconcile::git_repository_access::readings::Readings;
use crate::act::reconcile::pull_request::at_forges::AtForges;
use crate::act::reconcile::rollout::calls::{self, Calls};
use crate::act::shard::Shard;
use crate::act::waker::Waker;
use crate::act::worker::{self, Failures, Retry, Workers};
use crate::cluster::key::Work;
use crate::cluster::kind::Kind;
use crate::controller::settings::Settings;
use crate::lease::Leadership;
use crate::observe::apps::Apps;
use crate::observe::clock::{Clock, Jumps};
use crate::observe::identity;
use crate::observe::repositories::Repositories;
use crate::observe::workloads::Workloads;
use crate::observe::world::{Standing, World};
use crate::tell::audit::Audit;
use crate::tell::counters::Counters;
use crate::tell::decisions::Decisions;
use crate::tell::events::notifications::{Notifications, Patience};
use crate::tell::events::promotions::Promotions;
use crate::tell::events::{Events, Sending, post};

mod background;
mod leading;
mod load;
mod serving;
pub mod settings;
mod standing;
mod storage;
pub mod telemetry;
mod watches;

use background::{Background, outlive};
use load::Load;
use storage::Storage;

/// How long what is under way at a shutdown may take in all. Kubernetes kills a pod after 30 seconds;
/// the audit log gets its last lines before that.
const UNDER_WAY: Duration = Duration::from_secs(20);

/// Where a pod finds the address of the API server.
const API_SERVER: &str = "KUBERNETES_SERVICE_HOST";

/// A controller that runs.
pub struct Controller {
    /// What it knows: decisions can be asked of it at any instant.
    pub world: Arc<World>,
    /// What it knows of repositories.
    pub repositories: Arc<Repositories>,
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
    /// Where webhooks of forges are taken.
    pub webhook: Option<SocketAddr>,
    /// Where artifacts are served.
    pub artifacts: Option<SocketAddr>,
    audit: Audit,
    load: Load,
    tasks: TaskTracker,
    background: Background,
}

impl Controller {
    /// How many objects are due to be looked at: none while it does not lead.
    pub fn backlog(&self) -> usize {
        self.load.backlog()
    }

    /// Whether it is looking at an object. What such a look has written may be there already, and not
    /// be counted yet.
    pub fn looking(&self) -> bool {
        self.load.queue.looking()
    }

    /// Waits until a part of it has ended that must not, which never happens but by a defect. What
    /// goes on would decide from what it no longer keeps up to date.
    ///
    /// # Errors
    /// Always: that it did.
    pub async fn broken(&self) -> anyhow::Result<()> {
        self.background.broken().await;
        bail!("a part of the controller has ended by a defect; please report it")
    }

    /// Waits until it has stopped: what was under way is finished, the Lease given back.
    pub async fn stopped(mut self) {
        self.tasks.close();
        if timeout(UNDER_WAY, self.tasks.wait()).await.is_err() {
            tracing::warn!("something is still under way, and is given up");
        }
        self.decisions.finish().await;
        self.audit.finish().await;
        self.background.end().await;
    }
}

/// What the parts of a controller share: what every look needs, and what it is made of.
#[derive(Clone)]
struct Parts {
    context: Arc<Context>,
    settings: Arc<Settings>,
    jumps: Arc<Jumps>,
    queue: Arc<Shared>,
    failures: Arc<Failures>,
    /// What evidence is gathered with.
    clients: Clients,
}

impl Deref for Parts {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl Parts {
    fn load(&self) -> Load {
        Load {
            queue: Arc::clone(&self.queue),
            leadership: self.leadership.clone(),
        }
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
    let shard = shard.of_kinds(&settings.kinds);
    let shard = shard.map_err(|why| anyhow::anyhow!("--kinds: {why}"))?;
    let jumps = Arc::new(Jumps::new(Arc::clone(&clock)));
    let world = Arc::new(world(&settings, &jumps));
    let counters = Arc::<Counters>::default();
    let (mut events, sending) = Events::new(Arc::clone(&counters), Arc::clone(&clock));
    let notified = settings.events_addr.0.is_some().then(|| events.notify());
    let audit = audit(&settings, &clock, &counters)?;
    let decisions = Decisions::new(
        Arc::clone(&world),
        Arc::clone(&clock),
        Arc::clone(&counters),
        events.clone(),
        audit.clone(),
    );
    // Hooks that do not answer delay nothing else.
    let hooks = egress(&settings, client.clone(), calls::limits())?;
    let egress = egress(&settings, client.clone(), Limits::default())?;
    let storage = storage::listen(&settings).await?;
    let served = storage.as_ref().map(Storage::address);
    let artifacts = storage
        .as_ref()
        .map(|storage| storage.store(&egress, &clock, &counters));
    let apps = Apps::new(Fleet::new(client.clone(), scope(&settings), egress.clone()));
    let (own, way) = (client.clone(), egress.clone());
    let workloads = Workloads::new(Fleet::keeping(own, scope(&settings), way, rollout::kept));
    let forges = Forges::new(client.clone(), egress.clone(), Arc::clone(&counters));
    let clients = Clients::new(client.clone(), egress);
    let concurrent = settings.concurrent.into();
    let (until, leadership) = Leadership::new(Arc::clone(&jumps));
    let queue = Arc::new(Shared::new(concurrent));
    let waker = Waker {
        world: Arc::clone(&world),
        queue: Arc::clone(&queue),
        clock: Arc::clone(&clock),
    };
    let wakes = waker.clone();
    let wake = move |work: &Work| wakes.wake(work.clone());
    let calls = Calls::new(leadership.clone(), waker.clone(), hooks);
    let context = Context {
        errands: Errands::new(leadership.clone(), wake),
        at_forges: Arc::new(AtForges::new(leadership.clone(), waker.clone())),
        postings: Arc::new(Postings::new(leadership.clone(), waker.clone())),
        repositories: Arc::new(repositories(&clock, &waker)),
        readings: Arc::new(Readings::new(leadership.clone(), waker.clone())),
        promotions: promotions(&settings, &clock)?,
        client,
        world,
        clock,
        events,
        audit,
        decisions: Arc::new(decisions),
        definitions: Arc::default(),
        apps: Arc::new(apps),
        workloads: Arc::new(workloads),
        calls: Arc::new(calls),
        forges: Arc::new(forges),
        artifacts,
        counters,
        shard,
        leadership,
        waker,
    };
    let parts = Parts {
        context: Arc::new(context),
        settings: Arc::new(settings),
        jumps,
        queue,
        failures: Arc::default(),
        clients,
    };
    let (metrics, health) = serving::serve(&parts, &shutdown).await?;
    let mut background = JoinSet::new();
    watches::follow(&parts, &mut background);
    let known = standing::follow(&parts, &mut background);
    background.spawn(post_events(&parts, sending));
    if let Some(notified) = notified {
        notify(&parts, notified, &mut background)?;
    }
    let jumps = Arc::clone(&parts.jumps);
    background.spawn(async move { jumps.notice().await });
    let decisions = Arc::clone(&parts.decisions);
    background.spawn(async move { decisions.sweep().await });

    let tasks = TaskTracker::new();
    let check = serving::serve_check(&parts, &tasks, &shutdown).await?;
    let webhook = serving::serve_hooks(&parts, &tasks, &shutdown).await?;
    let work_ended = leading::lead(&parts, until, &tasks, &mut background, &shutdown)?;
    if let (Some(storage), Some(store)) = (storage, &parts.artifacts) {
        storage.serve(store, &tasks, &shutdown);
        background.spawn(Arc::clone(store).run(parts.leadership.clone()));
    }
    let workers = Arc::new(workers(&parts));
    let working = tasks.spawn(async move {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = known => worker::work(workers, shutdown.clone()).await,
        }
        work_ended.cancel();
    });
    background.spawn(outlive(working));
    Ok(Controller {
        load: parts.load(),
        world: Arc::clone(&parts.world),
        repositories: Arc::clone(&parts.repositories),
        counters: Arc::clone(&parts.counters),
        decisions: Arc::clone(&parts.decisions),
        metrics,
        health,
        check,
        webhook,
        artifacts: served,
        audit: parts.audit.clone(),
        tasks,
        background: Background::watch(background),
    })
}

/// The world of the settings: nothing is known of it yet.
fn world(settings: &Settings, jumps: &Arc<Jumps>) -> World {
    let standing = Standing {
        trust: Trust::Good,
        identity: identity::at_start(settings.trust_unverified_identity),
    };
    let world = World::new(standing, !settings.no_cross_namespace_refs);
    let world = match settings.watch_all_namespaces {
        true => world,
        false => world.only_in(&settings.runtime_namespace),
    };
    match settings.compare_clocks {
        true => world.with_jumps(Arc::clone(jumps)),
        false => world,
    }
}

/// What is known of repositories: nothing yet. Those who need something wake the access.
fn repositories(clock: &Arc<dyn Clock>, waker: &Waker) -> Repositories {
    let (clock, waker) = (Arc::clone(clock), waker.clone());
    Repositories::new(clock, move |access| {
        waker.wake(Work::own(Kind::GitRepositoryAccess, access.clone()));
    })
}

/// The namespaces of our own cluster that are watched.
fn scope(settings: &Settings) -> Scope {
    match settings.watch_all_namespaces {
        true => Scope::All,
        false => Scope::Namespace(settings.runtime_namespace.clone()),
    }
}

/// The one way out of the cluster, under the rules of egress, which the flags open and narrow.
///
/// # Errors
/// The TLS library refuses its own defaults.
fn egress(settings: &Settings, client: Client, limits: Limits) -> anyhow::Result<Egress> {
    let rules = Rules {
        allow: settings.egress_allow.clone(),
        only: settings.egress_only.clone(),
        api_server: env::var(API_SERVER).into_iter().collect(),
    };
    let egress = Egress::limited(rules, Endpoints::new(client), limits);
    egress.context("cannot set up the way out of the cluster")
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
    started.context("--audit-log: cannot start the thread that writes it")
}

/// Who sends the notifications of promotions, where there is a notification-controller.
///
/// # Errors
/// The TLS library refuses its own defaults.
fn promotions(
    settings: &Settings,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Option<Arc<Promotions>>> {
    let Some(url) = settings.events_addr.0.clone() else {
        return Ok(None);
    };
    let (instance, clock) = (settings.pod_name.clone(), Arc::clone(clock));
    let promotions = Promotions::new(url, instance, clock, Patience::default());
    Ok(Some(Arc::new(promotions.context("--events-addr")?)))
}

fn workers(parts: &Parts) -> Workers {
    Workers {
        context: Arc::clone(&parts.context),
        queue: Arc::clone(&parts.queue),
        retry: Retry {
            first: parts.settings.min_retry_delay,
            longest: parts.settings.max_retry_delay,
        },
        failures: Arc::clone(&parts.failures),
    }
}

/// Sends events while nothing more urgent waits.
fn post_events(parts: &Parts, sending: Sending) -> impl Future<Output = ()> + Send + 'static {
    let sender = post::Sender {
        client: parts.client.clone(),
        instance: parts.settings.pod_name.clone(),
        counters: Arc::clone(&parts.counters),
        patience: post::Patience::default(),
    };
    let load = parts.load();
    async move { sender.send(sending, || load.busy()).await }
}

/// Tells notification-controller of events, where there is one.
fn notify(parts: &Parts, sending: Sending, background: &mut JoinSet<()>) -> anyhow::Result<()> {
    let Some(url) = parts.settings.events_addr.0.clone() else {
        return Ok(());
    };
    let counters = Arc::clone(&parts.counters);
    let notifications = Notifications::new(url, counters, Patience::default());
    let notifications = notifications.context("--events-addr")?;
    let instance = parts.settings.pod_name.clone();
    background.spawn(async move { notifications.send(&instance, sending).await });
    Ok(())
}
