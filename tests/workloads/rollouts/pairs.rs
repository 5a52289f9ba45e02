//! Deployments that are scaled against each other.

use anyhow::{Context, Result, ensure};
use rstest::rstest;
use serde_json::{Value, json};
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::RollingState;
use sluice_tests::Writes;
use sluice_tests::workloads::{Counts, Extremes, Kind, Readiness, Replica};

use super::play::{Play, in_three, is, of_pair, says};

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
    play.is_free("web").await?;
    play.rests(&controller).await?;
    let writes = play.writes(&controller).await?;
    let note = json!({"metadata": {"annotations": {"note": "seen"}}});
    new.api().merge("web-v2", &note).await?;
    play.rests(&controller).await?;
    assert_eq!(play.writes(&controller).await?, writes);
    Ok(())
}

/// Pods that serve are never fewer than a batch below, or more than a batch above.
#[rstest]
#[case::more_first("IncreaseFirst", Extremes { fewest_ready: 6, most: 9 })]
#[case::fewer_first("DecreaseFirst", Extremes { fewest_ready: 3, most: 6 })]
#[tokio::test]
async fn pods_stay_within_a_batch_of_what_there_was(
    #[case] strategy: &str,
    #[case] bounds: Extremes,
) -> Result<()> {
    let play = Play::new("bounds").await?;
    let (old, new) = play.pair(6).await?;
    play.gate("open").await?;
    let serving = play.workloads.serving().await?;
    let _controller = play.stage.start().await?;
    let plan = json!({"numBatches": 2, "rolloutStrategy": strategy});
    play.rollout(of_pair(&plan)).await?;
    play.succeeds().await?;
    new.has(Counts::all(6)).await?;
    old.has(Counts::all(0)).await?;
    serving.were(bounds).await
}

#[tokio::test]
async fn several_sources_are_emptied_in_their_order() -> Result<()> {
    let play = Play::new("sources").await?;
    let (first, new) = play.pair(2).await?;
    let second = play.deployment("web-v0", 3).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    let mut spec = of_pair(&json!({
        "rolloutBatches": [{"replicas": 1}, {"replicas": 2}, {}], "lastBatchToRollout": 0,
    }));
    let more = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-v0"});
    spec["sourceRef"]
        .as_array_mut()
        .context("no list")?
        .push(more);
    play.rollout(spec).await?;
    for (last, sizes) in [(0, [1, 1, 3]), (1, [3, 0, 2])] {
        let raise = json!({"spec": {"rolloutPlan": {"lastBatchToRollout": last}}});
        play.change(raise).await?;
        new.has(Counts::all(sizes[0])).await?;
        first.has(Counts::all(sizes[1])).await?;
        second.has(Counts::all(sizes[2])).await?;
        play.holds("LastBatch").await?;
    }
    play.raise().await?;
    play.succeeds().await?;
    new.has(Counts::all(5)).await?;
    first.has(Counts::all(0)).await?;
    second.has(Counts::all(0)).await?;
    Ok(())
}

/// The total may be greater than that of the sources; no pod of it is there before the first hook has let it.
#[tokio::test]
async fn there_may_be_more_pods_than_before_and_none_before_the_gate() -> Result<()> {
    let play = Play::new("more").await?;
    let (old, new) = play.pair(4).await?;
    play.gate("closed").await?;
    let _controller = play.stage.start().await?;
    let plan = json!({"numBatches": 2, "targetSize": 6});
    play.rollout(of_pair(&plan)).await?;
    play.holds("GatesClosed").await?;
    assert_eq!(new.looked_at().await?["replicas"], Value::Null);
    play.gate("open").await?;
    play.succeeds().await?;
    new.has(Counts::all(6)).await?;
    old.has(Counts::all(0)).await?;
    Ok(())
}

#[tokio::test]
async fn a_total_below_the_sources_is_refused() -> Result<()> {
    let play = Play::new("fewer").await?;
    let (old, new) = play.pair(4).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    play.rollout(of_pair(&json!({"targetSize": 3}))).await?;
    play.fails("InvalidSpec").await?;
    old.has(Counts::all(4)).await?;
    assert_eq!(new.looked_at().await?["replicas"], Value::Null);
    Ok(())
}

/// The target has pods already: the batches that it has reached are passed, and asked of nobody.
#[rstest]
#[tokio::test]
async fn a_target_with_pods_goes_on_from_there(
    #[values("IncreaseFirst", "DecreaseFirst")] strategy: &str,
) -> Result<()> {
    let play = Play::new("resume").await?;
    let old = play.deployment("web-v1", 3).await?;
    let new = play
        .workloads
        .create(Kind::Deployment, "web-v2", json!({"replicas": 9}));
    let new = new.await?;
    new.has(Counts::all(9)).await?;
    play.gate("closed").await?;
    let _controller = play.stage.start().await?;
    let batches = json!([{"replicas": 3}, {"replicas": 3}, {}]);
    let plan = json!({
        "rolloutStrategy": strategy, "rolloutBatches": batches, "targetSize": 12,
    });
    play.rollout(of_pair(&plan)).await?;
    play.holds("GatesClosed").await?;
    play.gate("open").await?;
    let status = play.succeeds().await?;
    let asked = status.batches.iter().map(|batch| batch.decision.is_some());
    assert_eq!(asked.collect::<Vec<_>>(), [false, false, true]);
    new.has(Counts::all(12)).await?;
    old.has(Counts::all(0)).await?;
    Ok(())
}

/// The source is empty already, and the target whole: nobody is asked, and nothing is written but the end.
#[tokio::test]
async fn what_is_there_already_succeeds_at_once() -> Result<()> {
    let play = Play::new("there").await?;
    play.deployment("web-v1", 0).await?;
    let new = play.deployment("web-v2", 4).await?;
    play.gate("closed").await?;
    let _controller = play.stage.start().await?;
    let plan = json!({"numBatches": 2, "targetSize": 4});
    play.rollout(of_pair(&plan)).await?;
    let status = play.succeeds().await?;
    let outcome = status.outcome.context("no outcome")?;
    assert_eq!(outcome.reason, "AlreadyThere");
    new.has(Counts::all(4)).await?;
    Ok(())
}

/// Old pods go although one of the new ones is not there.
#[tokio::test]
async fn a_batch_may_leave_pods_unavailable() -> Result<()> {
    let play = Play::new("tolerant").await?;
    let (old, new) = play.pair(4).await?;
    new.release("2", Readiness::Broken).await?;
    play.gate("open").await?;
    let controller = play.stage.start().await?;
    let batches = json!([{"replicas": 2, "maxUnavailable": "25%"}, {}]);
    let plan = json!({"rolloutBatches": batches, "lastBatchToRollout": 0});
    play.rollout(of_pair(&plan)).await?;
    let two = |pods: &[Replica]| pods.len() == 2 && pods.iter().all(|pod| pod.phase == "Running");
    let pods = new.until_pods("to be there", two).await?;
    play.rests(&controller).await?;
    old.has(Counts::all(4)).await?;
    play.workloads.turn(&pods[0].name, Readiness::Ready).await?;
    play.holds("LastBatch").await?;
    old.has(Counts::all(2)).await?;
    Ok(())
}

/// A plan for what is to be brought out, in the place of another one if there is one already.
fn of_version(revision: &str, target: &str, source: Option<&str>) -> Value {
    let mut plan = in_three();
    plan["targetSize"] = json!(6);
    let mut spec = of_pair(&plan);
    spec["revision"] = json!(revision);
    spec["targetRef"]["name"] = json!(target);
    match source {
        Some(source) => spec["sourceRef"][0]["name"] = json!(source),
        None => spec["sourceRef"] = json!([]),
    }
    spec
}

/// The first version has none before it, and each later one takes the place of the one before: by the same plan, of which
/// each time all batches go out.
#[tokio::test]
async fn the_same_plan_brings_out_one_version_after_another() -> Result<()> {
    let play = Play::new("versions").await?;
    let one = play.deployment("web-v1", 0).await?;
    let two = play.deployment("web-v2", 0).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    let versions = [
        ("1", (&one, "web-v1"), None),
        ("2", (&two, "web-v2"), Some((&one, "web-v1"))),
        ("3", (&one, "web-v1"), Some((&two, "web-v2"))),
        ("4", (&two, "web-v2"), Some((&one, "web-v1"))),
    ];
    for (version, (new, target), source) in versions {
        new.release(version, Readiness::Ready).await?;
        new.has(Counts::all(0)).await?;
        play.rollout(of_version(version, target, source.map(|it| it.1)))
            .await?;
        let is_out = |status: &RolloutStatus| {
            let run = status.run.as_ref().filter(|run| run.revision == version);
            run.is_some() && is(RollingState::RolloutSucceed)(status)
        };
        let status = play.until("the version to be out", is_out).await?;
        let batches = status.batches.iter();
        let batches: Vec<_> = batches.map(|it| (it.goal, it.decision.is_some())).collect();
        assert_eq!(batches, [(1, true), (4, true), (6, true)], "{version}");
        new.has(Counts::all(6)).await?;
        if let Some((old, _)) = source {
            old.has(Counts::all(0)).await?;
        }
    }
    let pods = two.pods().await?;
    ensure!(pods.iter().all(|pod| pod.version == "4"), "{pods:?}");
    Ok(())
}
