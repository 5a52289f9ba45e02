//! A namespace of a test's own.
//!
//! What comes in: a cluster and a word for people. What goes out: a namespace that no other test
//! has, deleted when the test is over, passed or failed.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Namespace as Object;
use kube::Client;
use kube::api::{Api, DeleteParams, ObjectMeta};

use crate::cluster::Cluster;
use crate::writes::Writes;

/// The label of what tests and chores create, so that leftovers on a cluster of one's own can be
/// found, and are not taken for somebody's installation.
pub const TEST_LABEL: &str = "sluice.dev/test";

/// How long a drop tries to delete. A server that is down must not hold up the test run.
const DELETE_DEADLINE: Duration = Duration::from_secs(30);

/// A fresh namespace. Dropped, it is deleted with everything in it.
pub struct Namespace {
    name: String,
    cluster: Cluster,
}

impl Namespace {
    /// Creates a namespace whose name starts with `sluice-<word>-`.
    ///
    /// # Errors
    ///
    /// If the API server refuses.
    pub async fn create(cluster: &Cluster, word: &str) -> Result<Self> {
        Self::create_with(cluster.client().await?, cluster, word).await
    }

    /// The same with a client of the cluster that is there already.
    pub(crate) async fn create_with(client: Client, cluster: &Cluster, word: &str) -> Result<Self> {
        let api: Api<Object> = Api::all(client);
        let object = Object {
            metadata: ObjectMeta {
                generate_name: Some(format!("sluice-{word}-")),
                labels: Some([(TEST_LABEL.to_owned(), "true".to_owned())].into()),
                ..ObjectMeta::default()
            },
            ..Object::default()
        };
        let created = api.add(&object).await?;
        Ok(Self {
            name: created.metadata.name.context("the namespace has no name")?,
            cluster: cluster.clone(),
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let (name, cluster) = (std::mem::take(&mut self.name), self.cluster.clone());
        // We may be on a runtime, which cannot wait for itself: another thread has another one.
        let deletion = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async {
                tokio::time::timeout(DELETE_DEADLINE, delete(&name, &cluster)).await?
            })
        });
        // As far as possible: a server that is gone has no namespaces either.
        let _: Option<Result<()>> = deletion.join().ok();
    }
}

async fn delete(name: &str, cluster: &Cluster) -> Result<()> {
    let api: Api<Object> = Api::all(cluster.client().await?);
    api.delete(name, &DeleteParams::background()).await?;
    Ok(())
}
