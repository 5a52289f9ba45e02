//! The second API server, with an account that may read the apps there.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use sluice_tests::line::Line;
use sluice_tests::progress::Stderr;
use sluice_tests::{Applier, Binaries, ControlPlane, Options, poll};

const ACCOUNT: &str = "reader";
const NAMESPACE: &str = "default";
/// How long watches may take to be opened, or to be known to have ended.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Elsewhere {
    client: Client,
    server: String,
    /// The way to the cluster that is going to be lost.
    line: Line,
    plane: ControlPlane,
}

impl Elsewhere {
    pub(super) async fn start() -> Result<Self> {
        let binaries = Binaries::ensure(&Stderr::new())?;
        let plane = ControlPlane::start(&binaries, Options::default()).await?;
        let server = plane.cluster().server()?;
        Ok(Self {
            client: plane.cluster().client().await?,
            line: Line::open(&server).await?,
            server,
            plane,
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
        self.plane.cluster().secret(name, server, &token)
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
