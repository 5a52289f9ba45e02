use std::process::Command;

use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use sluice_crds::flux::{FluxKind, FluxObject};
use sluice_crds::gated_source::SourceKind;
use sluice_tests::{Applier, Cluster, TEST_LABEL};

use super::*;

#[tokio::test]
async fn only_a_state_whose_process_lives_counts() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place {
        folder: folder.path().join("cluster"),
    };
    assert_eq!(place.running().unwrap(), None);

    let lock = place.lock_file().unwrap();
    lock.lock().unwrap();
    assert_eq!(place.running().unwrap(), None, "it is starting");
    let state = || Running {
        pid: 7,
        kubeconfig: "/k".into(),
        beside: Vec::new(),
    };
    place.record(&state()).unwrap();
    assert_eq!(place.running().unwrap(), Some(state()));

    drop(lock);
    // A process that another test starts at this instant has all our files until it runs its program.
    let forgotten = poll(UP_DEADLINE, "the lock to be free", async || {
        ensure!(place.running()?.is_none(), "it was killed");
        Ok(())
    });
    forgotten.await.unwrap();
}

/// Pushes a commit as people do, and returns its revision.
fn push(url: &str) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(folder.path());
        crate::cargo::output(&mut command)
    };
    git(&["init", "--quiet"])?;
    fs::write(folder.path().join("app.yaml"), "{}")?;
    git(&["add", "."])?;
    let author = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    git(&[&author[..], &["commit", "--quiet", "--message", "one"]].concat())?;
    git(&["push", "--quiet", url, "HEAD:main"]).context("git push")?;
    Ok(format!("main@sha1:{}", git(&["rev-parse", "HEAD"])?.trim()))
}

/// Makes a source, and waits until Flux has fetched it. Returns its revision.
async fn fetched(cluster: &Cluster, kind: SourceKind, spec: Value) -> Result<String> {
    let flux = FluxKind::Source(kind);
    let client = cluster.client().await?;
    let source = json!({
        "apiVersion": format!("{}/{}", flux.group(), flux.version()), "kind": flux.as_str(),
        "metadata": {"name": "app"}, "spec": spec,
    });
    let applier = Applier::new(client.clone()).in_namespace("default");
    applier.text(&source.to_string()).await?;
    let api: Api<FluxObject> = Api::namespaced_with(client, "default", &flux);
    poll(UP_DEADLINE, "Flux to fetch it", async || {
        let status = api.get("app").await?.status;
        let mut conditions = status.conditions.iter();
        let ready = conditions.any(|it| it.type_ == "Ready" && it.status == "True");
        ensure!(ready, "{:?}", status.conditions);
        Ok(status.artifact.context("no artifact")?.revision)
    })
    .await
}

/// What runs for a user who has pushed something.
async fn use_it(place: &Place) -> Result<()> {
    let running = poll(UP_DEADLINE, "the control plane", async || {
        place.running()?.context("it is not ready yet")
    })
    .await?;
    let cluster = Cluster::at(running.kubeconfig.clone());
    let url = |what: &str| {
        let row = running.beside.iter().find(|row| row.what == what);
        row.map(|row| row.place.clone())
            .with_context(|| format!("no {what}"))
    };
    let (git, helm) = (url(flux::GIT)?, url(flux::HELM)?);
    // The server answers on this thread.
    let to = git.clone();
    let revision = tokio::task::spawn_blocking(move || push(&to)).await??;
    let spec = json!({"url": git, "ref": {"branch": "main"}, "interval": "1h"});
    let served = fetched(&cluster, SourceKind::GitRepository, spec).await?;
    ensure!(served == revision, "{served}");
    let spec = json!({"url": helm, "interval": "1h"});
    fetched(&cluster, SourceKind::HelmRepository, spec).await?;

    // On another's cluster it would have to be taken away.
    let bindings: Api<ClusterRoleBinding> = Api::all(cluster.client().await?);
    let ours = bindings
        .list(&ListParams::default().labels(TEST_LABEL))
        .await?;
    let names: Vec<String> = ours.iter().map(ResourceExt::name_any).collect();
    ensure!(names == ["sluice-test-flux"], "{names:?}");
    Ok(())
}

#[tokio::test]
async fn flux_fetches_what_is_put_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place {
        folder: folder.path().join("cluster"),
    };
    let binaries = Binaries::ensure(&Stderr::new()).unwrap();
    let programs = flux::ensure().unwrap();
    tokio::select! {
        ended = hold(&place, &binaries, Some(&programs)) => panic!("it has ended: {ended:?}"),
        used = use_it(&place) => used.unwrap(),
    }
}
