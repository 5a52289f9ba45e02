//! What ends a force without touching its annotations: a gate that is deleted and made again has
//! none. While a force lasts that needs the right to force.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Map, Value, json};
use sluice_crds::{Gate, GateSpec};
use sluice_tests::{Writes, poll};

use super::scene::{DEADLINE, GATE, Scene, annotations, force, nothing, refused};

/// Kubernetes' garbage collector, where it acts under a name of its own. It may update and delete
/// everything.
const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

/// What each of them lacks.
const NO_RIGHT: &str = "would end the force, which needs the verb override on gates.sluice.dev, \
                        and \"editor\" does not have it";

/// Deletes the gate as `user`.
async fn delete(scene: &Scene, user: &str) -> Result<kube::Result<()>> {
    let gates = scene.gates(user).await?;
    let deleted = gates.remove(GATE).await;
    Ok(deleted.map(|_| ()))
}

/// A gate that carol has forced closed, in the middle of its force.
async fn closed() -> Result<Scene> {
    let scene = Scene::new().await?;
    let mut closed = force("carol");
    closed.insert("sluice.dev/force".to_owned(), "closed".into());
    scene.annotate("carol", &closed).await??;
    scene.note().await?;
    scene
        .report(json!({"override": Scene::effective()}))
        .await?;
    Ok(scene)
}

#[tokio::test]
async fn a_forced_gate_is_not_deleted_without_the_right() -> Result<()> {
    let scene = closed().await?;
    refused(delete(&scene, "editor").await?, NO_RIGHT)?;
    refused(delete(&scene, "editor").await?, "to delete it")?;
    let gates = scene.gates("editor").await?;
    let all = gates
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await;
    refused(all.map(|_| ()), NO_RIGHT)?;
    delete(&scene, "carol").await??;
    Ok(())
}

/// From the first moment on: before the controller has noted the force, and while it has noted it
/// but not yet reported.
#[tokio::test]
async fn there_is_no_moment_in_which_a_closed_force_does_not_count() -> Result<()> {
    let scene = Scene::new().await?;
    let mut closed = force("carol");
    closed.insert("sluice.dev/force".to_owned(), "closed".into());
    scene.annotate("carol", &closed).await??;
    refused(delete(&scene, "editor").await?, NO_RIGHT)?;
    // The controller says so before it notes it.
    scene.report(json!({"reason": "Forced"})).await?;
    scene.note().await?;
    refused(delete(&scene, "editor").await?, NO_RIGHT)?;

    // Over one that has ended, whose note is still there.
    scene.report(json!({"reason": "Default"})).await?;
    let another = annotations([("sluice.dev/force-reason", "hotfix 4712")]);
    scene.annotate("carol", &another).await??;
    refused(delete(&scene, "editor").await?, NO_RIGHT)
}

#[tokio::test]
async fn a_gate_whose_force_has_ended_is_deleted_like_any_other() -> Result<()> {
    let scene = closed().await?;
    scene
        .report(json!({"override": null, "reason": "Default"}))
        .await?;
    delete(&scene, "editor").await??;
    let scene = closed().await?;
    scene.annotate("carol", &nothing()).await??;
    delete(&scene, "editor").await??;
    Ok(())
}

fn owner(name: &str, uid: &str) -> Value {
    json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}])
}

/// An owner that is there.
async fn map_of(scene: &Scene) -> Result<Value> {
    let client = scene.cluster().client().await?;
    let maps: Api<ConfigMap> = Api::namespaced(client, scene.namespace());
    let map = ConfigMap {
        metadata: kube::api::ObjectMeta {
            name: Some("owner".to_owned()),
            ..Default::default()
        },
        ..ConfigMap::default()
    };
    let map = maps.add(&map).await?;
    Ok(owner("owner", &map.uid().context("no uid")?))
}

#[tokio::test]
async fn a_forced_gate_gets_no_owner_that_takes_it_along() -> Result<()> {
    const DEAD: &str = "00000000-0000-0000-0000-000000000000";
    let scene = Scene::new().await?;
    let known = map_of(&scene).await?;
    let uid = known[0]["uid"].as_str().context("no uid")?;
    let own = |owners: Value| json!({"metadata": {"ownerReferences": owners}});
    scene.patch("editor", own(known.clone())).await??;
    scene.annotate("carol", &force("carol")).await??;
    for other in [owner("gone", DEAD), owner("other", uid)] {
        let answer = scene.patch("editor", own(other)).await?;
        refused(
            answer,
            "to give it another owner (metadata.ownerReferences)",
        )?;
    }
    scene.patch("editor", own(json!([]))).await??;
    let answer = scene.patch("editor", own(known)).await?;
    refused(answer, NO_RIGHT)
}

/// Who may edit a gate can fill it with what the API server would have to look through.
#[tokio::test]
async fn a_gate_can_be_forced_whatever_it_was_filled_with_before() -> Result<()> {
    let scene = Scene::new().await?;
    let many: Map<String, Value> = (0..30_000).map(|n| (format!("a/{n}"), "".into())).collect();
    let answer = scene.annotate("editor", &many).await?;
    refused(answer, "metadata.annotations: there are more than 200")?;
    let mut gate = Gate::new("filled", GateSpec::default());
    let annotations = (0..201).map(|n| (format!("a/{n}"), String::new()));
    gate.metadata.annotations = Some(annotations.collect());
    let gates = scene.gates("editor").await?;
    let created = gates.add(&gate).await;
    refused(created, "metadata.annotations: there are more than 200")?;

    let (annotations, owners) = (many.into_iter().take(180).collect(), map_of(&scene).await?);
    scene.annotate("editor", &annotations).await??;
    let owners = json!({"metadata": {"ownerReferences": vec![owners[0].clone(); 800]}});
    scene.patch("editor", owners).await??;
    let mut closed = force("oncall");
    closed.insert("sluice.dev/force".to_owned(), "closed".into());
    scene.annotate("oncall", &closed).await??;
    scene.note().await?;
    Ok(())
}

/// The owner that it has had before goes: Kubernetes itself cleans up when the force is over.
#[tokio::test]
async fn a_forced_gate_is_not_collected_before_its_force_is_over() -> Result<()> {
    let scene = closed().await?;
    let expected = format!(
        "to delete it would end the force, which needs the verb override on gates.sluice.dev, and \
         \"{COLLECTOR}\" does not have it"
    );
    refused(delete(&scene, COLLECTOR).await?, &expected)?;
    scene.annotate("carol", &nothing()).await??;
    delete(&scene, COLLECTOR).await??;
    Ok(())
}

/// Deleted before it was forced, it is there until its last finalizer is removed.
#[tokio::test]
async fn a_gate_that_was_deleted_before_stays_while_it_is_forced() -> Result<()> {
    let scene = Scene::new().await?;
    let finalizers = |names: Value| json!({"metadata": {"finalizers": names}});
    let kept = finalizers(json!(["example.com/never"]));
    scene.patch("editor", kept).await??;
    delete(&scene, "editor").await??;
    scene.annotate("carol", &force("carol")).await??;
    let answer = scene.patch("editor", finalizers(Value::Null)).await?;
    refused(answer, "to remove a finalizer now that it is deleted")?;
    scene.patch("carol", finalizers(Value::Null)).await??;
    Ok(())
}

/// What the controller owns no longer, kustomize-controller strips.
#[tokio::test]
async fn nobody_takes_the_force_from_its_field_manager() -> Result<()> {
    let scene = closed().await?;
    let gates = scene.gates("admin").await?;
    let entries = json!(gates.get(GATE).await?.managed_fields());
    let mut stolen = entries.clone();
    let mut less = entries.clone();
    let places = stolen.as_array_mut().context("nobody owns anything")?;
    for (place, entry) in places.iter_mut().enumerate() {
        if entry["manager"] == "gate-controller-force" {
            entry["manager"] = json!("kustomize-controller");
            less[place]["fieldsV1"]["f:metadata"]["f:annotations"]
                .as_object_mut()
                .context("it owns no annotations")?
                .remove("f:sluice.dev/force");
        }
    }
    for fields in [stolen, less, json!([{}])] {
        let change = json!({"metadata": {"managedFields": fields}});
        let answer = scene.patch("editor", change).await?;
        refused(answer, "to take the force from the field manager")?;
    }
    // Another tool may own it too, and leave it again.
    let tool = PatchParams::apply("another-tool");
    let gates = scene.gates("editor").await?;
    for annotations in [json!(scene.force().await?), json!({})] {
        let same = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
            "metadata": {"annotations": annotations},
        });
        gates.patch(GATE, &tool, &Patch::Apply(same)).await?;
    }
    assert_eq!(scene.force().await?.len(), 4);

    // Nobody's business once the force is over.
    scene.report(json!({"override": null})).await?;
    let reset = json!({"metadata": {"managedFields": [{}]}});
    scene.patch("editor", reset).await??;
    Ok(())
}

#[tokio::test]
async fn a_forced_gate_does_not_hold_up_the_end_of_its_namespace() -> Result<()> {
    let scene = closed().await?;
    let finalizers = |names: Value| json!({"metadata": {"finalizers": names}});
    let kept = finalizers(json!(["example.com/never"]));
    scene.patch("editor", kept).await??;
    let namespaces: Api<Namespace> = Api::all(scene.cluster().client().await?);
    namespaces.remove(scene.namespace()).await?;
    let gates = scene.gates("admin").await?;
    poll(DEADLINE, "the gate to be deleted with it", async || {
        let gate = gates.get(GATE).await?;
        ensure!(gate.metadata.deletion_timestamp.is_some(), "not yet");
        Ok(())
    })
    .await?;
    // Who has no right to force it: the namespace may take a moment to be known to go.
    poll(DEADLINE, "the finalizer to be removed", async || {
        let removed = scene.patch(COLLECTOR, finalizers(Value::Null)).await?;
        removed.map(drop).map_err(anyhow::Error::from)
    })
    .await?;
    poll(DEADLINE, "the namespace to be gone", async || {
        let left = namespaces.get_opt(scene.namespace()).await?;
        ensure!(left.is_none(), "{:?}", left.and_then(|it| it.status));
        Ok(())
    })
    .await
}
