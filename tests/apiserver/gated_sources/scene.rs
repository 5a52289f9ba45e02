//! A stage with Flux's kinds, a gate, and one gated source: `app`, of the GitRepository
//! `app-upstream`, behind `production`.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource};
use serde_json::{Value, json};
use sluice_crds::GatedSource;
use sluice_crds::flux::{FluxKind, FluxObject};
use sluice_crds::gated_source::SourceKind;
use sluice_tests::flux::Programs;
use sluice_tests::poll;
use sluice_tests::progress::Stderr;
use sluice_tests::rights::rule;
use sluice_tests::{TEST_LABEL, Writes};

use crate::stage::{DEADLINE, Stage};

pub const GIT: FluxKind = FluxKind::Source(SourceKind::GitRepository);

const NOON: &str = "2026-11-20T12:00:00Z";

/// A commit in full.
pub fn commit(digit: char) -> String {
    digit.to_string().repeat(40)
}

/// What a condition says.
pub fn message(object: &GatedSource, type_: &str) -> String {
    condition(object, type_)
        .map(|it| it.message.clone())
        .unwrap_or_default()
}

fn condition<'a>(object: &'a GatedSource, type_: &str) -> Option<&'a Condition> {
    let mut conditions = object.status.as_ref()?.conditions.iter();
    conditions.find(|it| it.type_ == type_)
}

pub struct Scene {
    pub stage: Stage,
}

impl Scene {
    /// On the shared server.
    pub async fn new(word: &str) -> Result<Self> {
        let scene = Self::on(Stage::new(word, NOON).await?);
        scene.install_flux().await?;
        Ok(scene)
    }

    /// The same with the gate open, and commit `a` on `main` upstream.
    pub async fn open(word: &str) -> Result<Self> {
        let scene = Self::new(word).await?;
        scene.gate("open").await?;
        scene.upstream("main", &commit('a')).await?;
        Ok(scene)
    }

    /// On a server where Flux may be missing.
    pub fn on(stage: Stage) -> Self {
        Self { stage }
    }

    /// Defines Flux's kinds.
    pub async fn install_flux(&self) -> Result<()> {
        let programs = Programs::ensure(&Stderr::new())?;
        programs.define(self.stage.cluster()).await
    }

    fn gated_sources(&self) -> Api<GatedSource> {
        Api::namespaced(self.stage.client(), self.stage.namespace())
    }

    fn flux(&self, kind: FluxKind) -> Api<FluxObject> {
        Api::namespaced_with(self.stage.client(), self.stage.namespace(), &kind)
    }

    /// Lets a user read everything, in all namespaces.
    pub async fn may_read_all(&self, user: &str) -> Result<()> {
        let group = "rbac.authorization.k8s.io";
        let metadata = json!({"name": self.stage.namespace(), "labels": {TEST_LABEL: "true"}});
        let (api, name) = (format!("{group}/v1"), self.stage.namespace());
        let role = json!({
            "apiVersion": api, "kind": "ClusterRole", "metadata": metadata,
            "rules": [rule("*", &["*"], &["get", "list", "watch"])],
        });
        let binding = json!({
            "apiVersion": api, "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        });
        self.stage.apply(&format!("{role}\n---\n{binding}")).await
    }

    /// Takes that away again.
    pub async fn may_read_nothing(&self) -> Result<()> {
        let (client, name) = (self.stage.client(), self.stage.namespace());
        let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
        bindings.remove(name).await?;
        let roles: Api<ClusterRole> = Api::all(client);
        roles.remove(name).await?;
        Ok(())
    }

    /// The gate is open or closed.
    pub async fn gate(&self, state: &str) -> Result<()> {
        let gate = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
            "metadata": {"name": "production"}, "spec": {"default": state},
        });
        self.stage.apply(&gate.to_string()).await
    }

    /// The gated source of `app-upstream`, with more in its spec.
    pub async fn gated(&self, more: Value) -> Result<()> {
        let mut spec = more;
        spec["sourceRef"] = json!({"kind": "GitRepository", "name": "app-upstream"});
        self.gated_with(spec).await
    }

    /// The gated source, with this in its spec.
    pub async fn gated_with(&self, spec: Value) -> Result<()> {
        let mut spec = spec;
        spec["gates"] = json!({"refs": [{"name": "production"}]});
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "GatedSource",
            "metadata": {"name": "app"}, "spec": spec,
        });
        self.stage.apply(&object.to_string()).await
    }

    pub async fn get(&self) -> Result<GatedSource> {
        Ok(self.gated_sources().get("app").await?)
    }

    /// Deletes the gated source, and waits until it is gone.
    pub async fn delete_gated(&self) -> Result<()> {
        let all = self.gated_sources();
        all.remove("app").await?;
        poll(DEADLINE, "the gated source to go", async || {
            ensure!(all.get_opt("app").await?.is_none(), "it is there");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    /// Waits until a condition says this. What depends on a watch that is tried again takes longer.
    pub async fn until(&self, type_: &str, status: &str, reason: &str) -> Result<GatedSource> {
        poll(
            DEADLINE,
            &format!("{type_}={status} because of {reason}"),
            async || {
                let object = self.get().await?;
                let said =
                    condition(&object, type_).with_context(|| format!("{:?}", object.status))?;
                ensure!(
                    (said.status.as_str(), said.reason.as_str()) == (status, reason),
                    "{said:?}"
                );
                Ok(object)
            },
        )
        .await
    }

    /// A GitRepository as a person writes it.
    pub async fn source(&self, name: &str, branch: &str) -> Result<()> {
        let object = json!({
            "apiVersion": FluxObject::api_version(&GIT), "kind": GIT.as_str(),
            "metadata": {"name": name},
            "spec": {
                "url": "https://git.example.com/app", "interval": "1m", "timeout": "60s",
                "ref": {"branch": branch}, "secretRef": {"name": "token"},
            },
        });
        self.stage.apply(&object.to_string()).await
    }

    /// The source brings a commit of a branch.
    pub async fn upstream(&self, branch: &str, commit: &str) -> Result<()> {
        self.source("app-upstream", branch).await?;
        self.fetched("app-upstream", &format!("{branch}@sha1:{commit}"))
            .await
    }

    /// Writes what source-controller does when it has fetched a revision.
    pub async fn fetched(&self, name: &str, revision: &str) -> Result<()> {
        let generation = self.flux(GIT).get(name).await?.metadata.generation;
        let digest = format!("sha256:{}", &revision[revision.len() - 1..].repeat(64));
        let status = json!({"status": {
            "observedGeneration": generation,
            "artifact": {
                "path": format!("gitrepository/{name}.tar.gz"),
                "url": format!("http://source-controller/gitrepository/{name}.tar.gz"),
                "revision": revision, "digest": digest, "size": 1, "lastUpdateTime": NOON,
            },
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored",
                "observedGeneration": generation, "lastTransitionTime": NOON,
            }],
        }});
        self.flux(GIT).merge_status(name, status).await?;
        Ok(())
    }

    /// Has something change of a source that matters to nobody.
    pub async fn touch(&self, name: &str) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {"test/touched": "yes"}}});
        self.patch(GIT, name, &patch).await
    }

    pub async fn patch(&self, kind: FluxKind, name: &str, patch: &Value) -> Result<()> {
        let manager = PatchParams {
            field_manager: Some("somebody".to_owned()),
            ..PatchParams::default()
        };
        self.flux(kind)
            .patch(name, &manager, &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    pub async fn delete(&self, kind: FluxKind, name: &str) -> Result<()> {
        self.flux(kind).remove(name).await?;
        Ok(())
    }

    /// The object of the child's name.
    pub async fn child(&self) -> Result<Option<FluxObject>> {
        self.object(GIT, "app").await
    }

    /// An object of Flux, if it is there.
    pub async fn object(&self, kind: FluxKind, name: &str) -> Result<Option<FluxObject>> {
        Ok(self.flux(kind).get_opt(name).await?)
    }

    /// Waits until the child is pinned to a commit.
    pub async fn pinned(&self, commit: &str) -> Result<FluxObject> {
        let what = format!("the child to be at {commit}");
        poll(DEADLINE, &what, async || {
            let child = self.child().await?.context("no child")?;
            ensure!(child.spec["ref"]["commit"] == commit, "{:?}", child.spec);
            Ok(child)
        })
        .await
    }

    /// Waits until the child is pinned to a commit, fetches it for the child, and waits until the gated
    /// source says so.
    pub async fn serves(&self, commit: &str) -> Result<()> {
        self.pinned(commit).await?;
        self.fetched("app", &format!("main@sha1:{commit}")).await?;
        self.until("Ready", "True", "Serving").await?;
        Ok(())
    }

    /// Waits until sources are suspended or not.
    pub async fn suspended(&self, expected: &[(&str, bool)]) -> Result<()> {
        poll(DEADLINE, &format!("suspended: {expected:?}"), async || {
            for (name, suspended) in expected {
                let source = self.flux(GIT).get(name).await?;
                let is = source.spec.get("suspend") == Some(&true.into());
                ensure!(is == *suspended, "{name}: {:?}", source.spec);
            }
            Ok::<_, anyhow::Error>(())
        })
        .await
    }
}
