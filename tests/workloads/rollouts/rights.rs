//! What the account of a Rollout may do, and what it may not.

use std::sync::LazyLock;

use anyhow::{Context, Result, anyhow, ensure};
use jiff::SignedDuration;
use kube::ResourceExt;
use rstest::rstest;
use serde_json::{Value, json};
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::BatchRollingState;
use sluice_tests::apply::Document;
use sluice_tests::helm::{Helm, Release};
use sluice_tests::progress::Stderr;
use sluice_tests::workloads::{Counts, Kind, Readiness, Replica, Workload};

use super::news::tells;
use super::play::{Play, in_place, is_blocked, of_pair, says, updated};

/// The ClusterRole of the chart that an admin binds to the account.
const ROLE: &str = "sluice-rollout";

/// Its rules.
pub fn shipped() -> Result<Vec<Value>> {
    static RULES: LazyLock<Result<Vec<Value>, String>> =
        LazyLock::new(|| rules().map_err(|error| format!("{error:#}")));
    let rules = RULES.clone();
    rules.map_err(|error| anyhow!("the chart gives no rights: {error}"))
}

fn rules() -> Result<Vec<Value>> {
    let release = Release {
        values: json!({"rollouts": {"enabled": true}}),
        ..Release::default()
    };
    let documents = Helm::ensure(&Stderr::new())?.template(&release)?;
    let is_role = |document: &&Document| {
        let types = document.object.types.as_ref();
        types.is_some_and(|it| it.kind == "ClusterRole") && document.object.name_any() == ROLE
    };
    let role = documents.iter().find(is_role);
    let role = role.with_context(|| format!("no ClusterRole {ROLE}"))?;
    let rules = role.object.data["rules"].as_array();
    rules.cloned().context("no rules")
}

/// The same without one right.
fn without(verb: &str, resource: &str) -> Result<Vec<Value>> {
    let mut rules = shipped()?;
    for rule in &mut rules {
        let resources = rule["resources"].as_array().context("no resources")?;
        if resources.iter().any(|it| it == resource) {
            let verbs = rule["verbs"].as_array_mut().context("no verbs")?;
            verbs.retain(|it| it != verb);
        }
    }
    rules.retain(|rule| rule["verbs"] != json!([]));
    ensure!(rules != shipped()?, "{ROLE} does not give it");
    Ok(rules)
}

/// What an admin has to do.
fn remedy(play: &Play) -> String {
    let namespace = play.stage.namespace();
    format!(
        "`kubectl create serviceaccount sluice-rollout -n {namespace}` and `kubectl create \
         rolebinding sluice-rollout -n {namespace} --clusterrole={ROLE} \
         --serviceaccount={namespace}:sluice-rollout`"
    )
}

/// Waits until a right is missing, and returns what is said of it.
async fn stalls(play: &Play, reason: &str) -> Result<String> {
    let stalled = |status: &RolloutStatus| says(status, "Stalled") == Some(("True", reason));
    let status = play.until("it to say so", stalled).await?;
    assert_eq!(says(&status, "Ready"), Some(("False", reason)));
    let ready = status.conditions.into_iter().find(|it| it.type_ == "Ready");
    Ok(ready.context("no Ready")?.message)
}

/// The commands are whole, however long the name of the namespace is.
#[tokio::test]
async fn what_the_account_may_not_do_is_told_with_the_remedy() -> Result<()> {
    let play = Play::without_rights("rights-of-a-namespace-that-has-a-long-name").await?;
    let (_old, new) = play.pair(2).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    play.rollout(of_pair(&json!({"numBatches": 2}))).await?;
    let told = stalls(&play, "WriteRefused").await?;
    ensure!(told.contains(&remedy(&play)), "{told}");
    assert_eq!(new.looked_at().await?["replicas"], Value::Null);
    Ok(())
}

/// A pod of the first batch is broken, and the deadline passes: the old template is to come back.
async fn fails(play: &Play, db: &Workload) -> Result<()> {
    let broken = |pods: &[Replica]| pods.iter().any(|pod| pod.version == "2" && !pod.ready);
    db.until_pods("one to be broken", broken).await?;
    let waits = |status: &RolloutStatus| {
        status.batch_rolling_state == Some(BatchRollingState::BatchVerifying)
    };
    play.until("it to wait for its pods", waits).await?;
    play.pass(SignedDuration::from_mins(11));
    Ok(())
}

/// What needs the right waits for it, and is done once it is there.
#[rstest]
#[case::to_count_pods("list", "pods", "ReadRefused")]
#[case::to_find_the_old_template("get", "controllerrevisions", "ReadRefused")]
#[case::to_replace_a_broken_pod("delete", "pods", "WriteRefused")]
#[tokio::test]
async fn a_right_that_is_left_out_is_told_once_with_the_remedy(
    #[case] verb: &str,
    #[case] resource: &str,
    #[case] reason: &str,
) -> Result<()> {
    let play = Play::without_rights("right").await?;
    play.grant(&without(verb, resource)?).await?;
    let db = play.armed(Kind::StatefulSet).await?;
    db.release("2", Readiness::Broken).await?;
    db.has(updated(0)).await?;
    play.gate("open").await?;
    let controller = play.stage.start().await?;
    let mut spec = in_place(Kind::StatefulSet, &json!({"numBatches": 2}));
    spec["onFailure"] = json!("Revert");
    play.rollout(spec).await?;
    // Pods are counted before any of them is replaced.
    let is_at_once = verb == "list";
    if !is_at_once {
        fails(&play, &db).await?;
    }
    let told = stalls(&play, reason).await?;
    let refused = format!("cannot {verb} resource \"{resource}\"");
    ensure!(
        told.contains(&refused) && told.contains(&remedy(&play)),
        "{told}"
    );
    let mut writes = Vec::new();
    // What may not be read holds the run, for longer than its deadline.
    let minutes = if reason == "ReadRefused" { 5 } else { 1 };
    for _ in 0..3 {
        play.pass(SignedDuration::from_mins(minutes));
        play.rests(&controller).await?;
        writes.push(play.writes(&controller).await?);
    }
    assert_eq!(writes[0], writes[2], "{writes:?}");
    assert_eq!(stalls(&play, reason).await?, told);
    play.grant(&shipped()?).await?;
    play.pass(SignedDuration::from_mins(1));
    if is_at_once {
        fails(&play, &db).await?;
    }
    play.fails("ProgressDeadlineExceeded").await?;
    db.has(Counts::all(4)).await?;
    let is_meant = |line: &str| line.contains(reason) || line.contains(" RolloutFailed ");
    let expected = [
        format!("Rollout web: Warning {reason} of 2: {told}"),
        "Rollout web: Warning RolloutFailed of 2: ".to_owned(),
    ];
    tells(&play, is_meant, &expected).await
}

/// In a namespace that is deleted, the rights may go before the Rollout.
#[tokio::test]
async fn a_rollout_that_is_deleted_goes_also_where_its_account_may_nothing() -> Result<()> {
    let play = Play::new("going").await?;
    let db = play.armed(Kind::StatefulSet).await?;
    play.gate("open").await?;
    let _controller = play.stage.start().await?;
    let plan = json!({"numBatches": 2, "lastBatchToRollout": 0, "revertOnDelete": true});
    play.rollout(in_place(Kind::StatefulSet, &plan)).await?;
    play.until("it to wait for a person", is_blocked).await?;
    db.has(updated(2)).await?;
    play.grant(&[]).await?;
    play.delete().await?;
    play.gone_in_time().await
}
