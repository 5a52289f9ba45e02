//! What becomes of the child, no matter who else changes it.

use anyhow::{Context, Result, ensure};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use sluice_crds::gated_source::Origin;
use sluice_tests::flux::Git;
use sluice_tests::{Writes, poll};

use crate::delivery::{APP, CLOSED, Delivery, OPEN, UPSTREAM};
use crate::stage::{DEADLINE, Stage, app, resource};

const NOW: &str = "2026-11-19T12:00:00Z";

const SOURCE_CONTROLLER: &str = "system:serviceaccount:flux-system:source-controller";

/// What a child is pinned to.
fn pinned(child: &DynamicObject) -> &Value {
    &child.data["spec"]["ref"]["commit"]
}

/// The admission policy refuses anyone who edits a child; where it is not installed, or somebody may pass
/// it, the edit is taken back.
#[tokio::test]
async fn an_edit_of_the_child_is_refused_or_taken_back() -> Result<()> {
    let app = Delivery::begin("edit", NOW, OPEN).await?;
    let one = app.push("one").await?;
    app.deployed(&one, "one").await?;
    app.close().await?;
    app.push_behind_the_gate("two").await?;
    let children = app.stage.api("GitRepository")?;
    let edit = json!({"spec": {"ref": {"commit": null}, "suspend": true}});
    let refused = children.merge(APP, &edit).await;
    let refused = refused
        .err()
        .context("somebody has edited the child")?
        .to_string();
    ensure!(refused.contains("GatedSource"), "{refused}");
    // Somebody who passes the policy: the child is deleted, and comes back as it was.
    children.remove(APP).await?;
    poll(DEADLINE, "the child to be back", async || {
        let child = children.get(APP).await?;
        let is_there = child.metadata.deletion_timestamp.is_none();
        ensure!(
            is_there && child.data["status"]["artifact"].is_object(),
            "{:?}",
            child.data
        );
        ensure!(pinned(&child) == one.as_str(), "{}", child.data["spec"]);
        Ok(())
    })
    .await?;
    app.stage.reconcile("Kustomization", APP).await?;
    app.stage.deployed(APP, "one").await
}

/// Its status says that its file is elsewhere, as somebody could write where the policy is missing.
/// Flux is asked, and writes where it really is.
#[tokio::test]
async fn a_child_that_shows_what_was_not_admitted_is_put_right() -> Result<()> {
    let app = Delivery::begin("forged", NOW, OPEN).await?;
    let one = app.push("one").await?;
    app.deployed(&one, "one").await?;
    app.close().await?;
    app.push_behind_the_gate("two").await?;
    let stage = &app.stage;
    let honest = stage.api("GitRepository")?.get(APP).await?;
    let asked = |child: &DynamicObject| {
        let annotations = child.metadata.annotations.as_ref();
        annotations.and_then(|all| all.get("reconcile.fluxcd.io/requestedAt").cloned())
    };
    // The same commit is the same file each time that it is fetched: nobody doubted it.
    let doubted = |asked: Option<String>| asked.is_some_and(|asked| asked.contains("other-"));
    let annotations = &honest.metadata.annotations;
    ensure!(!doubted(asked(&honest)), "{annotations:?}");
    let artifact = honest.data["status"]["artifact"].clone();
    // Under the name of the one whom the policy lets pass.
    let client = stage.cluster().client_for(SOURCE_CONTROLLER).await?;
    let children: Api<DynamicObject> =
        Api::namespaced_with(client, stage.namespace(), &resource("GitRepository")?);
    for forged in [
        json!({"url": "http://127.0.0.1:9/evil.tar.gz"}),
        json!({"digest": format!("sha256:{}", "0".repeat(64))}),
    ] {
        let patch = json!({"status": {"artifact": forged}});
        let before = asked(&children.get(APP).await?);
        children.merge_status(APP, &patch).await?;
        let right = |child: &Value| {
            let now = &child["status"]["artifact"];
            (&now["url"], &now["digest"]) == (&artifact["url"], &artifact["digest"])
        };
        let child = stage.object("GitRepository", APP, "to be put right", right);
        let after = asked(&child.await?);
        // Where the Kustomization was faster, it misses the file, and that is asked with.
        ensure!(after != before, "{after:?} was asked with before, too");
        app.stage.holds(APP, "Ready", "True", "Serving").await?;
    }
    app.heals("one").await
}

/// The admission is in the status, the child is not made: the controller is killed then, the gate
/// closes. The replica that starts next makes the child, and asks nobody.
#[tokio::test]
async fn a_replica_that_is_killed_before_the_child_is_patched_patches_it_later() -> Result<()> {
    let app = Delivery::begin("killed", NOW, OPEN).await?;
    let one = app.push("one").await?;
    app.deployed(&one, "one").await?;
    let lock = Lock::put(&app).await?;
    let two = app.push("two").await?;
    let admitted = |status: &sluice_crds::GatedSourceStatus| {
        (status.admitted.as_ref()).is_some_and(|it| it.revision == Git::revision(&two))
    };
    app.stage
        .source(APP, "two to be admitted", admitted)
        .await?;
    let Delivery {
        stage,
        git,
        controller,
    } = app;
    drop(controller);
    stage.keep(crate::delivery::GATE, CLOSED).await?;
    let child = stage.api("GitRepository")?.get(APP).await?;
    ensure!(pinned(&child) == one.as_str(), "the child was patched");
    lock.take_away(&stage).await?;
    let controller = stage.start_with_egress().await?;
    let app = Delivery {
        stage,
        git,
        controller,
    };
    app.deployed(&two, "two").await?;
    app.push_behind_the_gate("three").await?;
    Ok(())
}

/// An admission policy that lets nobody write children here.
struct Lock {
    policies: Api<DynamicObject>,
    bindings: Api<DynamicObject>,
    name: String,
}

impl Lock {
    async fn put(app: &Delivery<'_>) -> Result<Self> {
        let kind = |kind: &str, plural: &str| ApiResource {
            group: "admissionregistration.k8s.io".into(),
            version: "v1".into(),
            api_version: "admissionregistration.k8s.io/v1".into(),
            kind: kind.into(),
            plural: plural.into(),
        };
        let client = app.stage.client();
        let policy = kind("ValidatingAdmissionPolicy", "validatingadmissionpolicies");
        let binding = kind(
            "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings",
        );
        let lock = Self {
            policies: Api::all_with(client.clone(), &policy),
            bindings: Api::all_with(client, &binding),
            name: format!("lock-{}", app.stage.namespace()),
        };
        let resources = json!([{
            "apiGroups": ["source.toolkit.fluxcd.io"], "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"], "resources": ["gitrepositories"],
            "resourceNames": [APP],
        }]);
        let spec = json!({
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": resources,
                "namespaceSelector": {"matchLabels": {
                    "kubernetes.io/metadata.name": app.stage.namespace(),
                }},
            },
            "validations": [{"expression": "false", "message": "locked"}],
        });
        lock.create(&lock.policies, &policy, spec).await?;
        let spec = json!({"policyName": lock.name, "validationActions": ["Deny"]});
        lock.create(&lock.bindings, &binding, spec).await?;
        lock.holds(&app.stage, true).await?;
        Ok(lock)
    }

    async fn create(
        &self,
        api: &Api<DynamicObject>,
        kind: &ApiResource,
        spec: Value,
    ) -> Result<()> {
        let labels = json!({"sluice.dev/test": "true"});
        let object = DynamicObject::new(&self.name, kind).data(json!({"spec": spec}));
        let mut object = object;
        object.metadata.labels = serde_json::from_value(labels)?;
        api.add(&object).await?;
        Ok(())
    }

    async fn take_away(self, stage: &Stage<'_>) -> Result<()> {
        for api in [&self.bindings, &self.policies] {
            api.remove(&self.name).await?;
        }
        self.holds(stage, false).await
    }

    /// Waits until it is in effect, or no longer: a moment after it is stored.
    async fn holds(&self, stage: &Stage<'_>, holds: bool) -> Result<()> {
        let children = stage.api("GitRepository")?;
        let touch = Patch::Merge(json!({"metadata": {"labels": {"touched": "yes"}}}));
        let dry = PatchParams {
            dry_run: true,
            ..PatchParams::default()
        };
        poll(DEADLINE, "the lock to take effect", async || {
            let touched = children.patch(APP, &dry, &touch).await;
            ensure!(touched.is_err() == holds, "{touched:?}");
            Ok(())
        })
        .await
    }
}

/// Deleted and applied again: the child stays, serves, and is taken up where it was.
#[tokio::test]
async fn a_gated_source_may_be_deleted_and_come_back() -> Result<()> {
    let app = Delivery::begin("delete", NOW, OPEN).await?;
    let one = app.push("one").await?;
    app.deployed(&one, "one").await?;
    app.close().await?;
    let two = app.push_behind_the_gate("two").await?;
    app.stage.gated().remove(APP).await?;
    app.heals("one").await?;
    app.stage.gate_source(APP, json!({})).await?;
    let back = app
        .stage
        .pends(APP, &Git::revision(&two))
        .await?
        .admitted
        .context("nothing")?;
    ensure!(
        back.origin == Origin::Adopted && back.revision == Git::revision(&one),
        "{back:?}"
    );
    // And with its children, where that is asked for.
    app.stage
        .gate_source(APP, json!({"deletionPolicy": "Delete"}))
        .await?;
    poll(DEADLINE, "it to be held until they are gone", async || {
        let finalizers = app.stage.gated().get(APP).await?.metadata.finalizers;
        ensure!(finalizers.is_some(), "it is not");
        Ok(())
    })
    .await?;
    app.stage.gated().remove(APP).await?;
    let children = app.stage.api("GitRepository")?;
    poll(DEADLINE, "both to be gone", async || {
        let left = (
            children.get_opt(APP).await?,
            app.stage.gated().get_opt(APP).await?,
        );
        ensure!(left.0.is_none() && left.1.is_none(), "{left:?}");
        Ok(())
    })
    .await
}

/// Flux itself applies the GatedSource from Git, again and again: what was admitted stays.
#[tokio::test]
async fn flux_may_apply_the_gated_source_again_and_again() -> Result<()> {
    let app = Delivery::begin("flux", NOW, OPEN).await?;
    let platform = Git::serve().await?;
    let declared = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GatedSource", "metadata": {"name": "mine"},
        "spec": {
            "sourceRef": {"kind": "GitRepository", "name": UPSTREAM},
            "gates": {"refs": [{"name": crate::delivery::GATE}]},
        },
    });
    platform.commit(&[("source.yaml", &declared.to_string())])?;
    app.stage.git_repository("platform", &platform).await?;
    app.stage
        .kustomization("platform", "GitRepository", "platform")
        .await?;
    let one = app.push("one").await?;
    app.stage.serves("mine", &Git::revision(&one)).await?;
    app.close().await?;
    let two = app.push_behind_the_gate("two").await?;
    let before = app.stage.pends("mine", &Git::revision(&two)).await?;
    app.stage.reconcile("Kustomization", "platform").await?;
    let again = platform.commit(&[("other.yaml", &crate::stage::app("other", "x"))])?;
    app.stage.reconcile("GitRepository", "platform").await?;
    app.stage
        .applied("platform", &Git::revision(&again))
        .await?;
    app.controller_rests().await?;
    let after = app
        .stage
        .source("mine", "a status", |status| status.pending.is_some())
        .await?;
    ensure!(before == after, "{before:?} became {after:?}");
    Ok(())
}

/// An object of the child's name that somebody else has made is left alone.
#[tokio::test]
async fn what_somebody_else_made_is_left_alone() -> Result<()> {
    let delivery = Delivery::begin("theirs", NOW, OPEN).await?;
    let theirs = Git::serve().await?;
    let commit = theirs.commit(&[("app.yaml", &app("theirs", "x"))])?;
    delivery.stage.git_repository("theirs", &theirs).await?;
    delivery.stage.gate_source("theirs", json!({})).await?;
    delivery.push("one").await?;
    let message = delivery
        .stage
        .holds("theirs", "Stalled", "True", "TargetTaken")
        .await?;
    ensure!(message.contains("write another target"), "{message}");
    // The gate is open, and nothing is said to have gone out.
    let status = delivery.stage.gated().get("theirs").await?.status;
    let status = status.context("no status")?;
    ensure!(status.admitted.is_none(), "{status:?}");
    let spec = delivery
        .stage
        .api("GitRepository")?
        .get("theirs")
        .await?
        .data["spec"]
        .clone();
    ensure!(
        spec["url"] == theirs.url() && spec["ref"]["commit"].is_null(),
        "{spec}"
    );
    delivery
        .stage
        .fetched("GitRepository", "theirs", &Git::revision(&commit))
        .await?;
    Ok(())
}
