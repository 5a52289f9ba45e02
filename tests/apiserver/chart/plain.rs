//! Installing without Helm: `install/install.yaml`, by itself and as a base of Kustomize; and by Flux.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery;
use sluice_tests::apply::{self, Applier, Document};
use sluice_tests::helm::{Helm, Release};
use sluice_tests::progress::Stderr;
use sluice_tests::{Binaries, ControlPlane, Options, flux, installation, kubectl};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn installed_without_helm() -> Result<Vec<Document>> {
    apply::read(&file("install/install.yaml"))
}

fn names(documents: &[Document]) -> Vec<(String, String)> {
    let mut names: Vec<_> = documents
        .iter()
        .map(|document| {
            let object = &document.object;
            let kind = object.types.as_ref().map(|types| types.kind.clone());
            (
                kind.unwrap_or_default(),
                object.metadata.name.clone().unwrap_or_default(),
            )
        })
        .collect();
    names.sort();
    names
}

/// `cargo xtask generate` writes it; this says what it has to hold.
#[test]
fn it_has_what_the_chart_has_and_the_namespace() -> Result<()> {
    let plain = installed_without_helm()?;
    let mut expected = names(&Helm::ensure(&Stderr::new())?.template(&Release::default())?);
    expected.push(("Namespace".to_owned(), "sluice-system".to_owned()));
    expected.sort();
    assert_eq!(names(&plain), expected);
    let text = std::fs::read_to_string(file("install/install.yaml"))?;
    for word in ["helm.sh/", "managed-by"] {
        assert!(!text.contains(word), "{word}");
    }
    Ok(())
}

/// The API server takes it, twice, and its policies judge afterwards.
#[tokio::test]
async fn it_is_applied_and_applied_again() -> Result<()> {
    let started = installation::start_with(installed_without_helm()?, "sluice-system", "").await;
    let (plane, _) = started?;
    let client = plane.client().await?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "sluice-system");
    let before = deployments.get("gate-controller").await?;
    let applier = Applier::new(client);
    applier.documents(installed_without_helm()?).await?;
    let after = deployments.get("gate-controller").await?;
    assert_eq!(
        before.metadata.resource_version, after.metadata.resource_version,
        "the second time changes nothing"
    );
    Ok(())
}

/// An overlay that names an image, as the comment of the base says.
#[test]
fn it_is_a_base_for_kustomize() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let base = folder.path().join("base");
    std::fs::create_dir(&base)?;
    for name in ["kustomization.yaml", "install.yaml"] {
        std::fs::copy(file("install").join(name), base.join(name))?;
    }
    std::fs::write(
        folder.path().join("kustomization.yaml"),
        "resources: [base]\n\
         images: [{name: gate-controller, newName: registry.example.com/gate-controller, newTag: v7}]\n",
    )?;
    let output = Command::new(kubectl::ensure(&Stderr::new())?)
        .arg("kustomize")
        .arg(folder.path())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    let built = apply::parse(&String::from_utf8(output.stdout)?, "kubectl kustomize")?;
    assert_eq!(names(&built), names(&installed_without_helm()?));
    let deployment = built
        .into_iter()
        .find(|document| {
            document
                .object
                .types
                .as_ref()
                .is_some_and(|it| it.kind == "Deployment")
        })
        .context("no Deployment")?;
    let image = deployment
        .object
        .data
        .pointer("/spec/template/spec/containers/0/image");
    assert_eq!(
        image.and_then(|image| image.as_str()),
        Some("registry.example.com/gate-controller:v7")
    );
    Ok(())
}

/// What Flux would be given to install Sluice: its definitions take every field, and the chart takes the
/// values.
#[tokio::test]
async fn the_helm_release_is_accepted() -> Result<()> {
    let documents = apply::read(&file("examples/install/helm-release.yaml"))?;
    let plane = ControlPlane::start(&Binaries::ensure(&Stderr::new())?, Options::default()).await?;
    flux::Programs::ensure(&Stderr::new())?
        .define(plane.cluster())
        .await?;
    let client = plane.client().await?;
    let (namespaces, others): (Vec<_>, Vec<_>) = documents.into_iter().partition(|document| {
        document
            .object
            .types
            .as_ref()
            .is_some_and(|it| it.kind == "Namespace")
    });
    Applier::new(client.clone()).documents(namespaces).await?;
    for document in &others {
        let types = document.object.types.clone().context("no kind")?;
        let (resource, _) =
            discovery::pinned_kind(&client, &GroupVersionKind::try_from(&types)?).await?;
        let api: Api<kube::api::DynamicObject> =
            Api::namespaced_with(client.clone(), "sluice-system", &resource);
        let name = document
            .object
            .metadata
            .name
            .as_deref()
            .context("no name")?;
        let strict = PatchParams::apply("test").validation_strict();
        api.patch(name, &strict, &Patch::Apply(&document.object))
            .await?;
    }
    let release = others
        .iter()
        .find_map(|document| document.object.data.pointer("/spec/values"))
        .context("no values")?;
    let values = Release {
        values: release.clone(),
        ..Release::default()
    };
    Helm::ensure(&Stderr::new())?.template(&values)?;
    Ok(())
}
