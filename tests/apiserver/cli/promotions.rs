//! `promotion`, and what other commands know of promotion strategies.
//!
//! The objects have the statuses that a controller would have written.

use anyhow::{Context, Result, ensure};
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::{PromotionStrategy, RevertCommit};
use sluice_tests::Writes;

use super::{Going, may_list, objects_of, says};
use crate::chart::CONTROLLER;
use crate::stage::Stage;

mod steering;
mod voting;

const NOW: &str = "2026-11-20T12:00:00Z";
/// Dry commits: what is healthy, what was healthy before, what is bad, and its fix.
const GOOD: &str = "b5d8f7a6c5e4d3b2a1908f7e6d5c4b3a29180f7e";
const OLDER: &str = "aaaaf7a6c5e4d3b2a1908f7e6d5c4b3a29180f7e";
const BAD: &str = "c0ffee1a2b3c4d5e6f708192a3b4c5d6e7f80912";
const FIX: &str = "f1f1f1f1f1f14d5e6f708192a3b4c5d6e7f80912";

/// A strategy, and one about which nobody knows anything yet.
const SHOP: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: office-hours}
spec: {schedule: {timeZone: Europe/London, open: [{cron: '0 9 * * MON-FRI', duration: 8h}]}}
---
apiVersion: sluice.dev/v1alpha1
kind: PromotionStrategy
metadata: {name: shop}
spec:
  repoRef: {name: shop}
  activeCommitStatuses: [{key: health}]
  environments:
    - branch: env/dev
    - branch: env/test
    - branch: env/prod
      autoMerge: false
---
apiVersion: sluice.dev/v1alpha1
kind: PromotionStrategy
metadata: {name: fresh}
spec:
  repoRef: {name: shop}
  environments: [{branch: env/other}]
";

fn tip(dry: &str, digit: &str, by: &str) -> Value {
    json!({
        "drySHA": dry, "hydratedSHA": digit.repeat(40), "tree": digit.repeat(40), "arrivedBy": by,
        "since": NOW,
    })
}

/// What a controller would have written: somebody has pushed to dev, and prod has a bad commit.
fn seen() -> Value {
    let until = "2099-11-23T09:00:00Z";
    let healthy = |dry: &str, digit: &str| json!({"drySHA": dry, "hydratedSHA": digit.repeat(40), "time": NOW});
    json!({
        "observedGeneration": 1,
        "summary": {
            "newest": &FIX[..12], "waitsAt": "env/dev", "reason": "ForeignCommit",
            "message": "somebody has pushed to env/dev",
        },
        "environments": [
            {
                "branch": "env/dev", "state": "Waiting", "reason": "ForeignCommit",
                "message": "somebody has pushed to env/dev",
                "active": tip(BAD, "1", "Foreign"), "proposed": tip(FIX, "2", "Promotion"),
                "waits": [{"reason": "ForeignCommit", "message": "somebody has pushed to env/dev"}],
            },
            {
                "branch": "env/test", "state": "UpToDate", "active": tip(GOOD, "3", "Promotion"),
                "lastHealthyDrySHAs": [healthy(GOOD, "3")],
            },
            {
                "branch": "env/prod", "state": "Waiting", "reason": "GateClosed",
                "message": "the gate is closed",
                "active": tip(BAD, "4", "Person"), "proposed": tip(FIX, "5", "Promotion"),
                "waits": [
                    {"reason": "GateClosed", "message": "the gate is closed", "next": until},
                    {"reason": "WaitsForPerson", "message": "a person merges it"},
                ],
                "checks": [{"key": "health", "of": "active", "phase": "failure", "message": "orders are lost"}],
                "pullRequest": {
                    "name": "shop-prod-7", "n": 7, "number": 7, "url": "https://git.example.com/shop/pulls/7",
                    "state": "Open",
                },
                "lastHealthyDrySHAs": [healthy(GOOD, "6"), healthy(OLDER, "7")],
            },
        ],
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "ready",
            "lastTransitionTime": NOW,
        }],
    })
}

/// Objects as the controller writes their status.
struct Acting<'s>(&'s Stage);

impl Acting<'_> {
    async fn strategy(&self, status: &Value) -> Result<()> {
        let strategies: Api<PromotionStrategy> = objects_of(self.0, CONTROLLER).await?;
        let status = json!({ "status": status });
        strategies.merge_status("shop", status).await?;
        Ok(())
    }

    async fn revert(&self, name: &str, status: &Value) -> Result<()> {
        let reverts: Api<RevertCommit> = objects_of(self.0, CONTROLLER).await?;
        let status = json!({ "status": status });
        reverts.merge_status(name, status).await?;
        Ok(())
    }
}

/// A server with the policies; alice edits and brings back, victor sees.
async fn shop(word: &str) -> Result<Stage> {
    let stage = Stage::installed(word, NOW).await?;
    stage.apply(SHOP).await?;
    // No controller runs: nothing of this changes while it is looked at.
    stage.judge_no_statuses();
    Acting(&stage).strategy(&seen()).await?;
    stage.grant("sluice-view", &["alice", "victor"]).await?;
    for role in ["sluice-edit", "sluice-revert"] {
        stage.grant(role, &["alice"]).await?;
    }
    may_list::<RevertCommit>(&stage, "alice").await?;
    Ok(stage)
}

#[tokio::test]
async fn strategies_are_listed_and_told() -> Result<()> {
    let stage = shop("cli-promotions").await?;
    let list = says(&stage, "victor", &["promotion"], 0, "WAITS-AT").await?;
    for part in ["f1f1f1f1f1f1", "env/dev", "ForeignCommit", "fresh"] {
        ensure!(list.out.contains(part), "{part}: {list:?}");
    }
    let all = says(&stage, "admin", &["promotion", "-A"], 0, "NAMESPACE").await?;
    ensure!(all.out.contains(stage.namespace()), "{all:?}");

    let one = says(
        &stage,
        "victor",
        &["promotion", "shop"],
        0,
        "has reached no environment, and waits at env/dev",
    )
    .await?;
    let line = one.out.lines().find(|line| line.starts_with("env/prod"));
    let line = line.with_context(|| format!("{one:?}"))?;
    for part in [
        "c0ffee1a2b3c",
        "Waiting",
        "GateClosed (+1)",
        "Mon 2099-11-23 09:00",
        "#7",
    ] {
        ensure!(line.contains(part), "{part}: {one:?}");
    }
    ensure!(one.out.contains("UNTIL (Europe/London)"), "{one:?}");
    let json = says(
        &stage,
        "victor",
        &["promotion", "shop", "-o", "json"],
        0,
        "{",
    )
    .await?;
    let json: Value = serde_json::from_str(&json.out)?;
    ensure!(
        json["environments"][2]["status"]["waits"][1]["reason"] == "WaitsForPerson",
        "{json}"
    );
    let yaml = ["promotion", "-o", "yaml"];
    says(&stage, "victor", &yaml, 0, "newest: f1f1f1f1f1f1").await?;
    let none = ["promotion", "none"];
    let missing = "there is no promotion strategy `none`";
    says(&stage, "victor", &none, 2, missing).await?;
    let pending = says(
        &stage,
        "victor",
        &["pending"],
        0,
        "PromotionStrategy/shop (env/prod)",
    )
    .await?;
    ensure!(pending.out.contains("the gate is closed"), "{pending:?}");
    ensure!(!pending.out.contains("env/test"), "{pending:?}");
    says(&stage, "victor", &["get", "strategies"], 0, "ForeignCommit").await?;
    Ok(())
}

#[tokio::test]
async fn why_tells_everything_that_an_environment_waits_for() -> Result<()> {
    let stage = shop("cli-promotions-why").await?;
    let all = ["why", "promotionstrategy/shop"];
    let all = says(&stage, "victor", &all, 0, "waits for 2 rules").await?;
    for part in [
        "kubectl gate accept shop env/dev",
        "check health of what it has: failure",
        "orders are lost",
        "GateClosed until Mon 2099-11-23 09:00 Europe/London",
        "pull request #7 is Open: https://git.example.com/shop/pulls/7",
        "its checks have passed with b5d8f7a6c5e4",
    ] {
        ensure!(all.out.contains(part), "{part}: {all:?}");
    }
    let one = ["why", "promo/shop", "env/test"];
    let one = says(&stage, "victor", &one, 0, "env/test is UpToDate").await?;
    ensure!(!one.out.contains("env/prod is"), "{one:?}");
    says(
        &stage,
        "victor",
        &["why", "promo/shop/env/prod"],
        0,
        "env/prod is Waiting",
    )
    .await?;
    let json = ["why", "promo/shop", "prod", "-o", "json"];
    let json = says(&stage, "victor", &json, 0, "{").await?;
    let json: Value = serde_json::from_str(&json.out)?;
    ensure!(json[0]["environments"][0]["branch"] == "env/prod", "{json}");
    let unknown = ["why", "promo/shop", "env/none"];
    let names = "write one of env/dev, env/test, env/prod";
    says(&stage, "victor", &unknown, 2, names).await?;
    says(
        &stage,
        "victor",
        &["why", "promo/none"],
        2,
        "there is no promotion strategy",
    )
    .await?;
    Ok(())
}

#[tokio::test]
async fn anyone_who_waits_is_told_when_a_commit_has_come() -> Result<()> {
    let stage = shop("cli-promotions-wait").await?;
    let wait = |name: &'static str, wanted: &'static str| ["wait", name, "--for", wanted];
    let says = async |words: &[&str], code: i32, expected: &str| {
        says(&stage, "victor", words, code, expected).await
    };
    says(
        &wait("promo/shop", "prod=c0ffee1a2b3c"),
        0,
        "env/prod has c0ffee1a2b3c",
    )
    .await?;
    says(&wait("promo/shop", "open"), 2, "--for ENVIRONMENT=COMMIT").await?;
    says(
        &wait("shop", "prod=c0ffee1a2b3c"),
        2,
        "is for promotionstrategy/NAME",
    )
    .await?;
    says(
        &wait("promo/shop", "prod=newest"),
        2,
        "write the id of a commit",
    )
    .await?;
    says(
        &wait("promo/shop", "none=c0ffee1a2b3c"),
        2,
        "has no environment `none`",
    )
    .await?;
    says(
        &wait("promo/none", "prod=c0ffee1a2b3c"),
        2,
        "there is no promotion strategy",
    )
    .await?;
    let up = [
        "wait",
        "promo/shop",
        "--for",
        "prod=f1f1f1f1f1f1",
        "--timeout",
        "300ms",
    ];
    says(&up, 1, "f1f1f1f1f1f1 has not reached prod within 300ms").await?;

    let words = wait("promo/shop", "prod=f1f1f1f1f1f1");
    let mut going = Going::start(&stage, "victor", &words)?;
    let first = going.line().await?;
    ensure!(
        first == "waiting: env/prod has c0ffee1a2b3c: the gate is closed",
        "{first}"
    );
    let mut status = seen();
    status["environments"][2]["active"] = tip(FIX, "5", "Promotion");
    Acting(&stage).strategy(&status).await?;
    let last = going.line().await?;
    ensure!(last == "env/prod has f1f1f1f1f1f1", "{last}");
    going.ends_well().await
}
