//! The stories of the gating RFC about time and people.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use futures::stream::BoxStream;
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::runtime::watcher;
use serde_json::json;
use sluice_tests::flux::Git;
use tokio::time::timeout;

use crate::delivery::{APP, CLOSED, Delivery, GATE, OPEN, UPSTREAM};
use crate::stage::DEADLINE;

/// A Thursday.
const NOW: &str = "2026-11-19T12:00:00Z";

/// While a change freeze lasts nothing new goes out, and what is out is kept as it is.
#[tokio::test]
async fn a_freeze_holds_changes_and_mends_drift() -> Result<()> {
    let app = Delivery::begin("freeze", NOW, OPEN).await?;
    let one = app.push("one").await?;
    app.deployed(&one, "one").await?;
    app.close().await?;
    let two = app.push_behind_the_gate("two").await?;
    app.heals("one").await?;
    ensure!(app.stage.says_now(APP).await?.as_deref() == Some("one"));
    let message = app
        .stage
        .holds(APP, "Blocked", "True", "GatesClosed")
        .await?;
    ensure!(
        message.contains("freeze") && message.contains(&two),
        "{message}"
    );
    app.open().await?;
    app.deployed(&two, "two").await
}

/// The gate closes at midnight before Friday, and opens at the end of it, by the clock alone.
#[tokio::test]
async fn nothing_goes_out_on_fridays() -> Result<()> {
    let fridays = "schedule: {timeZone: Europe/London, closed: [{name: fridays, \
                   cron: '0 0 * * FRI', duration: 24h, reason: No deploys on Fridays}]}";
    let app = Delivery::begin("fridays", NOW, fridays).await?;
    let one = app.push("one").await?;
    app.deployed(&one, "one").await?;
    app.stage.set("2026-11-20T09:00:00Z");
    let two = app.push_behind_the_gate("two").await?;
    let status = app.stage.pends(APP, &Git::revision(&two)).await?;
    let decision = status.last_decision.context("no decision")?;
    ensure!(
        !decision.allowed && decision.message.contains("fridays"),
        "{decision:?}"
    );
    let next = decision.next.context("no next change")?.0;
    ensure!(next.to_string() == "2026-11-21T00:00:00Z", "{next}");
    app.heals("one").await?;
    app.stage.set("2026-11-21T00:00:00Z");
    app.deployed(&two, "two").await
}

/// The window is over, what went out is broken: the gate is forced open, and the fix goes out.
#[tokio::test]
async fn a_force_outlives_the_window_so_that_one_can_roll_forward() -> Result<()> {
    let hours = "schedule: {open: [{name: office-hours, cron: '0 9 * * *', duration: 8h}]}";
    let app = Delivery::begin("forward", NOW, hours).await?;
    let one = app.push("broken").await?;
    app.deployed(&one, "broken").await?;
    app.stage.set("2026-11-19T18:00:00Z");
    let fix = app.push_behind_the_gate("fixed").await?;
    let force = json!({
        "sluice.dev/force": "open", "sluice.dev/force-until": "2026-11-19T19:00:00Z",
        "sluice.dev/force-reason": "roll forward", "sluice.dev/force-by": "admin",
    });
    app.stage.annotate(GATE, force).await?;
    app.deployed(&fix, "fixed").await?;
    // It ends by itself.
    app.stage.set("2026-11-19T19:00:00Z");
    app.push_behind_the_gate("more").await?;
    Ok(())
}

/// One of two gates is enough: the window, or the bypass that a person opens.
#[tokio::test]
async fn one_of_two_gates_is_a_bypass() -> Result<()> {
    let app = Delivery::begin("bypass", NOW, CLOSED).await?;
    app.stage.keep("bypass", CLOSED).await?;
    let gates = json!({"require": "oneOf", "refs": [{"name": GATE}, {"name": "bypass"}]});
    app.stage.gate_source(APP, json!({"gates": gates})).await?;
    let one = app.push_behind_the_gate("one").await?;
    app.stage.keep("bypass", OPEN).await?;
    app.deployed(&one, "one").await?;
    let out = app
        .stage
        .source(APP, "a decision", |status| status.last_decision.is_some())
        .await?;
    let decided = out.last_decision.context("no decision")?.decided_by;
    ensure!(
        decided == [format!("{}/bypass", app.stage.namespace())],
        "{decided:?}"
    );
    Ok(())
}

/// Two Kustomizations of one source, the second after the first: it is never ahead, and both end at the
/// same.
#[tokio::test]
async fn two_kustomizations_of_one_source_see_the_same() -> Result<()> {
    let app = Delivery::begin("two", NOW, OPEN).await?;
    let second = json!({
        "sourceRef": {"kind": "GitRepository", "name": APP}, "interval": "1h",
        "retryInterval": "2s", "timeout": "30s", "prune": true, "path": "./second",
        "targetNamespace": app.stage.namespace(), "dependsOn": [{"name": APP}],
    });
    app.stage.put("Kustomization", "second", second).await?;
    let push = async |word: &str| -> Result<String> {
        let files = [
            ("app.yaml", crate::stage::app(APP, word)),
            ("second/app.yaml", crate::stage::app("second", word)),
            ("kustomization.yaml", "resources: [app.yaml]\n".to_owned()),
        ];
        let commit = app.git.commit(&files)?;
        app.stage.reconcile("GitRepository", UPSTREAM).await?;
        Ok(commit)
    };
    let both = async |commit: &str, word: &str| -> Result<()> {
        app.deployed(commit, word).await?;
        app.stage.applied("second", &Git::revision(commit)).await?;
        app.stage.deployed("second", word).await
    };
    let one = push("one").await?;
    both(&one, "one").await?;
    app.close().await?;
    let two = push("two").await?;
    app.stage.pends(APP, &Git::revision(&two)).await?;
    for name in [APP, "second"] {
        app.stage.reconcile("Kustomization", name).await?;
    }
    both_still(&app, "one").await?;
    let seen = Sightings::begin(&app).await?;
    app.open().await?;
    both(&two, "two").await?;
    let seen = seen.until(&Git::revision(&two)).await?;
    let (one, two) = (Git::revision(&one), Git::revision(&two));
    let never: Vec<_> = seen
        .iter()
        .filter(|(first, second)| (first, second) == (&one, &two))
        .collect();
    ensure!(never.is_empty(), "the second was ahead: {seen:?}");
    // It was looked at while they changed, and not before or after alone.
    ensure!(seen.contains(&(two, one)), "{seen:?}");
    Ok(())
}

/// What the first and the second Kustomization had applied, after each write of one of them, in the
/// order of the writes.
struct Sightings {
    versions: BoxStream<'static, watcher::Result<watcher::Event<DynamicObject>>>,
    applied: BTreeMap<String, String>,
}

impl Sightings {
    /// Sees what is there now, and then every write.
    async fn begin(app: &Delivery<'_>) -> Result<Self> {
        let kustomizations = app.stage.api("Kustomization")?;
        let mut begun = Self {
            versions: watcher::watcher(kustomizations, watcher::Config::default()).boxed(),
            applied: BTreeMap::new(),
        };
        loop {
            let event = begun.versions.next().await.context("the watch ended")??;
            let all = matches!(event, watcher::Event::InitDone);
            begun.see(event);
            if all {
                return Ok(begun);
            }
        }
    }

    /// Every pair there was, up to the one in which the second has applied this revision.
    async fn until(mut self, revision: &str) -> Result<Vec<(String, String)>> {
        let mut seen = vec![self.pair()];
        while seen.last().is_none_or(|(_, second)| second != revision) {
            let next = timeout(DEADLINE, self.versions.next()).await;
            let event = next.with_context(|| format!("{seen:?}"))?;
            self.see(event.context("the watch ended")??);
            seen.push(self.pair());
        }
        Ok(seen)
    }

    fn see(&mut self, event: watcher::Event<DynamicObject>) {
        if let watcher::Event::InitApply(object) | watcher::Event::Apply(object) = event {
            let applied = object.data["status"]["lastAppliedRevision"].as_str();
            let applied = applied.unwrap_or_default().to_owned();
            self.applied.insert(object.name_any(), applied);
        }
    }

    fn pair(&self) -> (String, String) {
        let of = |name: &str| self.applied.get(name).cloned().unwrap_or_default();
        (of(APP), of("second"))
    }
}

async fn both_still(app: &Delivery<'_>, word: &str) -> Result<()> {
    for name in [APP, "second"] {
        let said = app.stage.says_now(name).await?;
        ensure!(said.as_deref() == Some(word), "{name} says {said:?}");
    }
    Ok(())
}
