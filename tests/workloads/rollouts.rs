//! Rollouts that the controller carries out on real workloads.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use kube::Api;
use parking_lot::Mutex;
use serde_json::{Value, json};
use sluice_crds::rollout::RollingState;
use sluice_crds::{Rollout, RolloutStatus};
use sluice_tests::rights;
use sluice_tests::stage::Stage;
use sluice_tests::workloads::{Counts, Kind, Readiness, Workload, Workloads, world};
use sluice_tests::{DEADLINE, Writes, poll};
use tokio::net::TcpListener;

/// Noon on a Friday.
const NOW: &str = "2026-11-20T12:00:00Z";
/// The partition that no number of pods reaches.
const ARMED: i64 = 2_147_483_647;

/// A namespace with workloads, and with a Rollout called `web`.
struct Play {
    workloads: Workloads,
    stage: Stage,
}

impl Play {
    /// The account of Rollouts may what it has to.
    async fn new(word: &str) -> Result<Self> {
        let play = Self::without_rights(word).await?;
        let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
        let rules = [
            rule("apps", &["deployments", "statefulsets"], &["patch"]),
            rule("apps.kruise.io", &["clonesets"], &["patch"]),
            rule("apps", &["controllerrevisions"], &["get"]),
            rule("", &["pods"], &["list", "delete"]),
        ];
        let (client, namespace) = (play.stage.client(), play.stage.namespace());
        let account = format!("system:serviceaccount:{namespace}:sluice-rollout");
        rights::grant_rules(client, namespace, "rollout", &account, &rules).await?;
        Ok(play)
    }

    async fn without_rights(word: &str) -> Result<Self> {
        let stage = Stage::on(world().await?.cluster(), word, NOW).await?;
        let workloads = Workloads::within(stage.client(), stage.namespace()).await?;
        Ok(Self { workloads, stage })
    }

    /// Two Deployments, of which the second has no pods yet.
    async fn pair(&self, replicas: u32) -> Result<(Workload, Workload)> {
        let deployment = |name, replicas| {
            let spec = json!({"replicas": replicas});
            self.workloads.create(Kind::Deployment, name, spec)
        };
        let old = deployment("web-v1", replicas).await?;
        let new = deployment("web-v2", 0).await?;
        old.has(Counts::all(replicas.into())).await?;
        new.looked_at().await?;
        Ok((old, new))
    }

    async fn rollout(&self, spec: Value) -> Result<()> {
        let rollout = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout", "metadata": {"name": "web"},
            "spec": spec,
        });
        self.stage.apply(&rollout.to_string()).await
    }

    /// A gate that a person opens and closes.
    async fn gate(&self, state: &str) -> Result<()> {
        let gate = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate", "metadata": {"name": "office"},
            "spec": {"default": state},
        });
        self.stage.apply(&gate.to_string()).await
    }

    fn rollouts(&self) -> Api<Rollout> {
        Api::namespaced(self.stage.client(), self.stage.namespace())
    }

    /// Waits until the status is so.
    async fn until(
        &self,
        what: &str,
        check: impl Fn(&RolloutStatus) -> bool,
    ) -> Result<RolloutStatus> {
        poll(DEADLINE, what, async || {
            let status = self.rollouts().get("web").await?.status;
            let status = status.context("no status")?;
            ensure!(check(&status), "{}", json!(status));
            Ok::<_, anyhow::Error>(status)
        })
        .await
    }

    async fn succeeds(&self) -> Result<RolloutStatus> {
        self.until("the rollout to succeed", is(RollingState::RolloutSucceed))
            .await
    }
}

fn is(state: RollingState) -> impl Fn(&RolloutStatus) -> bool {
    move |status| status.rolling_state == Some(state)
}

/// What a condition says: its status and its reason.
fn says<'s>(status: &'s RolloutStatus, condition: &str) -> Option<(&'s str, &'s str)> {
    let found = status.conditions.iter().find(|it| it.type_ == condition)?;
    Some((&found.status, &found.reason))
}

fn is_blocked(status: &RolloutStatus) -> bool {
    says(status, "Blocked").is_some_and(|(status, _)| status == "True")
}

/// A plan for the pair of [`Play::pair`].
fn of_pair(plan: &Value) -> Value {
    json!({
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-v2"},
        "sourceRef": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-v1"}],
        "revision": "2.0.0", "gates": {"refs": [{"name": "office"}]}, "rolloutPlan": plan,
    })
}

fn in_three() -> Value {
    json!({"rolloutBatches": [{"replicas": 1}, {"replicas": "40%"}, {}]})
}

#[tokio::test]
async fn one_deployment_takes_the_place_of_another_batch_by_batch() -> Result<()> {
    let play = Play::new("pair").await?;
    let (old, new) = play.pair(6).await?;
    play.gate("open").await?;
    let controller = play.stage.start().await?;
    play.rollout(of_pair(&in_three())).await?;
    let status = play.succeeds().await?;
    new.has(Counts::all(6)).await?;
    old.has(Counts::all(0)).await?;
    let goals: Vec<_> = status.batches.iter().map(|batch| batch.goal).collect();
    assert_eq!(goals, [1, 4, 6]);
    for batch in &status.batches {
        let decision = batch.decision.as_ref().context("no decision")?;
        let by = format!("{}/office", play.stage.namespace());
        assert_eq!(decision.decided_by, [by]);
        ensure!(batch.done.is_some(), "{}", json!(status));
    }
    assert_eq!(status.progress.as_deref(), Some("3/3"));
    assert_eq!(says(&status, "Ready").map(|it| it.0), Some("True"));
    // Nothing is left to be done, or to be written.
    play.stage.settle().await?;
    let writes = play.stage.writes(&controller).await?;
    let note = json!({"metadata": {"annotations": {"note": "seen"}}});
    new.api().merge("web-v2", &note).await?;
    play.stage.settle().await?;
    assert_eq!(play.stage.writes(&controller).await?, writes);
    Ok(())
}

#[tokio::test]
async fn a_gate_that_closes_holds_the_next_batch_and_stops_none_that_is_out() -> Result<()> {
    let play = Play::new("gate").await?;
    let (old, new) = play.pair(6).await?;
    play.gate("closed").await?;
    let _controller = play.stage.start().await?;
    play.rollout(of_pair(&in_three())).await?;
    play.until("it to wait", is_blocked).await?;
    assert_eq!(new.looked_at().await?["replicas"], Value::Null);

    play.gate("open").await?;
    new.until("to have pods", |status| Counts::of(status).size > 0)
        .await?;
    play.gate("closed").await?;
    let held = play
        .until("it to be held, or to be done", |status| {
            is_blocked(status) || is(RollingState::RolloutSucceed)(status)
        })
        .await?;
    if is_blocked(&held) {
        let size = i64::from(held.upgraded_ready_replicas.unwrap_or(0));
        new.has(Counts::all(size)).await?;
        old.has(Counts::all(6 - size)).await?;
    }
    play.gate("open").await?;
    play.succeeds().await?;
    new.has(Counts::all(6)).await?;
    Ok(())
}

#[tokio::test]
async fn a_person_raises_the_last_batch_that_may_go_out() -> Result<()> {
    let play = Play::new("last").await?;
    let (old, new) = play.pair(6).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    let mut plan = in_three();
    plan["lastBatchToRollout"] = json!(0);
    play.rollout(of_pair(&plan)).await?;
    let held = play.until("it to wait for a person", is_blocked).await?;
    let why = held.held.context("not held")?;
    assert_eq!(why.reason, "LastBatch");
    new.has(Counts::all(1)).await?;
    old.has(Counts::all(5)).await?;
    let plan = json!({"spec": {"rolloutPlan": {"lastBatchToRollout": 2}}});
    play.rollouts().merge("web", plan).await?;
    play.succeeds().await?;
    new.has(Counts::all(6)).await?;
    Ok(())
}

#[tokio::test]
async fn a_rollout_that_is_deleted_brings_the_old_version_back() -> Result<()> {
    let play = Play::new("back").await?;
    let (old, new) = play.pair(6).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    let mut plan = in_three();
    (plan["lastBatchToRollout"], plan["revertOnDelete"]) = (json!(1), json!(true));
    play.rollout(of_pair(&plan)).await?;
    play.until("it to wait for a person", is_blocked).await?;
    new.has(Counts::all(4)).await?;
    play.rollouts().remove("web").await?;
    poll(DEADLINE, "the Rollout to go", async || {
        let found = play.rollouts().get_opt("web").await?;
        ensure!(found.is_none(), "{}", json!(found.and_then(|it| it.status)));
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    old.has(Counts::all(6)).await?;
    new.has(Counts::all(0)).await?;
    Ok(())
}

#[tokio::test]
async fn what_the_account_may_not_do_is_told_with_the_remedy() -> Result<()> {
    let play = Play::without_rights("rights").await?;
    let (_old, new) = play.pair(2).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    let stalled = |status: &RolloutStatus| {
        says(status, "Stalled").is_some_and(|(status, _)| status == "True")
    };
    let status = play.until("it to say so", stalled).await?;
    let ready = status.conditions.iter().find(|it| it.type_ == "Ready");
    let told = &ready.context("no Ready")?.message;
    let remedy = "kubectl create rolebinding sluice-rollout";
    ensure!(told.contains(remedy), "{told}");
    assert_eq!(new.looked_at().await?["replicas"], Value::Null);
    Ok(())
}

#[tokio::test]
async fn pods_that_never_become_ready_stop_a_rollout() -> Result<()> {
    let play = Play::new("never").await?;
    let (old, new) = play.pair(4).await?;
    new.release("2", Readiness::Never).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    new.until("to have pods", |status| Counts::of(status).size == 2)
        .await?;
    old.has(Counts::all(4)).await?;
    let clock = play.stage.clock();
    clock.step(play.stage.now() + jiff::SignedDuration::from_mins(11));
    play.until("it to fail", is(RollingState::RolloutFailed))
        .await?;
    // No pod that serves is taken away.
    old.has(Counts::all(4)).await?;
    Ok(())
}

/// What is out stays out: the claims on the workloads say what the status has said.
#[tokio::test]
async fn another_controller_goes_on_also_where_the_status_is_lost() -> Result<()> {
    let play = Play::new("lost").await?;
    let (old, new) = play.pair(6).await?;
    play.gate("open").await?;
    let first = play.stage.start().await?;
    let mut plan = in_three();
    plan["lastBatchToRollout"] = json!(0);
    play.rollout(of_pair(&plan)).await?;
    let held = play.until("it to wait for a person", is_blocked).await?;
    let run = held.run.context("no run")?;
    first.stop().await;
    let lost = json!({"status": null});
    play.rollouts().merge_status("web", lost).await?;
    let before = new.pods().await?;
    let _second = play.stage.start().await?;
    play.until("it to wait again", is_blocked).await?;
    assert_eq!(new.pods().await?, before);
    old.has(Counts::all(5)).await?;
    let plan = json!({"spec": {"rolloutPlan": {"lastBatchToRollout": 2}}});
    play.rollouts().merge("web", plan).await?;
    let done = play.succeeds().await?;
    assert_eq!(done.run.context("no run")?.id, run.id);
    new.has(Counts::all(6)).await?;
    Ok(())
}

/// A server that answers with one status after another, and notes which calls have come.
struct Hooks {
    url: String,
    calls: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Hooks {
    /// The last status is that of all further calls.
    async fn answer(statuses: &'static [u16]) -> Result<Self> {
        let calls = Arc::<Mutex<Vec<(String, Value)>>>::default();
        let noted = Arc::clone(&calls);
        let answer = async move |headers: HeaderMap, body: Bytes| {
            let key = headers.get("idempotency-key");
            let key = key.and_then(|key| key.to_str().ok()).unwrap_or_default();
            let mut calls = noted.lock();
            let status = statuses.get(calls.len()).or(statuses.last());
            let body = serde_json::from_slice(&body).unwrap_or_default();
            calls.push((key.to_owned(), body));
            StatusCode::from_u16(status.copied().unwrap_or(500)).unwrap_or_default()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let router = Router::new().fallback(post(answer));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { url, calls })
    }

    fn calls(&self) -> Vec<(String, Value)> {
        self.calls.lock().clone()
    }
}

#[tokio::test]
async fn a_hook_is_asked_again_and_its_no_stops_the_rollout() -> Result<()> {
    let play = Play::new("hooks").await?;
    let (old, new) = play.pair(4).await?;
    play.gate("open").await?;
    let hooks = Hooks::answer(&[503, 204, 403]).await?;
    let _controller = play.stage.start_with_egress().await?;
    let hook = |kind: &str| json!({"type": kind, "name": kind, "url": hooks.url});
    let plan = json!({
        "numBatches": 2,
        "rolloutWebhooks": [hook("initialize-rollout"), hook("post-batch-rollout")],
    });
    play.rollout(of_pair(&plan)).await?;
    let clock = play.stage.clock();
    let status = play
        .until("it to fail", |status| {
            clock.step(play.stage.now() + jiff::SignedDuration::from_secs(1));
            is(RollingState::RolloutFailed)(status)
        })
        .await?;
    assert_eq!(status.outcome.context("no outcome")?.reason, "HookVetoed");
    let calls = hooks.calls();
    let phases: Vec<_> = calls.iter().map(|(_, body)| &body["phase"]).collect();
    assert_eq!(phases, ["initializing", "initializing", "rollingInBatches"]);
    assert!(
        calls[0].0 == calls[1].0 && calls[1].0 != calls[2].0,
        "{calls:?}"
    );
    assert_eq!(calls[0].1["name"], "web");
    // What the batch has brought out serves, and nothing more.
    new.has(Counts::all(2)).await?;
    old.has(Counts::all(2)).await?;
    Ok(())
}

/// A StatefulSet or CloneSet of four, armed, with a template that waits.
async fn armed(play: &Play, kind: Kind) -> Result<Workload> {
    let strategy = match kind {
        Kind::CloneSet => json!({"type": "ReCreate", "partition": "100%"}),
        Kind::StatefulSet | Kind::Deployment => {
            json!({"type": "RollingUpdate", "rollingUpdate": {"partition": ARMED}})
        }
    };
    let spec = json!({"replicas": 4, "updateStrategy": strategy});
    let web = play.workloads.create(kind, "db", spec).await?;
    web.has(Counts::all(4)).await?;
    web.release("2", Readiness::Ready).await?;
    web.has(waiting()).await?;
    Ok(web)
}

/// Four pods, of which none has the newest template.
fn waiting() -> Counts {
    Counts {
        updated: 0,
        ..Counts::all(4)
    }
}

/// In a namespace that is deleted, the rights may go before the Rollout.
#[tokio::test]
async fn a_rollout_that_is_deleted_goes_also_where_its_account_may_nothing() -> Result<()> {
    let play = Play::new("going").await?;
    let web = armed(&play, Kind::StatefulSet).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    play.rollout(json!({
        "targetRef": {"kind": "StatefulSet", "name": "db"}, "revision": "2",
        "rolloutPlan": {"numBatches": 2, "lastBatchToRollout": 0, "revertOnDelete": true},
    }))
    .await?;
    play.until("it to wait for a person", is_blocked).await?;
    let half = Counts {
        updated: 2,
        ..Counts::all(4)
    };
    web.has(half).await?;
    let (client, namespace) = (play.stage.client(), play.stage.namespace());
    let account = format!("system:serviceaccount:{namespace}:sluice-rollout");
    rights::grant_rules(client, namespace, "rollout", &account, &[]).await?;
    play.rollouts().remove("web").await?;
    let clock = play.stage.clock();
    poll(DEADLINE, "the Rollout to go", async || {
        clock.step(play.stage.now() + jiff::SignedDuration::from_mins(1));
        let found = play.rollouts().get_opt("web").await?;
        ensure!(found.is_none(), "{}", json!(found.and_then(|it| it.status)));
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    Ok(())
}

/// An autoscaler holds a rollout from when it comes until it goes, or scales something else.
#[tokio::test]
async fn a_rollout_goes_on_once_no_autoscaler_scales_its_workloads() -> Result<()> {
    let play = Play::new("scaled").await?;
    let (_old, new) = play.pair(2).await?;
    play.gate("closed").await?;
    let _controller = play.stage.start().await?;
    play.rollout(of_pair(&in_three())).await?;
    play.until("it to wait", is_blocked).await?;
    let scales = |name: &str| {
        json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web"},
            "spec": {
                "maxReplicas": 5,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            },
        })
    };
    let by_autoscaler = |status: &RolloutStatus| {
        let held = status.held.as_ref();
        held.is_some_and(|it| it.reason == "Autoscaler")
    };
    play.stage.apply(&scales("web-v1").to_string()).await?;
    play.until("the autoscaler to hold it", by_autoscaler)
        .await?;
    play.gate("open").await?;
    play.stage.settle().await?;
    assert_eq!(new.looked_at().await?["replicas"], Value::Null);
    play.stage.apply(&scales("else").to_string()).await?;
    play.succeeds().await?;
    new.has(Counts::all(2)).await?;
    Ok(())
}

/// Nothing tells that a pod has been ready for long enough by the clock of the controller, which is behind that of
/// the cluster: when its StatefulSet counts it, that is not so yet.
#[tokio::test]
async fn pods_that_have_to_be_ready_for_a_while_are_counted_by_time_alone() -> Result<()> {
    let play = Play::new("soak").await?;
    let web = armed(&play, Kind::StatefulSet).await?;
    let patch = json!({"spec": {"minReadySeconds": 1}});
    web.api().merge("db", &patch).await?;
    web.looked_at().await?;
    let clock = play.stage.clock();
    clock.step(jiff::Timestamp::now() - jiff::SignedDuration::from_secs(30));
    let _controller = play.stage.start().await?;
    play.rollout(json!({
        "targetRef": {"kind": "StatefulSet", "name": "db"}, "revision": "2",
        "rolloutPlan": {"numBatches": 1},
    }))
    .await?;
    // All pods are new and available, and nothing changes any more.
    web.has(Counts::all(4)).await?;
    play.stage.settle().await?;
    let waits = play.until("it to wait for pods", |_| true).await?;
    let state = waits.rolling_state;
    assert_eq!(
        state,
        Some(RollingState::RollingInBatches),
        "{}",
        json!(waits)
    );
    clock.step(jiff::Timestamp::now() + jiff::SignedDuration::from_secs(60));
    play.succeeds().await?;
    Ok(())
}

async fn in_place(kind: Kind) -> Result<()> {
    let play = Play::new("in-place").await?;
    let web = armed(&play, kind).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    play.rollout(json!({
        "targetRef": {"kind": kind.resource().kind, "name": "db"}, "revision": "2",
        "gates": {"refs": [{"name": "office"}]}, "rolloutPlan": {"numBatches": 2},
    }))
    .await?;
    let status = play.succeeds().await?;
    let goals: Vec<_> = status.batches.iter().map(|batch| batch.goal).collect();
    assert_eq!(goals, [2, 4]);
    web.has(Counts::all(4)).await?;
    let pods = web.pods().await?;
    ensure!(pods.iter().all(|pod| pod.version == "2"), "{pods:?}");
    // The next template waits again.
    web.release("3", Readiness::Ready).await?;
    web.has(waiting()).await?;
    Ok(())
}

#[tokio::test]
async fn a_stateful_set_is_rolled_by_its_partition_and_armed_again() -> Result<()> {
    in_place(Kind::StatefulSet).await
}

#[tokio::test]
async fn a_clone_set_is_rolled_by_its_partition_and_armed_again() -> Result<()> {
    in_place(Kind::CloneSet).await
}
