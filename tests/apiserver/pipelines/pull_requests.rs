//! Promotion by pull requests in a real Gitea: merged and closed by people, merged by the controller behind
//! a gate, and everything that is lost in between.

use anyhow::{Context, Result, ensure};
use http::Method;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use sluice_crds::GateStatus;
use sluice_crds::pipeline::{EnvironmentState, EnvironmentStatus, Phase, PromotionRecord};
use sluice_crds::pull_request::PullRequestState;
use sluice_tests::apply::Document;
use sluice_tests::gitea::BRANCH;
use sluice_tests::helm::{Helm, Release};
use sluice_tests::progress::Stderr;
use sluice_tests::rights::grant_rules;
use sluice_tests::{Applier, TEST_LABEL, poll, shared, status};

use super::shop::{NAME, PROD, Shop};
use crate::stage::DEADLINE;

fn record(prod: &EnvironmentStatus) -> Option<&PromotionRecord> {
    prod.promotion.as_ref()
}

fn is_open(prod: &EnvironmentStatus) -> bool {
    prod.state == EnvironmentState::PullRequestOpen
}

/// Takes the status from the pipeline, as a restore does.
async fn wipe(shop: &Shop) -> Result<()> {
    let nothing = Patch::Merge(json!({"status": null}));
    let params = PatchParams::default();
    shop.pipelines()
        .patch_status(NAME, &params, &nothing)
        .await?;
    Ok(())
}

async fn delete_children(shop: &Shop) -> Result<()> {
    for name in shop.children().await? {
        shop.pull_requests()
            .delete(&name, &DeleteParams::default())
            .await?;
    }
    Ok(())
}

/// One pull request is merged, and there are never two open, whatever is lost meanwhile, and whenever the
/// controller is stopped.
#[tokio::test]
async fn what_a_person_merges_arrives_and_never_are_two_open() -> Result<()> {
    let shop = Shop::open("pulls", json!({})).await?;
    let controller = shop.start().await?;
    shop.begins().await?;
    shop.dev_runs("1.1.0").await?;
    let prod = shop
        .prod_says("the pull request to be open", is_open)
        .await?;
    let first = record(&prod).context("no record")?.clone();
    let pulls = shop.pulls_are(&["open"]).await?;
    let head = pulls[0]["head"]["ref"].as_str().unwrap_or_default();
    assert_eq!(shop.said_on(head).await?, shop.file("1.1.0"));

    // The status is lost while nobody runs.
    controller.stop().await;
    wipe(&shop).await?;
    let controller = shop.start().await?;
    let again = shop.prod_says("the record to be back", is_open).await?;
    ensure!(record(&again).is_some_and(|it| it.key == first.key));

    // Its object is lost.
    let children = shop.children().await?;
    delete_children(&shop).await?;
    poll(DEADLINE, "the object to be there again", async || {
        let now = shop.children().await?;
        ensure!(now == children, "{now:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await?;

    // Both are lost: the forge still knows it, and nobody knows whose it is. It is closed, and another run
    // opens another.
    controller.stop().await;
    delete_children(&shop).await?;
    wipe(&shop).await?;
    let _controller = shop.start().await?;
    let is_next = |prod: &EnvironmentStatus| {
        is_open(prod) && record(prod).is_some_and(|it| it.run > first.run)
    };
    shop.prod_says("another run to open another", is_next)
        .await?;
    shop.pulls_are(&["closed", "open"]).await?;

    shop.merge(2).await?;
    shop.prod_runs("1.1.0").await?;
    let is_done = |prod: &EnvironmentStatus| {
        let record = record(prod).filter(|it| it.phase == Phase::Succeeded);
        let of = record.and_then(|it| it.pull_request.as_ref());
        prod.state == EnvironmentState::Passed && of.is_some_and(|it| it.merge_commit.is_some())
    };
    shop.prod_says("the merge to be recorded", is_done).await?;
    shop.pulls_are(&["closed", "merged"]).await?;
    assert_eq!(shop.said_on(BRANCH).await?, shop.file("1.1.0"));
    shop.rests().await
}

/// What a person has closed is not opened again, until somebody asks for another run. A revision that takes
/// the place of another closes its pull request first.
#[tokio::test]
async fn what_a_person_closes_is_abandoned_and_what_is_superseded_is_closed() -> Result<()> {
    let shop = Shop::open("closes", json!({})).await?;
    let _controller = shop.start().await?;
    shop.begins().await?;
    shop.dev_runs("1.1.0").await?;
    shop.prod_says("the pull request to be open", is_open)
        .await?;
    let closed = json!({"state": "closed"});
    shop.ask(Method::PATCH, "/pulls/1", &closed).await?;
    shop.pass();
    let is_abandoned = |prod: &EnvironmentStatus| prod.state == EnvironmentState::Abandoned;
    shop.prod_says("it to be abandoned", is_abandoned).await?;

    let again = json!({"metadata": {"annotations": {"sluice.dev/retry": "once more"}}});
    let params = PatchParams::default();
    shop.pipelines()
        .patch(NAME, &params, &Patch::Merge(again))
        .await?;
    shop.prod_says("another run to open another", is_open)
        .await?;
    shop.pulls_are(&["closed", "open"]).await?;

    shop.dev_runs("1.2.0").await?;
    let is_next = |prod: &EnvironmentStatus| {
        is_open(prod) && record(prod).is_some_and(|it| it.revision == "1.2.0")
    };
    let prod = shop
        .prod_says("1.2.0 to have a pull request", is_next)
        .await?;
    let run = record(&prod).context("no record")?.run;
    shop.pulls_are(&["closed", "closed", "open"]).await?;
    shop.has_told(&[
        ("RunStarted", 4),
        ("PullRequestOpened", 3),
        ("Abandoned", 1),
        ("Superseded", 1),
    ])
    .await?;

    // The pipeline goes, and comes back: its pull request is still there, and nobody knows whose it is.
    shop.delete(DeleteParams::background()).await?;
    shop.create().await?;
    let is_another =
        |prod: &EnvironmentStatus| is_next(prod) && record(prod).is_some_and(|it| it.run > run);
    shop.prod_says("1.2.0 to have another", is_another).await?;
    shop.pulls_are(&["closed", "closed", "closed", "open"])
        .await?;
    shop.rests().await
}

/// A Pipeline that comes back closes what was left open, and does not believe the objects that are being
/// deleted with the one before. Objects that were to be kept go on.
#[tokio::test]
async fn a_pipeline_that_comes_back_goes_on_only_with_what_was_kept() -> Result<()> {
    let shop = Shop::open("back", json!({})).await?;
    let _controller = shop.start().await?;
    shop.begins().await?;
    shop.dev_runs("1.1.0").await?;
    let mut last = shop
        .prod_says("the pull request to be open", is_open)
        .await?;
    let mut pulls = vec!["open"];
    for _ in 0..3 {
        let run = record(&last).context("no record")?.run;
        shop.pulls_are(&pulls).await?;
        shop.delete(DeleteParams::background()).await?;
        shop.create().await?;
        let is_another =
            |prod: &EnvironmentStatus| is_open(prod) && record(prod).is_some_and(|it| it.run > run);
        last = shop
            .prod_says("another run to open another", is_another)
            .await?;
        pulls.insert(0, "closed");
        shop.pulls_are(&pulls).await?;
    }

    let kept = record(&last).context("no record")?.key.clone();
    shop.collected().await?;
    shop.delete(DeleteParams::orphan()).await?;
    shop.create().await?;
    let is_kept =
        |prod: &EnvironmentStatus| is_open(prod) && record(prod).is_some_and(|it| it.key == kept);
    shop.prod_says("what was kept to go on", is_kept).await?;
    let uid = shop.pipelines().get(NAME).await?.metadata.uid;
    poll(DEADLINE, "what was kept to have an owner", async || {
        let all = shop.pull_requests().list(&ListParams::default()).await?;
        let found = all.iter().find(|it| it.spec.about.key == kept);
        let owners = found.and_then(|it| it.metadata.owner_references.as_ref());
        let owner = owners.and_then(|all| all.first()).map(|it| it.uid.clone());
        ensure!(owner == uid, "{owner:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    shop.pulls_are(&pulls).await?;
    shop.rests().await
}

/// Lets the pull request be opened before the gates are asked.
async fn ask_at_merge(shop: &Shop) -> Result<()> {
    let at_merge = json!([{"op": "add", "path": "/spec/environments/1/gateAt", "value": "merge"}]);
    let patch: Patch<()> = Patch::Json(serde_json::from_value(at_merge)?);
    shop.pipelines()
        .patch(NAME, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// Whether the gates hold back the merge of one that is open.
fn is_held(prod: &EnvironmentStatus) -> bool {
    let of = record(prod).and_then(|record| record.pull_request.as_ref());
    let state = of.and_then(|it| it.state);
    prod.state == EnvironmentState::GatesClosed && state == Some(PullRequestState::Open)
}

/// The controller merges when the gate opens, and not before; and the forge shows why it waits.
#[tokio::test]
async fn the_controller_merges_once_behind_a_gate() -> Result<()> {
    let shop = Shop::open("merges", json!({"merge": "auto"})).await?;
    let _controller = shop.start().await?;
    shop.begins().await?;
    // It may be opened, and not be merged.
    ask_at_merge(&shop).await?;
    shop.turn("closed").await?;
    shop.dev_runs("1.1.0").await?;
    shop.prod_says("the gate to hold an open one", is_held)
        .await?;
    let pulls = shop.pulls_are(&["open"]).await?;
    let head = pulls[0]["head"]["sha"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let status = async |expected: &str| {
        let path = format!("/commits/{head}/status");
        poll(DEADLINE, "the commit status", async || {
            let said = shop.ask(Method::GET, &path, &Value::Null).await?;
            ensure!(said["state"] == expected, "{said}");
            Ok::<_, anyhow::Error>(said)
        })
        .await
    };
    let said = status("pending").await?;
    let context = said["statuses"][0]["context"].as_str().unwrap_or_default();
    ensure!(
        context.starts_with("sluice/gate/") && context.ends_with(PROD),
        "{context}"
    );

    shop.turn("open").await?;
    shop.pulls_are(&["merged"]).await?;
    status("success").await?;
    assert_eq!(shop.said_on(BRANCH).await?, shop.file("1.1.0"));
    let is_recorded =
        |prod: &EnvironmentStatus| record(prod).is_some_and(|it| it.phase == Phase::Succeeded);
    shop.prod_says("the merge to be recorded", is_recorded)
        .await?;
    shop.prod_runs("1.1.0").await?;
    let is_passed = |prod: &EnvironmentStatus| prod.state == EnvironmentState::Passed;
    shop.prod_says("prod to run it", is_passed).await?;
    shop.pulls_are(&["merged"]).await?;
    let once = [
        ("PullRequestOpened", 1),
        ("Merged", 1),
        ("MergedPastGate", 0),
    ];
    shop.has_told(&once).await?;
    shop.rests().await
}

/// Nobody keeps a person from merging what a gate holds back: it is told.
#[tokio::test]
async fn a_person_who_merges_past_a_closed_gate_is_told_of() -> Result<()> {
    let shop = Shop::open("past", json!({})).await?;
    let _controller = shop.start().await?;
    shop.begins().await?;
    ask_at_merge(&shop).await?;
    shop.turn("closed").await?;
    shop.dev_runs("1.1.0").await?;
    shop.prod_says("the gate to hold an open one", is_held)
        .await?;
    shop.merge(1).await?;
    shop.pass();
    let is_past = |prod: &EnvironmentStatus| {
        let record = record(prod).filter(|it| it.phase == Phase::Succeeded);
        record.is_some_and(|it| it.reason.as_deref() == Some("MergedPastGate"))
    };
    shop.prod_says("the merge to be recorded", is_past).await?;
    shop.prod_runs("1.1.0").await?;
    let is_passed = |prod: &EnvironmentStatus| prod.state == EnvironmentState::Passed;
    shop.prod_says("prod to run it", is_passed).await?;
    let once = [
        ("PullRequestOpened", 1),
        ("MergedPastGate", 1),
        ("Merged", 0),
    ];
    shop.has_told(&once).await?;
    shop.rests().await
}

/// What the second Deployment of the chart may do: in one namespace, and in none.
fn rights_at_forges() -> Result<(Vec<Value>, Value)> {
    let release = Release {
        values: json!({
            "controller": {"watchAllNamespaces": false},
            "pipelines": {"forge": {"separate": true}},
        }),
        ..Release::default()
    };
    let documents = Helm::ensure(&Stderr::new())?.template(&release)?;
    let rules = |kind: &str| {
        let is_it = |document: &&Document| {
            let types = document.object.types.as_ref();
            types.is_some_and(|types| types.kind == kind)
                && document.object.name_any() == "gate-controller-forge"
        };
        let found = documents.iter().find(is_it);
        let found = found.with_context(|| format!("no {kind}"))?;
        Ok::<_, anyhow::Error>(found.object.data["rules"].clone())
    };
    let within = rules("Role")?;
    let within = within.as_array().context("no list")?.clone();
    Ok((within, rules("ClusterRole")?))
}

/// A client with just these rights, and that to the token.
async fn at_forges(shop: &Shop) -> Result<Client> {
    let pipeline = shop.pipelines().get(NAME).await?;
    let namespace = pipeline.namespace().context("no namespace")?;
    let name = format!("forge-of-{namespace}");
    let (mut within, without) = rights_at_forges()?;
    within.push(json!({
        "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["git-token"], "verbs": ["get"],
    }));
    let own = shop.pipelines().into_client();
    grant_rules(own.clone(), &namespace, "forge", &name, &within).await?;
    let metadata = json!({"name": name, "labels": {TEST_LABEL: "true"}});
    let group = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": metadata,
        "rules": without,
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": name}],
    });
    let applier = Applier::new(own);
    applier.text(&role.to_string()).await?;
    applier.text(&binding.to_string()).await?;
    shared().await?.client_for(&name).await
}

/// One process decides, and does nothing at the forge; another, with the account that the chart gives it,
/// works there.
#[tokio::test]
async fn two_processes_share_the_kinds() -> Result<()> {
    let shop = Shop::open("shared-kinds", json!({})).await?;
    let others = [
        "Gate",
        "GatePolicy",
        "GatedSource",
        "Gatekeeper",
        "Pipeline",
    ];
    let deciding = shop.start_with(&others).await?;
    shop.begins().await?;
    shop.dev_runs("1.1.0").await?;
    let is_begun = |prod: &EnvironmentStatus| {
        record(prod).is_some_and(|it| it.phase == Phase::Attempting && it.pull_request.is_some())
    };
    shop.prod_says("the promotion to be begun", is_begun)
        .await?;
    poll(DEADLINE, "the object of the pull request", async || {
        let children = shop.children().await?;
        ensure!(children.len() == 1, "{children:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    // What comes later is dealt with, and that object is not.
    shop.apply(&json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
        "metadata": {"name": "later"}, "spec": {"default": "open"},
    }))
    .await?;
    let is_said = |status: &GateStatus| status.state.is_some();
    let what = "a gate to be looked at";
    status::until(&shop.gates(), "later", DEADLINE, what, is_said).await?;
    deciding.rests().await?;
    let pulls = shop.pulls().await?;
    ensure!(pulls.is_empty(), "it has worked at the forge: {pulls:?}");
    let all = shop.pull_requests().list(&ListParams::default()).await?;
    let untouched = all.iter().all(|it| it.status.is_none());
    ensure!(all.items.len() == 1 && untouched, "{all:?}");
    let client = at_forges(&shop).await?;
    let _working = shop.start_as(client, &["PullRequest"]).await?;
    shop.prod_says("the pull request to be open", is_open)
        .await?;
    shop.pulls_are(&["open"]).await?;
    shop.rests().await
}
