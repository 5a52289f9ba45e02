//! What is told of gated sources: to the audit log, as a metric, and of whose gates they are.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use sluice_crds::audit::Event;
use sluice_crds::{Decision, GatedSource};
use sluice_tests::poll;

use super::scene::{Scene, commit, message};
use crate::audit::{Log, settings};
use crate::gate_policies::{Policy, all_namespaces, freeze, here};
use crate::stage::DEADLINE;
use crate::told::get;

/// The decisions about gated sources in a log, as they say it.
fn decisions(log: &Log) -> Result<Vec<Decision>> {
    let decided = log
        .records()?
        .into_iter()
        .filter_map(|record| match record.event {
            Event::Decision(decided) => Some(decided.decision),
            _ => None,
        });
    Ok(decided
        .filter(|decision| decision.subject.kind == "GatedSource")
        .collect())
}

/// What runs already is admitted without asking, and what waited goes out: both are on record, in this
/// order and once, with who, what and why.
#[tokio::test]
async fn the_baseline_and_every_admission_are_on_record() -> Result<()> {
    let scene = Scene::new("gated-audit").await?;
    scene.gate("closed").await?;
    let revision = |digit: char| format!("main@sha1:{}", commit(digit));
    scene.upstream("main", &commit('b')).await?;
    scene
        .gated(json!({"baseline": {"revision": revision('a')}}))
        .await?;
    let log = Log::new()?;
    let mut required = log.settings(&scene.stage)?;
    required.audit_required = true;
    let controller = scene.stage.start_with(required).await?;
    scene.pinned(&commit('a')).await?;
    scene.fetched("app", &revision('a')).await?;
    scene.until("Blocked", "True", "GatesClosed").await?;
    scene.gate("open").await?;
    scene.pinned(&commit('b')).await?;
    scene.fetched("app", &revision('b')).await?;
    scene.until("Ready", "True", "Serving").await?;
    scene.stage.settle().await?;
    controller.stop().await;

    let told = decisions(&log)?;
    let allowed: Vec<_> = (told.iter())
        .filter(|decision| decision.allowed)
        .map(|decision| {
            let subject = &decision.subject;
            (
                subject.name.as_deref().unwrap_or_default(),
                subject.action.as_str(),
                subject.revision.clone().unwrap_or_default(),
            )
        })
        .collect();
    let expected = [
        ("app", "admit", revision('a')),
        ("app", "admit", revision('b')),
    ];
    ensure!(allowed == expected, "{told:#?}");
    let first = told.first().context("nothing")?;
    ensure!(
        first.message.contains("baseline") && first.decided_by.is_empty(),
        "{first:?}"
    );
    ensure!(
        told.iter()
            .any(|it| !it.allowed && it.subject.revision == Some(revision('b'))),
        "that it waited is not on record: {told:#?}"
    );
    Ok(())
}

/// Where everything has to be on record, nothing goes out that cannot be written there.
#[tokio::test]
async fn what_cannot_be_recorded_does_not_go_out() -> Result<()> {
    let scene = Scene::open("gated-required").await?;
    scene.gated(json!({})).await?;
    let mut required = settings(&scene.stage, "/dev/full".as_ref())?;
    required.audit_required = true;
    let controller = scene.stage.start_with(required).await?;
    let held = scene.until("Blocked", "True", "GatesClosed").await?;
    let why = message(&held, "Blocked");
    ensure!(why.contains("--audit-required"), "{why}");
    scene.stage.settle().await?;
    ensure!(scene.child().await?.is_none(), "it went out");
    let status = scene.get().await?.status.context("no status")?;
    ensure!(status.admitted.is_none(), "{status:?}");
    controller.stop().await;

    let log = Log::new()?;
    let mut required = log.settings(&scene.stage)?;
    required.audit_required = true;
    let _controller = scene.stage.start_with(required).await?;
    scene.pinned(&commit('a')).await?;
    ensure!(decisions(&log)?.iter().any(|decision| decision.allowed));
    Ok(())
}

/// Alerts are about this metric.
#[tokio::test]
async fn the_metric_says_what_is_blocked_for_as_long_as_it_is() -> Result<()> {
    let scene = Scene::new("gated-metric").await?;
    scene.gate("closed").await?;
    scene.upstream("main", &commit('a')).await?;
    scene.gated(json!({})).await?;
    let controller = scene.stage.start().await?;
    let metrics = controller.metrics()?;
    let line = format!(
        "sluice_blocked{{kind=\"GatedSource\",namespace=\"{}\",name=\"app\"}} ",
        scene.stage.namespace()
    );
    let says = async |value: &str| {
        poll(DEADLINE, &format!("{line}{value}"), async || {
            let (_, page) = get(metrics, "/metrics").await?;
            let found = page.lines().find_map(|it| it.strip_prefix(line.as_str()));
            ensure!(found.unwrap_or("0.0") == value, "{found:?} in {page}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    };
    scene.until("Blocked", "True", "GatesClosed").await?;
    says("1.0").await?;
    scene.gate("open").await?;
    scene.pinned(&commit('a')).await?;
    says("0.0").await
}

/// The company freezes; the team's own gate is open. It waits, and says for whom.
#[tokio::test]
async fn the_gate_of_a_policy_holds_back_what_the_own_gates_admit() -> Result<()> {
    let scene = Scene::new("gated-policy").await?;
    let stage = &scene.stage;
    scene.gate("open").await?;
    stage.apply(&freeze("closed")).await?;
    scene.upstream("main", &commit('a')).await?;
    let policy = Policy::create(
        stage,
        json!({"namespaceSelector": here(stage), "kinds": ["GatedSource"]}),
    )
    .await?;
    let labelled = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GatedSource",
        "metadata": {"name": "app", "labels": policy.labels()},
        "spec": {
            "sourceRef": {"kind": "GitRepository", "name": "app-upstream"},
            "gates": {"refs": [{"name": "production"}]},
        },
    });
    stage.apply(&labelled.to_string()).await?;
    let mut settings = stage.settings();
    all_namespaces(&mut settings);
    let _controller = stage.start_with(settings).await?;
    let held: GatedSource = scene.until("Blocked", "True", "GatesClosed").await?;
    let decision = held.status.context("no status")?.last_decision;
    let decision = decision.context("no decision")?;
    let checked: Vec<_> = (decision.checked.iter())
        .map(|gate| (gate.gate.as_str(), gate.policy.as_deref()))
        .collect();
    let here = stage.namespace();
    let (own, theirs) = (format!("{here}/production"), format!("{here}/freeze"));
    ensure!(
        checked == [(own.as_str(), None), (&theirs, Some(policy.name()))],
        "{decision:?}"
    );
    ensure!(decision.decided_by == [theirs.as_str()], "{decision:?}");
    ensure!(scene.child().await?.is_none(), "it went out");

    stage.apply(&freeze("open")).await?;
    scene.pinned(&commit('a')).await?;
    policy.delete().await
}
