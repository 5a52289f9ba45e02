//! What `kubectl get` shows, and under which names.

use anyhow::{Context, Result, ensure};
use http::Request;
use kube::{Api, Client, discovery};
use serde_json::{Value, json};
use sluice_crds::{
    CommitStatus, GitRepositoryAccess, Pipeline, PromotionStrategy, PullRequest, RevertCommit,
    Rollout, State,
};
use sluice_tests::Writes;

use crate::stage::{OFFICE_HOURS, Stage};

#[tokio::test]
async fn the_columns_answer_what_people_ask() -> Result<()> {
    let stage = Stage::new("columns", "2026-11-20T12:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let mut settings = stage.settings();
    settings.trust_unverified_identity = true;
    let _controller = stage.start_with(settings).await?;
    stage.in_hours().await?;
    stage
        .annotate(
            "production",
            json!({
                "sluice.dev/force": "closed",
                "sluice.dev/force-by": "alice@example.com",
                "sluice.dev/force-reason": "incident 4711",
                "sluice.dev/force-until": "2026-11-20T13:00:00Z",
            }),
        )
        .await?;
    stage.says("production", State::Closed, "Forced").await?;

    let gates = table(&stage, "gates").await?;
    let shown = ["State", "Reason", "Until", "Forced-By"].map(|column| gates.cell(column));
    let expected = [
        "Closed",
        "Forced",
        "2026-11-20T13:00:00Z",
        "alice@example.com",
    ];
    assert_eq!(shown, expected);
    let names = [
        "Name",
        "State",
        "Reason",
        "Until",
        "Forced-By",
        "Since",
        "Age",
        "Message",
    ];
    assert_eq!(gates.columns(), names);
    // Shown with `-o wide` alone.
    assert_eq!(gates.priority("Message"), 1);
    let message = "forced closed by alice@example.com until";
    assert!(
        gates.cell("Message").starts_with(message),
        "{}",
        gates.cell("Message")
    );

    let gatekeepers = table(&stage, "gatekeepers").await?;
    let shown = ["State", "Reason", "Until"].map(|column| gatekeepers.cell(column));
    assert_eq!(shown, ["Open", "InsideWindow", "2026-11-20T17:00:00Z"]);
    let names = ["Name", "State", "Reason", "Until", "Age", "Message"];
    assert_eq!(gatekeepers.columns(), names);
    Ok(())
}

/// A pipeline, and the pull request that its controller has made for it.
const SHOP: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  appRef: {kind: HelmRelease, name: podinfo}
  environments:
    - {name: dev, targets: [{namespace: shop-dev}]}
    - {name: prod, targets: [{namespace: shop}]}
---
apiVersion: sluice.dev/v1alpha1
kind: PullRequest
metadata: {name: shop-77aa00112233}
spec:
  repository: {type: gitea, url: 'https://git.example.com/a/b', secretRef: {name: git-token}}
  sourceBranch: sluice/a6a8ea3ca7a1/77aa00112233
  targetBranch: main
  title: Promote podinfo
  change: {markers: {name: 'apps:shop:prod', revision: 6.1.6, paths: [prod.yaml]}}
  about: {kind: Pipeline, name: shop, environment: prod, revision: 6.1.6, run: 7, key: 77aa00112233}
";

/// The statuses are as the controller would write them: no controller runs.
#[tokio::test]
async fn the_columns_of_pipelines_and_pull_requests() -> Result<()> {
    const NOW: &str = "2026-11-20T12:00:00Z";
    let stage = Stage::new("pipeline-columns", NOW).await?;
    stage.judge_no_statuses();
    stage.apply(SHOP).await?;
    let ready = json!([{
        "type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "message": "",
        "lastTransitionTime": NOW,
    }]);
    let run = json!({
        "id": 7, "revision": "main@sha1:4f2a", "short": "4f2a", "since": NOW, "environment": "prod",
        "state": "GatesClosed", "message": "held back by apps/production", "decidedBy": "apps/production",
        "next": "2026-11-23T09:00:00Z",
    });
    let pipelines: Api<Pipeline> = Api::namespaced(stage.client(), stage.namespace());
    let status = json!({"status": {"run": run, "conditions": ready}});
    pipelines.merge_status("shop", &status).await?;
    let pull_requests: Api<PullRequest> = Api::namespaced(stage.client(), stage.namespace());
    let url = "https://git.example.com/a/b/pulls/7";
    let status = json!({"status": {"state": "Open", "url": url, "conditions": ready}});
    pull_requests
        .merge_status("shop-77aa00112233", &status)
        .await?;

    let of = table(&stage, "pipelines").await?;
    of.shows(&[
        ("Name", "shop", 0),
        ("Ready", "True", 0),
        ("Revision", "4f2a", 0),
        ("At", "prod", 0),
        ("State", "GatesClosed", 0),
        ("Decided-By", "apps/production", 0),
        ("Next", "2026-11-23T09:00:00Z", 0),
        ("Age", "", 0),
        // Shown with `-o wide` alone.
        ("App", "podinfo", 1),
        ("Message", "held back by apps/production", 1),
    ])?;
    let of = table(&stage, "pullrequests").await?;
    of.shows(&[
        ("Name", "shop-77aa00112233", 0),
        ("Ready", "True", 0),
        ("For", "shop", 0),
        ("Environment", "prod", 0),
        ("Revision", "6.1.6", 0),
        ("State", "Open", 0),
        ("URL", url, 0),
        ("Age", "", 0),
    ])
}

/// One of each kind of promotion by branches.
const PROMOTION: &str = "
apiVersion: sluice.dev/v1alpha1
kind: GitRepositoryAccess
metadata: {name: shop}
spec: {provider: gitea, url: 'https://git.example.com/acme/shop.git', secretRef: {name: shop-push}}
---
apiVersion: sluice.dev/v1alpha1
kind: PromotionStrategy
metadata: {name: shop}
spec: {repoRef: {name: shop}, environments: [{branch: env/prod}]}
---
apiVersion: sluice.dev/v1alpha1
kind: CommitStatus
metadata: {name: load-test, labels: {sluice.dev/commit-status: load-test}}
spec:
  repoRef: {name: shop}
  sha: 7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a
  name: ci/load-test
  phase: in_progress
  description: p99 210 ms
---
apiVersion: sluice.dev/v1alpha1
kind: RevertCommit
metadata: {name: back}
spec:
  repoRef: {name: shop}
  activeBranch: env/prod
  from: 7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a
  drySHA: b5d8b5d8b5d8b5d8b5d8b5d8b5d8b5d8b5d8b5d8
  reason: INC-4711
  by: alice
";

/// The statuses are as the controller would write them: no controller runs.
#[tokio::test]
async fn the_columns_of_promotion_by_branches() -> Result<()> {
    const NOW: &str = "2026-11-20T12:00:00Z";
    let stage = Stage::new("promotion-columns", NOW).await?;
    stage.judge_no_statuses();
    stage.apply(PROMOTION).await?;
    let condition = |type_: &str, message: &str| {
        json!({
            "type": type_, "status": "True", "reason": "Succeeded", "message": message,
            "lastTransitionTime": NOW,
        })
    };
    let accesses: Api<GitRepositoryAccess> = Api::namespaced(stage.client(), stage.namespace());
    let status = json!({"status": {"conditions": [condition("Ready", "3 branches")]}});
    accesses.merge_status("shop", &status).await?;
    let strategies: Api<PromotionStrategy> = Api::namespaced(stage.client(), stage.namespace());
    let summary = json!({
        "newest": "c0ffee1a2b3c", "reached": "env/test", "waitsAt": "env/prod",
        "reason": "GateClosed", "next": "2026-11-23T09:00:00Z", "message": "until Monday",
    });
    let conditions = json!([condition("Ready", ""), condition("Blocked", "")]);
    let status = json!({"status": {"summary": summary, "conditions": conditions}});
    strategies.merge_status("shop", &status).await?;
    let statuses: Api<CommitStatus> = Api::namespaced(stage.client(), stage.namespace());
    let posted = json!({"sha": "7f3a".repeat(10), "phase": "pending", "digest": "0", "at": NOW});
    let status = json!({"status": {"posted": posted}});
    statuses.merge_status("load-test", &status).await?;
    let reverts: Api<RevertCommit> = Api::namespaced(stage.client(), stage.namespace());
    let url = "https://git.example.com/acme/shop/pulls/7";
    let status = json!({"status": {"phase": "Open", "url": url}});
    reverts.merge_status("back", &status).await?;

    table(&stage, "gitrepositoryaccesses").await?.shows(&[
        ("Name", "shop", 0),
        ("Provider", "gitea", 0),
        ("URL", "https://git.example.com/acme/shop.git", 0),
        ("Ready", "True", 0),
        ("Reason", "Succeeded", 0),
        ("Age", "", 0),
        ("Message", "3 branches", 1),
    ])?;
    table(&stage, "promotionstrategies").await?.shows(&[
        ("Name", "shop", 0),
        ("Ready", "True", 0),
        ("Blocked", "True", 0),
        ("Newest", "c0ffee1a2b3c", 0),
        ("Reached", "env/test", 0),
        ("Waits-At", "env/prod", 0),
        ("Reason", "GateClosed", 0),
        ("Next", "2026-11-23T09:00:00Z", 0),
        ("Age", "", 0),
        ("Message", "until Monday", 1),
    ])?;
    let sha = "7f3a".repeat(10);
    table(&stage, "commitstatuses").await?.shows(&[
        ("Name", "load-test", 0),
        ("Key", "load-test", 0),
        ("SHA", &sha, 0),
        ("Phase", "in_progress", 0),
        ("Posted", "pending", 0),
        ("Age", "", 0),
        ("Description", "p99 210 ms", 1),
    ])?;
    table(&stage, "revertcommits").await?.shows(&[
        ("Name", "back", 0),
        ("Branch", "env/prod", 0),
        ("Dry-SHA", &"b5d8".repeat(10), 0),
        ("Phase", "Open", 0),
        ("By", "alice", 0),
        ("Pull-Request", url, 0),
        ("Age", "", 0),
        ("Reason", "INC-4711", 1),
    ])
}

/// The status is as the controller would write it: none does yet.
#[tokio::test]
async fn the_columns_of_rollouts() -> Result<()> {
    const NOW: &str = "2026-11-20T12:00:00Z";
    let stage = Stage::new("rollout-columns", NOW).await?;
    stage.judge_no_statuses();
    stage
        .apply(
            "apiVersion: sluice.dev/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec:\n  \
             targetRef: {kind: Deployment, name: web-v2}\n  rolloutPlan: {numBatches: 4}\n",
        )
        .await?;
    let condition = |type_: &str, message: &str| {
        json!({
            "type": type_, "status": "True", "reason": "Waiting", "message": message,
            "lastTransitionTime": NOW,
        })
    };
    let status = json!({"status": {
        "rollingState": "rollingInBatches", "batchRollingState": "batchReady", "currentBatch": 1,
        "progress": "2/4", "rolloutTargetSize": 20, "upgradedReplicas": 6, "upgradedReadyReplicas": 5,
        "lastDecision": {
            "allowed": false, "at": NOW, "require": "all", "checked": [],
            "subject": {"kind": "Rollout", "namespace": "shop", "action": "advance", "step": "3/4"},
            "decidedBy": ["shop/office-hours"], "message": "closed", "next": "2026-11-23T09:00:00Z",
        },
        "conditions": [condition("Ready", "it waits"), condition("Blocked", "until Monday")],
    }});
    let rollouts: Api<Rollout> = Api::namespaced(stage.client(), stage.namespace());
    rollouts.merge_status("web", &status).await?;
    table(&stage, "rollouts").await?.shows(&[
        ("Name", "web", 0),
        ("State", "rollingInBatches", 0),
        ("Progress", "2/4", 0),
        ("Size", "20", 0),
        ("Updated", "6", 0),
        ("Ready", "5", 0),
        ("Blocked", "True", 0),
        ("Decided-By", "shop/office-hours", 0),
        ("Next", "2026-11-23T09:00:00Z", 0),
        ("Age", "", 0),
        ("Batch-State", "batchReady", 1),
        ("Target", "web-v2", 1),
        ("Message", "it waits", 1),
    ])
}

#[tokio::test]
async fn the_kinds_have_short_names_and_a_category() -> Result<()> {
    let client = sluice_tests::shared().await?.client().await?;
    for (plural, short) in [
        ("gates", "gt"),
        ("gatekeepers", "gk"),
        ("gatepolicies", "gp"),
        ("pipelines", "pipe"),
        ("pullrequests", "pr"),
        ("gitrepositoryaccesses", "gra"),
        ("promotionstrategies", "promo"),
        ("commitstatuses", "cst"),
        ("revertcommits", "rvc"),
        ("rollouts", "gro"),
    ] {
        let resource = resource(&client, plural).await?;
        assert_eq!(resource["shortNames"], json!([short]));
        assert_eq!(resource["categories"], json!(["sluice"]));
    }
    assert!(discovery::group(&client, sluice_crds::GROUP).await.is_ok());
    Ok(())
}

async fn resource(client: &Client, plural: &str) -> Result<Value> {
    let request = Request::get("/apis/sluice.dev/v1alpha1").body(Vec::new())?;
    let all: Value = client.request(request).await?;
    let resources = all["resources"].as_array().context("no resources")?;
    let found = resources.iter().find(|resource| resource["name"] == plural);
    Ok(found.context("no such resource")?.clone())
}

/// What the API server has `kubectl get` show of the one object of a kind.
struct Table(Value);

async fn table(stage: &Stage, plural: &str) -> Result<Table> {
    let namespace = stage.namespace();
    let request = Request::get(format!(
        "/apis/sluice.dev/v1alpha1/namespaces/{namespace}/{plural}"
    ))
    .header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
    .body(Vec::new())?;
    Ok(Table(stage.client().request(request).await?))
}

impl Table {
    fn columns(&self) -> Vec<&str> {
        let columns = self.0["columnDefinitions"].as_array().into_iter().flatten();
        columns
            .filter_map(|column| column["name"].as_str())
            .collect()
    }

    fn place(&self, column: &str) -> usize {
        let columns = self.columns();
        columns.iter().position(|name| *name == column).unwrap()
    }

    /// What a cell shows: a text, or a number.
    fn cell(&self, column: &str) -> String {
        let cell = &self.0["rows"][0]["cells"][self.place(column)];
        cell.as_str()
            .map_or_else(|| cell.to_string(), ToOwned::to_owned)
    }

    /// Checks that these are all the columns, in this order, with what they show and their priority. An age
    /// is not compared.
    fn shows(&self, expected: &[(&str, &str, i64)]) -> Result<()> {
        let columns = self.columns().into_iter();
        let shown = columns.map(|column| match column {
            "Age" => (column, String::new(), self.priority(column)),
            _ => (column, self.cell(column), self.priority(column)),
        });
        let shown: Vec<_> = shown.collect();
        let expected = expected.iter();
        let is_as_expected = expected
            .map(|(column, cell, priority)| (*column, (*cell).to_owned(), *priority))
            .eq(shown.iter().cloned());
        ensure!(is_as_expected, "{shown:#?}");
        Ok(())
    }

    fn priority(&self, column: &str) -> i64 {
        self.0["columnDefinitions"][self.place(column)]["priority"]
            .as_i64()
            .unwrap()
    }
}
