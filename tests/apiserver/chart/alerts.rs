//! The alerts: that each fires when it should and not otherwise, asks for metrics that there are,
//! and says what to do.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sluice_tests::helm::chart;
use sluice_tests::progress::Stderr;
use sluice_tests::prometheus::Programs;

use super::metrics::{listed, strangers};
use super::values::{find, render};

const GUIDE: &str = "docs/guides/alerts.md";

/// The PrometheusRule that the chart renders, with these values of `alerts`.
fn rendered(alerts: &Value) -> Result<Value> {
    let mut values = json!({"alerts": alerts});
    values["alerts"]["enabled"] = true.into();
    find(&render(values)?, "PrometheusRule")
}

/// All rules of a PrometheusRule.
fn rules(rendered: &Value) -> Vec<&Value> {
    let groups = rendered["spec"]["groups"].as_array().into_iter().flatten();
    groups
        .filter_map(|group| group["rules"].as_array())
        .flatten()
        .collect()
}

fn names(rendered: &Value) -> BTreeSet<&str> {
    let names = rules(rendered).into_iter();
    names.filter_map(|rule| rule["alert"].as_str()).collect()
}

/// `promtool` runs the cases in `tests/alerts`, and each alert has one of either kind.
#[test]
fn each_alert_fires_when_it_should_and_only_then() -> Result<()> {
    let programs = Programs::ensure(&Stderr::new())?;
    let all = rendered(&json!({}))?;
    let folder = tempfile::tempdir()?;
    // JSON is YAML.
    let rules = all["spec"].to_string();
    fs::write(folder.path().join("alerts.yaml"), rules)?;
    let (mut fires, mut is_silent) = (BTreeSet::new(), BTreeSet::new());
    for entry in fs::read_dir(chart().join("tests/alerts"))? {
        let file = entry?.path();
        let copy = folder.path().join(file.file_name().context("no name")?);
        fs::copy(&file, &copy)?;
        programs.test_rules(&copy)?;
        for (alert, fired) in cases(&file)? {
            if fired {
                fires.insert(alert);
            } else {
                is_silent.insert(alert);
            }
        }
    }
    let names: BTreeSet<String> = names(&all).into_iter().map(str::to_owned).collect();
    assert_eq!(fires, names, "alerts with a case in which they fire");
    assert_eq!(is_silent, names, "alerts with a case in which they do not");
    Ok(())
}

/// The alerts that a file of tests asks about, each with whether it should fire.
fn cases(file: &Path) -> Result<Vec<(String, bool)>> {
    let tests: Value = serde_saphyr::from_str(&fs::read_to_string(file)?)?;
    let tests = tests["tests"].as_array().context("no tests")?;
    let cases = tests
        .iter()
        .filter_map(|test| test["alert_rule_test"].as_array());
    let case = |case: &Value| {
        let alert = case["alertname"].as_str().context("no alertname")?;
        let expected = case["exp_alerts"].as_array().context("no exp_alerts")?;
        Ok((alert.to_owned(), !expected.is_empty()))
    };
    cases.flatten().map(case).collect()
}

#[test]
fn each_alert_says_what_to_do() -> Result<()> {
    let all = rendered(&json!({"runbooks": "https://example.com/alerts"}))?;
    for rule in rules(&all) {
        let alert = rule["alert"].as_str().context("no name")?;
        let annotations = &rule["annotations"];
        for text in ["summary", "description"] {
            let text = annotations[text].as_str().unwrap_or_default();
            assert!(text.len() > 20, "{alert}: {text}");
        }
        let section = alert.to_lowercase();
        assert_eq!(
            annotations["runbook_url"],
            format!("https://example.com/alerts#{section}")
        );
        let severity = rule["labels"]["severity"].as_str().unwrap_or_default();
        assert!(["warning", "critical"].contains(&severity), "{alert}");
    }
    let guide = fs::read_to_string(chart().join("../..").join(GUIDE))?;
    let sections: BTreeSet<_> = guide
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    assert_eq!(sections, names(&all), "the sections of {GUIDE}");
    Ok(())
}

#[test]
fn alerts_ask_for_metrics_that_there_are() -> Result<()> {
    let all = rendered(&json!({}))?;
    let (mut known, to_come) = listed()?;
    known.extend(to_come);
    let rules = rules(&all);
    let queries = rules.iter().filter_map(|rule| rule["expr"].as_str());
    let strangers = strangers(queries, &known);
    assert!(strangers.is_empty(), "{strangers:#?}");
    Ok(())
}

#[test]
fn each_threshold_is_one() -> Result<()> {
    let values: Value = serde_saphyr::from_str(&fs::read_to_string(chart().join("values.yaml"))?)?;
    let thresholds = values["alerts"]["thresholds"].as_object();
    let all = rendered(&json!({}))?;
    for name in thresholds.context("no thresholds")?.keys() {
        let other = rendered(&json!({"thresholds": {name: "1h1m1s"}}))?;
        let changed = rules(&all).into_iter().zip(rules(&other));
        let changed = changed.filter(|(before, after)| before != after).count();
        assert_eq!(changed, 1, "{name}");
        let text = other.to_string();
        assert!(
            text.contains("1h1m1s") || text.contains("> 3661") || text.contains("4861s"),
            "{name}: {text}"
        );
    }
    // The longest pause between two tries, and 5 minutes more.
    let patient = json!({"alerts": {"enabled": true}, "controller": {"maxRetryDelay": "1h30m"}});
    let patient: Value = find(&render(patient)?, "PrometheusRule")?;
    assert!(patient.to_string().contains("[5700s]"), "{patient}");
    Ok(())
}

#[test]
fn alerts_are_left_out_and_labelled_as_asked() -> Result<()> {
    let fewer = rendered(&json!({
        "disabled": ["SluiceBlocked"],
        "labels": {"release": "prometheus"},
        "alertLabels": {"team": "platform"},
    }))?;
    let all = rendered(&json!({}))?;
    let left_out: Vec<_> = names(&all)
        .into_iter()
        .filter(|name| !names(&fewer).contains(name))
        .collect();
    assert_eq!(left_out, ["SluiceBlocked"]);
    assert_eq!(fewer["metadata"]["labels"]["release"], "prometheus");
    for rule in rules(&fewer) {
        assert_eq!(rule["labels"]["team"], "platform");
        assert!(rule["labels"]["severity"].is_string(), "{rule}");
    }
    Ok(())
}
