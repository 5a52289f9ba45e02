//! `install/install.yaml`: everything that the chart installs with its default values, for those who
//! do not use Helm.
//!
//! What comes in: the chart, rendered by Helm. What goes out: one file of YAML, with the namespace.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::api::{DynamicObject, ObjectMeta};
use sluice_tests::helm::{Helm, Release};
use sluice_tests::progress::Stderr;

use super::Generated;

const PATH: &str = "install/install.yaml";

const HEADER: &str = "\
# Made by `cargo xtask generate` from charts/gate-controller: change the chart instead.
#
#   kubectl apply --server-side -f install.yaml
#
# The image is called `gate-controller`; kustomization.yaml beside this file says how to name yours.
";

/// What only Helm understands.
const LABELS_OF_HELM: [&str; 2] = ["helm.sh/chart", "app.kubernetes.io/managed-by"];
const ANNOTATION_OF_HELM: &str = "helm.sh/resource-policy";

/// The file as it has to be.
pub(super) fn file() -> Result<Generated> {
    let release = Release::default();
    let documents = Helm::ensure(&Stderr::new())?.template(&release)?;
    let mut content = HEADER.to_owned();
    add(&mut content, &namespace(&release.namespace))?;
    for mut document in documents {
        forget_helm(&mut document.object);
        add(&mut content, &document.object)?;
    }
    Ok(Generated {
        path: PATH.into(),
        content,
    })
}

fn add(content: &mut String, object: &impl serde::Serialize) -> Result<()> {
    let yaml = serde_saphyr::to_string(object).context("cannot write an object as YAML")?;
    content.push_str("---\n");
    content.push_str(&yaml);
    Ok(())
}

/// The namespace of the release, in which no pod may run that asks for more rights than ours.
fn namespace(name: &str) -> Namespace {
    let label = ("pod-security.kubernetes.io/enforce", "restricted");
    let labels = [label].map(|(key, value)| (key.to_owned(), value.to_owned()));
    Namespace {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels.into()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    }
}

fn forget_helm(object: &mut DynamicObject) {
    for label in LABELS_OF_HELM {
        object.labels_mut().remove(label);
    }
    object.annotations_mut().remove(ANNOTATION_OF_HELM);
    // An empty map would be written as `{}`.
    let metadata = &mut object.metadata;
    metadata.labels = metadata.labels.take().filter(|labels| !labels.is_empty());
    metadata.annotations = metadata.annotations.take().filter(|it| !it.is_empty());
    // Pods carry the chart's label as well: it would restart them when only the chart's number changes.
    let pod = object.data.pointer_mut("/spec/template/metadata/labels");
    if let Some(labels) = pod.and_then(serde_json::Value::as_object_mut) {
        labels.retain(|key, _| !LABELS_OF_HELM.contains(&key.as_str()));
    }
}
