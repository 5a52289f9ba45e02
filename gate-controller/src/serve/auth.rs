//! Who asks, and what they may: the API server says, by TokenReview and SubjectAccessReview.
//!
//! What comes in: a bearer token; then a gate, or Pipelines. What goes out: the user whose token it is;
//! then whether they have the verb `check` on the gate, or may see the Pipelines.
//!
//! Answers are kept for a moment, refusals for a shorter one, so that a right that is given or taken
//! away shows soon. Tokens are not kept, only their hashes. However many ask the same at once, the
//! API server is asked once.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client, Resource};
use moka::Expiry;
use moka::future::Cache;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use sluice_core::text::words;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::cluster::failure;

/// The verb that a caller needs on each gate that it names.
pub const VERB: &str = "check";
/// The resource that it is on.
pub const RESOURCE: &str = "gates";

/// How many tokens are known at once.
const TOKENS: u64 = 10_000;
/// How many rights are known at once.
const RIGHTS: u64 = 50_000;
/// How many questions to the API server are under way at once.
const UNDER_WAY: usize = 16;
/// How long one of them may take, waiting for its turn included.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most characters of a user's name in messages.
const NAME: usize = 256;

/// How long answers of the API server are kept.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// A token that is somebody's, a right that somebody has.
    pub granted: Duration,
    /// Any other answer.
    pub refused: Duration,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            granted: Duration::from_secs(60),
            refused: Duration::from_secs(10),
        }
    }
}

/// A SHA-256.
type Hash = [u8; 32];

/// Somebody whom the API server knows.
#[derive(Debug)]
pub(super) struct Caller {
    user: UserInfo,
    /// Of the name alone: one user may have many tokens, and each says a little more.
    pub(super) key: Hash,
    /// The name, fit to be shown.
    name: String,
    /// Of all that the API server says of them: who joins a group has other rights.
    id: Hash,
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.name)
    }
}

impl Caller {
    /// Their name, fit to be shown.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// A right on objects of sluice.dev.
#[derive(Clone, Copy, Debug)]
pub(super) struct Right<'a> {
    /// The verb.
    pub(super) verb: &'static str,
    /// The resource.
    pub(super) resource: &'static str,
    /// The namespace. None: all of them.
    pub(super) namespace: Option<&'a str>,
    /// The name. None: every object.
    pub(super) name: Option<&'a str>,
}

/// Why the API server has not been asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unasked {
    /// It does not answer.
    Unanswered(&'static str),
    /// The caller has to wait this long before it may ask.
    Limited(Duration),
}

/// What the API server has said.
pub struct Reviews {
    client: Client,
    audiences: Vec<String>,
    tokens: Cache<Hash, Option<Arc<Caller>>>,
    rights: Cache<Hash, bool>,
    under_way: Semaphore,
}

impl Reviews {
    /// Nothing, so far. A token has to be for one of the audiences; for the API server itself where
    /// there are none.
    pub fn new(client: Client, audiences: Vec<String>, kept: Kept) -> Self {
        let tokens = Cache::builder().max_capacity(TOKENS);
        let rights = Cache::builder().max_capacity(RIGHTS);
        Self {
            client,
            audiences,
            tokens: tokens.expire_after(kept).build(),
            rights: rights.expire_after(kept).build(),
            under_way: Semaphore::new(UNDER_WAY),
        }
    }

    /// The audiences that a token may be for.
    pub(super) fn audiences(&self) -> &[String] {
        &self.audiences
    }

    /// Whose token it is. None: nobody's. `take` says whether the API server may be asked, or how
    /// long that has to wait.
    ///
    /// # Errors
    /// It may not, or does not answer.
    pub(super) async fn caller(
        &self,
        token: &str,
        take: impl FnOnce() -> Result<(), Duration>,
    ) -> Result<Option<Arc<Caller>>, Unasked> {
        let key = hash(&[token.as_bytes()]);
        let review = async {
            take().map_err(Unasked::Limited)?;
            self.review(token).await
        };
        let answer = self.tokens.try_get_with(key, review);
        answer.await.map_err(Arc::unwrap_or_clone)
    }

    /// Whether somebody may check a gate, or, where none is named, every gate of a namespace.
    ///
    /// # Errors
    /// The API server does not answer.
    pub(super) async fn may_check(
        &self,
        caller: &Caller,
        namespace: &str,
        name: Option<&str>,
    ) -> Result<bool, Unasked> {
        let right = Right {
            verb: VERB,
            resource: RESOURCE,
            namespace: Some(namespace),
            name,
        };
        self.may(caller, right).await
    }

    /// Whether somebody has a right.
    ///
    /// # Errors
    /// The API server does not answer.
    pub(super) async fn may(&self, caller: &Caller, right: Right<'_>) -> Result<bool, Unasked> {
        let Right {
            verb,
            resource,
            namespace,
            name,
        } = right;
        // Nothing has no name, and no namespace has none.
        let texts = [
            verb,
            resource,
            namespace.unwrap_or_default(),
            name.unwrap_or_default(),
        ];
        let [verb, resource, namespace, name] = texts.map(str::as_bytes);
        let key = hash(&[&caller.id, verb, resource, namespace, name]);
        let answer = self
            .rights
            .try_get_with(key, self.review_access(caller, right));
        answer.await.map_err(Arc::unwrap_or_clone)
    }

    async fn review(&self, token: &str) -> Result<Option<Arc<Caller>>, Unasked> {
        let audiences = (!self.audiences.is_empty()).then(|| self.audiences.clone());
        let review = TokenReview {
            spec: TokenReviewSpec {
                audiences,
                token: token.to_owned(),
            },
            ..TokenReview::default()
        };
        let what = "whose the bearer token is";
        let answer = self.ask(&review, what).await?.status.unwrap_or_default();
        if let Some(error) = &answer.error {
            tracing::debug!(error = words::clean(error, NAME), "a token is refused");
        }
        // An authenticator that knows nothing of audiences leaves them out: then the token is for
        // the API server and not for us.
        let valid = answer.audiences.unwrap_or_default();
        let is_for_us =
            self.audiences.is_empty() || valid.iter().any(|a| self.audiences.contains(a));
        let user = answer.user.unwrap_or_default();
        let name = user.username.as_deref().unwrap_or_default();
        if answer.authenticated != Some(true) || !is_for_us || name.is_empty() {
            return Ok(None);
        }
        let (key, name) = (hash(&[name.as_bytes()]), words::clean(name, NAME));
        let id = serde_json::to_vec(&user).map_err(|_| Unasked::Unanswered(what))?;
        let id = hash(&[&id]);
        let caller = Caller {
            user,
            key,
            name,
            id,
        };
        Ok(Some(Arc::new(caller)))
    }

    async fn review_access(&self, caller: &Caller, right: Right<'_>) -> Result<bool, Unasked> {
        let Right {
            verb,
            resource,
            namespace,
            name,
        } = right;
        let user = caller.user.clone();
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    group: Some(sluice_crds::GROUP.to_owned()),
                    resource: Some(resource.to_owned()),
                    verb: Some(verb.to_owned()),
                    namespace: namespace.map(str::to_owned),
                    name: name.map(str::to_owned),
                    ..ResourceAttributes::default()
                }),
                user: user.username,
                groups: user.groups,
                uid: user.uid,
                extra: user.extra,
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let what = match resource {
            RESOURCE => "who may check the gate",
            _ => "who may see the Pipelines",
        };
        let answer = self.ask(&review, what).await?;
        let answer = answer.status.unwrap_or_default();
        Ok(answer.allowed && answer.denied != Some(true))
    }

    /// Asks the API server, when it is its turn.
    async fn ask<R>(&self, review: &R, what: &'static str) -> Result<R, Unasked>
    where
        R: Resource<DynamicType = (), Scope = ClusterResourceScope>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
    {
        let asking = async {
            // It is never closed.
            let _turn = self.under_way.acquire().await;
            let reviews: Api<R> = Api::all(self.client.clone());
            let answer = reviews.create(&PostParams::default(), review).await;
            answer.map_err(|error| {
                failure::of_request(&error, "create", &R::plural(&()), &R::group(&()))
            })
        };
        let answer: Result<_, _> = timeout(PATIENCE, asking).await;
        let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {PATIENCE:?}")));
        answer.map_err(|why| {
            tracing::warn!(why, "the API server cannot be asked {what}");
            Unasked::Unanswered(what)
        })
    }
}

impl Kept {
    fn of(self, granted: bool) -> Duration {
        if granted { self.granted } else { self.refused }
    }
}

impl Expiry<Hash, Option<Arc<Caller>>> for Kept {
    fn expire_after_create(
        &self,
        _: &Hash,
        caller: &Option<Arc<Caller>>,
        _: Instant,
    ) -> Option<Duration> {
        Some(self.of(caller.is_some()))
    }
}

impl Expiry<Hash, bool> for Kept {
    fn expire_after_create(&self, _: &Hash, granted: &bool, _: Instant) -> Option<Duration> {
        Some(self.of(*granted))
    }
}

/// Of several texts, so that none can be taken for a part of the next.
pub(super) fn hash(texts: &[&[u8]]) -> Hash {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    hash.finalize().into()
}
