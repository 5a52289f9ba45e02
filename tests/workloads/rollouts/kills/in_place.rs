//! The same of StatefulSets and CloneSets, which are updated in place.

use anyhow::{Context, Result, ensure};
use http::Method;
use rstest::rstest;
use serde_json::json;
use sluice_tests::Writes;
use sluice_tests::keeper::{Next, Point, after, before};
use sluice_tests::workloads::{Counts, Extremes, Kind};

use super::super::play::{in_place, updated};
use super::{Scene, To};

/// The objects.
const DB: &str = "/statefulsets/db";
const CLONES: &str = "/clonesets/db";

/// One pod after another is replaced.
const IN_PLACE: Extremes = Extremes {
    fewest_ready: 3,
    most: 4,
};

#[rstest]
#[case::before_a_batch(before(Method::PATCH, DB, r#""partition":2}"#))]
#[case::after_a_batch(after(Method::PATCH, DB, r#""partition":2}"#))]
#[case::before_it_is_armed(before(Method::PATCH, DB, r#""partition":2147483647}"#))]
#[case::after_it_is_armed(after(Method::PATCH, DB, r#""partition":2147483647}"#))]
#[case::after_the_release(after(Method::PATCH, DB, "done"))]
#[tokio::test]
async fn a_stateful_set_is_rolled_out_and_armed_once(
    #[case] point: Point,
    #[values(Next::Restart, Next::Standby)] next: Next,
) -> Result<()> {
    let mut scene = Scene::open(next).await?;
    let db = scene.play.armed(Kind::StatefulSet).await?;
    let serving = scene.play.workloads.serving().await?;
    scene.dies_at(To::Own, &point);
    let spec = in_place(Kind::StatefulSet, &scene.plan());
    scene.play.rollout(spec).await?;
    scene.killed().await?;
    scene.succeeds().await?;
    db.has(Counts::all(4)).await?;
    // Claimed, two batches, armed, released.
    assert_eq!(scene.writes(DB), 5);
    scene.called(4, 0);
    serving.were(IN_PLACE).await
}

#[rstest]
#[case::before_the_template(before(Method::PATCH, DB, r#""template""#))]
#[case::after_the_template(after(Method::PATCH, DB, r#""template""#))]
#[case::before_it_is_armed(before(Method::PATCH, DB, r#""partition":2147483647}"#))]
#[case::after_it_is_armed(after(Method::PATCH, DB, r#""partition":2147483647}"#))]
#[tokio::test]
async fn a_stateful_set_is_brought_back_once(
    #[case] point: Point,
    #[values(Next::Restart, Next::Standby)] next: Next,
) -> Result<()> {
    let mut scene = Scene::open(next).await?;
    let db = scene.play.armed(Kind::StatefulSet).await?;
    let serving = scene.play.workloads.serving().await?;
    let mut plan = scene.plan();
    (plan["lastBatchToRollout"], plan["revertOnDelete"]) = (json!(0), json!(true));
    scene.half(in_place(Kind::StatefulSet, &plan)).await?;
    db.has(updated(2)).await?;
    scene.dies_at(To::Own, &point);
    scene.play.delete().await?;
    scene.killed().await?;
    scene.play.gone().await?;
    db.has(Counts::all(4)).await?;
    let pods = db.pods().await?;
    ensure!(pods.iter().all(|pod| pod.version == "1"), "{pods:?}");
    // Claimed, one batch, its template, armed and released at once. No pod was deleted by hand.
    assert_eq!(scene.writes(DB), 4);
    assert_eq!(scene.keeper.carried_out(&Method::DELETE, "/pods/", ""), 0);
    scene.called(3, 0);
    serving.were(IN_PLACE).await
}

/// The claim says what the status has said: the partition is not raised before the end. The batch whose partition is
/// written is passed, and the hook before all of them is called again, under the key that it had.
#[rstest]
#[case::stateful_set(
    Kind::StatefulSet,
    (DB, r#""partition":2}"#, r#""partition":2147483647"#)
)]
#[case::clone_set(Kind::CloneSet, (CLONES, r#""partition":2,"#, r#""partition":"100%""#))]
#[tokio::test]
async fn one_is_rolled_out_once_also_where_the_status_is_lost(
    #[case] kind: Kind,
    #[case] (of, half, armed): (&'static str, &'static str, &'static str),
    #[values(Next::Restart, Next::Standby)] next: Next,
) -> Result<()> {
    let mut scene = Scene::open(next).await?;
    let db = scene.play.armed(kind).await?;
    let serving = scene.play.workloads.serving().await?;
    scene.dies_at(To::Own, &after(Method::PATCH, of, half));
    scene.play.rollout(in_place(kind, &scene.plan())).await?;
    scene.keeper.dead().await?;
    let before = scene.status().await?.run.context("no run")?;
    let lost = json!({"status": null});
    scene.play.rollouts().merge_status("web", lost).await?;
    scene.keeper.goes_on().await?;
    scene.succeeds().await?;
    let now = scene.status().await?.run.context("no run")?;
    assert_eq!((now.id, now.workloads), (before.id, before.workloads));
    db.has(Counts::all(4)).await?;
    // Claimed, two batches, armed, released.
    assert_eq!(scene.writes(of), 5);
    let raised = scene.keeper.carried_out(&Method::PATCH, of, armed);
    assert_eq!(raised, 1);
    scene.called(3, 1);
    let Extremes { fewest_ready, .. } = serving.extremes().await?;
    assert_eq!(fewest_ready, 3);
    Ok(())
}
