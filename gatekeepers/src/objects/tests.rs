//! Objects on an API server in memory, with instants that are given.

use std::collections::HashSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::*;
use crate::fake_api::FakeApi;

mod rights;
mod store;
mod watching;

const DEPLOYMENTS: (&str, &str) = ("apps/v1", "deployments");

/// An API server that knows Deployments and Nodes, and a service account that may read them.
struct Stage {
    api: FakeApi,
    watches: ObjectWatches,
    changes: broadcast::Receiver<ObjectsKey>,
}

impl Stage {
    fn new() -> Self {
        Self::with(Limits::default(), Duration::from_secs(10))
    }

    fn with(limits: Limits, deadline: Duration) -> Self {
        let api = FakeApi::new();
        api.serve_kind("apps/v1", "Deployment", "deployments", true);
        api.serve_kind("v1", "Node", "nodes", false);
        api.put_account("apps", "reader", &["deployments", "nodes"]);
        let watches = ObjectWatches::with(api.client(), limits, deadline);
        let changes = watches.changes();
        Self {
            api,
            watches,
            changes,
        }
    }

    fn put(&self, name: &str, object: Value) {
        self.api.put_object(DEPLOYMENTS, Some("apps"), name, object);
    }

    /// Takes a look.
    async fn look(&self, spec: &api::Objects, last: &Seen, second: i64) -> Seen {
        observe(&gatekeeper(), spec, &self.watches, last, None, at(second)).await
    }

    /// Waits for so many changes.
    async fn changed(&mut self, times: usize) {
        for _ in 0..times {
            let change = tokio::time::timeout(Duration::from_secs(20), self.changes.recv());
            change.await.unwrap().unwrap();
        }
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Some gatekeeper in the namespace `apps`.
fn gatekeeper() -> Gatekeeper {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper",
        "metadata": { "namespace": "apps", "name": "health" },
        "spec": { "manual": { "state": "open" } },
    }))
    .unwrap()
}

fn spec(parts: &[Value]) -> api::Objects {
    serde_json::from_value(json!({ "serviceAccountName": "reader", "of": parts })).unwrap()
}

/// All Deployments.
fn all() -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "selector": {} })
}

fn named(name: &str) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": name })
}

fn ready() -> Value {
    let condition = json!({ "type": "Ready", "status": "True", "lastTransitionTime": "then" });
    json!({ "metadata": { "generation": 1 }, "status": { "conditions": [condition] } })
}

fn unready() -> Value {
    json!({ "metadata": {}, "status": { "conditions": [{ "type": "Ready", "status": "False" }] } })
}

fn sighting(seen: &Seen) -> &Sighting {
    match &seen.observed {
        Some(Observed::Seen(sighting)) => sighting,
        other => panic!("nothing was seen: {other:?}"),
    }
}

/// How many were seen, how many were as they should be, and since when all have been: in tens of
/// seconds, because a look takes a while on a machine that has much to do.
fn counts(seen: &Seen) -> (usize, usize, Option<i64>) {
    let Sighting {
        seen,
        satisfied,
        satisfied_since,
        ..
    } = sighting(seen);
    let since = satisfied_since.map(|since| since.as_second() / 10 * 10);
    (*seen, *satisfied, since)
}

fn why(seen: &Seen) -> &str {
    match &seen.observed {
        Some(Observed::Unavailable(why)) => why,
        other => panic!("it is not unavailable: {other:?}"),
    }
}

#[tokio::test]
async fn objects_are_seen_and_followed() {
    let mut stage = Stage::new();
    stage.put("web", ready());
    stage.put("api", ready());
    let spec = spec(&[all()]);
    let first = stage.look(&spec, &Seen::default(), 0).await;
    assert_eq!(
        (counts(&first), first.again),
        ((2, 2, Some(0)), Some(at(60)))
    );
    stage.changed(1).await;

    stage.put("web", unready());
    stage.changed(1).await;
    let second = stage.look(&spec, &first, 10).await;
    assert_eq!(counts(&second), (2, 1, None));
    let said = sighting(&second)
        .first_unsatisfied
        .as_ref()
        .unwrap()
        .to_string();
    assert_eq!(
        said,
        "Deployment apps/web: its condition Ready is False, not True"
    );

    stage.api.delete_object(DEPLOYMENTS, Some("apps"), "web");
    stage.changed(1).await;
    assert_eq!(
        counts(&stage.look(&spec, &second, 20).await),
        (1, 1, Some(20))
    );
    assert_eq!((stage.api.lists(), stage.watches.watched()), (1, 1));
}

#[tokio::test]
async fn a_moment_between_two_looks_is_not_missed() {
    let mut stage = Stage::new();
    stage.put("web", ready());
    let spec = spec(&[named("web")]);
    let first = stage.look(&spec, &Seen::default(), 0).await;
    stage.changed(1).await;
    stage.put("web", unready());
    stage.put("web", ready());
    stage.changed(2).await;
    let second = stage.look(&spec, &first, 10).await;
    assert_eq!(counts(&second), (1, 1, Some(10)));
    // What happens to others is nothing to it.
    stage.put("api", unready());
    stage.changed(1).await;
    let third = stage.look(&spec, &second, 20).await;
    assert_eq!(third.observed, second.observed);
}

#[tokio::test]
async fn who_falls_behind_begins_anew() {
    let limits = Limits {
        changes: 4,
        ..Limits::default()
    };
    let mut stage = Stage::with(limits, Duration::from_secs(10));
    stage.put("web", ready());
    let spec = spec(&[named("web")]);
    let first = stage.look(&spec, &Seen::default(), 0).await;
    stage.changed(1).await;
    for (times, second, since) in [(4, 10, 0), (5, 20, 20)] {
        (0..times).for_each(|_| stage.put("other", unready()));
        stage.changed(times).await;
        let seen = stage.look(&spec, &first, second).await;
        assert_eq!(counts(&seen), (1, 1, Some(since)), "after {times} changes");
    }
}

#[tokio::test]
async fn an_expression_is_asked_about_the_whole_object() {
    let stage = Stage::new();
    let mut object = ready();
    object["spec"] = json!({ "replicas": 2 });
    object["metadata"]["annotations"] = json!({
        "team": "shop", "kubectl.kubernetes.io/last-applied-configuration": "{}",
    });
    object["metadata"]["managedFields"] = json!([{ "manager": "kubectl" }]);
    stage.put("web", object);
    let mut part = named("web");
    part["expression"] = json!(
        "object.kind == 'Deployment' && object.spec.replicas == 2 && object.metadata.name == 'web' \
         && object.metadata.annotations == {'team': 'shop'} \
         && !has(object.metadata.managedFields)"
    );
    let seen = stage.look(&spec(&[part]), &Seen::default(), 0).await;
    assert_eq!(sighting(&seen).first_unsatisfied, None);
}

#[tokio::test]
async fn objects_of_no_namespace_are_watched_without_one() {
    let mut stage = Stage::new();
    stage.api.put_object(("v1", "nodes"), None, "one", ready());
    let node = json!({ "apiVersion": "v1", "kind": "Node", "name": "one" });
    let spec = spec(&[node]);
    let seen = stage.look(&spec, &Seen::default(), 0).await;
    assert_eq!(counts(&seen), (1, 1, Some(0)));
    // Whichever it is, its users are woken.
    let change = stage.changes.recv().await.unwrap();
    assert!(sources(&spec, "apps").contains(&Source::Objects(change)));
}

#[tokio::test]
async fn parts_are_seen_together() {
    let stage = Stage::new();
    stage.put("web", ready());
    stage
        .api
        .put_object(DEPLOYMENTS, Some("shop"), "cart", ready());
    let mut elsewhere = named("cart");
    elsewhere["namespace"] = json!("shop");
    let spec = spec(&[named("web"), elsewhere, named("none")]);
    let seen = stage.look(&spec, &Seen::default(), 0).await;
    assert_eq!(counts(&seen), (2, 2, None));
    let said = sighting(&seen)
        .first_unsatisfied
        .as_ref()
        .unwrap()
        .to_string();
    assert_eq!(said, "there is no Deployment apps/none");
    assert_eq!(stage.watches.watched(), 2);
}

#[tokio::test]
async fn what_stands_is_no_news_until_half_of_its_time_is_spent() {
    let stage = Stage::new();
    stage.put("web", ready());
    let spec = spec(&[all()]);
    let first = stage.look(&spec, &Seen::default(), 0).await;
    assert_eq!(sighting(&first).good_until, at(1800));
    stage.api.bookmark(DEPLOYMENTS, Some("apps"));
    let second = stage.look(&spec, &first, 60).await;
    assert_eq!(second.observed, first.observed);
    let mut last = second;
    for (second, good_until) in [(300, 1800), (600, 1800), (840, 1800), (901, 2701)] {
        last = stage.look(&spec, &last, second).await;
        assert_eq!(sighting(&last).good_until, at(good_until), "at {second}");
    }
}

#[tokio::test]
async fn another_spec_keeps_what_was_seen_of_the_same_objects() {
    let stage = Stage::new();
    stage.put("web", ready());
    stage.put("api", ready());
    let first = stage
        .look(&spec(&[named("web")]), &Seen::default(), 0)
        .await;
    let mut soaking = spec(&[named("web")]);
    soaking.soak = Some("10m".into());
    assert_eq!(known(&soaking, &first).unwrap(), first.observed);
    let second = stage.look(&soaking, &first, 50).await;
    assert_eq!(counts(&second), (1, 1, Some(0)));
    // Of an object that is added nobody knows what it was before.
    let both = spec(&[named("api"), named("web")]);
    assert_eq!(known(&both, &second), None);
    assert_eq!(
        counts(&stage.look(&both, &second, 70).await),
        (2, 2, Some(70))
    );
    // Another account may have other rights.
    let mut another = soaking.clone();
    another.service_account_name = "other".to_owned();
    assert_eq!(known(&another, &second), None);
    // What is refused needs nothing.
    let mut refused = soaking;
    refused.of.clear();
    assert_eq!(known(&refused, &second), Some(None));
    let seen = stage.look(&refused, &second, 80).await;
    assert_eq!((seen.observed.clone(), seen.again), (None, None));
}

#[tokio::test]
async fn a_controller_that_starts_again_goes_on_counting() {
    let stage = Stage::new();
    stage.put("web", ready());
    let spec = spec(&[all()]);
    let before = stage.look(&spec, &Seen::default(), 100).await;
    let status = before.observed.as_ref().unwrap().status().unwrap();
    assert_eq!(status.satisfied_since, Some(Time(at(100))));
    let again = async |second: i64| {
        let last = Seen::default();
        let said = Some(&status);
        observe(
            &gatekeeper(),
            &spec,
            &stage.watches,
            &last,
            said,
            at(second),
        )
        .await
    };
    assert_eq!(counts(&again(300).await), (1, 1, Some(100)));
    let mut changed = ready();
    changed["metadata"]["generation"] = json!(2);
    stage.put("web", changed);
    let fresh = ObjectWatches::new(stage.api.client());
    let said = Some(&status);
    let seen = observe(
        &gatekeeper(),
        &spec,
        &fresh,
        &Seen::default(),
        said,
        at(600),
    )
    .await;
    assert_eq!(counts(&seen), (1, 1, Some(600)));
}

#[test]
fn sources_are_told_once() {
    let key = |namespace: Option<&str>| {
        Source::Objects(ObjectsKey {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: namespace.map(str::to_owned),
        })
    };
    let mut elsewhere = named("cart");
    elsewhere["namespace"] = json!("shop");
    let spec = spec(&[named("web"), named("api"), elsewhere]);
    let told: HashSet<_> = sources(&spec, "apps").into_iter().collect();
    let expected = [key(None), key(Some("apps")), key(Some("shop"))];
    assert_eq!((told, sources(&spec, "apps").len()), (expected.into(), 3));
}
