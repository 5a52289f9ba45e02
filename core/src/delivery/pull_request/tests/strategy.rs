//! What a PromotionStrategy says of its PullRequests.

use sluice_crds::PromotionStrategy;
use sluice_crds::promotion_strategy::EnvironmentStatus;
use sluice_crds::pull_request::{Change, Tree};

use super::followed::followed;
use super::*;
use crate::delivery::promotion_strategy::child;

fn strategy() -> PromotionStrategy {
    let name = followed().metadata.name.unwrap();
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
        "metadata": {"namespace": "shop", "name": "shop"},
        "spec": {"repoRef": {"name": "shop"}, "environments": [{"branch": "env/prod"}]},
        "status": {"environments": [{
            "branch": "env/prod", "state": "Waiting",
            "waits": [
                {"reason": "GateClosed", "message": "closed until\nMonday"},
                {"reason": "WaitsForPerson", "message": "a person merges it"},
            ],
            "proposed": {"hydratedSHA": COMMIT, "tree": OTHER, "since": "2026-11-20T12:00:00Z"},
            "pullRequest": {"name": name, "n": 3, "state": "Open"},
            "gate": "pending",
        }]},
    }))
    .unwrap()
}

fn environment(strategy: &mut PromotionStrategy) -> &mut EnvironmentStatus {
    &mut strategy.status.as_mut().unwrap().environments[0]
}

fn opened() -> PullRequest {
    let mut object = followed();
    object.status.get_or_insert_default().state = Some(PullRequestState::Open);
    object
}

#[test]
fn it_says_why_the_first_rule_waits_of_the_commit_that_is_proposed() {
    let said = Says::of(&followed(), &strategy()).unwrap();
    assert_eq!(
        said,
        Says {
            gate: MergeGate::Pending,
            why: "closed until Monday".to_owned(),
            order: None,
            join: None,
            commit: None,
            head: Some(COMMIT.to_owned()),
            context: "sluice/promotion/env/prod".to_owned(),
            hold_label: Some("sluice/hold".to_owned()),
        }
    );
    let mut admits = strategy();
    environment(&mut admits).gate = Some(MergeGate::Success);
    environment(&mut admits).order = Some(order());
    admits.spec.status_name = "promoter-previous-environment".to_owned();
    let said = Says::of(&followed(), &admits).unwrap();
    assert_eq!((said.gate, said.order), (MergeGate::Success, Some(order())));
    assert_eq!(said.why, "all rules pass");
    assert_eq!(said.context, "promoter-previous-environment");
    admits.spec.environments[0].auto_merge = false;
    let said = Says::of(&followed(), &admits).unwrap();
    assert_eq!(said.why, "ready: merge it");
    // What is too long is cut.
    let mut long = strategy();
    environment(&mut long).waits[0].message = "x".repeat(500);
    let said = Says::of(&followed(), &long).unwrap();
    assert_eq!(said.why.chars().count(), 140);
    environment(&mut long).waits.clear();
    environment(&mut long).gate = None;
    let said = Says::of(&followed(), &long).unwrap();
    assert_eq!(said.gate, MergeGate::Pending);
}

#[rstest]
#[case::another_name(|it: &mut PromotionStrategy| it.metadata.name = Some("other".into()))]
#[case::another_namespace(|it: &mut PromotionStrategy| it.metadata.namespace = Some("other".into()))]
#[case::deleted(|it: &mut PromotionStrategy| it.metadata.deletion_timestamp = Some(time(noon())))]
#[case::no_status(|it: &mut PromotionStrategy| it.status = None)]
#[case::no_pull_request(|it: &mut PromotionStrategy| environment(it).pull_request = None)]
#[case::another_pull_request(|it: &mut PromotionStrategy| environment(it).pull_request.as_mut().unwrap().name = "x".into())]
#[case::another_number(|it: &mut PromotionStrategy| environment(it).pull_request.as_mut().unwrap().n = 4)]
#[case::over(|it: &mut PromotionStrategy| environment(it).pull_request.as_mut().unwrap().state = Some(PullRequestState::Merged))]
#[case::no_environment(|it: &mut PromotionStrategy| it.spec.environments.clear())]
#[case::another_suffix(|it: &mut PromotionStrategy| it.spec.proposed_branch_suffix = "-new".into())]
#[case::another_access(|it: &mut PromotionStrategy| it.spec.repo_ref.name = "other".into())]
fn it_speaks_of_its_own_one_or_not_at_all(#[case] change: fn(&mut PromotionStrategy)) {
    let mut owner = strategy();
    change(&mut owner);
    assert_eq!(Says::of(&followed(), &owner), None);
}

#[test]
fn while_it_is_suspended_it_admits_orders_and_opens_nothing() {
    let mut owner = strategy();
    environment(&mut owner).gate = Some(MergeGate::Success);
    environment(&mut owner).order = Some(order());
    let before = owner.clone();
    owner.spec.suspend = true;
    let said = Says::of(&opened(), &owner).unwrap();
    assert_eq!((said.gate, said.order), (MergeGate::Pending, None));
    assert_eq!(said.why, "the PromotionStrategy is suspended");
    assert_eq!(Says::of(&followed(), &owner), None);
    assert_ne!(owner::words(&owner), owner::words(&before));
}

#[rstest]
#[case::gate(|it: &mut PromotionStrategy| environment(it).gate = Some(MergeGate::Success))]
#[case::order(|it: &mut PromotionStrategy| environment(it).order = Some(order()))]
#[case::why(|it: &mut PromotionStrategy| environment(it).waits[0].message = "closed".into())]
#[case::head(|it: &mut PromotionStrategy| environment(it).proposed.as_mut().unwrap().hydrated_sha = OTHER.into())]
#[case::pull_request(|it: &mut PromotionStrategy| environment(it).pull_request = None)]
#[case::deleted(|it: &mut PromotionStrategy| it.metadata.deletion_timestamp = Some(time(noon())))]
fn what_it_says_otherwise_wakes_its_pull_requests(#[case] change: fn(&mut PromotionStrategy)) {
    let mut owner = strategy();
    change(&mut owner);
    assert_ne!(owner::words(&owner), owner::words(&strategy()));
    // What it says of other things does not.
    let mut owner = strategy();
    environment(&mut owner).waits.truncate(1);
    environment(&mut owner).active = None;
    assert_eq!(owner::words(&owner), owner::words(&strategy()));
}

/// Nothing stops those who may write PullRequests from making one: it stands for nothing.
#[rstest]
#[case::another_name(|it: &mut PullRequest| it.metadata.name = Some("shop-1".into()))]
#[case::another_kind(|it: &mut PullRequest| it.spec.about.kind = "Promotion".into())]
#[case::another_target(|it: &mut PullRequest| it.spec.target_branch = "main".into())]
#[case::another_source(|it: &mut PullRequest| it.spec.source_branch = "evil".into())]
#[case::another_access(|it: &mut PullRequest| it.spec.repository.repo_ref.as_mut().unwrap().name = "x".into())]
#[case::another_number(|it: &mut PullRequest| it.spec.about.run = Some(4))]
#[case::a_tree(|it: &mut PullRequest| it.spec.change = Some(Change::Tree(tree())))]
fn one_that_is_forged_leads_to_nothing(#[case] forge: fn(&mut PullRequest)) {
    let mut scene = Scene::new();
    scene.object = followed();
    forge(&mut scene.object);
    assert_eq!(Says::of(&scene.object, &strategy()), None);
    scene.owner = says(MergeGate::Success);
    assert_eq!(scene.task(), None);
    scene.object.spec.close = Some("it is in the way".to_owned());
    assert_eq!(scene.task(), None);
}

fn tree() -> Tree {
    Tree {
        of: "e".repeat(40),
        parent: "f".repeat(40),
        message: "Go back\n".to_owned(),
        date: 1_000,
    }
}

/// A tree goes the way of markers: the commit is in the status before it is opened, and its branch is deleted.
#[test]
fn the_commit_of_a_tree_is_in_the_status_before_it_is_opened() {
    let owner = strategy();
    let prod = &owner.spec.environments[0];
    let words = ("Go back", "");
    let mut scene = Scene::new();
    scene.object = child::make_revert(&owner, prod, (4, None), words, ("shop-x7", tree()));
    let mut wanted = owner.clone();
    let record = environment(&mut wanted).pull_request.as_mut().unwrap();
    (record.name, record.n) = (scene.object.metadata.name.clone().unwrap(), 4);
    let said = Says::of(&scene.object, &wanted);
    // What is said is of our commit, whatever is proposed.
    assert_eq!(said.as_ref().map(|it| it.head.clone()), Some(None));
    scene.owner = said;
    assert_eq!(scene.task(), Some(Task::Commit));
    let committed = Outcome::Committed(COMMIT.to_owned());
    assert_eq!(scene.over(Task::Commit, committed), Some(opening()));
    assert_eq!(scene.status().commit_sha.as_deref(), Some(COMMIT));
    let told = scene.over(opening(), open()).unwrap();
    assert!(
        matches!(&told, Task::SetStatus(it) if it.commit == COMMIT && it.context == "sluice/promotion/env/prod")
    );
    scene.over(told, Outcome::Done);
    let commit = Some(COMMIT.to_owned());
    let next = scene.over(look_at(), merged());
    assert_eq!(next, Some(Task::DeleteBranch { commit }));
}
