//! GitHub Apps: programs with a key of their own, by which they get a token for an hour.
//!
//! What comes in: an [`App`] and a repository. What goes out: a token that may do in this repository what the
//! App may, and in no other. It is kept in memory until shortly before it ends.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde::Deserialize;
use serde_json::json;
use sluice_egress::secrets::Token;
use sluice_egress::{Content, Repeatable};

use super::GitHub;
use crate::address::Address;
use crate::call::{Access, Api, Pacing, Way};
use crate::outcome::{ForgeError, Trouble};

/// How long before its end a token is given to nobody any more: what is done with it takes less.
const MARGIN: SignedDuration = SignedDuration::from_mins(5);
/// How long a token of the App itself lasts. GitHub takes ten minutes at most, by its own clock.
const OWN: Duration = Duration::from_secs(9 * 60);
/// How much later than ours that clock may be.
const SKEW: Duration = Duration::from_secs(60);
/// The most tokens that are kept. If there are more, all are forgotten, and asked for again.
const MOST_KEPT: usize = 4_096;
/// The most characters of an ID.
const LONGEST_ID: usize = 64;

/// A GitHub App, as which a program asks.
#[derive(Clone)]
pub struct App {
    id: String,
    installation: Option<u64>,
    key: Arc<RsaKeyPair>,
    /// What its key is known by.
    mark: [u8; 32],
}

/// Why there is no such App.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppError {
    /// It is neither a number nor a client ID.
    #[error("the ID of the App is none; write its App ID, or its client ID")]
    NoId,
    /// It is no key, or none of RSA.
    #[error(
        "the private key of the App is none; write the file that GitHub gives for it, as it is"
    )]
    NoKey,
}

/// The tokens that are kept. Clones share them.
#[derive(Clone, Default)]
pub struct AppTokens(Arc<Mutex<HashMap<[u8; 32], Made>>>);

/// A token that was made.
#[derive(Clone)]
struct Made {
    token: Token,
    ends: Timestamp,
}

#[derive(Deserialize)]
struct MadeShape {
    token: String,
    expires_at: Timestamp,
}

#[derive(Deserialize)]
struct Installation {
    id: u64,
}

impl App {
    /// An App by its App ID or its client ID, and by its private key in PEM. Without the ID of an
    /// installation, the one that the repository belongs to is looked up.
    ///
    /// # Errors
    /// One of them is none.
    pub fn new(id: &str, installation: Option<u64>, key: &[u8]) -> Result<Self, AppError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if id.is_empty() || id.len() > LONGEST_ID || !id.chars().all(allowed) {
            return Err(AppError::NoId);
        }
        let mark = hash(key);
        let key = match PrivateKeyDer::from_pem_slice(key) {
            Ok(PrivateKeyDer::Pkcs1(key)) => RsaKeyPair::from_der(key.secret_pkcs1_der()).ok(),
            Ok(PrivateKeyDer::Pkcs8(key)) => RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()).ok(),
            Ok(_) | Err(_) => None,
        };
        Ok(Self {
            id: id.to_owned(),
            installation,
            key: Arc::new(key.ok_or(AppError::NoKey)?),
            mark,
        })
    }

    /// The token by which the App says that it is itself (RFC 7519, signed as RFC 7518 has `RS256`).
    fn own_token(&self, now: Timestamp) -> Option<Token> {
        let part = |value: serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let claims = json!({
            "iat": (now - SKEW).as_second(),
            "exp": (now + OWN).as_second(),
            "iss": self.id,
        });
        let text = format!(
            "{}.{}",
            part(json!({"alg": "RS256", "typ": "JWT"})),
            part(claims)
        );
        let mut signature = vec![0; self.key.public_modulus_len()];
        let signed = self.key.sign(
            &RSA_PKCS1_SHA256,
            &SystemRandom::new(),
            text.as_bytes(),
            &mut signature,
        );
        signed.ok()?;
        Token::new(&format!(
            "{text}.{}",
            BASE64_URL_SAFE_NO_PAD.encode(signature)
        ))
    }

    /// Makes a token for a repository. A second one does no harm, so that the request may be sent twice.
    async fn make(&self, address: &Address, way: &Way, now: Timestamp) -> Result<Made, ForgeError> {
        let api = |token| {
            // GitHub counts what the App asks apart from what its installations ask.
            let way = Way {
                pacing: Pacing::default(),
                ..way.clone()
            };
            GitHub::new(Access { way, token }, address.clone()).0
        };
        let Some(token) = self.own_token(now) else {
            return Err(refused(address));
        };
        let api = api(token);
        let installation = match self.installation {
            Some(installation) => installation,
            None => installation(&api).await?,
        };
        let api = api.at(address.api());
        let call = api.call("get a token for the App");
        let body = json!({"repositories": [address.name()]}).to_string();
        let ask = Repeatable::Query(Content {
            media_type: "application/json",
            body: body.as_bytes(),
        });
        let path = format!("/app/installations/{installation}/access_tokens");
        let reply = call.question(ask, &path, &[]).await?;
        if matches!(reply.status, 404 | 422) {
            return Err(call.error(Trouble::NotInstalled));
        }
        let made: MadeShape = call.read(&reply)?;
        let wrong = || call.error(Trouble::NotUnderstood("token".to_owned()));
        Ok(Made {
            token: Token::new(&made.token).ok_or_else(wrong)?,
            ends: made.expires_at,
        })
    }
}

/// What follows from a key that signs nothing.
fn refused(address: &Address) -> ForgeError {
    ForgeError {
        host: address.host().to_owned(),
        operation: "get a token for the App",
        trouble: Trouble::Unauthorized,
    }
}

/// The installation that a repository belongs to.
async fn installation(api: &Api) -> Result<u64, ForgeError> {
    let call = api.call("look up the installation of the App");
    let reply = call.ask("/installation", &[]).await?;
    match reply.status {
        404 => Err(call.error(Trouble::NotInstalled)),
        _ => call.read(&reply).map(|found: Installation| found.id),
    }
}

impl AppTokens {
    /// A token for what the App may do in this repository, valid for five minutes at least.
    ///
    /// # Errors
    /// GitHub gives none: the App is not installed there ([`Trouble::NotInstalled`]), its key is not the one
    /// that GitHub knows ([`Trouble::Unauthorized`]), or there is no answer.
    pub async fn token(
        &self,
        app: &App,
        address: &Address,
        way: &Way,
        now: Timestamp,
    ) -> Result<Token, ForgeError> {
        // Without the key nobody gets a token of those who have it.
        let App {
            id,
            installation,
            mark,
            ..
        } = app;
        let place = format!("{}{}", address.api(), address.repository());
        let place = format!("{place}\n{id}\n{installation:?}\n").into_bytes();
        let mark = hash(&[place.as_slice(), mark].concat());
        let lasts = |made: &Made| now.duration_until(made.ends) >= MARGIN;
        let kept = self.0.lock().get(&mark).cloned();
        if let Some(kept) = kept.filter(lasts) {
            return Ok(kept.token);
        }
        let made = app.make(address, way, now).await?;
        let mut kept = self.0.lock();
        kept.retain(|_, made| lasts(made));
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(mark, made.clone());
        Ok(made.token)
    }
}

fn hash(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    // Both have the same length.
    for (to, from) in hash.iter_mut().zip(digest(&SHA256, bytes).as_ref()) {
        *to = *from;
    }
    hash
}

/// It holds a key.
impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("App")
    }
}

#[cfg(test)]
mod tests;
