//! What `kubectl get` shows, and under which names.

use anyhow::{Context, Result};
use http::Request;
use kube::{Client, discovery};
use serde_json::{Value, json};
use sluice_crds::State;

use crate::stage::{OFFICE_HOURS, Stage};

#[tokio::test]
async fn the_columns_answer_what_people_ask() -> Result<()> {
    let stage = Stage::new("columns", "2026-11-20T12:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let mut settings = stage.settings();
    settings.trust_unverified_identity = true;
    let _controller = stage.start_with(settings).await?;
    stage
        .says("production", State::Open, "InsideWindow")
        .await?;
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

#[tokio::test]
async fn the_kinds_have_short_names_and_a_category() -> Result<()> {
    let client = sluice_tests::shared().await?.client().await?;
    for (plural, short) in [
        ("gates", "gt"),
        ("gatekeepers", "gk"),
        ("gatepolicies", "gp"),
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

    fn priority(&self, column: &str) -> i64 {
        self.0["columnDefinitions"][self.place(column)]["priority"]
            .as_i64()
            .unwrap()
    }
}
