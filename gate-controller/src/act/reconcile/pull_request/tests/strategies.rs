//! The same of a PullRequest that a strategy has made: by whose Secret its forge is asked.

use sluice_core::delivery::promotion_strategy::child;
use sluice_core::delivery::pull_request::{Joining, Outcome as Ended, Word};
use sluice_crds::{GitRepositoryAccess, PromotionStrategy};

use super::*;
use crate::act::reconcile::Reconciled;
use crate::act::reconcile::pull_request::at_forges::{Ask, is_still_ordered};
use crate::cluster::key::Work;
use crate::observe::cache::Change;

const HEAD: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// A strategy of `prod`, whose repository is opened by an access of the namespace `platform`.
fn strategy() -> PromotionStrategy {
    let mut strategy: PromotionStrategy = serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
        "metadata": {"namespace": "prod", "name": "shop", "resourceVersion": "5"},
        "spec": {
            "repoRef": {"name": "shop", "namespace": "platform"},
            "environments": [{"branch": "env/prod"}],
        },
        "status": {"environments": [{
            "branch": "env/prod", "state": "Waiting",
            "proposed": {"hydratedSHA": HEAD, "tree": HEAD, "since": NOON},
        }]},
    }))
    .unwrap();
    let record = json!({"name": made(&strategy).metadata.name, "n": 1});
    let status = strategy.status.as_mut().unwrap();
    status.environments[0].pull_request = serde_json::from_value(record).unwrap();
    strategy
}

fn made(strategy: &PromotionStrategy) -> PullRequest {
    let prod = &strategy.spec.environments[0];
    let mut made = child::make(strategy, prod, 1, "Promote", "", None);
    made.metadata.resource_version = Some("5".to_owned());
    made.metadata.generation = Some(1);
    made
}

fn access(branches: &[&str]) -> GitRepositoryAccess {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GitRepositoryAccess",
        "metadata": {"namespace": "platform", "name": "shop"},
        "spec": {
            "provider": "gitea", "url": "https://git.example.com/acme/shop.git",
            "secretRef": {"name": "git-token"},
            "allow": [{"namespaces": ["prod"], "branches": branches}],
        },
    }))
    .unwrap()
}

fn scene() -> Scene {
    let strategy = strategy();
    let scene = Scene::of(made(&strategy));
    hold(&scene, strategy);
    scene
}

fn hold(scene: &Scene, strategy: PromotionStrategy) {
    let key = ObjectKey::of(&strategy);
    let seen = Some(Seen::Object(Arc::new(strategy)));
    scene.context.world.promotion_strategies.hold(&key, seen);
}

fn allow(scene: &Scene, branches: &[&str]) {
    let access = access(branches);
    let key = ObjectKey::of(&access);
    let seen = Some(Seen::Object(Arc::new(access)));
    scene.context.world.accesses.hold(&key, seen);
}

#[tokio::test]
async fn the_secret_of_the_access_is_read_in_its_own_namespace() {
    let scene = scene();
    allow(&scene, &["env/*"]);
    scene.look().await.unwrap();
    scene.over().await;
    assert_eq!(*scene.api.of.lock(), "platform");
    scene.look().await.unwrap();
    let status = scene.status();
    assert_eq!(
        status.message.as_deref(),
        Some("there is no Secret platform/git-token")
    );
}

#[tokio::test]
async fn an_access_that_does_not_allow_the_branch_opens_nothing() {
    let scene = scene();
    for branches in [None, Some(["main"])] {
        if let Some(branches) = branches {
            allow(&scene, &branches);
        }
        scene.look().await.unwrap();
        scene.over().await;
        scene.look().await.unwrap();
        let status = scene.status();
        assert_eq!(status.outcome.as_deref(), Some("AccessNotUsable"));
        assert_eq!(scene.read(), 0);
        let next = status.next_attempt_at.unwrap().0;
        scene.clock.set(next);
    }
    // It is allowed by now.
    allow(&scene, &["env/prod"]);
    scene.look().await.unwrap();
    scene.over().await;
    assert_eq!(scene.read(), 1);
}

#[tokio::test]
async fn a_merge_needs_the_order_of_its_strategy_until_it_is_sent() {
    let scene = scene();
    let object = made(&strategy());
    let merge = Task::Merge {
        number: 7,
        commit: HEAD.to_owned(),
        method: None,
        hold_label: None,
        not_after: NOON.parse().unwrap(),
    };
    let may = || is_still_ordered(&scene.context.world, &scene.key, &object, &merge);
    assert!(!may());
    let mut ordered = strategy();
    let order = json!({
        "key": object.spec.about.key, "pullRequest": object.metadata.name, "headSHA": HEAD,
        "at": NOON, "notAfter": NOON,
    });
    let status = ordered.status.as_mut().unwrap();
    status.environments[0].order = serde_json::from_value(order).unwrap();
    hold(&scene, ordered.clone());
    assert!(may());
    ordered.spec.suspend = true;
    hold(&scene, ordered);
    assert!(!may());
}

/// Nothing is begun before it is known what strategies say, and who may use the repository.
#[tokio::test]
async fn it_waits_until_owners_and_accesses_are_known() {
    let scene = scene();
    allow(&scene, &["env/*"]);
    let at = scene.context.clock.now();
    let object = || Arc::new(made(&strategy()));
    let look = || PullRequest::look(&scene.context, &scene.key, object(), at);
    look().await.unwrap();
    assert_eq!(scene.context.at_forges.errand(&scene.key), Errand::None);
    scene.context.world.promotion_strategies.sync();
    look().await.unwrap();
    assert_eq!(scene.context.at_forges.errand(&scene.key), Errand::None);
    scene.context.world.accesses.sync();
    look().await.unwrap();
    assert_ne!(scene.context.at_forges.errand(&scene.key), Errand::None);
}

#[test]
fn what_a_strategy_says_otherwise_wakes_its_pull_requests() {
    let before = strategy();
    let mut now = before.clone();
    let status = now.status.as_mut().unwrap();
    status.environments[0].gate = Some(sluice_crds::pipeline::MergeGate::Success);
    let key = ObjectKey::of(&before);
    let [before, now] = [before, now].map(|it| Seen::Object(Arc::new(it)));
    let matters = |now: &Seen<PromotionStrategy>| {
        PromotionStrategy::may_matter(&Change {
            key: &key,
            before: Some(&before),
            now: Some(now),
        })
    };
    assert!(matters(&now) && !matters(&before));
    let object = made(&strategy());
    let interests = object.interests(&ObjectKey::of(&object));
    let owner = Work::own(Kind::PromotionStrategy, key.clone());
    assert!(interests.contains(&owner));
}

/// It pushes to the source branch.
#[tokio::test]
async fn a_branch_is_joined_into_none_that_the_access_does_not_allow() {
    let scene = scene();
    let joining = Joining {
        head: HEAD.to_owned(),
        active: HEAD.to_owned(),
        tree: HEAD.to_owned(),
        at: NOON.parse().unwrap(),
    };
    let join = async |branches: &[&str]| {
        allow(&scene, branches);
        let at_forges = &scene.context.at_forges;
        let seen = scene.context.world.pull_requests.get(scene.key.borrowed());
        let object = seen.as_ref().and_then(Seen::object).cloned().unwrap();
        let task = Task::Join(joining.clone());
        at_forges.begin(&scene.context, &scene.key, object, task);
        scene.over().await;
        match at_forges.errand(&scene.key) {
            Errand::Over(over) => over.1,
            other => panic!("{other:?}"),
        }
    };
    let Ended::Failed(failure) = join(&["env/prod"]).await else {
        panic!("it was joined");
    };
    assert_eq!(failure.word, Word::AccessNotUsable);
    assert!(failure.message.contains("env/prod-next"), "{failure:?}");
    assert_eq!(scene.read(), 0);
    let Ended::Failed(failure) = join(&["env/prod", "env/prod-next"]).await else {
        panic!("there is no Secret");
    };
    assert_eq!(failure.word, Word::SecretNotUsable);
}

/// Also of those in other namespaces, and of no other access.
#[tokio::test]
async fn a_webhook_has_all_asked_about_that_name_its_access() {
    let scene = scene();
    let (context, desk) = (&scene.context, &scene.context.at_forges);
    let interests = made(&strategy()).interests(&scene.key);
    let own = Work::own(Kind::PullRequest, scene.key.clone());
    context.world.note(&own, interests);
    desk.look_now_by(context, &scene.key.naming(None, "shop"));
    assert_eq!(desk.take_asked(&scene.key), None);
    desk.look_now_by(context, &ObjectKey::of(&access(&[])));
    assert_eq!(desk.take_asked(&scene.key), Some(Ask::ByList));
    // Who asks about it alone is not answered by a list.
    desk.look_now(context, &scene.key);
    desk.look_now_by(context, &ObjectKey::of(&access(&[])));
    assert_eq!(desk.take_asked(&scene.key), Some(Ask::Alone));
    // Very many webhooks have nobody looked at more often than a few times.
    allow(&scene, &["env/*"]);
    let hear = |_: &usize| {
        desk.look_now_by(context, &ObjectKey::of(&access(&[])));
        desk.take_asked(&scene.key).is_some()
    };
    assert_eq!((0..20).filter(hear).count(), 4);
}
