//! The Secret of a cluster: its metadata are watched by name, its data are read on their own.
//!
//! The right to list and watch is needed for that one name alone: RBAC allows it by `resourceNames`
//! where a request selects `metadata.name`.
//!
//! It uses [`wanted`](crate::wanted), [`sight`](crate::sight) and [`reference`](crate::reference).

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use sluice_egress::secrets::{self, Unread};
use sluice_watching::Guard;
use sluice_watching::one::{One, one};

use crate::reference::ALLOWED_NAMESPACES;
use crate::sight::Unknown;
use crate::wanted::SecretKey;

/// A Secret without its data.
type Metadata = PartialObjectMeta<Secret>;

/// What is known of a Secret without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Noted {
    pub(crate) version: String,
    /// Its annotation [`ALLOWED_NAMESPACES`].
    pub(crate) allowed: Option<String>,
}

/// How the metadata of one Secret are watched.
pub(crate) fn watch(
    client: Client,
    key: &SecretKey,
) -> (Api<Guard<Metadata>>, Config, One<Metadata, Noted, true>) {
    one(client, (&key.namespace, &key.name), noted)
}

fn noted(secret: Metadata) -> Noted {
    let metadata = secret.metadata;
    let annotations = metadata.annotations;
    Noted {
        version: metadata.resource_version.unwrap_or_default(),
        allowed: annotations.and_then(|mut all| all.remove(ALLOWED_NAMESPACES)),
    }
}

/// The data of a Secret.
pub(crate) async fn read(
    client: &Client,
    key: &SecretKey,
) -> Result<BTreeMap<String, ByteString>, Unknown> {
    let secret = secrets::read(client, &key.namespace, &key.name).await;
    let secret = secret.map_err(|unread| match unread {
        Unread::NotUsable(_) => Unknown::NoSecret(key.clone()),
        Unread::NoRight(_) => Unknown::NoRight {
            verb: "get",
            secret: key.clone(),
        },
        Unread::NoAnswer(_) => {
            Unknown::Away(format!("our own API server does not give the Secret {key}"))
        }
    });
    Ok(secret?.data.unwrap_or_default())
}
