//! The controller, put together.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use sluice_core::clock::Trust;
use sluice_core::gate::{Identity, force};
use sluice_crds::{Gate, Gatekeeper};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cache::{Change, Seen};
use crate::clock::Clock;
use crate::events::{self, Events};
use crate::evidence::Tracker;
use crate::key::Work;
use crate::lease::{self, Leadership};
use crate::metrics::Counters;
use crate::queue::{Shared, Urgency};
use crate::reconcile::{Context, Written};
use crate::settings::Settings;
use crate::shard::Shard;
use crate::waker::Waker;
use crate::worker::{Retry, Workers};
use crate::world::{Standing, World, is_respecified};
use crate::{http, identity, skew};

/// How long the start waits for the admission policies to be looked up, when that is refused.
const PATIENCE_FOR_POLICIES: Duration = Duration::from_secs(10);

/// A controller that runs.
pub struct Controller {
    /// What it knows: decisions can be asked of it at any instant.
    pub world: Arc<World>,
    /// What it counts.
    pub counters: Arc<Counters>,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// Where health is served.
    pub health: Option<SocketAddr>,
    queue: Arc<Shared<Work>>,
    tasks: TaskTracker,
    watches: JoinSet<()>,
}

impl Controller {
    /// How many objects are due to be looked at.
    pub fn backlog(&self) -> usize {
        self.queue.backlog()
    }

    /// Waits until it has stopped: what was under way is finished, the Lease given back.
    pub async fn stopped(mut self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.watches.shutdown().await;
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
    let counters = Arc::new(Counters::default());
    let queue: Arc<Shared<Work>> = Arc::default();
    let house = House {
        settings,
        client,
        clock,
        world,
        counters,
        queue,
        shard,
    };
    house.run(shutdown).await
}

/// What the parts of a controller share while it is put together.
struct House {
    settings: Settings,
    client: Client,
    clock: Arc<dyn Clock>,
    world: Arc<World>,
    counters: Arc<Counters>,
    queue: Arc<Shared<Work>>,
    shard: Shard,
}

impl House {
    async fn run(self, shutdown: CancellationToken) -> anyhow::Result<Controller> {
        let (metrics, health) = self.serve(&shutdown).await?;
        let mut watches = JoinSet::new();
        self.watch_objects(&mut watches)?;
        let policies_known = self.watch_identity(&mut watches);
        let clock_known = self.compare_clocks(&mut watches);
        let (events, sending) = Events::new(Arc::clone(&self.counters));
        let busy = Arc::clone(&self.queue);
        watches.spawn(events::send(
            self.client.clone(),
            self.settings.pod_name.clone(),
            sending,
            move || busy.backlog() > 0,
            Arc::clone(&self.counters),
        ));
        let tasks = TaskTracker::new();
        let Self {
            settings,
            client,
            clock,
            world,
            counters,
            queue,
            shard,
        } = self;
        let (leadership, work_ended) = lead(&settings, &client, &clock, &tasks, &shutdown)?;
        let workers = Arc::new(Workers {
            context: Context {
                client,
                world: Arc::clone(&world),
                clock,
                events,
                counters: Arc::clone(&counters),
                shard,
                written: Written::default(),
            },
            queue: Arc::clone(&queue),
            retry: Retry {
                first: settings.min_retry_delay,
                longest: settings.max_retry_delay,
            },
            failures: Mutex::default(),
        });
        tasks.spawn(work(
            workers,
            settings.concurrent,
            leadership,
            [policies_known, clock_known],
            shutdown,
            work_ended,
        ));
        Ok(Controller {
            world,
            counters,
            metrics,
            health,
            queue,
            tasks,
            watches,
        })
    }

    async fn serve(
        &self,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<(Option<SocketAddr>, Option<SocketAddr>)> {
        let mut bound = [None, None];
        if let Some(address) = self.settings.metrics_addr.0 {
            let queue = Arc::clone(&self.queue);
            let registry = self
                .counters
                .registry(Arc::clone(&self.world), move || queue.backlog());
            let served = http::serve(address, http::metrics(registry), shutdown.clone()).await;
            bound[0] = Some(
                served.with_context(|| format!("--metrics-addr: cannot listen at {address}"))?,
            );
        }
        if let Some(address) = self.settings.health_addr.0 {
            let world = Arc::clone(&self.world);
            let ready = move || {
                if world.is_synced() {
                    Ok(())
                } else {
                    Err("the caches have not synced yet".to_owned())
                }
            };
            let served = http::serve(address, http::health(ready), shutdown.clone()).await;
            bound[1] =
                Some(served.with_context(|| format!("--health-addr: cannot listen at {address}"))?);
        }
        let [metrics, health] = bound;
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            metrics = metrics.map(tracing::field::display),
            health = health.map(tracing::field::display),
            "starting"
        );
        Ok((metrics, health))
    }

    fn watch_objects(&self, watches: &mut JoinSet<()>) -> anyhow::Result<()> {
        let gates: Api<DeserializeGuard<Gate>> = self.api();
        let gatekeepers: Api<DeserializeGuard<Gatekeeper>> = self.api();
        let (world, queue, clock) = (
            Arc::clone(&self.world),
            Arc::clone(&self.queue),
            Arc::clone(&self.clock),
        );
        watches.spawn(async move {
            let wake = |change: Change<'_, Gate>| {
                let key = change.key;
                let gate = change.now.and_then(Seen::object).map(AsRef::as_ref);
                world.note_gate(key, gate);
                let urgency = match gate {
                    Some(gate) if force::is_asked_for(gate) => Urgency::Person,
                    _ => Urgency::Gate,
                };
                queue.push(Work::Gate(key.clone()), urgency, clock.now());
            };
            world.gates.follow(gates, Config::default(), wake).await;
        });
        let tracker = self.tracker()?;
        let (world, waker) = (Arc::clone(&self.world), self.waker());
        watches.spawn(async move {
            let wake = |change: Change<'_, Gatekeeper>| {
                match change.now.and_then(Seen::object) {
                    Some(object) => tracker.track(object),
                    None => {
                        tracker.forget(change.key);
                        world.forget_gatekeeper(change.key);
                    }
                }
                waker.gatekeeper(change.key, is_respecified(&change));
            };
            world
                .gatekeepers
                .follow(gatekeepers, Config::default(), wake)
                .await;
        });
        Ok(())
    }

    fn tracker(&self) -> anyhow::Result<Tracker> {
        let waker = self.waker();
        Tracker::new(
            self.client.clone(),
            &self.settings.egress_allow,
            Arc::clone(&self.clock),
            Arc::clone(&self.world.evidence),
            move |key| waker.gatekeeper(key, true),
        )
    }

    fn waker(&self) -> Waker {
        Waker {
            world: Arc::clone(&self.world),
            queue: Arc::clone(&self.queue),
            clock: Arc::clone(&self.clock),
        }
    }

    /// Watches who verifies annotations. What it returns completes when that is known.
    fn watch_identity(&self, watches: &mut JoinSet<()>) -> watch::Receiver<bool> {
        let (known, receiver) = watch::channel(false);
        let (world, waker, client) = (Arc::clone(&self.world), self.waker(), self.client.clone());
        let trusted = self.settings.trust_unverified_identity;
        watches.spawn(async move {
            let policies = identity::Policies::default();
            let tell = |identity| {
                if world.stand(|standing| standing.identity = identity) {
                    tracing::info!(?identity, "{}", identity_in_words(identity));
                    waker.everything();
                }
            };
            let first = async {
                let waited = tokio::time::timeout(PATIENCE_FOR_POLICIES, policies.synced()).await;
                let identity = world.standing().identity;
                if waited.is_err() || identity != Identity::Verified {
                    tracing::info!(?identity, "{}", identity_in_words(identity));
                }
                known.send_replace(true);
            };
            tokio::join!(policies.follow(client, trusted, tell), first);
        });
        receiver
    }

    /// Compares the clocks now and then. What it returns completes after the first time.
    fn compare_clocks(&self, watches: &mut JoinSet<()>) -> watch::Receiver<bool> {
        let (known, receiver) = watch::channel(!self.settings.compare_clocks);
        if !self.settings.compare_clocks {
            return receiver;
        }
        let (world, waker, client, clock) = (
            Arc::clone(&self.world),
            self.waker(),
            self.client.clone(),
            Arc::clone(&self.clock),
        );
        watches.spawn(async move {
            loop {
                if let Some(trust) = skew::compare(&client, clock.as_ref()).await
                    && !skew::is_as_good(world.standing().trust, trust)
                {
                    world.stand(|standing| standing.trust = trust);
                    tracing::info!(?trust, "the clock was compared with the API server's");
                    waker.everything();
                }
                known.send_replace(true);
                skew::pause().await;
            }
        });
        receiver
    }

    fn api<K>(&self) -> Api<DeserializeGuard<K>>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        if self.settings.watch_all_namespaces {
            Api::all(self.client.clone())
        } else {
            Api::namespaced(self.client.clone(), &self.settings.runtime_namespace)
        }
    }
}

/// Leads by a Lease, or alone. The token it returns is to be cancelled when the last worker has
/// stopped: only then is the Lease given back.
fn lead(
    settings: &Settings,
    client: &Client,
    clock: &Arc<dyn Clock>,
    tasks: &TaskTracker,
    shutdown: &CancellationToken,
) -> anyhow::Result<(Leadership, CancellationToken)> {
    let (until, leadership) = Leadership::new();
    let work_ended = CancellationToken::new();
    if settings.enable_leader_election && !settings.standby {
        let terms = lease::Terms {
            namespace: settings.runtime_namespace.clone(),
            name: lease::name(settings.watch_label_selector.as_deref()),
            identity: format!("{}_{}", settings.pod_name, lease::nonce(clock.now())),
            duration: settings.leader_election_lease_duration,
            renew_deadline: settings.leader_election_renew_deadline,
            retry_period: settings.leader_election_retry_period,
        };
        terms.check().map_err(anyhow::Error::msg)?;
        let (client, clock, ended) = (client.clone(), Arc::clone(clock), work_ended.clone());
        tasks.spawn(async move {
            lease::hold(client, terms, clock.as_ref(), &until, &ended).await;
        });
    } else {
        let for_ever = Instant::now() + Duration::from_secs(100 * 365 * 86_400);
        until.send_replace((!settings.standby).then_some(for_ever));
        let shutdown = shutdown.clone();
        tasks.spawn(async move {
            // The sender is what keeps the leadership.
            shutdown.cancelled().await;
            drop(until);
        });
    }
    Ok((leadership, work_ended))
}

/// Has the workers work, once everything that decisions are made from is there.
async fn work(
    workers: Arc<Workers>,
    concurrent: u16,
    leadership: Leadership,
    known: [watch::Receiver<bool>; 2],
    shutdown: CancellationToken,
    work_ended: CancellationToken,
) {
    let world = Arc::clone(&workers.context.world);
    let ready = async {
        world.synced().await;
        for mut known in known {
            let _ = known.wait_for(|known| *known).await;
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = ready => {
            tracing::info!("every cache has synced");
            let mut all = JoinSet::new();
            for _ in 0..concurrent {
                all.spawn(Arc::clone(&workers).work(leadership.clone(), shutdown.clone()));
            }
            while all.join_next().await.is_some() {}
        }
    }
    work_ended.cancel();
}

fn identity_in_words(identity: Identity) -> &'static str {
    match identity {
        Identity::Verified => "admission policies verify who forces gates",
        Identity::Trusted => {
            "no admission policy verifies who forces gates; forces count all the same, as \
             --trust-unverified-identity says"
        }
        Identity::Unverified => {
            "no admission policy verifies who forces gates, so forces do not count; install the \
             policies of the chart, or run with --trust-unverified-identity"
        }
    }
}
