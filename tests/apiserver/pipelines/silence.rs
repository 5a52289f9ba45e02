//! A cluster of which nothing more is heard: nothing is promoted to it, and other pipelines go on.
//!
//! What was read counts for minutes after the last sign of life. After a jump of the clock, which the test
//! orders, it counts for a quarter of a minute.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use gate_controller::observe::clock::{BoxFuture, Clock, SystemClock};
use jiff::{SignedDuration, Timestamp};
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::pipeline::EnvironmentState;
use sluice_crds::{Pipeline, PipelineStatus};
use sluice_tests::controller::{self, InProcess};
use sluice_tests::line::Line;
use sluice_tests::{Applier, status};

use super::standing_by::says_late;
use super::{PROD, admitted};
use crate::clusters::scene::Scene;
use crate::stage::DEADLINE;

/// Little enough that the clock is still relied on.
const LATE: SignedDuration = SignedDuration::from_secs(20);

/// A clock that is late until it is set right.
#[derive(Default)]
struct LateClock(AtomicBool);

impl LateClock {
    fn set_right(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn late_by(&self) -> SignedDuration {
        match self.0.load(Ordering::SeqCst) {
            true => SignedDuration::ZERO,
            false => LATE,
        }
    }
}

impl Clock for LateClock {
    fn now(&self) -> Timestamp {
        SystemClock.now() - self.late_by()
    }

    fn now_and_awake(&self) -> (Timestamp, Duration) {
        let (now, awake) = SystemClock.now_and_awake();
        (now - self.late_by(), awake)
    }

    fn wait_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        SystemClock.wait_until(at + self.late_by())
    }
}

/// One pipeline from here to another cluster, and one that is here alone.
async fn put(scene: &Scene) -> Result<()> {
    let here = json!({"name": "dev", "targets": [{"namespace": scene.namespace()}]});
    let there = json!({
        "name": PROD,
        "targets": [{
            "namespace": scene.apps(), "clusterRef": {"kind": "Secret", "name": "prod-kubeconfig"},
        }],
        "promotion": {"strategy": {"admission": {}}},
    });
    let pipeline = |name: &str, environments: &[&Value]| {
        json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline", "metadata": {"name": name},
            "spec": {
                "appRef": {"apiVersion": scene.api_version(), "kind": "Widget", "name": "web"},
                "environments": environments,
            },
        })
    };
    let applier = Applier::new(scene.own()).in_namespace(scene.namespace());
    let both = [
        pipeline("web", &[&here, &there]),
        pipeline("beside", &[&here]),
    ];
    for pipeline in both {
        applier.text(&pipeline.to_string()).await?;
    }
    Ok(())
}

fn is_completed(status: &PipelineStatus, revision: &str) -> bool {
    let run = status.run.as_ref();
    run.is_some_and(|run| run.revision == revision && run.completed_at.is_some())
}

#[tokio::test]
async fn nothing_is_promoted_to_a_silent_cluster_and_other_pipelines_go_on() -> Result<()> {
    let scene = Scene::new("silence").await?;
    scene.define_here().await?;
    let (own, remote) = (scene.own(), scene.remote());
    scene.runs_at(&own, scene.namespace(), 1, "1.0.0").await?;
    scene.runs_at(&remote, scene.apps(), 1, "1.0.0").await?;
    let line = Line::open(scene.server()).await?;
    let token = scene.token().await?;
    scene.put_kubeconfig(line.server(), &token).await?;
    put(&scene).await?;
    let clock = Arc::new(LateClock::default());
    let mut settings = controller::settings(scene.namespace());
    settings.egress_allow = vec!["127.0.0.0/8".parse()?];
    settings.compare_clocks = true;
    let shown = Arc::clone(&clock) as Arc<dyn Clock>;
    let _controller = InProcess::start(settings, scene.own(), shown).await?;
    let first = |status: &PipelineStatus| is_completed(status, "1.0.0");
    let status = says_late(&scene, "the first run to be completed", first).await?;
    ensure!(status.clusters[0].reachable, "{:?}", status.clusters);

    line.hold();
    clock.set_right();
    let is_away = |status: &PipelineStatus| status.clusters.iter().any(|it| !it.reachable);
    let away = says_late(&scene, "the cluster to be away", is_away).await?;
    let why = away.clusters[0].message.as_deref().unwrap_or_default();
    ensure!(
        why.contains("nothing was heard of it for too long"),
        "{why}"
    );
    ensure!(away.environments[PROD].state == EnvironmentState::Unknown);
    let mut conditions = away.conditions.iter();
    let ready = conditions.find(|it| it.type_ == "Ready");
    let ready = ready.context("no condition")?;
    assert_eq!(
        (&*ready.status, &*ready.reason),
        ("False", "TargetNotReadable")
    );

    scene.runs_at(&own, scene.namespace(), 2, "1.1.0").await?;
    let api: Api<Pipeline> = Api::namespaced(scene.own(), scene.namespace());
    let beside = |status: &PipelineStatus| is_completed(status, "1.1.0");
    status::until(&api, "beside", DEADLINE, "the other to go on", beside).await?;
    let has_begun = |status: &PipelineStatus| {
        let run = status.run.as_ref();
        run.is_some_and(|run| run.revision == "1.1.0")
    };
    let held = says_late(&scene, "the run of 1.1.0", has_begun).await?;
    ensure!(held.environments[PROD].state == EnvironmentState::Unknown);
    ensure!(admitted(&held).is_empty(), "{:?}", admitted(&held));

    line.release();
    let is_out = |status: &PipelineStatus| admitted(status) == ["1.1.0"];
    let out = says_late(&scene, "1.1.0 to be admitted", is_out).await?;
    ensure!(out.clusters[0].reachable, "{:?}", out.clusters);
    Ok(())
}
