//! The Secret of a cluster: its metadata are watched by name, its data are read on their own.
//!
//! The right to list and watch is needed for that one name alone: RBAC allows it by `resourceNames`
//! where a request selects `metadata.name`.
//!
//! It uses [`wanted`](crate::wanted), [`sight`](crate::sight) and [`reference`](crate::reference).

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Config;
use kube::{Api, Client, ResourceExt};
use sluice_watching::shared::{Setback, Sink};
use sluice_watching::{Guard, Step};
use tokio::time::timeout;

use crate::reference::ALLOWED_NAMESPACES;
use crate::sight::Unknown;
use crate::wanted::SecretKey;

/// How long to wait for our own API server.
const DEADLINE: Duration = Duration::from_secs(10);

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
) -> (Api<Guard<PartialObjectMeta<Secret>>>, Config, NotedSink) {
    let name = format!("metadata.name={}", key.name);
    let api = Api::namespaced(client, &key.namespace);
    (api, Config::default().fields(&name), NotedSink::default())
}

/// Notes what was last said of one Secret.
#[derive(Default)]
pub(crate) struct NotedSink {
    /// What the list that is under way has so far.
    listed: Option<Noted>,
}

impl Sink for NotedSink {
    type Object = PartialObjectMeta<Secret>;
    type Told = Option<Noted>;
    const VANISHES: bool = false;
    const IS_OF_METADATA: bool = true;

    fn take(
        &mut self,
        step: Step<Guard<PartialObjectMeta<Secret>>>,
    ) -> Result<Option<Option<Noted>>, Setback> {
        match step {
            Step::Begun => self.listed = None,
            Step::Page(secrets) => {
                for secret in secrets {
                    self.listed = Some(noted(secret)?);
                }
            }
            Step::Listed(_) => return Ok(Some(self.listed.take())),
            Step::Apply(secret) => return Ok(Some(Some(noted(secret)?))),
            Step::Delete(_) => return Ok(Some(None)),
            Step::Opened | Step::Alive | Step::Ended | Step::Failed(_) | Step::Silent => {}
        }
        Ok(None)
    }
}

fn noted(secret: Guard<PartialObjectMeta<Secret>>) -> Result<Noted, Setback> {
    let secret = secret.0?;
    Ok(Noted {
        version: secret.resource_version().unwrap_or_default(),
        allowed: secret.annotations().get(ALLOWED_NAMESPACES).cloned(),
    })
}

/// The data of a Secret.
pub(crate) async fn read(
    client: &Client,
    key: &SecretKey,
) -> Result<BTreeMap<String, ByteString>, Unknown> {
    let api: Api<Secret> = Api::namespaced(client.clone(), &key.namespace);
    match timeout(DEADLINE, api.get(&key.name)).await {
        Ok(Ok(secret)) => Ok(secret.data.unwrap_or_default()),
        Ok(Err(kube::Error::Api(status))) if status.is_not_found() => {
            Err(Unknown::NoSecret(key.clone()))
        }
        Ok(Err(kube::Error::Api(status))) if status.is_forbidden() => Err(Unknown::NoRight {
            verb: "get",
            secret: key.clone(),
        }),
        Ok(Err(_)) | Err(_) => Err(Unknown::Away(format!(
            "our own API server does not give the Secret {key}"
        ))),
    }
}
