//! Who may force a gate, change a force, and end it.

use anyhow::{Context, Result};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use sluice_crds::{Gate, GateSpec};
use sluice_tests::{DEADLINE, Writes, poll, rights};

use super::scene::{CONTROLLER, GATE, KEYS, Scene, annotations, force, nothing, refused};

const NO_RIGHT: &str = "which needs the verb override on gates.sluice.dev";

/// Other values of what says how long a force may last.
const LENGTHS: [(&str, &str); 2] = [("window", "2h"), ("maxOverride", "90h")];

#[tokio::test]
async fn the_right_to_write_gates_is_not_the_right_to_force_them() -> Result<()> {
    let scene = Scene::new().await?;
    refused(scene.annotate("editor", &force("editor")).await?, NO_RIGHT)?;
    for key in KEYS {
        // Set to nothing is not the same as not set.
        for value in ["open", ""] {
            let answer = scene
                .annotate("editor", &annotations([(key, value)]))
                .await?;
            refused(answer, NO_RIGHT).with_context(|| format!("{key}={value}"))?;
        }
    }
    assert_eq!(scene.force().await?, annotations([]));
    Ok(())
}

#[tokio::test]
async fn the_refusal_says_who_lacks_what_and_where() -> Result<()> {
    let scene = Scene::new().await?;
    let expected = format!(
        "\"editor\" does not have it in namespace \"{}\"; leave the annotations sluice.dev/force* \
         and *.gate.fluxcd.io/requestedAt as they are, or ask for the verb (the ClusterRole \
         sluice-gate-override grants it)",
        scene.namespace()
    );
    refused(scene.annotate("editor", &force("editor")).await?, &expected)
}

#[tokio::test]
async fn anyone_who_has_the_right_forces_in_their_own_name() -> Result<()> {
    let scene = Scene::new().await?;
    refused(
        scene.annotate("carol", &force("dave")).await?,
        "\"dave\" is not the requesting user; write \"carol\"",
    )?;
    let mut unsigned = force("carol");
    unsigned.remove("sluice.dev/force-by");
    refused(
        scene.annotate("carol", &unsigned).await?,
        "must say who forces the gate; write \"carol\"",
    )?;
    scene.annotate("carol", &force("carol")).await??;
    assert_eq!(scene.force().await?, force("carol"));
    Ok(())
}

/// The API server asks nobody with system:masters for rights, but still for their name.
#[tokio::test]
async fn a_cluster_admin_forces_in_their_own_name_too() -> Result<()> {
    let scene = Scene::new().await?;
    refused(
        scene.annotate("admin", &force("carol")).await?,
        "write \"admin\"",
    )?;
    scene.annotate("admin", &force("admin")).await??;
    Ok(())
}

#[tokio::test]
async fn what_has_nothing_to_do_with_the_force_passes_while_it_lasts() -> Result<()> {
    let scene = Scene::forced().await?;
    let gates = scene.gates("editor").await?;
    for change in [
        json!({"metadata": {"annotations": {"example.com/ticket": "1"}}}),
        json!({"metadata": {"labels": {"team": "a"}}}),
        json!({"spec": {"require": "oneOf"}}),
    ] {
        gates.merge(GATE, change).await?;
    }
    // The same force, said again and in another order, by a tool that would own it too.
    let again = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
        "metadata": {"annotations": scene.force().await?},
    });
    let owner = PatchParams::apply("another-tool").force();
    gates.patch(GATE, &owner, &Patch::Apply(again)).await?;
    assert_eq!(scene.force().await?, force("carol"));
    Ok(())
}

/// The editor changes how long forces may last, and is refused unless `may`.
async fn lengths(scene: &Scene, may: bool) -> Result<()> {
    for (field, value) in LENGTHS {
        let change = json!({"spec": {field: value}});
        let answer = scene.patch("editor", change).await?;
        match may {
            true => drop(answer?),
            false => {
                refused(answer, "spec.window and spec.maxOverride too").with_context(|| field)?;
            }
        }
    }
    Ok(())
}

/// Shortening `maxOverride` would end a force, and a longer `window` would stretch one.
#[tokio::test]
async fn how_long_a_force_lasts_is_part_of_it() -> Result<()> {
    let scene = Scene::forced().await?;
    lengths(&scene, false).await?;
    let unforced = Scene::new().await?;
    lengths(&unforced, true).await?;
    Ok(())
}

/// Its annotations stay, as a record: they must not hold up Flux, whose one apply has them all.
#[tokio::test]
async fn a_force_that_has_ended_is_nobodys_business() -> Result<()> {
    let scene = Scene::forced().await?;
    scene.note().await?;
    scene
        .report(json!({"override": Scene::effective()}))
        .await?;
    lengths(&scene, false).await?;
    scene.report(json!({"override": null})).await?;
    lengths(&scene, true).await?;
    Ok(())
}

#[tokio::test]
async fn ending_a_force_needs_the_right() -> Result<()> {
    let scene = Scene::forced().await?;
    refused(scene.annotate("editor", &nothing()).await?, NO_RIGHT)?;
    // Written again without them is removed, too.
    let plain = Gate::new(GATE, GateSpec::default());
    let mut plain = json!(plain);
    let version = scene
        .gates("admin")
        .await?
        .get(GATE)
        .await?
        .resource_version();
    plain["metadata"]["resourceVersion"] = json!(version);
    let plain: Gate = serde_json::from_value(plain)?;
    let replaced = scene
        .gates("editor")
        .await?
        .replace(GATE, &PostParams::default(), &plain)
        .await;
    refused(replaced, NO_RIGHT)?;
    assert_eq!(scene.force().await?, force("carol"));

    scene.annotate("dave", &nothing()).await??;
    assert_eq!(scene.force().await?, annotations([]));
    Ok(())
}

#[tokio::test]
async fn anyone_who_changes_a_force_takes_it_over() -> Result<()> {
    let scene = Scene::forced().await?;
    let longer = annotations([("sluice.dev/force-until", "2026-11-21T17:00:00Z")]);
    refused(scene.annotate("dave", &longer).await?, "write \"dave\"")?;
    // Half an end is a change.
    let mut half = annotations([]);
    half.insert("sluice.dev/force".to_owned(), Value::Null);
    refused(
        scene.annotate("dave", &half).await?,
        "or end the force by removing every annotation sluice.dev/force*",
    )?;
    let mut mine = longer;
    mine.insert("sluice.dev/force-by".to_owned(), "dave".into());
    scene.annotate("dave", &mine).await??;
    assert_eq!(scene.force().await?["sluice.dev/force-by"], "dave");
    Ok(())
}

#[tokio::test]
async fn the_controller_completes_a_force_and_changes_nothing_else() -> Result<()> {
    let scene = Scene::forced().await?;
    let completed = annotations([
        ("sluice.dev/force-until", "2026-11-21T17:00:00Z"),
        ("sluice.dev/force-seen", "2026-11-21T16:00:00Z"),
    ]);
    scene.annotate(CONTROLLER, &completed).await??;
    for (key, value) in [
        ("sluice.dev/force", "closed"),
        ("sluice.dev/force-reason", "another"),
        ("open.gate.fluxcd.io/requestedAt", "2026-11-21T16:00:00Z"),
        ("close.gate.fluxcd.io/requestedAt", "2026-11-21T16:00:00Z"),
    ] {
        let answer = scene
            .annotate(CONTROLLER, &annotations([(key, value)]))
            .await?;
        refused(answer, "\"carol\" is not the requesting user").with_context(|| key.to_owned())?;
    }
    let stolen = annotations([("sluice.dev/force-by", "dave")]);
    refused(
        scene.annotate(CONTROLLER, &stolen).await?,
        "\"dave\" is not the requesting user",
    )?;
    let mut expected = force("carol");
    expected.extend(completed);
    assert_eq!(scene.force().await?, expected);
    scene.annotate(CONTROLLER, &nothing()).await??;
    Ok(())
}

#[tokio::test]
async fn what_the_controller_has_seen_is_written_by_it_alone() -> Result<()> {
    let scene = Scene::forced().await?;
    let seen = |at: &str| annotations([("sluice.dev/force-seen", at)]);
    let expected =
        "metadata.annotations[sluice.dev/force-seen]: is written by the controller alone";
    refused(
        scene
            .annotate("carol", &seen("2020-01-01T00:00:00Z"))
            .await?,
        expected,
    )?;
    scene
        .annotate(CONTROLLER, &seen("2026-11-21T16:00:00Z"))
        .await??;
    refused(
        scene
            .annotate("carol", &seen("2020-01-01T00:00:00Z"))
            .await?,
        expected,
    )?;
    // Left as it is while the force changes, or removed.
    scene
        .annotate("carol", &annotations([("sluice.dev/force", "closed")]))
        .await??;
    let mut removed = annotations([]);
    removed.insert("sluice.dev/force-seen".to_owned(), Value::Null);
    scene.annotate("carol", &removed).await??;
    Ok(())
}

#[tokio::test]
async fn the_requests_of_the_flux_rfc_are_forces() -> Result<()> {
    for key in [
        "open.gate.fluxcd.io/requestedAt",
        "close.gate.fluxcd.io/requestedAt",
    ] {
        let scene = Scene::new().await?;
        let unsigned = annotations([(key, "2026-11-21T16:00:00Z")]);
        let mut signed = unsigned.clone();
        signed.insert("sluice.dev/force-by".to_owned(), "carol".into());
        refused(scene.annotate("editor", &signed).await?, NO_RIGHT)?;
        refused(
            scene.annotate("carol", &unsigned).await?,
            "must say who forces the gate",
        )?;
        scene.annotate("carol", &signed).await??;
        assert_eq!(scene.force().await?, signed);
        refused(scene.annotate("editor", &nothing()).await?, NO_RIGHT)?;
    }
    Ok(())
}

/// Gates that are created forced: by people, from a backup, or by a tool from Git.
#[tokio::test]
async fn a_gate_that_is_created_forced_is_judged_as_well() -> Result<()> {
    const TOOL: &str = "system:serviceaccount:flux-system:kustomize-controller";
    let scene = Scene::new().await?;
    scene
        .grant(&["editor", "carol", "dave", TOOL], "sluice-edit")
        .await?;
    scene.wait_until_may(TOOL, "create").await?;
    let apply = async |user: &str, name: &str, by: &str| {
        let gates: Api<Gate> = scene.gates(user).await?;
        let gate = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
            "metadata": {"name": name, "annotations": force(by)}, "spec": {},
        });
        let owner = PatchParams::apply("kustomize-controller");
        Ok::<_, anyhow::Error>(gates.patch(name, &owner, &Patch::Apply(gate)).await)
    };
    refused(apply("editor", "one", "editor").await?, NO_RIGHT)?;
    refused(apply("carol", "two", "dave").await?, "write \"carol\"")?;
    apply("carol", "three", "carol").await??;

    refused(apply(TOOL, "four", TOOL).await?, NO_RIGHT)?;
    scene
        .grant(&["carol", "dave", TOOL], "sluice-gate-override")
        .await?;
    scene.wait_until_may(TOOL, "override").await?;
    refused(
        apply(TOOL, "four", "carol").await?,
        "\"carol\" is not the requesting user",
    )?;
    apply(TOOL, "four", TOOL).await??;
    Ok(())
}

/// The right can be had for one gate alone.
#[tokio::test]
async fn the_right_may_name_the_gate() -> Result<()> {
    let scene = Scene::new().await?;
    let mut one = rights::rule("sluice.dev", &["gates"], &["override", "patch"]);
    one["resourceNames"] = json!([GATE]);
    let admin = scene.cluster().client().await?;
    rights::grant_rules(admin, scene.namespace(), "one-gate", "editor", &[one]).await?;
    let other = Gate::new("staging", GateSpec::default());
    let editor = scene.gates("editor").await?;
    editor.add(&other).await?;

    poll(DEADLINE, "the right to be in effect", async || {
        scene
            .annotate("editor", &force("editor"))
            .await?
            .map_err(anyhow::Error::from)
    })
    .await?;
    let patch = json!({"metadata": {"annotations": force("editor")}});
    refused(editor.merge("staging", &patch).await, NO_RIGHT)
}
