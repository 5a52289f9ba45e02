//! What a RevertCommit says, by what its strategy says.

use std::sync::Arc;

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};
use sluice_crds::revert_commit::RevertPhase;
use sluice_crds::{PromotionStrategy, RevertCommit, RevertCommitStatus};

use super::super::report::{Given, report};
use super::revert;
use crate::delivery::act::Report;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn object() -> RevertCommit {
    let mut object = revert(&json!({}));
    object.metadata.generation = Some(1);
    object
}

/// A strategy that says this of the reverts of env/prod.
fn strategy(name: &str, branch: &str, reverts: &Value) -> Arc<PromotionStrategy> {
    let strategy = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"repoRef": {"name": "shop"}, "environments": [{"branch": branch}]},
        "status": {"environments": [{"branch": branch, "state": "Held", "reverts": reverts}]},
    });
    Arc::new(serde_json::from_value(strategy).unwrap())
}

fn entry(phase: &str) -> Value {
    json!([
        {"name": "other", "phase": "Stalled", "reason": "Other", "message": "not this"},
        {
            "name": "shop-prod-x7", "generation": 1, "phase": phase, "reason": "Why",
            "message": "because", "pullRequest": "shop-1", "url": "https://git.example.com/7",
        },
    ])
}

fn look(
    object: &RevertCommit,
    strategies: &[Arc<PromotionStrategy>],
) -> Report<RevertCommitStatus, super::super::report::Act> {
    report(Given {
        object: Arc::new(object.clone()),
        strategies: strategies.to_vec(),
        now: at(0),
    })
}

fn looks(object: &mut RevertCommit, strategies: &[Arc<PromotionStrategy>]) -> RevertCommitStatus {
    let status = look(object, strategies).status;
    object.status = Some(status.clone());
    status
}

/// The reason and the message of `Ready`, and what holds.
fn says(status: &RevertCommitStatus) -> (&str, &str, Vec<&str>) {
    let ready = status.conditions.iter().find(|it| it.type_ == "Ready");
    let ready = ready.expect("it is there");
    let holds = status.conditions.iter().filter(|it| it.status == "True");
    let holds = holds.map(|it| it.type_.as_str()).collect();
    (&ready.reason, &ready.message, holds)
}

#[rstest]
#[case::pending("Pending", &["Reconciling"])]
#[case::open("Open", &["Reconciling"])]
#[case::merged("Merged", &["Ready"])]
#[case::done("Done", &["Ready"])]
#[case::superseded("Superseded", &["Stalled"])]
#[case::stalled("Stalled", &["Stalled"])]
fn it_says_what_its_strategy_says(#[case] phase: &str, #[case] holds: &[&str]) {
    let mut object = object();
    let strategies = [strategy("shop", "env/prod", &entry(phase))];
    let status = looks(&mut object, &strategies);
    assert_eq!(says(&status), ("Why", "because", holds.to_vec()));
    assert_eq!(json!(status.phase), json!(phase));
    assert_eq!(status.pull_request.as_deref(), Some("shop-1"));
    assert_eq!(status.url.as_deref(), Some("https://git.example.com/7"));
    assert_eq!(status.observed_generation, Some(1));
    let again = look(&object, &strategies);
    assert!(!again.changed && again.wake.is_none());
}

#[test]
fn what_no_strategy_has_seen_is_pending() {
    let status = looks(&mut object(), &[strategy("shop", "env/prod", &json!([]))]);
    let message = "the PromotionStrategy shop has not looked at it yet";
    assert_eq!(says(&status), ("NotSeen", message, vec!["Reconciling"]));
    assert_eq!(status.phase, Some(RevertPhase::Pending));
}

#[test]
fn what_is_said_of_an_older_spec_is_not_ready() {
    let mut object = object();
    let strategies = [strategy("shop", "env/prod", &entry("Merged"))];
    looks(&mut object, &strategies);
    object.metadata.generation = Some(2);
    let status = looks(&mut object, &strategies);
    assert_eq!(says(&status).2, ["Reconciling"]);
    assert_eq!(status.phase, Some(RevertPhase::Merged));
    assert_eq!(status.pull_request.as_deref(), Some("shop-1"));
    // If nobody says anything any more, it is as over as it was.
    let status = looks(&mut object, &[]);
    let message = "it is merged, and the environment is back";
    assert_eq!(says(&status), ("Merged", message, vec!["Ready"]));
}

#[rstest]
#[case::merged("Merged", true)]
#[case::done("Done", true)]
#[case::superseded("Superseded", true)]
#[case::open("Open", false)]
#[case::stalled("Stalled", false)]
fn what_is_over_stays_said(#[case] phase: &str, #[case] stays: bool) {
    let mut object = object();
    let before = looks(&mut object, &[strategy("shop", "env/prod", &entry(phase))]);
    let forgotten = [strategy("shop", "env/prod", &json!([]))];
    for strategies in [forgotten.as_slice(), &[]] {
        assert_eq!(look(&object, strategies).status == before, stays);
    }
}

#[test]
fn without_its_environment_nothing_goes_on() {
    let strategies = [
        strategy("shop", "env/test", &entry("Merged")),
        strategy("web", "env/dev", &json!([])),
    ];
    let status = looks(&mut object(), &strategies);
    let message = "spec.activeBranch: no PromotionStrategy of this namespace has an environment with the \
                   branch env/prod; there are env/dev, env/test";
    assert_eq!(says(&status), ("NoEnvironment", message, vec!["Stalled"]));
    assert_eq!(status.phase, Some(RevertPhase::Stalled));
    let status = looks(&mut object(), &[]);
    assert!(says(&status).1.ends_with("of the GitRepositoryAccess shop"));
}

#[test]
fn the_strategy_that_speaks_of_it_counts() {
    let strategies = [
        strategy("a", "env/prod", &json!([])),
        strategy("b", "env/prod", &entry("Open")),
    ];
    let status = looks(&mut object(), &strategies);
    assert_eq!(status.phase, Some(RevertPhase::Open));
}

#[test]
fn a_mistake_is_told() {
    let mut object = object();
    object.spec.fixed_by = Some(object.spec.dry_sha.clone());
    let status = looks(
        &mut object,
        &[strategy("shop", "env/prod", &entry("Merged"))],
    );
    let (reason, message, holds) = says(&status);
    assert_eq!((reason, holds), ("InvalidSpec", vec!["Stalled"]));
    assert!(message.starts_with("spec.fixedBy"), "{message}");
    assert_eq!(status.phase, Some(RevertPhase::Stalled));
}
