//! The second API server, with an account that may read the apps there.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::Kubeconfig;
use kube::{Api, Client};
use serde_json::{Value, json};
use sluice_tests::line::{self, Line};
use sluice_tests::progress::Stderr;
use sluice_tests::{Applier, Binaries, ControlPlane, Options, poll};

const ACCOUNT: &str = "reader";
const NAMESPACE: &str = "default";
/// How long watches may take to be opened, or to be known to have ended.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Elsewhere {
    client: Client,
    server: String,
    authority: String,
    /// The way to the cluster that is going to be lost.
    line: Line,
    _plane: ControlPlane,
}

impl Elsewhere {
    pub(super) async fn start() -> Result<Self> {
        let binaries = Binaries::ensure(&Stderr::new())?;
        let plane = ControlPlane::start(&binaries, Options::default()).await?;
        let kubeconfig = Kubeconfig::read_from(plane.cluster().kubeconfig())?;
        let cluster = kubeconfig.clusters.first();
        let cluster = cluster.and_then(|it| it.cluster.as_ref());
        let authority = cluster.and_then(|it| it.certificate_authority.as_ref());
        let authority = std::fs::read(authority.context("it names no authority")?)?;
        let server = line::server(&kubeconfig)?;
        Ok(Self {
            client: plane.cluster().client().await?,
            line: Line::open(&server).await?,
            server,
            authority: BASE64_STANDARD.encode(authority),
            _plane: plane,
        })
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Makes namespaces, and an account that may read all apps in them.
    pub(super) async fn grant(&self, group: &str, namespaces: &[String]) -> Result<()> {
        let rbac = "rbac.authorization.k8s.io";
        let role = json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": ACCOUNT},
            "rules": [{"apiGroups": [group], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
        });
        let account = json!({"kind": "ServiceAccount", "namespace": NAMESPACE, "name": ACCOUNT});
        let binding = json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding",
            "metadata": {"name": ACCOUNT},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": ACCOUNT},
            "subjects": [account],
        });
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT, "namespace": NAMESPACE},
        });
        let applier = Applier::new(self.client.clone());
        for name in namespaces {
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            applier.text(&namespace.to_string()).await?;
        }
        for object in [role, binding, account] {
            applier.text(&object.to_string()).await?;
        }
        Ok(())
    }

    /// A Secret with a kubeconfig. `is_lost`: of the cluster that is going to be lost.
    pub(super) async fn kubeconfig(&self, name: &str, is_lost: bool) -> Result<Value> {
        let server = match is_lost {
            true => self.line.server(),
            false => &self.server,
        };
        let token = self.token().await?;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "there",
            "clusters": [{"name": "there", "cluster": {
                "server": server, "certificate-authority-data": self.authority,
            }}],
            "users": [{"name": "reader", "user": {"token": token}}],
            "contexts": [{"name": "there", "context": {"cluster": "there", "user": "reader"}}],
        });
        Ok(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "stringData": {"value": kubeconfig.to_string()},
        }))
    }

    /// One cluster does not answer any more.
    pub(super) fn lose(&self) {
        self.line.hold();
        self.line.cut();
    }

    /// Waits until there are so many watches of objects of this group, and no more.
    pub(super) async fn has_watches(&self, group: &str, count: usize) -> Result<()> {
        let group = format!("group=\"{group}\"");
        poll(PATIENCE, "the watches of the other clusters", async || {
            let request = http::Request::get("/metrics").body(Vec::new())?;
            let page = self.client.request_text(request).await?;
            let watches = page.lines().filter(|line| {
                line.starts_with("apiserver_longrunning_requests{")
                    && line.contains(&group)
                    && line.contains("verb=\"WATCH\"")
                    // Others there watch all namespaces.
                    && line.contains("scope=\"namespace\"")
            });
            let open = watches.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok());
            let open: usize = open.sum();
            ensure!(open == count, "{open} are open, not {count}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    async fn token(&self) -> Result<String> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), NAMESPACE);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(7_200),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let params = PostParams::default();
        let request = accounts.create_token_request(ACCOUNT, &params, &request);
        let status = request.await?.status.context("there is no status")?;
        status.token.context("there is no token")
    }
}
