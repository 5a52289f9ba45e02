//! Kinds, as the API server knows them: for a group, version and kind, the resource by which its objects
//! are asked for. A kind that is not there may be installed later: it is looked for again.

use jiff::{SignedDuration, Timestamp};
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use kube::discovery::{self, ApiCapabilities, Scope, verbs};
use kube::error::DiscoveryError;
use kube::{Client, Error};
use tokio::time::timeout;

use super::DEADLINE;
use super::answers::Answers;
use crate::source::ObjectsKey;

/// The wait after a kind was not found; each further time doubles it, up to [`LONGEST`].
const RETRY: SignedDuration = SignedDuration::from_secs(5);
/// The longest wait.
const LONGEST: SignedDuration = SignedDuration::from_secs(60);

/// A kind whose objects can be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) resource: ApiResource,
    pub(super) namespaced: bool,
}

/// What stands in the way, and when to try again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Obstacle {
    pub(super) why: String,
    pub(super) again: Timestamp,
    /// Whether finding it is so expensive that nothing is tried before that instant, even after a change:
    /// others wait for the same turns.
    pub(super) costly: bool,
}

/// The kinds that were looked for.
pub(super) struct Kinds {
    client: Client,
    found: Answers<(String, String), Found>,
}

struct Found {
    kind: Result<Kind, String>,
    asked: Timestamp,
    /// In a row.
    failures: u32,
}

impl Found {
    /// When to ask again. None: there is no need.
    fn again(&self) -> Option<Timestamp> {
        let wait = RETRY.saturating_mul(1 << self.failures.saturating_sub(1).min(8));
        let again = || self.asked.saturating_add(wait.min(LONGEST));
        self.kind
            .is_err()
            .then(|| again().unwrap_or(Timestamp::MAX))
    }

    fn is_due(&self, now: Timestamp) -> bool {
        // Asked later than now: the clock was set back.
        self.again()
            .is_some_and(|again| again <= now || now < self.asked)
    }
}

impl Kinds {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            found: Answers::default(),
        }
    }

    /// The kind of `key`, for any namespace. `at_once`: ask even if it is not due yet.
    pub(super) async fn find(
        &self,
        key: &ObjectsKey,
        at_once: bool,
        now: Timestamp,
    ) -> Result<Kind, Obstacle> {
        let mut found = self.answer(key).await;
        let due = match &*found {
            None => true,
            Some(found) => found.is_due(now) || (at_once && found.kind.is_err()),
        };
        if due {
            let kind = self.ask(key).await;
            note(&mut found, kind, now);
        }
        match &*found {
            Some(Found { kind: Ok(kind), .. }) => Ok(kind.clone()),
            Some(unfound @ Found { kind: Err(why), .. }) => Err(Obstacle {
                costly: false,
                why: why.clone(),
                again: unfound.again().unwrap_or(now),
            }),
            None => Err(Obstacle {
                costly: false,
                why: missing(key),
                again: now,
            }),
        }
    }

    /// It is gone: its objects could not be asked for any more.
    pub(super) async fn vanished(&self, key: &ObjectsKey, now: Timestamp) -> Obstacle {
        let mut found = self.answer(key).await;
        // Others may have noticed this before.
        if found.as_ref().is_none_or(|found| found.kind.is_ok()) {
            note(&mut found, Err(missing(key)), now);
        }
        let again = found.as_ref().and_then(Found::again).unwrap_or(now);
        let why = missing(key);
        Obstacle {
            why,
            again,
            costly: false,
        }
    }

    async fn answer(&self, key: &ObjectsKey) -> tokio::sync::OwnedMutexGuard<Option<Found>> {
        let question = (key.api_version.clone(), key.kind.clone());
        self.found.to(&question, |found| found.kind.is_err()).await
    }

    async fn ask(&self, key: &ObjectsKey) -> Result<Kind, String> {
        let kind = &key.kind;
        let (group, version) = key
            .api_version
            .split_once('/')
            .unwrap_or(("", &key.api_version));
        let wanted = GroupVersionKind::gvk(group, version, kind);
        let asked = timeout(DEADLINE, discovery::pinned_kind(&self.client, &wanted)).await;
        let (resource, capabilities) = match asked {
            Ok(Ok(found)) => found,
            Ok(Err(Error::Discovery(DiscoveryError::MissingKind(_)))) => return Err(missing(key)),
            // By its code: for a group that it does not have, the API server says so in plain text.
            Ok(Err(Error::Api(status))) if status.code == 404 => return Err(missing(key)),
            Ok(Err(_)) | Err(_) => {
                let version = &key.api_version;
                return Err(format!(
                    "the API server does not tell the kinds in {version}"
                ));
            }
        };
        watchable(resource, &capabilities)
    }
}

fn note(found: &mut Option<Found>, kind: Result<Kind, String>, now: Timestamp) {
    let before = found.as_ref().map_or(0, |found| found.failures);
    let failures = match &kind {
        Ok(_) => 0,
        Err(_) => before.saturating_add(1),
    };
    *found = Some(Found {
        kind,
        asked: now,
        failures,
    });
}

fn missing(key: &ObjectsKey) -> String {
    let ObjectsKey {
        api_version, kind, ..
    } = key;
    format!("the API server has no kind {kind} in {api_version}")
}

/// Secrets are refused here, too, by the resource that the API server names: a user who asks under
/// another name does not get them either.
fn watchable(resource: ApiResource, capabilities: &ApiCapabilities) -> Result<Kind, String> {
    let is_secrets = resource.kind == "Secret" || resource.plural == "secrets";
    if resource.group.is_empty() && is_secrets {
        return Err("Secrets are never read; name another kind".to_owned());
    }
    let needed = [verbs::LIST, verbs::WATCH];
    if !needed
        .iter()
        .all(|verb| capabilities.supports_operation(verb))
    {
        let plural = &resource.plural;
        return Err(format!("{plural} cannot be watched; name another kind"));
    }
    Ok(Kind {
        resource,
        namespaced: capabilities.scope == Scope::Namespaced,
    })
}
