//! Promotion by branches: what a hydrator pushes to a real Gitea goes through environments by pull requests.

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};
use sluice_crds::promotion_strategy::{Arrival, EnvironmentState, EnvironmentStatus};
use sluice_crds::revert_commit::RevertPhase;
use sluice_tests::controller::InProcess;
use sluice_tests::gitea::BRANCH;

use self::branches::{Branches, ENVIRONMENTS, Spoilt};
use crate::told::get;

mod branches;
mod commit_statuses;
mod dead_forge;
mod histories;
mod kills;
mod kinds;
mod once;
mod people;

/// The commit status of the pull request for prod.
const PROD_SAYS: &str = "sluice/promotion/env/prod";

fn is_at(environment: &EnvironmentStatus, dry: &str) -> bool {
    let active = environment.active.as_ref();
    active.is_some_and(|tip| tip.dry_sha.as_deref() == Some(dry))
}

fn waits_for(environment: &EnvironmentStatus, reason: &str) -> bool {
    environment.reason.as_deref() == Some(reason)
}

/// Whether it waits because nothing is said of a check, which is named after the branch that it is about.
fn lacks(environment: &EnvironmentStatus, check: &str) -> bool {
    let message = environment.message.as_deref().unwrap_or_default();
    waits_for(environment, "CheckMissing") && message.starts_with(check)
}

/// What people read at the forge on the pull request for prod: what it brings, what that replaces, and whom they
/// ask why it waits.
async fn the_pull_request_tells(scene: &Branches, before: &str, dry: &str) -> Result<()> {
    let number = scene.pulls_into("env/prod", &["open"]).await?[0];
    let path = format!("/pulls/{number}");
    let pull = scene.ask(Method::GET, &path, &Value::Null).await?;
    assert_eq!(pull["title"], format!("Promote {} to env/prod", &dry[..12]));
    let asks = format!("-n {} promotionstrategy/shop env/prod", scene.namespace());
    let body = pull["body"].as_str().unwrap_or_default();
    for line in [
        &format!("Brings what was made of the commit `{dry}` to `env/prod`."),
        "- Commit: `Write \"it\"`",
        "- Author: `CI <ci@example.com>`",
        &format!("- Replaces: `{before}`"),
        &format!("    kubectl gate why {asks}"),
    ] {
        assert!(body.lines().any(|it| it == line), "{line} is not in {body}");
    }
    Ok(())
}

/// It is counted that prod was promoted to, with the time since the dry commit was made.
async fn is_counted(scene: &Branches, controller: &InProcess) -> Result<()> {
    let (_, page) = get(controller.metrics()?, "/metrics").await?;
    let of = scene.labels("env/prod");
    for line in [
        format!("sluice_branch_promotions_total{{{of},by=\"sluice\"}} 1\n"),
        format!("sluice_branch_lead_time_seconds_count{{{of}}} 1\n"),
    ] {
        assert!(page.contains(&line), "{line}{page}");
    }
    Ok(())
}

/// The story of the design: three environments, checks of what is proposed and of what is there, a gate before
/// the last. What is proposed comes from the hydrator of the guide.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_goes_through_three_environments() -> Result<()> {
    let more = json!({"dryCommitStatus": true, "proposedCommitStatuses": [{"key": "scan"}]});
    let scene = Branches::open("promotions-story", more).await?;
    let controller = scene.start().await?;
    scene
        .says("env/prod", "to be read", |it| it.active.is_some())
        .await?;

    let before = scene.head(BRANCH).await?;
    let dry = scene.hydrate_by_script("2").await?;
    scene
        .says("env/dev", "to wait for the scan", |it| {
            lacks(it, "env/dev-next: scan is")
        })
        .await?;
    for branch in ENVIRONMENTS {
        scene.passes(&format!("{branch}-next"), "scan").await?;
    }
    let dev = scene
        .says("env/dev", "to be merged", |it| {
            is_at(it, &dry) && it.state == EnvironmentState::Verifying
        })
        .await?;
    let active = dev.active.expect("it is there");
    assert_eq!(active.arrived_by, Some(Arrival::Promotion));
    // A pull request is open for each of the others, and says why it waits.
    scene
        .says("env/test", "to wait for the check", |it| {
            lacks(it, "env/dev: health is")
        })
        .await?;
    scene
        .says("env/prod", "to wait for test", |it| {
            waits_for(it, "WaitsForEnvironment")
        })
        .await?;
    scene.pulls_are(&["merged", "open", "open"]).await?;
    the_pull_request_tells(&scene, &before, &dry).await?;
    let (state, description) = scene.commit_status("env/prod-next", PROD_SAYS).await?;
    assert_eq!(state, "pending");
    assert!(
        description.starts_with("env/dev is at") || description.starts_with("env/test is at"),
        "{description}"
    );

    scene.healthy("env/dev").await?;
    scene
        .says("env/test", "to be merged", |it| is_at(it, &dry))
        .await?;
    scene.healthy("env/test").await?;
    let prod = scene
        .says("env/prod", "to wait for the gate", |it| {
            waits_for(it, "GateClosed")
        })
        .await?;
    assert!(prod.message.is_some_and(|it| it.contains("production")));
    let state = scene.commit_status_names("env/prod-next", PROD_SAYS, "production");
    assert_eq!(state.await?, "pending");
    scene.turn("open").await?;
    scene
        .says("env/prod", "to be merged", |it| is_at(it, &dry))
        .await?;
    scene.pulls_are(&["merged", "merged", "merged"]).await?;
    // What was merged is what was hydrated.
    for branch in ENVIRONMENTS {
        scene.is_as_proposed(branch).await?;
    }
    assert!(scene.file("env/prod").await?.contains("kind: ConfigMap"));
    // The dry commit tells where it is, once for each environment that it reaches.
    let context = scene.dry_context();
    let said = scene.commit_status_is("main", &context, "success").await?;
    assert_eq!(said, "in 3 of 3 environments");
    let told = scene.told(&dry, &context).await?;
    assert!((2..=4).contains(&told), "{told}");
    scene.rests().await?;
    is_counted(&scene, &controller).await?;
    controller.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_merges_past_a_gate_is_named() -> Result<()> {
    let scene = Branches::open("promotions-person", json!({})).await?;
    let controller = scene.start().await?;
    scene
        .says("env/prod", "to be read", |it| it.active.is_some())
        .await?;
    let dry = scene.hydrate("2").await?;
    let prod = scene
        .says("env/prod", "to have a pull request", |it| {
            it.pull_request
                .as_ref()
                .is_some_and(|it| it.number.is_some())
        })
        .await?;
    let number = prod
        .pull_request
        .and_then(|it| it.number)
        .expect("it is there");
    scene.merge(number).await?;
    scene.pass();
    let prod = scene
        .says("env/prod", "to be merged", |it| is_at(it, &dry))
        .await?;
    let active = prod.active.expect("it is there");
    assert_eq!(active.arrived_by, Some(Arrival::Person));
    assert!(
        active.bypassed.contains(&"WaitsForEnvironment".to_owned()),
        "{active:?}"
    );
    controller.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_pushes_to_an_environment_holds_it() -> Result<()> {
    let scene = Branches::open("promotions-foreign", json!({})).await?;
    let controller = scene.start().await?;
    scene
        .says("env/dev", "to be read", |it| it.active.is_some())
        .await?;
    scene.push("env/dev", "hotfix.yaml", "a: 1\n").await?;
    scene.pass();
    let is_foreign = |it: &EnvironmentStatus| {
        it.active
            .as_ref()
            .is_some_and(|tip| tip.arrived_by == Some(Arrival::Foreign))
    };
    scene.says("env/dev", "to be held", is_foreign).await?;
    let dry = scene.hydrate("2").await?;
    let dev = scene
        .says("env/dev", "to wait", |it| waits_for(it, "ForeignCommit"))
        .await?;
    scene
        .accept("env/dev", &dev.active.expect("it is there").hydrated_sha)
        .await?;
    scene
        .says("env/dev", "to be merged", |it| is_at(it, &dry))
        .await?;
    controller.stop().await;
    Ok(())
}

/// A bad commit is taken back, stays held, and its fix goes on without anything of it being mixed in.
#[tokio::test(flavor = "multi_thread")]
async fn an_environment_goes_back_and_gets_the_fix() -> Result<()> {
    let scene = Branches::open("promotions-revert", json!({})).await?;
    let controller = scene.start().await?;
    let before = scene.file("env/dev").await?;
    let Spoilt { good, bad, from } = scene.spoil("env/dev").await?;
    scene.revert("back", "env/dev", &from, &good).await?;
    let dev = scene
        .says("env/dev", "to be back", |it| {
            is_at(it, &good) && it.state == EnvironmentState::Held
        })
        .await?;
    let active = dev.active.expect("it is there");
    assert_eq!(active.arrived_by, Some(Arrival::Revert));
    assert_eq!(scene.file("env/dev").await?, before);
    assert_eq!(dev.held[0].dry_sha, bad);
    assert_eq!(dev.reverts[0].phase, RevertPhase::Merged);

    let fix = scene.hydrate("3").await?;
    scene
        .says("env/dev", "to hold what comes after it", |it| {
            waits_for(it, "Held")
                && it
                    .proposed
                    .as_ref()
                    .is_some_and(|tip| tip.dry_sha.as_deref() == Some(&*fix))
        })
        .await?;
    scene.fixed("back", &fix).await?;
    scene
        .says("env/dev", "to have the fix", |it| is_at(it, &fix))
        .await?;
    scene.is_as_proposed("env/dev").await?;
    scene.rests().await?;
    controller.stop().await;
    Ok(())
}

/// The branches are listed once an hour here: that something was pushed only the forge itself says.
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_of_the_forge_has_its_branches_listed() -> Result<()> {
    let scene = Branches::open("promotions-webhook", json!({})).await?;
    scene.waits_for_hooks().await?;
    let controller = scene.start().await?;
    scene
        .says("env/prod", "to be read", |it| it.active.is_some())
        .await?;
    scene.enter_hook(&controller).await?;
    let dry = scene.hydrate_now("2").await?;
    scene
        .says("env/dev", "to be merged", |it| is_at(it, &dry))
        .await?;
    controller.stop().await;
    Ok(())
}

/// What joins histories would be lost by a rebase.
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_prefers_rebases_gets_merges() -> Result<()> {
    let scene = Branches::open("promotions-rebase", json!({})).await?;
    scene.prefers_rebases().await?;
    let controller = scene.start().await?;
    let dry = scene.hydrate("2").await?;
    scene
        .says("env/dev", "to be merged", |it| is_at(it, &dry))
        .await?;
    assert_eq!(scene.parents("env/dev").await?, 2);
    controller.stop().await;
    Ok(())
}
