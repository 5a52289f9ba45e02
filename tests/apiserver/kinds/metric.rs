//! What a real Prometheus measures, through the whole controller.

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sluice_crds::gatekeeper::MetricStatus;
use sluice_crds::{GateStatus, State};
use sluice_tests::controller::InProcess;
use sluice_tests::poll;
use sluice_tests::progress::Stderr;
use sluice_tests::prometheus::{Access, Programs, Prometheus};

use super::kept;
use crate::stage::{DEADLINE, Stage, at, message};
use crate::told::get;

mod access;
mod waiting;

const NOON: &str = "2026-11-20T12:00:00Z";
/// Within this a query is asked again: at its interval of a minute, a tenth more or less.
const ROUND: SignedDuration = SignedDuration::from_secs(66);
/// How long an answer counts: three intervals.
const GOOD_FOR: SignedDuration = SignedDuration::from_mins(3);

async fn prometheus(access: Access) -> Result<Prometheus> {
    Prometheus::start(&Programs::ensure(&Stderr::new())?, access).await
}

/// The spec of a gatekeeper that asks `prometheus`.
fn asks(prometheus: &Prometheus, query: &str, range: &Value, with: Value) -> Value {
    let mut metric = json!({"address": prometheus.url(), "query": query, "range": range});
    let Value::Object(with) = with else {
        panic!("{with}");
    };
    metric.as_object_mut().unwrap().extend(with);
    json!({"metric": metric})
}

/// The error rate `errors`, which may be 0.05.
fn errors(prometheus: &Prometheus, with: Value) -> Value {
    asks(prometheus, "errors", &json!({"max": 0.05}), with)
}

impl Stage {
    /// Lets time pass.
    fn pass(&self, time: SignedDuration) {
        self.clock().set(self.now() + time);
    }

    /// Waits until a gatekeeper reports this of its metric, and returns it.
    async fn measured(
        &self,
        name: &str,
        what: &str,
        check: impl Fn(&MetricStatus) -> bool,
    ) -> Result<MetricStatus> {
        let metric = |status: &sluice_crds::GatekeeperStatus| {
            let evidence = status.evidence.clone();
            evidence.and_then(|evidence| evidence.metric)
        };
        let found = self
            .until_gatekeeper(name, what, |status| {
                metric(status).is_some_and(|found| check(&found))
            })
            .await?;
        let status = found.status.context("no status")?;
        metric(&status).context("no metric")
    }

    /// Waits until the controller knows a value, which it need not write: it serves it.
    async fn knows(&self, controller: &InProcess, name: &str, value: f64) -> Result<()> {
        let of = format!("namespace=\"{}\",name=\"{name}\"", self.namespace());
        let line = format!("sluice_gatekeeper_value{{{of}}} {value}");
        poll(DEADLINE, &line, async || {
            let (_, page) = get(controller.metrics()?, "/metrics").await?;
            ensure!(page.lines().any(|found| found == line), "{page}");
            Ok(())
        })
        .await
    }
}

/// All that is said of one query at one instant: the gate's state and reason, the words of its
/// message, and the value in the gatekeeper's status.
type Said = (State, &'static str, &'static str, Option<&'static str>);

#[tokio::test]
async fn a_gate_is_open_while_a_value_is_within_its_range() -> Result<()> {
    let prometheus = prometheus(Access::default()).await?;
    let gauges = [
        ("errors", 0.02),
        ("availability", 0.982),
        ("memory_bytes", 3e9),
        ("broken", f64::NAN),
        ("latency{pod=\"a\"}", 1.0),
        ("latency{pod=\"b\"}", 2.0),
    ];
    prometheus.set_all(&gauges).await?;
    let ask = |query, range: Value, with: Value| asks(&prometheus, query, &range, with);
    let max = || json!({"max": 0.05});
    let (open, closed) = (State::Open, State::Closed);
    let table: [(&str, Value, Said); 10] = [
        (
            "sample",
            ask("errors", max(), json!({})),
            (
                open,
                "InRange",
                "0.02 is within max 0.05, measured Fri 2026-11-20 12:00 UTC",
                Some("0.02"),
            ),
        ),
        (
            "scalar",
            ask(
                "scalar(errors) * 100",
                json!({"min": 0, "max": 5}),
                json!({}),
            ),
            (
                open,
                "InRange",
                "2 is within min 0, max 5, measured",
                Some("2"),
            ),
        ),
        (
            "bytes",
            ask("memory_bytes", json!({"min": 4e9}), json!({})),
            (
                closed,
                "OutOfRange",
                "3000000000 is below min 4000000000, measured Fri 2026-11-20 12:00 UTC",
                Some("3000000000"),
            ),
        ),
        (
            "below",
            ask("availability", json!({"min": 0.99, "max": 1}), json!({})),
            (
                closed,
                "OutOfRange",
                "0.982 is below min 0.99, measured",
                Some("0.982"),
            ),
        ),
        (
            "none",
            ask("nothing", max(), json!({})),
            (
                closed,
                "NoData",
                "the query returns no value, asked Fri 2026-11-20 12:00 UTC",
                None,
            ),
        ),
        (
            "none-open",
            ask("nothing", max(), json!({"onNoData": "open"})),
            (
                open,
                "NoData",
                "the query returns no value, and onNoData is open, asked",
                None,
            ),
        ),
        (
            "nan",
            ask("broken", max(), json!({})),
            (closed, "NoData", "the query returns no value, asked", None),
        ),
        (
            "nan-open",
            ask("broken", max(), json!({"onNoData": "open"})),
            (open, "NoData", "onNoData is open", None),
        ),
        (
            "many",
            ask("latency", max(), json!({})),
            (
                closed,
                "EvidenceBroken",
                "the query returns 2 samples; write one that returns a single one: aggregate, as in \
             sum(...)",
                None,
            ),
        ),
        (
            "refused",
            ask("latency{", max(), json!({})),
            (
                closed,
                "EvidenceBroken",
                "it refuses the query; correct query",
                None,
            ),
        ),
    ];
    let stage = Stage::new("metric", NOON).await?;
    for (name, spec, _) in &table {
        stage.apply(&kept(name, spec)).await?;
    }
    let _controller = stage.start_with_egress().await?;
    for (name, _, (state, reason, words, value)) in &table {
        let status = stage.says(name, *state, reason).await?;
        ensure!(message(&status).contains(words), "{name}: {status:?}");
        let of_value = |metric: &MetricStatus| metric.value.as_deref() == *value;
        let metric = stage.measured(name, "the value", of_value).await?;
        let answered = *name != "refused";
        assert_eq!(
            metric.observed_at.map(|at| at.0),
            answered.then(|| at(NOON)),
            "{name}"
        );
    }
    let below = stage.measured("below", "the range", |_| true).await?;
    assert_eq!(below.range, "min 0.99, max 1");

    // The next answer changes the gate as soon as it is there.
    prometheus.set("errors", 0.5).await?;
    stage.pass(ROUND);
    let status = stage.says("sample", closed, "OutOfRange").await?;
    let words = "0.5 is above max 0.05, measured Fri 2026-11-20 12:01:";
    ensure!(message(&status).contains(words), "{status:?}");
    let is = |metric: &MetricStatus| metric.value.as_deref() == Some("0.5");
    stage.measured("sample", "the new value", is).await?;
    Ok(())
}

#[tokio::test]
async fn a_value_that_changes_nothing_is_not_written() -> Result<()> {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    let prometheus = prometheus(Access::default()).await?;
    prometheus.set("errors", 0.02).await?;
    let stage = Stage::new("quiet", NOON).await?;
    for name in NAMES {
        stage
            .apply(&kept(name, &errors(&prometheus, json!({}))))
            .await?;
    }
    let controller = stage.start_with_egress().await?;
    let all_open = async || {
        for name in NAMES {
            stage.says(name, State::Open, "InRange").await?;
            stage
                .measured(name, "a value", |metric| metric.value.is_some())
                .await?;
        }
        stage.settle().await
    };
    all_open().await?;
    let writes = async || {
        let gates = stage.writes(&controller).await?;
        let gatekeepers = stage.writes_of(&controller, "Gatekeeper").await?;
        Ok::<_, anyhow::Error>([gates, gatekeepers])
    };

    // Each is measured again, and comes to the same.
    let before = writes().await?;
    prometheus.set("errors", 0.03).await?;
    stage.pass(ROUND);
    for name in NAMES {
        stage.knows(&controller, name, 0.03).await?;
    }
    stage.settle().await?;
    assert_eq!(writes().await?, before);

    // Half of what was promised is spent: gatekeepers promise again, gates have nothing to say.
    stage.pass(ROUND);
    for name in NAMES {
        let fresh = |metric: &MetricStatus| metric.value.as_deref() == Some("0.03");
        stage.measured(name, "a promise of more", fresh).await?;
    }
    stage.settle().await?;
    let [gates, gatekeepers] = before;
    assert_eq!(writes().await?, [gates, gatekeepers + 4]);
    let promised = stage
        .gatekeepers()
        .get("a")
        .await?
        .status
        .context("no status")?;
    let until = promised.verdict.and_then(|verdict| verdict.valid_until);
    ensure!(until.is_some_and(|until| until.0 > stage.now() + SignedDuration::from_mins(2)));

    // What changes the state is written at once: once each.
    let [gates, gatekeepers] = writes().await?;
    prometheus.set("errors", 1.0).await?;
    stage.pass(ROUND);
    for name in NAMES {
        stage.says(name, State::Closed, "OutOfRange").await?;
    }
    stage.settle().await?;
    assert_eq!(writes().await?, [gates + 4, gatekeepers + 4]);
    Ok(())
}

/// Until when a gate is closed at least, by its only gatekeeper.
fn soaks_until(status: &GateStatus) -> Option<Timestamp> {
    let until = status.verdicts[0].verdict.valid_until.as_ref()?;
    Some(until.0)
}

/// In a row, also across a restart.
#[tokio::test]
async fn a_value_has_to_be_within_its_range_for_a_while() -> Result<()> {
    let prometheus = prometheus(Access::default()).await?;
    prometheus.set("errors", 0.02).await?;
    let stage = Stage::new("row", NOON).await?;
    let spec = errors(&prometheus, json!({"for": "4m"}));
    stage.apply(&kept("canary", &spec)).await?;
    let first = stage.start_with_egress().await?;
    let status = stage.says("canary", State::Closed, "Soaking").await?;
    assert_eq!(soaks_until(&status), Some(at("2026-11-20T12:04:00Z")));
    let words = "0.02 is within max 0.05 since Fri 2026-11-20 12:00 UTC, and has to be for 4m, \
                 which an answer from Fri 2026-11-20 12:04 UTC on can show";
    ensure!(message(&status).contains(words), "{status:?}");
    prometheus.set("errors", 0.03).await?;
    stage.pass(ROUND);
    stage.knows(&first, "canary", 0.03).await?;
    first.stop().await;

    let second = stage.start_with_egress().await?;
    for value in [0.04, 0.01] {
        prometheus.set("errors", value).await?;
        stage.pass(ROUND);
        stage.knows(&second, "canary", value).await?;
    }
    stage.settle().await?;
    stage.says("canary", State::Closed, "Soaking").await?;
    // Only an answer from then on shows that it was so for four minutes.
    stage.pass(ROUND);
    let open = stage.says("canary", State::Open, "InRange").await?;
    let since = open.since.as_ref().map(|since| since.0);
    ensure!(since >= Some(at("2026-11-20T12:04:00Z")), "{open:?}");

    // One value outside, and it begins again.
    prometheus.set("errors", 0.5).await?;
    stage.pass(ROUND);
    stage.says("canary", State::Closed, "OutOfRange").await?;
    prometheus.set("errors", 0.01).await?;
    stage.pass(ROUND);
    let again = stage.says("canary", State::Closed, "Soaking").await?;
    let end = stage.now() + SignedDuration::from_mins(4);
    assert_eq!(soaks_until(&again), Some(end));
    Ok(())
}

/// It is down, and so was the controller.
#[tokio::test]
async fn the_last_value_counts_for_three_intervals_and_no_longer() -> Result<()> {
    let prometheus = prometheus(Access::default()).await?;
    prometheus.set("errors", 0.02).await?;
    let stage = Stage::new("restart", NOON).await?;
    let strict = errors(&prometheus, json!({"timeout": "1s"}));
    let mut lax = strict.clone();
    lax["onError"] = "open".into();
    stage.apply(&kept("strict", &strict)).await?;
    stage.apply(&kept("lax", &lax)).await?;
    let first = stage.start_with_egress().await?;
    for name in ["strict", "lax"] {
        stage.says(name, State::Open, "InRange").await?;
        stage
            .measured(name, "a value", |metric| metric.value.is_some())
            .await?;
    }

    // It is there, and does not answer.
    prometheus.process().pause()?;
    stage.pass(ROUND);
    let slow = |metric: &MetricStatus| {
        let error = metric.error.as_deref();
        error == Some("http://127.0.0.1: timed out after 1s")
    };
    let kept = stage.measured("strict", "timed out", slow).await?;
    assert_eq!(kept.value.as_deref(), Some("0.02"));
    stage.settle().await?;
    stage.says("strict", State::Open, "InRange").await?;
    first.stop().await;
    drop(prometheus);

    let _second = stage.start_with_egress().await?;
    let down = |metric: &MetricStatus| {
        let error = metric.error.as_deref();
        error == Some("http://127.0.0.1: connection refused")
    };
    for name in ["strict", "lax"] {
        let kept = stage.measured(name, "refused", down).await?;
        assert_eq!(kept.observed_at.map(|found| found.0), Some(at(NOON)));
        stage.says(name, State::Open, "InRange").await?;
    }
    let end = at(NOON) + GOOD_FOR;
    stage.clock().set(end - SignedDuration::from_millis(1));
    stage.settle().await?;
    stage.says("strict", State::Open, "InRange").await?;
    stage.clock().set(end);
    let status = stage
        .says("strict", State::Closed, "EvidenceUnavailable")
        .await?;
    ensure!(
        message(&status).contains("connection refused"),
        "{status:?}"
    );
    let status = stage
        .says("lax", State::Open, "EvidenceUnavailable")
        .await?;
    ensure!(
        message(&status).contains("connection refused; onError is open"),
        "{status:?}"
    );
    Ok(())
}
