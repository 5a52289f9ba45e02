//! A namespace of a test with its workloads.

use std::ops::Deref;

use anyhow::Result;
use kube::Client;
use sluice_tests::Namespace;
use sluice_tests::workloads::{Workloads, world};

/// A namespace of one's own, in the world that all tests here share.
pub struct Scene {
    workloads: Workloads,
    client: Client,
    namespace: Namespace,
}

impl Deref for Scene {
    type Target = Workloads;

    fn deref(&self) -> &Workloads {
        &self.workloads
    }
}

impl Scene {
    /// Whose name has this word in it, for people.
    pub async fn new(word: &str) -> Result<Self> {
        let cluster = world().await?.cluster();
        let client = cluster.client().await?;
        let namespace = Namespace::create(cluster, word).await?;
        Ok(Self {
            workloads: Workloads::within(client.clone(), namespace.name()).await?,
            client,
            namespace,
        })
    }

    /// With all rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Its name.
    pub fn namespace(&self) -> &str {
        self.namespace.name()
    }
}
