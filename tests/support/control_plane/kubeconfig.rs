//! The kubeconfig of a local control plane: one context a user, named as the user.
//!
//! What comes in: the server's port, its certificate and the users. What goes out: a file that
//! `kubectl`, `kubectl gate` and the controller read like any other.

use std::fs;
use std::path::Path;

use anyhow::Result;
use kube::config::{
    AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};

use super::User;

/// The name of the cluster in the file.
const CLUSTER: &str = "sluice";

/// Writes `target`, with the first of `users` as the current one.
pub(super) fn write(target: &Path, port: u16, certificate: &Path, users: &[User]) -> Result<()> {
    let config = Kubeconfig {
        kind: Some("Config".to_owned()),
        api_version: Some("v1".to_owned()),
        clusters: vec![NamedCluster {
            name: CLUSTER.to_owned(),
            cluster: Some(Cluster {
                server: Some(format!("https://127.0.0.1:{port}")),
                certificate_authority: Some(certificate.display().to_string()),
                ..Cluster::default()
            }),
            ..NamedCluster::default()
        }],
        auth_infos: users.iter().map(credentials).collect(),
        contexts: users.iter().map(context).collect(),
        current_context: users.first().map(|user| user.name.clone()),
        ..Kubeconfig::default()
    };
    fs::write(target, serde_saphyr::to_string(&config)?)?;
    Ok(())
}

fn credentials(user: &User) -> NamedAuthInfo {
    NamedAuthInfo {
        name: user.name.clone(),
        auth_info: Some(AuthInfo {
            token: Some(user.token.clone().into()),
            ..AuthInfo::default()
        }),
        ..NamedAuthInfo::default()
    }
}

fn context(user: &User) -> NamedContext {
    NamedContext {
        name: user.name.clone(),
        context: Some(Context {
            cluster: CLUSTER.to_owned(),
            user: Some(user.name.clone()),
            ..Context::default()
        }),
        ..NamedContext::default()
    }
}
