use kube::core::GroupVersionKind;

use super::*;

fn keeper(part: Part) -> (Keeper, Arc<AtomicUsize>, broadcast::Receiver<Change>) {
    let kind = GroupVersionKind::gvk("helm.toolkit.fluxcd.io", "v2", "HelmRelease");
    let (news, changes) = broadcast::channel(16);
    let room = Arc::<AtomicUsize>::default();
    let keeper = Keeper::new(How {
        cluster: Cluster::Own,
        kind: Kind {
            group: kind.group.clone(),
            kind: kind.kind.clone(),
        },
        resource: ApiResource::from_gvk(&kind),
        part,
        news,
        room: Arc::clone(&room),
    });
    (keeper, room, changes)
}

/// A release as helm-controller leaves it, with this many bytes of values.
fn release(name: &str, values: usize) -> Guard<DynamicObject> {
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
            "name": name, "namespace": "apps", "generation": 7, "resourceVersion": "1234",
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

#[test]
fn a_target_takes_less_than_2_kib_whatever_its_values_are() {
    let (mut keeper, room, _changes) = keeper(Part::State);
    assert!(list(&mut keeper, vec![release("podinfo", 100_000)]).is_ok());
    let held = room.load(Ordering::Relaxed);
    assert!((1..2048).contains(&held), "{held}");
}

#[test]
fn what_goes_takes_no_room() {
    let (mut keeper, room, _changes) = keeper(Part::Whole);
    assert!(list(&mut keeper, vec![release("a", 10), release("b", 20)]).is_ok());
    let both = room.load(Ordering::Relaxed);
    assert!(keeper.take(Step::Delete(release("b", 20))).is_ok());
    let one = room.load(Ordering::Relaxed);
    assert!(one > 0 && one < both, "{one} of {both}");
    assert!(list(&mut keeper, vec![release("a", 10)]).is_ok());
    assert_eq!(room.load(Ordering::Relaxed), one);
    drop(keeper);
    assert_eq!(room.load(Ordering::Relaxed), 0);
}

#[test]
fn there_is_a_limit_to_what_a_watch_and_a_cluster_hold() {
    let (mut keeper, room, _changes) = keeper(Part::Whole);
    let quarter = || release("a", WATCH / 4);
    // Before they are all there, a list is given up.
    let page = ["a", "b", "c", "d"].map(|name| release(name, WATCH / 4));
    assert!(is_too_much(&list(&mut keeper, page.into())));
    keeper.clear();
    assert_eq!(room.load(Ordering::Relaxed), 0);
    assert!(list(&mut keeper, vec![quarter()]).is_ok());
    let grown = keeper.take(Step::Apply(release("b", WATCH)));
    assert!(is_too_much(&grown));
    keeper.clear();
    assert_eq!(room.load(Ordering::Relaxed), 0);
    // Other watches of the cluster have taken the rest.
    room.store(CLUSTER - WATCH / 8, Ordering::Relaxed);
    assert!(is_too_much(&list(&mut keeper, vec![quarter()])));
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
