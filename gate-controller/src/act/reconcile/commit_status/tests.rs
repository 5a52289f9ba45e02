//! Looks at a CommitStatus, on an API server that is played. There is no forge: its Secret is not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use http::{Method, Request, Response};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use sluice_core::delivery::commit_status::Post;
use sluice_core::delivery::commit_status::report::{Errand, Task};
use sluice_core::delivery::promotion_strategy::evidence::{Heads, Sight};
use sluice_core::verdict::condition::{READY, find};
use sluice_crds::{CommitStatus, CommitStatusStatus, GitRepositoryAccess, PromotionStrategy};
use sluice_forges::Wants;
use tokio::time::timeout;
use tower::service_fn;

use crate::act::reconcile::gated_source::tests::{context, world};
use crate::act::reconcile::{Context, Outcome, Reconciled};
use crate::cluster::failure;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::Seen;
use crate::observe::clock::{Clock, SetClock};

const NOON: &str = "2026-11-20T12:00:00Z";

fn object() -> CommitStatus {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "CommitStatus",
        "metadata": {
            "namespace": "apps", "name": "test", "uid": "u", "resourceVersion": "5", "generation": 1,
        },
        "spec": {
            "repoRef": {"name": "shop", "namespace": "platform"}, "sha": "7".repeat(40),
            "name": "load-test", "phase": "success",
        },
    }))
    .unwrap()
}

fn access(allow: &Value) -> GitRepositoryAccess {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GitRepositoryAccess",
        "metadata": {"namespace": "platform", "name": "shop"},
        "spec": {
            "provider": "gitea", "url": "https://git.example.com/acme/shop",
            "secretRef": {"name": "git-token"}, "allow": allow,
        },
    }))
    .unwrap()
}

fn strategy(namespace: &str, status_name: &str) -> PromotionStrategy {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
        "metadata": {"namespace": namespace, "name": "shop", "resourceVersion": "5"},
        "spec": {
            "repoRef": {"name": "shop", "namespace": "platform"}, "statusName": status_name,
            "environments": [{"branch": "env/prod"}],
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

fn of(key: &ObjectKey) -> Work {
    Work::own(Kind::CommitStatus, key.clone())
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
                api.secrets.fetch_add(1, SeqCst);
                refusal(404, "NotFound")
            }
            false if api.refuses.load(SeqCst) => refusal(409, "Conflict"),
            false => {
                let version = api.writes.fetch_add(1, SeqCst) + 10;
                let metadata = json!({
                    "namespace": "apps", "name": "test", "resourceVersion": version.to_string(),
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
    /// Its access allows its namespace, on some branch.
    fn new() -> Self {
        let clock = Arc::new(SetClock::new(NOON.parse().unwrap()));
        let api = Arc::<Api>::default();
        let context = context(client(&api), world(), clock.clone());
        let scene = Self {
            context,
            clock,
            api,
            key: ObjectKey::of(&object()),
        };
        let world = &scene.context.world;
        world.accesses.sync();
        world.promotion_strategies.sync();
        scene.allows(&json!([{"namespaces": ["apps"], "branches": ["env/*"]}]));
        scene.holds(object());
        scene
    }

    fn holds(&self, object: CommitStatus) {
        let seen = Some(Seen::Object(Arc::new(object)));
        self.context.world.commit_statuses.hold(&self.key, seen);
    }

    fn allows(&self, allow: &Value) {
        let access = access(allow);
        let key = ObjectKey::of(&access);
        let seen = Some(Seen::Object(Arc::new(access)));
        self.context.world.accesses.hold(&key, seen);
    }

    fn strategy(&self, strategy: PromotionStrategy) {
        let (key, world) = (ObjectKey::of(&strategy), &self.context.world);
        let own = Work::own(Kind::PromotionStrategy, key.clone());
        world.note(&own, strategy.interests(&key));
        let seen = Some(Seen::Object(Arc::new(strategy)));
        world.promotion_strategies.hold(&key, seen);
    }

    fn object(&self) -> Arc<CommitStatus> {
        let seen = self.context.world.commit_statuses.get(self.key.borrowed());
        seen.as_ref().and_then(Seen::object).cloned().unwrap()
    }

    fn status(&self) -> CommitStatusStatus {
        self.object().status.clone().unwrap_or_default()
    }

    /// The reason and the message of `Ready`.
    fn says(&self) -> (String, String) {
        let conditions = self.status().conditions;
        let ready = find(&conditions, READY).unwrap();
        (ready.reason.clone(), ready.message.clone())
    }

    async fn look(&self) -> Result<Option<Timestamp>, kube::Error> {
        let at = self.clock.now();
        let outcome = CommitStatus::look(&self.context, &self.key, self.object(), at).await?;
        let Outcome::Wake(wake) = outcome else {
            panic!("{outcome:?}");
        };
        Ok(wake)
    }

    fn errand(&self) -> Errand {
        self.context.postings.errand(&of(&self.key))
    }

    /// Waits until the errand is over.
    async fn over(&self) {
        let over = async {
            while !matches!(self.errand(), Errand::Over(_)) {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(30), over).await.unwrap();
    }

    fn read(&self) -> usize {
        self.api.secrets.load(SeqCst)
    }

    fn written(&self) -> usize {
        self.api.writes.load(SeqCst)
    }
}

#[tokio::test]
async fn nothing_is_told_before_it_is_known_which_names_are_reserved() {
    let scene = Scene::new();
    let fresh = context(client(&scene.api), world(), scene.clock.clone());
    fresh.world.accesses.sync();
    let at = scene.clock.now();
    let looked = CommitStatus::look(&fresh, &scene.key, scene.object(), at).await;
    assert!(matches!(looked, Ok(Outcome::Wake(None))));
    assert_eq!(
        (scene.written(), fresh.postings.errand(&of(&scene.key))),
        (0, Errand::None)
    );
}

#[tokio::test]
async fn an_outcome_is_kept_until_a_status_says_it() {
    let scene = Scene::new();
    scene.look().await.unwrap();
    assert_eq!(scene.says().0, "Posting");
    scene.over().await;
    let kept = scene.errand();
    scene.api.refuses.store(true, SeqCst);
    let error = scene.look().await.unwrap_err();
    assert!(failure::is_overtaken(&error), "{error}");
    assert_eq!(scene.errand(), kept);
    scene.api.refuses.store(false, SeqCst);
    let wake = scene.look().await.unwrap();
    assert_eq!(
        scene.says(),
        (
            "SecretNotUsable".to_owned(),
            "there is no Secret platform/git-token".to_owned()
        )
    );
    let next = scene.clock.now() + SignedDuration::from_secs(10);
    assert_eq!((wake, scene.errand()), (Some(next), Errand::None));

    // Until then nothing is written or asked.
    let written = scene.written();
    scene.look().await.unwrap();
    assert_eq!((scene.written(), scene.read()), (written, 1));
    scene.clock.set(next);
    scene.look().await.unwrap();
    scene.over().await;
    assert_eq!(scene.read(), 2);
}

#[tokio::test]
async fn another_namespace_needs_to_be_allowed() {
    let scene = Scene::new();
    scene.allows(&json!([{"namespaces": ["other"], "branches": ["**"]}]));
    scene.look().await.unwrap();
    let (reason, message) = scene.says();
    assert_eq!(reason, "AccessNotUsable");
    assert!(
        message.contains("does not allow the namespace apps"),
        "{message}"
    );
    assert_eq!(scene.errand(), Errand::None);
    scene.allows(&json!([{"namespaces": ["apps"], "branches": ["main"]}]));
    scene.look().await.unwrap();
    assert_eq!(scene.says().0, "Posting");
}

#[tokio::test]
async fn a_name_by_which_a_strategy_speaks_is_refused() {
    let scene = Scene::new();
    scene.strategy(strategy("elsewhere", "Load-Test"));
    // Who may not promote there says nothing there.
    scene.look().await.unwrap();
    assert_eq!(scene.says().0, "Posting");
    scene.over().await;
    let read = scene.read();
    scene.allows(&json!([{"namespaces": ["apps", "elsewhere"], "branches": ["env/*"]}]));
    scene.look().await.unwrap();
    let (reason, message) = scene.says();
    assert_eq!(reason, "ReservedName");
    assert!(
        message.contains("a PromotionStrategy of another namespace"),
        "{message}"
    );
    scene.strategy(strategy("apps", "load-test"));
    scene.look().await.unwrap();
    assert!(scene.says().1.contains("the PromotionStrategy shop"));
    assert_eq!((scene.errand(), scene.read()), (Errand::None, read));
}

/// Another access to a repository is no way around its names; and one that reads nothing reserves none.
#[tokio::test]
async fn a_name_is_reserved_in_its_repository_whichever_access_is_named() {
    let scene = Scene::new();
    let mut other = access(&json!([{"namespaces": ["apps"], "branches": ["env/*"]}]));
    other.metadata.name = Some("other".to_owned());
    other.spec.url = "https://GIT.example.com/Acme/shop.git/".to_owned();
    let (key, world) = (ObjectKey::of(&other), &scene.context.world);
    world
        .accesses
        .hold(&key, Some(Seen::Object(Arc::new(other))));
    for access in [key.clone(), key.naming(None, "shop")] {
        world.note_access(&access, Some("https://git.example.com/acme/shop"));
    }
    let mut speaks = strategy("apps", "load-test");
    speaks.spec.repo_ref.name = "other".to_owned();
    scene.strategy(speaks.clone());
    scene.look().await.unwrap();
    assert_eq!(scene.says().0, "Posting");
    scene.over().await;
    let (repositories, of) = (&scene.context.repositories, ObjectKey::of(&speaks));
    let by = Work::own(Kind::PromotionStrategy, of);
    repositories.need(&key, &by, ["env/prod".to_owned()].into());
    repositories.begin_list(&key, None);
    let heads = Heads {
        branches: [].into(),
        notes: Sight::Absent,
    };
    repositories.listed(&key, Ok(heads.into()));
    world.note_read(&key);
    scene.look().await.unwrap();
    assert_eq!(scene.says().0, "ReservedName");
}

#[tokio::test]
async fn a_failure_to_tell_what_is_not_wanted_any_more_is_no_news() {
    let scene = Scene::new();
    scene.look().await.unwrap();
    let mut other = object();
    other.metadata.generation = Some(2);
    other.spec.phase = sluice_crds::commit_status::Phase::Failure;
    other.status = Some(scene.status());
    scene.holds(other);
    scene.look().await.unwrap();
    scene.over().await;
    let written = scene.written();
    scene.look().await.unwrap();
    // The next one is under way, and nothing is said of the first.
    assert!(matches!(scene.errand(), Errand::UnderWay { .. }));
    assert_eq!(scene.written(), written);
}

/// What waits for its turn makes room. What may have told the forge does not.
#[tokio::test]
async fn what_has_told_nothing_is_ended_by_the_next_task() {
    let scene = Scene::new();
    let (desk, of) = (&scene.context.postings, of(&scene.key));
    let begin = |description: &str| {
        let mut object = object();
        object.spec.description = Some(description.to_owned());
        let post = Post::at(&object, scene.clock.now());
        let task = Task {
            post: post.clone(),
            is_urgent: true,
        };
        desk.begin(&scene.context, &of, &object.spec.repo_ref, task);
        post
    };
    let under_way = |post: Post, is_sent| {
        let post = Box::new(post);
        assert_eq!(scene.errand(), Errand::UnderWay { post, is_sent });
    };
    under_way(begin("one"), false);
    let claim = desk.claim(&of).unwrap();
    let second = begin("two");
    under_way(second.clone(), false);
    assert!(!claim.allows(Wants::Sending));
    assert!(desk.claim(&of).unwrap().allows(Wants::Sending));
    begin("three");
    under_way(second, true);
    scene.over().await;
    desk.accepted(&of);
    under_way(begin("three"), false);
}

#[tokio::test]
async fn nothing_is_remembered_of_one_that_is_gone_or_that_others_lead() {
    let scene = Scene::new();
    for forget in [
        (|scene: &Scene| scene.context.postings.clear()) as fn(&Scene),
        |scene: &Scene| scene.context.postings.forget(&of(&scene.key)),
    ] {
        scene.look().await.unwrap();
        assert_ne!(scene.errand(), Errand::None);
        forget(&scene);
        assert_eq!(scene.errand(), Errand::None);
    }
}
