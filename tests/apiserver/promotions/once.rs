//! What is merged is merged once, also where writes are refused, statuses are lost, and two controllers lead.

use anyhow::Result;
use http::{Method, StatusCode};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use rstest::rstest;
use serde_json::json;
use sluice_crds::promotion_strategy::{Arrival, EnvironmentState};
use sluice_tests::poll;
use sluice_tests::proxy::{Proxy, refusal};

use super::branches::{Branches, DEADLINE, NAME, Spoilt};
use super::{is_at, waits_for};

const DEV: &str = "env/dev";
const STRATEGY: &str = "/promotionstrategies/shop/status";
const PULL_REQUEST: &str = "/pullrequests/shop-";

/// The statuses of a promotion, in their order: of what, and what each is the first to say.
const PROMOTION: [(&str, &str); 5] = [
    (STRATEGY, r#""pullRequest""#),
    (PULL_REQUEST, r#""Open""#),
    (STRATEGY, r#""notAfter""#),
    (PULL_REQUEST, r#""Merged""#),
    (STRATEGY, r#""Promotion""#),
];

/// The same of a way back, and of the fix, which is joined to what the environment has then.
const WAY_BACK: [(&str, &str); 4] = [
    (STRATEGY, r#""held""#),
    (STRATEGY, r#""Revert""#),
    ("/revertcommits/back/status", r#""Merged""#),
    (STRATEGY, r#""join""#),
];

/// Each of them is refused once.
fn refuse(line: &Proxy, statuses: &[(&str, &str)]) {
    for status in statuses {
        let conflict = refusal(StatusCode::CONFLICT, "Conflict");
        line.order_for(conflict, Method::PATCH, *status, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_is_refused_is_decided_anew() -> Result<()> {
    let one = json!({"environments": [{"branch": DEV}]});
    let scene = Branches::open("promotions-refused", one).await?;
    let line = Proxy::start(scene.client()).await?;
    let controller = scene.start_as(line.client()?, &[]).await?;
    scene
        .says(DEV, "to be read", |it| it.active.is_some())
        .await?;
    refuse(&line, &PROMOTION);
    let dry = scene.hydrate("2").await?;
    let dev = scene
        .says(DEV, "to be merged", |it| is_at(it, &dry))
        .await?;
    line.came().await?;
    let arrived = dev.active.and_then(|it| it.arrived_by);
    assert_eq!(arrived, Some(Arrival::Promotion));
    scene.pulls_are(&["merged"]).await?;
    scene.rests().await?;
    assert_eq!(scene.merges(DEV).await?, 1);
    controller.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_on_the_way_back_is_decided_anew() -> Result<()> {
    let one = json!({"environments": [{"branch": DEV}]});
    let scene = Branches::open("promotions-refused", one).await?;
    let line = Proxy::start(scene.client()).await?;
    let controller = scene.start_as(line.client()?, &[]).await?;
    let Spoilt { good, bad, from } = scene.spoil(DEV).await?;
    refuse(&line, &WAY_BACK);
    scene.revert("back", DEV, &from, &good).await?;
    let dev = scene
        .says(DEV, "to be back", |it| {
            is_at(it, &good) && it.state == EnvironmentState::Held
        })
        .await?;
    assert_eq!(dev.held[0].dry_sha, bad);
    let fix = scene.hydrate("3").await?;
    scene.fixed("back", &fix).await?;
    scene
        .says(DEV, "to have the fix", |it| is_at(it, &fix))
        .await?;
    line.came().await?;
    scene.is_as_proposed(DEV).await?;
    scene.pulls_are(&["merged", "merged", "merged"]).await?;
    scene.rests().await?;
    assert_eq!(scene.merges(DEV).await?, 3);
    assert_eq!(scene.joins(DEV).await?, 1);
    controller.stop().await;
    Ok(())
}

/// What is lost, as from a backup.
#[derive(Clone, Copy)]
enum Lost {
    Statuses,
    PullRequests,
    /// All of it, and another strategy has the name.
    Strategy,
}

impl Lost {
    async fn happens(self, scene: &Branches) -> Result<()> {
        let (strategies, pulls) = (scene.strategies(), scene.pull_requests());
        let (patch, delete) = (PatchParams::default(), DeleteParams::default());
        let nothing = Patch::Merge(json!({"status": null}));
        match self {
            Lost::Statuses | Lost::PullRequests => {
                strategies.patch_status(NAME, &patch, &nothing).await?;
            }
            Lost::Strategy => drop(strategies.delete(NAME, &delete).await?),
        }
        for pull in pulls.list(&ListParams::default()).await? {
            let name = pull.metadata.name.unwrap_or_default();
            match self {
                Lost::Statuses => drop(pulls.patch_status(&name, &patch, &nothing).await?),
                Lost::PullRequests | Lost::Strategy => {
                    // The garbage collector may be faster.
                    drop(pulls.delete(&name, &delete).await);
                }
            }
        }
        scene.put().await
    }
}

#[rstest]
#[case::statuses(Lost::Statuses)]
#[case::pull_requests(Lost::PullRequests)]
#[case::everything(Lost::Strategy)]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_lost_status_knew_is_found_at_the_forge(#[case] lost: Lost) -> Result<()> {
    let scene = Branches::open("promotions-lost", json!({})).await?;
    let controller = scene.start().await?;
    scene
        .says("env/prod", "to be read", |it| it.active.is_some())
        .await?;
    let dry = scene.hydrate("2").await?;
    let waits = |environment: &_| waits_for(environment, "CheckMissing");
    scene.says("env/test", "to wait for dev", waits).await?;
    scene.pulls_are(&["merged", "open", "open"]).await?;
    controller.stop().await;

    lost.happens(&scene).await?;
    let controller = scene.start().await?;
    let dev = scene
        .says("env/dev", "to be known", |it| is_at(it, &dry))
        .await?;
    let arrived = dev.active.and_then(|it| it.arrived_by);
    assert_eq!(arrived, Some(Arrival::Baseline));
    scene.says("env/test", "to wait again", waits).await?;
    scene.healthy("env/dev").await?;
    scene
        .says("env/test", "to be merged", |it| is_at(it, &dry))
        .await?;
    // Those that were open were adopted.
    scene.pulls_are(&["merged", "merged", "open"]).await?;
    scene.rests().await?;
    for branch in ["env/dev", "env/test"] {
        assert_eq!(scene.merges(branch).await?, 1);
    }
    controller.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_controllers_merge_once() -> Result<()> {
    let scene = Branches::open("promotions-two", json!({})).await?;
    let both = [scene.start().await?, scene.start().await?];
    scene
        .says("env/prod", "to be read", |it| it.active.is_some())
        .await?;
    let mut dry = String::new();
    for version in ["2", "3"] {
        dry = scene.hydrate(version).await?;
        for (branch, next) in [("env/dev", "env/test"), ("env/test", "env/prod")] {
            scene
                .says(branch, "to be merged", |it| is_at(it, &dry))
                .await?;
            scene.healthy(branch).await?;
            scene
                .says(next, "to go on", |it| {
                    is_at(it, &dry) || waits_for(it, "GateClosed")
                })
                .await?;
        }
    }
    scene.turn("open").await?;
    scene
        .says("env/prod", "to be merged", |it| is_at(it, &dry))
        .await?;
    for (branch, merges) in [("env/dev", 2), ("env/test", 2), ("env/prod", 1)] {
        assert_eq!(scene.merges(branch).await?, merges, "{branch}");
    }
    for controller in both {
        controller.stop().await;
    }
    Ok(())
}

/// An object that may be missing.
#[derive(Clone, Copy, Debug)]
enum Gone {
    Secret,
    Access,
    Strategy,
}

impl Gone {
    async fn happens(self, scene: &Branches) -> Result<()> {
        let params = DeleteParams::default();
        match self {
            Gone::Secret => {
                let secrets: Api<k8s_openapi::api::core::v1::Secret> =
                    Api::namespaced(scene.client(), scene.namespace());
                drop(secrets.delete(super::branches::SECRET, &params).await?);
            }
            Gone::Access => drop(scene.accesses().delete(NAME, &params).await?),
            Gone::Strategy => drop(scene.strategies().delete(NAME, &params).await?),
        }
        Ok(())
    }
}

#[rstest]
#[case([Gone::Secret, Gone::Access, Gone::Strategy])]
#[case([Gone::Secret, Gone::Strategy, Gone::Access])]
#[case([Gone::Access, Gone::Secret, Gone::Strategy])]
#[case([Gone::Access, Gone::Strategy, Gone::Secret])]
#[case([Gone::Strategy, Gone::Secret, Gone::Access])]
#[case([Gone::Strategy, Gone::Access, Gone::Secret])]
#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_deleted_first_nothing_hangs(#[case] order: [Gone; 3]) -> Result<()> {
    let gates = json!({"refs": [{"name": "production"}]});
    let one = json!({"environments": [{"branch": "env/dev", "gates": gates}]});
    let scene = Branches::open("promotions-gone", one).await?;
    let controller = scene.start().await?;
    scene
        .says("env/dev", "to be read", |it| it.active.is_some())
        .await?;
    let dry = scene.hydrate("2").await?;
    let waits = |environment: &_| waits_for(environment, "GateClosed");
    scene.says("env/dev", "to wait", waits).await?;
    for gone in order {
        gone.happens(&scene).await?;
        scene.pass();
        controller.rests().await?;
    }
    // They go as everything of Kubernetes goes.
    poll(DEADLINE, "everything to be gone", async || {
        let all = ListParams::default();
        let pulls = scene.pull_requests().list(&all).await?.items;
        let strategy = scene.strategies().get_opt(NAME).await?;
        let access = scene.accesses().get_opt(NAME).await?;
        anyhow::ensure!(pulls.is_empty() && strategy.is_none() && access.is_none());
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    scene.pulls_are(&["open"]).await?;

    scene.put().await?;
    scene.says("env/dev", "to wait again", waits).await?;
    scene.turn("open").await?;
    scene
        .says("env/dev", "to be merged", |it| is_at(it, &dry))
        .await?;
    scene.pulls_are(&["merged"]).await?;
    assert_eq!(scene.merges("env/dev").await?, 1);
    controller.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_while_nothing_happens() -> Result<()> {
    let scene = Branches::open("promotions-idle", json!({})).await?;
    let controller = scene.start().await?;
    for branch in ["env/dev", "env/test", "env/prod"] {
        scene.healthy(branch).await?;
    }
    scene
        .says("env/prod", "to be read", |it| it.active.is_some())
        .await?;
    let dry = scene.hydrate("2").await?;
    for branch in ["env/dev", "env/test"] {
        scene
            .says(branch, "to be merged", |it| is_at(it, &dry))
            .await?;
        scene.healthy(branch).await?;
    }
    // A pull request is open all the time.
    let waits = |environment: &_| waits_for(environment, "GateClosed");
    scene.says("env/prod", "to wait", waits).await?;
    scene.rests().await?;
    // What people read at the forge is rewritten once a minute.
    for _ in 0..12 {
        scene.lists(&controller).await?;
    }
    let kinds = [
        "PromotionStrategy",
        "PullRequest",
        "CommitStatus",
        "GitRepositoryAccess",
    ];
    let written = async || {
        let mut all = Vec::new();
        for kind in kinds {
            all.push((kind, controller.writes(kind).await?));
        }
        Ok::<_, anyhow::Error>(all)
    };
    let before = written().await?;
    // Half an hour. Two rounds are shorter than the time after which a list is too old to decide from: one may be
    // under way while the clock is put forward.
    for _ in 0..45 {
        scene.pass_seconds(30);
        scene.lists(&controller).await?;
    }
    assert_eq!(written().await?, before);
    controller.stop().await;
    Ok(())
}
