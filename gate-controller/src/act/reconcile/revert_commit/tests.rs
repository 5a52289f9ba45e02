//! Looks at a RevertCommit, on an API server that is played.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use sluice_crds::revert_commit::RevertPhase;
use sluice_crds::{PromotionStrategy, RevertCommit};
use tower::service_fn;

use crate::act::reconcile::gated_source::tests::{context, world};
use crate::act::reconcile::{Context, Outcome, Reconciled};
use crate::cluster::key::ObjectKey;
use crate::observe::cache::Seen;
use crate::observe::clock::{Clock, SetClock};

fn object() -> RevertCommit {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "RevertCommit",
        "metadata": {
            "namespace": "apps", "name": "back", "uid": "u", "resourceVersion": "5", "generation": 1,
        },
        "spec": {
            "repoRef": {"name": "shop"}, "activeBranch": "env/prod", "from": "7".repeat(40),
            "drySHA": "b".repeat(40), "reason": "INC-4711", "by": "alice",
        },
    }))
    .unwrap()
}

fn strategy(namespace: &str, access: &Value, phase: &str) -> PromotionStrategy {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
        "metadata": {"namespace": namespace, "name": "shop", "resourceVersion": "5"},
        "spec": {"repoRef": access, "environments": [{"branch": "env/prod"}]},
        "status": {"environments": [{"branch": "env/prod", "state": "Reverting", "reverts": [{
            "name": "back", "generation": 1, "phase": phase, "reason": "Why", "message": "because",
        }]}]},
    }))
    .unwrap()
}

struct Scene {
    context: Context,
    clock: Arc<SetClock>,
    writes: Arc<AtomicUsize>,
}

impl Scene {
    fn new() -> Self {
        let writes = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&writes);
        let service = service_fn(move |_: Request<Body>| {
            let version = counted.fetch_add(1, SeqCst) + 10;
            let metadata = json!({
                "namespace": "apps", "name": "back", "resourceVersion": version.to_string(),
            });
            let body = Body::from(json!({ "metadata": metadata }).to_string().into_bytes());
            async move { Ok::<_, std::convert::Infallible>(Response::new(body)) }
        });
        let clock = Arc::new(SetClock::new("2026-11-20T12:00:00Z".parse().unwrap()));
        let context = context(Client::new(service, "apps"), world(), clock.clone());
        let (object, caches) = (object(), &context.world);
        let seen = Some(Seen::Object(Arc::new(object.clone())));
        caches.revert_commits.hold(&ObjectKey::of(&object), seen);
        Self {
            context,
            clock,
            writes,
        }
    }

    fn holds(&self, strategy: PromotionStrategy) {
        let key = ObjectKey::of(&strategy);
        let seen = Some(Seen::Object(Arc::new(strategy)));
        self.context.world.promotion_strategies.hold(&key, seen);
    }

    fn object(&self) -> Arc<RevertCommit> {
        let key = ObjectKey::of(&object());
        let seen = self.context.world.revert_commits.get(key.borrowed());
        seen.as_ref().and_then(Seen::object).cloned().unwrap()
    }

    async fn look(&self) -> Option<RevertPhase> {
        let (key, at) = (ObjectKey::of(&object()), self.clock.now());
        let outcome = RevertCommit::look(&self.context, &key, self.object(), at).await;
        assert!(matches!(outcome, Ok(Outcome::Wake(None))), "{outcome:?}");
        self.object().status.as_ref().and_then(|it| it.phase)
    }
}

#[tokio::test]
async fn nothing_is_said_before_strategies_are_known() {
    let scene = Scene::new();
    assert_eq!(scene.look().await, None);
    assert_eq!(scene.writes.load(SeqCst), 0);
    scene.context.world.promotion_strategies.sync();
    assert_eq!(scene.look().await, Some(RevertPhase::Stalled));
}

#[tokio::test]
async fn a_status_that_says_the_same_is_not_written() {
    let scene = Scene::new();
    scene.context.world.promotion_strategies.sync();
    let own = json!({"name": "shop"});
    scene.holds(strategy("apps", &own, "Open"));
    for _ in 0..3 {
        assert_eq!(scene.look().await, Some(RevertPhase::Open));
    }
    assert_eq!(scene.writes.load(SeqCst), 1);
    scene.holds(strategy("apps", &own, "Merged"));
    assert_eq!(scene.look().await, Some(RevertPhase::Merged));
    assert_eq!(scene.writes.load(SeqCst), 2);
}

#[tokio::test]
async fn only_a_strategy_of_its_namespace_and_repository_counts() {
    let scene = Scene::new();
    scene.context.world.promotion_strategies.sync();
    let same = json!({"name": "shop", "namespace": "apps"});
    scene.holds(strategy("other", &same, "Merged"));
    scene.holds(strategy("apps", &json!({"name": "other"}), "Merged"));
    assert_eq!(scene.look().await, Some(RevertPhase::Stalled));
    let reason = scene.object().status.clone().unwrap().conditions[0]
        .reason
        .clone();
    assert_eq!(reason, "NoEnvironment");
}
