//! Who owns a branch.

use serde_json::json;
use sluice_crds::GitRepositoryAccess;

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
            "environments": [{"branch": "env/prod"}],
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
    owner_of(world, &key, &it, "env/prod")
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
