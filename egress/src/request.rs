//! What is asked for, of whom, and with what secret; and what comes back.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{RequestBuilder, Url};

use crate::outcome::EgressError;
use crate::turns::Turn;

/// A GET.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The address.
    pub url: &'a str,
    /// The namespace of the one who wants to know: each has a share of what there may be at once.
    pub namespace: &'a str,
    /// What the address may be.
    pub schemes: Schemes,
    /// Names and values, added to the query of the address.
    pub query: &'a [(&'a str, &'a str)],
    /// Certificates in PEM, trusted besides the public authorities.
    pub authorities: Option<&'a [u8]>,
    /// Who asks. Sent over https only.
    pub credentials: Option<&'a Credentials>,
    /// The longest that it may take, if that is less than everybody's limit.
    pub time: Option<Duration>,
    /// Whether the body of the reply waits to be read, since few such are read at once. It takes a turn
    /// of its own kind then: it keeps none from those who are read at once.
    pub body_waits: bool,
}

/// Over what is asked.
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
    /// The body, as far as it was wanted.
    pub body: Body,
}

/// The body of a reply. It keeps the turn of its request: while bodies wait to be read, no more are
/// asked for than there is room for.
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
    /// A GET of `url` over https, by nobody in particular.
    pub fn to(url: &'a str) -> Self {
        Self {
            url,
            namespace: "",
            schemes: Schemes::Https,
            query: &[],
            authorities: None,
            credentials: None,
            time: None,
            body_waits: false,
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

    /// With the credentials, if there are any.
    pub(crate) fn signed(&self, asking: RequestBuilder) -> RequestBuilder {
        match self.credentials {
            None => asking,
            Some(Credentials(Secret::Bearer(value))) => asking.header(AUTHORIZATION, value),
            Some(Credentials(Secret::Basic { username, password })) => {
                asking.basic_auth(username, Some(password))
            }
        }
    }
}

impl Credentials {
    /// A bearer token (RFC 6750). None: it holds what no header may hold.
    pub fn bearer(token: &str) -> Option<Self> {
        let visible = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        visible.then_some(Self(Secret::Bearer(value)))
    }

    /// A name and a password (RFC 7617). None: the name holds a colon.
    pub fn basic(username: &str, password: &str) -> Option<Self> {
        let secret = Secret::Basic {
            username: username.to_owned(),
            password: password.to_owned(),
        };
        (!username.contains(':')).then_some(Self(secret))
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
        let Self { status, body } = self;
        write!(f, "Reply {{ status: {status}, {} bytes }}", body.len())
    }
}
