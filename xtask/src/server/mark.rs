//! What chores create on a cluster, marked as theirs, so that it can be found and removed.
//!
//! What comes in: objects, the name of a namespace. What goes out: the objects with a label; a
//! namespace that nobody else uses; a cluster without any of them.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;
use sluice_tests::apply::Document;
use sluice_tests::{TEST_LABEL, Writes, poll};

use super::flux;

/// Until a namespace that is being deleted is gone.
const DEADLINE: Duration = Duration::from_secs(60);

/// Marks objects as a chore's.
pub(crate) fn marked(mut documents: Vec<Document>) -> Vec<Document> {
    for document in &mut documents {
        let labels = document.object.labels_mut();
        labels.insert(TEST_LABEL.to_owned(), "true".to_owned());
    }
    documents
}

/// Makes a namespace for a chore. One that an earlier run has left is deleted first, with everything in
/// it.
///
/// # Errors
///
/// If it exists already and is not left over from an earlier run.
pub(crate) async fn create_namespace(client: &Client, name: &str) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    if let Some(found) = namespaces.get_metadata_opt(name).await? {
        ensure!(
            found.labels().contains_key(TEST_LABEL),
            "there is a namespace {name}, and it is not a chore's: it would be deleted with \
             everything in it. Delete it, or name another cluster"
        );
        delete_namespace(client, name).await?;
        poll(
            DEADLINE,
            "the namespace of the last run to go",
            async || {
                let found = namespaces.get_metadata_opt(name).await?;
                ensure!(found.is_none(), "namespace {name} is still there");
                Ok::<_, anyhow::Error>(())
            },
        )
        .await?;
    }
    let namespace = serde_json::from_value(json!({
        "metadata": { "name": name, "labels": { TEST_LABEL: "true" } },
    }))?;
    namespaces.add(&namespace).await?;
    Ok(())
}

/// Takes away a namespace that was made so, and what [`sweep`] does.
pub(crate) async fn clear(client: &Client, namespace: &str) -> Result<()> {
    sweep(client).await?;
    delete_namespace(client, namespace).await
}

/// Removes everything that is marked and in no namespace. A demo that was killed may have left policies
/// that refuse what other chores do.
pub(crate) async fn sweep(client: &Client) -> Result<()> {
    delete::<ValidatingAdmissionPolicyBinding>(client).await?;
    delete::<ValidatingAdmissionPolicy>(client).await?;
    delete::<ClusterRoleBinding>(client).await?;
    delete::<ClusterRole>(client).await
}

async fn delete_namespace(client: &Client, name: &str) -> Result<()> {
    flux::let_go(client, name).await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let deleted = namespaces.remove(name).await;
    match deleted {
        // What was not there is gone.
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

async fn delete<K>(client: &Client) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let all: Api<K> = Api::all(client.clone());
    let ours = ListParams::default().labels(TEST_LABEL);
    all.delete_collection(&DeleteParams::default(), &ours)
        .await?;
    Ok(())
}
