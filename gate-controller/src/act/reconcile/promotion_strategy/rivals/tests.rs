//! Who owns a branch.

use std::collections::BTreeMap;
use std::ops::Deref;

use jiff::SignedDuration;
use rstest::rstest;
use serde::de::DeserializeOwned;
use serde_json::json;
use sluice_core::delivery::promotion_strategy::evidence::{Heads, Sight};
use sluice_core::delivery::pull_request::{Failure, Word};
use sluice_crds::CommitStatus;

use super::*;
use crate::act::reconcile::Reconciled;
use crate::act::reconcile::gated_source::tests::world;
use crate::cluster::key::KeyRef;
use crate::observe::clock::{Clock, SetClock};

/// The caches, and what is known of repositories.
struct Scene {
    clock: Arc<SetClock>,
    world: World,
    repositories: Repositories,
}

impl Deref for Scene {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl Scene {
    fn change_access(
        &self,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut GitRepositoryAccess),
    ) {
        let key: ObjectKey = KeyRef { namespace, name }.into();
        let seen = self.accesses.get(key.borrowed());
        let mut access = seen
            .as_ref()
            .and_then(Seen::object)
            .unwrap()
            .as_ref()
            .clone();
        change(&mut access);
        let seen = Some(Seen::Object(Arc::new(access)));
        self.accesses.hold(&key, seen);
    }

    /// It is looked at.
    fn see(&self, namespace: &str, name: &str) {
        let seen = self.accesses.get(KeyRef { namespace, name });
        let access = seen.as_ref().and_then(Seen::object).unwrap();
        self.repositories
            .see(access, Some(SignedDuration::from_mins(1)));
    }

    /// An access is looked at, and its branches are listed, or not.
    fn lists(&self, access: (&str, &str), listed: Result<(), Word>) {
        let (namespace, name) = access;
        let key: ObjectKey = KeyRef { namespace, name }.into();
        let heads = Heads {
            branches: BTreeMap::new(),
            notes: Sight::Absent,
        };
        let listed = listed.map(|()| heads.into());
        let by = Work::own(Kind::PromotionStrategy, key.clone());
        self.repositories
            .need(&key, &by, ["env/prod".to_owned()].into());
        self.repositories.begin_list(&key, None);
        let listed = listed.map_err(|word| Failure::new(word, "it is not listed"));
        self.repositories.listed(&key, listed);
        if self.repositories.may_read(&key) == Some(true) {
            self.note_read(&key);
        }
    }
}

/// A repository that `platform/shop` opens, and has listed.
fn scene() -> Scene {
    let scene = begun();
    scene.lists(("platform", "shop"), Ok(()));
    scene
}

/// The same, of which this process has listed nothing yet.
fn begun() -> Scene {
    let clock = Arc::new(SetClock::new("2026-11-20T14:00:00Z".parse().unwrap()));
    let scene = Scene {
        world: world(),
        repositories: Repositories::new(clock.clone(), |_| {}),
        clock,
    };
    hold_access(
        &scene,
        "platform",
        "shop",
        "https://git.example.com/acme/shop",
    );
    scene
}

fn hold_access(world: &World, namespace: &str, name: &str, url: &str) {
    hold_access_of(world, namespace, name, url, "u");
}

fn hold_access_of(world: &World, namespace: &str, name: &str, url: &str, uid: &str) {
    let access: GitRepositoryAccess = serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GitRepositoryAccess",
        "metadata": {"namespace": namespace, "name": name, "uid": uid},
        "spec": {
            "provider": "gitea", "url": url, "secretRef": {"name": "token"},
            "allow": [{"namespaces": ["apps", "team"], "branches": ["env/*"]}],
        },
    }))
    .unwrap();
    let key = ObjectKey::of(&access);
    let seen = Some(Seen::Object(Arc::new(access)));
    world.accesses.hold(&key, seen);
    world.note_access(&key, Some(&url.to_lowercase().replace(".git/", "")));
    note_access(world, &key);
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
            "environments": [{"branch": "env/test", "unchecked": true}, {"branch": "env/prod"}],
        },
    }))
    .unwrap()
}

fn hold(world: &World, object: PromotionStrategy) {
    let key = ObjectKey::of(&object);
    let work = Work::own(Kind::PromotionStrategy, key.clone());
    world.note(&work, object.interests(&key));
    note(world, &key, &object);
    let seen = Some(Seen::Object(Arc::new(object)));
    world.promotion_strategies.hold(&key, seen);
}

/// Who owns the branch of `apps/it`, which is the youngest.
fn owner(scene: &Scene) -> Option<String> {
    let it = strategy(("apps", "it"), ("platform", "shop"), 12);
    let key = ObjectKey::of(&it);
    let older = older(&scene.world, &scene.repositories, &key, &it);
    super::owner(&older, &key, "env/prod")
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
    let mut refused = strategy(("apps", "older"), ("platform", "shop"), 9);
    refused.spec.environments[1].after = Some(vec!["no/such".to_owned()]);
    hold(&world, refused);
    assert_eq!(owner(&world), None);
}

/// Everybody may write an access with the address of somebody else, and a Secret that is not there.
#[test]
fn an_access_that_reads_nothing_takes_no_branch() {
    let scene = scene();
    let url = "https://git.example.com/acme/shop";
    hold_access(&scene, "team", "forged", url);
    hold(&scene, strategy(("team", "older"), ("team", "forged"), 9));
    assert_eq!(owner(&scene), None);
    for word in [Word::SecretNotUsable, Word::Unanswered] {
        scene.lists(("team", "forged"), Err(word));
        assert_eq!(owner(&scene), None, "{word}");
    }
    let elsewhere = Some("of another namespace");
    scene.lists(("team", "forged"), Ok(()));
    assert_eq!(owner(&scene).as_deref(), elsewhere);
    // A forge that does not answer takes nothing away; a token that is taken away does.
    scene.lists(("team", "forged"), Err(Word::Unanswered));
    assert_eq!(owner(&scene).as_deref(), elsewhere);
    scene.lists(("team", "forged"), Err(Word::Unauthorized));
    assert_eq!(owner(&scene), None);
}

/// The status says what the leader before has found out, and what another shard has.
#[rstest]
#[case::ready(Some(("True", "ReconciliationSucceeded")), "u", true)]
#[case::something_is_wrong_with_a_branch(Some(("False", "MetadataInvalid")), "u", true)]
#[case::never_decided(None, "u", false)]
#[case::its_access_is_not_usable(Some(("False", "AccessNotReady")), "u", false)]
#[case::its_forge_does_not_let_it_read(Some(("False", "ForgeUnavailable")), "u", false)]
#[case::by_another_access_of_that_name(Some(("True", "ReconciliationSucceeded")), "v", false)]
fn an_owner_that_is_not_listed_yet_stays_the_owner(
    #[case] says: Option<(&str, &str)>,
    #[case] access: &str,
    #[case] owns: bool,
) {
    let scene = begun();
    let url = "https://git.example.com/acme/shop";
    hold_access_of(&scene, "team", "mine", url, access);
    let mut older = strategy(("team", "older"), ("team", "mine"), 9);
    older.status = says.map(|(status, reason)| ready(status, reason));
    hold(&scene, older);
    assert_eq!(owner(&scene).is_some(), owns);
    scene.lists(("team", "mine"), Err(Word::SecretNotUsable));
    assert_eq!(owner(&scene), None);
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
    world.lists(("team", "mine"), Ok(()));
    world.lists(("team", "other"), Ok(()));
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
}

/// A spec that admission takes and the controller refuses is never listed again: what was read before says nothing.
#[test]
fn an_access_that_is_refused_takes_no_branch() {
    let scene = scene();
    hold_access(&scene, "team", "mine", "https://git.example.com/acme/shop");
    hold(&scene, strategy(("team", "older"), ("team", "mine"), 9));
    scene.lists(("team", "mine"), Ok(()));
    assert!(owner(&scene).is_some());
    scene.change_access("team", "mine", |access| {
        let app = json!({"appID": 1, "installationID": 2});
        access.spec.github_app = Some(serde_json::from_value(app).unwrap());
    });
    assert_eq!(owner(&scene), None);
}

/// A change of the spec has it listed again, and makes nobody an owner before that.
#[test]
fn who_could_read_once_does_not_own_by_changing_a_spec() {
    let elsewhere = Some("of another namespace");
    let scene = scene();
    hold_access(&scene, "team", "mine", "https://git.example.com/acme/shop");
    hold(&scene, strategy(("team", "older"), ("team", "mine"), 9));
    scene.see("team", "mine");
    scene.lists(("team", "mine"), Ok(()));
    assert_eq!(owner(&scene).as_deref(), elsewhere);
    // For as long as a list counts, and while nothing changes also after that: its forge may be away.
    let respecified = |scene: &Scene| {
        scene.change_access("team", "mine", |access| {
            *access.metadata.generation.get_or_insert_default() += 1;
        });
        scene.see("team", "mine");
    };
    scene
        .clock
        .set(scene.clock.now() + SignedDuration::from_mins(10));
    assert_eq!(owner(&scene).as_deref(), elsewhere);
    respecified(&scene);
    assert_eq!(owner(&scene), None);
    scene.lists(("team", "mine"), Ok(()));
    respecified(&scene);
    assert_eq!(owner(&scene).as_deref(), elsewhere);
    // Who was refused is refused until a list succeeds.
    scene.lists(("team", "mine"), Err(Word::Unauthorized));
    respecified(&scene);
    assert_eq!(owner(&scene), None);
    scene.lists(("team", "mine"), Err(Word::Unanswered));
    assert_eq!(owner(&scene), None);
    scene.lists(("team", "mine"), Ok(()));
    assert_eq!(owner(&scene).as_deref(), elsewhere);
}

/// Everybody may write accesses and strategies with the address of somebody else, and change them all day.
#[test]
fn what_has_read_nothing_matters_to_nobody() {
    let scene = scene();
    let url = "https://git.example.com/acme/shop";
    hold_access(&scene, "team", "mine", url);
    let mine = strategy(("team", "it"), ("team", "mine"), 9);
    let forbidden = strategy(("other", "it"), ("platform", "shop"), 9);
    for it in [&mine, &forbidden] {
        hold(&scene, it.clone());
    }
    let of = |it: &PromotionStrategy| {
        let key = ObjectKey::of(it);
        matters(&scene, &scene.repositories, &key, it)
    };
    let key = ObjectKey::from(KeyRef {
        namespace: "team",
        name: "mine",
    });
    let access_matters = |before: Option<&Seen<GitRepositoryAccess>>| {
        let now = scene.accesses.get(key.borrowed());
        let now = now.as_ref();
        access_matters(
            &scene,
            &scene.repositories,
            &Change {
                key: &key,
                before,
                now,
            },
        )
    };
    assert_eq!(
        (of(&mine), of(&forbidden), access_matters(None)),
        (false, false, false)
    );
    scene.lists(("team", "mine"), Ok(()));
    assert_eq!(
        (of(&mine), of(&forbidden), access_matters(None)),
        (true, false, true)
    );
    // That it is refused from now on is what the others wait for.
    scene.change_access("team", "mine", |access| {
        access.status = Some(ready("True", "Listed"));
    });
    let before = scene.accesses.get(key.borrowed());
    scene.change_access("team", "mine", |access| {
        access.status = Some(ready("False", "NoRight"));
    });
    scene.lists(("team", "mine"), Err(Word::NoRight));
    assert_eq!(
        (access_matters(before.as_ref()), access_matters(None)),
        (true, false)
    );
    // Another process may have read it.
    let mut read = mine.clone();
    read.status = Some(ready("True", "ReconciliationSucceeded"));
    hold(&scene, read.clone());
    assert_eq!((of(&read), access_matters(None)), (true, true));
}

fn ready<S: DeserializeOwned>(status: &str, reason: &str) -> S {
    let condition = json!({
        "type": "Ready", "status": status, "reason": reason, "message": "",
        "lastTransitionTime": "2026-11-20T10:00:00Z",
    });
    serde_json::from_value(json!({ "conditions": [condition], "readBy": "u" })).unwrap()
}

/// Which names are reserved may depend on what another process has read.
#[test]
fn what_another_process_has_read_concerns_branches_and_names() {
    let scene = scene();
    scene.promotion_strategies.sync();
    let url = "https://git.example.com/acme/shop";
    hold_access(&scene, "team", "mine", url);
    hold(&scene, strategy(("apps", "it"), ("platform", "shop"), 12));
    for (name, called) in [("same", "Promoter"), ("other", "load-test")] {
        let status: CommitStatus = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "CommitStatus",
            "metadata": {"namespace": "apps", "name": name},
            "spec": {
                "repoRef": {"namespace": "platform", "name": "shop"}, "sha": "7".repeat(40),
                "name": called, "phase": "success",
            },
        }))
        .unwrap();
        let key = ObjectKey::of(&status);
        let own = Work::own(Kind::CommitStatus, key.clone());
        scene.note(&own, status.interests(&key));
        scene
            .commit_statuses
            .hold(&key, Some(Seen::Object(Arc::new(status))));
    }
    let mut mine = strategy(("team", "older"), ("team", "mine"), 9);
    mine.spec.status_name = "promoter".to_owned();
    let mut read = mine.clone();
    read.status = Some(ready("True", "ReconciliationSucceeded"));
    let mut failing = mine.clone();
    failing.status = Some(ready("False", "ForgeUnavailable"));
    let key = ObjectKey::of(&mine);
    let depending = |before: &PromotionStrategy, now: &PromotionStrategy| {
        let [before, now] = [before, now].map(|it| Seen::Object(Arc::new(it.clone())));
        let change = Change {
            key: &key,
            before: Some(&before),
            now: Some(&now),
        };
        let depending = depending(&scene, &scene.repositories, &change).into_iter();
        let names: BTreeSet<_> = depending.map(|it| it.key.to_string()).collect();
        names.into_iter().collect::<Vec<_>>()
    };
    let all = ["apps/it", "apps/same"];
    assert_eq!(depending(&mine, &read), all);
    assert_eq!(depending(&read, &failing), all);
    assert_eq!(depending(&read, &read), [""; 0]);
    assert_eq!(depending(&mine, &failing), [""; 0]);
}
