//! The controller's service for those who ask, on a real API server, in this process.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use axum::body::Bytes;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use serde_json::json;
use sluice_tests::{Applier, Writes, rights};

use super::NAMESPACE;
use crate::bench::install;
use crate::bench::standby::Standby;

/// Who asks.
const ACCOUNT: &str = "asker";

/// What is asked about: a gate that two gatekeepers keep.
const GATE: &str = r#"
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: never-mind}
spec: {manual: {state: open, reason: "No freeze"}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: no-deploy-fridays}
spec:
  schedule:
    timeZone: Europe/London
    closed: [{name: fridays, cron: "0 0 * * FRI", duration: 24h}]
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: production}
spec: {gatekeepers: [{name: never-mind}, {name: no-deploy-fridays}]}
"#;

pub(super) struct Service {
    pub(super) address: SocketAddr,
    token: String,
    _standby: Standby,
}

impl Service {
    /// Starts it with a rate that nobody reaches, and somebody who may ask.
    pub(super) async fn start(client: &Client) -> Result<Self> {
        install(client).await?;
        let applier = Applier::new(client.clone()).in_namespace(NAMESPACE);
        applier.text(GATE).await?;
        let token = token(client).await?;

        let flags = [
            "--check-addr=127.0.0.1:0",
            "--check-rate=1000000",
            "--check-burst=1000000",
        ];
        let standby = Standby::start(client, NAMESPACE, &flags).await?;
        Ok(Self {
            address: standby.check().context("nobody is answered")?,
            token,
            _standby: standby,
        })
    }

    /// A check of the gate.
    pub(super) fn request(&self) -> Bytes {
        let body = json!({
            "gates": {"refs": [{"name": "production"}]},
            "namespace": NAMESPACE,
            "revision": "main@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3",
        })
        .to_string();
        let (token, length) = (&self.token, body.len());
        let request = format!(
            "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        request.into()
    }
}

/// A token of an account that may check the gate.
async fn token(client: &Client) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let account = ServiceAccount {
        metadata: ObjectMeta {
            name: Some(ACCOUNT.to_owned()),
            ..ObjectMeta::default()
        },
        ..ServiceAccount::default()
    };
    let post = PostParams::default();
    accounts.add(&account).await?;
    let user = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
    let right = rights::rule(sluice_crds::GROUP, &["gates"], &["check"]);
    rights::grant_rules(client.clone(), NAMESPACE, "check", &user, &[right]).await?;
    let wanted = TokenRequest::default();
    let issued = accounts.create_token_request(ACCOUNT, &post, &wanted);
    let status = issued.await?.status.context("no status")?;
    status.token.context("no token")
}
