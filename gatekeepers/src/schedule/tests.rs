//! Calendars from sources in memory and from a real https server on loopback.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::SignedDuration;
use serde_json::{Value, json};
use sluice_core::time::calendar::{CalendarError, MAX_TEXT};
use sluice_egress::{Egress, Limits, Names, Rules};

use super::address::tests::is_same;
use super::*;
use crate::fake_api::FakeApi;
use crate::test_server::{Certificate, Reply, TestServer};
use crate::{Observation, needs_evidence, observe, sources};

const HOST: &str = "calendar.test";

/// A calendar with so many events.
fn calendar(events: usize) -> String {
    let event = |day| {
        format!(
            "BEGIN:VEVENT\nUID:{day}\nDTSTART:202601{day:02}T090000\nDTEND:202601{day:02}T170000\n\
             END:VEVENT\n"
        )
    };
    let events: String = (1..=events).map(event).collect();
    format!("BEGIN:VCALENDAR\n{events}END:VCALENDAR\n")
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A gatekeeper in the namespace `apps` with this schedule.
fn gatekeeper(schedule: &Value) -> Gatekeeper {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Gatekeeper",
        "metadata": { "namespace": "apps", "name": "holidays", "uid": "4711", "generation": 1 },
        "spec": { "schedule": schedule },
    }))
    .unwrap()
}

fn in_map(name: &str, key: &str) -> Value {
    json!({ "calendar": { "configMapRef": { "name": name, "key": key } } })
}

fn at_url(url: &str) -> Value {
    json!({ "calendar": { "url": url, "certSecretRef": { "name": "authority" } } })
}

/// Every name is this machine.
struct Here;

impl Names for Here {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) }.boxed()
    }
}

fn clients(api: &FakeApi) -> Clients {
    let rules = Rules {
        allow: vec!["127.0.0.0/8".parse().unwrap()],
        ..Rules::default()
    };
    let limits = Limits {
        time: Duration::from_secs(5),
        ..Limits::default()
    };
    Clients::new(
        api.client(),
        Egress::with(rules, limits, Arc::new(Here)).unwrap(),
    )
}

async fn look(object: &Gatekeeper, clients: &Clients) -> Observation {
    observe(object, clients, &Observation::default(), at(0)).await
}

fn calendars(observation: &Observation) -> &[Reading] {
    observation
        .evidence
        .get::<Vec<Reading>>()
        .map_or(&[], Vec::as_slice)
}

fn why(reading: &Reading) -> &str {
    match reading {
        Reading::Unavailable(why) => why,
        Reading::Read { .. } | Reading::Broken(_) => panic!("it is not unavailable: {reading:?}"),
    }
}

fn events(reading: &Reading) -> usize {
    match reading {
        Reading::Read { calendar, .. } => calendar.events(),
        Reading::Unavailable(_) | Reading::Broken(_) => panic!("it was not read: {reading:?}"),
    }
}

#[test]
fn only_calendars_need_evidence() {
    let with =
        gatekeeper(&json!({ "closed": [in_map("uk", "a"), in_map("de", "a"), in_map("uk", "b")] }));
    let without = gatekeeper(&json!({ "open": [{ "cron": "0 9 * * *", "duration": "8h" }] }));
    let mut suspended = with.clone();
    suspended.spec.suspend = true;
    let manual: Gatekeeper = serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper", "metadata": { "name": "switch" },
        "spec": { "manual": { "state": "open" } },
    }))
    .unwrap();
    let needs = [&with, &without, &suspended, &manual].map(|object| needs_evidence(&object.spec));
    assert_eq!(needs, [true, false, false, false]);
    let names: Vec<_> = sources(&with).iter().map(ToString::to_string).collect();
    assert_eq!(names, ["ConfigMap apps/de", "ConfigMap apps/uk"]);
    assert!(sources(&without).is_empty() && sources(&manual).is_empty());
}

#[tokio::test]
async fn calendars_in_config_maps_are_read_in_the_order_of_the_schedule() {
    let api = FakeApi::new();
    api.put(
        "apps",
        "uk",
        &[("uk.ics", &calendar(3)), ("fridays.ics", &calendar(5))],
    );
    let binary = json!({ "binaryData": { "de.ics": base64(calendar(4).as_bytes()) } });
    api.put_value("apps", "de", binary);
    let object = gatekeeper(&json!({
        "open": [{ "cron": "0 9 * * *", "duration": "8h" }, in_map("uk", "fridays.ics")],
        "closed": [in_map("uk", "uk.ics"), in_map("de", "de.ics")],
    }));
    let observation = look(&object, &clients(&api)).await;
    let read: Vec<_> = calendars(&observation).iter().map(events).collect();
    assert_eq!((read, observation.again), (vec![5, 3, 4], None));
}

#[tokio::test]
async fn what_cannot_be_had_is_told() {
    let api = FakeApi::new();
    api.put("apps", "uk", &[("uk.ics", &calendar(1))]);
    let windows = [in_map("nowhere", "uk.ics"), in_map("uk", "de.ics")];
    let object = gatekeeper(&json!({ "closed": windows }));
    let observation = look(&object, &clients(&api)).await;
    let said: Vec<_> = calendars(&observation).iter().map(why).collect();
    assert_eq!(
        said,
        [
            "there is no ConfigMap apps/nowhere",
            "the ConfigMap apps/uk has no key `de.ics`; it has `uk.ics`"
        ]
    );
    api.forbid("apps");
    let observation = look(&object, &clients(&api)).await;
    assert_eq!(
        why(&calendars(&observation)[0]),
        "may not watch configmaps in namespace apps: grant get, list, watch"
    );
}

#[tokio::test]
async fn what_makes_no_sense_is_broken() {
    let api = FakeApi::new();
    let garbage = "x".repeat(900 << 10);
    let (long, cut) = ("x".repeat(MAX_TEXT + 1), "BEGIN:VCALENDAR\nBEGIN:VEVENT\n");
    let texts = [
        ("empty", ""),
        ("garbage", garbage.as_str()),
        ("long", long.as_str()),
        ("cut", cut),
    ];
    api.put("apps", "bad", &texts);
    let latin = json!({ "binaryData": { "latin": base64(b"BEGIN:VCALENDAR\nSUMMARY:M\xe4rz\n") } });
    api.put_value("apps", "latin", latin);
    let windows = texts.map(|(key, _)| in_map("bad", key));
    let object = gatekeeper(&json!({ "closed": windows, "open": [in_map("latin", "latin")] }));
    let observation = look(&object, &clients(&api)).await;
    let broken = |reading: &Reading| match reading {
        Reading::Broken(error) => error.clone(),
        Reading::Read { .. } | Reading::Unavailable(_) => panic!("{reading:?}"),
    };
    let errors: Vec<_> = calendars(&observation).iter().map(broken).collect();
    let [latin, empty, garbage, long, cut] = errors.try_into().unwrap();
    assert_eq!(
        latin.to_string(),
        "line 2: it is not UTF-8; save the file as UTF-8"
    );
    assert_eq!(
        (empty, garbage),
        (CalendarError::NotACalendar, CalendarError::NotACalendar)
    );
    assert_eq!(
        long,
        CalendarError::TooLong {
            bytes: MAX_TEXT + 1
        }
    );
    assert!(matches!(cut, CalendarError::Line { .. }), "{cut:?}");
}

#[tokio::test]
async fn a_text_that_stays_is_parsed_once() {
    let api = FakeApi::new();
    api.put("apps", "uk", &[("uk.ics", &calendar(3))]);
    let clients = clients(&api);
    let object = gatekeeper(&json!({ "closed": [in_map("uk", "uk.ics")] }));
    let first = look(&object, &clients).await;
    // Another window before it, another key beside it: the same text still.
    api.put("apps", "uk", &[("uk.ics", &calendar(3)), ("other", "")]);
    let moved = gatekeeper(&json!({ "closed": [in_map("uk", "other"), in_map("uk", "uk.ics")] }));
    let second = observe(&moved, &clients, &first, at(1)).await;
    // Somebody else who reads the same.
    let third = look(&object, &clients).await;
    let before = &calendars(&first)[0];
    assert!(is_same(before, &calendars(&second)[1]));
    assert!(is_same(before, &calendars(&third)[0]));
    // In another zone it says something else.
    let elsewhere =
        gatekeeper(&json!({ "timeZone": "Europe/London", "closed": [in_map("uk", "uk.ics")] }));
    let fourth = observe(&elsewhere, &clients, &first, at(1)).await;
    assert!(!is_same(before, &calendars(&fourth)[0]));
}

#[tokio::test]
async fn an_edited_map_is_read_anew() {
    let api = FakeApi::new();
    api.put("apps", "uk", &[("uk.ics", &calendar(3))]);
    let clients = clients(&api);
    let mut changes = clients.config_maps.changes();
    let object = gatekeeper(&json!({ "closed": [in_map("uk", "uk.ics")] }));
    let first = look(&object, &clients).await;
    changes.recv().await.unwrap();
    api.put("apps", "uk", &[("uk.ics", &calendar(4))]);
    changes.recv().await.unwrap();
    let second = observe(&object, &clients, &first, at(1)).await;
    assert_eq!(events(&calendars(&second)[0]), 4);
}

/// A server whose authority is in the Secret that [`at_url`] names.
async fn server(api: &FakeApi, reply: Reply) -> TestServer {
    let server = TestServer::start(Certificate::For(HOST), reply).await;
    api.put_secret(
        "apps",
        "authority",
        "ca.crt",
        &base64(server.authority.as_bytes()),
    );
    server
}

#[tokio::test]
async fn an_address_is_read_at_its_interval_and_when_somebody_asks() {
    let api = FakeApi::new();
    let server = server(&api, Reply::ok(calendar(3))).await;
    let clients = clients(&api);
    let object = gatekeeper(&json!({ "closed": [at_url(&server.url(HOST))] }));
    let first = look(&object, &clients).await;
    let again = first.again.unwrap();
    let tenth = SignedDuration::from_mins(6);
    assert!(again.duration_since(at(3600)).abs() <= tenth, "{again}");
    let reading = &calendars(&first)[0];
    assert!(matches!(reading, Reading::Read { good_until: Some(end), .. } if *end == at(3 * 3600)));

    let early = observe(&object, &clients, &first, at(60)).await;
    assert_eq!((server.requests(), &early.evidence), (1, &first.evidence));
    let asked = observe(&object, &clients, &early.made_due(), at(60)).await;
    assert_eq!(server.requests(), 2);
    assert!(is_same(reading, &calendars(&asked)[0]));
    let due = observe(&object, &clients, &asked, asked.again.unwrap()).await;
    assert_eq!(
        (server.requests(), due.evidence == asked.evidence),
        (3, false)
    );
}

#[tokio::test]
async fn outcomes_are_told_and_nothing_of_the_address_but_its_host() {
    let api = FakeApi::new();
    let server = server(&api, Reply::status(404, "", b"secret")).await;
    let clients = clients(&api);
    let url = format!("{}?token=secret", server.url(HOST));
    let object = gatekeeper(&json!({ "closed": [at_url(&url)] }));
    let observation = look(&object, &clients).await;
    assert_eq!(
        why(&calendars(&observation)[0]),
        "https://calendar.test: status 404"
    );
    assert_eq!(observation.again, Some(at(60)));
}

#[tokio::test]
async fn the_secret_of_an_authority_is_told_when_it_is_not_there() {
    let api = FakeApi::new();
    let server = server(&api, Reply::ok(calendar(1))).await;
    let object = gatekeeper(&json!({ "closed": [at_url(&server.url(HOST))] }));
    let clients = clients(&api);
    let said = async || {
        let observation = look(&object, &clients).await;
        why(&calendars(&observation)[0]).to_owned()
    };
    api.put_secret("apps", "authority", "tls.crt", "");
    assert_eq!(
        said().await,
        "the Secret apps/authority has no key `ca.crt`"
    );
    api.put_secret("apps", "authority", "ca.crt", &base64(b"nonsense"));
    let nonsense =
        "https://calendar.test: `ca.crt` holds no certificate; write certificates in PEM";
    assert_eq!(said().await, nonsense);
    api.forbid("apps");
    let forbidden = "may not get secrets in namespace apps: grant get on the Secret authority";
    assert_eq!(said().await, forbidden);
    api.permit("apps");
    let elsewhere = json!({ "calendar": {
        "url": server.url(HOST), "certSecretRef": { "name": "../configmaps/uk" },
    } });
    let observation = look(&gatekeeper(&json!({ "closed": [elsewhere] })), &clients).await;
    let said = why(&calendars(&observation)[0]);
    assert_eq!(said, "there is no Secret apps/../configmaps/uk");
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn a_refused_spec_is_not_looked_at() {
    let api = FakeApi::new();
    let object =
        gatekeeper(&json!({ "timeZone": "Mars/Olympus", "closed": [in_map("uk", "uk.ics")] }));
    let observation = look(&object, &clients(&api)).await;
    assert!(calendars(&observation).is_empty() && observation.again.is_none());
    assert_eq!(api.lists(), 0);
}

fn base64(bytes: &[u8]) -> String {
    let value = serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec())).unwrap();
    value.as_str().unwrap().to_owned()
}
