//! The signature of a request: HMAC-SHA256 over all of it that matters.
//!
//! What comes in: the headers `X-Signature-Timestamp` (seconds since 1970, in UTC) and `X-Signature`
//! (`sha256=` and 64 hexadecimal digits), the method, the path as it was sent, the body, and a key. What
//! goes out: when it was signed, and whether it was signed with that key.

use axum::http::{HeaderMap, Method};
use jiff::{SignedDuration, Timestamp};
use sluice_core::text::words::instant_utc;

use super::super::hmac::{self, Code, Sum};

/// Says when it was signed.
const TIMESTAMP: &str = "X-Signature-Timestamp";
/// Says what came out.
const SIGNATURE: &str = "X-Signature";
/// What a signature begins with.
const SCHEME: &str = "sha256=";
/// How far the time of a signature may be from ours.
const WITHIN: SignedDuration = SignedDuration::from_mins(5);

/// A signature, as the headers have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    /// When it was signed, as it was written: that text is signed, too.
    written: String,
    at: Timestamp,
    code: Code,
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
            .and_then(hmac::code);
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
        let mut sum = Sum::new(key);
        sum.add(format!("{}\n{method}\n{path}\n", self.written).as_bytes());
        sum.add(body);
        sum.fits_one_of(&[self.code])
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

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use rstest::rstest;

    use super::*;

    const KEY: &[u8] = b"0123456789abcdef0123456789abcdef";
    const PATH: &str = "/approval/apps/podinfo/prod/6.1.6";
    /// As `openssl dgst -sha256 -hmac` prints it for the time 1795000000 and an empty body.
    const DIGITS: &str = "fc5f07419c6ecb4179d80a43a83d46694d1dec1ac348db07dbe5b45f539f0697";

    fn read(headers: &[(&'static str, &str)]) -> Result<Signature, String> {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).unwrap();
            all.append(*name, value);
        }
        Signature::read(&all)
    }

    fn signed(digits: &str) -> Signature {
        let signature = format!("sha256={digits}");
        let headers = [
            ("x-signature-timestamp", "1795000000"),
            ("x-signature", &signature),
        ];
        read(&headers).unwrap()
    }

    #[test]
    fn what_openssl_signs_is_signed() {
        for digits in [DIGITS.to_owned(), DIGITS.to_uppercase()] {
            let signature = signed(&digits);
            assert_eq!(signature.at().as_second(), 1_795_000_000);
            assert!(signature.is_of(KEY, &Method::POST, PATH, b""));
            assert!(!signature.is_of(KEY, &Method::POST, PATH, b"\n"));
            assert!(!signature.is_of(KEY, &Method::GET, PATH, b""));
            assert!(!signature.is_of(
                KEY,
                &Method::POST,
                "/approval/apps/podinfo/prod/6.1.60",
                b""
            ));
            assert!(!signature.is_of(&KEY[1..], &Method::POST, PATH, b""));
        }
    }

    /// One digit that is another is another signature.
    #[test]
    fn every_digit_counts() {
        for place in 0..DIGITS.len() {
            let mut digits = DIGITS.as_bytes().to_vec();
            digits[place] = if digits[place] == b'0' { b'1' } else { b'0' };
            let signature = signed(&String::from_utf8(digits).unwrap());
            assert!(!signature.is_of(KEY, &Method::POST, PATH, b""), "{place}");
        }
    }

    #[rstest]
    #[case::no_time(None, Some("sha256="), "X-Signature-Timestamp has to be there once")]
    #[case::no_signature(Some("1795000000"), None, "X-Signature has to be there once")]
    #[case::an_instant(Some("2026-11-20T12:00:00Z"), Some("sha256="), "seconds since 1970")]
    #[case::a_sign(Some("+1795000000"), Some("sha256="), "seconds since 1970")]
    #[case::a_fraction(Some("1795000000.5"), Some("sha256="), "seconds since 1970")]
    #[case::too_late(Some("999999999999"), Some("sha256="), "seconds since 1970")]
    #[case::empty(Some(""), Some("sha256="), "seconds since 1970")]
    #[case::another_hash(Some("1795000000"), Some("sha512="), "64 hexadecimal digits")]
    #[case::too_short(Some("1795000000"), Some("sha256=0"), "64 hexadecimal digits")]
    fn headers_of_another_form_are_refused(
        #[case] time: Option<&str>,
        #[case] signature: Option<&str>,
        #[case] words: &str,
    ) {
        let signature = signature.map(|scheme| match scheme.ends_with('=') {
            true => format!("{scheme}{DIGITS}"),
            false => scheme.to_owned(),
        });
        let time = time.map(|time| ("x-signature-timestamp", time));
        let signature = signature.as_deref().map(|text| ("x-signature", text));
        let headers: Vec<_> = time.into_iter().chain(signature).collect();
        let refused = read(&headers).unwrap_err();
        assert!(refused.contains(words), "{refused}");
    }

    #[test]
    fn a_header_that_is_there_twice_is_refused() {
        let signature = format!("sha256={DIGITS}");
        let (time, code) = ("x-signature-timestamp", "x-signature");
        for twice in [(time, "1795000000"), (code, signature.as_str())] {
            let headers = [(time, "1795000000"), (code, signature.as_str()), twice];
            let refused = read(&headers).unwrap_err();
            assert!(refused.contains("has to be there once"), "{refused}");
        }
    }
}
