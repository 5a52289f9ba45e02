//! Votes: in the name of the one who votes, counted by person and by revision.

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde_json::json;
use sluice_crds::{Approval, State};
use sluice_tests::controller::InProcess;
use sluice_tests::{Writes, poll};

use super::{COMMIT, asked};
use crate::policies::scene::refused_by;
use crate::stage::{DEADLINE, Stage, soon};

/// Two people have to approve; the author of the change does not count.
const RELEASE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: authors}
data: {list: \"main@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3 carol\\n\"}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: release}
spec:
  approval:
    required: 2
    validFor: 24h
    forbidSelf: {configMapRef: {name: authors, key: list}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: production}
spec: {gatekeepers: [{name: release}]}
";

/// People who may approve.
struct Ballot {
    stage: Stage,
    controller: InProcess,
}

impl Ballot {
    async fn open(word: &str) -> Result<Self> {
        let stage = Stage::installed(word, &soon(0)?.to_string()).await?;
        stage.apply(RELEASE).await?;
        stage
            .grant("sluice-approve", &["alice", "bob", "carol", "dave"])
            .await?;
        let controller = stage.start().await?;
        stage
            .says("production", State::Conditional, "DependsOnRevision")
            .await?;
        let ballot = Self { stage, controller };
        ballot.may_vote("dave").await?;
        Ok(ballot)
    }

    async fn approvals(&self, user: &str) -> Result<Api<Approval>> {
        let client = self.stage.cluster().client_for(user).await?;
        Ok(Api::namespaced(client, self.stage.namespace()))
    }

    /// Waits until the API server knows what the user may: the last of those who were granted it.
    async fn may_vote(&self, user: &str) -> Result<()> {
        let approvals = self.approvals(user).await?;
        poll(DEADLINE, "the right to be there", async || {
            approvals.list(&Default::default()).await.map(drop)
        })
        .await
    }

    async fn vote(&self, user: &str, decision: &str, by: &str) -> Result<kube::Result<Approval>> {
        self.vote_on(user, decision, by, &[]).await
    }

    async fn vote_on(
        &self,
        user: &str,
        decision: &str,
        by: &str,
        groups: &[&str],
    ) -> Result<kube::Result<Approval>> {
        let approval: Approval = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Approval",
            "metadata": {"generateName": "vote-"},
            "spec": {
                "gatekeeperRef": {"name": "release"},
                "revision": format!("main@sha1:{COMMIT}"),
                "decision": decision, "by": by, "groups": groups,
            },
        }))?;
        let approvals = self.approvals(user).await?;
        Ok(approvals.add(&approval).await)
    }

    /// Waits until the gate says this of the revision, and returns why.
    async fn says(&self, state: State) -> Result<String> {
        poll(DEADLINE, "the votes to count", async || {
            let (now, why) = self.of(COMMIT).await?;
            ensure!(now == state, "{now}: {why}");
            Ok::<_, anyhow::Error>(why)
        })
        .await
    }

    async fn of(&self, commit: &str) -> Result<(State, String)> {
        let revision = format!("main@sha1:{commit}");
        asked(&self.stage, &self.controller, "production", &revision).await
    }
}

#[tokio::test]
async fn enough_people_approve_of_one_revision_for_a_time() -> Result<()> {
    let ballot = Ballot::open("approvals").await?;
    assert_eq!(ballot.of(COMMIT).await?.0, State::Closed);
    // One person twice, and the author, are one.
    for user in ["alice", "alice", "carol"] {
        ballot.vote(user, "approve", user).await??;
    }
    let counted = |count: usize| {
        move |status: &sluice_crds::GatekeeperStatus| {
            let votes = status
                .evidence
                .as_ref()
                .and_then(|evidence| evidence.votes.first());
            votes.is_some_and(|votes| votes.approved_by.len() == count)
        }
    };
    ballot
        .stage
        .until_gatekeeper("release", "one vote", counted(1))
        .await?;
    let (state, why) = ballot.of(COMMIT).await?;
    assert_eq!(state, State::Closed, "{why}");

    ballot.vote("bob", "approve", "bob").await??;
    let why = ballot.says(State::Open).await?;
    assert!(why.contains("alice") && why.contains("bob"), "{why}");
    // No other revision is approved by that.
    let other = COMMIT.replace('4', "5");
    assert_eq!(ballot.of(&other).await?.0, State::Closed);

    // A rejection outweighs them, until its author takes it back.
    let rejection = ballot.vote("dave", "reject", "dave").await??;
    ballot.says(State::Closed).await?;
    let name = rejection.metadata.name.context("no name")?;
    let delete = Default::default();
    let by_alice = ballot
        .approvals("alice")
        .await?
        .delete(&name, &delete)
        .await;
    refused_by(
        "sluice-approvals",
        by_alice,
        "taken back by its author alone, who is \"dave\"",
    )?;
    ballot
        .approvals("dave")
        .await?
        .delete(&name, &delete)
        .await?;
    ballot.says(State::Open).await?;

    // A day later they count no more.
    let later: Timestamp = ballot.stage.now() + SignedDuration::from_hours(25);
    ballot.stage.set(&later.to_string());
    let (state, why) = ballot.of(COMMIT).await?;
    assert_eq!(state, State::Closed, "{why}");
    Ok(())
}

/// Under whatever name Kubernetes empties it.
#[tokio::test]
async fn a_rejection_goes_with_its_namespace() -> Result<()> {
    let ballot = Ballot::open("leaving").await?;
    ballot.vote("dave", "reject", "dave").await??;
    let namespaces: Api<Namespace> = Api::all(ballot.stage.client());
    let name = ballot.stage.namespace();
    namespaces.remove(name).await?;
    poll(DEADLINE, "the namespace to be gone", async || {
        let left = namespaces.get_opt(name).await?;
        ensure!(left.is_none(), "{:?}", left.and_then(|it| it.status));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn nobody_votes_in_the_name_of_others() -> Result<()> {
    let ballot = Ballot::open("voters").await?;
    let answer = ballot.vote("alice", "approve", "bob").await?;
    let expected = "spec.by: \"bob\" is not the requesting user; write \"alice\"";
    refused_by("sluice-approvals", answer, expected)?;
    let answer = ballot
        .vote_on("alice", "approve", "alice", &["admins"])
        .await?;
    refused_by(
        "sluice-approvals",
        answer,
        "spec.groups: \"alice\" is not in all of them",
    )?;
    let groups = ["system:authenticated"];
    let approval = ballot
        .vote_on("alice", "approve", "alice", &groups)
        .await??;
    // It never changes.
    let name = approval.metadata.name.context("no name")?;
    let patch = kube::api::Patch::Merge(json!({"spec": {"reason": "on second thought"}}));
    let admin: Api<Approval> = Api::namespaced(ballot.stage.client(), ballot.stage.namespace());
    let error = admin
        .patch(&name, &Default::default(), &patch)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("an Approval never changes"),
        "{error}"
    );
    // Without the right, nobody votes at all.
    let answer = ballot.vote("eve", "approve", "eve").await?;
    assert!(answer.is_err_and(|error| error.to_string().contains("forbidden")));
    Ok(())
}
