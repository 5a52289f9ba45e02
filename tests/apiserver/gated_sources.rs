//! Gated sources on the real API server, with Flux's kinds and without Flux: what source-controller
//! would write, the tests write. The real Flux has tests of its own.

mod asked;
mod faults;
mod leftovers;
pub mod scene;
mod sharing;
mod strays;
mod told;
mod trouble;

use anyhow::{Context, Result, ensure};
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use sluice_crds::flux::FluxKind;
use sluice_crds::gated_source::SourceKind;
use sluice_tests::proxy::{Proxy, refusal};
use sluice_tests::rights::rule;
use sluice_tests::{Options, alone, poll};

use crate::stage::{DEADLINE, Stage};
use scene::{GIT, Scene, commit, message};

/// The kinds of writes that a gated source leads to.
const WRITES: [&str; 2] = ["GatedSource", "GitRepository"];

#[tokio::test]
async fn what_waits_is_shown_and_goes_out_when_the_gate_opens() -> Result<()> {
    let scene = Scene::new("gated").await?;
    scene.gate("closed").await?;
    scene.upstream("main", &commit('a')).await?;
    scene.gated(json!({})).await?;
    let controller = scene.stage.start().await?;
    let held = scene.until("Blocked", "True", "GatesClosed").await?;
    let status = held.status.context("no status")?;
    let pending = status.pending.context("nothing is pending")?;
    assert_eq!(pending.revision, format!("main@sha1:{}", commit('a')));
    let decision = status.last_decision.context("nothing was decided")?;
    assert!(!decision.allowed, "{decision:?}");
    assert_eq!(
        decision.decided_by,
        [format!("{}/production", scene.stage.namespace())]
    );
    assert!(scene.child().await?.is_none());
    let ready = ("Ready", "True", "NothingAdmitted");
    scene.until(ready.0, ready.1, ready.2).await?;

    // A newer one takes its place.
    scene.upstream("main", &commit('b')).await?;
    poll(DEADLINE, "the second to be pending", async || {
        let status = scene.get().await?.status.context("no status")?;
        ensure!(status.candidates.len() == 2, "{:?}", status.candidates);
        Ok::<_, anyhow::Error>(())
    })
    .await?;

    scene.gate("open").await?;
    let child = scene.pinned(&commit('b')).await?;
    let annotations = child.metadata.annotations.context("no mark")?;
    assert_eq!(annotations["sluice.dev/gated-source"], "app");
    let spec = json!({
        "url": "https://git.example.com/app", "interval": "12h", "timeout": "60s",
        "secretRef": {"name": "token"}, "ref": {"branch": "main", "commit": commit('b')},
    });
    assert_eq!(serde_json::Value::Object(child.spec), spec);
    scene.until("Ready", "False", "Progressing").await?;
    scene
        .fetched("app", &format!("main@sha1:{}", commit('b')))
        .await?;
    let out = scene.until("Ready", "True", "Serving").await?;
    let status = out.status.context("no status")?;
    assert_eq!((status.candidates.len(), status.pending), (0, None));
    scene.until("Blocked", "False", "NothingPending").await?;

    // Everybody is content: whatever wakes it, nothing is written.
    let writes = async || -> Result<[u64; 2]> {
        Ok([
            controller.writes(WRITES[0]).await?,
            controller.writes(WRITES[1]).await?,
        ])
    };
    let before = writes().await?;
    scene.gate("closed").await?;
    scene.gate("open").await?;
    scene.touch("app-upstream").await?;
    scene.stage.settle().await?;
    assert_eq!(writes().await?, before);
    Ok(())
}

#[tokio::test]
async fn a_child_is_what_it_has_to_be() -> Result<()> {
    let scene = Scene::open("gated-edit").await?;
    scene.gated(json!({})).await?;
    let _controller = scene.stage.start().await?;
    let child = scene.pinned(&commit('a')).await?;
    let edit = json!({
        "metadata": {"labels": {"theirs": "stays"}},
        "spec": {"ref": {"commit": commit('e'), "tag": "v1"}, "suspend": true},
    });
    scene.patch(GIT, "app", &edit).await?;
    poll(DEADLINE, "the edit to be reverted", async || {
        let now = scene.child().await?.context("no child")?;
        ensure!(now.spec == child.spec, "{:?}", now.spec);
        let labels = now.metadata.labels.context("no labels")?;
        ensure!(labels["theirs"] == "stays");
        Ok(())
    })
    .await?;
    // How it is reached follows the source at once; what is fetched stays while nothing is admitted.
    scene.gate("closed").await?;
    let moved = json!({"spec": {"secretRef": {"name": "rotated"}, "ignore": "docs/"}});
    scene.patch(GIT, "app-upstream", &moved).await?;
    poll(DEADLINE, "the new secret", async || {
        let now = scene.child().await?.context("no child")?;
        ensure!(now.spec["secretRef"]["name"] == "rotated", "{:?}", now.spec);
        ensure!(!now.spec.contains_key("ignore"), "{:?}", now.spec);
        Ok(())
    })
    .await?;
    // Gone by mistake, it comes back, although the gate is closed by now.
    scene.delete(GIT, "app").await?;
    scene.pinned(&commit('a')).await?;
    Ok(())
}

/// What was admitted is written before it is done: a replica that is stopped in between does it later, and
/// asks nobody a second time.
#[tokio::test]
async fn what_was_admitted_is_done_by_the_next_one() -> Result<()> {
    let scene = Scene::open("gated-killed").await?;
    scene.gated(json!({})).await?;
    let controller = scene.stage.start().await?;
    scene.serves(&commit('a')).await?;
    controller.stop().await;
    // As if it had been killed before the child was made; and the gate closes meanwhile.
    scene.delete(GIT, "app").await?;
    scene.gate("closed").await?;
    let controller = scene.stage.start().await?;
    scene.pinned(&commit('a')).await?;
    controller.stop().await;

    // The status lost, it is read back from the child.
    scene.delete_gated().await?;
    scene.gated(json!({})).await?;
    let _controller = scene.stage.start().await?;
    poll(
        DEADLINE,
        "what was admitted to be known again",
        async || {
            let status = scene.get().await?.status.context("no status")?;
            let admitted = status.admitted.context("nothing is admitted")?;
            ensure!(json!(admitted.origin) == "Adopted", "{admitted:?}");
            ensure!(admitted.revision.contains(&commit('a')), "{admitted:?}");
            Ok(())
        },
    )
    .await
}

#[tokio::test]
async fn what_others_made_is_never_touched() -> Result<()> {
    let scene = Scene::open("gated-taken").await?;
    scene.source("app", "main").await?;
    let before = scene.child().await?;
    scene.gated(json!({"deletionPolicy": "Delete"})).await?;
    let _controller = scene.stage.start().await?;
    let stalled = scene.until("Stalled", "True", "TargetTaken").await?;
    let said = message(&stalled, "Ready");
    assert!(
        said.starts_with("there is a GitRepository app already"),
        "{said}"
    );
    assert_eq!(scene.child().await?, before);
    // The gate is open, and nothing is said to have gone out.
    let status = stalled.status.context("no status")?;
    assert_eq!(status.admitted, None);
    let said = status.conditions.iter().map(|it| (&*it.type_, &*it.status));
    let said: Vec<_> = said.collect();
    assert!(!said.contains(&("Recoverable", "True")), "{said:?}");
    // It goes as soon as it is told to, and takes nothing along.
    scene.delete_gated().await?;
    assert_eq!(scene.child().await?, before);
    Ok(())
}

/// The API server refuses the child. It is told, and not told again, and tried again.
#[tokio::test]
async fn a_child_that_may_not_be_written_is_told() -> Result<()> {
    let scene = Scene::open("gated-refused").await?;
    let user = format!("controller-of-{}", scene.stage.namespace());
    let ours = rule("sluice.dev", &["*"], &["*"]);
    let grant = async |rules: &[Value]| scene.stage.grant_rules("controller", &user, rules).await;
    scene.may_read_all(&user).await?;
    grant(std::slice::from_ref(&ours)).await?;
    scene.gated(json!({})).await?;
    let client = scene.stage.cluster().client_for(&user).await?;
    let controller = scene.stage.start_in_real_time(client).await?;
    let refused = scene.until("Stalled", "True", "WriteRefused").await?;
    let said = message(&refused, "Ready");
    for words in ["the GitRepository app", "cannot create", &user] {
        assert!(said.contains(words), "{said}");
    }
    let status = refused.status.context("no status")?;
    assert!(status.admitted.is_some(), "it is admitted all the same");
    // It is tried again whenever something changes, and writes nothing.
    let before = controller.writes(WRITES[0]).await?;
    for _ in 0..3 {
        let failures = controller.failures(WRITES[0]);
        scene.touch("app-upstream").await?;
        poll(DEADLINE, "another try", async || {
            ensure!(controller.failures(WRITES[0]) > failures, "none");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
    }
    assert_eq!(controller.writes(WRITES[0]).await?, before);

    let sources = rule(
        "source.toolkit.fluxcd.io",
        &["gitrepositories"],
        &["create", "patch"],
    );
    grant(&[ours, sources]).await?;
    scene.pinned(&commit('a')).await?;
    let done = scene.until("Ready", "False", "Progressing").await?;
    let conditions = done.status.context("no status")?.conditions;
    assert!(conditions.iter().all(|it| it.type_ != "Stalled"));
    scene.may_read_nothing().await
}

#[tokio::test]
async fn children_go_with_it_where_the_policy_says_so() -> Result<()> {
    let scene = Scene::open("gated-delete").await?;
    scene.gated(json!({"deletionPolicy": "Delete"})).await?;
    let _controller = scene.stage.start().await?;
    scene.pinned(&commit('a')).await?;
    scene.delete_gated().await?;
    assert!(scene.child().await?.is_none());
    Ok(())
}

#[tokio::test]
async fn sources_stand_still_while_the_gates_are_closed() -> Result<()> {
    let scene = Scene::new("gated-suspend").await?;
    scene.gate("closed").await?;
    for name in ["one", "two", "theirs"] {
        scene.source(name, "main").await?;
        let labels = json!({"metadata": {"labels": {"tier": "front"}}});
        scene.patch(GIT, name, &labels).await?;
    }
    scene
        .patch(GIT, "theirs", &json!({"spec": {"suspend": true}}))
        .await?;
    let selector = json!({"kind": "GitRepository", "matchLabels": {"tier": "front"}});
    scene
        .gated_with(json!({"selector": selector, "strategy": "suspend"}))
        .await?;
    let _controller = scene.stage.start().await?;
    scene
        .suspended(&[("one", true), ("two", true), ("theirs", true)])
        .await?;
    scene.gate("open").await?;
    scene
        .suspended(&[("one", false), ("two", false), ("theirs", true)])
        .await
}

/// The gate stays closed; what others have suspended stays suspended.
#[tokio::test]
async fn what_is_held_no_longer_is_resumed() -> Result<()> {
    let scene = Scene::new("gated-resumed").await?;
    scene.gate("closed").await?;
    let label = |value: Option<&str>| json!({"metadata": {"labels": {"tier": value}}});
    for name in ["one", "two", "theirs"] {
        scene.source(name, "main").await?;
        scene.patch(GIT, name, &label(Some("front"))).await?;
    }
    scene
        .patch(GIT, "theirs", &json!({"spec": {"suspend": true}}))
        .await?;
    let selector = json!({"kind": "GitRepository", "matchLabels": {"tier": "front"}});
    let suspend = json!({"strategy": "suspend", "deletionPolicy": "Delete"});
    let with = |field: &str, value| {
        let mut spec = suspend.clone();
        spec[field] = value;
        spec
    };
    scene.gated_with(with("selector", selector)).await?;
    let controller = scene.stage.start().await?;
    scene
        .suspended(&[("one", true), ("two", true), ("theirs", true)])
        .await?;
    // They lose the label.
    for name in ["one", "theirs"] {
        scene.patch(GIT, name, &label(None)).await?;
    }
    scene
        .suspended(&[("one", false), ("two", true), ("theirs", true)])
        .await?;
    // Another one is named.
    let named = |name: &str| with("sourceRef", json!({"kind": "GitRepository", "name": name}));
    scene.gated_with(named("one")).await?;
    scene
        .suspended(&[("one", true), ("two", false), ("theirs", true)])
        .await?;
    // It is edited while nobody looks, and then deleted.
    controller.stop().await;
    scene.gated_with(named("two")).await?;
    let (gone, controller) = tokio::join!(scene.delete_gated(), scene.stage.start());
    gone?;
    let _controller = controller?;
    scene
        .suspended(&[("one", false), ("two", false), ("theirs", true)])
        .await
}

/// A controller without Flux is quiet, and takes up its work once Flux is there.
#[tokio::test]
async fn without_flux_it_says_so() -> Result<()> {
    let plane = alone(Options::default()).await?;
    let stage = Stage::on(plane.cluster(), "no-flux", "2026-11-20T12:00:00Z").await?;
    let scene = Scene::on(stage);
    scene.gate("closed").await?;
    let controller = scene.stage.start().await?;
    scene.stage.settle().await?;
    let git = controller
        .world()
        .flux
        .of(FluxKind::Source(SourceKind::GitRepository));
    assert!(
        !controller.world().flux.has_answered(GIT),
        "nobody wants to know"
    );
    scene.gated(json!({})).await?;
    let missing = scene.until("Ready", "False", "FluxNotInstalled").await?;
    let said = message(&missing, "Ready");
    assert!(
        said.contains("Flux's CRD of its kind is not installed"),
        "{said}"
    );
    assert!(!git.is_synced());

    scene.install_flux().await?;
    scene.until("Ready", "False", "SourceNotFound").await?;
    Ok(())
}

/// Of several API servers one may not know a kind yet that another has listed.
#[tokio::test]
async fn a_child_whose_kind_was_not_known_is_made_later() -> Result<()> {
    let scene = Scene::open("gated-unknown").await?;
    scene.gated(json!({})).await?;
    let proxy = Proxy::start(scene.stage.client()).await?;
    let unknown = refusal(StatusCode::NOT_FOUND, "NotFound");
    proxy.order(unknown, Method::POST, "/gitrepositories", 2);
    let _controller = scene.stage.start_in_real_time(proxy.client()?).await?;
    scene.pinned(&commit('a')).await?;
    assert_eq!(proxy.outstanding(), 0);
    Ok(())
}
