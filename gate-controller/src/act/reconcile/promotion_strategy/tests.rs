//! Who is woken by what, among the kinds of promotion, and what counts for whom.

use std::collections::BTreeSet;
use std::sync::Arc;

use rstest::rstest;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sluice_core::gate::Identity;
use sluice_core::time::clock::Trust;
use sluice_crds::flux::FluxKind;
use sluice_crds::gated_source::ConsumerKind;
use sluice_crds::{CommitStatus, PromotionStrategy, PullRequest, RevertCommit};

use super::gather::commit_statuses;
use crate::act::reconcile::Reconciled;
use crate::act::reconcile::gated_source::tests::{api, context, world};
use crate::cluster::key::{KeyRef, ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Change, Seen};
use crate::observe::clock::SetClock;
use crate::observe::world::{Standing, World};

const NOON: &str = "2026-11-20T12:00:00Z";

fn key(namespace: &str, name: &str) -> ObjectKey {
    KeyRef { namespace, name }.into()
}

/// Notes what an object of ours is interested in.
fn note<K: Reconciled + DeserializeOwned>(world: &World, name: &str, spec: &Value) {
    let object: K = made(name, spec, &Value::Null);
    let key = key("shop", name);
    world.note(&Work::own(K::KIND, key.clone()), object.interests(&key));
}

fn made<K: Reconciled + DeserializeOwned>(name: &str, spec: &Value, status: &Value) -> K {
    let mut object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": K::KIND.as_str(), "spec": spec,
        "metadata": { "namespace": "shop", "name": name, "uid": name, "generation": 1 },
    });
    if !status.is_null() {
        object["status"] = status.clone();
    }
    serde_json::from_value(object).unwrap()
}

fn commit_status() -> Value {
    json!({
        "repoRef": { "name": "shop" }, "sha": "7".repeat(40), "name": "load-test",
        "phase": "success",
    })
}

fn revert_commit() -> Value {
    json!({
        "repoRef": { "name": "shop" }, "activeBranch": "env/prod", "from": "7".repeat(40),
        "drySHA": "b".repeat(40), "reason": "INC-4711", "by": "alice",
    })
}

fn pull_request() -> Value {
    json!({
        "repository": { "repoRef": { "name": "shop" } },
        "sourceBranch": "env/prod-next", "targetBranch": "env/prod", "title": "Promote",
        "about": { "kind": "PromotionStrategy", "name": "shop", "environment": "env/prod", "key": "1" },
    })
}

/// A strategy that names one of everything, and what else there is in its repository.
fn scene() -> World {
    let world = world();
    let gates = |name: &str| json!({ "refs": [{ "name": name }] });
    let flux =
        |name: &str| json!({ "kustomizations": [{ "name": name, "namespace": "flux-system" }] });
    let strategy = json!({
        "repoRef": { "name": "shop" },
        "commitStatusNamespaces": ["ci"],
        "activeCommitStatuses": [{ "key": "all", "flux": flux("every") }],
        "environments": [{
            "branch": "env/prod", "gates": gates("hours"), "activeGates": gates("errors"),
            "revertGates": gates("brake"),
            "activeCommitStatuses": [{ "key": "own", "flux": flux("prod") }],
        }],
    });
    note::<PromotionStrategy>(&world, "shop", &strategy);
    note::<CommitStatus>(&world, "load-test", &commit_status());
    note::<RevertCommit>(&world, "back", &revert_commit());
    note::<PullRequest>(&world, "shop-1", &pull_request());
    world
}

const STRATEGY: (Kind, &str) = (Kind::PromotionStrategy, "shop");
const COMMIT_STATUS: (Kind, &str) = (Kind::CommitStatus, "load-test");
const REVERT: (Kind, &str) = (Kind::RevertCommit, "back");
const PULL_REQUEST: (Kind, &str) = (Kind::PullRequest, "shop-1");

fn kustomization() -> Kind {
    FluxKind::Consumer(ConsumerKind::Kustomization).into()
}

#[rstest]
#[case::the_access(Kind::GitRepositoryAccess, "shop", "shop", &[STRATEGY, COMMIT_STATUS, REVERT, PULL_REQUEST])]
#[case::an_access_elsewhere(Kind::GitRepositoryAccess, "other", "shop", &[])]
#[case::a_gate(Kind::Gate, "shop", "hours", &[STRATEGY])]
#[case::a_gate_of_what_is_active(Kind::Gate, "shop", "errors", &[STRATEGY])]
#[case::a_gate_of_reverts(Kind::Gate, "shop", "brake", &[STRATEGY])]
#[case::any_policy(Kind::GatePolicy, "", "freeze", &[STRATEGY])]
#[case::its_namespace(Kind::Namespace, "", "shop", &[STRATEGY])]
#[case::a_kustomization(kustomization(), "flux-system", "every", &[STRATEGY])]
#[case::a_kustomization_of_an_environment(kustomization(), "flux-system", "prod", &[STRATEGY])]
#[case::another_kustomization(kustomization(), "shop", "prod", &[])]
#[case::any_commit_status(Kind::CommitStatus, "shop", "new", &[STRATEGY])]
#[case::one_where_others_test(Kind::CommitStatus, "ci", "new", &[STRATEGY])]
#[case::one_that_does_not_count(Kind::CommitStatus, "other", "new", &[])]
#[case::any_revert(Kind::RevertCommit, "shop", "new", &[STRATEGY])]
#[case::a_revert_elsewhere(Kind::RevertCommit, "ci", "new", &[])]
#[case::the_strategy(Kind::PromotionStrategy, "shop", "shop", &[PULL_REQUEST, REVERT])]
#[case::another_strategy(Kind::PromotionStrategy, "shop", "web", &[REVERT])]
#[case::a_strategy_elsewhere(Kind::PromotionStrategy, "ci", "shop", &[])]
fn what_changes_wakes_those_who_depend_on_it(
    #[case] kind: Kind,
    #[case] namespace: &str,
    #[case] name: &str,
    #[case] expected: &[(Kind, &str)],
) {
    let expected = expected.iter();
    let expected: BTreeSet<_> = expected
        .map(|(kind, name)| Work::own(*kind, key("shop", name)))
        .collect();
    let what = Work::own(kind, key(namespace, name));
    assert_eq!(scene().concerned(&what), expected);
}

/// Whether a change from one status to another matters to those who are interested.
fn matters<K: Reconciled + DeserializeOwned>(spec: &Value, before: &Value, now: &Value) -> bool {
    let seen = |status| Seen::Object(Arc::new(made::<K>("it", spec, status)));
    let (before, now) = (seen(before), seen(now));
    K::may_matter(&Change {
        key: &key("shop", "it"),
        before: Some(&before),
        now: Some(&now),
    })
}

#[test]
fn a_status_that_nobody_reads_wakes_nobody() {
    let observed = json!({ "observedGeneration": 1 });
    let posted = json!({ "attempts": 2 });
    assert!(!matters::<CommitStatus>(
        &commit_status(),
        &observed,
        &posted
    ));
    assert!(!matters::<RevertCommit>(
        &revert_commit(),
        &observed,
        &json!({})
    ));
    let phase = json!({ "phase": "Merged" });
    assert!(matters::<RevertCommit>(&revert_commit(), &observed, &phase));
}

/// What was allowed once is in its status. Nothing is read by that any more.
#[tokio::test]
async fn nothing_is_asked_of_a_repository_that_may_not_be_used_any_more() {
    let tip = |dry: &str| {
        let [dry, hydrated] = [dry, "7"].map(|digit| digit.repeat(40));
        json!({ "drySHA": dry, "hydratedSHA": hydrated, "tree": hydrated, "since": NOON })
    };
    let spec = json!({
        "repoRef": { "name": "shop", "namespace": "platform" },
        "environments": [{ "branch": "env/prod" }],
    });
    let status = json!({ "environments": [{
        "branch": "env/prod", "state": "Waiting", "active": tip("a"), "proposed": tip("b"),
    }] });
    let strategy = Arc::new(made::<PromotionStrategy>("shop", &spec, &status));
    let clock = Arc::new(SetClock::new(NOON.parse().unwrap()));
    let context = context(api("1", &Arc::default()), world(), clock);
    let world = context.world.as_ref();
    world.gates.sync();
    world.gatekeepers.sync();
    world.approvals.sync();
    world.pipelines.sync();
    world.policies.sync();
    world.namespaces.sync();
    world.accesses.sync();
    world.pull_requests.sync();
    world.promotion_strategies.sync();
    world.commit_statuses.sync();
    world.revert_commits.sync();
    world.ready();
    let (key, at) = (key("shop", "shop"), NOON.parse().unwrap());
    let looked = PromotionStrategy::look(&context, &key, strategy, at);
    looked.await.unwrap();
    let access = self::key("platform", "shop");
    assert!(!context.repositories.is_needed(&access));
}

/// The right to create CommitStatuses in one namespace proves nothing for strategies of other namespaces.
#[rstest]
#[case::its_own("shop", json!({ "name": "shop" }), true, true)]
#[case::one_that_is_named("ci", json!({ "name": "shop", "namespace": "shop" }), true, true)]
#[case::one_that_is_named_where_nobody_may_name("ci", json!({ "name": "shop", "namespace": "shop" }), false, false)]
#[case::one_that_is_not_named("other", json!({ "name": "shop", "namespace": "shop" }), true, false)]
#[case::another_repository("shop", json!({ "name": "other" }), true, false)]
#[case::another_repository_of_the_name("ci", json!({ "name": "shop" }), true, false)]
fn a_commit_status_counts_by_its_namespace_and_its_repository(
    #[case] namespace: &str,
    #[case] repository: Value,
    #[case] crosses: bool,
    #[case] counts: bool,
) {
    let standing = Standing {
        trust: Trust::Good,
        identity: Identity::Verified,
    };
    let world = World::new(standing, crosses);
    let strategy = json!({
        "repoRef": { "name": "shop" }, "commitStatusNamespaces": ["ci"],
        "environments": [{ "branch": "env/prod" }],
    });
    let strategy: PromotionStrategy = made("shop", &strategy, &Value::Null);
    let mut spec = commit_status();
    spec["repoRef"] = repository;
    let mut status: CommitStatus = made("load-test", &spec, &Value::Null);
    status.metadata.namespace = Some(namespace.to_owned());
    let seen = Some(Seen::Object(Arc::new(status)));
    world
        .commit_statuses
        .hold(&key(namespace, "load-test"), seen);
    let found = commit_statuses(&world, &key("shop", "shop"), &strategy);
    assert_eq!(found.len(), usize::from(counts));
}
