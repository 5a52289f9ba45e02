//! The second API server, with an account that may read the apps there.

use anyhow::{Context, Result};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use sluice_tests::line::Line;
use sluice_tests::progress::Stderr;
use sluice_tests::{Applier, Binaries, ControlPlane, Options};

const ACCOUNT: &str = "reader";
const NAMESPACE: &str = "default";

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
    pub(super) async fn grant(&self, group: &str, namespaces: &[&str]) -> Result<()> {
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
