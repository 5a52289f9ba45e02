//! A Prometheus that knows what a test tells it.

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use http::Request;
use kube::client::Body;
use kube::{Client, Config};
use sluice_tests::progress::Stderr;
use sluice_tests::prometheus::{Access, PASSWORD, Programs, Prometheus, USER};
use tempfile::TempDir;
use tokio::time::timeout;

fn programs() -> Programs {
    Programs::ensure(&Stderr::new()).unwrap()
}

async fn start(access: Access) -> Prometheus {
    Prometheus::start(&programs(), access).await.unwrap()
}

#[tokio::test]
async fn a_query_says_what_a_test_sets() {
    let prometheus = start(Access::default()).await;
    prometheus.says("errors", None).await.unwrap();
    prometheus.set("errors", 0.02).await.unwrap();
    prometheus.set("errors", 0.5).await.unwrap();
    prometheus
        .says("scalar(errors) * 2", Some(1.0))
        .await
        .unwrap();
    prometheus.set("errors", f64::NAN).await.unwrap();
    prometheus.set("errors", f64::INFINITY).await.unwrap();
    prometheus.remove("errors").await.unwrap();
}

#[tokio::test]
async fn many_samples_and_refused_queries_are_no_value() {
    let prometheus = start(Access::default()).await;
    let pods = [("latency{pod=\"a\"}", 1.0), ("latency{pod=\"b\"}", 2.0)];
    prometheus.set_all(&pods).await.unwrap();
    prometheus.says("sum(latency)", Some(3.0)).await.unwrap();
    let error = prometheus.value("latency").await.unwrap_err();
    assert_eq!(error.to_string(), "latency has 2 samples");
    let error = prometheus.value("latency{").await.unwrap_err().to_string();
    assert!(
        error.starts_with("400 Bad Request") && error.contains("parse error"),
        "{error}"
    );
}

/// The status code that a client gets for a query.
async fn status(prometheus: &Prometheus, user: Option<(&str, &str)>, trusts: bool) -> u16 {
    let mut config = Config::new(prometheus.url().parse().unwrap());
    config.default_retry = false;
    // Trusting is not what is tested here: the client of `says` does.
    config.accept_invalid_certs = trusts;
    if let Some((name, password)) = user {
        config.auth_info.username = Some(name.to_owned());
        config.auth_info.password = Some(password.to_owned().into());
    }
    let client = Client::try_from(config).unwrap();
    let request = Request::get("/api/v1/query?query=1").body(Body::empty());
    let answer = client.send(request.unwrap()).await;
    answer.map_or(0, |answer| answer.status().as_u16())
}

#[tokio::test]
async fn it_asks_for_a_password_and_shows_a_certificate() {
    let access = Access {
        password: true,
        tls: true,
    };
    let prometheus = start(access).await;
    prometheus.set("errors", 7.0).await.unwrap();

    assert!(prometheus.url().starts_with("https://127.0.0.1:"));
    let authority = prometheus.authority().unwrap();
    assert!(authority.starts_with("-----BEGIN CERTIFICATE-----"));
    assert_eq!(status(&prometheus, None, true).await, 401);
    let wrong = Some((USER, "close sesame"));
    assert_eq!(status(&prometheus, wrong, true).await, 401);
    let right = Some((USER, PASSWORD));
    assert_eq!(status(&prometheus, right, true).await, 200);
    assert_eq!(
        status(&prometheus, right, false).await,
        0,
        "whom we do not trust we do not ask"
    );
}

#[tokio::test]
async fn a_paused_one_does_not_answer_and_a_dropped_one_is_gone() {
    let prometheus = start(Access::default()).await;
    assert_eq!(prometheus.authority(), None);
    prometheus.process().pause().unwrap();
    let waited = timeout(Duration::from_millis(300), prometheus.value("1")).await;
    assert!(waited.is_err(), "{waited:?}");
    prometheus.process().resume().unwrap();
    assert_eq!(prometheus.value("1").await.unwrap(), Some(1.0));

    let address = prometheus.url().replace("http://", "");
    drop(prometheus);
    assert!(TcpStream::connect(address).is_err());
}

const RULES: &str = "
groups:
- name: sluice
  rules:
  - alert: Errors
    expr: errors > 0.1
    for: 1m
";

const TESTS: &str = r#"
rule_files: [rules.yml]
tests:
- interval: 1m
  input_series: [{series: errors, values: "0.5 0.5 0.5"}]
  alert_rule_test:
  - {eval_time: 2m, alertname: Errors, exp_alerts: [{}]}
"#;

fn file(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn rules_are_checked_and_tested() {
    let (programs, folder) = (programs(), tempfile::tempdir().unwrap());
    let rules = file(&folder, "rules.yml", RULES);
    let said = programs.check_rules(&rules).unwrap();
    assert!(said.contains("1 rules found"), "{said}");
    let tests = file(&folder, "tests.yml", TESTS);
    programs.test_rules(&tests).unwrap();

    let wrong = TESTS.replace("0.5 0.5 0.5", "0.5 0.5 0.0");
    let wrong = programs.test_rules(&file(&folder, "wrong.yml", &wrong));
    let error = wrong.unwrap_err().to_string();
    assert!(error.contains("FAILED"), "{error}");
    let broken = file(&folder, "broken.yml", &RULES.replace("> 0.1", "> > 0.1"));
    let error = programs.check_rules(&broken).unwrap_err().to_string();
    assert!(error.contains("could not parse expression"), "{error}");
}
