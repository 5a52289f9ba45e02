//! The way out itself: each request gets a client, a turn, and a limit of time.

use std::sync::Arc;

use reqwest::Url;

use crate::address::Rules;
use crate::endpoints::Endpoints;
use crate::names::{Guard, Names, SystemNames};
use crate::outcome::{self, EgressError};
use crate::request::{Body, Reply, Request, Schemes};
use crate::trust;
use crate::turns::{Limits, Turns};

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
        let client = self.client(&url, request.authorities)?;
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

    /// Who asks for `url`, and trusts these authorities besides the public ones.
    pub(crate) fn client(
        &self,
        url: &Url,
        authorities: Option<&[u8]>,
    ) -> Result<reqwest::Client, EgressError> {
        match (url.scheme(), authorities) {
            ("https", None) => Ok(self.0.client.clone()),
            ("https", authorities) => client(&self.0.guard, authorities, Schemes::Https),
            _ => Ok(self.0.plain.clone()),
        }
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
    pub(crate) async fn check_literal(&self, url: &Url) -> Result<(), EgressError> {
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
