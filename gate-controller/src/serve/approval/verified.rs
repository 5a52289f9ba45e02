//! Whether a request is signed by the key of the environment that its path names.
//!
//! What comes in: a request. What goes out: what it names, and the Pipeline, or the answer to a stranger with
//! what the log says of it.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use percent_encoding::percent_decode_str;
use sluice_crds::Pipeline;
use sluice_egress::secrets::Unread;

use super::super::asking::whole;
use super::super::problem::Refused;
use super::Approving;
use super::signature::Signature;
use crate::cluster::key::KeyRef;
use crate::observe::cache::Seen;

/// The answer to every request whose signature cannot be verified.
pub(super) const UNSIGNED: &str =
    "the signature is not that of this environment's key, or there is no such key";
/// What to do then.
pub(super) const SIGN: &str = "sign TIMESTAMP \"\\n\" METHOD \"\\n\" PATH \"\\n\" BODY with the `hmac-key` of the Secret that \
                    promotion.strategy.secretRef of the environment names; the log of the controller \
                    says what is missing";
/// The answer to every request while the API server does not give the Secret. It does not say whether there
/// is one.
pub(super) const AWAY: &str = "the API server does not answer";
/// What to do then.
pub(super) const LATER: &str =
    "send the request again after as many seconds as the header Retry-After says";

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) namespace: String,
    pub(super) pipeline: String,
    pub(super) environment: String,
    pub(super) revision: String,
}

/// A request whose signature is that of the environment's key.
pub(super) struct Verified {
    pub(super) named: Named,
    pub(super) signature: Signature,
    pub(super) body: Bytes,
    pub(super) object: Arc<Pipeline>,
}

/// A request that is not, or of which that cannot be said, now or ever.
pub(super) struct Unverified {
    pub(super) answer: Refused,
    /// For the log, where the answer does not say it.
    pub(super) why: Option<String>,
}

impl From<Refused> for Unverified {
    fn from(answer: Refused) -> Self {
        Self { answer, why: None }
    }
}

impl From<Unread> for Unverified {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::NoAnswer(_) => Refused::unavailable(AWAY).or(LATER).into(),
            Unread::NoRight(why) | Unread::NotUsable(why) => stranger(why),
        }
    }
}

impl Approving {
    /// The request, if it is signed by the key of its environment.
    ///
    /// # Errors
    /// It is not, or has another form.
    pub(super) async fn verify(&self, parts: &Parts, body: Body) -> Result<Verified, Unverified> {
        let named = Named::read(&parts.uri).ok_or_else(unknown_path)?;
        let body = whole(body).await?;
        let signature = Signature::read(&parts.headers).map_err(unsigned)?;
        signature.check_time(self.clock.now()).map_err(unsigned)?;
        let (object, key) = self.key(&named).await?;
        if !signature.is_of(&key, &parts.method, parts.uri.path(), &body) {
            return Err(stranger("the signature is wrong"));
        }
        Ok(Verified {
            named,
            signature,
            body,
            object,
        })
    }

    /// The Pipeline, and the key of its environment.
    ///
    /// # Errors
    /// There is none, or the API server does not give it now.
    async fn key(&self, named: &Named) -> Result<(Arc<Pipeline>, Arc<[u8]>), Unverified> {
        let Named {
            namespace,
            pipeline: name,
            environment,
            revision: _,
        } = named;
        let seen = self.world.pipelines.get(KeyRef { namespace, name });
        let object = match seen {
            Some(Seen::Object(object)) => object,
            Some(Seen::Unreadable(_)) | None => return Err(stranger("there is no such Pipeline")),
        };
        let secret = secret_of(&object, environment).map_err(stranger)?;
        let key = self.keys.get(namespace, secret, &*self.clock).await?;
        Ok((object, key))
    }
}

impl Named {
    /// None: the path has another form.
    fn read(uri: &Uri) -> Option<Self> {
        let parts = uri.path().strip_prefix("/approval/")?.split('/');
        let parts = parts.map(|part| {
            let text = percent_decode_str(part).decode_utf8().ok()?;
            (!text.is_empty()).then(|| text.into_owned())
        });
        let parts: Vec<String> = parts.collect::<Option<_>>()?;
        let [namespace, pipeline, environment, revision] = parts.try_into().ok()?;
        uri.query().is_none().then_some(Self {
            namespace,
            pipeline,
            environment,
            revision,
        })
    }
}

/// The Secret whose key signs approvals for an environment.
fn secret_of<'p>(object: &'p Pipeline, environment: &str) -> Result<&'p str, &'static str> {
    let mut environments = object.spec.environments.iter();
    let environment = environments
        .find(|it| it.name == environment)
        .ok_or("the Pipeline has no such environment")?;
    let promotion = object.spec.promotion_of(environment);
    let secret = promotion.and_then(|it| it.strategy.secret_ref.as_ref());
    let missing = "its promotion.strategy has no secretRef";
    Ok(secret.ok_or(missing)?.name.as_str())
}

/// There is no key that has signed it. Why, the log says alone.
fn stranger(why: impl Into<String>) -> Unverified {
    Unverified {
        answer: Refused::unsigned(UNSIGNED, SIGN),
        why: Some(why.into()),
    }
}

fn unknown_path() -> Refused {
    let error = "this path names no promotion";
    let remedy = "POST to /approval/NAMESPACE/PIPELINE/ENVIRONMENT/REVISION without a query, each part \
                  percent-encoded: a `/` in a revision is %2F";
    Refused::new(StatusCode::NOT_FOUND, error, remedy)
}

/// What is wrong with the headers: that says nothing of the cluster.
fn unsigned(error: String) -> Refused {
    Refused::unsigned(error, SIGN)
}
