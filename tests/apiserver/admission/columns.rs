//! What `kubectl get` shows, and under which names.

use anyhow::{Context, Result, ensure};
use http::Request;
use kube::{Api, Client, discovery};
use serde_json::{Value, json};
use sluice_crds::{Pipeline, PullRequest, State};
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

#[tokio::test]
async fn the_kinds_have_short_names_and_a_category() -> Result<()> {
    let client = sluice_tests::shared().await?.client().await?;
    for (plural, short) in [
        ("gates", "gt"),
        ("gatekeepers", "gk"),
        ("gatepolicies", "gp"),
        ("pipelines", "pipe"),
        ("pullrequests", "pr"),
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

    fn cell(&self, column: &str) -> &str {
        self.0["rows"][0]["cells"][self.place(column)]
            .as_str()
            .unwrap()
    }

    /// Checks that these are all the columns, in this order, with what they show and their priority. An age
    /// is not compared.
    fn shows(&self, expected: &[(&str, &str, i64)]) -> Result<()> {
        let columns = self.columns().into_iter();
        let shown = columns.map(|column| match column {
            "Age" => (column, "", self.priority(column)),
            _ => (column, self.cell(column), self.priority(column)),
        });
        let shown: Vec<_> = shown.collect();
        ensure!(shown == expected, "{shown:#?}");
        Ok(())
    }

    fn priority(&self, column: &str) -> i64 {
        self.0["columnDefinitions"][self.place(column)]["priority"]
            .as_i64()
            .unwrap()
    }
}
