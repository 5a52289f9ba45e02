//! The writes that tests make most, on any [`Api`].
//!
//! What comes in: an object, or a part of one. What goes out: what the API server says to it.

use std::fmt::Debug;

use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Creates, changes and deletes objects without any options.
#[allow(
    async_fn_in_trait,
    reason = "of Api alone, whose futures may go to any thread"
)]
pub trait Writes<K> {
    /// Creates an object.
    async fn add(&self, object: &K) -> kube::Result<K>;

    /// Changes an object, as `kubectl patch --type merge` does.
    async fn merge(&self, name: &str, change: impl Serialize + Debug) -> kube::Result<K>;

    /// The same of its status.
    async fn merge_status(&self, name: &str, change: impl Serialize + Debug) -> kube::Result<K>;

    /// Deletes an object, or has it finalized.
    async fn remove(&self, name: &str) -> kube::Result<()>;
}

impl<K: Clone + Debug + Serialize + DeserializeOwned> Writes<K> for Api<K> {
    async fn add(&self, object: &K) -> kube::Result<K> {
        self.create(&PostParams::default(), object).await
    }

    async fn merge(&self, name: &str, change: impl Serialize + Debug) -> kube::Result<K> {
        let params = PatchParams::default();
        self.patch(name, &params, &Patch::Merge(change)).await
    }

    async fn merge_status(&self, name: &str, change: impl Serialize + Debug) -> kube::Result<K> {
        let params = PatchParams::default();
        let change = Patch::Merge(change);
        self.patch_status(name, &params, &change).await
    }

    async fn remove(&self, name: &str) -> kube::Result<()> {
        self.delete(name, &DeleteParams::default()).await.map(drop)
    }
}
