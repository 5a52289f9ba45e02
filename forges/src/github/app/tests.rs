//! Tokens of Apps: what is asked for, by whom it is signed, and how long it is kept.

use std::io;
use std::net::IpAddr;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::prelude::BASE64_STANDARD;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use sluice_egress::{Egress, Limits, Names, Rules};

use super::*;
use crate::address::Provider;
use crate::test_server::{Certificate, Reply, TestServer};

const HOST: &str = "forge.test";
const NOW: &str = "2026-11-20T12:00:00Z";

struct Here;

impl Names for Here {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) }.boxed()
    }
}

/// A key, as GitHub gives one but for its first line, and its other half.
fn key() -> (Vec<u8>, Vec<u8>) {
    let key = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let der: Pkcs8V1Der<'_> = key.as_der().unwrap();
    let text = BASE64_STANDARD.encode(der.as_ref());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
    (pem.into_bytes(), key.public_key().as_ref().to_vec())
}

struct Scene {
    server: TestServer,
    way: Way,
    address: Address,
    tokens: AppTokens,
}

impl Scene {
    async fn new() -> Self {
        let server = TestServer::start(Certificate::For(HOST), Reply::status(500, "", b"")).await;
        let rules = Rules {
            allow: vec!["127.0.0.0/8".parse().unwrap()],
            ..Rules::default()
        };
        let way = Way {
            egress: Egress::with(rules, Limits::default(), Arc::new(Here)).unwrap(),
            authorities: Some(server.authority.clone().into_bytes()),
            namespace: "apps".to_owned(),
            told: None,
            pacing: crate::call::Pacing::default(),
        };
        let url = server.address("https", HOST, "/acme/shop");
        Self {
            address: Address::parse(Provider::GitHub, &url).unwrap(),
            tokens: AppTokens::default(),
            server,
            way,
        }
    }

    async fn replies(&self, replies: &[(u16, &str)]) {
        let reply = |(status, body): &(u16, &str)| Reply::status(*status, "", body.as_bytes());
        self.server.replies_first(replies.iter().map(reply)).await;
    }

    /// The token, `minutes` after the first.
    async fn token(&self, app: &App, minutes: i64) -> Result<String, Trouble> {
        let now: Timestamp = NOW.parse().unwrap();
        let now = now + SignedDuration::from_mins(minutes);
        let token = self.tokens.token(app, &self.address, &self.way, now).await;
        let token = token.map_err(|error| error.trouble)?;
        // What it is shows in what is not shown.
        let known = ["one", "two", "three"];
        let is_it = |text: &&&str| token.bearer().is_in(text);
        Ok((*known.iter().find(is_it).unwrap()).to_owned())
    }

    async fn asked(&self) -> Vec<String> {
        let heads = self.server.heads().await;
        let lines = heads.iter().filter_map(|head| head.lines().next());
        lines
            .map(|line| line.trim_end_matches(" HTTP/1.1").to_owned())
            .collect()
    }
}

fn made(token: &str, ends: &str) -> String {
    json!({"token": token, "expires_at": ends, "permissions": {"contents": "write"}}).to_string()
}

#[tokio::test]
async fn a_token_is_kept_until_shortly_before_its_end() {
    let scene = Scene::new().await;
    let (pem, _) = key();
    let app = App::new("12345", Some(7), &pem).unwrap();
    let replies = [
        made("one", "2026-11-20T13:00:00Z"),
        made("two", "2026-11-20T14:00:00Z"),
    ];
    scene
        .replies(&[(201, &replies[0]), (201, &replies[1])])
        .await;
    for (minutes, expected) in [
        (0, "one"),
        (30, "one"),
        (55, "one"),
        (56, "two"),
        (60, "two"),
    ] {
        assert_eq!(
            scene.token(&app, minutes).await.as_deref(),
            Ok(expected),
            "{minutes}"
        );
    }
    let asked = "POST /api/v3/app/installations/7/access_tokens";
    assert_eq!(scene.asked().await, [asked; 2]);
}

#[tokio::test]
async fn the_app_says_who_it_is_by_its_key() {
    let scene = Scene::new().await;
    let (pem, public) = key();
    let app = App::new("Iv1.abc", None, &pem).unwrap();
    let reply = made("one", "2026-11-20T13:00:00Z");
    scene.replies(&[(200, r#"{"id": 9}"#), (201, &reply)]).await;
    assert_eq!(scene.token(&app, 0).await.as_deref(), Ok("one"));
    let asked = [
        "GET /api/v3/repos/acme/shop/installation",
        "POST /api/v3/app/installations/9/access_tokens",
    ];
    assert_eq!(scene.asked().await, asked);

    for head in scene.server.heads().await {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        let authorization = lines.find(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let token = authorization.unwrap().1.strip_prefix("Bearer ").unwrap();
        let (text, signature) = token.rsplit_once('.').unwrap();
        let (_, claims) = text.split_once('.').unwrap();
        let bytes = |part| BASE64_URL_SAFE_NO_PAD.decode(part).unwrap();
        let claims: Value = serde_json::from_slice(&bytes(claims)).unwrap();
        let now = NOW.parse::<Timestamp>().unwrap().as_second();
        assert_eq!(
            claims,
            json!({"iat": now - 60, "exp": now + 540, "iss": "Iv1.abc"})
        );
        let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &public);
        key.verify(text.as_bytes(), &bytes(signature)).unwrap();
    }
}

#[tokio::test]
async fn a_token_is_given_only_to_those_who_have_the_key() {
    let scene = Scene::new().await;
    let apps = [key(), key()].map(|(pem, _)| App::new("12345", Some(7), &pem).unwrap());
    let replies = [
        made("one", "2026-11-20T13:00:00Z"),
        made("two", "2026-11-20T13:00:00Z"),
    ];
    scene
        .replies(&[(201, &replies[0]), (201, &replies[1])])
        .await;
    assert_eq!(scene.token(&apps[0], 0).await.as_deref(), Ok("one"));
    assert_eq!(scene.token(&apps[1], 0).await.as_deref(), Ok("two"));
    assert_eq!(scene.token(&apps[0], 0).await.as_deref(), Ok("one"));
}

#[tokio::test]
async fn why_there_is_no_token_is_told() {
    let scene = Scene::new().await;
    let (pem, _) = key();
    let app = App::new("12345", Some(7), &pem).unwrap();
    let elsewhere = App::new("12345", None, &pem).unwrap();
    scene.replies(&[(404, r#"{"message": "Not Found"}"#)]).await;
    assert_eq!(scene.token(&elsewhere, 0).await, Err(Trouble::NotInstalled));
    scene
        .replies(&[(422, r#"{"message": "There is at least one repository"}"#)])
        .await;
    assert_eq!(scene.token(&app, 0).await, Err(Trouble::NotInstalled));
    scene
        .replies(&[(
            401,
            r#"{"message": "A JSON web token could not be decoded"}"#,
        )])
        .await;
    assert_eq!(scene.token(&app, 0).await, Err(Trouble::Unauthorized));
    scene
        .replies(&[(
            201,
            r#"{"token": "a b", "expires_at": "2026-11-20T13:00:00Z"}"#,
        )])
        .await;
    let wrong = Err(Trouble::NotUnderstood("token".to_owned()));
    assert_eq!(scene.token(&app, 0).await, wrong);
    // Nothing of that is kept.
    let reply = made("three", "2026-11-20T13:00:00Z");
    scene.replies(&[(201, &reply)]).await;
    assert_eq!(scene.token(&app, 0).await.as_deref(), Ok("three"));
}

#[test]
fn what_is_no_app_is_told() {
    let (pem, _) = key();
    let wrong = |id: &str, key: &[u8]| App::new(id, None, key).unwrap_err();
    assert_eq!(wrong("", &pem), AppError::NoId);
    assert_eq!(wrong("a b", &pem), AppError::NoId);
    assert_eq!(wrong("1", b"no key"), AppError::NoKey);
    let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
    assert_eq!(wrong("1", other.as_bytes()), AppError::NoKey);
    assert_eq!(format!("{:?}", App::new("1", None, &pem)), "Ok(App)");
}
