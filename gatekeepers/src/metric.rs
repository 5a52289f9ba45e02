//! Evidence for `metric`: the result of its query.
//!
//! What comes in: the spec, what was seen before, and an instant. What goes out: what is [`Seen`] now, as
//! `sluice_core::gatekeeper::metric` judges it. The query is sent at its interval ([`crate::polling`]) to
//! Prometheus' HTTP API, whose answers [`answer`] reads.
//!
//! It does not use a client library for Prometheus: those bring their own HTTP client, which would reach
//! what the rules of [`sluice_egress`] refuse.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use sluice_core::gatekeeper::Evidence;
use sluice_core::gatekeeper::metric::{self, Answer, Observed, Rule};
use sluice_crds::Gatekeeper;
use sluice_crds::gatekeeper::{self as api, MetricStatus};
use sluice_egress::{Request, Schemes};

use tokio::time::Instant;

use crate::Clients;
use crate::observation::{Look, Observation, Observe, namespace};
use crate::polling::{self, Beat, Keys, Miss, persist};

mod answer;
#[cfg(test)]
mod tests;

/// How many times an attempt is repeated where that may help.
const RETRIES: usize = 2;

/// What was seen of a query.
type Seen = polling::Seen<api::Metric, Rule, Observed>;

impl Observe for api::Metric {
    fn known(&self, last: &Observation) -> Option<Evidence> {
        Seen::known(self, last)
    }

    fn observe<'a>(&'a self, look: Look<'a>) -> BoxFuture<'a, Observation> {
        async move {
            let (last, status) = (look.seen(), look.status().and_then(|it| it.metric.as_ref()));
            let last = last.as_ref();
            let seen = observe(look.object, self, look.clients, last, status, look.now).await;
            Seen::observation(seen)
        }
        .boxed()
    }
}

/// What is seen of the query of `spec` at `now`. What is not due yet is taken from `last`. `status` is
/// what was written about exactly this spec: after a restart it says what was seen before. None: the spec
/// is refused.
async fn observe(
    object: &Gatekeeper,
    spec: &api::Metric,
    clients: &Clients,
    last: Option<&Seen>,
    status: Option<&MetricStatus>,
    now: Timestamp,
) -> Option<Seen> {
    let last = last.filter(|last| last.is_about(spec));
    let rule = match last {
        Some(last) => Arc::clone(&last.rule),
        None => Arc::new(metric::read(spec, "spec.metric").ok()?),
    };
    let beat = Beat::new(rule.cadence, &object.uid().unwrap_or_default());
    if let Some(last) = last.filter(|last| !last.is_due(now, &beat)) {
        return Some(last.clone());
    }
    let (namespace, name) = (namespace(object), object.name_any());
    let asking = || ask(spec, &rule, clients, &namespace);
    let began = Instant::now();
    let attempt = persist(rule.cadence, RETRIES, asking).await;
    // To the second, as statuses have it.
    let took = i64::try_from(began.elapsed().as_secs()).unwrap_or(i64::MAX);
    let answered = now.saturating_add(SignedDuration::from_secs(took));
    if let Err(trouble) = &attempt {
        let why = trouble.why();
        if last.and_then(|last| last.observed.polled.error()) != Some(why) {
            tracing::warn!(namespace, name, why, "a metric cannot be read");
        }
    }
    let before = match (last, status) {
        (Some(last), _) => Some(last.observed.clone()),
        (None, Some(status)) => Observed::restored(status, &rule, now),
        (None, None) => None,
    };
    let failed = attempt.is_err();
    let mut observed = Observed::next(before, attempt, &rule, now);
    if observed.within_since == Some(now) {
        // A row is no longer than it is known to be, however long the first answer took.
        observed.within_since = Some(answered.unwrap_or(Timestamp::MAX));
    }
    let about = (spec, rule);
    Some(Seen::next(last, about, observed, failed, &beat, now))
}

async fn ask(
    spec: &api::Metric,
    rule: &Rule,
    clients: &Clients,
    namespace: &str,
) -> Result<Answer, Miss> {
    let (authorities, secret) = (spec.cert_secret_ref.as_ref(), spec.secret_ref.as_ref());
    let url = format!("{}/api/v1/query", spec.address.trim_end_matches('/'));
    let keys = Keys::read(clients, namespace, authorities, secret, &url).await?;
    let request = Request {
        namespace,
        schemes: Schemes::HttpToo,
        query: &[("query", spec.query.as_str())],
        authorities: keys.authorities.as_deref(),
        credentials: keys.credentials.as_ref(),
        time: Some(rule.cadence.timeout.unsigned_abs()),
        ..Request::to(&url)
    };
    let reply = clients.egress.ask(&request, answer::has_body).await;
    let reply = reply.map_err(|error| Miss::of(&url, &error))?;
    answer::read(&reply, &url, keys.credentials.is_some())
}
