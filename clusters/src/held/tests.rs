use kube::core::GroupVersionKind;
use serde_json::json;

use super::*;
use crate::bounds::{NAMESPACE, namespaces, other, others, own};

fn keeper(part: Part) -> (Keeper, Arc<Room>, broadcast::Receiver<Change>) {
    let room = own();
    let (keeper, changes) = keeper_in(part, Arc::clone(&room));
    (keeper, room, changes)
}

fn keeper_in(part: Part, room: Arc<Room>) -> (Keeper, broadcast::Receiver<Change>) {
    let kind = GroupVersionKind::gvk("helm.toolkit.fluxcd.io", "v2", "HelmRelease");
    let (news, changes) = broadcast::channel(16);
    let keeper = Keeper::new(How {
        cluster: Cluster::Own,
        kind: Kind {
            group: kind.group.clone(),
            kind: kind.kind.clone(),
        },
        resource: ApiResource::from_gvk(&kind),
        part,
        keep: |object| json!({"spec": object["spec"]["values"], "kind": object["kind"]}),
        news,
        rooms: Arc::new(namespaces(room)),
    });
    (keeper, changes)
}

/// A release as helm-controller leaves it, with this many bytes of values.
fn release(name: &str, values: usize) -> Guard<DynamicObject> {
    release_in("apps", name, values)
}

fn release_in(namespace: &str, name: &str, values: usize) -> Guard<DynamicObject> {
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": "UpgradeSucceeded", "observedGeneration": 7,
            "lastTransitionTime": "2026-11-23T09:00:00Z",
            "message": "Helm upgrade succeeded for release apps/podinfo.v7 with chart podinfo@6.1.6",
        })
    };
    let snapshot = json!({
        "appVersion": "6.1.6", "chartName": "podinfo", "chartVersion": "6.1.6", "name": "podinfo",
        "configDigest": format!("sha256:{}", "a".repeat(64)),
        "digest": format!("sha256:{}", "b".repeat(64)),
        "ociDigest": format!("sha256:{}", "c".repeat(64)),
        "firstDeployed": "2026-11-23T09:00:00Z", "lastDeployed": "2026-11-23T09:00:00Z",
        "namespace": "apps", "status": "deployed", "version": 7,
    });
    let object = json!({
        "metadata": {
            "name": name, "namespace": namespace, "generation": 7, "resourceVersion": "1234",
            "uid": "0e5d9a3e-54a5-4a2c-b0a6-0123456789ab",
            "managedFields": [{"manager": "helm-controller", "operation": "Apply"}],
        },
        "spec": {"interval": "10m", "values": {"text": "x".repeat(values)}},
        "status": {
            "conditions": [condition("Ready"), condition("Released"), condition("TestSuccess")],
            "history": vec![snapshot; 5], "lastAttemptedRevision": "6.1.6", "observedGeneration": 7,
        },
    });
    Guard(Ok(serde_json::from_value(object).unwrap()))
}

fn list(keeper: &mut Keeper, page: Vec<Guard<DynamicObject>>) -> Result<Option<Held>, Setback> {
    keeper.take(Step::Begun)?;
    keeper.take(Step::Page(page))?;
    keeper.take(Step::Listed(Some(1)))
}

fn is_too_much(taken: &Result<Option<Held>, Setback>) -> bool {
    matches!(taken, Err(Setback::TooMuch(_)))
}

/// Somebody else says what is kept, and only of that a change is told.
#[test]
fn what_is_not_kept_takes_no_room_and_is_not_told() {
    let (mut keeper, _room, mut changes) = keeper(Part::Kept);
    let held = list(&mut keeper, vec![release("web", 3)])
        .ok()
        .flatten()
        .unwrap();
    let all = held.all("apps").unwrap();
    let [(name, object)] = &*all else {
        panic!("{all:?}")
    };
    assert_eq!(name, "web");
    let kept = json!({"spec": {"text": "xxx"}, "kind": "HelmRelease"});
    assert_eq!(object.read(), kept);
    let mut other = release("web", 3);
    if let Ok(object) = &mut other.0 {
        object.data["status"] = json!({});
    }
    assert!(keeper.take(Step::Apply(other)).is_ok());
    assert!(changes.try_recv().is_err());
    assert!(keeper.take(Step::Apply(release("web", 4))).is_ok());
    assert!(changes.try_recv().is_ok());
}

#[test]
fn a_target_takes_less_than_2_kib_whatever_its_values_are() {
    let (mut keeper, room, _changes) = keeper(Part::State);
    assert!(list(&mut keeper, vec![release("podinfo", 100_000)]).is_ok());
    let held = room.used();
    assert!((1..2048).contains(&held), "{held}");
}

#[test]
fn what_goes_takes_no_room() {
    let (mut keeper, room, _changes) = keeper(Part::Whole);
    assert!(list(&mut keeper, vec![release("a", 10), release("b", 20)]).is_ok());
    let both = room.used();
    assert!(keeper.take(Step::Delete(release("b", 20))).is_ok());
    let one = room.used();
    assert!(one > 0 && one < both, "{one} of {both}");
    assert!(list(&mut keeper, vec![release("a", 10)]).is_ok());
    assert_eq!(room.used(), one);
    drop(keeper);
    assert_eq!(room.used(), 0);
}

/// A quarter of the room of a namespace, and a bit.
const QUARTER: usize = NAMESPACE / 4;

fn is_here(keeper: &Keeper, namespace: &str, name: &str) -> bool {
    matches!(keeper.held.find(namespace, name), Found::Here(_))
}

fn is_full(keeper: &Keeper, namespace: &str, name: &str) -> bool {
    matches!(keeper.held.find(namespace, name), Found::Full(_))
}

#[test]
fn one_namespace_takes_no_room_from_another() {
    let (mut keeper, room, mut changes) = keeper(Part::Whole);
    let mut page: Vec<_> = ["a", "b", "c", "d", "e"]
        .map(|name| release(name, QUARTER))
        .into();
    page.push(release_in("shop", "web", 10));
    assert!(list(&mut keeper, page).is_ok());
    assert!(is_here(&keeper, "apps", "a") && is_full(&keeper, "apps", "d"));
    // What is not there may be among the rest.
    assert!(is_full(&keeper, "apps", "never"));
    assert!(is_here(&keeper, "shop", "web"));
    assert!(matches!(keeper.held.find("shop", "never"), Found::Nothing));
    assert!(room.used() <= NAMESPACE + 10_000);
    // Another one fits there, too; and it is listed again some time later.
    assert!(
        keeper
            .take(Step::Apply(release_in("shop", "api", 10)))
            .is_ok()
    );
    assert!(is_here(&keeper, "shop", "api"));
    assert!(keeper.lists_again_at().is_some());
    while changes.try_recv().is_ok() {}
    // While the first of these lists is under way, what was there before still takes its room.
    for _ in 0..2 {
        assert!(list(&mut keeper, vec![release("d", QUARTER)]).is_ok());
    }
    assert!(is_here(&keeper, "apps", "d") && keeper.lists_again_at().is_none());
    let told: Vec<_> = std::iter::from_fn(|| changes.try_recv().ok()).collect();
    let all = |change: &Change| matches!(change, Change::Objects { .. });
    assert!(told.iter().any(all), "{told:?}");
}

#[test]
fn an_object_that_grows_too_large_is_not_shown_as_it_was() {
    let (mut keeper, _room, mut changes) = keeper(Part::Whole);
    let page = ["a", "b", "c"].map(|name| release(name, QUARTER));
    assert!(list(&mut keeper, page.into()).is_ok());
    assert!(keeper.take(Step::Apply(release("a", 3 * QUARTER))).is_ok());
    assert!(is_full(&keeper, "apps", "a") && is_here(&keeper, "apps", "b"));
    assert!(changes.try_recv().is_ok());
    assert!(keeper.lists_again_at().is_some());
}

#[test]
fn a_list_of_the_same_takes_no_room_while_it_is_under_way() {
    let (mut keeper, room, _changes) = keeper(Part::Whole);
    let page = || ["a", "b", "c"].map(|name| release(name, QUARTER)).into();
    assert!(list(&mut keeper, page()).is_ok());
    let before = room.used();
    for _ in 0..2 {
        assert!(list(&mut keeper, page()).is_ok());
        assert_eq!(room.used(), before);
        assert!(is_here(&keeper, "apps", "c"));
    }
    // What differs does, until it is complete or given up.
    assert!(keeper.take(Step::Begun).is_ok());
    let differs = vec![release("a", QUARTER / 2)];
    assert!(keeper.take(Step::Page(differs)).is_ok());
    assert!(room.used() > before);
    assert!(keeper.take(Step::Begun).is_ok());
    assert_eq!(room.used(), before);
    drop(keeper);
    assert_eq!(room.used(), 0);
}

#[test]
fn a_cluster_that_is_full_is_given_up_as_a_whole() {
    let others = others();
    let (mut keeper, _changes) = keeper_in(Part::Whole, other(&others));
    let page = (0..6).map(|n| release_in(&format!("n{n}"), "a", 3 * QUARTER));
    let listed = list(&mut keeper, page.collect());
    assert!(is_too_much(&listed));
    keeper.clear();
    assert_eq!(others.used(), 0);
    assert!(list(&mut keeper, vec![release("a", QUARTER)]).is_ok());
}

#[test]
fn what_is_told_is_what_differs() {
    let (mut keeper, _room, mut changes) = keeper(Part::State);
    let all = || vec![release("a", 1), release("b", 1), release("c", 1)];
    assert!(list(&mut keeper, all()).is_ok());
    // All who look are told of the first list in one word.
    assert!(changes.try_recv().is_err());
    // Other values, and nothing that is kept.
    assert!(keeper.take(Step::Apply(release("a", 2))).is_ok());
    assert!(list(&mut keeper, all()).is_ok());
    assert!(changes.try_recv().is_err());
    assert!(list(&mut keeper, vec![release("a", 1), release("d", 1)]).is_ok());
    let mut names = Vec::new();
    while let Ok(Change::Object { name, .. }) = changes.try_recv() {
        names.push(name);
    }
    assert_eq!(names, ["b", "c", "d"]);
}
