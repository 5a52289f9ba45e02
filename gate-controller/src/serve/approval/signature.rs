//! The signature of a request: HMAC-SHA256 over all of it that matters.
//!
//! What comes in: the headers `X-Signature-Timestamp` (seconds since 1970, in UTC) and `X-Signature`
//! (`sha256=` and 64 hexadecimal digits), the method, the path as it was sent, the body, and a key. What
//! goes out: when it was signed, and whether it was signed with that key.

use aws_lc_rs::hmac::{self, HMAC_SHA256, Key};
use axum::http::{HeaderMap, Method};
use jiff::{SignedDuration, Timestamp};
use sluice_core::text::words::instant_utc;

/// Says when it was signed.
const TIMESTAMP: &str = "X-Signature-Timestamp";
/// Says what came out.
const SIGNATURE: &str = "X-Signature";
/// What a signature begins with.
const SCHEME: &str = "sha256=";
/// How many bytes it has.
const LENGTH: usize = 32;
/// How far the time of a signature may be from ours.
const WITHIN: SignedDuration = SignedDuration::from_mins(5);

/// A signature, as the headers have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    /// When it was signed, as it was written: that text is signed, too.
    written: String,
    at: Timestamp,
    code: [u8; LENGTH],
}

impl Signature {
    /// The signature of a request.
    ///
    /// # Errors
    /// A header is missing, is there twice, or has another form.
    pub(super) fn read(headers: &HeaderMap) -> Result<Self, String> {
        let written = one(headers, TIMESTAMP)?;
        let is_plain =
            (1..=12).contains(&written.len()) && written.bytes().all(|byte| byte.is_ascii_digit());
        let seconds: Option<i64> = is_plain.then(|| written.parse().ok()).flatten();
        let at = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
        let at = at.ok_or_else(|| {
            format!("the header {TIMESTAMP} is not the number of seconds since 1970, as `date +%s` has it")
        })?;
        let code = one(headers, SIGNATURE)?
            .strip_prefix(SCHEME)
            .and_then(bytes);
        let code = code.ok_or_else(|| {
            format!("the header {SIGNATURE} is not `{SCHEME}` with 64 hexadecimal digits after it")
        })?;
        Ok(Self {
            written: written.to_owned(),
            at,
            code,
        })
    }

    /// When it was signed.
    pub(super) fn at(&self) -> Timestamp {
        self.at
    }

    /// Whether it was signed now, give or take five minutes.
    ///
    /// # Errors
    /// It was not.
    pub(super) fn check_time(&self, now: Timestamp) -> Result<(), String> {
        if self.at.duration_since(now).abs() <= WITHIN {
            return Ok(());
        }
        let (at, now) = (instant_utc(self.at), instant_utc(now));
        Err(format!(
            "it was signed at {at}, and it is {now} here: at most 5 minutes may be between the two"
        ))
    }

    /// Whether this key has signed that. It takes as long for every signature.
    pub(super) fn is_of(&self, key: &[u8], method: &Method, path: &str, body: &[u8]) -> bool {
        let head = format!("{}\n{method}\n{path}\n", self.written);
        let signed = [head.as_bytes(), body].concat();
        hmac::verify(&Key::new(HMAC_SHA256, key), &signed, &self.code).is_ok()
    }
}

fn one<'h>(headers: &'h HeaderMap, name: &str) -> Result<&'h str, String> {
    let mut all = headers.get_all(name).iter();
    let (Some(value), None) = (all.next(), all.next()) else {
        return Err(format!("the header {name} has to be there once"));
    };
    let value = value.to_str();
    value.map_err(|_| format!("the header {name} has characters that it cannot have"))
}

/// What 64 hexadecimal digits say.
fn bytes(digits: &str) -> Option<[u8; LENGTH]> {
    let digits = digits.as_bytes();
    if digits.len() != 2 * LENGTH {
        return None;
    }
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|it| u8::try_from(it).ok())
    };
    let mut bytes = [0; LENGTH];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}
