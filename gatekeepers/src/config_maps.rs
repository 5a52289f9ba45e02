//! ConfigMaps that evidence is read from, each watched by name.
//!
//! What comes in: the keys that somebody asks for. What goes out: the maps as the API server last sent
//! them, and the keys of those that changed. How long a watch lasts, and how long its data count, is in
//! [`shared`](sluice_watching::shared): what nobody names is never read, and a cluster full of ConfigMaps
//! costs nothing.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use sluice_egress::secrets::is_object_name;
use tokio::sync::broadcast;

use sluice_watching::one::one;
use sluice_watching::shared::{Shared, Sight};

mod entry;

/// How long to wait for the API server's first answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// The namespace and name of a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigMapKey {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl fmt::Display for ConfigMapKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Why a ConfigMap could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The controller does not have the rights.
    #[error("may not watch configmaps in namespace {namespace}: grant get, list, watch")]
    Forbidden {
        /// Where.
        namespace: String,
    },
    /// The API server has not sent it in time.
    #[error("the API server has not told ConfigMap {key} within {}s{}", deadline.as_secs(), after(trouble))]
    Unanswered {
        /// Which one.
        key: ConfigMapKey,
        /// How long it was waited for.
        deadline: Duration,
        /// What went wrong during the wait.
        trouble: Option<String>,
    },
}

fn after(trouble: &Option<String>) -> String {
    trouble
        .as_ref()
        .map(|trouble| format!(": {trouble}"))
        .unwrap_or_default()
}

/// The watched ConfigMaps. Clones share their watches, which end with the last clone.
#[derive(Clone)]
pub struct ConfigMaps(Arc<Inner>);

struct Inner {
    client: Client,
    watches: Shared<ConfigMapKey, Map>,
}

/// The map, if there is one, with nothing but its texts.
pub(crate) type Map = Option<Arc<ConfigMap>>;

impl ConfigMaps {
    /// The ConfigMaps that `client` may see. Nothing is read yet.
    pub fn new(client: Client) -> Self {
        Self::with_deadline(client, DEADLINE)
    }

    /// The same, with another limit to the wait for the API server's first answer.
    pub fn with_deadline(client: Client, deadline: Duration) -> Self {
        let watches = Shared::new(deadline);
        Self(Arc::new(Inner { client, watches }))
    }

    /// The map, or None if there is none. From the first call on it is watched; the answer waits
    /// for the API server's first one.
    ///
    /// # Errors
    /// No rights, or no answer in time.
    pub async fn get(&self, key: &ConfigMapKey) -> Result<Option<Arc<ConfigMap>>, ReadError> {
        if !is_object_name(&key.name) {
            return Ok(None);
        }
        let how = || {
            let client = self.0.client.clone();
            one::<_, _, false>(client, (&key.namespace, &key.name), texts)
        };
        match self.0.watches.look(key, how).await {
            Sight::Told(map) => Ok(map),
            Sight::Refused(_) => Err(ReadError::Forbidden {
                namespace: key.namespace.clone(),
            }),
            Sight::Nothing(trouble) => {
                Err(self.unanswered(key, trouble.map(|trouble| trouble.why)))
            }
            Sight::Silent(trouble) => Err(self.unanswered(key, trouble)),
            Sight::TooMuch(_) | Sight::Vanished => Err(self.unanswered(key, None)),
        }
    }

    fn unanswered(&self, key: &ConfigMapKey, trouble: Option<String>) -> ReadError {
        ReadError::Unanswered {
            key: key.clone(),
            deadline: self.0.watches.deadline(),
            trouble,
        }
    }

    /// The keys of maps that change from now on, including those that are created or deleted. The first
    /// sight of a map is a change, too.
    pub fn changes(&self) -> broadcast::Receiver<ConfigMapKey> {
        self.0.watches.changes()
    }

    /// How many maps are watched.
    pub fn watched(&self) -> usize {
        self.0.watches.watched()
    }

    pub(crate) fn watches(&self) -> &Shared<ConfigMapKey, Map> {
        &self.0.watches
    }
}

/// Without the fields that are not read here.
fn texts(map: ConfigMap) -> Arc<ConfigMap> {
    Arc::new(ConfigMap {
        data: map.data,
        binary_data: map.binary_data,
        ..ConfigMap::default()
    })
}

#[cfg(test)]
mod tests;
