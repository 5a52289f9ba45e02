//! A forge that says what its contract says, and nothing else.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use sluice_egress::secrets::Token;
use sluice_egress::{Egress, Limits, Names, Rules};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::scenario::{Exchange, Scenario};
use crate::address::{Address, Provider};
use crate::call::{Access, Ended, Pacing, Way};
use crate::forge::Forge;
use crate::test_server::{Certificate, tls};

const HOST: &str = "forge.test";
const TOKEN: &str = "t0ken";

/// What is left of a contract, and the first thing that broke it.
struct Contract {
    provider: Provider,
    left: VecDeque<Exchange>,
    wrong: Option<String>,
}

/// [`HOST`] is this machine.
struct Here;

impl Names for Here {
    fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let found = match host {
            HOST => Ok(vec![IpAddr::from([127, 0, 0, 1])]),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        async move { found }.boxed()
    }
}

/// What comes of a scenario's call, and what broke its contract.
pub(super) async fn play(provider: Provider, scenario: Scenario) -> (String, Option<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let exchanges = scenario.exchanges.clone();
    let mut left: VecDeque<_> = scenario.exchanges.into();
    for exchange in &mut left {
        // Pages are at the address of the forge.
        let pages = (
            format!("https://{HOST}/"),
            format!("https://{HOST}:{port}/"),
        );
        exchange.reply = exchange.reply.replace(&pages.0, &pages.1);
    }
    let contract = Arc::new(Mutex::new(Contract {
        provider,
        left,
        wrong: None,
    }));
    let heard = Arc::<Mutex<Vec<Ended>>>::default();
    let answers = Arc::clone(&contract);
    let next = move |head: &str, body: &[u8]| answers.lock().unwrap().next(head, body);
    let (forge, _server) = served(listener, provider, Arc::clone(&heard), next);
    let outcome = scenario.call.on(&forge).await;
    // The port is another one each time.
    let outcome = outcome.replace(&format!("{HOST}:{port}"), HOST);
    let mut contract = contract.lock().unwrap();
    let wrong = contract.wrong.take().or_else(|| {
        let next = contract.left.front()?;
        Some(format!("{} was not asked for; {outcome}", next.request))
    });
    let heard = heard.lock().unwrap();
    (outcome, wrong.or_else(|| misheard(&exchanges, &heard)))
}

/// A forge whose requests are answered so, one after another, as long as the server is kept.
pub(crate) fn served(
    listener: TcpListener,
    provider: Provider,
    heard: Arc<Mutex<Vec<Ended>>>,
    answer: impl Fn(&str, &[u8]) -> Vec<u8> + Send + Sync + 'static,
) -> (Forge, JoinSet<()>) {
    let port = listener.local_addr().unwrap().port();
    let (config, authority) = tls(Certificate::For(HOST));
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let mut server = JoinSet::new();
    server.spawn(serve(listener, acceptor, answer));
    (forge(provider, port, authority, heard), server)
}

/// Whether each request was told of once, with how it has ended.
fn misheard(exchanges: &[Exchange], heard: &[Ended]) -> Option<String> {
    // A question whose reply breaks off may be sent twice.
    if exchanges.iter().any(|it| it.cut_off || it.padding > 0) {
        return None;
    }
    let is_right = |(exchange, ended): (&Exchange, &Ended)| match exchange.status {
        401 => *ended == Ended::Denied,
        403 => [Ended::Denied, Ended::Limited].contains(ended),
        429 => *ended == Ended::Limited,
        500.. => *ended == Ended::Failed,
        _ => *ended == Ended::Answered,
    };
    let all = exchanges.len() == heard.len() && exchanges.iter().zip(heard).all(is_right);
    (!all).then(|| {
        let statuses: Vec<_> = exchanges.iter().map(|it| it.status).collect();
        format!("of {statuses:?} was told {heard:?}")
    })
}

fn forge(provider: Provider, port: u16, authority: String, heard: Arc<Mutex<Vec<Ended>>>) -> Forge {
    let path = match provider {
        Provider::GitHub | Provider::Gitea => "acme/shop",
        Provider::GitLab => "acme/web/shop",
        Provider::BitbucketServer => "git/projects/ACME/repos/shop",
    };
    let address = Address::parse(provider, &format!("https://{HOST}:{port}/{path}"));
    let rules = Rules {
        allow: vec!["127.0.0.0/8".parse().unwrap()],
        ..Rules::default()
    };
    let way = Way {
        egress: Egress::with(rules, Limits::default(), Arc::new(Here)).unwrap(),
        authorities: Some(authority.into_bytes()),
        namespace: "apps".to_owned(),
        told: Some(Arc::new(move |host, told| {
            assert!(host.starts_with(HOST), "{host}");
            heard.lock().unwrap().push(told.ended);
        })),
        pacing: Pacing::default(),
    };
    let token = Token::new(TOKEN).unwrap();
    Forge::new(address.unwrap(), Access { way, token })
}

async fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    answer: impl Fn(&str, &[u8]) -> Vec<u8> + Sync,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let Ok(mut stream) = acceptor.accept(stream).await else {
            continue;
        };
        if let Some((head, body)) = read(&mut stream).await {
            let _ = stream.write_all(&answer(&head, &body)).await;
            let _ = stream.shutdown().await;
        }
    }
}

/// The head and the body of a request.
async fn read(stream: &mut TlsStream<TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
            let length = header(&head, "content-length")
                .map_or(Ok(0), str::parse)
                .ok()?;
            let body = bytes.get(end + 4..end + 4 + length);
            if let Some(body) = body {
                return Some((head, body.to_vec()));
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "));
    lines
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

impl Contract {
    /// The reply to a request, if it is the next one; else a reply that no forge has.
    fn next(&mut self, head: &str, body: &[u8]) -> Vec<u8> {
        let line = head
            .lines()
            .next()
            .unwrap_or_default()
            .trim_end_matches(" HTTP/1.1");
        let wrong = match self.left.front() {
            None => Some(format!("{line} came, and nothing more was to come")),
            Some(next) => self.differs(next, line, head, body),
        };
        match (wrong, self.left.pop_front()) {
            (None, Some(next)) => reply(&next),
            (wrong, _) => {
                self.left.clear();
                self.wrong = self.wrong.take().or(wrong);
                b"HTTP/1.1 599 X\r\ncontent-length: 0\r\n\r\n".to_vec()
            }
        }
    }

    fn differs(&self, next: &Exchange, line: &str, head: &str, body: &[u8]) -> Option<String> {
        if line != next.request {
            return Some(format!("{line} came instead of {}", next.request));
        }
        let (expected, came) = (self.headers(next), headers(head));
        if came != expected {
            return Some(format!("{line}: {came:?} came instead of {expected:?}"));
        }
        let text = String::from_utf8_lossy(body);
        let same = match (&next.body, &next.form) {
            (Some(json), _) => {
                let expected: Value = serde_json::from_str(json).unwrap();
                serde_json::from_slice::<Value>(body).is_ok_and(|came| came == expected)
            }
            (None, Some(form)) => text.replace('\r', "") == *form,
            (None, None) => match &next.git {
                Some(git) => body.starts_with(git.as_bytes()),
                None => body.is_empty(),
            },
        };
        let expected = next.body.as_ref().or(next.form.as_ref());
        let expected = expected.or(next.git.as_ref());
        (!same).then(|| format!("{line}: {text} came instead of {expected:?}"))
    }

    /// The headers that a request has to have, but for those of every HTTP client.
    fn headers(&self, next: &Exchange) -> Vec<String> {
        if next.request.contains("git-") {
            return self.headers_of_git(next);
        }
        let mut all = match self.provider {
            Provider::GitHub => vec![
                "accept: application/vnd.github+json".to_owned(),
                "x-github-api-version: 2022-11-28".to_owned(),
            ],
            Provider::GitLab | Provider::Gitea => vec!["accept: application/json".to_owned()],
            Provider::BitbucketServer => vec![
                "accept: application/json".to_owned(),
                "x-atlassian-token: no-check".to_owned(),
            ],
        };
        all.push(format!("authorization: Bearer {TOKEN}"));
        match (&next.body, &next.form) {
            (Some(_), _) => all.push("content-type: application/json".to_owned()),
            (None, Some(_)) => {
                all.push("content-type: multipart/form-data; boundary=sluice-part-0".to_owned());
            }
            (None, None) => {}
        }
        all.sort();
        all
    }
}

impl Contract {
    /// The same of a request of Git.
    fn headers_of_git(&self, next: &Exchange) -> Vec<String> {
        let user = match self.provider {
            Provider::GitHub => Some("x-access-token"),
            Provider::GitLab => Some("oauth2"),
            Provider::Gitea => Some("sluice"),
            Provider::BitbucketServer => None,
        };
        let authorization = match user {
            Some(user) => format!(
                "Basic {}",
                BASE64_STANDARD.encode(format!("{user}:{TOKEN}"))
            ),
            None => format!("Bearer {TOKEN}"),
        };
        let mut all = vec![
            "accept: */*".to_owned(),
            format!("authorization: {authorization}"),
        ];
        if next.git.is_some() {
            let service = next.request.rsplit('/').next().unwrap_or_default();
            all.push(format!("content-type: application/x-{service}-request"));
        }
        all.push("git-protocol: version=2".to_owned());
        all
    }
}

fn headers(head: &str) -> Vec<String> {
    let lines = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "));
    let lines = lines.map(|(name, value)| (name.to_ascii_lowercase(), value));
    let of_every_client = ["host", "user-agent", "content-length"];
    let mut kept: Vec<_> = lines
        .filter(|(name, _)| !of_every_client.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    kept.sort();
    kept
}

fn reply(next: &Exchange) -> Vec<u8> {
    let body = [next.reply.as_bytes(), &vec![b' '; next.padding]].concat();
    let length = body.len() + usize::from(next.cut_off);
    let mut head = format!("HTTP/1.1 {} X\r\ncontent-length: {length}\r\n", next.status);
    for line in &next.headers {
        head += &format!("{line}\r\n");
    }
    [head.as_bytes(), b"\r\n", &body].concat()
}
