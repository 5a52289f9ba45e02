//! `POST /hooks/{namespace}/{access}`: a forge says that something has changed in a repository.
//!
//! What comes in: a request that is signed with the token of that GitRepositoryAccess. What goes out: a wake:
//! its branches and pull requests are asked for now, and not when it is their time. That is all that a webhook
//! can do, so that one which is sent again does no harm. What its body says is summed up as it comes in, and
//! neither kept nor read.
//!
//! A stranger learns nothing of the cluster: an access that is not there, or has no token, is answered like a
//! wrong signature, with 404, after the same body was read, and not before [`LEAST`] has passed, in which a Secret
//! can be read. What has no signature of any forge is refused at once, whatever it names. The log says more.
//!
//! Only the replica that leads knows repositories. Any other answers with 503, by which a proxy in front of it
//! can find the one that leads; forges themselves send nothing twice. What is lost is found when the branches
//! are listed the next time. A shard that decides about nothing in that repository, of which another one has
//! something, answers the same.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use axum::middleware::{Next, from_fn};
use axum::routing::post;
use futures::TryStreamExt;
use kube::Client;
use sluice_core::text::words;
use sluice_crds::pipeline::ForgeType;
use tokio::time::Instant;

use super::asking::Remote;
use super::guard;
use super::hmac::Sum;
use super::keys::Keys;
use super::limit::{Limiter, Rate, Who};
use super::problem::Refused;
use crate::cluster::key::{KeyRef, ObjectKey};
use crate::observe::cache::Seen;
use crate::observe::clock::Clock;
use crate::observe::world::World;
use apart::Apart;
use signature::Claim;

mod apart;
mod signature;
#[cfg(test)]
mod tests;

/// The key of a Secret that signs webhooks.
const TOKEN: &str = "token";
/// The most bytes of a body: GitHub sends no more.
const LONGEST: usize = 25 << 20;
/// The least time to an answer that refuses. Otherwise an access that is there could be told by the time in which
/// its Secret is read.
const LEAST: Duration = Duration::from_millis(500);
/// How many wrong requests of one address are logged. Neither value is zero, or this would not compile.
const LOGGED: Rate = Rate {
    rate: NonZeroU32::MIN,
    burst: NonZeroU32::new(5).unwrap(),
};
/// Why most are refused, for the log.
const UNSIGNED: &str = "the signature is wrong, or there is none";
/// The most characters of a path in a line of the log.
const PATH: usize = 200;

/// What is needed to take webhooks.
pub struct Hooks {
    world: Arc<World>,
    clock: Arc<dyn Clock>,
    leads: Box<dyn Fn() -> bool + Send + Sync>,
    is_ours: Box<dyn Fn(&ObjectKey) -> bool + Send + Sync>,
    woken: Arc<Apart>,
    keys: Keys,
    strangers: Limiter,
}

/// An access, with the key of its webhooks.
struct Known {
    access: ObjectKey,
    provider: ForgeType,
    key: Arc<[u8]>,
}

impl Hooks {
    /// Of the accesses of this world, while this replica leads and knows them. `is_ours` says whether what
    /// happens in the repository of one is for this process, and not for another shard. `wake` is called with each
    /// that a webhook is about, at most once a second.
    pub fn new(
        client: Client,
        world: Arc<World>,
        clock: Arc<dyn Clock>,
        leads: impl Fn() -> bool + Send + Sync + 'static,
        is_ours: impl Fn(&ObjectKey) -> bool + Send + Sync + 'static,
        wake: impl Fn(&ObjectKey) + Send + Sync + 'static,
    ) -> Self {
        Self {
            world,
            clock,
            leads: Box::new(leads),
            is_ours: Box::new(is_ours),
            woken: Apart::new(wake),
            keys: Keys::new(client, TOKEN),
            strangers: Limiter::new(LOGGED),
        }
    }

    /// All that is served.
    pub fn router(self) -> Router {
        Router::new()
            .route("/hooks/{*access}", post(answer))
            .fallback(async || unknown())
            .method_not_allowed_fallback(async || unknown())
            .with_state(Arc::new(self))
            .layer(from_fn(|request: Request, next: Next| {
                guard::guard(guard::TIME, request, next)
            }))
    }

    /// The access that a path names.
    ///
    /// # Errors
    /// There is none that takes webhooks, or its Secret cannot be read: why.
    async fn find(&self, uri: &Uri) -> Result<Known, String> {
        let named = uri.path().strip_prefix("/hooks/");
        let (namespace, name) = named.and_then(|it| it.split_once('/')).unwrap_or_default();
        let access = KeyRef { namespace, name };
        let seen = self.world.accesses.get(access);
        let Some(object) = seen.as_ref().and_then(Seen::object) else {
            return Err("there is no such GitRepositoryAccess".to_owned());
        };
        let Some(webhook) = &object.spec.webhook else {
            return Err("the GitRepositoryAccess has no webhook".to_owned());
        };
        let secret = &webhook.secret_ref.name;
        Ok(Known {
            key: self.keys.get(namespace, secret, &*self.clock).await?,
            provider: object.spec.provider,
            access: access.into(),
        })
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "every refusal takes the same time on the monotonic clock"
)]
async fn pass(until: Instant) {
    tokio::time::sleep_until(until).await;
}

async fn answer(State(hooks): State<Arc<Hooks>>, request: Request) -> Result<StatusCode, Refused> {
    if !(hooks.leads)() {
        let why = "this replica stands by, and the one that leads takes webhooks";
        return Err(Refused::unavailable(why).or("send it again"));
    }
    let begun = Instant::now();
    let (parts, body) = request.into_parts();
    if !Claim::is_any(&parts.headers) {
        return Err(hooks.refuse(&parts, UNSIGNED));
    }
    let known = match hooks.verify(&parts, body).await {
        Ok(known) => known,
        Err(refused) => {
            pass(begun + LEAST).await;
            return Err(refused);
        }
    };
    tracing::debug!(access = %known.access, "its forge says that something has changed");
    if !(hooks.is_ours)(&known.access) {
        let why = "another shard decides about what is in this repository";
        return Err(Refused::unavailable(why).or("send it again, to that one"));
    }
    hooks.woken.wake(&known.access);
    Ok(StatusCode::ACCEPTED)
}

impl Hooks {
    /// The access that a request is about, and is signed for.
    async fn verify(&self, parts: &Parts, body: Body) -> Result<Known, Refused> {
        let known = self.find(&parts.uri).await;
        let key: &[u8] = known.as_ref().map_or(&[], |known| &known.key);
        let provider = known.as_ref().map_or(ForgeType::GitHub, |it| it.provider);
        let claim = Claim::read(provider, &parts.headers);
        let mut sum = claim.sum(key);
        add(&mut sum, body).await?;
        let is_right = claim.is_right(sum, key);
        let known = known.and_then(|known| is_right.then_some(known).ok_or(UNSIGNED.to_owned()));
        known.map_err(|why| self.refuse(parts, &why))
    }

    /// Logs why, unless that was said to the same address just now.
    fn refuse(&self, parts: &Parts, why: &str) -> Refused {
        let from = Remote::of(parts).0;
        if self.strangers.take(Who::at(from), NonZeroU32::MIN).is_ok() {
            let path = words::clean(parts.uri.path(), PATH);
            tracing::warn!(path, %from, why, "a webhook is refused");
        }
        unknown()
    }
}

/// Adds the body to what is signed, as it comes in.
async fn add(sum: &mut Sum, body: Body) -> Result<(), Refused> {
    let mut pieces = body.into_data_stream();
    let mut length = 0;
    while let Some(piece) = pieces.try_next().await.map_err(|_| unknown())? {
        length += piece.len();
        if length > LONGEST {
            let error = format!("the body is longer than {} MiB", LONGEST >> 20);
            return Err(Refused::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                error,
                "send less",
            ));
        }
        sum.add(&piece);
    }
    Ok(())
}

/// The answer to everything that is not what it should be.
fn unknown() -> Refused {
    let error = "there is no such webhook, or it is not signed with its token";
    let remedy = "POST to /hooks/NAMESPACE/NAME of a GitRepositoryAccess, with the `token` of the Secret that its \
                  webhook.secretRef names as the secret; the log of the controller says what is missing";
    Refused::new(StatusCode::NOT_FOUND, error, remedy)
}
