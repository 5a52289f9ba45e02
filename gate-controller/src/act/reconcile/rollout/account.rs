//! Requests in the name of the ServiceAccount of a Rollout.
//!
//! The controller itself has no right to change a workload. It has the right to act as an account with one of
//! the names that its chart lists, and that account may what a RoleBinding of its namespace says.

use std::sync::Arc;

use http::HeaderValue;
use http::header::HeaderName;
use kube::core::request;
use serde::de::DeserializeOwned;
use sluice_core::delivery::rollout;
use sluice_core::time::clock::Now;
use sluice_crds::Rollout;

use crate::act::reconcile::{Context, Outcome, consumer};
use crate::cluster::failure;
use crate::cluster::key::ObjectKey;
use crate::tell::counters::KindLabels;

/// Says whose rights a request has.
const IMPERSONATE: HeaderName = HeaderName::from_static("impersonate-user");

/// The account that acts for a Rollout.
pub(super) struct Account<'a> {
    context: &'a Context,
    namespace: &'a str,
    name: &'a str,
}

impl<'a> Account<'a> {
    /// That of a Rollout.
    pub(super) fn of(context: &'a Context, key: &'a ObjectKey, object: &'a Rollout) -> Self {
        Self {
            context,
            namespace: &key.namespace,
            name: &object.spec.service_account_name,
        }
    }

    /// Asks the API server for something.
    ///
    /// # Errors
    /// It was refused, or not answered.
    pub(super) async fn ask<A: DeserializeOwned>(
        &self,
        request: Result<http::Request<Vec<u8>>, request::Error>,
    ) -> Result<A, kube::Error> {
        let mut request = request.map_err(kube::Error::BuildRequest)?;
        let Self {
            namespace, name, ..
        } = self;
        let user = HeaderValue::try_from(format!("system:serviceaccount:{namespace}:{name}"));
        let user = user.map_err(|error| kube::Error::Service(error.into()))?;
        request.headers_mut().insert(IMPERSONATE, user);
        let answer = self.context.client.request(request).await;
        answer.map_err(|error| self.explained(error))
    }

    /// A refusal for lack of a right, behind what an admin has to do: a message is cut at its end.
    fn explained(&self, error: kube::Error) -> kube::Error {
        let kube::Error::Api(mut status) = error else {
            return error;
        };
        // Webhooks of others refuse by this code, too.
        let lacks_a_right = [" cannot ", " resource "];
        if status.code == 403 && lacks_a_right.iter().all(|it| status.message.contains(it)) {
            let Self {
                namespace, name, ..
            } = self;
            let remedy = match status.message.contains("impersonate") {
                true => format!("the chart has to list `{name}` in rollouts.serviceAccountNames"),
                false => format!(
                    "an admin may run `kubectl create serviceaccount {name} -n {namespace}` and \
                     `kubectl create rolebinding {name} -n {namespace} --clusterrole=sluice-rollout \
                     --serviceaccount={namespace}:{name}`"
                ),
            };
            status.message = format!("{remedy}; the API server says: {}", status.message);
        }
        kube::Error::Api(status)
    }

    /// Sends a change of an object of that kind, while this replica leads, and counts it.
    ///
    /// # Errors
    /// It was refused, or not answered.
    pub(super) async fn send<A: DeserializeOwned>(
        &self,
        kind: &'static str,
        request: Result<http::Request<Vec<u8>>, request::Error>,
    ) -> Result<A, kube::Error> {
        if self.context.leadership.left().is_none() {
            let why = "this replica does not lead any more";
            return Err(kube::Error::Service(why.into()));
        }
        let answer = self.ask(request).await?;
        let writes = &self.context.counters.writes;
        writes.get_or_create(&KindLabels { kind }).inc();
        Ok(answer)
    }
}

/// Something that could not be read.
pub(super) struct Unread {
    /// What, in words.
    pub(super) what: String,
    /// Why.
    pub(super) error: kube::Error,
}

/// The status says what may not be read, and nothing is decided: the run is held. What is only not answered is tried
/// again.
///
/// # Errors
/// The API server did not answer, or does not take the status.
pub(super) async fn refused(
    context: &Context,
    key: &ObjectKey,
    object: &Arc<Rollout>,
    Unread { what, error }: Unread,
    now: Now,
) -> Result<Outcome, kube::Error> {
    let kube::Error::Api(status) = &error else {
        return Err(error);
    };
    if !failure::is_refusal(&error) {
        return Err(error);
    }
    let message = format!("the {what} cannot be read: {}", status.message);
    if let Some(status) = rollout::unread(object.as_ref(), &message, now) {
        consumer::write(context, key, object.as_ref(), status).await?;
    }
    tracing::debug!(rollout = %key, "{message}");
    let error = Box::new(error);
    Ok(Outcome::Unfinished { error, wake: None })
}
