//! Looks at a GitRepositoryAccess, on an API server that is played. There is no forge: its Secret is not there.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use futures::FutureExt;
use http::{Method, Request, Response};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use sluice_core::delivery::git_repository_access::report::Known;
use sluice_core::delivery::promotion_strategy::evidence::{Evidence, Question, Sight};
use sluice_core::verdict::condition::{READY, find};
use sluice_crds::git_repository_access::GitRepositoryAccessStatus;
use sluice_crds::{GitRepositoryAccess, PromotionStrategy};
use sluice_forges::Urgency;
use tokio::time::timeout;
use tower::service_fn;

use super::concerns_us;
use super::readings::{turn, urgency};
use crate::act::errands::Turn;
use crate::act::reconcile::gated_source::tests::{context, world};
use crate::act::reconcile::{Context, Outcome, Reconciled};
use crate::act::shard::Shard;
use crate::cluster::key::{KeyRef, ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::Seen;
use crate::observe::clock::SetClock;
use crate::observe::repositories::Begun;

mod listing;
mod reading;

const NOON: &str = "2026-11-20T12:00:00Z";

fn object() -> GitRepositoryAccess {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GitRepositoryAccess",
        "metadata": {
            "namespace": "apps", "name": "shop", "uid": "u", "resourceVersion": "5", "generation": 1,
        },
        "spec": {
            "provider": "gitea", "url": "https://git.example.com/acme/shop",
            "secretRef": {"name": "git-token"},
        },
    }))
    .unwrap()
}

/// What the API server was asked, and whether it refuses writes.
#[derive(Default)]
struct Api {
    refuses: AtomicBool,
    writes: AtomicUsize,
    secrets: AtomicUsize,
}

fn client(api: &Arc<Api>) -> Client {
    let api = Arc::clone(api);
    let service = service_fn(move |request: Request<Body>| {
        let refusal = |code: u16, reason: &str| {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                "reason": reason, "message": reason,
            });
            (code, status)
        };
        let (code, answer) = match *request.method() == Method::GET {
            true => {
                assert!(request.uri().path().ends_with("/secrets/git-token"));
                api.secrets.fetch_add(1, SeqCst);
                refusal(404, "NotFound")
            }
            false if api.refuses.load(SeqCst) => refusal(409, "Conflict"),
            false => {
                let version = api.writes.fetch_add(1, SeqCst) + 10;
                let metadata = json!({
                    "namespace": "apps", "name": "shop", "resourceVersion": version.to_string(),
                });
                (200, json!({ "metadata": metadata }))
            }
        };
        let body = Body::from(answer.to_string().into_bytes());
        let answer = Response::builder().status(code).body(body).unwrap();
        async move { Ok::<_, std::convert::Infallible>(answer) }
    });
    Client::new(service, "apps")
}

struct Scene {
    context: Context,
    clock: Arc<SetClock>,
    api: Arc<Api>,
    key: ObjectKey,
}

impl Scene {
    fn new() -> Self {
        let clock = Arc::new(SetClock::new(NOON.parse().unwrap()));
        let api = Arc::<Api>::default();
        let context = context(client(&api), world(), clock.clone());
        let key = ObjectKey::of(&object());
        let scene = Self {
            context,
            clock,
            api,
            key,
        };
        scene.hold(Some(object()));
        scene
    }

    fn hold(&self, object: Option<GitRepositoryAccess>) {
        let seen = object.map(|object| Seen::Object(Arc::new(object)));
        self.context.world.accesses.hold(&self.key, seen);
    }

    fn object(&self) -> Arc<GitRepositoryAccess> {
        let seen = self.context.world.accesses.get(self.key.borrowed());
        seen.as_ref().and_then(Seen::object).cloned().unwrap()
    }

    fn status(&self) -> GitRepositoryAccessStatus {
        self.object().status.clone().unwrap_or_default()
    }

    /// The reason of the condition Ready.
    fn reason(&self) -> Option<String> {
        let status = self.status();
        Some(find(&status.conditions, READY)?.reason.clone())
    }

    fn need(&self, by: &Work) {
        let branches = BTreeSet::from(["dev".to_owned()]);
        self.context.repositories.need(&self.key, by, branches);
    }

    fn heads_fail(&self, by: &Work) -> bool {
        let heads = self.context.repositories.of(&self.key, by).heads();
        matches!(heads, Sight::Failed(_))
    }

    fn known(&self) -> Known {
        let mut known = self.context.repositories.known(&self.key);
        self.context.readings.note(&self.key, &mut known);
        known
    }

    fn pass(&self, seconds: i64) {
        let now = self.context.clock.now();
        self.clock.set(now + SignedDuration::from_secs(seconds));
    }

    /// Looks at it. Returns in how many seconds it is looked at again.
    async fn look(&self) -> Result<Option<i64>, kube::Error> {
        let (object, at) = (self.object(), self.context.clock.now());
        let outcome = GitRepositoryAccess::look(&self.context, &self.key, object, at).await?;
        let Outcome::Wake(wake) = outcome else {
            panic!("{outcome:?}");
        };
        Ok(wake.map(|wake: Timestamp| wake.duration_since(at).as_secs()))
    }

    /// Waits until the Secret was asked for so often, and that is over.
    async fn asked(&self, times: usize) {
        let asked = async {
            while self.api.secrets.load(SeqCst) < times
                || self.context.readings.is_under_way(&self.key)
            {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(30), asked).await.unwrap();
    }

    fn counts(&self) -> (usize, usize) {
        let Api {
            writes, secrets, ..
        } = self.api.as_ref();
        (writes.load(SeqCst), secrets.load(SeqCst))
    }
}

fn strategy() -> Work {
    let key = ObjectKey::of(&object());
    Work::own(Kind::PromotionStrategy, key.naming(None, "shop"))
}

#[tokio::test]
async fn what_nobody_needs_is_not_asked() {
    let scene = Scene::new();
    for _ in 0..3 {
        assert_eq!(scene.look().await.unwrap(), None);
        scene.pass(3_600);
    }
    assert_eq!(scene.reason().as_deref(), Some("NotNeeded"));
    assert_eq!(scene.counts(), (1, 0));
}

#[tokio::test]
async fn a_failure_is_told_to_those_who_need_it_and_tried_later() {
    let scene = Scene::new();
    scene.need(&strategy());
    // One list for all who begin to need it within a moment.
    assert_eq!(scene.look().await.unwrap(), Some(1));
    assert_eq!(scene.reason().as_deref(), Some("Listing"));
    scene.pass(1);
    assert_eq!(scene.look().await.unwrap(), None);
    assert!(!scene.heads_fail(&strategy()));
    scene.asked(1).await;
    assert_eq!(scene.look().await.unwrap(), Some(10));
    assert!(scene.heads_fail(&strategy()));
    assert_eq!(scene.reason().as_deref(), Some("SecretNotUsable"));
    let status = scene.status();
    let message = &find(&status.conditions, READY).unwrap().message;
    assert_eq!(message, "there is no Secret apps/git-token");
    // Until then nothing is asked or written, however often it is woken.
    let counts = scene.counts();
    scene.pass(5);
    assert_eq!(scene.look().await.unwrap(), Some(5));
    scene.pass(5);
    scene.look().await.unwrap();
    scene.asked(2).await;
    assert_eq!(scene.look().await.unwrap(), Some(20));
    assert_eq!(scene.counts(), (counts.0, 2));
}

#[tokio::test]
async fn what_is_asked_does_not_wait_for_a_status() {
    let scene = Scene::new();
    scene.need(&strategy());
    scene.pass(1);
    scene.api.refuses.store(true, SeqCst);
    assert!(scene.look().await.is_err());
    scene.asked(1).await;
    assert!(scene.look().await.is_err());
    // It was taken in, and is not asked for again.
    assert!(scene.heads_fail(&strategy()));
    scene.api.refuses.store(false, SeqCst);
    scene.look().await.unwrap();
    assert_eq!(scene.reason().as_deref(), Some("SecretNotUsable"));
    assert_eq!(scene.counts(), (1, 1));
}

#[tokio::test]
async fn a_question_that_fails_is_told_to_those_who_ask() {
    let scene = Scene::new();
    let question = Question::Metadata("a".repeat(40));
    let repositories = &scene.context.repositories;
    repositories.ask(&scene.key, &strategy(), [question.clone()]);
    scene.look().await.unwrap();
    assert!(scene.known().questions.is_under_way);
    scene.asked(1).await;
    assert_eq!(scene.look().await.unwrap(), Some(10));
    let seen = repositories.of(&scene.key, &strategy());
    let why = "there is no Secret apps/git-token".to_owned();
    assert_eq!(seen.answer(&question), Sight::Failed(why));
    assert_eq!(scene.reason().as_deref(), Some("SecretNotUsable"));
}

/// A merge is ordered from a fresh list, and anyone who shares a credential may have much to ask by it.
#[tokio::test]
async fn a_list_that_a_merge_waits_for_goes_first() {
    let scene = Scene::new();
    let Context {
        repositories,
        readings,
        ..
    } = &scene.context;
    assert_eq!((turn(true), turn(false)), (Turn::Merge, Turn::Usual));
    let (object, key) = (scene.object(), &scene.key);
    let is_listed = || scene.known().list.is_under_way;
    scene.need(&strategy());
    readings.list(&scene.context, &object, None);
    readings.hasten(repositories, key);
    assert!(is_listed());
    // It only waits for its place so far.
    repositories.list_for(key, &strategy());
    readings.hasten(repositories, key);
    assert!(!is_listed());
    readings.list(&scene.context, &object, None);
    assert!(!repositories.is_list_awaited(key));
    // One that goes first is ended by nothing, nor is one that has its place.
    repositories.list_for(key, &strategy());
    readings.hasten(repositories, key);
    assert!(is_listed());
    scene.asked(1).await;
    scene.look().await.unwrap();
    scene.pass(3_600);
    let needed = repositories.begin_list(key, None);
    assert!(needed.is_awaited);
    readings.list(&scene.context, &object, None);
    scene.asked(2).await;
    repositories.list_for(key, &strategy());
    readings.hasten(repositories, key);
    assert!(is_listed());
}

#[test]
fn what_nobody_knows_is_asked_like_a_merge() {
    for (are_needed, expected) in [(true, Urgency::Needed), (false, Urgency::Other)] {
        let begun = Begun {
            are_needed,
            ..Begun::default()
        };
        assert_eq!(urgency(&begun), expected);
    }
}

#[tokio::test]
async fn another_spec_is_tried_at_once() {
    let scene = Scene::new();
    scene.need(&strategy());
    scene.pass(1);
    scene.look().await.unwrap();
    scene.asked(1).await;
    scene.look().await.unwrap();
    scene.pass(1);
    let mut object = scene.object().as_ref().clone();
    object.metadata.generation = Some(2);
    scene.hold(Some(object));
    scene.look().await.unwrap();
    scene.asked(2).await;
}

#[tokio::test]
async fn of_one_that_is_gone_nothing_is_under_way() {
    let scene = Scene::new();
    scene.need(&strategy());
    scene.pass(1);
    let object = scene.object();
    scene.hold(None);
    let at = scene.context.clock.now();
    super::read(&scene.context, &scene.key, &object, at);
    assert_eq!(scene.known().list.listed_at, None);
    assert!(!scene.known().list.is_under_way);
}

/// Those of this shard need what is known here, and the other shard writes the status.
#[tokio::test]
async fn an_access_of_another_shard_is_read_where_it_is_needed() {
    let mut scene = Scene::new();
    let shard = Shard::default().of_kinds(&["PromotionStrategy".to_owned()]);
    scene.context.shard = shard.unwrap();
    let work = Work::own(Kind::GitRepositoryAccess, scene.key.clone());
    let look = async || {
        let looked = crate::act::reconcile::look(&scene.context, &work);
        looked.await.unwrap()
    };
    assert!(matches!(look().await, Outcome::NotOurs));
    scene.need(&strategy());
    scene.pass(1);
    assert!(matches!(look().await, Outcome::Wake(_)));
    scene.asked(1).await;
    assert!(matches!(look().await, Outcome::Wake(Some(_))));
    assert!(scene.heads_fail(&strategy()));
    assert_eq!(scene.counts(), (0, 1));
}

/// Whose a branch is depends on who can read it: those who name another access to it are told at once.
#[tokio::test]
async fn who_shares_a_repository_learns_who_can_read_it() {
    let scene = Scene::new();
    let Context { world, waker, .. } = &scene.context;
    let other = ObjectKey::from(KeyRef {
        namespace: "team",
        name: "mine",
    });
    for access in [&scene.key, &other] {
        world.note_access(access, Some("https://git.example.com/acme/shop"));
    }
    let named = Work::own(Kind::GitRepositoryAccess, other.clone());
    let theirs = Work::own(Kind::PromotionStrategy, other);
    world.note(&theirs, vec![named]);
    let woken = || {
        let mut woken = BTreeSet::new();
        let clock = scene.context.clock.as_ref();
        while let Some(work) = waker.queue.next(clock).now_or_never() {
            waker.queue.done(&work);
            woken.insert(work);
        }
        woken
    };
    scene.need(&strategy());
    scene.pass(1);
    scene.look().await.unwrap();
    scene.asked(1).await;
    assert!(!woken().contains(&theirs));
    scene.look().await.unwrap();
    assert!(woken().contains(&theirs));
    // Once.
    scene.look().await.unwrap();
    assert!(!woken().contains(&theirs));
}

/// What others look at concerns them alone. Who may not use the access takes no webhook away.
#[tokio::test]
async fn a_webhook_is_for_those_who_look_at_what_may_use_the_access() {
    let mut scene = Scene::new();
    for (namespace, shard) in [("apps", "1"), ("evil", "2")] {
        let strategy: PromotionStrategy = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
            "metadata": {"namespace": namespace, "name": "it", "labels": {"shard": shard}},
            "spec": {
                "repoRef": {"name": "shop", "namespace": "apps"},
                "environments": [{"branch": "env/prod"}],
            },
        }))
        .unwrap();
        let (key, world) = (ObjectKey::of(&strategy), &scene.context.world);
        let own = Work::own(Kind::PromotionStrategy, key.clone());
        world.note(&own, strategy.interests(&key));
        let seen = Some(Seen::Object(Arc::new(strategy)));
        world.promotion_strategies.hold(&key, seen);
    }
    let nobodys = scene.key.naming(None, "nobodys");
    for (selector, is_ours) in [("shard=1", true), ("shard=2", false)] {
        scene.context.shard = Shard::parse(Some(selector)).unwrap();
        assert_eq!(concerns_us(&scene.context, &scene.key), is_ours);
        assert!(concerns_us(&scene.context, &nobodys));
    }
}
