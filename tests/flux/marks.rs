//! What GatedSources make and suspend is theirs by its marks: the admission policy `sluice-children`,
//! with Flux's own controllers at work on the same objects.

use anyhow::{Result, ensure};
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};
use sluice_tests::installation::CONTROLLER;
use sluice_tests::{Writes, poll};

use crate::stage::{DEADLINE, Stage, resource};

const NOW: &str = "2026-11-20T12:00:00Z";
/// May do everything with sources.
const EDITOR: &str = "editor";
/// May also let out what no gate has admitted.
const OWNER: &str = "owner";

struct Scene {
    stage: Stage<'static>,
}

impl Scene {
    async fn new(word: &str) -> Result<Self> {
        let stage = Stage::new(word, NOW).await?;
        let sources = json!({
            "apiGroups": ["source.toolkit.fluxcd.io"], "resources": ["*"], "verbs": ["*"],
        });
        let gated = json!({
            "apiGroups": ["sluice.dev"], "resources": ["gatedsources"], "verbs": ["get", "baseline"],
        });
        let (editor, owner) = ([sources.clone()], [sources, gated]);
        stage.grant_rules("editor", EDITOR, &editor).await?;
        stage.grant_rules("owner", OWNER, &owner).await?;
        let scene = Self { stage };
        for user in [EDITOR, OWNER] {
            let api = scene.api(user, "GitRepository").await?;
            let may = async || api.list(&ListParams::default()).await;
            poll(DEADLINE, "rights", may).await?;
        }
        Ok(scene)
    }

    async fn api(&self, user: &str, kind: &str) -> Result<Api<DynamicObject>> {
        let client = self.stage.cluster().client_for(user).await?;
        let namespace = self.stage.namespace();
        Ok(Api::namespaced_with(client, namespace, &resource(kind)?))
    }

    async fn create(
        &self,
        user: &str,
        (kind, name): (&str, &str),
        annotations: Value,
        spec: Value,
    ) -> Result<kube::Result<DynamicObject>> {
        let object = json!({
            "apiVersion": resource(kind)?.api_version, "kind": kind,
            "metadata": {"name": name, "annotations": annotations}, "spec": spec,
        });
        let object = serde_json::from_value(object)?;
        let api = self.api(user, kind).await?;
        Ok(api.add(&object).await)
    }

    async fn patch(
        &self,
        user: &str,
        (kind, name): (&str, &str),
        patch: Value,
    ) -> Result<kube::Result<DynamicObject>> {
        let api = self.api(user, kind).await?;
        Ok(api.merge(name, &patch).await)
    }

    /// As the controller makes it.
    async fn child(&self, kind: &str, name: &str, spec: Value) -> Result<()> {
        let mark = json!({"sluice.dev/gated-source": "app"});
        self.create(CONTROLLER, (kind, name), mark, spec).await??;
        Ok(())
    }
}

/// That it was refused by the policy, with these words.
fn refused(answer: kube::Result<DynamicObject>, words: &str) -> Result<()> {
    let error = match answer {
        Ok(_) => anyhow::bail!("it was taken, and not refused with {words:?}"),
        Err(kube::Error::Api(error)) => error,
        Err(error) => return Err(error.into()),
    };
    let policy = "ValidatingAdmissionPolicy 'sluice-children'";
    ensure!(
        error.code == 403 && error.message.contains(policy),
        "{error:?}"
    );
    ensure!(error.message.contains(words), "{words:?}: {error:?}");
    Ok(())
}

fn annotate(key: &str, value: impl Into<Value>) -> Value {
    json!({"metadata": {"annotations": {format!("sluice.dev/{key}"): value.into()}}})
}

fn git(branch: &str) -> Value {
    // Nobody listens there: source-controller says so.
    let reference = json!({"branch": branch});
    json!({"url": "http://127.0.0.1:9/app", "ref": reference, "interval": "1h"})
}

const CHILD: (&str, &str) = ("GitRepository", "app");
const ARTIFACT: (&str, &str) = ("ExternalArtifact", "files");

#[tokio::test]
async fn a_child_is_changed_by_the_controller_alone() -> Result<()> {
    let scene = Scene::new("child").await?;
    scene.child(CHILD.0, CHILD.1, git("main")).await?;
    let spec = json!({"spec": {"ref": {"branch": "other"}}});
    let theirs = "spec: this is the child of the GatedSource app, written by the controller alone; change the source";
    for user in [EDITOR, OWNER, "admin"] {
        refused(scene.patch(user, CHILD, spec.clone()).await?, theirs)?;
    }
    refused(
        scene
            .patch(EDITOR, CHILD, annotate("gated-source", Value::Null))
            .await?,
        "to remove the mark needs the verb baseline on that one, and \"editor\" does not have it",
    )?;
    for user in [EDITOR, OWNER] {
        refused(
            scene
                .patch(user, CHILD, annotate("gated-source", "other"))
                .await?,
            "metadata.annotations[sluice.dev/gated-source]: marks the child of the GatedSource app",
        )?;
    }
    scene.patch(CONTROLLER, CHILD, spec).await??;
    Ok(())
}

/// What else is written on it is everybody's, and Flux's controllers do write.
#[tokio::test]
async fn flux_works_on_a_child_as_on_any_source() -> Result<()> {
    let scene = Scene::new("flux").await?;
    scene.child(CHILD.0, CHILD.1, git("main")).await?;
    let stage = &scene.stage;
    stage.fails(CHILD.0, CHILD.1, "GitOperationFailed").await?;
    let child = stage.api(CHILD.0)?.get(CHILD.1).await?;
    let finalizers = child.metadata.finalizers.unwrap_or_default();
    assert_eq!(finalizers, ["finalizers.fluxcd.io"]);
    stage.reconcile(CHILD.0, CHILD.1).await?;
    let label = json!({"metadata": {"labels": {"team": "apps"}, "annotations": {"note": "mine"}}});
    scene.patch(EDITOR, CHILD, label).await??;
    // Deleted by a user who may, it is finalized by Flux.
    let sources = scene.api(OWNER, CHILD.0).await?;
    sources.remove(CHILD.1).await?;
    poll(DEADLINE, "the child to be gone", async || {
        let left = sources.get_opt(CHILD.1).await?;
        ensure!(left.is_none(), "{left:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn nobody_else_makes_a_child() -> Result<()> {
    let scene = Scene::new("made").await?;
    let mark = json!({"sluice.dev/gated-source": "app"});
    let words = "metadata.annotations[sluice.dev/gated-source]: marks the child of a GatedSource, which \
                 the controller alone makes; write a GatedSource";
    for user in [EDITOR, OWNER] {
        let made = scene.create(user, CHILD, mark.clone(), git("main"));
        refused(made.await?, words)?;
    }
    scene
        .create(EDITOR, CHILD, json!({}), git("main"))
        .await??;
    let marked = annotate("gated-source", "app");
    refused(scene.patch(OWNER, CHILD, marked).await?, words)?;
    scene
        .patch(EDITOR, CHILD, json!({"spec": {"suspend": true}}))
        .await??;
    Ok(())
}

/// It says which file is delivered.
#[tokio::test]
async fn the_status_of_an_artifact_is_written_by_the_controller_alone() -> Result<()> {
    let scene = Scene::new("artifact").await?;
    scene.child(ARTIFACT.0, ARTIFACT.1, json!({})).await?;
    let status = |url: &str| {
        let artifact = json!({
            "digest": format!("sha256:{}", "0".repeat(64)), "path": "app.tar.gz", "url": url,
            "revision": "main@sha1:0123", "lastUpdateTime": NOW,
        });
        json!({"status": {"artifact": artifact}})
    };
    let write = async |user: &str, name: &str| {
        let artifacts = scene.api(user, ARTIFACT.0).await?;
        let status = status(&format!("http://{user}.example.com/app.tar.gz"));
        let written = artifacts.merge_status(name, &status).await;
        Ok::<_, anyhow::Error>(written)
    };
    write(CONTROLLER, ARTIFACT.1).await??;
    let words =
        "status: of the ExternalArtifact of a GatedSource is written by the controller alone";
    for user in [EDITOR, OWNER, "admin"] {
        refused(write(user, ARTIFACT.1).await?, words)?;
    }
    let own = (ARTIFACT.0, "own");
    scene.create(EDITOR, own, json!({}), json!({})).await??;
    write(EDITOR, "own").await??;
    Ok(())
}

/// What is left behind when a GatedSource is gone is somebody's again.
#[tokio::test]
async fn anyone_who_may_write_a_baseline_may_have_the_child() -> Result<()> {
    let scene = Scene::new("released").await?;
    scene.child(CHILD.0, CHILD.1, git("main")).await?;
    let mut release = annotate("gated-source", Value::Null);
    release["spec"] = git("other");
    scene.patch(OWNER, CHILD, release).await??;
    scene
        .patch(EDITOR, CHILD, json!({"spec": git("mine")}))
        .await??;
    Ok(())
}

#[tokio::test]
async fn what_a_gated_source_has_suspended_it_resumes() -> Result<()> {
    let scene = Scene::new("suspended").await?;
    scene
        .create(EDITOR, CHILD, json!({}), git("main"))
        .await??;
    let mut suspend = annotate("suspended-by", "freeze");
    suspend["spec"] = json!({"suspend": true});
    let words = "metadata.annotations[sluice.dev/suspended-by]: says which GatedSource suspends this source";
    refused(scene.patch(OWNER, CHILD, suspend.clone()).await?, words)?;
    scene.patch(CONTROLLER, CHILD, suspend.clone()).await??;
    let other = annotate("suspended-by", "mine");
    refused(scene.patch(OWNER, CHILD, other).await?, words)?;

    // As `flux resume` does, and Flux with a `suspend: false` that lives in Git.
    for resumed in [json!(false), Value::Null] {
        let resume = json!({"spec": {"suspend": resumed}});
        let words = "spec.suspend: the GatedSource freeze suspends this source, and resumes it when its \
                     gates are open; open them, or remove the annotation sluice.dev/suspended-by";
        refused(scene.patch(OWNER, CHILD, resume).await?, words)?;
    }
    // What else is in its spec is its owner's still.
    let branch = json!({"spec": {"ref": {"branch": "other"}}});
    scene.patch(EDITOR, CHILD, branch).await??;
    // Anyone who may write it may take it out of those hands: suspended, or resumed with the mark.
    let release = annotate("suspended-by", Value::Null);
    scene.patch(EDITOR, CHILD, release.clone()).await??;
    scene.patch(CONTROLLER, CHILD, suspend.clone()).await??;
    let mut resume = release;
    resume["spec"] = json!({"suspend": false});
    scene.patch(EDITOR, CHILD, resume.clone()).await??;

    scene.patch(CONTROLLER, CHILD, suspend).await??;
    scene.patch(CONTROLLER, CHILD, resume).await??;
    Ok(())
}
