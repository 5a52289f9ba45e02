//! Requests to the API of a forge, and what their replies mean where all forges agree.
//!
//! What comes in: a repository's address, a token, paths below the repository, as its API or Git knows it.
//! Each request waits for its turn. What goes out: replies, also as values, or a [`ForgeError`]. Only the rooms
//! `address` and `outcome` are used. Whatever changes something is sent once.

use serde::de::DeserializeOwned;
use serde_json::Value;
use sluice_egress::secrets::Token;
use sluice_egress::{
    Content, Credentials, Egress, Method, Once, Repeatable, Reply, Request, Sent, Sieve,
};
use tokio::time::{Instant, timeout_at};

use crate::address::Address;
use crate::outcome::{Act, ForgeError, Missing, Trouble, Undone, Wait, Words};

pub use ended::{Ended, Heard, Protocol, Told};
pub use pace::{Pace, Pacing, Urgency};
pub(crate) use pages::{MOST_STATUSES, Page, Paging};
use said::wait;
pub(crate) use said::{said, says};

mod ended;
mod pace;
mod pages;
mod said;

/// The most characters of a forge's words that a message quotes.
const LONGEST_WORDS: usize = 200;

/// How a forge is reached.
#[derive(Clone)]
pub struct Way {
    /// The way out.
    pub egress: Egress,
    /// Certificates in PEM, trusted in addition to the public authorities.
    pub authorities: Option<Vec<u8>>,
    /// The namespace that the requests are made for.
    pub namespace: String,
    /// Who hears how each request has ended.
    pub told: Option<Told>,
    /// How fast.
    pub pacing: Pacing,
}

/// How a forge is reached, and who asks.
#[derive(Clone)]
pub struct Access {
    /// The way to it.
    pub way: Way,
    /// Who asks: a bearer token for the API of all forges here, for Git a password or a bearer token.
    pub token: Token,
}

/// What all requests for one repository have in common.
#[derive(Clone)]
pub(crate) struct Api {
    way: Way,
    credentials: Credentials,
    pub(crate) address: Address,
    /// The repository: paths are below it.
    root: String,
    headers: &'static [(&'static str, &'static str)],
    paging: Paging,
    protocol: Protocol,
}

/// One operation on it, which all messages name.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    api: &'a Api,
    operation: &'static str,
}

/// The body of a request.
#[derive(Clone, Copy)]
pub(crate) enum Sending<'a> {
    Nothing,
    Json(&'a Value),
    Other(Content<'a>),
}

impl<'a> From<&'a Value> for Sending<'a> {
    fn from(json: &'a Value) -> Self {
        Self::Json(json)
    }
}

impl Api {
    /// The API of its forge.
    pub(crate) fn new(
        access: Access,
        address: Address,
        headers: &'static [(&'static str, &'static str)],
        paging: Paging,
    ) -> Self {
        Self {
            credentials: access.token.bearer().clone(),
            way: access.way,
            root: format!("{}{}", address.api(), address.repository()),
            address,
            headers,
            paging,
            protocol: Protocol::Api,
        }
    }

    /// The same by Git's own protocol, which forges do not count.
    pub(crate) fn by_git(self) -> Self {
        Self {
            protocol: Protocol::Git,
            ..self
        }
    }

    /// The same with another place that paths are below.
    pub(crate) fn at(self, root: String) -> Self {
        Self { root, ..self }
    }

    /// The same with other credentials.
    pub(crate) fn by(self, credentials: Credentials) -> Self {
        Self {
            credentials,
            ..self
        }
    }

    pub(crate) fn call(&self, operation: &'static str) -> Call<'_> {
        Call {
            api: self,
            operation,
        }
    }
}

/// What a request that changes something asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// To wait for its turn.
    Turn,
    /// To be sent, now that it is its turn.
    Sending,
}

/// Asked by a request that changes something, before each of both: until when it may be sent. None: it may not be
/// sent any more.
pub type May<'a> = &'a (dyn Fn(Wants) -> Option<Instant> + Send + Sync);

impl Call<'_> {
    /// Until when a change may be sent, as it is now.
    fn until(&self, may: May<'_>, wants: Wants) -> Result<Instant, Undone> {
        may(wants).ok_or_else(|| Undone::NotDone(self.error(Trouble::Overtaken)))
    }

    /// The reply to a GET of a path below the repository.
    pub(crate) async fn ask(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Reply, ForgeError> {
        self.question(Repeatable::Get, path, query).await
    }

    /// The reply to a GET, or to a POST that only reads, of a path below the repository.
    pub(crate) async fn question(
        &self,
        ask: Repeatable<'_>,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Reply, ForgeError> {
        self.sifted(ask, path, query, None).await
    }

    /// The same, of which not everything may be kept.
    pub(crate) async fn sifted(
        &self,
        ask: Repeatable<'_>,
        path: &str,
        query: &[(&str, &str)],
        sieve: Option<Sieve<'_>>,
    ) -> Result<Reply, ForgeError> {
        let url = format!("{}{path}", self.api.root);
        let request = self.with_access(Request {
            ask,
            query,
            sieve,
            ..Request::to(&url)
        });
        let turn = self.api.way.pacing.question(self.counts()).await;
        let _turn = turn.map_err(|trouble| self.error(trouble))?;
        let asked = self.api.way.egress.ask(&request, |_| true).await;
        self.hear(asked.as_ref().ok());
        asked.map_err(|error| self.error(Trouble::Unanswered(error)))
    }

    /// What is at a path. None: 404, although the repository can be seen.
    pub(crate) async fn find<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Option<T>, ForgeError> {
        let reply = self.ask(path, query).await?;
        match reply.status {
            404 => self.sees_repository().await.map(|()| None),
            _ => self.read(&reply).map(Some),
        }
    }

    /// What is at a path.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        missing: Missing,
    ) -> Result<T, ForgeError> {
        let found = self.find(path, query).await?;
        found.ok_or_else(|| self.error(Trouble::Absent(missing)))
    }

    /// Sends a change to a path below the repository, once, and not after `until`.
    pub(crate) async fn send<'s>(
        &self,
        method: Method,
        path: &str,
        sending: impl Into<Sending<'s>>,
        until: Instant,
    ) -> Act<Reply> {
        let url = format!("{}{path}", self.api.root);
        self.send_to(method, &url, sending.into(), until).await
    }

    /// The same while `may` says so, which is asked when it is its turn.
    pub(crate) async fn send_while<'s>(
        &self,
        method: Method,
        path: &str,
        sending: impl Into<Sending<'s>>,
        may: May<'_>,
    ) -> Act<Reply> {
        let turn = self.turn_while(may).await?;
        self.send_in(&turn, method, path, sending, may).await
    }

    /// Waits for the turn of a change while `may` says so. What has to be asked before the change is asked in its
    /// turn: while others are before it, it would be asked for nothing.
    pub(crate) async fn turn_while(&self, may: May<'_>) -> Act<pace::Change<'_>> {
        self.turn(self.until(may, Wants::Turn)?).await
    }

    /// Sends a change whose turn it is, if `may` still says so.
    pub(crate) async fn send_in<'s>(
        &self,
        _turn: &pace::Change<'_>,
        method: Method,
        path: &str,
        sending: impl Into<Sending<'s>>,
        may: May<'_>,
    ) -> Act<Reply> {
        let url = format!("{}{path}", self.api.root);
        let until = self.until(may, Wants::Sending)?;
        self.send_now(method, &url, sending.into(), until).await
    }

    /// Sends a change to an address of the forge.
    pub(crate) async fn send_to(
        &self,
        method: Method,
        url: &str,
        sending: Sending<'_>,
        until: Instant,
    ) -> Act<Reply> {
        let _turn = self.turn(until).await?;
        self.send_now(method, url, sending, until).await
    }

    /// Waits until a change may be sent, until this instant.
    async fn turn(&self, until: Instant) -> Act<pace::Change<'_>> {
        let not_sent = |trouble| Undone::NotDone(self.error(trouble));
        let turn = self.api.way.pacing.change(self.counts());
        match timeout_at(until, turn).await {
            Ok(turn) => turn.map_err(not_sent),
            Err(_) => Err(not_sent(Trouble::Overtaken)),
        }
    }

    /// Whether the forge counts it.
    fn counts(&self) -> bool {
        self.api.protocol == Protocol::Api
    }

    async fn send_now(
        &self,
        method: Method,
        url: &str,
        sending: Sending<'_>,
        until: Instant,
    ) -> Act<Reply> {
        let json = match sending {
            Sending::Json(value) => value.to_string().into_bytes(),
            Sending::Nothing | Sending::Other(_) => Vec::new(),
        };
        let content = match sending {
            Sending::Nothing => None,
            Sending::Json(_) => Some(Content {
                media_type: "application/json",
                body: &json,
            }),
            Sending::Other(content) => Some(content),
        };
        let once = Once {
            method,
            content,
            until,
        };
        let request = self.with_access(Request::once(once, url));
        let error = |error| self.error(Trouble::Unanswered(error));
        let sent = self.api.way.egress.send(&request, |_| true).await;
        self.hear(match &sent {
            Sent::Replied(reply) => Some(reply),
            Sent::NotSent(_) | Sent::Unknown(_) => None,
        });
        match sent {
            Sent::Replied(reply) => Ok(reply),
            Sent::NotSent(why) => Err(Undone::NotDone(error(why))),
            Sent::Unknown(why) => Err(Undone::Unknown(error(why))),
        }
    }

    /// A request with what every request to this API has.
    fn with_access<'r, A>(&'r self, request: Request<'r, A>) -> Request<'r, A> {
        let Api {
            way,
            credentials,
            headers,
            ..
        } = self.api;
        Request {
            namespace: &way.namespace,
            headers,
            authorities: way.authorities.as_deref(),
            credentials: Some(credentials),
            ..request
        }
    }

    /// Takes in how a request has ended.
    fn hear(&self, reply: Option<&Reply>) {
        let Api { way, address, .. } = self.api;
        if let Some(reply) = reply {
            way.pacing.pace.note(reply, self.counts());
        }
        if let Some(told) = &way.told {
            told(address.host(), Heard::of(self.api.protocol, reply));
        }
    }

    /// The value of a reply with a status of success.
    pub(crate) fn read<T: DeserializeOwned>(&self, reply: &Reply) -> Result<T, ForgeError> {
        if !is_success(reply) {
            return Err(self.error(self.trouble(reply)));
        }
        let mut text = serde_json::Deserializer::from_slice(&reply.body);
        let read = serde_path_to_error::deserialize(&mut text);
        read.map_err(|error| self.error(Trouble::NotUnderstood(error.path().to_string())))
    }

    /// The value of a reply to a change.
    pub(crate) fn made<T: DeserializeOwned>(&self, reply: &Reply) -> Act<T> {
        self.read(reply).map_err(Undone::after)
    }

    /// A change whose reply says nothing but that it was made.
    pub(crate) fn done(&self, reply: &Reply) -> Act<()> {
        match is_success(reply) {
            true => Ok(()),
            false => Err(Undone::after(self.error(self.trouble(reply)))),
        }
    }

    /// What went wrong with the act for which `trouble` was found.
    pub(crate) fn undone<T>(&self, trouble: Trouble) -> Act<T> {
        Err(Undone::after(self.error(trouble)))
    }

    pub(crate) fn error(&self, trouble: Trouble) -> ForgeError {
        ForgeError {
            host: self.api.address.host().to_owned(),
            operation: self.operation,
            trouble,
        }
    }

    /// Whether the token sees the repository at all: forges say 404 for what may not be seen, too.
    ///
    /// # Errors
    /// It does not.
    pub(crate) async fn sees_repository(&self) -> Result<(), ForgeError> {
        let reply = self.ask("", &[]).await?;
        match reply.status {
            404 => Err(self.error(Trouble::NoRepository)),
            _ if is_success(&reply) => Ok(()),
            _ => Err(self.error(self.trouble(&reply))),
        }
    }

    /// What follows from a 404 to a change, if the repository itself can be seen: `otherwise`.
    pub(crate) async fn after_404(&self, otherwise: Trouble) -> Undone {
        match self.sees_repository().await {
            Ok(()) => Undone::after(self.error(otherwise)),
            Err(error) => Undone::from(error),
        }
    }

    /// What a reply without success means for every forge.
    pub(crate) fn trouble(&self, reply: &Reply) -> Trouble {
        let words = || self.words(reply);
        match (reply.status, wait(reply)) {
            (403 | 429, Some(wait)) => Trouble::RateLimited(wait),
            (301 | 307 | 308, _) => Trouble::Moved,
            (401, _) => Trouble::Unauthorized,
            (403, None) => Trouble::NoRight(words()),
            (423, _) => Trouble::Archived,
            (429, None) => Trouble::RateLimited(Wait::Unsaid),
            (status @ 500..=599, _) => Trouble::Failed(status),
            (status, _) => Trouble::Refused(status, words()),
        }
    }

    /// What the forge says, if it may be shown.
    pub(crate) fn words(&self, reply: &Reply) -> Words {
        said(&reply.body).map_or(Words::NONE, |said| self.quoted(&said))
    }

    /// A text of the forge, if it may be shown: neither the token nor the path of the repository is in it.
    pub(crate) fn quoted(&self, text: &str) -> Words {
        let Api {
            credentials,
            address,
            ..
        } = self.api;
        let path = format!("{}/{}", address.owner(), address.name());
        let hidden = credentials.is_in(text) || text.to_lowercase().contains(&path.to_lowercase());
        let shown = (!hidden && !text.trim().is_empty()).then(|| {
            let short: String = text.chars().take(LONGEST_WORDS).collect();
            short.escape_debug().to_string()
        });
        Words(shown)
    }
}

pub(crate) fn is_success(reply: &Reply) -> bool {
    matches!(reply.status, 200..=299)
}
