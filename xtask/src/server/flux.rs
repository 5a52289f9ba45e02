//! Flux on a cluster that is not ours: somebody's, or what is left of a chore's own.
//!
//! What comes in: a client. What goes out: a refusal that names what was found; objects of Flux that
//! nothing holds back when their namespace goes.

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use sluice_crds::flux::{FluxKind, FluxObject};
use sluice_tests::TEST_LABEL;

/// How the groups of Flux's kinds end.
const GROUPS: &str = ".toolkit.fluxcd.io";
/// What Flux labels all of its own with.
const PART_OF_FLUX: &str = "app.kubernetes.io/part-of=flux";
/// How many of what was found are named.
const NAMED: usize = 3;
/// How many objects are written at once.
const AT_ONCE: usize = 16;

/// Refuses a cluster on which Flux is installed. Kinds that a chore has left do not count.
pub(super) async fn refuse(client: &Client, address: &str) -> Result<()> {
    let found = find(client).await;
    let found = found.with_context(|| format!("cannot tell whether {address} has Flux"))?;
    let named = found.iter().take(NAMED).map(String::as_str);
    let mut named = named.collect::<Vec<_>>().join(", ");
    if found.len() > NAMED {
        named += &format!(" and {} more", found.len() - NAMED);
    }
    ensure!(
        found.is_empty(),
        "Flux is installed on {address} ({named}): its kinds would be replaced. Name a cluster \
         without it, or unset KUBECONFIG to work on a local control plane"
    );
    Ok(())
}

async fn find(client: &Client) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let deployments: Api<Deployment> = Api::all(client.clone());
    let ones = ListParams::default().labels(PART_OF_FLUX);
    for deployment in deployments.list_metadata(&ones).await? {
        let namespace = deployment.namespace().unwrap_or_default();
        found.push(format!("Deployment {namespace}/{}", deployment.name_any()));
    }
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in definitions.list_metadata(&ListParams::default()).await? {
        let name = definition.name_any();
        if name.ends_with(GROUPS) && !definition.labels().contains_key(TEST_LABEL) {
            found.push(format!("CustomResourceDefinition {name}"));
        }
    }
    Ok(found)
}

/// Has nobody wait for a Flux that has ended: takes its finalizers off everything in a namespace.
pub(super) async fn let_go(client: &Client, namespace: &str) -> Result<()> {
    for kind in FluxKind::ALL {
        let objects: Api<FluxObject> = Api::namespaced_with(client.clone(), namespace, &kind);
        let listed = match objects.list_metadata(&ListParams::default()).await {
            // Without the kind there are none.
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            listed => listed?,
        };
        let held = listed
            .items
            .into_iter()
            .filter(|it| !it.finalizers().is_empty());
        let names: Vec<String> = held.map(|object| object.name_any()).collect();
        let let_go = async |name: String| {
            let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            let own = PatchParams::default();
            match objects.patch_metadata(&name, &own, &free).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
                other => other.map(drop),
            }
        };
        let all = stream::iter(names).map(let_go).buffer_unordered(AT_ONCE);
        all.try_collect::<()>().await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::core::v1::Namespace;
    use sluice_tests::flux::Programs;
    use sluice_tests::progress::Stderr;
    use sluice_tests::{Applier, Binaries, ControlPlane, Options, poll};

    use super::*;
    use crate::server::{clear, create_namespace};

    #[tokio::test]
    async fn a_flux_of_somebody_is_refused_and_what_chores_leave_goes() {
        let binaries = Binaries::ensure(&Stderr::new()).unwrap();
        let options = Options::default().with_housekeeping();
        let plane = ControlPlane::start(&binaries, options).await.unwrap();
        let client = plane.client().await.unwrap();
        let_go(&client, "default").await.unwrap();
        refuse(&client, "there").await.unwrap();
        let programs = Programs::ensure(&Stderr::new()).unwrap();
        programs.define(plane.cluster()).await.unwrap();
        refuse(&client, "there").await.unwrap();

        create_namespace(&client, "chore").await.unwrap();
        let object = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": "app", "finalizers": ["finalizers.fluxcd.io"]},
            "spec": {"url": "https://example.com/a", "interval": "1h"},
        });
        let applier = Applier::new(client.clone()).in_namespace("chore");
        applier.text(&object.to_string()).await.unwrap();
        clear(&client, "chore").await.unwrap();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let gone = poll(Duration::from_secs(60), "the namespace to go", async || {
            let found = namespaces.get_opt("chore").await?;
            ensure!(found.is_none(), "{:?}", found.map(|it| it.status));
            Ok(())
        });
        gone.await.unwrap();

        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let unmarked = Patch::Merge(json!({"metadata": {"labels": {TEST_LABEL: null}}}));
        let name = "gitrepositories.source.toolkit.fluxcd.io";
        let own = PatchParams::default();
        definitions
            .patch_metadata(name, &own, &unmarked)
            .await
            .unwrap();
        let error = refuse(&client, "there").await.unwrap_err().to_string();
        let words = format!("Flux is installed on there (CustomResourceDefinition {name}): ");
        assert!(error.starts_with(&words), "{error}");
    }
}
