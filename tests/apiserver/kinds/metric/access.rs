//! Whom Prometheus knows: passwords, certificates, and Secrets that change.

use anyhow::{Context, Result, ensure};
use kube::Api;
use serde_json::json;
use sluice_crds::gatekeeper::MetricStatus;
use sluice_crds::{Gatekeeper, State};
use sluice_tests::Writes;
use sluice_tests::prometheus::{Access, PASSWORD, USER};

use super::super::{kept, secret};
use super::{NOON, errors, prometheus};
use crate::stage::{Stage, message};

#[tokio::test]
async fn prometheus_is_asked_as_somebody_it_knows() -> Result<()> {
    let access = Access {
        password: true,
        tls: true,
    };
    let prometheus = prometheus(access).await?;
    prometheus.set("errors", 0.02).await?;
    let stage = Stage::new("access", NOON).await?;
    let authority = json!({"ca.crt": prometheus.authority().context("no authority")?});
    stage.apply(&secret("authority", &authority)).await?;
    stage
        .apply(&secret(
            "reader",
            &json!({"username": USER, "password": PASSWORD}),
        ))
        .await?;
    let both = json!({
        "secretRef": {"name": "reader"}, "certSecretRef": {"name": "authority"},
    });
    let stranger = json!({"secretRef": {"name": "reader"}});
    let nobody = json!({"certSecretRef": {"name": "authority"}});
    let absent = json!({
        "secretRef": {"name": "absent"}, "certSecretRef": {"name": "authority"},
    });
    for (name, with) in [
        ("known", both),
        ("stranger", stranger),
        ("nobody", nobody),
        ("absent", absent),
    ] {
        stage.apply(&kept(name, &errors(&prometheus, with))).await?;
    }
    let _controller = stage.start_with_egress().await?;
    stage.says("known", State::Open, "InRange").await?;
    let missing = format!("there is no Secret {}/absent", stage.namespace());
    for (name, words) in [
        (
            "stranger",
            "its certificate is not trusted; put the certificate of its authority",
        ),
        (
            "nobody",
            "https://127.0.0.1: status 401; name a Secret with credentials in secretRef",
        ),
        ("absent", missing.as_str()),
    ] {
        let status = stage
            .says(name, State::Closed, "EvidenceUnavailable")
            .await?;
        ensure!(message(&status).contains(words), "{name}: {status:?}");
    }

    // The Secret is read each time: after it is repaired, a look that somebody asks for succeeds at once.
    stage
        .apply(&secret("reader", &json!({"password": "close sesame"})))
        .await?;
    look(&stage, "known", "1").await?;
    let wrong = |metric: &MetricStatus| {
        let error = metric.error.as_deref().unwrap_or_default();
        error.contains("status 401; correct the credentials in the Secret of secretRef")
    };
    stage.measured("known", "wrong credentials", wrong).await?;
    stage
        .apply(&secret("reader", &json!({"password": PASSWORD})))
        .await?;
    look(&stage, "known", "2").await?;
    stage
        .measured("known", "right credentials", |metric| {
            metric.error.is_none()
        })
        .await?;
    Ok(())
}

/// Asks for a look, as `flux reconcile` does.
async fn look(stage: &Stage, gatekeeper: &str, when: &str) -> Result<()> {
    let ask = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": when}}});
    let gatekeepers: Api<Gatekeeper> = stage.gatekeepers();
    gatekeepers.merge(gatekeeper, ask).await?;
    Ok(())
}
