//! When a query is asked, and what failures and restarts leave of what was measured.

use super::*;

#[tokio::test]
async fn a_query_is_asked_at_its_interval_and_when_somebody_asks() {
    let server = TestServer::without_tls(data("scalar", &json!([1, "0.01"]))).await;
    let clients = clients(&FakeApi::new(), &["127.0.0.0/8"]);
    let spec = spec(&server.address("http", HOST, ""), &json!({}));
    let first = look(&spec, &clients, None, 0).await;
    let again = first.again();
    assert!(at(6) <= again && again <= at(66), "{again}");
    assert_eq!(first.observed.good_until(), Some(at(180)));

    let early = look(&spec, &clients, Some(&first), 1).await;
    assert_eq!((server.requests(), &early.observed), (1, &first.observed));
    let mut asked = early;
    asked.make_due();
    let asked = look(&spec, &clients, Some(&asked), 1).await;
    assert_eq!(
        (server.requests(), asked.observed.good_until()),
        (2, Some(at(181)))
    );
    let due = asked.again().as_second() + 1;
    look(&spec, &clients, Some(&asked), due).await;
    assert_eq!(server.requests(), 3);
}

#[tokio::test]
async fn a_failure_leaves_what_was_measured_before() {
    let server = TestServer::without_tls(data("scalar", &json!([1, "0.01"]))).await;
    let clients = clients(&FakeApi::new(), &["127.0.0.0/8"]);
    let spec = spec(&server.address("http", HOST, ""), &json!({ "for": "10m" }));
    let first = look(&spec, &clients, None, 0).await;
    server.replies(Reply::status(404, "", b"")).await;
    let then = look(&spec, &clients, Some(&first), 70).await;
    assert_eq!(then.observed.polled.last, first.observed.polled.last);
    assert_eq!(then.observed.within_since, Some(at(0)));
    assert_eq!(
        then.observed.polled.error(),
        Some("http://prometheus.test: status 404")
    );
    let late = look(&spec, &clients, Some(&then), 200).await;
    assert_eq!(
        short(&late),
        "unavailable: http://prometheus.test: status 404"
    );
}

#[tokio::test]
async fn another_spec_is_asked_anew() {
    let server = TestServer::without_tls(data("scalar", &json!([1, "0.01"]))).await;
    let clients = clients(&FakeApi::new(), &["127.0.0.0/8"]);
    let address = server.address("http", HOST, "");
    let one = spec(&address, &json!({ "for": "10m" }));
    let first = look(&one, &clients, None, 0).await;
    let other = spec(&address, &json!({ "for": "10m", "range": { "max": 1 } }));
    assert!(first.is_about(&one) && !first.is_about(&other));
    let then = look(&other, &clients, Some(&first), 1).await;
    assert_eq!(
        (server.requests(), then.observed.within_since),
        (2, Some(at(1)))
    );
}

#[tokio::test]
async fn a_row_goes_on_after_a_restart_even_if_prometheus_is_down() {
    let server = TestServer::without_tls(data("scalar", &json!([1, "0.01"]))).await;
    let clients = clients(&FakeApi::new(), &["127.0.0.0/8"]);
    let spec = spec(&server.address("http", HOST, ""), &json!({ "for": "10m" }));
    let before = look(&spec, &clients, None, 0).await;
    let status = before.observed.status(&before.rule);
    let restarted = async |now| {
        let object = gatekeeper();
        observe(&object, &spec, &clients, None, Some(&status), at(now))
            .await
            .unwrap()
    };
    assert_eq!(restarted(60).await.observed.within_since, Some(at(0)));
    server.replies(Reply::status(404, "", b"")).await;
    let without = restarted(60).await.observed;
    assert_eq!(
        (without.within_since, without.good_until()),
        (Some(at(0)), Some(at(180)))
    );
    let too_late = restarted(180).await;
    assert_eq!(
        short(&too_late),
        "unavailable: http://prometheus.test: status 404"
    );
}
