//! What is not written: nothing, while nothing happens, and of the objects of others only what a run needs.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use jiff::SignedDuration;
use kube::api::ObjectMeta;
use rstest::rstest;
use serde_json::{Value, json};
use sluice_tests::controller::InProcess;
use sluice_tests::workloads::{Counts, Kind, Readiness};

use super::play::{Play, in_place, of_pair, updated};

/// Half an hour, in steps after each of which everything that is due was looked at.
async fn an_idle_time(play: &Play, controller: &InProcess) -> Result<()> {
    for _ in 0..30 {
        play.pass(SignedDuration::from_mins(1));
        play.rests(controller).await?;
    }
    Ok(())
}

/// What a run waits for.
#[derive(Clone, Copy, Debug)]
enum Waits {
    ForAGate,
    ForAPerson,
    WhilePaused,
    ForAnother,
    Armed,
}

impl Waits {
    fn plan(self) -> Value {
        match self {
            Self::ForAGate | Self::ForAnother | Self::Armed => json!({"numBatches": 2}),
            Self::ForAPerson => json!({"numBatches": 2, "lastBatchToRollout": 0}),
            Self::WhilePaused => json!({"numBatches": 2, "paused": true}),
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::ForAGate => "GatesClosed",
            Self::ForAPerson => "LastBatch",
            Self::WhilePaused => "Paused",
            Self::ForAnother => "ClaimedBy",
            Self::Armed => "NotArmed",
        }
    }
}

#[rstest]
#[tokio::test]
async fn nothing_is_written_while_a_rollout_is_held(
    #[values(
        Waits::ForAGate,
        Waits::ForAPerson,
        Waits::WhilePaused,
        Waits::ForAnother,
        Waits::Armed
    )]
    waits: Waits,
) -> Result<()> {
    let play = Play::new("held").await?;
    let (old, new) = play.pair(4).await?;
    play.gate(if matches!(waits, Waits::ForAGate) {
        "closed"
    } else {
        "open"
    })
    .await?;
    let controller = play.stage.start().await?;
    let spec = match waits {
        Waits::Armed => {
            let half = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
            let spec = json!({"replicas": 4, "updateStrategy": half});
            let db = play.workloads.create(Kind::StatefulSet, "db", spec).await?;
            db.has(Counts::all(4)).await?;
            db.release("2", Readiness::Ready).await?;
            db.has(updated(2)).await?;
            in_place(Kind::StatefulSet, &waits.plan())
        }
        Waits::ForAnother => {
            let mut first = of_pair(&Waits::ForAPerson.plan());
            first["revision"] = json!("1.9.0");
            play.named("first", first).await?;
            new.has(Counts::all(2)).await?;
            old.has(Counts::all(2)).await?;
            of_pair(&waits.plan())
        }
        Waits::ForAGate | Waits::ForAPerson | Waits::WhilePaused => of_pair(&waits.plan()),
    };
    play.rollout(spec).await?;
    play.holds(waits.reason()).await?;
    play.rests(&controller).await?;
    let before = play.writes(&controller).await?;
    an_idle_time(&play, &controller).await?;
    assert_eq!(play.writes(&controller).await?, before);
    Ok(())
}

/// Of one that is over, neither.
#[tokio::test]
async fn nothing_is_written_after_the_end() -> Result<()> {
    let play = Play::new("over").await?;
    let (_, new) = play.pair(4).await?;
    play.gate("open").await?;
    let controller = play.stage.start().await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    play.succeeds().await?;
    play.is_free("web").await?;
    play.rests(&controller).await?;
    let before = play.writes(&controller).await?;
    an_idle_time(&play, &controller).await?;
    // Not even when somebody takes a pod, or scales what was rolled out.
    new.scale(5).await?;
    new.has(Counts::all(5)).await?;
    an_idle_time(&play, &controller).await?;
    assert_eq!(play.writes(&controller).await?, before);
    Ok(())
}

/// A batch costs what it has to: the statuses of its states, a patch for each half, and no more.
#[tokio::test]
async fn a_batch_costs_no_more_than_it_has_to() -> Result<()> {
    let play = Play::new("cost").await?;
    play.pair(4).await?;
    play.gate("open").await?;
    let controller = play.stage.start().await?;
    play.rollout(of_pair(&json!({"numBatches": 2, "lastBatchToRollout": 0})))
        .await?;
    play.holds("LastBatch").await?;
    play.rests(&controller).await?;
    let patches = controller.writes("Deployment").await?;
    let statuses = controller.writes("Rollout").await?;
    play.raise().await?;
    play.succeeds().await?;
    play.is_free("web").await?;
    play.rests(&controller).await?;
    // Two halves, and the release of both.
    assert_eq!(controller.writes("Deployment").await? - patches, 4);
    let statuses = controller.writes("Rollout").await? - statuses;
    ensure!(statuses <= 8, "{statuses} writes of the Rollout");
    Ok(())
}

/// What the controller owns of an object by its Rollouts: how it has written each field.
fn owned(metadata: &ObjectMeta) -> BTreeSet<String> {
    let entries = metadata.managed_fields.iter().flatten();
    let ours = entries.filter(|it| it.manager.as_deref() == Some("gate-controller-rollouts"));
    let mut all = BTreeSet::new();
    for entry in ours {
        let how = entry.operation.as_deref().unwrap_or_default();
        let fields = entry.fields_v1.as_ref().map(|it| &it.0);
        leaves(fields.unwrap_or(&Value::Null), how, &mut all);
    }
    all
}

/// The fields that have none below them, each behind the path to it.
fn leaves(fields: &Value, path: &str, all: &mut BTreeSet<String>) {
    let below = fields.as_object().into_iter().flatten();
    let mut below = below.filter(|(field, _)| *field != ".").peekable();
    if below.peek().is_none() {
        all.insert(path.to_owned());
    }
    for (field, fields) in below {
        let field = field.split_once(':').map_or(&**field, |(_, name)| name);
        leaves(fields, &format!("{path} {field}"), all);
    }
}

const CLAIM: &str = "Update metadata annotations sluice.dev/rollout";
const REPLICAS: &str = "Update spec replicas";

/// Its claims and sizes are its own, by `Update`: of what it would own by `Apply` alone, the API server would take the
/// value away when it is given up. Everything else stays with whom it belongs to.
#[tokio::test]
async fn of_a_pair_nothing_is_owned_but_claims_and_sizes() -> Result<()> {
    let play = Play::new("owned").await?;
    let (old, new) = play.pair(4).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    play.rollout(of_pair(&Waits::ForAPerson.plan())).await?;
    let owned = async || {
        let (new, old) = (new.api().get("web-v2"), old.api().get("web-v1"));
        Ok::<_, anyhow::Error>([owned(&new.await?.metadata), owned(&old.await?.metadata)])
    };
    let both = || BTreeSet::from([CLAIM, REPLICAS].map(str::to_owned));
    play.holds("LastBatch").await?;
    assert_eq!(owned().await?, [both(), both()]);
    play.raise().await?;
    play.succeeds().await?;
    play.is_free("web").await?;
    // Only the target keeps the claim, which says that it is done.
    assert_eq!(
        owned().await?,
        [both(), BTreeSet::from([REPLICAS.to_owned()])]
    );
    Ok(())
}

#[rstest]
#[case::stateful_set(
    Kind::StatefulSet,
    &["Update spec updateStrategy rollingUpdate partition"]
)]
#[case::clone_set(
    Kind::CloneSet,
    &["Update spec updateStrategy partition", "Update spec updateStrategy paused"]
)]
#[tokio::test]
async fn of_what_is_updated_in_place_nothing_is_owned_but_its_claim_and_its_partition(
    #[case] kind: Kind,
    #[case] fields: &[&str],
) -> Result<()> {
    let play = Play::new("owned-db").await?;
    let db = play.armed(kind).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    play.rollout(in_place(kind, &Waits::ForAPerson.plan()))
        .await?;
    let expected = fields.iter().copied().chain([CLAIM]);
    let expected: BTreeSet<_> = expected.map(str::to_owned).collect();
    play.holds("LastBatch").await?;
    assert_eq!(owned(&db.api().get("db").await?.metadata), expected);
    play.raise().await?;
    play.succeeds().await?;
    play.is_free("web").await?;
    assert_eq!(owned(&db.api().get("db").await?.metadata), expected);
    Ok(())
}
