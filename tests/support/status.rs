//! Waiting for a status to say something.
//!
//! What comes in: an object by its name, and a check of its status. What goes out: the object, once the
//! check is content.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::Api;
use kube::core::object::HasStatus;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::poll::poll;

/// Waits until `check` is content with the status of an object, and returns the object.
///
/// # Errors
///
/// At the deadline, with the status that was seen last.
pub async fn until<K>(
    api: &Api<K>,
    name: &str,
    deadline: Duration,
    what: &str,
    check: impl Fn(&K::Status) -> bool,
) -> Result<K>
where
    K: Clone + Debug + DeserializeOwned + HasStatus,
    K::Status: Serialize,
{
    poll(deadline, what, async || {
        let object = api.get(name).await?;
        let status = object.status().context("no status")?;
        ensure!(check(status), "{}", json!(status));
        Ok::<_, anyhow::Error>(object)
    })
    .await
}
