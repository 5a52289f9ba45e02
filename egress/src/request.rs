//! What is asked for, of whom, and with what secret; and what comes back.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Url};
use tokio::time::Instant;

use crate::outcome::EgressError;
use crate::turns::Turn;

/// Headers that only the way out itself sends.
const RESERVED: [&str; 8] = [
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "proxy-authorization",
    "transfer-encoding",
];

/// A request. Its type says whether the server may see it twice: [`Repeatable`] or [`Once`].
#[derive(Clone, Copy)]
pub struct Request<'a, A = Repeatable<'a>> {
    /// What is asked for.
    pub ask: A,
    /// The address.
    pub url: &'a str,
    /// The namespace that the request is made for: each has a share of the requests at once.
    pub namespace: &'a str,
    /// Which schemes the address may have.
    pub schemes: Schemes,
    /// Names and values, added to the query of the address.
    pub query: &'a [(&'a str, &'a str)],
    /// Names and values of further headers, such as `if-none-match` for a conditional GET, whose
    /// reply has the status 304 where nothing has changed. None may hold a secret.
    pub headers: &'a [(&'a str, &'a str)],
    /// Certificates in PEM, trusted in addition to the public authorities.
    pub authorities: Option<&'a [u8]>,
    /// Who asks. Sent over https only.
    pub credentials: Option<&'a Credentials>,
    /// The longest that it may take, if that is less than the general limit.
    pub time: Option<Duration>,
    /// Whether the body of the reply waits to be read, because only a few of them are read at once. Then
    /// it takes a turn of its own kind, so that it takes none from requests whose replies are read at
    /// once.
    pub body_waits: bool,
    /// What is kept of a body that is longer than it has to be. None: all of it.
    pub sieve: Option<Sieve<'a>>,
}

/// Keeps a part of a body while it comes. What is kept has the general limit. A body that goes on beyond the limits
/// here is cut, and what has come of it is the reply ([`Reply::is_cut`]).
#[derive(Clone, Copy)]
pub struct Sieve<'a> {
    /// The most bytes of the whole body that are read.
    pub most: usize,
    /// For how long it is read.
    pub time: Duration,
    /// Removes from what has come what is not needed. It is called again when much more has come, and at the end.
    pub keep: &'a (dyn Fn(&mut Vec<u8>) + Send + Sync),
}

/// What changes nothing, and so may be sent again: if many are slow, a request is given up after a moment
/// and starts again later.
#[derive(Clone, Copy)]
pub enum Repeatable<'a> {
    /// A GET.
    Get,
    /// A POST that only reads, such as for the branches of a Git repository.
    Query(Content<'a>),
}

/// What changes something on the server, and is never sent a second time.
#[derive(Clone, Copy)]
pub struct Once<'a> {
    /// The method.
    pub method: Method,
    /// The body, if there is one.
    pub content: Option<Content<'a>>,
    /// Nothing is sent after this instant, and neither a reply nor a turn is waited for.
    pub until: Instant,
}

/// A method that changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are named as HTTP names them")]
pub enum Method {
    Post,
    Put,
    Patch,
    Delete,
}

/// The body of a request.
#[derive(Clone, Copy)]
pub struct Content<'a> {
    /// Its media type, such as `application/json`.
    pub media_type: &'a str,
    /// The bytes.
    pub body: &'a [u8],
}

/// The outcome of a request that is sent once.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Sent {
    /// The server has answered, with any status: also with a redirect, which is not followed.
    Replied(Reply),
    /// The server has seen nothing of it. It may be sent again.
    NotSent(EgressError),
    /// It is not known whether the server has done it, or will still do it. Look at what it has before
    /// sending anything again.
    Unknown(EgressError),
}

/// The schemes that are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schemes {
    /// https.
    Https,
    /// https, or http where no secret is sent.
    HttpToo,
}

/// A reply.
#[derive(PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    pub(crate) headers: HeaderMap,
    /// The body, as far as it was wanted.
    pub body: Body,
    /// Whether the body went on beyond the limits of a [`Sieve`]. Otherwise it is whole.
    pub is_cut: bool,
}

/// The body of a reply. It keeps the turn of its request: while bodies wait to be read, no more requests
/// are made than there is room for.
#[derive(Default)]
pub struct Body {
    bytes: Vec<u8>,
    _turn: Option<Turn>,
}

/// Who asks. Never shown.
#[derive(Clone)]
pub struct Credentials(Secret);

#[derive(Clone)]
enum Secret {
    Bearer(HeaderValue),
    Basic { username: String, password: String },
}

impl<'a> Request<'a> {
    /// A GET of `url` over https, without credentials.
    pub fn to(url: &'a str) -> Self {
        Request::asking(Repeatable::Get, url)
    }

    /// The request, as `client` sends it.
    pub(crate) fn begin(
        &self,
        client: &reqwest::Client,
        url: Url,
    ) -> Result<RequestBuilder, EgressError> {
        match self.ask {
            Repeatable::Get => self.complete(client.get(url), None),
            Repeatable::Query(content) => self.complete(client.post(url), Some(content)),
        }
    }
}

impl<'a> Request<'a, Once<'a>> {
    /// A change at `url` over https, without credentials.
    pub fn once(once: Once<'a>, url: &'a str) -> Self {
        Request::asking(once, url)
    }

    /// The request, as `client` sends it.
    pub(crate) fn begin(
        &self,
        client: &reqwest::Client,
        url: Url,
    ) -> Result<RequestBuilder, EgressError> {
        let asking = match self.ask.method {
            Method::Post => client.post(url),
            Method::Put => client.put(url),
            Method::Patch => client.patch(url),
            Method::Delete => client.delete(url),
        };
        self.complete(asking, self.ask.content)
    }
}

impl<'a, A> Request<'a, A> {
    fn asking(ask: A, url: &'a str) -> Self {
        Self {
            ask,
            url,
            namespace: "",
            schemes: Schemes::Https,
            query: &[],
            headers: &[],
            authorities: None,
            credentials: None,
            time: None,
            body_waits: false,
            sieve: None,
        }
    }

    /// The address, checked.
    pub(crate) fn url(&self) -> Result<Url, EgressError> {
        let wrong = match self.schemes {
            Schemes::Https => EgressError::NotHttps,
            Schemes::HttpToo => EgressError::NotHttp,
        };
        let mut url = match Url::parse(self.url) {
            Ok(url) if url.host_str().is_some() => url,
            Ok(_) | Err(_) => return Err(wrong),
        };
        match (url.scheme(), self.schemes) {
            ("https", _) | ("http", Schemes::HttpToo) => {}
            _ => return Err(wrong),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EgressError::NamesAUser);
        }
        if self.credentials.is_some() && url.scheme() != "https" {
            return Err(EgressError::SecretOverHttp);
        }
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(self.query);
        }
        Ok(url)
    }

    /// With the headers, the body and the credentials, if there are any.
    fn complete(
        &self,
        asking: RequestBuilder,
        content: Option<Content<'_>>,
    ) -> Result<RequestBuilder, EgressError> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.headers {
            let header = HeaderName::from_bytes(name.as_bytes()).ok();
            let header = header.filter(|name| !RESERVED.contains(&name.as_str()));
            let header = header.zip(HeaderValue::from_str(value).ok());
            let (header, value) = header.ok_or_else(|| EgressError::Header((*name).to_owned()))?;
            headers.append(header, value);
        }
        let mut asking = asking.headers(headers);
        if let Some(Content { media_type, body }) = content {
            asking = asking.header(CONTENT_TYPE, media_type).body(body.to_vec());
        }
        Ok(match self.credentials {
            None => asking,
            Some(Credentials(Secret::Bearer(value))) => asking.header(AUTHORIZATION, value),
            Some(Credentials(Secret::Basic { username, password })) => {
                asking.basic_auth(username, Some(password))
            }
        })
    }
}

impl Reply {
    /// A reply without headers, such as a test has it.
    pub fn new(status: u16, body: impl Into<Body>) -> Self {
        let (headers, body) = (HeaderMap::new(), body.into());
        Self {
            status,
            headers,
            body,
            is_cut: false,
        }
    }

    /// The same with another header. One that no reply can have is left out.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.append(HeaderName::from_static(name), value);
        }
        self
    }

    /// The first header of this name, if it is text: `etag`, `location`, `retry-after`.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl Credentials {
    /// A bearer token (RFC 6750). None: it contains characters that no header may contain.
    pub fn bearer(token: &str) -> Option<Self> {
        let visible = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        visible.then_some(Self(Secret::Bearer(value)))
    }

    /// A name and a password (RFC 7617). None: the name contains a colon.
    pub fn basic(username: &str, password: &str) -> Option<Self> {
        let secret = Secret::Basic {
            username: username.to_owned(),
            password: password.to_owned(),
        };
        (!username.contains(':')).then_some(Self(secret))
    }

    /// Whether `text` contains the secret: such a text is shown to nobody.
    pub fn is_in(&self, text: &str) -> bool {
        let secret = match &self.0 {
            Secret::Bearer(value) => value
                .to_str()
                .ok()
                .and_then(|it| it.strip_prefix("Bearer ")),
            Secret::Basic { password, .. } => Some(password.as_str()),
        };
        secret.is_some_and(|secret| !secret.is_empty() && text.contains(secret))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

impl Body {
    pub(crate) fn new(bytes: Vec<u8>, turn: Turn) -> Self {
        let turn = (bytes.capacity() > 0).then_some(turn);
        Self { bytes, _turn: turn }
    }
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A body that takes no turn, such as a test has it.
impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, _turn: None }
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Body {}

/// It may be somebody's secret.
impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

/// The body of a reply may be somebody's secret.
impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, body, .. } = self;
        write!(f, "Reply {{ status: {status}, {} bytes }}", body.len())
    }
}
