//! How forges sign their webhooks.
//!
//! | forge | header | what it has |
//! |---|---|---|
//! | GitHub | `X-Hub-Signature-256` | `sha256=` and the code of the body, in hexadecimal digits |
//! | Bitbucket Data Center | `X-Hub-Signature` | the same |
//! | Gitea, Forgejo | `X-Forgejo-Signature`, `X-Gitea-Signature` | the digits alone |
//! | GitLab, a signing token | `webhook-signature` | `v1,` and the code of `webhook-id`, `webhook-timestamp` and the body, with dots between them, in base64 |
//! | GitLab, a secret token | `X-Gitlab-Token` | the token itself |
//!
//! The time that GitLab signs is not compared with ours: a webhook that is sent again does no harm.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::http::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sluice_crds::pipeline::ForgeType;

use super::super::hmac::{Code, Sum, code};

/// What a signing token of GitLab begins with. Its bytes follow in base64.
const SIGNING: &str = "whsec_";
/// The most codes in one header.
const MOST: usize = 8;

/// All forges that sign in different ways.
const FORGES: [ForgeType; 4] = [
    ForgeType::GitHub,
    ForgeType::BitbucketServer,
    ForgeType::Gitea,
    ForgeType::GitLab,
];

/// What a request has to show that it comes from the forge.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Claim {
    /// What is signed before the body.
    before: Vec<u8>,
    /// One of these has to be the code.
    codes: Vec<Code>,
    /// Or this the token.
    token: Option<Vec<u8>>,
}

impl Claim {
    /// What the headers of a forge of this kind say. Others do not count.
    pub(super) fn read(provider: ForgeType, headers: &HeaderMap) -> Self {
        let digits = |name, scheme| Self {
            codes: text(headers, name)
                .and_then(|it| it.strip_prefix(scheme))
                .and_then(code)
                .into_iter()
                .collect(),
            ..Self::default()
        };
        match provider {
            ForgeType::GitHub => digits("X-Hub-Signature-256", "sha256="),
            ForgeType::BitbucketServer => digits("X-Hub-Signature", "sha256="),
            ForgeType::Gitea | ForgeType::Forgejo => {
                let name = "X-Forgejo-Signature";
                match headers.contains_key(name) {
                    true => digits(name, ""),
                    false => digits("X-Gitea-Signature", ""),
                }
            }
            ForgeType::GitLab => Self {
                token: text(headers, "X-Gitlab-Token").map(Into::into),
                ..Self::standard(headers).unwrap_or_default()
            },
        }
    }

    /// Whether any forge could have signed a request with these headers: it is not known yet which one it is
    /// about.
    pub(super) fn is_any(headers: &HeaderMap) -> bool {
        let mut claims = FORGES.into_iter().map(|forge| Self::read(forge, headers));
        claims.any(|claim| !claim.codes.is_empty() || claim.token.is_some())
    }

    /// As the Standard Webhooks have it, which GitLab follows.
    fn standard(headers: &HeaderMap) -> Option<Self> {
        let [id, at, signature] =
            ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|it| text(headers, it));
        let codes = signature?.split(' ').take(MOST).filter_map(|it| {
            let code = STANDARD.decode(it.strip_prefix("v1,")?).ok()?;
            code.try_into().ok()
        });
        Some(Self {
            before: format!("{}.{}.", id?, at?).into(),
            codes: codes.collect(),
            token: None,
        })
    }

    /// The beginning of what is signed: the body follows.
    pub(super) fn sum(&self, key: &[u8]) -> Sum {
        let decoded = std::str::from_utf8(key).ok().and_then(|key| {
            let bytes = key.strip_prefix(SIGNING)?;
            STANDARD.decode(bytes).ok()
        });
        let mut sum = Sum::new(decoded.as_deref().unwrap_or(key));
        sum.add(&self.before);
        sum
    }

    /// Whether it is right, now that all that is signed is known.
    pub(super) fn is_right(&self, sum: Sum, key: &[u8]) -> bool {
        let token = self.token.as_deref();
        let is_token = token.is_some_and(|it| verify_slices_are_equal(it, key).is_ok());
        sum.fits_one_of(&self.codes) | is_token
    }
}

/// The header of this name, if it is there once.
fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::hmac;
    use axum::http::{HeaderName, HeaderValue};
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    /// The example of GitHub's documentation.
    const SECRET: &str = "It's a Secret to Everybody";
    const BODY: &str = "Hello, World!";
    const DIGITS: &str = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    /// The example of the Standard Webhooks.
    const SIGNING_TOKEN: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const EVENT: &str = r#"{"test": 2432232314}"#;
    const CODE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn is_right(
        provider: ForgeType,
        headers: &[(&'static str, &str)],
        key: &str,
        body: &str,
    ) -> bool {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            all.append(name, HeaderValue::from_str(value).unwrap());
        }
        let claim = Claim::read(provider, &all);
        let mut sum = claim.sum(key.as_bytes());
        for piece in body.as_bytes().chunks(3) {
            sum.add(piece);
        }
        claim.is_right(sum, key.as_bytes())
    }

    #[rstest]
    #[case::github(ForgeType::GitHub, "x-hub-signature-256", "sha256=")]
    #[case::bitbucket(ForgeType::BitbucketServer, "x-hub-signature", "sha256=")]
    #[case::gitea(ForgeType::Gitea, "x-gitea-signature", "")]
    #[case::forgejo(ForgeType::Forgejo, "x-forgejo-signature", "")]
    #[case::forgejo_as_gitea(ForgeType::Forgejo, "x-gitea-signature", "")]
    fn the_code_of_the_body_is_a_signature(
        #[case] provider: ForgeType,
        #[case] header: &'static str,
        #[case] scheme: &str,
    ) {
        let right = format!("{scheme}{DIGITS}");
        let judge = |headers: &[_], key, body| is_right(provider, headers, key, body);
        assert!(judge(&[(header, &*right)], SECRET, BODY));
        assert!(!judge(&[(header, &*right)], SECRET, "Hello, World"));
        assert!(!judge(&[(header, &*right)], &SECRET[1..], BODY));
        assert!(!judge(&[], SECRET, BODY));
        assert!(!judge(&[(header, SECRET)], SECRET, BODY));
        assert!(!judge(
            &[(header, &*right), (header, &*right)],
            SECRET,
            BODY
        ));
        let (other, short) = (format!("sha1={DIGITS}"), &right[..right.len() - 1]);
        for wrong in [&*other, short, "", "sha256="] {
            assert!(!judge(&[(header, wrong)], SECRET, BODY), "{wrong}");
        }
    }

    /// The header of another forge says nothing, not even the SHA-1 that GitHub sends, too.
    #[test]
    fn each_forge_has_its_own_header() {
        let right = [
            ("x-hub-signature-256", &*format!("sha256={DIGITS}")),
            ("x-gitlab-token", SECRET),
        ];
        assert!(is_right(ForgeType::GitHub, &right[..1], SECRET, BODY));
        for (provider, header) in [
            (ForgeType::GitHub, right[1]),
            (ForgeType::Gitea, right[0]),
            (ForgeType::Gitea, right[1]),
            (ForgeType::BitbucketServer, right[0]),
            (ForgeType::GitLab, right[0]),
        ] {
            assert!(
                !is_right(provider, &[header], SECRET, BODY),
                "{provider:?} {header:?}"
            );
        }
    }

    #[test]
    fn a_signing_token_of_gitlab_signs_id_time_and_body() {
        let headers = |at: &'static str, code: &'static str| {
            [
                ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
                ("webhook-timestamp", at),
                ("webhook-signature", code),
            ]
        };
        let judge = |headers: &[_], key| is_right(ForgeType::GitLab, headers, key, EVENT);
        let right = headers("1614265330", CODE);
        assert!(judge(&right, SIGNING_TOKEN));
        assert!(!judge(&right[1..], SIGNING_TOKEN));
        assert!(!judge(&right, &SIGNING_TOKEN[6..]));
        assert!(!judge(&headers("1614265331", CODE), SIGNING_TOKEN));
        assert!(!judge(&headers("1614265330", &CODE[3..]), SIGNING_TOKEN));
        // One of several counts, as while a token is replaced.
        let two = "v1,AAAA v1a,x v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert!(judge(&headers("1614265330", two), SIGNING_TOKEN));
    }

    #[test]
    fn a_secret_token_of_gitlab_is_sent_itself() {
        let judge = |token| {
            is_right(
                ForgeType::GitLab,
                &[("x-gitlab-token", token)],
                SECRET,
                BODY,
            )
        };
        assert!(judge(SECRET));
        for wrong in [&SECRET[1..], "", DIGITS] {
            assert!(!judge(wrong), "{wrong}");
        }
    }

    #[test]
    fn what_no_forge_could_have_signed_is_known_as_such() {
        let is_any = |headers: &[(&'static str, &str)]| {
            let all = headers.iter().map(|(name, value)| {
                let name: HeaderName = name.parse().unwrap();
                (name, HeaderValue::from_str(value).unwrap())
            });
            Claim::is_any(&all.collect())
        };
        let digits = format!("sha256={DIGITS}");
        for right in [
            ("x-hub-signature-256", &*digits),
            ("x-hub-signature", &digits),
            ("x-gitea-signature", DIGITS),
            ("x-forgejo-signature", DIGITS),
            ("x-gitlab-token", "x"),
        ] {
            assert!(is_any(&[right]), "{right:?}");
        }
        let standard = [
            ("webhook-id", "1"),
            ("webhook-timestamp", "1"),
            ("webhook-signature", CODE),
        ];
        assert!(is_any(&standard) && !is_any(&standard[1..]));
        for wrong in [
            &[][..],
            &[("x-hub-signature-256", DIGITS)],
            &[("x-gitea-signature", &DIGITS[1..])],
            &[("authorization", "Bearer x")],
        ] {
            assert!(!is_any(wrong), "{wrong:?}");
        }
    }

    const NAMES: [&str; 8] = [
        "x-hub-signature-256",
        "x-hub-signature",
        "x-forgejo-signature",
        "x-gitea-signature",
        "x-gitlab-token",
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature",
    ];

    fn forge() -> impl Strategy<Value = ForgeType> {
        let all = [FORGES.as_slice(), &[ForgeType::Forgejo]].concat();
        proptest::sample::select(all)
    }

    /// Headers that look like signatures, and whatever else may stand there.
    fn value() -> impl Strategy<Value = Vec<u8>> {
        let text = |form: &str| proptest::string::string_regex(form).unwrap();
        let texts = prop_oneof![
            text("(sha256=|sha1=|v1,|)[0-9a-fA-F]{60,68}"),
            text("(v1,[A-Za-z0-9+/]{43}=[ ,]){0,10}"),
            text("[0-9a-zé,.= ]{0,20}"),
        ];
        let bytes = proptest::collection::vec(any::<u8>(), 0..80);
        prop_oneof![texts.prop_map(String::into_bytes), bytes]
    }

    fn map(headers: &[(usize, Vec<u8>)]) -> HeaderMap {
        let all = headers.iter().filter_map(|(name, value)| {
            let value = HeaderValue::from_bytes(value).ok()?;
            Some((HeaderName::from_static(NAMES[*name]), value))
        });
        let mut map = HeaderMap::new();
        all.for_each(|(name, value)| {
            map.append(name, value);
        });
        map
    }

    fn judge(forge: ForgeType, headers: &HeaderMap, key: &[u8], body: &[u8]) -> bool {
        let claim = Claim::read(forge, headers);
        let mut sum = claim.sum(key);
        body.chunks(7).for_each(|piece| sum.add(piece));
        claim.is_right(sum, key)
    }

    /// What a forge of this kind would send.
    fn signed(forge: ForgeType, key: &[u8], body: &[u8]) -> (usize, Vec<u8>) {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        let code = hmac::sign(&key, body);
        let digits: String = code.as_ref().iter().map(|it| format!("{it:02x}")).collect();
        let (name, text) = match forge {
            ForgeType::GitHub => (0, format!("sha256={digits}")),
            ForgeType::BitbucketServer => (1, format!("sha256={digits}")),
            ForgeType::Forgejo => (2, digits),
            ForgeType::Gitea => (3, digits),
            ForgeType::GitLab => {
                let code = STANDARD.encode(hmac::sign(&key, &[b"1.2.", body].concat()));
                (7, format!("v1,{code}"))
            }
        };
        (name, text.into_bytes())
    }

    proptest! {
        /// Nothing panics, and nobody who does not know the key is believed.
        #[test]
        fn whatever_is_sent_without_the_key_is_refused(
            forge in forge(),
            headers in proptest::collection::vec((0..NAMES.len(), value()), 0..8),
            key in proptest::collection::vec(any::<u8>(), 32..64),
            body in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let headers = map(&headers);
            let _ = Claim::is_any(&headers);
            prop_assert!(!judge(forge, &headers, &key, &body));
        }

        /// What is signed is believed, and nothing else that is like it.
        #[test]
        fn a_signature_is_for_its_key_and_its_body_alone(
            forge in forge(),
            key in proptest::collection::vec(any::<u8>(), 32..64),
            body in proptest::collection::vec(any::<u8>(), 0..200),
            more in any::<u8>(),
            place in any::<proptest::sample::Index>(),
        ) {
            let right = signed(forge, &key, &body);
            let with = |signature: (usize, Vec<u8>)| {
                map(&[(5, b"1".to_vec()), (6, b"2".to_vec()), signature])
            };
            let headers = with(right.clone());
            prop_assert!(Claim::is_any(&headers));
            prop_assert!(judge(forge, &headers, &key, &body));
            let longer = [&body[..], &[more]].concat();
            prop_assert!(!judge(forge, &headers, &key, &longer));
            let mut other = key.clone();
            other[place.index(key.len())] ^= 1;
            prop_assert!(!judge(forge, &headers, &other, &body));
            // Another digit: letters of both sizes are the same digit.
            let (name, mut text) = right;
            let at = text.len() - 2 - place.index(40);
            text[at] = if text[at] == b'1' { b'2' } else { b'1' };
            prop_assert!(!judge(forge, &with((name, text)), &key, &body));
        }
    }
}
