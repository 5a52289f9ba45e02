//! Several controllers, and several Rollouts, in one namespace.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use http::{Method, StatusCode};
use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::RollingState;
use sluice_tests::controller::{InProcess, Process};
use sluice_tests::proxy::{Fault, Proxy};
use sluice_tests::workloads::{Counts, Extremes, Kind, Workload};
use sluice_tests::{DEADLINE, poll};

use super::hooks::Hooks;
use super::play::{Play, in_place, is, is_blocked, of_pair, updated};

const OLD: &str = "/deployments/web-v1";
const NEW: &str = "/deployments/web-v2";
/// By which controllers share the work.
const SHARD: &str = "sharding.fluxcd.io/key";

/// A leader that is given up after seconds, and not because two cores are busy for one.
const SHORT: [&str; 4] = [
    "--enable-leader-election",
    "--leader-election-lease-duration=6s",
    "--leader-election-renew-deadline=5s",
    "--leader-election-retry-period=500ms",
];

/// The leader has sent the first half of a batch, and sleeps; another one leads, and does it. The write that
/// comes late changes nothing, and the sleeper does nothing when it wakes.
#[tokio::test]
async fn a_leader_that_slept_writes_nothing_more() -> Result<()> {
    let play = Play::new("slept").await?;
    let (old, new) = play.pair(4).await?;
    play.gate("open").await?;
    let serving = play.workloads.serving().await?;
    let line = Proxy::start(play.stage.client()).await?;
    let (own, namespace) = (line.kubeconfig()?, play.stage.namespace());
    let one = Process::start(&own, namespace, "one", &SHORT).await?;
    one.leads(true).await?;
    let others = play.stage.cluster().kubeconfig();
    let two = Process::start(others, namespace, "two", &SHORT).await?;
    two.has_synced().await?;
    let half = r#""replicas":2"#;
    line.order_for(Fault::Hold, Method::PATCH, (NEW, half), 1);
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    line.came().await?;
    one.pause()?;
    two.leads(true).await?;
    play.succeeds().await?;
    // What the end of the run writes to them is written, too.
    play.is_free("web").await?;
    new.has(Counts::all(4)).await?;
    old.has(Counts::all(0)).await?;

    line.let_go();
    poll(DEADLINE, "the late write", async || {
        let answers = line.answers(&Method::PATCH, NEW, half);
        ensure!(answers == [StatusCode::CONFLICT], "{answers:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    let sent = line.count(&Method::PATCH, "/deployments/");
    one.resume()?;
    one.leads(false).await?;
    two.terminate().await?;
    // It leads again, and finds nothing to do.
    poll(DEADLINE, "the first one to lead again", async || {
        let led = one.log()?;
        let led = led.iter().filter(|line| line["leads"] == true).count();
        ensure!(led == 2, "{led}");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    play.stage.apply(LATER).await?;
    poll(DEADLINE, "the first one to work", async || {
        let gate = play.stage.gates().get("later").await?;
        gate.status.context("no status")
    })
    .await?;
    assert_eq!(line.count(&Method::PATCH, "/deployments/"), sent);
    new.has(Counts::all(4)).await?;
    old.has(Counts::all(0)).await?;
    let bounds = Extremes {
        fewest_ready: 4,
        most: 6,
    };
    serving.were(bounds).await
}

/// A gate that nobody has seen before.
const LATER: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: later}
spec: {default: open}
";

/// Two that both believe that they lead.
struct Leaders([(Proxy, InProcess); 2]);

impl Leaders {
    async fn start(play: &Play) -> Result<Self> {
        let start = async || {
            let line = Proxy::start(play.stage.client()).await?;
            let mut settings = play.stage.settings();
            settings.egress_allow = vec!["127.0.0.0/8".parse()?];
            let leader = InProcess::start(settings, line.client()?, play.stage.clock()).await?;
            Ok::<_, anyhow::Error>((line, leader))
        };
        Ok(Self([start().await?, start().await?]))
    }

    /// How many writes to an object the API server has taken from both.
    fn writes(&self, of: &str) -> usize {
        let writes = |(line, _): &(Proxy, _)| line.carried_out(&Method::PATCH, of, "");
        self.0.iter().map(writes).sum()
    }
}

/// Each act is done once, and hooks are known by their keys.
#[tokio::test]
async fn two_leaders_do_each_act_once() -> Result<()> {
    let play = Play::new("two-leaders").await?;
    let (old, new) = play.pair(6).await?;
    play.gate("open").await?;
    let serving = play.workloads.serving().await?;
    let hooks = Hooks::answer(&[200]).await?;
    let leaders = Leaders::start(&play).await?;
    let hook = |kind| json!({"type": kind, "name": kind, "url": hooks.url});
    let kinds = [
        "initialize-rollout",
        "pre-batch-rollout",
        "finalize-rollout",
    ];
    let plan = json!({"numBatches": 3, "rolloutWebhooks": kinds.map(hook)});
    play.rollout(of_pair(&plan)).await?;
    // What is refused to one is tried again by its clock.
    play.until("the rollout to succeed", |status| {
        play.pass(SignedDuration::from_secs(1));
        is(RollingState::RolloutSucceed)(status)
    })
    .await?;
    poll(DEADLINE, "the finalizer to go", async || {
        play.pass(SignedDuration::from_secs(1));
        let metadata = play.rollouts().get("web").await?.metadata;
        ensure!(metadata.finalizers.is_none(), "{metadata:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    new.has(Counts::all(6)).await?;
    old.has(Counts::all(0)).await?;
    // Claimed, three batches, released.
    assert_eq!((leaders.writes(NEW), leaders.writes(OLD)), (5, 5));
    let calls = hooks.calls();
    let keys: BTreeSet<_> = calls.iter().map(|(key, _)| key).collect();
    ensure!(keys.len() == 5 && calls.len() <= 10, "{calls:#?}");
    let bounds = Extremes {
        fewest_ready: 6,
        most: 8,
    };
    serving.were(bounds).await
}

/// So is each act by which an old template comes back.
#[rstest]
#[tokio::test]
async fn two_leaders_bring_the_old_version_back_once(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) -> Result<()> {
    let play = Play::new("two-back").await?;
    let db = play.armed(kind).await?;
    play.gate("open").await?;
    let serving = play.workloads.serving().await?;
    let leaders = Leaders::start(&play).await?;
    let plan = json!({"numBatches": 2, "lastBatchToRollout": 0, "revertOnDelete": true});
    play.rollout(in_place(kind, &plan)).await?;
    play.until("it to wait for a person", |status| {
        play.pass(SignedDuration::from_secs(1));
        is_blocked(status)
    })
    .await?;
    db.has(updated(2)).await?;
    play.delete().await?;
    poll(DEADLINE, "the Rollout to go", async || {
        play.pass(SignedDuration::from_secs(1));
        let found = play.rollouts().get_opt("web").await?;
        ensure!(found.is_none(), "{}", json!(found.and_then(|it| it.status)));
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    db.has(Counts::all(4)).await?;
    let pods = db.pods().await?;
    ensure!(pods.iter().all(|pod| pod.version == "1"), "{pods:?}");
    // Claimed, one batch, its template, armed and released at once.
    assert_eq!(leaders.writes("sets/db"), 4);
    let fewest = serving.extremes().await?.fewest_ready;
    ensure!(fewest == 3, "{fewest}");
    Ok(())
}

/// Another pair of the namespace, with its Rollout.
async fn second(play: &Play, labels: Value) -> Result<(Workload, Workload)> {
    let old = play.deployment("api-v1", 4).await?;
    let new = play.deployment("api-v2", 0).await?;
    let spec = of_pair(&json!({"numBatches": 2})).to_string();
    let spec: Value = serde_json::from_str(&spec.replace("web-", "api-"))?;
    let rollout = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout",
        "metadata": {"name": "api", "labels": labels}, "spec": spec,
    });
    play.stage.apply(&rollout.to_string()).await?;
    Ok((old, new))
}

#[tokio::test]
async fn two_rollouts_of_a_namespace_do_not_touch_each_other() -> Result<()> {
    let play = Play::new("two").await?;
    let (old, new) = play.pair(4).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    let plan = json!({"numBatches": 2, "lastBatchToRollout": 0});
    play.rollout(of_pair(&plan)).await?;
    play.holds("LastBatch").await?;
    let (was, is_now) = second(&play, json!({})).await?;
    let done = is(RollingState::RolloutSucceed);
    play.until_of("api", "the second one to succeed", done)
        .await?;
    was.has(Counts::all(0)).await?;
    is_now.has(Counts::all(4)).await?;
    old.has(Counts::all(2)).await?;
    new.has(Counts::all(2)).await?;
    play.raise().await?;
    play.succeeds().await?;
    Ok(())
}

/// Each shard writes its own Rollouts, and knows those of the others: a claim of theirs counts.
#[tokio::test]
async fn a_shard_leaves_the_other_rollouts_alone() -> Result<()> {
    let play = Play::new("shards").await?;
    let (old, new) = play.pair(4).await?;
    play.gate("open").await?;
    let shard = async |selector: &str| {
        let mut settings = play.stage.settings();
        settings.watch_label_selector = Some(format!("{SHARD}{selector}"));
        play.stage.start_with(settings).await
    };
    let first = shard("=shard1").await?;
    let plan = json!({"numBatches": 2, "lastBatchToRollout": 0});
    play.rollout(of_pair(&plan)).await?;
    let (was, is_now) = second(&play, json!({SHARD: "shard1"})).await?;
    let done = is(RollingState::RolloutSucceed);
    play.until_of("api", "the one of the shard", done).await?;
    was.has(Counts::all(0)).await?;
    is_now.has(Counts::all(4)).await?;
    play.is_free("api").await?;
    play.rests(&first).await?;
    ensure!(play.rollouts().get("web").await?.status.is_none());
    assert_eq!(new.looked_at().await?["replicas"], Value::Null);

    let writes = play.writes(&first).await?;
    let _rest = shard("!=shard1").await?;
    play.holds("LastBatch").await?;
    old.has(Counts::all(2)).await?;
    assert_eq!(play.writes(&first).await?, writes);
    // One of the shard that wants the same workloads.
    let rollout = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout",
        "metadata": {"name": "third", "labels": {SHARD: "shard1"}},
        "spec": of_pair(&json!({"numBatches": 1})),
    });
    play.stage.apply(&rollout.to_string()).await?;
    let is_held = |status: &RolloutStatus| {
        let held = status.held.as_ref();
        held.is_some_and(|it| it.by.as_deref() == Some("Rollout web"))
    };
    play.until_of("third", "it to be held", is_held).await?;
    Ok(())
}

/// A StatefulSet and a pair at the same time, by a controller that looks at several objects at once.
#[tokio::test]
async fn several_workers_carry_out_several_rollouts() -> Result<()> {
    let play = Play::new("workers").await?;
    let (old, new) = play.pair(4).await?;
    let db = play.armed(Kind::StatefulSet).await?;
    play.gate("open").await?;
    let mut settings = play.stage.settings();
    settings.concurrent = 4;
    let _controller = play.stage.start_with(settings).await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    let plan = json!({"numBatches": 2});
    play.named("db", in_place(Kind::StatefulSet, &plan)).await?;
    play.succeeds().await?;
    let done = is(RollingState::RolloutSucceed);
    play.until_of("db", "the other one to succeed", done)
        .await?;
    db.has(Counts::all(4)).await?;
    new.has(Counts::all(4)).await?;
    old.has(Counts::all(0)).await?;
    Ok(())
}
