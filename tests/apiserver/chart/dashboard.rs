//! The dashboard: that it is JSON with panels, and that every query in it is one, for metrics that
//! there are.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use sluice_tests::progress::Stderr;
use sluice_tests::prometheus::Programs;

use super::metrics::{listed, strangers};
use super::values::render;

/// The dashboard as Grafana gets it, and the ConfigMap that it is in.
fn dashboard(values: &Value) -> Result<(Value, ConfigMap)> {
    let mut values = json!({"dashboard": values});
    values["dashboard"]["enabled"] = true.into();
    let found = render(values)?.into_iter().find(|document| {
        let types = document.object.types.as_ref();
        types.is_some_and(|types| types.kind == "ConfigMap")
    });
    let object = found.context("no ConfigMap")?.object;
    let map: ConfigMap = object.try_parse()?;
    let data = map.data.as_ref().context("no data")?;
    let json = serde_json::from_str(&data["sluice.json"])?;
    Ok((json, map))
}

fn panels(dashboard: &Value) -> Result<&Vec<Value>> {
    dashboard["panels"].as_array().context("no panels")
}

/// Every query: of the panels, and of the variables without the function around it.
fn queries(dashboard: &Value) -> Result<Vec<String>> {
    let targets = panels(dashboard)?
        .iter()
        .filter_map(|panel| panel["targets"].as_array());
    let mut queries = Vec::new();
    for target in targets.flatten() {
        queries.push(target["expr"].as_str().context("no expr")?.to_owned());
    }
    let variables = dashboard["templating"]["list"].as_array();
    for variable in variables.context("no variables")? {
        if variable["type"] != "query" {
            continue;
        }
        let query = variable["query"]["query"].as_str().context("no query")?;
        assert_eq!(variable["definition"], query);
        let inner = query.strip_prefix("label_values(");
        let (series, _label) = inner
            .and_then(|inner| inner.rsplit_once(", "))
            .with_context(|| format!("{query} is no label_values()"))?;
        queries.push(series.to_owned());
    }
    Ok(queries)
}

#[test]
fn the_dashboard_asks_for_metrics_that_there_are() -> Result<()> {
    let (dashboard, _) = dashboard(&json!({}))?;
    let queries = queries(&dashboard)?;
    let (known, _) = listed()?;
    let strangers = strangers(queries.iter().map(String::as_str), &known);
    assert!(strangers.is_empty(), "{strangers:#?}");
    Ok(())
}

#[test]
fn the_dashboard_asks_in_promql() -> Result<()> {
    let (dashboard, _) = dashboard(&json!({}))?;
    let records: Vec<Value> = queries(&dashboard)?
        .iter()
        // As Grafana fills them in.
        .map(|query| query.replace("$__rate_interval", "1m").replace('$', ""))
        .enumerate()
        .map(|(number, query)| json!({"record": format!("dashboard:{number}"), "expr": query}))
        .collect();
    let file = tempfile::NamedTempFile::new()?;
    let groups = json!({"groups": [{"name": "dashboard", "rules": records}]});
    fs::write(file.path(), groups.to_string())?;
    Programs::ensure(&Stderr::new())?.check_rules(file.path())?;
    Ok(())
}

/// Grafana draws what does not fit one over the other.
#[test]
fn panels_have_a_place_of_their_own() -> Result<()> {
    let (dashboard, _) = dashboard(&json!({}))?;
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels(&dashboard)? {
        let title = &panel["title"];
        assert!(
            ids.insert(panel["id"].as_u64().context("no id")?),
            "{title}"
        );
        let side = |name: &str| panel["gridPos"][name].as_u64().context("no place");
        let (left, top) = (side("x")?, side("y")?);
        for x in left..left + side("w")? {
            assert!(x < 24, "{title} is beyond the edge");
            for y in top..top + side("h")? {
                assert!(taken.insert((x, y)), "{title} lies over another");
            }
        }
    }
    Ok(())
}

#[test]
fn the_sidecar_finds_it_where_it_looks() -> Result<()> {
    let (_, map) = dashboard(&json!({}))?;
    let labels = map.metadata.labels.context("no labels")?;
    assert_eq!(labels["grafana_dashboard"], "1");
    assert_eq!(map.metadata.namespace.as_deref(), Some("sluice-system"));
    let (_, map) = dashboard(&json!({
        "namespace": "monitoring",
        "labels": {"grafana_dashboard": null, "dashboards": "yes"},
        "annotations": {"grafana_folder": "GitOps"},
    }))?;
    let labels = map.metadata.labels.context("no labels")?;
    assert_eq!(labels["dashboards"], "yes");
    assert!(!labels.contains_key("grafana_dashboard"));
    assert_eq!(map.metadata.namespace.as_deref(), Some("monitoring"));
    let annotations = map.metadata.annotations.context("no annotations")?;
    assert_eq!(annotations["grafana_folder"], "GitOps");
    Ok(())
}
