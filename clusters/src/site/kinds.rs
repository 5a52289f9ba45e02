//! Kinds, as an API server serves them: for a group and kind, the resource by which its objects are asked
//! for, in the version that the API server prefers.

use std::time::Duration;

use kube::Client;
use kube::api::ApiResource;
use kube::discovery::{self, Scope};
use kube::error::DiscoveryError;
use sluice_watching::passes;
use tokio::time::timeout;

use crate::sight::Unknown;
use crate::wanted::Kind;

/// How long to wait for the answers.
const DEADLINE: Duration = Duration::from_secs(15);

/// The resource of a kind.
///
/// # Errors
/// The API server does not have it, or does not say so.
pub(super) async fn find(client: &Client, kind: &Kind) -> Result<ApiResource, Unknown> {
    if kind.group.is_empty() && kind.kind == "Secret" {
        return Err(Unknown::Unreadable(
            "Secrets are never read; name another kind".to_owned(),
        ));
    }
    let missing = || Unknown::NoKind(kind.clone());
    let group = match timeout(DEADLINE, discovery::group(client, &kind.group)).await {
        Ok(Ok(group)) => group,
        Ok(Err(kube::Error::Discovery(
            DiscoveryError::MissingApiGroup(_) | DiscoveryError::MissingKind(_),
        ))) => return Err(missing()),
        Ok(Err(kube::Error::Api(status))) => {
            let (code, reason) = (status.code, status.reason.clone());
            let why = format!("it answers with status {code} {reason}");
            return Err(match passes(&kube::Error::Api(status)) {
                true => Unknown::Away(why),
                false => Unknown::Unreachable(why),
            });
        }
        Ok(Err(_)) => return Err(Unknown::Away("it cannot be reached".to_owned())),
        Err(_) => {
            let why = format!("no answer within {}s", DEADLINE.as_secs());
            return Err(Unknown::Away(why));
        }
    };
    let recommended = group.recommended_kind(&kind.kind);
    // The version that the group prefers may not have it: OpenKruise's does not have CloneSets.
    let elsewhere = || {
        let all = group.resources_by_stability().into_iter();
        all.into_iter()
            .find(|(resource, _)| resource.kind == kind.kind)
    };
    let (resource, capabilities) = recommended.or_else(elsewhere).ok_or_else(missing)?;
    match capabilities.scope {
        Scope::Namespaced => Ok(resource),
        Scope::Cluster => Err(Unknown::Unreadable(format!(
            "a {kind} is in no namespace; name a kind that is"
        ))),
    }
}
