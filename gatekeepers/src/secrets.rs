//! Secrets that evidence needs: read by name when they are needed, never listed, never kept.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use crate::egress::Credentials;
use crate::is_object_name;

/// The key of a Secret that holds certificates of authorities, in PEM.
pub(crate) const AUTHORITIES: &str = "ca.crt";
/// The key of a Secret that holds a bearer token.
const TOKEN: &str = "token";
/// The keys of a Secret that hold a name and its password.
const USERNAME: &str = "username";
const PASSWORD: &str = "password";
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
    let mut data = read(client, namespace, name).await?;
    data.remove(AUTHORITIES)
        .map(|bytes| bytes.0)
        .ok_or_else(|| format!("the Secret {namespace}/{name} has no key `{AUTHORITIES}`"))
}

/// Who asks: the token in the Secret `name`, or the name and password.
///
/// # Errors
/// In words that fit a status and hold nothing of the Secret.
pub(crate) async fn credentials(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Credentials, String> {
    let data = read(client, namespace, name).await?;
    let wrong = |what: &str| format!("the Secret {namespace}/{name} {what}");
    let text = |key: &str| match data.get(key) {
        None => Ok(None),
        Some(ByteString(bytes)) => match std::str::from_utf8(bytes) {
            // A line break at the end is what an editor or `echo` left.
            Ok(text) => Ok(Some(text.trim_end_matches(['\r', '\n']))),
            Err(_) => Err(wrong(&format!("has a `{key}` that is not UTF-8"))),
        },
    };
    match (text(TOKEN)?, text(USERNAME)?, text(PASSWORD)?) {
        (Some(token), None, None) => Credentials::bearer(token)
            .ok_or_else(|| wrong("has a `token` with characters that no header may hold")),
        (None, Some(username), Some(password)) => Credentials::basic(username, password)
            .ok_or_else(|| {
                wrong("has a `username` with a colon, which separates it from the password")
            }),
        (Some(_), _, _) => Err(wrong(
            "has `token` beside `username` or `password`; keep one of them",
        )),
        (None, _, _) => Err(wrong("has neither `token` nor `username` with `password`")),
    }
}

async fn read(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<BTreeMap<String, ByteString>, String> {
    let missing = || format!("there is no Secret {namespace}/{name}");
    if !is_object_name(name) {
        return Err(missing());
    }
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    match tokio::time::timeout(DEADLINE, api.get(name)).await {
        Ok(Ok(secret)) => Ok(secret.data.unwrap_or_default()),
        Ok(Err(kube::Error::Api(status))) if status.is_not_found() => Err(missing()),
        Ok(Err(kube::Error::Api(status))) if status.is_forbidden() => Err(format!(
            "may not get secrets in namespace {namespace}: grant get on the Secret {name}"
        )),
        Ok(Err(_)) | Err(_) => Err(format!(
            "the API server does not give the Secret {namespace}/{name}"
        )),
    }
}
