//! `POST /approval/{namespace}/{pipeline}/{environment}/{revision}`: a program approves a promotion, in
//! place of a person.
//!
//! What comes in: a request that is signed by the key of that environment. What goes out: an Approval,
//! created once, or why there is none.
//!
//! Every replica answers, also one that does not lead: the Approval has the name of its promotion, so that
//! the API server takes it once, and the leader decides from it like from every other vote. The controller
//! creates it in its own name, and needs the rights that a person needs.
//!
//! A wrong signature is answered with the same words as an environment that has no key, or is not there:
//! an answer to a stranger says nothing of the cluster. The log says more.
//!
//! Every signature is verified, which takes no request in most cases ([`keys`]). Only those who fail are
//! counted by their address, so that a stranger behind the same proxy uses up nothing of those who have a
//! key. While the API server does not give a Secret, nobody can be told from a stranger: that is answered
//! with 503, and not counted.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::PostParams;
use kube::{Api, Client};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sluice_core::delivery::pipeline::{Signed, approve_by_webhook, is_by_webhook, name_by_webhook};
use sluice_core::text::words;
use sluice_crds::{Approval, Pipeline};
use tokio::sync::Semaphore;

use super::asking::Remote;
use super::auth::hash;
use super::check::read;
use super::keys::Keys;
use super::limit::{Limiter, Rate, Who};
use super::problem::{Refused, json};
use crate::cluster::failure;
use crate::cluster::key::KeyRef;
use crate::observe::clock::Clock;
use crate::observe::world::World;
use verified::{Named, Unverified, Verified};

mod signature;
#[cfg(test)]
mod tests;
mod verified;

/// How many requests of one address may be wrong, and how many that are right may come for one environment.
/// Neither value is zero, or this would not compile.
const RATE: Rate = Rate {
    rate: NonZeroU32::new(5).unwrap(),
    burst: NonZeroU32::new(20).unwrap(),
};
/// How many requests write an Approval at once.
const UNDER_WAY: usize = 8;
/// The most characters of a reason.
const REASON: usize = 1024;
/// The most characters of what others wrote in a line of the log.
const LOGGED: usize = 100;

/// The key of a Secret that signs approvals.
const SIGNING_KEY: &str = "hmac-key";
/// What a body has to look like.
const FORM: &str = "send no body, or {\"reason\": \"…\"}";

/// The body of an approval. It may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApprovalRequest {
    /// Why, for the people who read the Approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub reason: Option<String>,
}

/// The Approval that was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Approved {
    /// Its name.
    pub approval: String,
    /// The environment.
    pub environment: String,
    /// The revision.
    pub revision: String,
    /// The run for which it counts.
    pub run: i64,
}

/// What is needed to approve.
pub struct Approving {
    client: Client,
    world: Arc<World>,
    clock: Arc<dyn Clock>,
    ready: Box<dyn Fn() -> bool + Send + Sync>,
    keys: Keys,
    strangers: Limiter,
    signers: Limiter,
    turns: Semaphore,
}

pub(super) async fn answer(
    State(approving): State<Arc<Approving>>,
    request: Request,
) -> Result<Response, Refused> {
    if !(approving.ready)() {
        let why = "the controller does not know every Pipeline yet";
        return Err(Refused::unavailable(why));
    }
    let (parts, body) = request.into_parts();
    let from = Remote::of(&parts).0;
    let verified = approving.verify(&parts, body).await;
    let verified = verified.map_err(|why| approving.refuse(from, parts.uri.path(), why))?;
    approving.take(&verified)?;
    let request = match verified.body.is_empty() {
        true => ApprovalRequest::default(),
        false => read(&verified.body, FORM)?,
    };
    // It is never closed.
    let _turn = approving.turns.acquire().await;
    approving.approve(&verified, &request, from).await
}

/// `/promotion/…`: where another controller was called to promote.
pub(super) async fn gone() -> Refused {
    let error = "promotions are not begun by calls: the controller looks at what environments run";
    let remedy = "remove this call; to approve a promotion, POST to \
                  /approval/NAMESPACE/PIPELINE/ENVIRONMENT/REVISION";
    Refused::new(StatusCode::GONE, error, remedy)
}

impl Approving {
    /// Approvals are created by this client, for the Pipelines of this world, once it is ready.
    pub fn new(
        client: Client,
        world: Arc<World>,
        clock: Arc<dyn Clock>,
        ready: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            keys: Keys::new(client.clone(), SIGNING_KEY),
            client,
            world,
            clock,
            ready: Box::new(ready),
            strangers: Limiter::new(RATE),
            signers: Limiter::new(RATE),
            turns: Semaphore::new(UNDER_WAY),
        }
    }

    /// The answer to a request that could not be verified. It is counted by the address of its connection,
    /// unless it may be verified in a moment: headers can say anything.
    fn refuse(&self, from: IpAddr, path: &str, unverified: Unverified) -> Refused {
        let Unverified { answer, why } = unverified;
        if answer.passes() {
            return answer;
        }
        let taken = self.strangers.take(Who::at(from), NonZeroU32::MIN);
        if let Err(after) = taken {
            return too_many("too many requests from your address are wrong", after);
        }
        if let Some(why) = why {
            let path = words::clean(path, LOGGED);
            tracing::warn!(path, %from, why, "an approval by webhook is refused");
        }
        answer
    }

    /// Counts a request by the environment whose key has signed it.
    fn take(&self, verified: &Verified) -> Result<(), Refused> {
        let named = &verified.named;
        let of = [&named.namespace, &named.pipeline, &named.environment];
        let who = Who::Caller(hash(&of.map(String::as_bytes)));
        let taken = self.signers.take(who, NonZeroU32::MIN);
        taken.map_err(|after| too_many("too many requests come for this environment", after))
    }

    async fn approve(
        &self,
        verified: &Verified,
        request: &ApprovalRequest,
        from: IpAddr,
    ) -> Result<Response, Refused> {
        let Verified {
            named,
            signature,
            object,
            body: _,
        } = verified;
        let Named {
            namespace,
            pipeline,
            environment,
            revision,
        } = named;
        let name = name_by_webhook(object, environment, revision).unwrap_or_default();
        let key = KeyRef {
            namespace,
            name: &name,
        };
        if let Some(seen) = self.world.approvals.get(key) {
            return Err(taken(
                seen.object().map(AsRef::as_ref),
                object,
                environment,
                &name,
            ));
        }
        let by = self.own_name().await?;
        let reason = request.reason.as_deref();
        let reason = reason.map(|reason| words::clean(reason, REASON));
        let signed = Signed {
            environment,
            revision,
            at: signature.at(),
            reason: reason.as_deref().filter(|reason| !reason.is_empty()),
        };
        let made = approve_by_webhook(object, signed, &by)
            .map_err(|(why, remedy)| Refused::new(StatusCode::UNPROCESSABLE_ENTITY, why, remedy))?;
        let approvals: Api<Approval> = Api::namespaced(self.client.clone(), namespace);
        let made = match approvals.create(&PostParams::default(), &made).await {
            Ok(made) => made,
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let there = approvals.get_opt(&name).await;
                let there = there.map_err(|error| not_created(&error))?;
                return Err(taken(there.as_ref(), object, environment, &name));
            }
            Err(error) => return Err(not_created(&error)),
        };
        let approved = Approved {
            approval: made.metadata.name.unwrap_or_default(),
            environment: environment.clone(),
            revision: made.spec.revision,
            run: made.spec.pipeline_ref.map(|it| it.run).unwrap_or_default(),
        };
        tracing::info!(
            namespace,
            pipeline,
            environment,
            revision = approved.revision,
            run = approved.run,
            %from,
            "approved by webhook"
        );
        Ok(json(StatusCode::CREATED, &approved))
    }

    /// As whom the API server knows the controller.
    async fn own_name(&self) -> Result<String, Refused> {
        let reviews: Api<SelfSubjectReview> = Api::all(self.client.clone());
        let review = SelfSubjectReview::default();
        let review = reviews.create(&PostParams::default(), &review).await;
        let status = review.ok().and_then(|review| review.status);
        let name = status.and_then(|status| status.user_info?.username);
        name.ok_or_else(|| {
            Refused::unavailable("the API server cannot be asked who the controller is")
        })
    }
}

fn too_many(error: &str, after: Duration) -> Refused {
    let remedy = "wait for as many seconds as the header Retry-After says";
    Refused::new(StatusCode::TOO_MANY_REQUESTS, error, remedy).again(after)
}

/// The same promotion was approved by webhook before, perhaps by the same request.
fn replayed(name: &str) -> Refused {
    let error =
        format!("this promotion was approved by webhook before: the Approval {name} is there");
    let remedy = "send nothing more: another run needs another approval, which is signed after it has \
                  begun to wait";
    Refused::new(StatusCode::CONFLICT, error, remedy)
}

/// There is an Approval of this name, which may be somebody else's.
fn taken(there: Option<&Approval>, object: &Pipeline, environment: &str, name: &str) -> Refused {
    if there.is_some_and(|there| is_by_webhook(there, object, environment)) {
        return replayed(name);
    }
    let error = format!("the Approval {name} is there, and does not approve this promotion");
    let remedy = "delete it, and send the request again";
    Refused::new(StatusCode::UNPROCESSABLE_ENTITY, error, remedy)
}

fn not_created(error: &kube::Error) -> Refused {
    let code = match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    };
    let why = failure::of_request(error, "create", "approvals", sluice_crds::GROUP);
    match code {
        403 => {
            tracing::warn!(why, "an approval by webhook cannot be created");
            let remedy = "name its namespace in check.approvals of the chart, or give the controller the verbs \
                          create on approvals and approve on environments of the group sluice.dev";
            let error = "the controller has no right to approve this promotion";
            Refused::new(StatusCode::FORBIDDEN, error, remedy)
        }
        _ => {
            tracing::warn!(why, "an approval by webhook cannot be created");
            Refused::unavailable("the API server does not take the Approval")
        }
    }
}
