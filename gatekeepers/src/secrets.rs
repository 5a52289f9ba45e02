//! Secrets that evidence needs: read by name when they are needed, never listed, never kept.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use crate::is_object_name;

/// The key of a Secret that holds certificates of authorities, in PEM.
pub(crate) const AUTHORITIES: &str = "ca.crt";
/// How long to wait for the API server.
const DEADLINE: Duration = Duration::from_secs(10);

/// The certificates of the authorities in the Secret `name`, in PEM, unread.
///
/// # Errors
/// In words that fit a status, with the verb and resource where rights are missing.
pub(crate) async fn authorities(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Vec<u8>, String> {
    let missing = || format!("there is no Secret {namespace}/{name}");
    if !is_object_name(name) {
        return Err(missing());
    }
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let secret = match tokio::time::timeout(DEADLINE, api.get(name)).await {
        Ok(Ok(secret)) => secret,
        Ok(Err(kube::Error::Api(status))) if status.is_not_found() => return Err(missing()),
        Ok(Err(kube::Error::Api(status))) if status.is_forbidden() => {
            return Err(format!(
                "may not get secrets in namespace {namespace}: grant get on the Secret {name}"
            ));
        }
        Ok(Err(_)) | Err(_) => {
            return Err(format!(
                "the API server does not give the Secret {namespace}/{name}"
            ));
        }
    };
    let found = secret.data.and_then(|mut data| data.remove(AUTHORITIES));
    found
        .map(|bytes| bytes.0)
        .ok_or_else(|| format!("the Secret {namespace}/{name} has no key `{AUTHORITIES}`"))
}
