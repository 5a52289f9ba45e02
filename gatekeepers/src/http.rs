//! Evidence for `http`: what an address answers.
//!
//! What comes in: the spec, what was seen before, and an instant. What goes out: what is [`Seen`] now, as
//! `sluice_core::gatekeeper::http` judges it. The address is asked at its interval ([`crate::polling`]).
//! Its body is judged outside the threads that serve everything else, a few bodies at once, and then
//! dropped.

use std::sync::{Arc, LazyLock};

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::ResourceExt;
use sluice_core::evidence::expression::ExpressionError;
use sluice_core::evidence::polling::Polled;
use sluice_core::gatekeeper::Evidence;
use sluice_core::gatekeeper::http::{self, Answer, Body, Observed, Rule};
use sluice_crds::Gatekeeper;
use sluice_crds::gatekeeper::{self as api, HttpStatus};
use sluice_egress::places::Places;
use sluice_egress::{Reply, Request, Schemes};

use crate::Clients;
use crate::observation::{Look, Observation, Observe, namespace};
use crate::polling::{self, Beat, Keys, Miss, persist};

#[cfg(test)]
mod tests;

/// How many bodies are judged at once, and how many of them for one namespace: each may take a core
/// for a part of a second, and 48 MiB. Namespaces take turns.
static JUDGES: LazyLock<Places> = LazyLock::new(|| Places::new(1, 1));

/// What was seen of an address.
type Seen = polling::Seen<api::Http, Rule, Observed>;

impl Observe for api::Http {
    fn known(&self, last: &Observation) -> Option<Evidence> {
        Seen::known(self, last)
    }

    fn observe<'a>(&'a self, look: Look<'a>) -> BoxFuture<'a, Observation> {
        async move {
            let (last, status) = (look.seen(), look.status().and_then(|it| it.http.as_ref()));
            let last = last.as_ref();
            let seen = observe(look.object, self, look.clients, last, status, look.now).await;
            Seen::observation(seen)
        }
        .boxed()
    }
}

/// What is seen of the address of `spec` at `now`. What is not due yet is taken from `last`. `status` is
/// what was written about exactly this spec: after a restart it says what was seen before. None: the spec
/// is refused.
async fn observe(
    object: &Gatekeeper,
    spec: &api::Http,
    clients: &Clients,
    last: Option<&Seen>,
    status: Option<&HttpStatus>,
    now: Timestamp,
) -> Option<Seen> {
    let last = last.filter(|last| last.is_about(spec));
    let rule = match last {
        Some(last) => Arc::clone(&last.rule),
        None => Arc::new(http::read(spec, "spec.http").ok()?),
    };
    let beat = Beat::new(rule.cadence, &object.uid().unwrap_or_default());
    if let Some(last) = last.filter(|last| !last.is_due(now, &beat)) {
        return Some(last.clone());
    }
    let (namespace, name) = (namespace(object), object.name_any());
    let asking = || ask(spec, &rule, clients, &namespace);
    let attempt = match persist(rule.cadence, rule.retries, asking).await {
        Ok(reply) => Ok(judge(&rule, reply, &namespace).await),
        Err(trouble) => Err(trouble),
    };
    if let Err(trouble) = &attempt {
        let why = trouble.why();
        if last.and_then(|last| last.observed.error()) != Some(why) {
            tracing::warn!(namespace, name, why, "an address does not answer");
        }
    }
    let before = match (last, status) {
        (Some(last), _) => Some(last.observed.clone()),
        (None, Some(status)) => rule.restored(status, now),
        (None, None) => None,
    };
    let failed = attempt.is_err();
    let observed = Polled::next(before, attempt, rule.cadence, now);
    let about = (spec, rule);
    Some(Seen::next(last, about, observed, failed, &beat, now))
}

async fn ask(
    spec: &api::Http,
    rule: &Rule,
    clients: &Clients,
    namespace: &str,
) -> Result<Reply, Miss> {
    let (authorities, secret) = (spec.cert_secret_ref.as_ref(), spec.secret_ref.as_ref());
    let keys = Keys::read(clients, namespace, authorities, secret, &spec.url).await?;
    let request = Request {
        namespace,
        schemes: Schemes::HttpToo,
        authorities: keys.authorities.as_deref(),
        credentials: keys.credentials.as_ref(),
        time: Some(rule.cadence.timeout.unsigned_abs()),
        body_waits: rule.has_expression(),
        ..Request::to(&spec.url)
    };
    let wants_body = |status| rule.wants_body(status);
    let reply = clients.egress.ask(&request, wants_body).await;
    reply.map_err(|error| Miss::of(&spec.url, &error))
}

async fn judge(rule: &Arc<Rule>, reply: Reply, namespace: &str) -> Answer {
    let Reply { status, body, .. } = reply;
    if !rule.wants_body(status) {
        return rule.answer(status, &body);
    }
    let _place = JUDGES.take(namespace).await;
    let judging = Arc::clone(rule);
    let judged = tokio::task::spawn_blocking(move || judging.answer(status, &body));
    judged.await.unwrap_or(Answer {
        status,
        body: Body::Unjudged(ExpressionError::Defect),
    })
}
