//! Who may let something go out that no gate has admitted: baselines, children that are set free,
//! deleted or replaced, and what their status says. Flux's kinds are there, and Flux is not.
//!
//! `editor` may write gated sources and sources, and nothing more. `adopter` has `sluice-baseline`,
//! too.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Namespace as Object;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use sluice_tests::flux::Programs;
use sluice_tests::progress::Stderr;
use sluice_tests::rights::{grant, grant_rules, rule};
use sluice_tests::{Cluster, Namespace, Writes, poll};

use super::scene::{CONTROLLER, installed, refused_by};
use crate::stage::DEADLINE;

const EDITOR: &str = "editor";
const ADOPTER: &str = "adopter";
/// As the chart knows it where nobody says otherwise.
const FLUX: &str = "system:serviceaccount:flux-system:source-controller";

const GATED: &str = "GatedSource";
const GIT: &str = "GitRepository";

struct Scene {
    cluster: &'static Cluster,
    namespace: Namespace,
}

impl Scene {
    async fn new(word: &str) -> Result<Self> {
        let cluster = installed().await?;
        Programs::ensure(&Stderr::new())?.define(cluster).await?;
        let namespace = Namespace::create(cluster, word).await?;
        let (admin, name) = (cluster.client().await?, namespace.name());
        grant(admin.clone(), name, "sluice-edit", &[EDITOR, ADOPTER]).await?;
        grant(admin.clone(), name, "sluice-baseline", &[ADOPTER]).await?;
        let sources = [rule("source.toolkit.fluxcd.io", &["*"], &["*"])];
        for (role, user) in [("editor", EDITOR), ("adopter", ADOPTER), ("flux", FLUX)] {
            grant_rules(admin.clone(), name, role, user, &sources).await?;
        }
        let scene = Self { cluster, namespace };
        for user in [EDITOR, ADOPTER, FLUX] {
            let sources = scene.api(user, GIT).await?;
            let may = async || sources.list(&ListParams::default()).await;
            poll(DEADLINE, "rights on sources", may).await?;
        }
        scene.adopter_may().await?;
        Ok(scene)
    }

    /// Waits until the verb `baseline` is granted.
    async fn adopter_may(&self) -> Result<()> {
        let probe = json!({"sourceRef": git("upstream"), "baseline": {"revision": COMMIT}});
        poll(DEADLINE, "the verb baseline", async || {
            let api = self.api(ADOPTER, GATED).await?;
            let object = self.object(GATED, "probe", &json!({}), probe.clone())?;
            let dry = PostParams {
                dry_run: true,
                ..PostParams::default()
            };
            api.create(&dry, &object).await?;
            Ok::<_, anyhow::Error>(())
        })
        .await
    }

    async fn api(&self, user: &str, kind: &str) -> Result<Api<DynamicObject>> {
        let client = self.cluster.client_for(user).await?;
        Ok(Api::namespaced_with(
            client,
            self.namespace.name(),
            &resource(kind),
        ))
    }

    fn object(
        &self,
        kind: &str,
        name: &str,
        annotations: &Value,
        spec: Value,
    ) -> Result<DynamicObject> {
        let mut spec = spec;
        if kind == GATED {
            spec["gates"] = json!({"refs": [{"name": "production"}]});
        }
        let object = json!({
            "apiVersion": resource(kind).api_version, "kind": kind,
            "metadata": {"name": name, "annotations": annotations}, "spec": spec,
        });
        Ok(serde_json::from_value(object)?)
    }

    async fn create(&self, user: &str, kind: &str, name: &str, spec: Value) -> Result<Answer> {
        let object = self.object(kind, name, &json!({}), spec)?;
        let api = self.api(user, kind).await?;
        Ok(api.add(&object).await)
    }

    /// As the controller makes it.
    async fn child(&self, kind: &str, name: &str, spec: Value) -> Result<()> {
        let mark = json!({"sluice.dev/gated-source": "app"});
        let object = self.object(kind, name, &mark, spec)?;
        let api = self.api(CONTROLLER, kind).await?;
        api.add(&object).await?;
        Ok(())
    }

    async fn patch(&self, user: &str, kind: &str, name: &str, patch: Value) -> Result<Answer> {
        let api = self.api(user, kind).await?;
        Ok(api.merge(name, &patch).await)
    }

    async fn patch_status(&self, user: &str, kind: &str, name: &str) -> Result<Answer> {
        let api = self.api(user, kind).await?;
        let artifact = json!({
            "digest": format!("sha256:{}", "0".repeat(64)), "path": "app.tar.gz",
            "url": format!("http://{}.example.com/app.tar.gz", user.len()),
            "revision": "main@sha1:0123", "lastUpdateTime": "2026-11-20T12:00:00Z",
        });
        let patch = json!({"status": {"artifact": artifact}});
        Ok(api.merge_status(name, &patch).await)
    }

    async fn delete(&self, user: &str, kind: &str, name: &str) -> Result<kube::Result<()>> {
        let api = self.api(user, kind).await?;
        Ok(api.remove(name).await.map(drop))
    }
}

type Answer = kube::Result<DynamicObject>;

const COMMIT: &str = "main@sha1:1111111111111111111111111111111111111111";

fn resource(kind: &str) -> ApiResource {
    let (group, version) = match kind {
        GATED => ("sluice.dev", "v1alpha1"),
        _ => ("source.toolkit.fluxcd.io", "v1"),
    };
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// A reference to a GitRepository.
fn git(name: &str) -> Value {
    json!({"kind": GIT, "name": name})
}

fn repository() -> Value {
    json!({"url": "https://git.example.com/app", "interval": "1h"})
}

/// It would go out past every gate: the right to write gated sources is not enough to say what runs.
#[tokio::test]
async fn a_baseline_needs_a_right_of_its_own() -> Result<()> {
    let scene = Scene::new("baseline").await?;
    let refused = |answer: Answer| {
        let words = "spec.baseline: what it names goes out without asking the gates of the GatedSource, \
                     which needs the verb baseline on gatedsources.sluice.dev, and \"editor\" does not \
                     have it in namespace";
        refused_by("sluice-gated-sources", answer, words)
    };
    let written = json!({"revision": COMMIT});
    let from = json!({"from": {"kind": "Kustomization", "name": "app"}});
    for (number, baseline) in [written.clone(), from].into_iter().enumerate() {
        let one = json!({"sourceRef": git("upstream"), "baseline": baseline});
        let mut source = git("upstream");
        source["baseline"] = baseline;
        let several = json!({"sourceRefs": [source, git("other")]});
        for (word, spec) in [("one", one), ("several", several)] {
            let name = format!("{word}-{number}");
            refused(scene.create(EDITOR, GATED, &name, spec.clone()).await?)?;
            scene.create(ADOPTER, GATED, &name, spec).await??;
        }
    }
    let plain = json!({"sourceRef": git("upstream")});
    scene.create(EDITOR, GATED, "app", plain).await??;
    let baseline = |revision: Value| json!({"spec": {"baseline": revision}});
    let patch = async |user, change| scene.patch(user, GATED, "app", change).await;
    refused(patch(EDITOR, baseline(written.clone())).await?)?;
    patch(ADOPTER, baseline(written)).await??;
    // What it says is neither changed nor turned on another source, and all else is.
    let other = "main@sha1:2222222222222222222222222222222222222222";
    refused(patch(EDITOR, baseline(json!({"revision": other}))).await?)?;
    refused(patch(EDITOR, json!({"spec": {"sourceRef": {"name": "mine"}}})).await?)?;
    refused(patch(EDITOR, json!({"spec": {"target": {"name": "mine"}}})).await?)?;
    patch(EDITOR, json!({"spec": {"suspend": true}})).await??;
    // Without it the gates decide.
    patch(EDITOR, baseline(Value::Null)).await??;
    patch(EDITOR, json!({"spec": {"sourceRef": {"name": "mine"}}})).await??;
    scene.delete(EDITOR, GATED, "app").await??;
    Ok(())
}

/// The controller deletes the children of such a GatedSource for the user who deletes it, and then their
/// names are free.
#[tokio::test]
async fn to_have_children_deleted_needs_that_right_too() -> Result<()> {
    let scene = Scene::new("deleting").await?;
    let words = "spec.deletionPolicy: Delete deletes children, whose names are then free for what no gate \
                 has admitted, and resumes what is suspended; that needs the verb baseline";
    let refused = |answer: Answer| refused_by("sluice-gated-sources", answer, words);
    let spec = |policy: &str| json!({"sourceRef": git("upstream"), "deletionPolicy": policy});
    refused(scene.create(EDITOR, GATED, "app", spec("Delete")).await?)?;
    scene.create(EDITOR, GATED, "app", spec("Orphan")).await??;
    let patch = async |user, change| scene.patch(user, GATED, "app", change).await;
    let policy = |policy: &str| json!({"spec": {"deletionPolicy": policy}});
    refused(patch(EDITOR, policy("Delete")).await?)?;
    patch(ADOPTER, policy("Delete")).await??;

    let answer = scene.delete(EDITOR, GATED, "app").await?;
    refused_by("sluice-gated-sources", answer, words)?;
    let all = scene.api(EDITOR, GATED).await?;
    let (how, which) = (DeleteParams::default(), ListParams::default());
    let answer = all.delete_collection(&how, &which).await.map(drop);
    refused_by("sluice-gated-sources", answer, words)?;
    // Children of sources that are named no longer are deleted, too.
    refused(patch(EDITOR, json!({"spec": {"target": {"name": "mine"}}})).await?)?;
    // What has lost its owner is deleted by Kubernetes.
    refused(patch(EDITOR, owned()).await?)?;
    patch(EDITOR, json!({"spec": {"suspend": true}})).await??;
    patch(EDITOR, policy("Orphan")).await??;
    scene.delete(EDITOR, GATED, "app").await??;
    Ok(())
}

/// An owner that was never there.
fn owned() -> Value {
    let owner = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "gone",
        "uid": "00000000-0000-4000-8000-000000000000",
    });
    json!({"metadata": {"ownerReferences": [owner]}})
}

/// For a moment its name would be anybody's, and consumers would deploy what takes it.
#[tokio::test]
async fn a_child_is_not_deleted_by_others() -> Result<()> {
    let scene = Scene::new("kept").await?;
    scene.child(GIT, "app", repository()).await?;
    let refused = |answer, words: &str| refused_by("sluice-children", answer, words);
    let deleted = "this is the child of the GatedSource app: what takes its name once it is deleted passes \
                   no gate; that needs the verb baseline on that one, and \"editor\" does not have it";
    refused(scene.delete(EDITOR, GIT, "app").await?, deleted)?;
    let all = scene.api(EDITOR, GIT).await?;
    let (how, which) = (DeleteParams::default(), ListParams::default());
    let answer = all.delete_collection(&how, &which).await.map(drop);
    refused(answer, deleted)?;
    let patch = async |user, change| -> Result<kube::Result<()>> {
        Ok(scene.patch(user, GIT, "app", change).await?.map(drop))
    };
    refused(
        patch(EDITOR, owned()).await?,
        "metadata.ownerReferences: nobody gives",
    )?;
    let held = |finalizers: &[&str]| json!({"metadata": {"finalizers": finalizers}});
    let theirs = "metadata.finalizers: of the child of a GatedSource";
    refused(patch(EDITOR, held(&["example.com/mine"])).await?, theirs)?;
    patch(FLUX, held(&["finalizers.fluxcd.io"])).await??;
    refused(patch(EDITOR, held(&[])).await?, theirs)?;
    patch(FLUX, held(&[])).await??;

    let free = json!({"metadata": {"annotations": {"sluice.dev/gated-source": null}}});
    let words =
        "to remove the mark needs the verb baseline on that one, and \"editor\" does not have it";
    refused(patch(EDITOR, free.clone()).await?, words)?;
    scene.delete(ADOPTER, GIT, "app").await??;
    // And it may be set free.
    scene.child(GIT, "app", repository()).await?;
    patch(ADOPTER, free).await??;
    scene.delete(EDITOR, GIT, "app").await??;
    Ok(())
}

/// It says where the files are that are deployed.
#[tokio::test]
async fn the_status_of_a_child_is_written_by_flux_alone() -> Result<()> {
    let scene = Scene::new("status").await?;
    let chart = json!({
        "chart": "app", "interval": "1h", "sourceRef": {"kind": "HelmRepository", "name": "charts"},
    });
    let oci = json!({"url": "oci://registry.example.com/app", "interval": "1h"});
    let kinds = [
        (GIT, repository()),
        ("OCIRepository", oci),
        ("HelmChart", chart),
    ];
    for (kind, spec) in kinds {
        scene.child(kind, "app", spec.clone()).await?;
        for user in [EDITOR, ADOPTER, "admin"] {
            let words = format!(
                "status: of a source that a GatedSource has made or suspended is written by Flux alone, \
                 and \"{user}\" is none of its accounts ({FLUX})"
            );
            let answer = scene.patch_status(user, kind, "app").await?;
            refused_by("sluice-children", answer, &words).context(kind)?;
        }
        scene.patch_status(FLUX, kind, "app").await??;
        // Of a source that is nobody's child it is a matter of RBAC.
        scene.create(EDITOR, kind, "own", spec).await??;
        scene.patch_status(EDITOR, kind, "own").await??;
    }
    // What is suspended serves what it has, and nothing else.
    let suspend = json!({
        "metadata": {"annotations": {"sluice.dev/suspended-by": "app"}}, "spec": {"suspend": true},
    });
    scene.patch(CONTROLLER, GIT, "own", suspend).await??;
    let answer = scene.patch_status(ADOPTER, GIT, "own").await?;
    refused_by("sluice-children", answer, "is written by Flux alone")?;
    scene.patch_status(FLUX, GIT, "own").await??;
    Ok(())
}

/// While nothing has been admitted there is no child, and consumers name it already.
#[tokio::test]
async fn the_name_of_a_child_is_kept_free_for_it() -> Result<()> {
    let scene = Scene::new("names").await?;
    let one = json!({"sourceRef": git("upstream")});
    scene.create(EDITOR, GATED, "app", one).await??;
    let named = json!({"sourceRef": git("upstream"), "target": {"name": "other"}});
    scene.create(EDITOR, GATED, "named", named).await??;
    let mut second = git("back");
    second["target"] = json!({"name": "behind"});
    let several = json!({"sourceRefs": [git("front"), second]});
    scene.create(EDITOR, GATED, "shop", several).await??;
    let stored = json!({"sourceRef": {"kind": "Bucket", "name": "files"}, "strategy": "artifact"});
    scene.create(EDITOR, GATED, "stored", stored).await??;
    let held = json!({"sourceRef": git("upstream"), "strategy": "suspend"});
    scene.create(EDITOR, GATED, "held", held).await??;

    for (kind, name, of) in [
        (GIT, "app", "app"),
        (GIT, "other", "named"),
        (GIT, "shop-front", "shop"),
        (GIT, "behind", "shop"),
        ("ExternalArtifact", "stored", "stored"),
    ] {
        let spec = || match kind {
            GIT => repository(),
            _ => json!({}),
        };
        let words = format!(
            "metadata.name: is that of the child of the GatedSource {of}, which the controller makes"
        );
        // The API server learns of gated sources by a watch of its own.
        poll(DEADLINE, &format!("{name} to be kept free"), async || {
            let dry = PostParams {
                dry_run: true,
                ..PostParams::default()
            };
            let object = scene.object(kind, name, &json!({}), spec())?;
            let answer = scene.api(EDITOR, kind).await?.create(&dry, &object).await;
            refused_by("sluice-child-names", answer, &words)
        })
        .await?;
        let answer = scene.create(EDITOR, kind, name, spec()).await?;
        refused_by("sluice-child-names", answer, &words)?;
        scene.child(kind, name, spec()).await?;
    }
    // What nobody waits for is anybody's.
    for name in ["named", "held", "shop", "stored"] {
        scene.create(EDITOR, GIT, name, repository()).await??;
    }
    scene
        .create(EDITOR, "ExternalArtifact", "app", json!({}))
        .await??;
    Ok(())
}

/// Kubernetes empties a namespace that is deleted, children and all.
#[tokio::test]
async fn a_namespace_with_children_can_be_deleted() -> Result<()> {
    let scene = Scene::new("emptied").await?;
    let spec = json!({"sourceRef": git("upstream"), "deletionPolicy": "Delete"});
    scene.create(ADOPTER, GATED, "app", spec).await??;
    scene.child(GIT, "app", repository()).await?;
    let namespaces: Api<Object> = Api::all(scene.cluster.client().await?);
    let name = scene.namespace.name();
    namespaces.remove(name).await?;
    poll(2 * DEADLINE, "the namespace to be gone", async || {
        let left = namespaces.get_opt(name).await?;
        ensure!(left.is_none(), "{:?}", left.and_then(|it| it.status));
        Ok(())
    })
    .await
}
