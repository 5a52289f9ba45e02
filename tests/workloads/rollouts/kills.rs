//! Controllers that are killed between two requests of a rollout: whatever the killed one has done and not told
//! anybody, each act is done once, and pods stay within their bounds.
//!
//! A row is one request, before which or after which the process is killed. Then it is started again, or another
//! replica leads.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use http::Method;
use kube::{Client, Config};
use rstest::rstest;
use serde_json::{Value, json};
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::RollingState;
use sluice_tests::Writes;
use sluice_tests::keeper::{Keeper, Next, Point, after, before};
use sluice_tests::progress::Stderr;
use sluice_tests::prometheus::{Access, Programs, Prometheus};
use sluice_tests::proxy::Proxy;
use sluice_tests::workloads::{Counts, Extremes, Workload};

use super::hooks::Hooks;
use super::play::{Play, is_blocked, of_pair};

mod in_place;

/// The Rollout, and its status.
const ITSELF: &str = "/rollouts/web?";
const STATUS: &str = "/rollouts/web/status";
/// The Deployments.
const OLD: &str = "/deployments/web-v1";
const NEW: &str = "/deployments/web-v2";

/// To which server a request goes.
#[derive(Clone, Copy)]
enum To {
    Own,
    Hooks,
}

/// A Rollout whose controller and whose hooks are reached by lines.
struct Scene {
    play: Play,
    keeper: Keeper,
    line: Proxy,
    hooks: Hooks,
}

impl Scene {
    async fn open(next: Next) -> Result<Self> {
        let play = Play::new("kills").await?;
        play.gate("open").await?;
        let hooks = Hooks::answer(&[200]).await?;
        let (client, namespace) = (play.stage.client(), play.stage.namespace());
        let mut keeper = Keeper::new(client, namespace, next).await?;
        let way = Client::try_from(Config::new(hooks.url.parse()?))?;
        let line = keeper.line().beside(way).await?;
        keeper.start(None).await?;
        Ok(Self {
            play,
            keeper,
            line,
            hooks,
        })
    }

    fn dies_at(&self, to: To, point: &Point) {
        match to {
            To::Own => Keeper::dies_at(self.keeper.line(), point),
            To::Hooks => Keeper::dies_at(&self.line, point),
        }
    }

    /// A pair, of which the new one is paused: it is let go when the run starts.
    async fn pair(&self) -> Result<(Workload, Workload)> {
        let (old, new) = self.play.pair(4).await?;
        new.set(json!({"paused": true})).await?;
        new.looked_at().await?;
        Ok((old, new))
    }

    /// Two batches, with hooks of each kind that is called once a moment.
    fn plan(&self) -> Value {
        let kinds = [
            "initialize-rollout",
            "post-batch-rollout",
            "finalize-rollout",
        ];
        let hook = |kind| json!({"type": kind, "name": kind, "url": self.line.url()});
        json!({"numBatches": 2, "rolloutWebhooks": kinds.map(hook)})
    }

    /// The batches that may go out are out, and it waits for people.
    async fn half(&self, spec: Value) -> Result<()> {
        self.play.rollout(spec).await?;
        self.play.until("it to wait", is_blocked).await?;
        Ok(())
    }

    async fn status(&self) -> Result<RolloutStatus> {
        let status = self.play.rollouts().get("web").await?.status;
        status.context("no status")
    }

    /// It is killed, and goes on.
    async fn killed(&mut self) -> Result<()> {
        self.keeper.dead().await?;
        self.keeper.goes_on().await
    }

    /// Waits until the run has succeeded, and nothing is left of it.
    async fn succeeds(&self) -> Result<()> {
        let status = self.play.succeeds().await?;
        let states: Vec<_> = status.history.iter().map(|run| run.state).collect();
        assert_eq!(states, [RollingState::RolloutSucceed]);
        self.play.is_free("web").await
    }

    /// How many writes to an object the API server has taken, of all replicas.
    fn writes(&self, of: &str) -> usize {
        self.keeper.carried_out(&Method::PATCH, of, "")
    }

    /// So many hooks were called, each under one key, and so many of the calls were made again.
    fn called(&self, hooks: usize, again: usize) {
        let calls = self.hooks.calls();
        let moments = calls.iter().map(|(_, it)| (&it["phase"], &it["batch"]));
        let moments: BTreeSet<_> = moments.map(|it| format!("{it:?}")).collect();
        let keys: BTreeSet<_> = calls.iter().map(|(key, _)| key).collect();
        let counts = (moments.len(), keys.len(), calls.len());
        assert_eq!(counts, (hooks, hooks, hooks + again), "{calls:#?}");
    }
}

/// While two of four go out, at most those are too many.
const OF_PAIR: Extremes = Extremes {
    fewest_ready: 4,
    most: 6,
};

#[rstest]
#[case::before_the_status(To::Own, before(Method::PATCH, STATUS, r#""initializing""#), 0)]
#[case::after_the_status(To::Own, after(Method::PATCH, STATUS, r#""initializing""#), 0)]
#[case::before_the_finalizer(To::Own, before(Method::PATCH, ITSELF, r#""finalizers":["#), 0)]
#[case::after_the_finalizer(To::Own, after(Method::PATCH, ITSELF, r#""finalizers":["#), 0)]
#[case::before_the_claim(To::Own, before(Method::PATCH, NEW, ""), 0)]
#[case::after_the_claim(To::Own, after(Method::PATCH, NEW, ""), 0)]
#[case::before_a_hook(To::Hooks, before(Method::POST, "/", "initializing"), 0)]
#[case::after_a_hook(To::Hooks, after(Method::POST, "/", "initializing"), 1)]
#[case::before_it_is_recorded(To::Own, before(Method::PATCH, STATUS, r#""hooks":[{"#), 1)]
#[case::after_it_is_recorded(To::Own, after(Method::PATCH, STATUS, r#""hooks":[{"#), 0)]
#[case::before_the_start(To::Own, before(Method::PATCH, NEW, r#""paused":false"#), 0)]
#[case::after_the_start(To::Own, after(Method::PATCH, NEW, r#""paused":false"#), 0)]
#[case::before_a_batch(To::Own, before(Method::PATCH, STATUS, r#""batchInRolling""#), 0)]
#[case::after_a_batch(To::Own, after(Method::PATCH, STATUS, r#""batchInRolling""#), 0)]
#[case::before_its_first_half(To::Own, before(Method::PATCH, NEW, r#""replicas":2"#), 0)]
#[case::after_its_first_half(To::Own, after(Method::PATCH, NEW, r#""replicas":2"#), 0)]
#[case::before_its_second_half(To::Own, before(Method::PATCH, OLD, r#""replicas":2"#), 0)]
#[case::after_its_second_half(To::Own, after(Method::PATCH, OLD, r#""replicas":2"#), 0)]
#[case::before_the_last_hook(To::Hooks, before(Method::POST, "/", "finalising"), 0)]
#[case::after_the_last_hook(To::Hooks, after(Method::POST, "/", "finalising"), 1)]
#[case::before_the_end(To::Own, before(Method::PATCH, STATUS, r#""rolloutSucceed""#), 0)]
#[case::after_the_end(To::Own, after(Method::PATCH, STATUS, r#""rolloutSucceed""#), 0)]
#[case::before_a_release(To::Own, before(Method::PATCH, OLD, r#""sluice.dev/rollout":null"#), 0)]
#[case::after_a_release(To::Own, after(Method::PATCH, OLD, r#""sluice.dev/rollout":null"#), 0)]
#[case::before_it_is_free(To::Own, before(Method::PATCH, ITSELF, r#""finalizers":[]"#), 0)]
#[case::after_it_is_free(To::Own, after(Method::PATCH, ITSELF, r#""finalizers":[]"#), 0)]
#[tokio::test]
async fn a_pair_is_rolled_out_once(
    #[case] to: To,
    #[case] point: Point,
    #[case] again: usize,
    #[values(Next::Restart, Next::Standby)] next: Next,
) -> Result<()> {
    let mut scene = Scene::open(next).await?;
    let (old, new) = scene.pair().await?;
    let serving = scene.play.workloads.serving().await?;
    scene.dies_at(to, &point);
    scene.play.rollout(of_pair(&scene.plan())).await?;
    scene.killed().await?;
    scene.succeeds().await?;
    new.has(Counts::all(4)).await?;
    old.has(Counts::all(0)).await?;
    // Claimed, started, two batches, released; the other one has nothing to be started.
    assert_eq!((scene.writes(NEW), scene.writes(OLD)), (5, 4));
    assert_eq!(scene.writes(ITSELF), 2);
    scene.called(4, again);
    serving.were(OF_PAIR).await
}

/// The claims on the workloads say what the status has said. Hooks are called again, under the keys that they had.
#[rstest]
#[tokio::test]
async fn a_pair_is_rolled_out_once_also_where_the_status_is_lost(
    #[values(Next::Restart, Next::Standby)] next: Next,
) -> Result<()> {
    let mut scene = Scene::open(next).await?;
    let (old, new) = scene.pair().await?;
    let serving = scene.play.workloads.serving().await?;
    let half = after(Method::PATCH, NEW, r#""replicas":2"#);
    scene.dies_at(To::Own, &half);
    scene.play.rollout(of_pair(&scene.plan())).await?;
    scene.keeper.dead().await?;
    let before = scene.status().await?.run.context("no run")?;
    let lost = json!({"status": null});
    scene.play.rollouts().merge_status("web", lost).await?;
    scene.keeper.goes_on().await?;
    scene.succeeds().await?;
    let now = scene.status().await?.run.context("no run")?;
    assert_eq!(now.id, before.id);
    new.has(Counts::all(4)).await?;
    old.has(Counts::all(0)).await?;
    assert_eq!((scene.writes(NEW), scene.writes(OLD)), (5, 4));
    scene.called(4, 1);
    serving.were(OF_PAIR).await
}

#[rstest]
#[case::before_the_status(To::Own, before(Method::PATCH, STATUS, r#""rolloutDeleting""#), 0)]
#[case::after_the_status(To::Own, after(Method::PATCH, STATUS, r#""rolloutDeleting""#), 0)]
#[case::before_old_pods_come(To::Own, before(Method::PATCH, OLD, r#""replicas":4"#), 0)]
#[case::after_old_pods_come(To::Own, after(Method::PATCH, OLD, r#""replicas":4"#), 0)]
#[case::before_new_pods_go(To::Own, before(Method::PATCH, NEW, r#""replicas":0"#), 0)]
#[case::after_new_pods_go(To::Own, after(Method::PATCH, NEW, r#""replicas":0"#), 0)]
#[case::before_the_hook(To::Hooks, before(Method::POST, "/", "rolloutDeleting"), 0)]
#[case::after_the_hook(To::Hooks, after(Method::POST, "/", "rolloutDeleting"), 1)]
#[case::after_a_release(To::Own, after(Method::PATCH, NEW, "aborted"), 0)]
#[case::before_it_is_free(To::Own, before(Method::PATCH, ITSELF, r#""finalizers":[]"#), 0)]
#[case::after_it_is_free(To::Own, after(Method::PATCH, ITSELF, r#""finalizers":[]"#), 0)]
#[tokio::test]
async fn a_pair_is_brought_back_once(
    #[case] to: To,
    #[case] point: Point,
    #[case] again: usize,
    #[values(Next::Restart, Next::Standby)] next: Next,
) -> Result<()> {
    let mut scene = Scene::open(next).await?;
    let (old, new) = scene.pair().await?;
    let serving = scene.play.workloads.serving().await?;
    let mut plan = scene.plan();
    (plan["lastBatchToRollout"], plan["revertOnDelete"]) = (json!(0), json!(true));
    scene.half(of_pair(&plan)).await?;
    scene.dies_at(to, &point);
    scene.play.delete().await?;
    scene.killed().await?;
    scene.play.gone().await?;
    old.has(Counts::all(4)).await?;
    new.has(Counts::all(0)).await?;
    // Claimed, started, out, back, released.
    assert_eq!((scene.writes(NEW), scene.writes(OLD)), (5, 4));
    scene.called(3, again);
    serving.were(OF_PAIR).await
}

/// Since when a metric is good is in the status: a standby, which has measured as well, does not wait for that again.
/// Where nobody has measured for a while, the row begins anew.
#[rstest]
#[tokio::test]
async fn a_metric_is_good_since_the_same_instant(
    #[values(
        before(Method::PATCH, STATUS, r#""withinSince""#),
        after(Method::PATCH, STATUS, r#""withinSince""#)
    )]
    point: Point,
    #[values(Next::Restart, Next::Standby)] next: Next,
) -> Result<()> {
    let mut scene = Scene::open(next).await?;
    let (_, new) = scene.pair().await?;
    let programs = Programs::ensure(&Stderr::new())?;
    let prometheus = Prometheus::start(&programs, Access::default()).await?;
    prometheus.set("errors", 0.01).await?;
    let gatekeeper = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper", "metadata": {"name": "errors"},
        "spec": {"metric": {
            "address": prometheus.url(), "query": "errors", "range": {"max": 0.05}, "interval": "5s",
        }},
    });
    scene.play.stage.apply(&gatekeeper.to_string()).await?;
    let metric = json!({"name": "errors", "interval": "10s"});
    let plan = json!({"numBatches": 1, "canaryMetric": [metric]});
    scene.dies_at(To::Own, &point);
    scene.play.rollout(of_pair(&plan)).await?;
    scene.keeper.dead().await?;
    let since = |status: &RolloutStatus| status.metrics.first()?.within_since.clone();
    let before = since(&scene.status().await?);
    scene.keeper.goes_on().await?;
    scene.succeeds().await?;
    let status = scene.status().await?;
    let now = since(&status).context("it has not been good")?;
    let before = before.unwrap_or(now.clone());
    match next {
        Next::Standby => assert_eq!(before, now),
        Next::Restart => ensure!(before <= now, "{before:?}, {now:?}"),
    }
    let done = status.batches[0].done.as_ref().context("not done")?.0;
    ensure!(done.duration_since(now.0).as_secs() >= 10, "{status:?}");
    new.has(Counts::all(4)).await?;
    assert_eq!((scene.writes(NEW), scene.writes(OLD)), (4, 3));
    Ok(())
}
