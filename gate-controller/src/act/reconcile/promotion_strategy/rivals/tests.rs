//! Who owns a branch.

use serde_json::json;

use super::*;
use crate::act::reconcile::Reconciled;
use crate::act::reconcile::gated_source::tests::world;

/// A repository that `platform/shop` opens.
fn scene() -> World {
    let world = world();
    hold_access(
        &world,
        "platform",
        "shop",
        "https://git.example.com/acme/shop",
    );
    world
}

fn hold_access(world: &World, namespace: &str, name: &str, url: &str) {
    let access: GitRepositoryAccess = serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GitRepositoryAccess",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "provider": "gitea", "url": url, "secretRef": {"name": "token"},
            "allow": [{"namespaces": ["apps", "team"], "branches": ["env/*"]}],
        },
    }))
    .unwrap();
    let key = ObjectKey::of(&access);
    let seen = Some(Seen::Object(Arc::new(access)));
    world.accesses.hold(&key, seen);
}

/// A strategy of `env/prod` that is as old as its hour says.
fn strategy(place: (&str, &str), access: (&str, &str), hour: u32) -> PromotionStrategy {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
        "metadata": {
            "namespace": place.0, "name": place.1,
            "creationTimestamp": format!("2026-11-20T{hour:02}:00:00Z"),
        },
        "spec": {
            "repoRef": {"namespace": access.0, "name": access.1},
            "environments": [{"branch": "env/test"}, {"branch": "env/prod"}],
        },
    }))
    .unwrap()
}

fn hold(world: &World, object: PromotionStrategy) {
    let key = ObjectKey::of(&object);
    let work = Work::own(Kind::PromotionStrategy, key.clone());
    world.note(&work, object.interests(&key));
    let seen = Some(Seen::Object(Arc::new(object)));
    world.promotion_strategies.hold(&key, seen);
}

/// Who owns the branch of `apps/it`, which is the youngest.
fn owner(world: &World) -> Option<String> {
    let it = strategy(("apps", "it"), ("platform", "shop"), 12);
    let key = ObjectKey::of(&it);
    super::owner(&older(world, &key, &it), &key, "env/prod")
}

#[test]
fn the_name_of_an_owner_is_told_within_its_namespace_alone() {
    let world = scene();
    assert_eq!(owner(&world), None);
    hold(
        &world,
        strategy(("apps", "younger"), ("platform", "shop"), 13),
    );
    assert_eq!(owner(&world), None);
    hold(
        &world,
        strategy(("team", "secret"), ("platform", "shop"), 9),
    );
    assert_eq!(owner(&world).as_deref(), Some("of another namespace"));
    hold(
        &world,
        strategy(("apps", "older"), ("platform", "shop"), 10),
    );
    assert_eq!(owner(&world).as_deref(), Some("apps/older"));
}

#[test]
fn who_may_not_promote_or_does_not_owns_no_branch() {
    let world = scene();
    // The access does not allow this namespace.
    hold(
        &world,
        strategy(("other", "older"), ("platform", "shop"), 9),
    );
    assert_eq!(owner(&world), None);
    let mut suspended = strategy(("apps", "older"), ("platform", "shop"), 9);
    suspended.spec.suspend = true;
    hold(&world, suspended);
    assert_eq!(owner(&world), None);
}

/// Another access to the same repository is no way around its owner.
#[test]
fn a_repository_is_the_same_whatever_its_accesses_are_called() {
    let world = scene();
    hold_access(
        &world,
        "team",
        "mine",
        "https://GIT.example.com/Acme/shop.git/",
    );
    hold_access(
        &world,
        "team",
        "other",
        "https://git.example.com/acme/shop-2",
    );
    hold(&world, strategy(("team", "another"), ("team", "other"), 8));
    assert_eq!(owner(&world), None);
    hold(&world, strategy(("team", "older"), ("team", "mine"), 9));
    assert_eq!(owner(&world).as_deref(), Some("of another namespace"));
}

#[test]
fn what_becomes_of_an_owner_concerns_those_who_have_its_branches() {
    let world = scene();
    hold_access(&world, "team", "mine", "https://git.example.com/acme/shop");
    let older = strategy(("team", "older"), ("team", "mine"), 9);
    hold(&world, older.clone());
    hold(&world, strategy(("apps", "it"), ("platform", "shop"), 12));
    let mut apart = strategy(("apps", "apart"), ("platform", "shop"), 12);
    apart.spec.environments.truncate(1);
    apart.spec.environments[0].branch = "env/dev".to_owned();
    hold(&world, apart);
    let sharing = sharing(&world, &ObjectKey::of(&older), &older);
    let names: Vec<_> = sharing.iter().map(|it| it.key.to_string()).collect();
    assert_eq!(names, ["apps/it"]);
    let access = world.accesses.select(|it, _| &*it.name == "shop").remove(0);
    let same = same_repository(&world, &access.0, &access.1);
    let names: Vec<_> = same.iter().map(|it| it.key.to_string()).collect();
    assert_eq!(names, ["team/mine"]);
}
