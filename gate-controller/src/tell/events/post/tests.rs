use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};
use sluice_crds::{Gate, GateSpec};
use tokio::sync::Notify;
use tower::service_fn;

use super::super::{About, Events, Told};
use super::*;
use crate::cluster::key::{KeyRef, ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::clock::SetClock;

const DEADLINE: Duration = Duration::from_secs(20);
/// It waits for nothing but an answer.
const PATIENCE: Patience = Patience {
    answer: DEADLINE,
    first: Duration::from_millis(1),
    retry: DEADLINE,
    give_way: DEADLINE,
};

/// What the API server does with an event, one after another; then it takes everything.
#[derive(Clone, Copy)]
enum Answer {
    Taken,
    Status(u16),
    Never,
}

#[derive(Default)]
struct Api {
    answers: Mutex<VecDeque<Answer>>,
    /// The note of each event that came.
    seen: Mutex<Vec<String>>,
    changed: Notify,
}

impl Api {
    fn client(self: &Arc<Self>) -> Client {
        let api = Arc::clone(self);
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let api = Arc::clone(&api);
            async move { Ok::<_, Infallible>(api.answer(request).await) }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<kube::client::Body>) -> Response<Body> {
        let body = request.into_body().collect_bytes().await.unwrap();
        let event: Value = serde_json::from_slice(&body).unwrap();
        let note = event["note"].as_str().unwrap().to_owned();
        self.seen.lock().unwrap().push(note);
        self.changed.notify_one();
        let next = self.answers.lock().unwrap().pop_front();
        let (status, body) = match next {
            None | Some(Answer::Taken) => (StatusCode::CREATED, event),
            Some(Answer::Status(code)) => (
                StatusCode::from_u16(code).unwrap(),
                json!({"kind": "Status", "status": "Failure", "message": "ordered", "code": code}),
            ),
            Some(Answer::Never) => std::future::pending().await,
        };
        let body = Body::from(body.to_string());
        Response::builder().status(status).body(body).unwrap()
    }
}

/// Events that are sent to an API server.
struct Scene {
    api: Arc<Api>,
    events: Events,
    counters: Arc<Counters>,
    busy: Arc<AtomicBool>,
}

impl Scene {
    fn new(answers: impl IntoIterator<Item = Answer>, patience: Patience) -> Self {
        let api = Arc::new(Api {
            answers: Mutex::new(answers.into_iter().collect()),
            ..Api::default()
        });
        let counters = Arc::<Counters>::default();
        let clock = Arc::new(SetClock::new("2026-11-20T12:00:00Z".parse().unwrap()));
        let (events, sending) = Events::new(Arc::clone(&counters), clock);
        let sender = Sender {
            client: api.client(),
            instance: "gate-controller-0".to_owned(),
            counters: Arc::clone(&counters),
            patience,
        };
        let busy = Arc::new(AtomicBool::new(false));
        let is_busy = Arc::clone(&busy);
        // It ends with the events.
        tokio::spawn(async move {
            let busy = || is_busy.load(Ordering::SeqCst);
            sender.send(sending, busy).await;
        });
        Self {
            api,
            events,
            counters,
            busy,
        }
    }

    fn tell(&self, note: &str) {
        self.tell_in("team", note);
    }

    fn tell_in(&self, namespace: &str, note: &str) {
        let key = ObjectKey::from(KeyRef {
            namespace,
            name: "production",
        });
        let gate = Gate::new("production", GateSpec::default());
        self.events.tell(Told {
            about: About::new(Work::own(Kind::Gate, key), &gate),
            warning: false,
            reason: "Opened".into(),
            action: "Decide",
            note: note.into(),
            more: None,
        });
    }

    /// Waits until so many requests have come, and returns what they told.
    async fn notes(&self, requests: usize) -> Vec<String> {
        let all = async {
            while self.api.seen.lock().unwrap().len() < requests {
                self.api.changed.notified().await;
            }
        };
        timeout(DEADLINE, all).await.expect("requests");
        self.api.seen.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn what_may_be_taken_a_moment_later_is_tried_again_and_what_is_refused_is_not() {
    use Answer::{Status, Taken};
    let answers = [Status(503), Status(429), Taken, Status(403)];
    let scene = Scene::new(answers, PATIENCE);
    for note in ["retried", "refused", "taken"] {
        scene.tell(note);
    }
    let notes = scene.notes(5).await;
    assert_eq!(notes, ["retried", "retried", "retried", "refused", "taken"]);
    assert_eq!(scene.counters.events_dropped.get(), 1);
}

/// A namespace in which nobody takes events, because of a limit of its own: nobody waits for that.
#[tokio::test]
async fn the_others_have_their_turn_before_one_is_tried_again() {
    let patience = Patience {
        first: Duration::from_secs(3600),
        ..PATIENCE
    };
    let scene = Scene::new([Answer::Status(429)], patience);
    scene.tell("first");
    scene.tell("second");
    scene.tell_in("another", "of another");
    let notes = scene.notes(4).await;
    assert_eq!(notes, ["first", "of another", "first", "second"]);
    assert_eq!(scene.counters.events_dropped.get(), 0);
}

#[tokio::test]
async fn an_event_that_is_not_young_any_more_has_one_try() {
    let patience = Patience {
        retry: Duration::ZERO,
        ..PATIENCE
    };
    let scene = Scene::new([503; 2].map(Answer::Status), patience);
    for note in ["lost", "lost as well", "taken"] {
        scene.tell(note);
    }
    assert_eq!(scene.notes(3).await, ["lost", "lost as well", "taken"]);
    assert_eq!(scene.counters.events_dropped.get(), 2);
}

#[tokio::test]
async fn an_api_server_that_says_nothing_is_not_waited_for() {
    let patience = Patience {
        answer: Duration::from_millis(20),
        ..PATIENCE
    };
    let scene = Scene::new([Answer::Never], patience);
    scene.tell("lost");
    scene.tell("taken");
    assert_eq!(scene.notes(2).await, ["lost", "taken"]);
    assert_eq!(scene.counters.events_dropped.get(), 1);
}

#[tokio::test]
async fn notification_controller_does_not_wait_for_the_api_server() {
    let mut scene = Scene::new([Answer::Never], PATIENCE);
    let mut notified = scene.events.notify();
    scene.tell("waits for ever");
    scene.notes(1).await;
    scene.tell("told all the same");
    for expected in ["waits for ever", "told all the same"] {
        let waiting = timeout(DEADLINE, notified.recv()).await.unwrap().unwrap();
        assert_eq!(&*waiting.told.note, expected);
    }
}

#[tokio::test]
async fn an_event_gives_way_to_more_urgent_writes_for_a_while() {
    let patience = Patience {
        give_way: Duration::from_millis(200),
        ..PATIENCE
    };
    let scene = Scene::new([], patience);
    scene.busy.store(true, Ordering::SeqCst);
    let began = std::time::Instant::now();
    scene.tell("sent at last");
    assert_eq!(scene.notes(1).await, ["sent at last"]);
    assert!(began.elapsed() >= patience.give_way);
}
