//! The one way out of the cluster, for everything that evidence is read from elsewhere.
//!
//! What comes in: a [`Request`]. What goes out: the status and the body of the reply, or an
//! [`EgressError`] that tells the outcome and never the reply.
//!
//! Addresses are https. Whose rule allows it may ask over http, but never with a secret.
//!
//! Anybody who may write a Gatekeeper may name an address, and the controller connects to it from where
//! it stands: to private addresses too, because Prometheus is at one. So they learn of any server in
//! its reach whether it answers, with which status, and what an expression says of the body. What is
//! never connected to is in the [`address`] rules, checked on the addresses that are connected to,
//! after the name was resolved; an operator who wants to name all that may be asked does so there
//! ([`Rules::only`]), or by a NetworkPolicy. Redirects are not followed, and no proxy is
//! taken from the environment: it would resolve names itself, behind the back of the rules.
//! The authorities are Mozilla's, compiled in: an image without a single file works, and all
//! replicas trust the same ones.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;

pub mod address;
mod destination;
mod download;
mod endpoints;
mod names;
mod outcome;
mod request;
#[cfg(test)]
pub(crate) mod test_server;
#[cfg(test)]
mod tests;
mod trust;
mod turns;

pub use address::{Class, Rules};
pub use destination::Destination;
pub use download::{Bounds, Download};
pub use endpoints::Endpoints;
pub use names::{Names, SystemNames};
pub use outcome::{EgressError, of as outcome};
pub use request::{Body, Credentials, Reply, Request, Schemes};
pub use trust::config as tls;

use names::Guard;
use turns::Turns;

/// What one request may take, and how many there may be whose replies are read at once. Those whose
/// bodies wait to be read are a third as many more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the first look-up of the name to the last byte of the body.
    pub time: Duration,
    /// The length of the body, in bytes.
    pub body: usize,
    /// Requests at once that have not shown to be slow.
    pub in_flight: usize,
    /// Slow requests at once.
    pub slow: usize,
    /// Of each of both, requests at once for one namespace.
    pub per_namespace: usize,
    /// Of those, requests at once to one host.
    pub per_host: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(10),
            body: 1 << 20,
            // As many bodies may be in memory, and a third as many more.
            in_flight: 18,
            slow: 12,
            per_namespace: 6,
            per_host: 4,
        }
    }
}

impl Limits {
    /// For those whose bodies wait to be read.
    fn of_waiting_bodies(self) -> Self {
        Self {
            in_flight: self.in_flight.div_ceil(3),
            slow: self.slow.div_ceil(3),
            per_namespace: self.per_namespace.div_ceil(3),
            per_host: self.per_host.div_ceil(3),
            ..self
        }
    }
}

/// The way out. Clones share its limits.
#[derive(Clone)]
pub struct Egress(Arc<Inner>);

struct Inner {
    guard: Guard,
    limits: Limits,
    /// For whoever names no authorities of their own.
    client: reqwest::Client,
    /// For http, where that is allowed.
    plain: reqwest::Client,
    /// Of those whose replies are read at once.
    turns: Turns,
    /// Of those whose bodies wait to be read.
    waiting: Turns,
}

impl Egress {
    /// A way out under `rules`, with the usual limits and the system's look-up of names.
    ///
    /// # Errors
    /// [`EgressError::Setup`]: the TLS library refuses its own defaults.
    pub fn new(rules: Rules) -> Result<Self, EgressError> {
        Self::with(rules, Limits::default(), Arc::new(SystemNames))
    }

    /// The same in a cluster, whose API server tells where it listens.
    ///
    /// # Errors
    /// As [`Egress::new`].
    pub fn within(rules: Rules, endpoints: Endpoints) -> Result<Self, EgressError> {
        let (names, endpoints) = (Arc::new(SystemNames), Arc::new(endpoints));
        Self::guarded(Guard::new(rules, names, Some(endpoints)), Limits::default())
    }

    /// A way out with other limits and another look-up of names.
    ///
    /// # Errors
    /// As [`Egress::new`].
    pub fn with(rules: Rules, limits: Limits, names: Arc<dyn Names>) -> Result<Self, EgressError> {
        Self::guarded(Guard::new(rules, names, None), limits)
    }

    fn guarded(guard: Guard, limits: Limits) -> Result<Self, EgressError> {
        let plain = client(&guard, None, Schemes::HttpToo)?;
        let client = client(&guard, None, Schemes::Https)?;
        Ok(Self(Arc::new(Inner {
            guard,
            limits,
            client,
            plain,
            turns: Turns::new(limits),
            waiting: Turns::new(limits.of_waiting_bodies()),
        })))
    }

    /// The body of the reply to a request.
    ///
    /// # Errors
    /// Anything but a reply with status 200, in time and not too long, from an address that the
    /// rules allow.
    pub async fn get(&self, request: &Request<'_>) -> Result<Body, EgressError> {
        let reply = self.ask(request, |status| status == 200).await?;
        match reply.status {
            200 => Ok(reply.body),
            status => Err(EgressError::Status(status)),
        }
    }

    /// The reply to a request, whatever its status. The body is read of replies with a status that
    /// `wants_body`; else it is empty.
    ///
    /// The wait for a turn, where too many others ask at once, does not count against the limit
    /// of time. Where many are slow, it may be asked twice.
    ///
    /// # Errors
    /// Anything but a reply in time and not too long, from an address that the rules allow.
    pub async fn ask(
        &self,
        request: &Request<'_>,
        wants_body: impl Fn(u16) -> bool,
    ) -> Result<Reply, EgressError> {
        let url = request.url()?;
        let client = match (url.scheme(), request.authorities) {
            ("https", None) => self.0.client.clone(),
            ("https", authorities) => client(&self.0.guard, authorities, Schemes::Https)?,
            _ => self.0.plain.clone(),
        };
        let time = self.0.limits.time;
        let time = request.time.map_or(time, |own| own.min(time));
        let asking = async || {
            let asking = request.signed(client.get(url.clone()));
            let fetched = tokio::time::timeout(time, self.fetch(asking, &url, &wants_body)).await;
            fetched.unwrap_or(Err(EgressError::TimedOut(time)))
        };
        let turns = match request.body_waits {
            true => &self.0.waiting,
            false => &self.0.turns,
        };
        let (fetched, turn) = turns.take(request.namespace, &url, asking).await;
        let (status, bytes) = fetched.map_err(|error| match request.authorities {
            Some(_) => error.with_authorities(),
            None => error,
        })?;
        let body = Body::new(bytes, turn);
        Ok(Reply { status, body })
    }

    async fn fetch(
        &self,
        asking: reqwest::RequestBuilder,
        url: &Url,
        wants_body: impl Fn(u16) -> bool,
    ) -> Result<(u16, Vec<u8>), EgressError> {
        let most = self.0.limits.body;
        let outcome = |error: reqwest::Error| outcome::of(&error);
        self.check_literal(url).await?;
        let mut response = asking.send().await.map_err(outcome)?;
        let status = response.status().as_u16();
        let mut body = Vec::new();
        if !wants_body(status) {
            return Ok((status, body));
        }
        if response
            .content_length()
            .is_some_and(|told| told > most as u64)
        {
            return Err(EgressError::TooLong(most));
        }
        while let Some(chunk) = response.chunk().await.map_err(outcome)? {
            if body.len() + chunk.len() > most {
                return Err(EgressError::TooLong(most));
            }
            make_room(&mut body, chunk.len(), most);
            body.extend_from_slice(&chunk);
        }
        Ok((status, body))
    }

    /// A literal address is connected to without a look-up, and so without the guard.
    async fn check_literal(&self, url: &Url) -> Result<(), EgressError> {
        let host = url.host_str().map(|host| host.trim_matches(['[', ']']));
        match host.map(str::parse) {
            Some(Ok(address)) => self.0.guard.check(address).await,
            Some(Err(_)) | None => Ok(()),
        }
    }
}

/// Room for `more` bytes in a body of `most` at the end: by doubling it, and never beyond that.
fn make_room(body: &mut Vec<u8>, more: usize, most: usize) {
    let wanted = body.len() + more;
    if body.capacity() < wanted {
        let room = (2 * body.capacity()).min(most).max(wanted);
        body.reserve_exact(room - body.len());
    }
}

/// What a message may say of an address: its host. The rest may be as good as a password.
pub fn shown(url: &str) -> String {
    match Url::parse(url) {
        Ok(url) => format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default()),
        Err(_) => "the address".to_owned(),
    }
}

/// A client that keeps no connection: whoever reads once a minute or less has no use for it.
fn client(
    guard: &Guard,
    authorities: Option<&[u8]>,
    schemes: Schemes,
) -> Result<reqwest::Client, EgressError> {
    reqwest::Client::builder()
        .user_agent(concat!(
            "sluice-gate-controller/",
            env!("CARGO_PKG_VERSION")
        ))
        .tls_backend_preconfigured(trust::config(authorities)?)
        .https_only(schemes == Schemes::Https)
        .http1_only()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .no_proxy()
        .dns_resolver(guard.clone())
        .pool_max_idle_per_host(0)
        .build()
        .map_err(|_| EgressError::Setup)
}
