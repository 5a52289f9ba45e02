//! A fleet with the rights of a controller on the first API server, and an account on the second, which
//! may read a kind of the scene's own. The second is always a local one: what is defined there goes with
//! it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use sluice_clusters::{Cluster, Fleet, Kind, Part, Scope, SecretKey, Sight, Wanted};
use sluice_egress::{Egress, Rules};
use sluice_tests::conformance::Judged;
use sluice_tests::rights::grant_rules;
use sluice_tests::{Applier, Namespace, poll, second, shared};

use crate::chart::installed;
use crate::stage::DEADLINE;

mod kubeconfig;

/// How long nothing may be heard, for tests that do not wait for it.
const SILENCE: Duration = Duration::from_secs(300);
/// The Secret with the kubeconfig, the account on the second server, and the object there.
const SECRET: &str = "prod-kubeconfig";
pub const ACCOUNT: &str = "reader";
const OBJECT: &str = "web";

pub struct Scene {
    /// Over all statuses in `home`, until the end.
    _statuses: Judged,
    fleet: Fleet,
    controller: Client,
    /// Clients with all rights.
    own: Client,
    remote: Client,
    kind: Kind,
    /// Its definition.
    definition: String,
    /// On the first server, and on the second.
    home: Namespace,
    apps: Namespace,
    second: &'static sluice_tests::Cluster,
    server: String,
}

impl Scene {
    /// The account may read the kind in all namespaces.
    pub async fn new(word: &str) -> Result<Self> {
        Self::silent_after(word, SILENCE).await
    }

    /// The same, where nothing may be heard for another time.
    pub async fn silent_after(word: &str, silence: Duration) -> Result<Self> {
        let scene = Self::define(word, silence).await?;
        scene.let_read_all().await?;
        Ok(scene)
    }

    async fn let_read_all(&self) -> Result<()> {
        let all = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": self.apps.name(), "labels": {"sluice.dev/test": "true"}},
            "rules": [{"apiGroups": [self.kind.group], "resources": ["widgets"],
                       "verbs": ["get", "list", "watch"]}],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": self.apps.name(), "labels": {"sluice.dev/test": "true"}},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": self.apps.name()},
            "subjects": [{"kind": "ServiceAccount", "namespace": self.apps.name(), "name": ACCOUNT}],
        });
        let applier = Applier::new(self.remote.clone());
        applier.text(&all.to_string()).await?;
        applier.text(&binding.to_string()).await?;
        Ok(())
    }

    /// The account may read the kind in its own namespace alone.
    pub async fn in_one_namespace(word: &str) -> Result<Self> {
        let scene = Self::define(word, SILENCE).await?;
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "read"},
            "rules": [{"apiGroups": [scene.kind.group], "resources": ["widgets"],
                       "verbs": ["get", "list", "watch"]}],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "read"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "read"},
            "subjects": [{"kind": "ServiceAccount", "namespace": scene.apps.name(), "name": ACCOUNT}],
        });
        let applier = Applier::new(scene.remote.clone()).in_namespace(scene.apps.name());
        applier.text(&role.to_string()).await?;
        applier.text(&binding.to_string()).await?;
        Ok(scene)
    }

    async fn define(word: &str, silence: Duration) -> Result<Self> {
        Self::define_on(shared().await?, word, silence).await
    }

    /// The first server has the chart, and the account may read the kind in all namespaces.
    pub async fn installed(word: &str) -> Result<Self> {
        let scene = Self::define_on(installed().await?, word, SILENCE).await?;
        scene.let_read_all().await?;
        Ok(scene)
    }

    async fn define_on(
        first: &sluice_tests::Cluster,
        word: &str,
        silence: Duration,
    ) -> Result<Self> {
        let second = second().await?;
        let home = Namespace::create(first, word).await?;
        let apps = Namespace::create(second, word).await?;
        let (own, remote) = (first.client().await?, second.client().await?);
        let kind = Kind {
            // Those of Flux are watched in all namespaces at once.
            group: format!("{}.toolkit.fluxcd.io", apps.name()),
            kind: "Widget".to_owned(),
        };
        let group = &kind.group;
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("widgets.{group}"), "labels": {"sluice.dev/test": "true"}},
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}],
            },
        });
        Applier::new(remote.clone())
            .text(&definition.to_string())
            .await?;
        let definition = definition.to_string();

        // All that the controller may do on the first server: this is what the chart grants for a name.
        let user = format!("fleet-of-{}", home.name());
        let rule = json!({
            "apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET],
            "verbs": ["get", "list", "watch"],
        });
        grant_rules(own.clone(), home.name(), "kubeconfigs", &user, &[rule]).await?;
        let controller = first.client_for(&user).await?;
        let rules = Rules {
            allow: vec!["127.0.0.0/8".parse()?],
            ..Rules::default()
        };
        let fleet =
            Fleet::with_silence(controller.clone(), Scope::All, Egress::new(rules)?, silence);
        let scene = Self {
            _statuses: Judged::start(first, home.name()).await?,
            fleet,
            controller,
            own,
            remote,
            kind,
            definition,
            home,
            apps,
            server: second.server()?,
            second,
        };
        scene.put_account().await?;
        Ok(scene)
    }

    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// Clients with all rights on the first server, and on the second.
    pub fn own(&self) -> Client {
        self.own.clone()
    }

    pub fn remote(&self) -> Client {
        self.remote.clone()
    }

    /// The namespace of the object on the second server.
    pub fn apps(&self) -> &str {
        self.apps.name()
    }

    /// The group and version of the kind.
    pub fn api_version(&self) -> String {
        format!("{}/v1", self.kind.group)
    }

    /// The group of the kind.
    pub fn group(&self) -> String {
        self.kind.group.clone()
    }

    /// Defines the kind on the first server, too.
    pub async fn define_here(&self) -> Result<()> {
        let applier = Applier::new(self.own.clone());
        applier.text(&self.definition).await?;
        Ok(())
    }

    /// Writes the object somewhere as it is when it runs a revision healthily. `written`: how often it was
    /// written then.
    pub async fn runs_at(
        &self,
        client: &Client,
        namespace: &str,
        written: i64,
        revision: &str,
    ) -> Result<()> {
        let ready = json!({
            "type": "Ready", "status": "True", "reason": "Applied", "message": "",
            "lastTransitionTime": "2026-11-20T12:00:00Z",
        });
        let object = json!({
            "apiVersion": self.api_version(), "kind": "Widget", "metadata": {"name": OBJECT},
            "status": {
                "observedGeneration": written, "conditions": [ready],
                "lastAppliedRevision": revision, "lastAttemptedRevision": revision,
            },
        });
        let applier = Applier::new(client.clone()).in_namespace(namespace);
        applier.text(&object.to_string()).await?;
        Ok(())
    }

    /// The client of the fleet on the first server.
    pub fn controller(&self) -> Client {
        self.controller.clone()
    }

    /// The namespace of the Secret.
    pub fn namespace(&self) -> &str {
        self.home.name()
    }

    /// The address of the second API server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The cluster of a Secret.
    pub fn cluster(&self, secret: &str) -> Cluster {
        Cluster::Remote(Arc::new(SecretKey {
            namespace: self.home.name().to_owned(),
            name: secret.to_owned(),
        }))
    }

    pub fn wanted(&self) -> Wanted {
        Wanted {
            from: self.home.name().to_owned(),
            cluster: self.cluster(SECRET),
            kind: self.kind.clone(),
            namespace: self.apps.name().to_owned(),
            part: Part::State,
        }
    }

    pub fn want(&self, wanted: &[&Wanted], second: i64) {
        let wanted: BTreeSet<_> = wanted.iter().map(|one| (*one).clone()).collect();
        let now = Timestamp::from_second(second).unwrap_or_default();
        self.fleet.want(&wanted, now);
    }

    pub fn look(&self, wanted: &Wanted) -> Sight {
        self.fleet.look(wanted, OBJECT)
    }

    /// Writes the Secret.
    pub async fn put_kubeconfig(&self, server: &str, token: &str) -> Result<()> {
        let secret = self.second.secret(SECRET, server, token)?;
        let applier = Applier::new(self.own.clone()).in_namespace(self.home.name());
        applier.text(&secret.to_string()).await?;
        Ok(())
    }

    pub async fn delete_kubeconfig(&self) -> Result<()> {
        let secrets: Api<Secret> = Api::namespaced(self.own.clone(), self.home.name());
        secrets.delete(SECRET, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Writes the object on the second server.
    pub async fn put(&self, revision: &str) -> Result<()> {
        let object = json!({
            "apiVersion": format!("{}/v1", self.kind.group), "kind": "Widget",
            "metadata": {"name": OBJECT}, "status": {"lastAppliedRevision": revision},
        });
        let applier = Applier::new(self.remote.clone()).in_namespace(self.apps.name());
        applier.text(&object.to_string()).await?;
        Ok(())
    }

    async fn put_account(&self) -> Result<()> {
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT},
        });
        let applier = Applier::new(self.remote.clone()).in_namespace(self.apps.name());
        applier.text(&account.to_string()).await?;
        Ok(())
    }

    /// Makes the account again: its old tokens do not count any more.
    pub async fn renew_account(&self) -> Result<()> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.remote.clone(), self.apps.name());
        accounts.delete(ACCOUNT, &DeleteParams::default()).await?;
        self.put_account().await
    }

    /// A token of the account, once the second server goes by it and by the rights of the account.
    pub async fn token(&self) -> Result<String> {
        let token = self.new_token().await?;
        let client = self.second.client_of(&token).await?;
        let (group, namespace) = (&self.kind.group, self.apps.name());
        let path = format!("/apis/{group}/v1/namespaces/{namespace}/widgets");
        poll(DEADLINE, "the account to have its rights", async || {
            let request = http::Request::get(&path).body(Vec::new())?;
            client.request_text(request).await?;
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        Ok(token)
    }

    async fn new_token(&self) -> Result<String> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.remote.clone(), self.apps.name());
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(3600),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let params = PostParams::default();
        let request = accounts.create_token_request(ACCOUNT, &params, &request);
        let status = request.await?.status.context("there is no status")?;
        status.token.context("there is no token")
    }

    /// Waits until the object is seen with this revision.
    pub async fn runs(&self, wanted: &Wanted, revision: &str) -> Result<()> {
        let runs = |sight: &Sight| match sight {
            Sight::Seen(object) => object.read()["status"]["lastAppliedRevision"] == revision,
            Sight::Absent | Sight::Unknown(_) => false,
        };
        self.until(wanted, runs).await
    }

    /// Waits until it is unknown, with these words.
    pub async fn is_unknown(&self, wanted: &Wanted, words: &str) -> Result<()> {
        let says =
            |sight: &Sight| matches!(sight, Sight::Unknown(why) if why.to_string().contains(words));
        self.until(wanted, says).await
    }

    pub async fn until(&self, wanted: &Wanted, is: impl Fn(&Sight) -> bool) -> Result<()> {
        poll(DEADLINE, "the object to be seen so", async || {
            let sight = self.look(wanted);
            ensure!(is(&sight), "{sight:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// Waits until the second server has so many watches of the scene's kind.
    pub async fn has_watches(&self, count: usize) -> Result<()> {
        poll(DEADLINE, "the watches of the server", async || {
            let request = http::Request::get("/metrics").body(Vec::new())?;
            let metrics = self.remote.request_text(request).await?;
            let ours = metrics.lines().filter(|line| {
                line.starts_with("apiserver_longrunning_requests{")
                    && line.contains(&self.kind.group)
                    && line.contains("verb=\"WATCH\"")
            });
            let values = ours.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok());
            let open: usize = values.sum();
            ensure!(open == count, "{open} are open");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }
}
