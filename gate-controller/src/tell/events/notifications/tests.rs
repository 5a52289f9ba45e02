use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Instant;

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::post;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use sluice_crds::{Gate, GateSpec};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::super::{About, Events, More, Told, Waiting};
use super::*;
use crate::cluster::key::{KeyRef, Work};
use crate::cluster::kind::Kind;
use crate::observe::clock::SetClock;
use crate::tell::counters::NotificationLabels;

const NOON: &str = "2026-11-20T12:00:00Z";
const INSTANCE: &str = "gate-controller-0";
const PATIENCE: Patience = Patience {
    answer: Duration::from_secs(5),
    first: Duration::from_millis(5),
    retries: 4,
};

/// What the server does with a request, one after another; then it takes everything.
#[derive(Clone, Copy)]
enum Answer {
    Status(u16),
    Never,
}

#[derive(Default)]
struct Taken {
    answers: Mutex<VecDeque<Answer>>,
    seen: Mutex<Vec<(HeaderMap, Value)>>,
    changed: Notify,
}

/// A server in the place of notification-controller, and what is sent there.
struct Scene {
    taken: Arc<Taken>,
    counters: Arc<Counters>,
    events: Events,
    tasks: JoinSet<()>,
}

impl Scene {
    async fn new(answers: impl IntoIterator<Item = Answer>, patience: Patience) -> Self {
        let taken = Arc::new(Taken {
            answers: Mutex::new(answers.into_iter().collect()),
            ..Taken::default()
        });
        let of_server = Arc::clone(&taken);
        let answer = post(move |headers: HeaderMap, body: Bytes| async move {
            let body = serde_json::from_slice(&body).unwrap();
            of_server.seen.lock().unwrap().push((headers, body));
            of_server.changed.notify_one();
            let next = of_server.answers.lock().unwrap().pop_front();
            match next.unwrap_or(Answer::Status(202)) {
                Answer::Status(status) => StatusCode::from_u16(status).unwrap(),
                Answer::Never => std::future::pending().await,
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new().route("/", answer);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, app).await.unwrap() });
        let mut scene = Self::at(&format!("http://{address}/"), patience);
        scene.taken = taken;
        scene.tasks = tasks;
        scene
    }

    /// Without a server.
    fn at(url: &str, patience: Patience) -> Self {
        let counters = Arc::<Counters>::default();
        let (url, counted) = (url.parse().unwrap(), Arc::clone(&counters));
        let notifications = Notifications::new(url, counted, patience).unwrap();
        let clock = Arc::new(SetClock::new(NOON.parse().unwrap()));
        // Nobody sends them to the API server.
        let (mut events, _) = Events::new(Arc::clone(&counters), clock);
        let sending = events.notify();
        // It ends with the events.
        tokio::spawn(async move { notifications.send(INSTANCE, sending).await });
        Self {
            taken: Arc::default(),
            counters,
            events,
            tasks: JoinSet::new(),
        }
    }

    fn tell(&self, note: &str) {
        self.events.tell(told(gate(&[]), note, None));
    }

    fn count(&self, outcome: Notified) -> u64 {
        let outcome = outcome.as_str();
        let labels = NotificationLabels { outcome };
        self.counters.notifications.get_or_create(&labels).get()
    }

    /// Waits until so many requests have come, and returns their messages.
    async fn messages(&self, requests: usize) -> Vec<String> {
        let all = async {
            while self.taken.seen.lock().unwrap().len() < requests {
                self.taken.changed.notified().await;
            }
        };
        let patience = Duration::from_secs(20);
        tokio::time::timeout(patience, all).await.expect("requests");
        let seen = self.taken.seen.lock().unwrap();
        let message = |body: &Value| body["message"].as_str().unwrap().to_owned();
        seen.iter().map(|(_, body)| message(body)).collect()
    }
}

fn gate(annotations: &[(&str, &str)]) -> About {
    let mut gate = Gate::new("production", GateSpec::default());
    let annotations = annotations.iter();
    let annotations = annotations.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    gate.metadata = ObjectMeta {
        uid: Some("u-1".to_owned()),
        annotations: Some(annotations.collect()),
        ..gate.metadata
    };
    let key = KeyRef {
        namespace: "team",
        name: "production",
    };
    About::new(Work::own(Kind::Gate, key.into()), &gate)
}

fn of(about: About, note: &str) -> Event {
    with(about, note, None)
}

fn with(about: About, note: &str, more: Option<More>) -> Event {
    let waiting = Waiting {
        at: NOON.parse::<Timestamp>().unwrap(),
        since: Instant::now(),
        told: told(about, note, more),
    };
    waiting.event(INSTANCE)
}

fn told(about: About, note: &str, more: Option<More>) -> Told {
    Told {
        about,
        warning: false,
        reason: "Opened".into(),
        action: "Decide",
        note: note.into(),
        more: more.map(Box::new),
    }
}

fn body(event: &Event) -> Value {
    serde_json::to_value(Notification::of(event)).unwrap()
}

fn reference(kind: &str, api_version: Option<&str>) -> ObjectReference {
    ObjectReference {
        kind: Some(kind.to_owned()),
        api_version: api_version.map(str::to_owned),
        namespace: Some("team".to_owned()),
        name: Some("app".to_owned()),
        ..ObjectReference::default()
    }
}

#[tokio::test]
async fn an_event_has_the_form_of_flux() {
    let scene = Scene::new([], PATIENCE).await;
    let about = gate(&[
        ("event.toolkit.fluxcd.io/team", "platform"),
        ("example.com/secret", "nobody's business"),
    ]);
    scene.events.tell(told(about, "open until Fri 17:00", None));
    scene.messages(1).await;
    let seen = scene.taken.seen.lock().unwrap();
    let (headers, body) = &seen[0];
    assert_eq!(headers["content-type"], "application/json");
    let expected = json!({
        "involvedObject": {
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate", "namespace": "team",
            "name": "production", "uid": "u-1",
        },
        "severity": "info",
        "timestamp": NOON,
        "message": "open until Fri 17:00",
        "reason": "Opened",
        "metadata": {
            "event.toolkit.fluxcd.io/team": "platform",
            "sluice.dev/token": NOON,
        },
        "reportingController": "gate-controller",
        "reportingInstance": "gate-controller-0",
    });
    assert_eq!(*body, expected);
}

#[test]
fn the_event_of_the_api_server_has_the_metadata_of_its_owner() {
    let about = gate(&[
        ("event.toolkit.fluxcd.io/team", "platform"),
        ("example.com/secret", "nobody's business"),
    ]);
    let annotations = of(about, "open").metadata.annotations.unwrap();
    let expected = [("event.toolkit.fluxcd.io/team", "platform")];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(annotations, expected.into());
}

#[test]
fn bad_news_is_an_error() {
    let mut event = of(gate(&[]), "it stalls");
    event.type_ = Some("Warning".to_owned());
    assert_eq!(body(&event)["severity"], "error");
}

/// Whom an Alert can name, and by which API; metadata has the prefix that is kept.
#[test]
fn it_is_told_of_the_object_that_an_alert_can_name() {
    let annotations = [
        (told::REVISION, "main@sha1:0123"),
        (told::GATES, "team/production"),
        (told::SINCE, "2026-11-20T11:00:00Z"),
        (
            told::ASKED_BY,
            "system:serviceaccount:flux-system:kustomize-controller",
        ),
    ];
    let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let table = [
        ("Kustomization", None, "kustomize.toolkit.fluxcd.io/v1"),
        ("HelmRelease", None, "helm.toolkit.fluxcd.io/v2"),
        ("ImagePolicy", None, "image.toolkit.fluxcd.io/v1"),
        (
            "GitRepository",
            Some("source.toolkit.fluxcd.io/v1"),
            "source.toolkit.fluxcd.io/v1",
        ),
        ("ExternalArtifact", None, "source.toolkit.fluxcd.io/v1"),
        (
            "ArtifactGenerator",
            None,
            "source.extensions.fluxcd.io/v1beta1",
        ),
    ];
    for (kind, told_by, api) in table {
        let more = More {
            related: Some(reference(kind, told_by)),
            annotations: annotations.clone().into(),
            ..More::default()
        };
        let body = body(&with(gate(&[]), "held back", Some(more)));
        let involved = json!({"apiVersion": api, "kind": kind, "namespace": "team", "name": "app"});
        assert_eq!(body["involvedObject"], involved);
        let (group, _) = api.split_once('/').unwrap();
        let metadata = json!({
            format!("{group}/revision"): "main@sha1:0123",
            format!("{group}/decided-by"): "team/production",
            format!("{group}/token"): "2026-11-20T11:00:00Z",
        });
        assert_eq!(body["metadata"], metadata);
    }
}

#[test]
fn an_object_that_no_alert_can_name_is_named_all_the_same() {
    let more = More {
        related: Some(reference("Pipeline", None)),
        ..More::default()
    };
    let named = body(&with(gate(&[]), "held back", Some(more)));
    assert_eq!(named["involvedObject"]["kind"], "Gate");
    // Of an object without an API nothing else would be kept.
    let unknown = of(About::object(reference("Check", None)), "held back");
    assert_eq!(body(&unknown)["metadata"], json!({}));
    let annotations = [(told::REVISION.to_owned(), "main@sha1:0123".to_owned())];
    let more = More {
        annotations: annotations.into(),
        ..More::default()
    };
    let unknown = with(
        About::object(reference("Check", None)),
        "held back",
        Some(more),
    );
    let revision = json!({"event.toolkit.fluxcd.io/revision": "main@sha1:0123"});
    assert_eq!(body(&unknown)["metadata"], revision);
}

#[tokio::test]
async fn what_fails_is_tried_again_and_what_is_refused_is_not() {
    use Answer::Status;
    let answers = [
        Status(503),
        Status(500),
        Status(202),
        Status(429),
        Status(400),
        Status(200),
    ];
    let scene = Scene::new(answers, PATIENCE).await;
    for note in ["retried", "duplicate", "refused", "taken"] {
        scene.tell(note);
    }
    let messages = scene.messages(6).await;
    let expected = [
        "retried",
        "retried",
        "retried",
        "duplicate",
        "refused",
        "taken",
    ];
    assert_eq!(messages, expected);
    // Counted once answered, which is before the next one is sent.
    scene.tell("last");
    scene.messages(7).await;
    let counts = Notified::ALL.map(|outcome| scene.count(outcome));
    assert_eq!(counts, [2, 1, 1]);
}

#[tokio::test]
async fn patience_ends() {
    let scene = Scene::new([Answer::Status(503); 5], PATIENCE).await;
    scene.tell("lost");
    scene.tell("taken");
    let messages = scene.messages(6).await;
    assert_eq!(messages[4..], ["lost", "taken"]);
    assert_eq!(scene.count(Notified::Dropped), 1);
}

#[tokio::test]
async fn a_server_that_says_nothing_is_not_waited_for() {
    let patience = Patience {
        answer: Duration::from_millis(50),
        retries: 1,
        ..PATIENCE
    };
    let scene = Scene::new([Answer::Never, Answer::Never], patience).await;
    scene.tell("lost");
    scene.tell("taken");
    assert_eq!(scene.messages(3).await, ["lost", "lost", "taken"]);
    assert_eq!(scene.count(Notified::Dropped), 1);
}

#[tokio::test]
async fn what_is_too_much_is_dropped_and_nobody_waits() {
    let scene = Scene::new([Answer::Never; 100], PATIENCE).await;
    scene.tell("under way");
    scene.messages(1).await;
    let began = Instant::now();
    let waits = (0..).take_while(|_| {
        scene.tell("waits");
        scene.count(Notified::Dropped) == 0
    });
    assert!(waits.count() > 10_000);
    scene.tell("another");
    assert_eq!(scene.count(Notified::Dropped), 2);
    assert!(began.elapsed() < PATIENCE.answer, "{:?}", began.elapsed());
}

#[tokio::test]
async fn where_nobody_listens_events_are_dropped() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let scene = Scene::at(&format!("http://{address}/"), PATIENCE);
    scene.tell("lost");
    let counted = async {
        while scene.count(Notified::Dropped) == 0 {
            tokio::task::yield_now().await;
        }
    };
    let patience = Duration::from_secs(20);
    tokio::time::timeout(patience, counted).await.unwrap();
}
