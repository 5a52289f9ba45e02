//! Apps on an API server that is played.

use std::time::Duration;

use http::{Request, Response};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use rstest::rstest;
use serde_json::{Value, json};
use sluice_clusters::{Change, Cluster, Kind, Part, Scope, Sight, Unknown, Wanted};
use sluice_egress::{Egress, Rules};
use tokio::time::timeout;
use tower::service_fn;

use super::*;

const DEADLINE: Duration = Duration::from_secs(20);

/// A HelmRelease `podinfo` in the namespace `prod`, and in each watch nothing.
fn answer(path: &str, query: &str) -> Option<Value> {
    let release = json!({
        "metadata": {"name": "podinfo", "namespace": "prod", "uid": "u", "resourceVersion": "5"},
        "spec": {"values": {"image": {"tag": "v1"}}},
        "status": {"lastAttemptedRevision": "6.1.6"},
    });
    let resource = json!({
        "name": "helmreleases", "namespaced": true, "kind": "HelmRelease", "verbs": ["list", "watch"],
    });
    match path.trim_end_matches('/') {
        "/apis" => Some(
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [{
                "name": "helm.toolkit.fluxcd.io",
                "versions": [{"groupVersion": "helm.toolkit.fluxcd.io/v2", "version": "v2"}],
                "preferredVersion": {"groupVersion": "helm.toolkit.fluxcd.io/v2", "version": "v2"},
            }]}),
        ),
        "/apis/helm.toolkit.fluxcd.io/v2" => Some(json!({
            "kind": "APIResourceList", "apiVersion": "v1",
            "groupVersion": "helm.toolkit.fluxcd.io/v2", "resources": [resource],
        })),
        _ if query.contains("watch=") => None,
        _ => Some(json!({
            "kind": "HelmReleaseList", "apiVersion": "helm.toolkit.fluxcd.io/v2",
            "metadata": {"resourceVersion": "7"}, "items": [release],
        })),
    }
}

fn api() -> Client {
    let service = service_fn(|request: Request<Body>| async move {
        let (path, query) = (request.uri().path(), request.uri().query());
        match answer(path, query.unwrap_or_default()) {
            Some(answer) => {
                let body = Body::from(answer.to_string().into_bytes());
                Ok::<_, std::convert::Infallible>(Response::new(body))
            }
            None => std::future::pending().await,
        }
    });
    Client::new(service, "prod")
}

fn apps() -> Arc<Apps> {
    let egress = Egress::new(Rules::default()).unwrap();
    Arc::new(Apps::new(Fleet::new(api(), Scope::All, egress)))
}

fn key(name: &str) -> ObjectKey {
    let (namespace, name) = ("prod".into(), name.into());
    ObjectKey { namespace, name }
}

fn place(namespace: &str, part: Part) -> Place {
    let kind = Kind {
        group: "helm.toolkit.fluxcd.io".to_owned(),
        kind: "HelmRelease".to_owned(),
    };
    Place {
        wanted: Wanted {
            from: "prod".to_owned(),
            cluster: Cluster::Own,
            kind,
            namespace: namespace.to_owned(),
            part,
        },
        name: "podinfo".to_owned(),
    }
}

fn pipeline(generation: i64, expression: Option<&str>) -> Pipeline {
    let versions = expression.map(|text| json!([{"name": "image", "expression": text}]));
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {"namespace": "prod", "name": "podinfo", "generation": generation, "uid": "u"},
        "spec": {
            "appRef": {"kind": "HelmRelease", "name": "podinfo"},
            "versions": versions.unwrap_or_else(|| json!([])),
            "environments": [{"name": "prod", "targets": [{"namespace": "prod"}]}],
        },
    }))
    .unwrap()
}

fn reader(expression: Option<&str>) -> Arc<Reader> {
    Arc::new(pipeline::check(&pipeline(1, expression)).unwrap())
}

/// The object, as soon as it is seen.
async fn object(apps: &Apps, place: &Place) -> Arc<Object> {
    let seen = async {
        loop {
            match apps.watched.see(place) {
                Sight::Seen(object) => return object,
                _ => drop(timeout(Duration::from_millis(2), std::future::pending::<()>()).await),
            }
        }
    };
    timeout(DEADLINE, seen).await.expect("the object")
}

fn done(reading: Reading) -> Arc<App> {
    match reading {
        Reading::Done(app) => app,
        other => panic!("it was not read: {other:?}"),
    }
}

fn names(keys: impl IntoIterator<Item = ObjectKey>) -> BTreeSet<String> {
    keys.into_iter().map(|key| key.name.to_string()).collect()
}

#[tokio::test]
async fn a_change_concerns_those_who_have_named_it_and_no_others() {
    let apps = apps();
    let (prod, dev) = (place("prod", Part::State), place("dev", Part::State));
    apps.name(&key("a"), BTreeSet::from([prod.clone()]));
    apps.name(&key("b"), BTreeSet::from([prod.clone(), dev.clone()]));
    let (cluster, kind) = (Cluster::Own, prod.wanted.kind.clone());
    let object = |namespace: &str| Change::Object {
        cluster: cluster.clone(),
        kind: kind.clone(),
        namespace: namespace.to_owned(),
        name: "podinfo".to_owned(),
    };
    let objects = |kind: &Kind, namespace: Option<&str>| Change::Objects {
        cluster: cluster.clone(),
        kind: kind.clone(),
        namespace: namespace.map(str::to_owned),
    };
    let other = Kind {
        group: "kustomize.toolkit.fluxcd.io".to_owned(),
        kind: "Kustomization".to_owned(),
    };
    let concerned = |change: &Change| names(apps.watched.concerned(change));
    let of = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect();
    let both: BTreeSet<String> = of(&["a", "b"]);
    assert_eq!(concerned(&object("prod")), both);
    assert_eq!(concerned(&object("dev")), of(&["b"]));
    assert_eq!(concerned(&objects(&kind, None)), both);
    assert_eq!(concerned(&objects(&kind, Some("dev"))), of(&["b"]));
    // A first sight of another kind is nothing to them.
    assert_eq!(concerned(&objects(&other, None)), of(&[]));
    assert_eq!(concerned(&Change::Cluster(cluster.clone())), both);

    // What is no longer named is forgotten, and wanted by nobody.
    apps.name(&key("b"), BTreeSet::from([prod.clone()]));
    assert_eq!(concerned(&object("dev")), of(&[]));
    let wanted = |apps: &Apps| apps.watched.wanted();
    assert_eq!(wanted(&apps), std::slice::from_ref(&prod.wanted));
    apps.forget(&key("a"));
    assert_eq!(wanted(&apps), std::slice::from_ref(&prod.wanted));
    apps.forget(&key("b"));
    assert_eq!(wanted(&apps), []);
    assert!(apps.watched.all().is_empty());
}

#[tokio::test]
async fn an_app_is_read_once_for_each_version_of_the_object_and_each_reader() {
    let apps = apps();
    let (podinfo, prod) = (key("podinfo"), place("prod", Part::State));
    apps.name(&podinfo, BTreeSet::from([prod.clone()]));
    apps.watched.watch(Timestamp::UNIX_EPOCH);
    let object = object(&apps, &prod).await;
    let plain = reader(None);
    let read = |reader| done(apps.read(&podinfo, &prod, &object, reader));
    let first = read(&plain);
    assert!(Arc::ptr_eq(&first, &read(&plain)));
    apps.forget(&podinfo);
    apps.name(&podinfo, BTreeSet::from([prod.clone()]));
    assert!(!Arc::ptr_eq(&first, &read(&plain)));
}

/// It is decided all the same, and what is not known promotes nothing.
#[tokio::test]
async fn an_app_that_changes_faster_than_it_is_read_is_not_waited_for_for_ever() {
    let apps = apps();
    let (podinfo, prod) = (key("podinfo"), place("prod", Part::Whole));
    apps.name(&podinfo, BTreeSet::from([prod.clone()]));
    apps.watched.watch(Timestamp::UNIX_EPOCH);
    let object = object(&apps, &prod).await;
    let asks = reader(Some("object.spec.values.image.tag"));
    // Each time another version of it.
    let next = || apps.read(&podinfo, &prod, &Arc::new((*object).clone()), &asks);
    let round = async || drop(timeout(DEADLINE, apps.read_now()).await.unwrap());
    for _ in 0..2 {
        for _ in 0..ROUNDS {
            assert_eq!(next(), Reading::UnderWay);
            round().await;
        }
        assert_eq!(next(), Reading::Restless);
        // It is decided, and waits again.
        apps.found(&podinfo);
        round().await;
        apps.found(&podinfo);
    }
    // It comes to rest.
    let read = || apps.read(&podinfo, &prod, &object, &asks);
    assert_eq!(read(), Reading::UnderWay);
    round().await;
    done(read());
    apps.forget(&podinfo);
    assert!(apps.known().rounds.is_empty());
}

/// Also if it is never read in the same way, or where it was named before.
#[rstest]
#[case::expressions(false)]
#[case::targets(true)]
#[tokio::test]
async fn a_spec_that_changes_faster_than_apps_are_read_is_not_waited_for_for_ever(
    #[case] moves: bool,
) {
    let apps = apps();
    let (podinfo, prod) = (key("podinfo"), place("prod", Part::Whole));
    apps.name(&podinfo, BTreeSet::from([prod.clone()]));
    apps.watched.watch(Timestamp::UNIX_EPOCH);
    let object = object(&apps, &prod).await;
    let mut specs = 0;
    let mut next = || {
        specs += 1;
        let asks = reader(Some(&format!("object.kind + '{specs}'")));
        let mut at = prod.clone();
        if moves {
            at.name = format!("podinfo-{specs}");
            apps.name(&podinfo, BTreeSet::from([at.clone()]));
        }
        apps.read(&podinfo, &at, &object, &asks)
    };
    for _ in 0..2 {
        for _ in 0..ROUNDS {
            assert_eq!(next(), Reading::UnderWay);
            // Before the round begins, and it ends all the same.
            assert_eq!(next(), Reading::UnderWay);
            timeout(DEADLINE, apps.read_now()).await.unwrap();
        }
        assert_eq!(next(), Reading::Restless);
        // It is decided, and waits again.
        timeout(DEADLINE, apps.read_now()).await.unwrap();
        apps.found(&podinfo);
    }
    assert_eq!(next(), Reading::UnderWay);
    timeout(DEADLINE, apps.read_now()).await.unwrap();
    // It is gone: one of the same name begins again.
    apps.forget(&podinfo);
    assert!(apps.known().rounds.is_empty());
}

/// It would go on for as long as they are named faster than they are read.
#[tokio::test]
async fn what_is_named_meanwhile_is_left_to_the_next_round() {
    let apps = apps();
    let (podinfo, prod) = (key("podinfo"), place("prod", Part::Whole));
    let other = Place {
        name: "other".to_owned(),
        ..prod.clone()
    };
    apps.name(&podinfo, BTreeSet::from([prod.clone()]));
    apps.watched.watch(Timestamp::UNIX_EPOCH);
    let object = object(&apps, &prod).await;
    let asks = reader(Some("object.kind"));
    let read = |place: &Place| apps.read(&podinfo, place, &object, &asks);
    assert_eq!(read(&prod), Reading::UnderWay);
    apps.name(&podinfo, BTreeSet::from([prod.clone(), other.clone()]));
    for place in [&prod, &other] {
        assert_eq!(read(place), Reading::UnderWay);
    }
    timeout(DEADLINE, apps.read_now()).await.unwrap();
    done(read(&prod));
    assert_eq!(read(&other), Reading::UnderWay);
    timeout(DEADLINE, apps.read_now()).await.unwrap();
    done(read(&other));
}

/// However many the others have to read, and however long that takes.
#[tokio::test]
async fn the_pipelines_of_one_namespace_do_not_delay_those_of_another() {
    const MANY: usize = 200;
    let (apps, prod) = (apps(), place("prod", Part::Whole));
    apps.name(&key("podinfo"), BTreeSet::from([prod.clone()]));
    apps.watched.watch(Timestamp::UNIX_EPOCH);
    let object = object(&apps, &prod).await;
    let asks = reader(Some("object.kind"));
    let other = ObjectKey {
        namespace: "other".into(),
        ..key("other")
    };
    let all = (0..MANY).map(|n| key(&format!("podinfo-{n}")));
    for pipeline in all.chain([other.clone()]) {
        apps.name(&pipeline, BTreeSet::from([prod.clone()]));
        let reading = apps.read(&pipeline, &prod, &object, &asks);
        assert_eq!(reading, Reading::UnderWay);
    }
    let mut before = BTreeSet::new();
    while !before.contains(&other) {
        before.extend(timeout(DEADLINE, apps.read_now()).await.unwrap());
    }
    assert!(before.len() < MANY / 2, "{}", before.len());
}

/// One that changes while others are read does not keep them from being read.
#[tokio::test]
async fn each_round_reads_each_app_once_and_ends() {
    let apps = apps();
    let (podinfo, prod) = (key("podinfo"), place("prod", Part::Whole));
    let other = Place {
        name: "other".to_owned(),
        ..prod.clone()
    };
    apps.name(&podinfo, BTreeSet::from([prod.clone(), other.clone()]));
    apps.watched.watch(Timestamp::UNIX_EPOCH);
    let object = object(&apps, &prod).await;
    let changed = Arc::new((*object).clone());
    let asks = reader(Some("object.kind"));
    let read = |place: &Place, object| apps.read(&podinfo, place, object, &asks);
    assert_eq!(read(&prod, &object), Reading::UnderWay);
    assert_eq!(read(&other, &object), Reading::UnderWay);
    // Nothing else runs before the next await: the round finds it changed.
    assert_eq!(read(&prod, &changed), Reading::UnderWay);
    timeout(DEADLINE, apps.read_now()).await.unwrap();
    done(read(&prod, &changed));
    done(read(&other, &object));
}

#[tokio::test]
async fn expressions_are_evaluated_beside_the_look_which_is_told_when_they_are() {
    let apps = apps();
    let (podinfo, prod) = (key("podinfo"), place("prod", Part::Whole));
    apps.name(&podinfo, BTreeSet::from([prod.clone()]));
    apps.watched.watch(Timestamp::UNIX_EPOCH);
    let object = object(&apps, &prod).await;
    let asks = reader(Some("object.spec.values.image.tag"));
    let read = |reader| apps.read(&podinfo, &prod, &object, reader);
    assert_eq!(read(&asks), Reading::UnderWay);
    let now = timeout(DEADLINE, apps.read_now()).await.unwrap();
    assert_eq!(names(now), BTreeSet::from(["podinfo".to_owned()]));
    let app = done(read(&asks));
    assert!(Arc::ptr_eq(&app, &done(read(&asks))));
    // Another expression is evaluated, too.
    let others = reader(Some("object.status.lastAttemptedRevision"));
    assert_eq!(read(&others), Reading::UnderWay);
    timeout(DEADLINE, apps.read_now()).await.unwrap();
    let other = done(read(&others));
    assert_ne!(app, other);
    // Another replica leads: nothing is known any more.
    apps.clear();
    assert_eq!(apps.watched.see(&prod), Sight::Seen(object));
    apps.watched.watch(Timestamp::UNIX_EPOCH);
    apps.watched
        .watch(Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(60));
    assert_eq!(apps.watched.see(&prod), Sight::Unknown(Unknown::NotYet));
}

#[tokio::test]
async fn a_spec_is_checked_once_for_each_generation() {
    let (apps, podinfo) = (apps(), key("podinfo"));
    let first = apps.check(&podinfo, &pipeline(1, None)).unwrap();
    assert!(Arc::ptr_eq(
        &first,
        &apps.check(&podinfo, &pipeline(1, None)).unwrap()
    ));
    let wrong = pipeline(2, Some("1 +"));
    assert!(apps.check(&podinfo, &wrong).is_err() && apps.check(&podinfo, &wrong).is_err());
    // One that was created again begins at generation 1.
    let mut again = pipeline(1, Some("object.kind"));
    again.metadata.uid = Some("v".to_owned());
    assert_ne!(*apps.check(&podinfo, &again).unwrap(), *first);
    apps.forget(&podinfo);
    assert!(apps.known().checked.is_empty());
}
