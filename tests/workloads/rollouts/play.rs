//! A namespace with workloads and a Rollout, and what tests do with it.

use anyhow::{Context, Result, ensure};
use jiff::SignedDuration;
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::rollout::RollingState;
use sluice_crds::{Rollout, RolloutStatus};
use sluice_tests::controller::InProcess;
use sluice_tests::rights;
use sluice_tests::stage::Stage;
use sluice_tests::workloads::{Counts, Kind, Readiness, Workload, Workloads, world};
use sluice_tests::{DEADLINE, Writes, poll};

use super::rights::shipped;

/// Noon on a Friday.
const NOW: &str = "2026-11-20T12:00:00Z";
/// The partition that no number of pods reaches.
pub const ARMED: i64 = 2_147_483_647;

/// A namespace with workloads, and with a Rollout called `web`.
pub struct Play {
    pub workloads: Workloads,
    pub stage: Stage,
}

impl Play {
    /// The account of Rollouts may what the chart gives it.
    pub async fn new(word: &str) -> Result<Self> {
        let rules = shipped()?;
        let play = Self::without_rights(word).await?;
        play.grant(&rules).await?;
        Ok(play)
    }

    /// It may nothing.
    pub async fn without_rights(word: &str) -> Result<Self> {
        let stage = Stage::on(world().await?.cluster(), word, NOW).await?;
        let workloads = Workloads::within(stage.client(), stage.namespace()).await?;
        Ok(Self { workloads, stage })
    }

    /// Lets the account of Rollouts do this, and nothing else.
    pub async fn grant(&self, rules: &[Value]) -> Result<()> {
        let (client, namespace) = (self.stage.client(), self.stage.namespace());
        let account = format!("system:serviceaccount:{namespace}:sluice-rollout");
        rights::grant_rules(client, namespace, "rollout", &account, rules).await
    }

    /// Two Deployments, of which the second has no pods yet.
    pub async fn pair(&self, replicas: u32) -> Result<(Workload, Workload)> {
        let old = self.deployment("web-v1", replicas).await?;
        let new = self.deployment("web-v2", 0).await?;
        Ok((old, new))
    }

    /// A Deployment whose pods are there.
    pub async fn deployment(&self, name: &str, replicas: u32) -> Result<Workload> {
        let spec = json!({"replicas": replicas});
        let deployment = self.workloads.create(Kind::Deployment, name, spec).await?;
        deployment.has(Counts::all(replicas.into())).await?;
        Ok(deployment)
    }

    /// A StatefulSet or CloneSet `db` of four, armed, with a template that waits.
    pub async fn armed(&self, kind: Kind) -> Result<Workload> {
        let strategy = match kind {
            Kind::CloneSet => json!({"type": "ReCreate", "partition": "100%"}),
            Kind::StatefulSet | Kind::Deployment => {
                json!({"type": "RollingUpdate", "rollingUpdate": {"partition": ARMED}})
            }
        };
        let spec = json!({"replicas": 4, "updateStrategy": strategy});
        let db = self.workloads.create(kind, "db", spec).await?;
        db.has(Counts::all(4)).await?;
        db.release("2", Readiness::Ready).await?;
        db.has(updated(0)).await?;
        Ok(db)
    }

    /// Makes the pods of a workload ready that are not, until there are so many, all of the newest version.
    pub async fn heal(&self, workload: &Workload, size: i64) -> Result<()> {
        poll(DEADLINE, "the pods to become ready", async || {
            for pod in workload.pods().await?.iter().filter(|pod| !pod.ready) {
                self.workloads.turn(&pod.name, Readiness::Ready).await?;
            }
            let counts = Counts::of(&workload.observed().await?);
            ensure!(counts == Counts::all(size), "{counts:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// The Rollout.
    pub async fn rollout(&self, spec: Value) -> Result<()> {
        self.named("web", spec).await
    }

    /// A Rollout with another name.
    pub async fn named(&self, name: &str, spec: Value) -> Result<()> {
        let rollout = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout", "metadata": {"name": name},
            "spec": spec,
        });
        self.stage.apply(&rollout.to_string()).await
    }

    /// Changes the Rollout.
    pub async fn change(&self, change: Value) -> Result<()> {
        self.rollouts().merge("web", change).await?;
        Ok(())
    }

    /// No batch is the last one any more.
    pub async fn raise(&self) -> Result<()> {
        let all = json!({"lastBatchToRollout": null});
        self.change(json!({"spec": {"rolloutPlan": all}})).await
    }

    /// Somebody asks to try again.
    pub async fn retry(&self, value: &str) -> Result<()> {
        let retry = json!({"sluice.dev/retry": value});
        self.change(json!({"metadata": {"annotations": retry}}))
            .await
    }

    /// Deletes it.
    pub async fn delete(&self) -> Result<()> {
        self.rollouts().remove("web").await?;
        Ok(())
    }

    /// Waits until it is gone.
    pub async fn gone(&self) -> Result<()> {
        poll(DEADLINE, "the Rollout to go", async || {
            let found = self.rollouts().get_opt("web").await?;
            ensure!(found.is_none(), "{}", json!(found.and_then(|it| it.status)));
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// The same, while time passes.
    pub async fn gone_in_time(&self) -> Result<()> {
        poll(DEADLINE, "the Rollout to go", async || {
            self.pass(SignedDuration::from_mins(1));
            let found = self.rollouts().get_opt("web").await?;
            ensure!(found.is_none(), "{}", json!(found.and_then(|it| it.status)));
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// A gate `office` that a person opens and closes.
    pub async fn gate(&self, state: &str) -> Result<()> {
        let gate = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate", "metadata": {"name": "office"},
            "spec": {"default": state},
        });
        self.stage.apply(&gate.to_string()).await
    }

    /// The Rollouts here.
    pub fn rollouts(&self) -> Api<Rollout> {
        Api::namespaced(self.stage.client(), self.stage.namespace())
    }

    /// Waits until the status is so.
    pub async fn until(
        &self,
        what: &str,
        check: impl Fn(&RolloutStatus) -> bool,
    ) -> Result<RolloutStatus> {
        self.until_of("web", what, check).await
    }

    /// The same of another Rollout.
    pub async fn until_of(
        &self,
        name: &str,
        what: &str,
        check: impl Fn(&RolloutStatus) -> bool,
    ) -> Result<RolloutStatus> {
        poll(DEADLINE, what, async || {
            let status = self.rollouts().get(name).await?.status;
            let status = status.context("no status")?;
            ensure!(check(&status), "{}", json!(status));
            Ok::<_, anyhow::Error>(status)
        })
        .await
    }

    /// Waits until it has succeeded.
    pub async fn succeeds(&self) -> Result<RolloutStatus> {
        self.until("the rollout to succeed", is(RollingState::RolloutSucceed))
            .await
    }

    /// Waits until nothing is left to do for a Rollout that is over: its finalizer is gone.
    pub async fn is_free(&self, name: &str) -> Result<()> {
        poll(DEADLINE, "the finalizer to go", async || {
            let metadata = self.rollouts().get(name).await?.metadata;
            ensure!(metadata.finalizers.is_none(), "{metadata:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// Waits until it has failed for this reason.
    pub async fn fails(&self, reason: &str) -> Result<RolloutStatus> {
        let failed = is(RollingState::RolloutFailed);
        let status = self.until("the rollout to fail", failed).await?;
        let outcome = status.outcome.as_ref().context("no outcome")?;
        ensure!(outcome.reason == reason, "{outcome:?}");
        Ok(status)
    }

    /// Waits until it is held for this reason.
    pub async fn holds(&self, reason: &str) -> Result<RolloutStatus> {
        let what = format!("it to be held: {reason}");
        let is_held = |status: &RolloutStatus| {
            let held = status.held.as_ref();
            held.is_some_and(|held| held.reason == reason)
        };
        self.until(&what, is_held).await
    }

    /// Waits until a controller in this process has looked at everything that is due, and has ended.
    pub async fn rests(&self, controller: &InProcess) -> Result<()> {
        self.stage.settle().await?;
        controller.rests().await
    }

    /// How often a controller in this process has written Rollouts and workloads.
    pub async fn writes(&self, controller: &InProcess) -> Result<u64> {
        let mut all = 0;
        for kind in ["Rollout", "Deployment", "StatefulSet", "CloneSet", "Pod"] {
            all += controller.writes(kind).await?;
        }
        Ok(all)
    }

    /// Lets time pass.
    pub fn pass(&self, time: SignedDuration) {
        self.stage.clock().step(self.stage.now() + time);
    }
}

/// Whether it is in this state.
pub fn is(state: RollingState) -> impl Fn(&RolloutStatus) -> bool + Copy {
    move |status| status.rolling_state == Some(state)
}

/// What a condition says: its status and its reason.
pub fn says<'s>(status: &'s RolloutStatus, condition: &str) -> Option<(&'s str, &'s str)> {
    let found = status.conditions.iter().find(|it| it.type_ == condition)?;
    Some((&found.status, &found.reason))
}

/// Whether it waits for gates or for people.
pub fn is_blocked(status: &RolloutStatus) -> bool {
    says(status, "Blocked").is_some_and(|(status, _)| status == "True")
}

/// A plan for the pair of [`Play::pair`].
pub fn of_pair(plan: &Value) -> Value {
    json!({
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-v2"},
        "sourceRef": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-v1"}],
        "revision": "2.0.0", "gates": {"refs": [{"name": "office"}]}, "rolloutPlan": plan,
    })
}

/// A plan for the workload of [`Play::armed`].
pub fn in_place(kind: Kind, plan: &Value) -> Value {
    json!({
        "targetRef": {"kind": kind.resource().kind, "name": "db"}, "revision": "2",
        "gates": {"refs": [{"name": "office"}]}, "rolloutPlan": plan,
    })
}

/// Three batches: of one pod, of two in five, and the rest.
pub fn in_three() -> Value {
    json!({"rolloutBatches": [{"replicas": 1}, {"replicas": "40%"}, {}]})
}

/// Four pods that are ready, of which so many have the newest template.
pub fn updated(pods: i64) -> Counts {
    Counts {
        updated: pods,
        ..Counts::all(4)
    }
}

/// The partition of the workload of [`Play::armed`], as it is written.
pub async fn partition(db: &Workload, kind: Kind) -> Result<Value> {
    let strategy = db.api().get("db").await?.data["spec"]["updateStrategy"].take();
    Ok(match kind {
        Kind::CloneSet => strategy["partition"].clone(),
        Kind::StatefulSet | Kind::Deployment => strategy["rollingUpdate"]["partition"].clone(),
    })
}
