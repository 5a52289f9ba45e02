//! A namespace that Flux works in, and the words to say what it should make of it.

use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Result, bail, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
pub use sluice_tests::DEADLINE;
use sluice_tests::flux::{BRANCH, Bucket, Charts, Git, Pushed, World, world};
use sluice_tests::{Writes, poll, stage};

/// Noon on a Friday.
pub const NOW: &str = "2026-11-20T12:00:00Z";

/// An hour: whatever happens sooner, somebody asked for it or something changed.
const INTERVAL: &str = "1h";

/// A namespace of one's own that Flux works in.
pub struct Stage<'w> {
    stage: stage::Stage,
    world: &'w World,
    /// How often somebody was asked.
    asked: AtomicU32,
}

impl Deref for Stage<'_> {
    type Target = stage::Stage;

    fn deref(&self) -> &stage::Stage {
        &self.stage
    }
}

impl Stage<'static> {
    /// In the world that all tests here share, with the clock at `now`.
    pub async fn new(word: &str, now: &str) -> Result<Self> {
        Self::within(world().await?, word, now).await
    }
}

impl<'w> Stage<'w> {
    /// In a world of one's own.
    pub async fn within(world: &'w World, word: &str, now: &str) -> Result<Self> {
        Ok(Self {
            stage: stage::Stage::with_chart(world.cluster(), word, now).await?,
            world,
            asked: AtomicU32::new(0),
        })
    }

    /// The world that it is in.
    pub fn world(&self) -> &'w World {
        self.world
    }

    /// The repository of the world's registry that is this stage's own.
    pub fn repository(&self, name: &str) -> String {
        format!("{}/{name}", self.namespace())
    }

    /// Pushes the app of this name to this stage's repository of the same name, as `stable`.
    pub async fn push(&self, name: &str, word: &str) -> Result<Pushed> {
        let files = [("app.yaml", app(name, word))];
        let repository = self.repository(name);
        let registry = &self.world.registry;
        registry.push(&repository, "stable", &files).await
    }

    /// The objects of a kind of Flux, or of ours, here.
    pub fn api(&self, kind: &str) -> Result<Api<DynamicObject>> {
        let resource = resource(kind)?;
        Ok(Api::namespaced_with(
            self.client(),
            self.namespace(),
            &resource,
        ))
    }

    /// Applies an object of a kind of Flux with this spec.
    pub async fn put(&self, kind: &str, name: &str, spec: Value) -> Result<()> {
        let api_version = resource(kind)?.api_version;
        let object = json!({
            "apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec,
        });
        self.apply(&object.to_string()).await
    }

    /// A GitRepository that follows `main`.
    pub async fn git_repository(&self, name: &str, git: &Git) -> Result<()> {
        let spec = json!({"url": git.url(), "ref": {"branch": BRANCH}, "interval": INTERVAL});
        self.put("GitRepository", name, spec).await
    }

    /// An OCIRepository that follows a tag in this stage's repository of the same name.
    pub async fn oci_repository(&self, name: &str, tag: &str) -> Result<()> {
        let url = self.world.registry.url(&self.repository(name));
        let reference = json!({"tag": tag});
        let spec = json!({"url": url, "insecure": true, "ref": reference, "interval": INTERVAL});
        self.put("OCIRepository", name, spec).await
    }

    /// A Bucket.
    pub async fn bucket(&self, name: &str, bucket: &Bucket) -> Result<()> {
        let spec = json!({
            "endpoint": bucket.endpoint().to_string(), "bucketName": bucket.name(),
            "insecure": true, "interval": INTERVAL,
        });
        self.put("Bucket", name, spec).await
    }

    /// A HelmRepository, and a HelmChart of the same name that follows versions.
    pub async fn helm_chart(&self, name: &str, charts: &Charts, versions: &str) -> Result<()> {
        let repository = json!({"url": charts.url(), "interval": INTERVAL});
        self.put("HelmRepository", name, repository).await?;
        let spec = json!({
            "chart": name, "version": versions, "interval": INTERVAL,
            "sourceRef": {"kind": "HelmRepository", "name": name},
        });
        self.put("HelmChart", name, spec).await
    }

    /// A Kustomization that applies all of a source to this namespace.
    pub async fn kustomization(&self, name: &str, kind: &str, source: &str) -> Result<()> {
        let spec = json!({
            "sourceRef": {"kind": kind, "name": source},
            "interval": INTERVAL, "retryInterval": "2s", "timeout": "30s",
            "prune": true, "targetNamespace": self.namespace(),
        });
        self.put("Kustomization", name, spec).await
    }

    /// A HelmRelease of a HelmChart.
    pub async fn helm_release(&self, name: &str, chart: &str) -> Result<()> {
        let spec = json!({
            "chartRef": {"kind": "HelmChart", "name": chart}, "interval": INTERVAL,
        });
        self.put("HelmRelease", name, spec).await
    }

    /// Asks for a look at an object, as `flux reconcile` does, and waits until it has been taken.
    pub async fn reconcile(&self, kind: &str, name: &str) -> Result<DynamicObject> {
        let ask = format!("{}", self.asked.fetch_add(1, Ordering::Relaxed));
        let annotation = json!({"reconcile.fluxcd.io/requestedAt": ask});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotation}}));
        let manager = PatchParams {
            field_manager: Some("flux".to_owned()),
            ..PatchParams::default()
        };
        self.api(kind)?.patch(name, &manager, &patch).await?;
        self.object(kind, name, "to be looked at", |object| {
            object["status"]["lastHandledReconcileAt"] == ask
        })
        .await
    }

    /// Waits until `check` is content with an object, and returns it.
    pub async fn object(
        &self,
        kind: &str,
        name: &str,
        what: &str,
        check: impl Fn(&Value) -> bool,
    ) -> Result<DynamicObject> {
        let what = format!("{kind} {name}: {what}");
        let api = self.api(kind)?;
        let found = poll(DEADLINE, &what, async || {
            let object = api.get(name).await?;
            ensure!(check(&object.data), "{}", object.data["status"]);
            Ok::<_, anyhow::Error>(object)
        })
        .await;
        match found {
            Ok(object) => Ok(object),
            Err(error) => bail!("{error:#}\n{}", self.world.flux.state().await),
        }
    }

    /// Waits until a source has fetched a revision, and returns its artifact.
    pub async fn fetched(&self, kind: &str, name: &str, revision: &str) -> Result<Value> {
        let what = format!("to have fetched {revision}");
        let fetched = |object: &Value| {
            object["status"]["artifact"]["revision"] == revision && is_ready(object, "True")
        };
        let object = self.object(kind, name, &what, fetched).await?;
        Ok(object.data["status"]["artifact"].clone())
    }

    /// Waits until a Kustomization has applied a revision.
    pub async fn applied(&self, name: &str, revision: &str) -> Result<()> {
        let what = format!("to have applied {revision}");
        let applied = |object: &Value| {
            object["status"]["lastAppliedRevision"] == revision && is_ready(object, "True")
        };
        self.object("Kustomization", name, &what, applied).await?;
        Ok(())
    }

    /// Waits until a HelmRelease runs a version of its chart.
    pub async fn released(&self, name: &str, version: &str) -> Result<()> {
        let what = format!("to run {version}");
        let released = |object: &Value| {
            object["status"]["history"][0]["chartVersion"] == version && is_ready(object, "True")
        };
        self.object("HelmRelease", name, &what, released).await?;
        Ok(())
    }

    /// Waits until an object is not ready for this reason.
    pub async fn fails(&self, kind: &str, name: &str, reason: &str) -> Result<DynamicObject> {
        let what = format!("not to be ready because of {reason}");
        let failed = |object: &Value| {
            is_ready(object, "False")
                && condition(object, "Ready").is_some_and(|ready| ready["reason"] == reason)
        };
        self.object(kind, name, &what, failed).await
    }

    /// Waits until the ConfigMap [`app`] says this.
    pub async fn deployed(&self, name: &str, word: &str) -> Result<()> {
        let what = format!("ConfigMap {name} to say {word}");
        poll(DEADLINE, &what, async || {
            let said = self.says_now(name).await?;
            ensure!(said.as_deref() == Some(word), "{said:?}");
            Ok(())
        })
        .await
    }

    /// What the ConfigMap [`app`] says now, if it is there.
    pub async fn says_now(&self, name: &str) -> Result<Option<String>> {
        let map = self.maps().get_opt(name).await?;
        Ok(map.and_then(|map| map.data?.remove("word")))
    }

    /// Deletes the ConfigMap [`app`], as somebody does who should not.
    pub async fn lose(&self, name: &str) -> Result<()> {
        self.maps().remove(name).await?;
        Ok(())
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client(), self.namespace())
    }
}

/// The smallest app: a ConfigMap that says one word.
pub fn app(name: &str, word: &str) -> String {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name}, "data": {"word": word},
    });
    map.to_string()
}

/// A condition of an object.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == kind)
}

/// Whether the object's condition `Ready` has this status, for what its spec says now.
fn is_ready(object: &Value, status: &str) -> bool {
    condition(object, "Ready").is_some_and(|ready| ready["status"] == status)
}

/// Where the objects of a kind are.
pub fn resource(kind: &str) -> Result<ApiResource> {
    let (group, version) = match kind {
        "GitRepository" | "OCIRepository" | "HelmRepository" | "HelmChart" | "Bucket"
        | "ExternalArtifact" => ("source.toolkit.fluxcd.io", "v1"),
        "Kustomization" => ("kustomize.toolkit.fluxcd.io", "v1"),
        "HelmRelease" => ("helm.toolkit.fluxcd.io", "v2"),
        "Alert" | "Provider" => ("notification.toolkit.fluxcd.io", "v1beta3"),
        "Receiver" => ("notification.toolkit.fluxcd.io", "v1"),
        "GatedSource" | "Gate" | "Gatekeeper" | "GatePolicy" | "Pipeline" | "Rollout" => {
            ("sluice.dev", "v1alpha1")
        }
        _ => bail!("where is {kind} served?"),
    };
    Ok(ApiResource::from_gvk(&GroupVersionKind::gvk(
        group, version, kind,
    )))
}
