//! `accept`, `revert` and `fixed`: what people do to environments.

use anyhow::{Context, Result, ensure};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use sluice_crds::revert_commit::RevertMerge;
use sluice_crds::{PromotionStrategy, RevertCommit};

use super::super::{Going, says};
use super::{Acting, FIX, GOOD, seen, shop};

#[tokio::test]
async fn a_person_accepts_what_somebody_else_has_pushed() -> Result<()> {
    let stage = shop("cli-promotions-accept").await?;
    let accept = |environment: &'static str, more: &[&'static str]| {
        let mut words = vec!["accept", "shop", environment, "--reason", "INC-4711"];
        words.extend(more);
        words
    };
    let says = async |words: Vec<&str>, code: i32, expected: &str| {
        says(&stage, "alice", &words, code, expected).await
    };
    says(accept("env/test", &[]), 2, "the controller has merged it").await?;
    says(accept("env/none", &[]), 2, "has no environment `env/none`").await?;
    says(
        accept("dev", &["--sha", "2222222"]),
        2,
        "has 111111111111, and not 2222222",
    )
    .await?;
    let mut unknown = accept("dev", &[]);
    unknown[1] = "none";
    says(unknown, 2, "there is no promotion strategy").await?;
    let mut silent = accept("dev", &[]);
    silent[4] = " ";
    says(silent, 2, "--reason: it is empty").await?;

    let strategies: Api<PromotionStrategy> = Api::namespaced(stage.client(), stage.namespace());
    let before =
        json!({"metadata": {"annotations": {"sluice.dev/accept": "env/dev=9,env/prod=8"}}});
    strategies
        .patch("shop", &PatchParams::default(), &Patch::Merge(before))
        .await?;
    // Nobody answers.
    let ran = says(
        accept("dev", &["--timeout", "300ms"]),
        0,
        "not yet confirmed",
    )
    .await?;
    ensure!(ran.err.contains("none may be running"), "{ran:?}");
    let annotations = strategies.get("shop").await?.metadata.annotations;
    let annotations = annotations.context("there are none")?;
    let accepted = format!("env/prod=8,env/dev={}", "1".repeat(40));
    ensure!(
        annotations["sluice.dev/accept"] == accepted,
        "{annotations:?}"
    );
    let told = format!("env/dev={} by alice: INC-4711", "1".repeat(40));
    ensure!(
        annotations["sluice.dev/accept-reason"] == told,
        "{annotations:?}"
    );
    ensure!(annotations.contains_key("reconcile.fluxcd.io/requestedAt"));

    let words = accept("dev", &["--sha", "1111111", "--timeout", "60s"]);
    let mut going = Going::start(&stage, "alice", &words)?;
    let first = going.line().await?;
    ensure!(
        first.starts_with("env/dev of shop has 111111111111"),
        "{first}"
    );
    let mut status = seen();
    status["environments"][0]["active"]["arrivedBy"] = "Baseline".into();
    Acting(&stage).strategy(&status).await?;
    let last = going.line().await?;
    ensure!(
        last == "env/dev: 111111111111 is accepted by alice: INC-4711",
        "{last}"
    );
    going.ends_well().await?;
    says(accept("dev", &[]), 2, "it is accepted already").await?;
    Ok(())
}

#[tokio::test]
async fn who_may_brings_an_environment_back_and_names_the_fix() -> Result<()> {
    let stage = shop("cli-promotions-revert").await?;
    let revert = |environment: &'static str, more: &[&'static str]| {
        let mut words = vec!["revert", "shop", environment, "--reason", "INC-4711"];
        words.extend(more);
        words
    };
    let says = async |user: &str, words: &[&str], code: i32, expected: &str| {
        says(&stage, user, words, code, expected).await
    };
    says(
        "victor",
        &revert("prod", &[]),
        2,
        "cannot bring env/prod back",
    )
    .await?;
    says(
        "alice",
        &revert("env/test", &[]),
        2,
        "it is not known where env/test could go back to",
    )
    .await?;
    let known = "they have with b5d8f7a6c5e4, aaaaf7a6c5e4";
    says(
        "alice",
        &revert("prod", &["--to", "123456789abc"]),
        2,
        known,
    )
    .await?;
    says(
        "alice",
        &["revert", "fresh", "env/other", "--reason", "a"],
        2,
        "it is not known yet",
    )
    .await?;
    let unknown = ["revert", "none", "prod", "--reason", "a"];
    says("alice", &unknown, 2, "there is no promotion strategy").await?;

    let ran = says(
        "alice",
        &revert("prod", &[]),
        0,
        "goes back from c0ffee1a2b3c to b5d8f7a6c5e4",
    )
    .await?;
    ensure!(
        ran.out.contains("its pull request is merged by a person"),
        "{ran:?}"
    );
    let reverts: Api<RevertCommit> = Api::namespaced(stage.client(), stage.namespace());
    let found = reverts.list(&Default::default()).await?.items;
    let [one] = found.as_slice() else {
        anyhow::bail!("{found:#?}")
    };
    ensure!(
        one.spec.from == "4".repeat(40) && one.spec.dry_sha == GOOD && one.spec.by == "alice",
        "{one:#?}"
    );
    ensure!(one.spec.hydrated_sha.is_none() && one.spec.merge.is_none());
    let name = one.metadata.name.clone().context("no name")?;
    ensure!(name.starts_with("shop-env-prod-"), "{name}");

    // The proposed fix is known, so that some digits are enough.
    says(
        "alice",
        &["fixed", &name, "f1f1f1f1f1f1"],
        0,
        "f1f1f1f1f1f1, and what descends from it, may",
    )
    .await?;
    ensure!(reverts.get(&name).await?.spec.fixed_by.as_deref() == Some(FIX));
    says("alice", &["fixed", &name, FIX], 0, "is named already").await?;
    says(
        "alice",
        &["fixed", &name, "1234567"],
        2,
        "write all 40 digits",
    )
    .await?;
    says("alice", &["fixed", &name, GOOD], 2, "fixes nothing").await?;
    says(
        "alice",
        &["fixed", "none", FIX],
        2,
        "there is no revert commit",
    )
    .await?;
    says("victor", &["get", "reverts"], 0, "f1f1f1f1f1f1").await?;

    let more = [
        "--to",
        "aaaaf7a6c5e4",
        "--merge",
        "after-checks",
        "--wait",
        "--timeout",
        "60s",
    ];
    let mut going = Going::start(&stage, "alice", &revert("env/prod", &more))?;
    let created = going.line().await?;
    ensure!(
        created.ends_with("goes back from c0ffee1a2b3c to aaaaf7a6c5e4"),
        "{created}"
    );
    let name = created
        .split_once('/')
        .and_then(|(_, rest)| rest.split_once(' '));
    let (name, _) = name.context("no name")?;
    ensure!(reverts.get(name).await?.spec.merge == Some(RevertMerge::AfterChecks));
    going.line().await?;
    going.line().await?;
    let waits = going.line().await?;
    ensure!(
        waits.ends_with("no controller has looked at it yet"),
        "{waits}"
    );
    Acting(&stage)
        .revert(name, &json!({"phase": "Open", "url": "https://git/8"}))
        .await?;
    let opened = going.line().await?;
    ensure!(
        opened == format!("waiting: {name} is Open (https://git/8)"),
        "{opened}"
    );
    Acting(&stage)
        .revert(name, &json!({"phase": "Merged"}))
        .await?;
    going.line().await?;
    going.ends_well().await
}
