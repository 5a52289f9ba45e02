//! What is told of a run by events: what it does, and what stops it, each once.

use anyhow::{Context, Result, ensure};
use jiff::SignedDuration;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use rstest::rstest;
use serde_json::json;
use sluice_crds::State;
use sluice_tests::stage::LAST;
use sluice_tests::workloads::{Counts, Readiness, Workload};
use sluice_tests::{DEADLINE, Writes, poll};

use super::play::{Play, of_pair};

/// By which an event says which revision it is about.
const REVISION: &str = "sluice.dev/revision";

/// The events that the controller has sent here, one after another.
pub async fn events(play: &Play) -> Result<Vec<Event>> {
    let api: Api<Event> = Api::namespaced(play.stage.client(), play.stage.namespace());
    let mut all = api.list(&ListParams::default()).await?.items;
    all.retain(|it| it.reporting_controller.as_deref() == Some("gate-controller"));
    all.sort_by_key(|it| it.resource_version().and_then(|it| it.parse::<u64>().ok()));
    Ok(all)
}

/// In a line: what it is about, its type, its reason, the revision, and its note.
fn line(event: &Event) -> Result<String> {
    ensure!(event.series.is_none(), "it is combined with others");
    let about = event.regarding.as_ref().context("about nothing")?;
    let word = |word: &Option<String>| word.clone().unwrap_or_default();
    let (kind, name) = (word(&about.kind), word(&about.name));
    let (type_, reason, note) = (word(&event.type_), word(&event.reason), word(&event.note));
    let revision = event.annotations().get(REVISION);
    let revision = revision.map(|it| format!(" of {it}")).unwrap_or_default();
    Ok(format!("{kind} {name}: {type_} {reason}{revision}: {note}"))
}

/// Waits until just this was told, of each object in this order: each line begins so. What tests themselves change,
/// and how they wait, is left out. Of one look, what stops a run is told before what it has done.
pub async fn tells(
    play: &Play,
    is_meant: impl Fn(&str) -> bool,
    expected: &[impl AsRef<str>],
) -> Result<()> {
    poll(DEADLINE, "the events", async || {
        let all = events(play).await?;
        let mut lines: Vec<_> = all.iter().map(line).collect::<Result<_>>()?;
        lines.retain(|it| is_meant(it) && !it.contains(LAST) && !it.contains("DefinitionChanged"));
        lines.sort_by_key(|it| it.split_once(':').map(|(about, _)| about.to_owned()));
        let mut pairs = lines.iter().zip(expected);
        let is_so = pairs.all(|(line, start)| line.starts_with(start.as_ref()));
        ensure!(is_so && lines.len() == expected.len(), "{lines:#?}");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

/// Its gate is closed before it, closes again while the pods of its first batch are on their way, and is forced open.
#[tokio::test]
async fn a_run_tells_what_it_does_and_what_it_waits_for() -> Result<()> {
    let play = Play::new("told").await?;
    let (_, new) = play.pair(4).await?;
    new.release("2", Readiness::Broken).await?;
    play.gate("closed").await?;
    let mut settings = play.stage.settings();
    settings.trust_unverified_identity = true;
    let controller = play.stage.start_with(settings).await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    play.holds("GatesClosed").await?;
    play.gate("open").await?;
    new.until("to have pods", |status| Counts::of(status).size == 2)
        .await?;
    play.gate("closed").await?;
    play.stage.says("office", State::Closed, "Default").await?;
    play.heal(&new, 2).await?;
    play.holds("GatesClosed").await?;
    let force = json!({
        "sluice.dev/force": "open", "sluice.dev/force-until": "2026-11-20T14:00:00Z",
        "sluice.dev/force-by": "alice", "sluice.dev/force-reason": "incident 4711",
    });
    play.stage.annotate("office", force).await?;
    play.heal(&new, 4).await?;
    play.succeeds().await?;
    play.is_free("web").await?;
    // Afterwards there is nothing more to tell.
    play.pass(SignedDuration::from_mins(30));
    play.rests(&controller).await?;
    let asks = |batch| format!("Rollout {}/web, {batch}: ", play.stage.namespace());
    let (first, second) = (asks("rollout 1/2"), asks("advance 2/2"));
    let expected = [
        "Gate office: Normal Closed: ",
        &format!("Gate office: Normal Blocked: {first}"),
        "Gate office: Normal Opened: ",
        &format!("Gate office: Normal Admitted: {first}"),
        "Gate office: Normal Closed: ",
        &format!("Gate office: Normal Blocked: {second}"),
        "Gate office: Normal Opened: ",
        &format!("Gate office: Normal Admitted: {second}"),
        "Rollout web: Normal Blocked: batch 0 (1/2) waits: ",
        "Rollout web: Normal Unblocked of 2.0.0: nothing waits for gates or people",
        "Rollout web: Normal RolloutBegins of 2.0.0: the rollout of 2.0.0 begins",
        "Rollout web: Normal BatchBegins of 2.0.0: batch 0 (1/2) goes out, to 2 pods: ",
        "Rollout web: Normal Blocked of 2.0.0: batch 1 (2/2) waits: ",
        "Rollout web: Normal BatchDone of 2.0.0: batch 0 (1/2) is done: 2 pods",
        "Rollout web: Normal Unblocked of 2.0.0: nothing waits for gates or people",
        "Rollout web: Normal BatchBegins of 2.0.0: batch 1 (2/2) goes out, to 4 pods: ",
        "Rollout web: Normal BatchDone of 2.0.0: batch 1 (2/2) is done: 4 pods",
        "Rollout web: Normal RolloutSucceeded of 2.0.0: 2.0.0 is out",
    ];
    tells(&play, |_| true, &expected).await
}

/// Who writes to a workload of a run.
#[derive(Clone, Copy, Debug)]
enum Other {
    Autoscaler,
    Person,
}

impl Other {
    async fn comes(self, play: &Play, new: &Workload) -> Result<()> {
        match self {
            Self::Autoscaler => play.stage.apply(AUTOSCALER).await,
            Self::Person => new.scale(3).await,
        }
    }

    async fn goes(self, play: &Play, new: &Workload) -> Result<()> {
        let (client, namespace) = (play.stage.client(), play.stage.namespace());
        let autoscalers: Api<HorizontalPodAutoscaler> = Api::namespaced(client, namespace);
        match self {
            Self::Autoscaler => Ok(autoscalers.remove("scaler").await?),
            Self::Person => new.scale(2).await,
        }
    }
}

const AUTOSCALER: &str = "
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: scaler}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web-v2}, maxReplicas: 9}
";

/// Told once with what to do, however often it is looked at, and once that it is over.
#[rstest]
#[case::an_autoscaler(
    Other::Autoscaler,
    "Autoscaler",
    "the HorizontalPodAutoscaler scaler scales Deployment web-v2; delete it"
)]
#[case::a_person(
    Other::Person,
    "FieldOverwritten",
    "unknown has set the replicas of Deployment web-v2 to 3, and the rollout has written 2"
)]
#[tokio::test]
async fn what_stops_a_run_is_told_once(
    #[case] other: Other,
    #[case] reason: &str,
    #[case] words: &str,
) -> Result<()> {
    let play = Play::new("stopped").await?;
    let (_, new) = play.pair(4).await?;
    let controller = play.stage.start().await?;
    let mut spec = of_pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    spec.as_object_mut().context("no spec")?.remove("gates");
    play.rollout(spec).await?;
    play.holds("LastBatch").await?;
    other.comes(&play, &new).await?;
    play.holds(reason).await?;
    play.raise().await?;
    for _ in 0..3 {
        play.pass(SignedDuration::from_mins(5));
        play.rests(&controller).await?;
    }
    play.holds(reason).await?;
    other.goes(&play, &new).await?;
    play.succeeds().await?;
    let stop = format!("Rollout web: Warning {reason} of 2.0.0: {words}");
    let expected = [
        "Rollout web: Normal RolloutBegins",
        "Rollout web: Normal BatchBegins of 2.0.0: batch 0 ",
        "Rollout web: Normal Blocked of 2.0.0: batch 1 (2/2) waits: ",
        "Rollout web: Normal BatchDone of 2.0.0: batch 0 ",
        &stop,
        "Rollout web: Normal Progressing of 2.0.0: ",
        "Rollout web: Normal BatchBegins of 2.0.0: batch 1 ",
        "Rollout web: Normal BatchDone of 2.0.0: batch 1 ",
        "Rollout web: Normal RolloutSucceeded of 2.0.0: ",
    ];
    tells(&play, |_| true, &expected).await
}
