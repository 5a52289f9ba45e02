//! Calls by a clock that is set, to hosts whose names nobody knows: such a call takes all of its time.

use std::io;
use std::net::IpAddr;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::Method as HttpMethod;
use serde_json::json;
use sluice_core::delivery::act::Report;
use sluice_core::delivery::rollout::{Act, hook, plan};
use sluice_crds::rollout::HookType;
use sluice_egress::{Names, Rules};
use tokio::time::timeout;

use super::*;
use crate::act::queue::Shared;
use crate::act::reconcile::consumer;
use crate::act::reconcile::gated_source::tests::{api, context, noon, world};
use crate::cluster::failure;
use crate::cluster::key::ObjectKey;
use crate::cluster::kind::Kind;
use crate::lease::Held;
use crate::observe::clock::Jumps;

/// A look-up of names that never ends.
struct Nobody;

impl Names for Nobody {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        std::future::pending().boxed()
    }
}

/// Calls, and what they need of the rest of the controller.
struct Scene {
    context: Context,
    calls: Calls,
}

impl Scene {
    fn new() -> Self {
        let context = context(api("5", &Arc::default()), world(), noon());
        let egress = Egress::with(Rules::default(), limits(), Arc::new(Nobody)).unwrap();
        let (until, leadership) = Leadership::new(Arc::new(Jumps::new(noon())));
        until.send_replace(Some(Held::for_ever()));
        let waker = Waker {
            world: Arc::clone(&context.world),
            queue: Arc::new(Shared::new(8)),
            clock: noon(),
        };
        let calls = Calls::new(leadership, waker, egress);
        Self { context, calls }
    }

    /// A Rollout that the cache has.
    fn rollout(&self, namespace: &str) -> Arc<Rollout> {
        let object = Arc::new(rollout(namespace, 0));
        self.context.world.rollouts.put(Arc::clone(&object));
        object
    }

    /// Begins the call of a hook, of which there are several in a namespace.
    fn begin(&self, object: &Rollout, number: i32) {
        self.call(object, calling("http://hook.example/", number));
    }

    fn call(&self, object: &Rollout, calling: Calling) {
        let work = work(object);
        self.calls.begin(&self.context, object, &work, calling);
    }

    /// The first answer that comes.
    async fn answer(&self, object: &Rollout) -> Arrived {
        loop {
            let all = self.calls.arrived(&work(object), self.context.clock.now());
            if let Some(arrived) = all.into_iter().next() {
                return arrived;
            }
            pass(Duration::from_millis(100)).await;
        }
    }
}

/// Lets time go on.
async fn pass(time: Duration) {
    let _ = timeout(time, std::future::pending::<()>()).await;
}

fn rollout(namespace: &str, batch: i32) -> Rollout {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout",
        "metadata": {
            "namespace": namespace, "name": "app", "uid": "r-1", "resourceVersion": "5",
        },
        "spec": {"targetRef": {"kind": "Deployment", "name": "web"}, "rolloutPlan": {}},
        "status": {
            "rollingState": "rollingInBatches", "batchRollingState": "batchInitializing",
            "currentBatch": batch,
        },
    }))
    .unwrap()
}

fn work(object: &Rollout) -> Work {
    Work::own(Kind::Rollout, ObjectKey::of(object))
}

/// A hook that may take as long as one may.
fn calling(url: &str, number: i32) -> Calling {
    Calling {
        key: format!("key-{number}"),
        attempt: 1,
        hook: plan::Hook {
            type_: HookType::PreBatchRollout,
            name: "smoke".to_owned(),
            url: url.to_owned(),
            method: Verb::Post,
            expected: plan::Expected::Success,
            metadata: Default::default(),
            timeout: LONGEST.try_into().unwrap(),
            secret: None,
        },
        payload: json!({}),
    }
}

/// One that takes a minute ends in its own words, and not in those of the errand that makes the call: however
/// often it is tried, each try has the whole of its time.
#[tokio::test(start_paused = true)]
async fn each_try_has_the_time_of_its_hook() {
    let scene = Scene::new();
    let web = scene.rollout("shop");
    for number in 1..=3 {
        let began = Instant::now();
        scene.begin(&web, number);
        let answer = scene.answer(&web).await;
        assert_eq!(answer.answer, hook::Answer::Nothing);
        let why = answer.error.clone().unwrap();
        assert!(why.contains("timed out after 60s"), "{why}");
        let took = Instant::now() - began;
        assert!(
            took >= LONGEST && took < LONGEST + Duration::from_secs(1),
            "{took:?}"
        );
        scene.calls.accepted(&work(&web), &[answer]);
    }
}

/// The time of a call runs while it waits for its turn: so a call that has a place waits for none.
#[test]
fn a_call_that_has_a_place_has_its_turn_at_once() {
    let limits = limits();
    assert!(limits.per_host >= OF_BOTH);
    assert!(limits.per_namespace >= OF_A_NAMESPACE);
    assert!(limits.in_flight >= AT_ONCE && limits.slow >= AT_ONCE);
}

/// The hooks of other teams, which call the same host, delay nobody.
#[tokio::test(start_paused = true)]
async fn slow_hooks_of_one_namespace_delay_no_other() {
    let scene = Scene::new();
    for team in 0..10 {
        let other = scene.rollout(&format!("team-{team}"));
        (0..30).for_each(|number| scene.begin(&other, number));
    }
    pass(Duration::from_secs(1)).await;
    let web = scene.rollout("shop");
    let began = Instant::now();
    scene.begin(&web, 1);
    scene.answer(&web).await;
    let took = Instant::now() - began;
    assert!(took < LONGEST + Duration::from_secs(1), "{took:?}");
}

/// A call that has waited for others is not made for a batch that is over, or for an object that is gone.
#[tokio::test(start_paused = true)]
async fn nothing_is_called_that_is_not_wanted_any_more() {
    for now in [None, Some(rollout("shop", 1))] {
        let scene = Scene::new();
        let web = Arc::new(rollout("shop", 0));
        if let Some(now) = now {
            scene.context.world.rollouts.put(Arc::new(now));
        }
        let began = Instant::now();
        scene.begin(&web, 1);
        let answer = scene.answer(&web).await;
        assert!(Instant::now() - began < Duration::from_secs(1));
        let why = answer.error.unwrap();
        assert!(why.contains("was not called"), "{why}");
    }
}

/// This machine, its network and the metadata of a cloud are not for those who write Rollouts.
#[tokio::test]
async fn no_hook_leads_to_an_address_that_is_refused() {
    let urls = [
        "http://127.0.0.1:8080/",
        "http://[::1]/",
        "http://169.254.169.254/latest/meta-data/",
    ];
    for (url, method) in urls
        .iter()
        .flat_map(|url| [(url, Verb::Post), (url, Verb::Get)])
    {
        let scene = Scene::new();
        let web = scene.rollout("shop");
        let mut call = calling(url, 1);
        call.hook.method = method;
        scene.call(&web, call);
        let answer = scene.answer(&web).await;
        assert_eq!(answer.answer, hook::Answer::Nothing);
        let why = answer.error.unwrap();
        assert!(why.contains("refused: it is"), "{why}");
    }
}

/// A replica that has just begun to lead may know a status that the former leader has replaced.
#[tokio::test]
async fn nothing_is_called_from_an_earlier_version_of_the_rollout() {
    for (version, is_newest) in [("6", false), ("5", true)] {
        let seen = Arc::default();
        let context = context(api(version, &seen), world(), noon());
        let object = Arc::new(rollout("apps", 0));
        let key = ObjectKey::of(object.as_ref());
        let report = Report {
            status: object.status.clone().unwrap(),
            changed: false,
            acts: vec![Act::Call(Box::new(calling("http://10.0.0.1/", 1)))],
            wake: None,
        };
        let done = consumer::apply(&context, &key, &object, report).await;
        assert_eq!(*seen.lock().unwrap(), [HttpMethod::GET]);
        let begun = context.calls.errands.of(&work(&object)).len();
        match is_newest {
            true => assert_eq!(begun, 1),
            false => {
                assert!(failure::is_overtaken(&done.unwrap_err()));
                assert_eq!(begun, 0);
            }
        }
    }
}
