//! `approve` and `reject`; and what else is said about one revision: `check`, `why`, `wait`,
//! `pending`.

use anyhow::{Result, ensure};
use serde_json::Value;
use sluice_crds::{Approval, State};
use sluice_tests::controller::InProcess;
use sluice_tests::poll;

use super::{Going, may_list, run, says};
use crate::stage::{DEADLINE, Stage, soon};

const COMMIT: &str = "main@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";
const OTHER: &str = "main@sha1:0000000000000000000000000000000000000001";

/// Somebody who is not a person.
const ROBOT: &str = "system:serviceaccount:ci:robot";

/// Two people have to approve, and one of a group that nobody here is in.
const RELEASE: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: release}
spec: {approval: {required: 2}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: security}
spec: {approval: {groups: [security-officers]}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: production}
spec: {gatekeepers: [{name: release}]}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: both}
spec: {gates: {refs: [{name: production}]}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: outer}
spec: {gatekeepers: [{name: both}]}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: strict}
spec: {gatekeepers: [{name: release}, {name: security}]}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: static}
spec: {default: open}
";

/// People who may approve and see gates.
async fn polls() -> Result<(Stage, InProcess)> {
    let stage = Stage::installed("cli-votes", &soon(0)?.to_string()).await?;
    stage.apply(RELEASE).await?;
    for role in ["sluice-approve", "sluice-view"] {
        stage.grant(role, &["alice", "bob", "dave", ROBOT]).await?;
    }
    let controller = stage.start().await?;
    for gate in ["production", "outer"] {
        stage
            .until(gate, "it depends", |status| {
                status.state == Some(State::Conditional)
            })
            .await?;
    }
    may_list::<Approval>(&stage, "dave").await?;
    Ok((stage, controller))
}

#[tokio::test]
async fn people_approve_and_reject_in_their_own_name() -> Result<()> {
    let (stage, _controller) = polls().await?;
    let approve = ["approve", "production", "-r", COMMIT, "--reason", "tried"];
    let first = says(&stage, "alice", &approve, 0, "has 1 of 2 approvals (alice)").await?;
    ensure!(
        first.out.starts_with("approval.sluice.dev/release-"),
        "{first:?}"
    );
    let again = says(&stage, "alice", &approve, 0, "you have said so already").await?;
    ensure!(!again.out.contains("created"), "{again:?}");

    let pending = says(&stage, "alice", &["pending"], 0, "gatekeeper/release").await?;
    ensure!(
        pending.out.contains(COMMIT) && pending.out.contains("1 of 2"),
        "{pending:?}"
    );

    says(&stage, "bob", &approve, 0, "production is Open (Approved)").await?;
    let said = says(
        &stage,
        "dave",
        &["check", "production", "outer", "-r", COMMIT],
        0,
        "outer is Open",
    )
    .await?;
    ensure!(said.out.contains("alice, bob"), "{said:?}");
    says(
        &stage,
        "dave",
        &["check", "production", "-r", OTHER],
        1,
        "has 0 of 2 approvals",
    )
    .await?;
    says(&stage, "dave", &["check", "production"], 1, "Conditional").await?;
    says(&stage, "dave", &["pending"], 0, "Nothing waits.").await?;

    let json = run(
        &stage,
        "dave",
        &["check", "production", "-r", COMMIT, "-o", "json"],
    )
    .await?;
    let json: Value = serde_json::from_str(&json.out)?;
    ensure!(
        json["subject"]["revision"] == COMMIT && json["allowed"] == true,
        "{json}"
    );

    let why = says(
        &stage,
        "dave",
        &["why", "outer", "-r", COMMIT],
        0,
        "gate production is Open",
    )
    .await?;
    for told in [
        "for main@sha1:4f2a",
        "both is Open",
        "release is Open",
        "2 of 2 approvals",
    ] {
        ensure!(why.out.contains(told), "{told}: {}", why.out);
    }

    let reject = ["reject", "gatekeeper/release", "-r", COMMIT];
    says(&stage, "dave", &reject, 0, "is rejected by dave").await?;
    says(
        &stage,
        "alice",
        &["check", "production", "-r", COMMIT],
        1,
        "is rejected by dave",
    )
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_vote_that_would_not_count_is_refused() -> Result<()> {
    let (stage, _controller) = polls().await?;
    for (arguments, expected) in [
        (
            ["approve", "strict", "-r", COMMIT],
            "choose one: gatekeeper/release, gatekeeper/security",
        ),
        (
            ["approve", "gatekeeper/security", "-r", COMMIT],
            "wants a member of security-officers",
        ),
        (
            ["approve", "static", "-r", COMMIT],
            "no gatekeeper of the gate static asks for approvals",
        ),
        (
            ["approve", "gatekeeper/both", "-r", COMMIT],
            "asks for no approvals",
        ),
        (
            ["approve", "nowhere", "-r", COMMIT],
            "cannot read the gate nowhere",
        ),
        (
            ["approve", "production", "-r", "main@sha1:4f2a9c1"],
            "is not a digest of a known length",
        ),
    ] {
        let refused = says(&stage, "alice", &arguments, 2, expected).await?;
        ensure!(refused.out.is_empty(), "{refused:?}");
    }
    let approve = ["approve", "production", "-r", COMMIT];
    says(
        &stage,
        ROBOT,
        &approve,
        2,
        "is a ServiceAccount, which is not a person",
    )
    .await?;
    let denied = ["approve", "production", "-r", COMMIT];
    stage.grant("sluice-view", &["victor"]).await?;
    poll(DEADLINE, "victor to see gates", async || {
        says(&stage, "victor", &["get", "production"], 0, "production").await
    })
    .await?;
    says(
        &stage,
        "victor",
        &denied,
        2,
        "cannot create resource \"approvals\"",
    )
    .await?;
    Ok(())
}

#[tokio::test]
async fn anyone_who_waits_for_a_revision_is_told_of_each_vote() -> Result<()> {
    let (stage, _controller) = polls().await?;
    let arguments = ["wait", "outer", "-r", COMMIT];
    let mut waiting = Going::start(&stage, "dave", &arguments)?;
    let first = waiting.line().await?;
    ensure!(first.contains("0 of 2 approvals"), "{first}");
    let approve = ["approve", "production", "-r", COMMIT];
    says(&stage, "alice", &approve, 0, "1 of 2").await?;
    let second = waiting.line().await?;
    ensure!(second.contains("1 of 2 approvals (alice)"), "{second}");
    says(&stage, "bob", &approve, 0, "2 of 2").await?;
    let last = waiting.line().await?;
    ensure!(last.starts_with("outer is Open"), "{last}");
    waiting.ends_well().await
}
