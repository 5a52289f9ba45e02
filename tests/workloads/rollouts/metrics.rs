//! Metrics that a real Prometheus measures, after the pods of a batch are there.

use anyhow::{Context, Result, ensure};
use jiff::SignedDuration;
use rstest::rstest;
use serde_json::json;
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::RollingState;
use sluice_tests::controller::InProcess;
use sluice_tests::progress::Stderr;
use sluice_tests::prometheus::{Access, Programs, Prometheus};
use sluice_tests::workloads::{Counts, Workload};
use sluice_tests::{DEADLINE, Writes, poll};

use super::play::{Play, is, of_pair};

/// Within this a query is asked again: at its interval of a minute, a tenth more or less.
const ROUND: SignedDuration = SignedDuration::from_secs(66);

/// A pair of which the first batch is out, with a metric that is to be good for five minutes.
struct Measured {
    play: Play,
    prometheus: Prometheus,
    old: Workload,
    new: Workload,
    controller: InProcess,
}

impl Measured {
    async fn open(errors: f64) -> Result<Self> {
        let programs = Programs::ensure(&Stderr::new())?;
        let prometheus = Prometheus::start(&programs, Access::default()).await?;
        prometheus.set("errors", errors).await?;
        let play = Play::new("metric").await?;
        let (old, new) = play.pair(4).await?;
        play.gate("open").await?;
        let metric = json!({
            "address": prometheus.url(), "query": "errors", "range": {"max": 0.5},
        });
        let gatekeeper = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper",
            "metadata": {"name": "errors"}, "spec": {"metric": metric},
        });
        play.stage.apply(&gatekeeper.to_string()).await?;
        let controller = play.stage.start_with_egress().await?;
        let metric = json!({"name": "errors", "interval": "5m", "metricsRange": {"max": 0.05}});
        let batches = json!([{"replicas": 2, "canaryMetric": [metric]}, {}]);
        play.rollout(of_pair(&json!({ "rolloutBatches": batches })))
            .await?;
        new.has(Counts::all(2)).await?;
        old.has(Counts::all(2)).await?;
        Ok(Self {
            play,
            prometheus,
            old,
            new,
            controller,
        })
    }

    /// The value of the metric as the status has it, and whether it is good so far.
    fn seen(status: &RolloutStatus) -> Option<(Option<&str>, bool)> {
        let record = status.metrics.first()?;
        Some((record.value.as_deref(), record.within_since.is_some()))
    }

    async fn says(&self, value: Option<&str>, good: bool) -> Result<RolloutStatus> {
        let what = format!("the metric to be {value:?}, {good}");
        let says = |status: &RolloutStatus| Self::seen(status) == Some((value, good));
        self.play.until(&what, says).await
    }

    /// The query is asked again, and everything has been looked at.
    async fn round(&self) -> Result<()> {
        self.play.pass(ROUND);
        self.play.rests(&self.controller).await
    }
}

/// In range for its interval: not a round earlier.
#[tokio::test]
async fn a_batch_waits_until_its_metric_was_good_for_long_enough() -> Result<()> {
    let it = Measured::open(0.01).await?;
    it.round().await?;
    let status = it.says(Some("0.01"), true).await?;
    let since = status.metrics[0].within_since.clone().context("not good")?;
    let left = since.0 + SignedDuration::from_mins(5);
    while it.play.stage.now() + ROUND < left {
        it.round().await?;
        let status = it.says(Some("0.01"), true).await?;
        assert_eq!(status.current_batch, Some(0));
    }
    it.round().await?;
    it.round().await?;
    let status = it.play.succeeds().await?;
    let done = status.batches[0].done.as_ref().context("not done")?;
    ensure!(done.0 >= left, "{done:?} is before {left}");
    it.new.has(Counts::all(4)).await?;
    Ok(())
}

/// A value outside the range of the batch, which is stricter than the gatekeeper's, is waited for until the deadline.
#[tokio::test]
async fn a_metric_out_of_range_fails_the_batch_in_the_end() -> Result<()> {
    let it = Measured::open(0.2).await?;
    it.round().await?;
    it.says(Some("0.2"), false).await?;
    // The deadline of 10 minutes, and the 5 of the interval.
    for _ in 0..15 {
        it.round().await?;
    }
    it.play.fails("ProgressDeadlineExceeded").await?;
    it.new.has(Counts::all(2)).await?;
    it.old.has(Counts::all(2)).await?;
    Ok(())
}

/// Something that takes the value away.
#[derive(Clone, Copy, Debug)]
enum Blind {
    NoData,
    NotANumber,
    NoGatekeeper,
    NoAnswer,
}

/// It neither passes nor fails: the deadline stands still, a day long, and what was good before does not count.
#[rstest]
#[tokio::test]
async fn a_metric_without_a_value_holds_the_batch(
    #[values(Blind::NoData, Blind::NotANumber, Blind::NoGatekeeper, Blind::NoAnswer)] how: Blind,
) -> Result<()> {
    let it = Measured::open(0.01).await?;
    it.round().await?;
    it.says(Some("0.01"), true).await?;
    let gatekeepers = it.play.stage.gatekeepers();
    let spec = gatekeepers.get("errors").await?.spec;
    match how {
        Blind::NoData => it.prometheus.remove("errors").await?,
        Blind::NotANumber => it.prometheus.set("errors", f64::NAN).await?,
        Blind::NoGatekeeper => gatekeepers.remove("errors").await?,
        Blind::NoAnswer => it.prometheus.process().pause()?,
    }
    // An answer is good for three rounds.
    for _ in 0..4 {
        it.round().await?;
    }
    let held = it.play.holds("MetricBlind").await?;
    for _ in 0..24 {
        it.play.pass(SignedDuration::from_hours(1));
        it.play.rests(&it.controller).await?;
    }
    let still = it.play.holds("MetricBlind").await?;
    assert_eq!(still.deadline, held.deadline);

    let back = it.play.stage.now();
    match how {
        Blind::NoData | Blind::NotANumber => it.prometheus.set("errors", 0.02).await?,
        Blind::NoGatekeeper => {
            let gatekeeper = json!({
                "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper",
                "metadata": {"name": "errors"}, "spec": spec,
            });
            it.play.stage.apply(&gatekeeper.to_string()).await?;
        }
        Blind::NoAnswer => it.prometheus.process().resume()?,
    }
    let status = poll(DEADLINE, "the rollout to succeed", async || {
        it.round().await?;
        let status = it.play.rollouts().get("web").await?.status;
        let done = status.filter(is(RollingState::RolloutSucceed));
        done.context("it has not succeeded")
    })
    .await?;
    let done = status.batches[0].done.as_ref().context("not done")?;
    ensure!(done.0 >= back + SignedDuration::from_mins(5), "{done:?}");
    it.new.has(Counts::all(4)).await?;
    Ok(())
}
