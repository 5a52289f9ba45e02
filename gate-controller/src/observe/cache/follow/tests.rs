use std::future::pending;
use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use rstest::rstest;
use serde_json::json;
use sluice_watching::{LONGEST_PAUSE, SILENCE};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};
use tracing::{Event as Line, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use super::*;
use crate::observe::cache::played::{Answer, Asked, Server, bookmark};
use crate::observe::clock::{Jumps, SetClock};

/// A cache that follows that server, until it is dropped.
struct Scene {
    cache: Arc<Cache<ConfigMap>>,
    server: Server,
    following: AbortHandle,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.following.abort();
    }
}

impl Scene {
    fn new(server: Server) -> Self {
        Self::of(Cache::default(), server)
    }

    fn of(cache: Cache<ConfigMap>, server: Server) -> Self {
        let cache = Arc::new(cache);
        let (following, api) = (Arc::clone(&cache), server.api());
        let following = async move {
            following.follow(api, Config::default(), |_| {}).await;
        };
        Self {
            cache,
            server,
            following: tokio::spawn(following).abort_handle(),
        }
    }

    fn is_alive(&self) -> bool {
        self.cache.pulse().is_alive(Instant::now())
    }

    fn age(&self) -> Duration {
        self.cache.pulse().age(Instant::now()).unwrap()
    }

    fn lists(&self) -> usize {
        let asked = self.server.asked();
        asked.iter().filter(|asked| asked.what == "list").count()
    }
}

/// On the clock of the test, which goes on at once where nobody has anything to do.
async fn after(seconds: u64) {
    let _ = timeout(Duration::from_secs(seconds), pending::<()>()).await;
}

/// The longest time between two requests.
fn longest_gap(asked: &[Asked]) -> Duration {
    let gaps = asked.windows(2).map(|two| two[1].at - two[0].at);
    gaps.max().unwrap()
}

/// A list that is to come after a silence is waited for no longer than a watch that only has to go on.
#[tokio::test(start_paused = true)]
async fn soon_after_a_long_outage_everything_is_listed_again() {
    let listed = [
        Answer::List(&[("a", 3)], 7),
        Answer::Watch(vec![bookmark(8)]),
    ];
    let scene = Scene::new(Server::new(listed));
    after(100).await;
    assert!(scene.is_alive());
    assert_eq!(scene.lists(), 1);
    after(300).await;
    assert!(!scene.is_alive());
    assert!(scene.lists() > 1);
    let longest = longest_gap(&scene.server.asked());
    assert!(
        longest < LONGEST_PAUSE + Duration::from_secs(1),
        "{longest:?}"
    );

    let back = [Answer::List(&[("a", 3)], 70), Answer::Silence(Vec::new())];
    scene.server.answers(back);
    after(LONGEST_PAUSE.as_secs() + 1).await;
    assert!(scene.is_alive());
}

/// What has never been listed is waited for with patience: perhaps it is not installed.
#[tokio::test(start_paused = true)]
async fn what_was_never_listed_is_asked_for_less_and_less() {
    let scene = Scene::new(Server::new([]).and_then(Answer::Refuse(404)));
    after(600).await;
    assert!(longest_gap(&scene.server.asked()) > LONGEST_PAUSE * 2);
    assert!(scene.is_alive() && !scene.cache.is_synced());
}

/// A proxy may accept each watch, and end it at once.
#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_are_begun_again_with_pauses_and_do_not_count() {
    let server = Server::new([Answer::List(&[], 7)]).and_then(Answer::Watch(Vec::new()));
    let scene = Scene::new(server);
    after(170).await;
    assert_eq!(scene.lists(), 1);
    let asked = scene.server.asked().len();
    assert!((20..60).contains(&asked), "{asked}");
    assert!(scene.age() > Duration::from_secs(169));
    let why = scene.cache.pulse().silence(Instant::now() + SILENCE);
    assert!(why.unwrap().contains("it ends the watch at once"));
    // What it does not tell is listed.
    scene.server.answers([Answer::List(&[("a", 9)], 9)]);
    after(30).await;
    assert!(scene.lists() > 1 && scene.cache.all().len() == 1);
}

/// A watch that lasts counts, also without bookmarks. But perhaps something on the way holds back what
/// happens, so that a list follows it.
#[tokio::test(start_paused = true)]
async fn a_watch_on_which_nothing_comes_counts_until_the_next_list() {
    let quiet = [Answer::List(&[], 7), Answer::Silence(Vec::new())];
    let then = [Answer::List(&[("a", 9)], 9), Answer::Silence(Vec::new())];
    let scene = Scene::new(Server::new(quiet.into_iter().chain(then)));
    after(100).await;
    assert!(scene.is_alive());
    assert_eq!((scene.lists(), scene.cache.all().len()), (1, 0));
    after(100).await;
    assert!(scene.is_alive());
    assert_eq!((scene.lists(), scene.cache.all().len()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn after_a_jump_everything_is_listed_again() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let clock = Arc::new(SetClock::new(at(0)));
    let jumps = Arc::new(Jumps::new(clock.clone()));
    let cache = Cache::default();
    cache.pulse().heed(jumps);
    let listed = [Answer::List(&[("a", 3)], 7), Answer::Silence(Vec::new())];
    let scene = Scene::of(cache, Server::new(listed));
    after(10).await;
    assert!(scene.is_alive());
    clock.step(at(3600));
    assert!(!scene.is_alive());
    scene
        .server
        .answers([Answer::List(&[], 9), Answer::Silence(Vec::new())]);
    after(1).await;
    assert!(scene.is_alive());
    assert_eq!((scene.lists(), scene.cache.all().len()), (2, 0));
}

/// After a 410 that is all that is heard for as long as the list takes.
#[rstest]
#[case::of_one_list(Answer::Page(&[("b", 4)], Duration::from_secs(100)), true)]
#[case::of_lists_without_an_end(Answer::Refuse(410), false)]
#[tokio::test(start_paused = true)]
async fn each_page_is_a_sign_of_life(#[case] second: Answer, #[case] is_alive: bool) {
    let page = || Answer::Page(&[("a", 3)], Duration::from_secs(100));
    let server = Server::new([Answer::List(&[], 7), Answer::Refuse(410), page(), second]);
    let scene = Scene::new(server.and_then(page()));
    after(290).await;
    assert_eq!(scene.is_alive(), is_alive);
}

/// How bad each line of the log is.
#[derive(Clone, Default)]
struct Levels(Arc<Mutex<Vec<Level>>>);

impl<S: Subscriber> Layer<S> for Levels {
    fn on_event(&self, line: &Line<'_>, _: Context<'_, S>) {
        self.0.lock().unwrap().push(*line.metadata().level());
    }
}

/// Soon after a kind was installed the API server asks for a moment. That is part of every
/// installation; that it lasts for minutes is not.
#[tokio::test(start_paused = true)]
async fn that_the_api_server_asks_for_patience_is_an_error_once_it_lasts() {
    let levels = Levels::default();
    let log = tracing_subscriber::registry().with(levels.clone());
    let _log = tracing::subscriber::set_default(log);
    let mut telling = Telling::default();
    let mut fails_with = |code| {
        let status = kube::core::Status::failure("storage is (re)initializing", "");
        let refused = kube::Error::Api(status.with_code(code).boxed());
        let error = watcher::Error::WatchStartFailed(refused);
        let following = Following::<ConfigMap>::required();
        telling.fails(&following, Failed::of(&error), &error);
        std::mem::take(&mut *levels.0.lock().unwrap())
    };
    assert_eq!(fails_with(429), [Level::INFO]);
    assert!(fails_with(429).is_empty());
    after(301).await;
    assert_eq!(fails_with(429), [Level::ERROR]);
    assert_eq!(fails_with(503), [Level::ERROR]);
    // Alternating answers, as behind a load balancer, are reported once.
    assert!(fails_with(429).is_empty());
    assert!(fails_with(503).is_empty());
}

/// Without the kinds of Flux, GatedSources wait.
#[tokio::test(start_paused = true)]
async fn an_optional_kind_for_which_patience_lasts_is_an_error_too() {
    let levels = Levels::default();
    let log = tracing_subscriber::registry().with(levels.clone());
    let _log = tracing::subscriber::set_default(log);
    let mut telling = Telling::default();
    let status = kube::core::Status::failure("too many requests", "").with_code(429);
    let error = watcher::Error::InitialListFailed(kube::Error::Api(status.boxed()));
    let following = Following::<ConfigMap> {
        presence: Presence::Optional,
        ..Following::required()
    };
    telling.fails(&following, Failed::of(&error), &error);
    after(301).await;
    telling.fails(&following, Failed::of(&error), &error);
    assert_eq!(*levels.0.lock().unwrap(), [Level::INFO, Level::ERROR]);
}

#[test]
fn only_those_who_manage_the_spec_are_kept_and_without_their_fields() {
    let entries = json!([
        {"manager": "flux", "time": "2026-11-20T12:00:00Z", "fieldsV1": {"f:spec": {"f:require": {}}}},
        {"manager": "gate-controller", "subresource": "status", "fieldsV1": {"f:status": {}}},
        {"manager": "kubectl", "fieldsV1": {"f:metadata": {"f:annotations": {}}}},
    ]);
    let kept = managers_of_spec(serde_json::from_value(entries).unwrap());
    let kept = serde_json::to_value(kept).unwrap();
    assert_eq!(
        kept,
        json!([{"manager": "flux", "time": "2026-11-20T12:00:00Z"}])
    );
}
