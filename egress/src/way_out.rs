//! The way out itself: each request gets a client, a turn, and a limit of time.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::Url;
use reqwest::header::HeaderMap;
use tokio::time::{Instant, timeout, timeout_at};
use tower::util::MapResponseLayer;

use crate::address::Rules;
use crate::endpoints::Endpoints;
use crate::names::{Guard, Names, SystemNames};
use crate::outcome::{self, EgressError};
use crate::request::{Body, Once, Reply, Request, Schemes, Sent, Sieve};
use crate::trust;
use crate::turns::{Lane, Limits, Pair, Turn, Turns};

/// After so many bytes of a body more is removed from it. Each time all that is kept is gone through.
const PORTION: usize = 256 << 10;

/// The way out. Clones share its limits.
#[derive(Clone)]
pub struct Egress(Arc<Inner>);

struct Inner {
    guard: Guard,
    limits: Limits,
    /// For requests that name no authorities of their own.
    client: reqwest::Client,
    /// For http, where that is allowed.
    plain: reqwest::Client,
    /// Of those whose replies are read at once.
    turns: Turns,
    /// Of those whose bodies wait to be read.
    waiting: Turns,
    /// Of those that are sent once.
    changes: Lane,
}

impl Egress {
    /// A way out under `rules`, with the usual limits and the system's look-up of names.
    ///
    /// # Errors
    /// [`EgressError::Setup`]: the TLS library refuses its own defaults.
    pub fn new(rules: Rules) -> Result<Self, EgressError> {
        Self::with(rules, Limits::default(), Arc::new(SystemNames))
    }

    /// The same in a cluster, whose API server reports where it listens.
    ///
    /// # Errors
    /// As [`Egress::new`].
    pub fn within(rules: Rules, endpoints: Endpoints) -> Result<Self, EgressError> {
        let (names, endpoints) = (Arc::new(SystemNames), Arc::new(endpoints));
        Self::guarded(Guard::new(rules, names, Some(endpoints)), Limits::default())
    }

    /// The same with other limits: the turns of what goes this way are its own.
    ///
    /// # Errors
    /// As [`Egress::new`].
    pub fn limited(
        rules: Rules,
        endpoints: Endpoints,
        limits: Limits,
    ) -> Result<Self, EgressError> {
        let (names, endpoints) = (Arc::new(SystemNames), Arc::new(endpoints));
        Self::guarded(Guard::new(rules, names, Some(endpoints)), limits)
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
            changes: Lane::new(limits.slow, limits),
        })))
    }

    /// The addresses of `host`, a name or an address, that the rules allow: at least one. For clients that
    /// connect by themselves, to exactly these addresses.
    ///
    /// # Errors
    /// It has no address, or the rules allow none of them.
    pub async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, EgressError> {
        match host.trim_matches(['[', ']']).parse() {
            Ok(address) => self.0.guard.check(address).await.map(|()| vec![address]),
            Err(_) => self.0.guard.allowed(host).await,
        }
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

    /// The reply to a request, with any status. The body is read only if `wants_body` is true for the
    /// status; otherwise it is empty.
    ///
    /// The wait for a turn, if too many others ask at once, does not count against the limit of time. If
    /// many are slow, the request may be sent twice.
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
        let time = self.time(request);
        let asking = async || {
            let asking = request.begin(&client, url.clone())?;
            within(time, self.fetch(asking, (&url, request.sieve), &wants_body)).await
        };
        let turns = match request.body_waits {
            true => &self.0.waiting,
            false => &self.0.turns,
        };
        let (fetched, turn) = turns.take(request.namespace, &url, asking).await;
        request.reply(fetched, turn)
    }

    /// Sends a request whose first byte reaches at most one connection. If that connection breaks, it is
    /// not known what the server has done, and the result says so. The body of the reply is read as by
    /// [`Egress::ask`].
    ///
    /// A caller that stops waiting before it ends has to treat the outcome as [`Sent::Unknown`].
    pub async fn send(
        &self,
        request: &Request<'_, Once<'_>>,
        wants_body: impl Fn(u16) -> bool,
    ) -> Sent {
        let connected = Arc::new(AtomicBool::new(false));
        match self.send_once(request, wants_body, &connected).await {
            Ok(reply) => Sent::Replied(reply),
            Err(error) => match connected.load(Ordering::SeqCst) {
                true => Sent::Unknown(error),
                false => Sent::NotSent(error),
            },
        }
    }

    /// Notes in `connected` that there is a connection, before anything of the request is written to it.
    async fn send_once(
        &self,
        request: &Request<'_, Once<'_>>,
        wants_body: impl Fn(u16) -> bool,
        connected: &Arc<AtomicBool>,
    ) -> Result<Reply, EgressError> {
        let url = request.url()?;
        let schemes = match url.scheme() {
            "https" => Schemes::Https,
            _ => Schemes::HttpToo,
        };
        let noting = Arc::clone(connected);
        let note = MapResponseLayer::new(move |connection| {
            noting.store(true, Ordering::SeqCst);
            connection
        });
        let client = builder(&self.0.guard, request.authorities, schemes)?;
        let client = client.connector_layer(note).build();
        let client = client.map_err(|_| EgressError::Setup)?;
        let asking = request.begin(&client, url.clone())?;

        let until = request.ask.until;
        let pair = Pair::new(request.namespace, &url);
        let turn = timeout_at(until, self.0.changes.turn(&pair)).await;
        let left = until.saturating_duration_since(Instant::now());
        let turn = turn.ok().filter(|_| !left.is_zero());
        let turn = turn.ok_or(EgressError::NoTurn)?;
        let time = self.time(request).min(left);
        let fetched = within(time, self.fetch(asking, (&url, request.sieve), wants_body)).await;
        request.reply(fetched, turn)
    }

    /// How long a request may take.
    fn time<A>(&self, request: &Request<'_, A>) -> Duration {
        let time = self.0.limits.time;
        request.time.map_or(time, |own| own.min(time))
    }

    /// The client for `url` that trusts these authorities in addition to the public ones.
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
        (url, sieve): (&Url, Option<Sieve<'_>>),
        wants_body: impl Fn(u16) -> bool,
    ) -> Result<Fetched, EgressError> {
        let outcome = |error: reqwest::Error| outcome::of(&error);
        self.check_literal(url).await?;
        let mut response = asking.send().await.map_err(outcome)?;
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        let (body, is_cut) = match (wants_body(status), sieve) {
            (false, _) => (Vec::new(), false),
            (true, None) => (whole(response, self.0.limits.body).await?, false),
            (true, Some(sieve)) => sifted(response, sieve, self.0.limits.body).await?,
        };
        Ok(Fetched {
            status,
            headers,
            body,
            is_cut,
        })
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

/// What has come of a reply.
struct Fetched {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
    is_cut: bool,
}

impl<A> Request<'_, A> {
    fn reply(
        &self,
        fetched: Result<Fetched, EgressError>,
        turn: Turn,
    ) -> Result<Reply, EgressError> {
        let fetched = fetched.map_err(|error| match self.authorities {
            Some(_) => error.with_authorities(),
            None => error,
        })?;
        let Fetched {
            status,
            headers,
            body,
            is_cut,
        } = fetched;
        Ok(Reply {
            status,
            headers,
            body: Body::new(body, turn),
            is_cut,
        })
    }
}

/// The result of `asking`, if it ends within `time`.
pub(crate) async fn within<T>(
    time: Duration,
    asking: impl Future<Output = Result<T, EgressError>>,
) -> Result<T, EgressError> {
    let asked = timeout(time, asking).await;
    asked.unwrap_or(Err(EgressError::TimedOut(time)))
}

/// A body of at most `most` bytes.
async fn whole(mut response: reqwest::Response, most: usize) -> Result<Vec<u8>, EgressError> {
    let told = response.content_length();
    if told.is_some_and(|told| told > most as u64) {
        return Err(EgressError::TooLong(most));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| outcome::of(&error))?
    {
        if body.len() + chunk.len() > most {
            return Err(EgressError::TooLong(most));
        }
        make_room(&mut body, chunk.len(), most);
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// What a sieve keeps of a body, of at most `most` bytes, and whether the body was cut.
async fn sifted(
    mut response: reqwest::Response,
    sieve: Sieve<'_>,
    most: usize,
) -> Result<(Vec<u8>, bool), EgressError> {
    let until = Instant::now() + sieve.time;
    let (mut read, mut fresh): (usize, usize) = (0, 0);
    let (mut body, mut is_cut) = (Vec::new(), false);
    loop {
        let chunk = match timeout_at(until, response.chunk()).await {
            Ok(chunk) => chunk.map_err(|error| outcome::of(&error))?,
            Err(_) => {
                is_cut = true;
                None
            }
        };
        let chunk = chunk.filter(|chunk| {
            read = read.saturating_add(chunk.len());
            is_cut |= read > sieve.most;
            !is_cut
        });
        if let Some(chunk) = &chunk {
            make_room(&mut body, chunk.len(), sieve.most);
            body.extend_from_slice(chunk);
            fresh = fresh.saturating_add(chunk.len());
        }
        if chunk.is_none() || fresh >= PORTION {
            (sieve.keep)(&mut body);
            fresh = 0;
            if body.len() > most {
                return Err(EgressError::TooLong(most));
            }
        }
        if chunk.is_none() {
            return Ok((body, is_cut));
        }
    }
}

/// Makes room for `more` bytes in a body of at most `most`: by doubling it, and never beyond that.
fn make_room(body: &mut Vec<u8>, more: usize, most: usize) {
    let wanted = body.len() + more;
    if body.capacity() < wanted {
        let room = (2 * body.capacity()).min(most).max(wanted);
        body.reserve_exact(room - body.len());
    }
}

fn client(
    guard: &Guard,
    authorities: Option<&[u8]>,
    schemes: Schemes,
) -> Result<reqwest::Client, EgressError> {
    let client = builder(guard, authorities, schemes)?.build();
    client.map_err(|_| EgressError::Setup)
}

/// A client that keeps no connection. Callers that read once a minute or less have no use for one; and if
/// a request is written to a kept connection that the server closes at that moment, it may have to be
/// sent again.
fn builder(
    guard: &Guard,
    authorities: Option<&[u8]>,
    schemes: Schemes,
) -> Result<reqwest::ClientBuilder, EgressError> {
    let builder = reqwest::Client::builder()
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
        .pool_max_idle_per_host(0);
    Ok(builder)
}
