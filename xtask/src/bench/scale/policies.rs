//! The chart's admission policies on the server of the benchmark: what they cost is measured.
//!
//! What comes in: a client, under whose name the controller acts here, too. What goes out: policies
//! that judge everybody else, and a server without them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use sluice_crds::Gate;
use sluice_tests::{Applier, Writes, helm, poll};

use super::NAMESPACE;
use crate::server::{marked, sweep};

/// Until what was stored is in effect.
const PATIENCE: Duration = Duration::from_secs(30);

/// Installs them for a controller that acts under the client's name, which is returned.
pub(super) async fn install(client: &Client) -> Result<String> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = SelfSubjectReview::default();
    let review = reviews.add(&review).await?;
    let user = review.status.and_then(|status| status.user_info?.username);
    let user = user.context("the API server does not say who we are")?;
    let policies = marked(helm::policies(&[&user])?);
    Applier::new(client.clone()).documents(policies).await?;
    until(client, true).await?;
    Ok(user)
}

/// Takes them away.
pub(super) async fn remove(client: &Client) -> Result<()> {
    sweep(client).await?;
    until(client, false).await
}

/// Waits until they judge, or do not any more: a force that says nothing is refused or let pass.
async fn until(client: &Client, judged: bool) -> Result<()> {
    let gates: Api<Gate> = Api::namespaced(client.clone(), NAMESPACE);
    let rehearsal = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let force = json!({"metadata": {"annotations": {"sluice.dev/force": "ajar"}}});
    let what = "the admission policies to come into effect, or out of it";
    poll(PATIENCE, what, async || {
        let answer = gates
            .patch("gate-000000", &rehearsal, &Patch::Merge(&force))
            .await;
        ensure!(answer.is_err() == judged, "{answer:?}");
        Ok(())
    })
    .await
}
