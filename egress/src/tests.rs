//! Requests to a real https server on loopback, and what comes of them.

mod asking;
mod download;
mod once;
mod refused;

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use rstest::rstest;
use tokio::sync::Notify;

use super::test_server::{Certificate, Reply, TestServer};
use super::*;

const HOST: &str = "calendar.test";

/// Names that resolve as a test has it.
#[derive(Default)]
struct Fixed(HashMap<&'static str, Vec<IpAddr>>);

impl Fixed {
    fn one(name: &'static str, addresses: &[&str]) -> Self {
        let addresses = addresses
            .iter()
            .map(|address| address.parse().unwrap())
            .collect();
        Self([(name, addresses)].into())
    }
}

impl Names for Fixed {
    fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let found = self.0.get(host).cloned();
        async move { found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)) }.boxed()
    }
}

fn rules(allow: &[&str], api_server: &[&str]) -> Rules {
    Rules {
        allow: allow.iter().map(|range| range.parse().unwrap()).collect(),
        api_server: api_server.iter().map(|host| (*host).to_owned()).collect(),
        ..Rules::default()
    }
}

fn egress(rules: Rules, names: Fixed) -> Egress {
    Egress::with(rules, Limits::default(), Arc::new(names)).unwrap()
}

/// A way out for which [`HOST`] is this machine, and allowed.
fn to_loopback(limits: Limits) -> Egress {
    let names = Fixed::one(HOST, &["127.0.0.1"]);
    Egress::with(rules(&["127.0.0.0/8"], &[]), limits, Arc::new(names)).unwrap()
}

async fn served(reply: Reply) -> TestServer {
    TestServer::start(Certificate::For(HOST), reply).await
}

fn http_too(url: &str) -> Request<'_> {
    Request {
        schemes: Schemes::HttpToo,
        ..Request::to(url)
    }
}

/// A port at which nobody listens: taken, and given back.
fn free_port() -> u16 {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    taken.local_addr().unwrap().port()
}

/// So much time.
async fn pass(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}

/// The body of a reply.
async fn get(
    egress: &Egress,
    url: &str,
    authorities: Option<&[u8]>,
) -> Result<Vec<u8>, EgressError> {
    let request = Request {
        authorities,
        ..Request::to(url)
    };
    egress.get(&request).await.map(|body| body.to_vec())
}

async fn read(egress: &Egress, server: &TestServer) -> Result<Vec<u8>, EgressError> {
    get(egress, &server.url(HOST), Some(server.authority.as_bytes())).await
}

#[tokio::test]
async fn a_reply_is_read_from_a_server_that_is_trusted() {
    let server = served(Reply::ok("BEGIN:VCALENDAR")).await;
    let egress = to_loopback(Limits::default());
    assert_eq!(read(&egress, &server).await.unwrap(), b"BEGIN:VCALENDAR");
    let heads = server.heads().await.join("\n").to_lowercase();
    assert!(
        heads.starts_with("get /holidays.ics http/1.1\r\n"),
        "{heads}"
    );
    assert!(
        heads.contains("user-agent: sluice-gate-controller/"),
        "{heads}"
    );
}

#[rstest]
#[case("http://calendar.test/", EgressError::NotHttps)]
#[case("file:///etc/passwd", EgressError::NotHttps)]
#[case("calendar.test", EgressError::NotHttps)]
#[case("https://", EgressError::NotHttps)]
#[case("https://me@calendar.test/", EgressError::NamesAUser)]
#[case("https://me:secret@calendar.test/", EgressError::NamesAUser)]
#[case("https://nowhere.test/", EgressError::Unresolved)]
#[tokio::test]
async fn an_address_that_cannot_be_used_is_refused(
    #[case] url: &str,
    #[case] expected: EgressError,
) {
    let egress = to_loopback(Limits::default());
    assert_eq!(get(&egress, url, None).await, Err(expected));
}

#[rstest]
#[case(301)]
#[case(302)]
#[case(307)]
#[tokio::test]
async fn a_redirect_is_not_followed(#[case] status: u16) {
    let other = served(Reply::ok("from elsewhere")).await;
    let head = format!("location: {}\r\n", other.url(HOST));
    let server = served(Reply::status(status, &head, b"")).await;
    let error = read(&to_loopback(Limits::default()), &server)
        .await
        .unwrap_err();
    assert_eq!(error, EgressError::Status(status));
    let said = error.to_string();
    assert!(
        said.contains("redirects are not followed") && !said.contains(HOST),
        "{said}"
    );
    assert_eq!(other.requests(), 0);
}

#[rstest]
#[case(204)]
#[case(404)]
#[case(500)]
#[tokio::test]
async fn a_status_is_told_and_nothing_of_the_reply(#[case] status: u16) {
    let server = served(Reply::status(status, "", b"")).await;
    let error = read(&to_loopback(Limits::default()), &server)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), format!("status {status}"));
}

#[tokio::test]
async fn a_body_that_says_it_is_too_long_is_not_read() {
    let limits = Limits {
        body: 1000,
        ..Limits::default()
    };
    let server = served(Reply::ok(vec![b'x'; 1001])).await;
    assert_eq!(
        read(&to_loopback(limits), &server).await,
        Err(EgressError::TooLong(1000))
    );
    server.replies(Reply::ok(vec![b'x'; 1000])).await;
    assert_eq!(
        read(&to_loopback(limits), &server).await.unwrap().len(),
        1000
    );
}

#[tokio::test]
async fn a_body_without_an_end_is_read_up_to_the_limit() {
    let server = served(Reply::Endless).await;
    let error = read(&to_loopback(Limits::default()), &server)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "the reply is longer than 1 MiB");
    // What was under way in sockets and buffers besides, and no more.
    assert!(
        server.written() < 16 << 20,
        "{} bytes were taken",
        server.written()
    );
}

#[rstest]
#[case::no_head(b"")]
#[case::half_a_head(b"HTTP/1.1 200 OK\r\ncontent-le")]
#[case::half_a_body(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nBEGIN")]
#[tokio::test]
async fn a_server_that_stalls_is_given_up(#[case] sent: &[u8]) {
    let limits = Limits {
        time: Duration::from_millis(300),
        ..Limits::default()
    };
    let server = served(Reply::Stall(sent.to_vec())).await;
    let error = read(&to_loopback(limits), &server).await.unwrap_err();
    assert_eq!(error.to_string(), "timed out after 0.3s");
}

#[tokio::test]
async fn a_name_that_nobody_resolves_in_time_is_given_up() {
    struct Silent;
    impl Names for Silent {
        fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            futures::future::pending().boxed()
        }
    }
    let limits = Limits {
        time: Duration::from_millis(100),
        ..Limits::default()
    };
    let by_name = Egress::with(rules(&[], &[]), limits, Arc::new(Silent)).unwrap();
    let by_literal = Egress::with(rules(&[], &["api.internal"]), limits, Arc::new(Silent)).unwrap();
    for (egress, url) in [
        (by_name, "https://calendar.test/"),
        (by_literal, "https://10.1.2.3/"),
    ] {
        let outcome = tokio::time::timeout(Duration::from_secs(10), get(&egress, url, None)).await;
        assert_eq!(
            outcome,
            Ok(Err(EgressError::TimedOut(limits.time))),
            "{url}"
        );
    }
}

#[tokio::test]
async fn a_reply_that_breaks_off_is_no_reply() {
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nBEGIN".to_vec();
    let egress = to_loopback(Limits::default());
    for raw in [cut, b"no http at all\r\n\r\n".to_vec()] {
        let server = served(Reply::Raw(raw)).await;
        assert_eq!(read(&egress, &server).await, Err(EgressError::Broken));
    }
}

#[tokio::test]
async fn certificates_are_judged() {
    let egress = to_loopback(Limits::default());
    let good = served(Reply::ok("text")).await;
    let other = served(Reply::ok("text")).await;
    let expired = TestServer::start(Certificate::ExpiredFor(HOST), Reply::ok("text")).await;
    let misnamed = TestServer::start(Certificate::For("other.test"), Reply::ok("text")).await;
    let plain = TestServer::without_tls(Reply::ok("text")).await;

    let public = get(&egress, &good.url(HOST), None).await;
    assert_eq!(public, Err(EgressError::CertificateNotTrusted));
    let stranger = get(&egress, &good.url(HOST), Some(other.authority.as_bytes())).await;
    assert_eq!(stranger, Err(EgressError::CertificateNotSigned));
    assert_eq!(
        read(&egress, &expired).await,
        Err(EgressError::CertificateExpired)
    );
    assert_eq!(
        read(&egress, &misnamed).await,
        Err(EgressError::CertificateForAnother)
    );
    let no_tls = get(&egress, &plain.url(HOST), Some(good.authority.as_bytes())).await;
    assert_eq!(no_tls, Err(EgressError::Tls));
    let both = format!("{}{}", other.authority, good.authority);
    assert!(
        get(&egress, &good.url(HOST), Some(both.as_bytes()))
            .await
            .is_ok()
    );
}

/// `openssl req -x509` makes the certificate of an authority unless it has other options.
#[tokio::test]
async fn a_certificate_that_signs_itself_is_told_from_one_that_nobody_has_signed() {
    let egress = to_loopback(Limits::default());
    let authority = TestServer::start(Certificate::OfAuthority(HOST), Reply::ok("text")).await;
    for authorities in [None, Some(authority.authority.as_bytes())] {
        let outcome = get(&egress, &authority.url(HOST), authorities).await;
        let error = outcome.unwrap_err();
        assert_eq!(error, EgressError::CertificateOfAuthority);
        let said = error.to_string();
        assert!(
            said.contains("CA:FALSE") && !said.contains("name a Secret"),
            "{said}"
        );
    }
    let own = TestServer::start(Certificate::SelfSigned(HOST), Reply::ok("text")).await;
    assert_eq!(read(&egress, &own).await.unwrap(), b"text");
}

#[rstest]
#[case("")]
#[case("no certificate")]
#[case("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")]
#[case("-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n")]
#[tokio::test]
async fn authorities_that_are_none_are_refused(#[case] pem: &str) {
    let egress = to_loopback(Limits::default());
    let outcome = get(&egress, "https://calendar.test/", Some(pem.as_bytes())).await;
    assert_eq!(outcome, Err(EgressError::NoCertificate));
}

#[tokio::test]
async fn nobody_listening_is_told() {
    let egress = to_loopback(Limits::default());
    let outcome = get(&egress, &format!("https://{HOST}:{}/", free_port()), None).await;
    assert_eq!(outcome, Err(EgressError::ConnectionRefused));
}

#[tokio::test]
async fn a_slow_host_takes_no_turn_from_others() {
    let released = Arc::new(Notify::new());
    let slow = served(Reply::Held(Arc::clone(&released))).await;
    let quick = TestServer::start(Certificate::For("quick.test"), Reply::ok("text")).await;
    let mut names = Fixed::one(HOST, &["127.0.0.1"]);
    names
        .0
        .insert("quick.test", vec!["127.0.0.1".parse().unwrap()]);
    let limits = Limits {
        in_flight: 3,
        per_host: 2,
        ..Limits::default()
    };
    let egress = Egress::with(rules(&["127.0.0.0/8"], &[]), limits, Arc::new(names)).unwrap();

    let mut waiting = Box::pin(join_all((0..10).map(|_| read(&egress, &slow))));
    let url = quick.url("quick.test");
    let quickly = get(&egress, &url, Some(quick.authority.as_bytes()));
    tokio::select! {
        _ = &mut waiting => panic!("nobody has released them"),
        outcome = quickly => assert_eq!(outcome.unwrap(), b"text"),
    }
    let release = async {
        loop {
            released.notify_waiters();
            released.notify_one();
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        outcomes = waiting => assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}"),
        () = release => {}
    }
    assert_eq!(slow.requests(), 10);
}

/// Ten of them for each of a hundred hosts, of which thirty never answer: more than fill both lanes.
#[tokio::test]
async fn hosts_that_never_answer_take_no_turn_from_the_others() {
    struct Here;
    impl Names for Here {
        fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) }.boxed()
        }
    }
    let dead = TestServer::without_tls(Reply::Stall(Vec::new())).await;
    let alive = TestServer::without_tls(Reply::ok("text")).await;
    let limits = Limits {
        time: Duration::from_secs(600),
        in_flight: 64,
        slow: 32,
        per_namespace: 64,
        ..Limits::default()
    };
    let egress = Egress::with(rules(&["127.0.0.0/8"], &[]), limits, Arc::new(Here)).unwrap();
    let ask = |server: &TestServer, n: usize| {
        let url = server.address("http", &format!("host-{}.test", n / 10), "/");
        let egress = &egress;
        async move {
            egress
                .ask(&http_too(&url), |_| true)
                .await
                .unwrap()
                .body
                .to_vec()
        }
    };
    let waiting = join_all((0..300).map(|n| ask(&dead, n)));
    let answered = join_all((300..1000).map(|n| ask(&alive, n)));
    tokio::select! {
        _ = waiting => panic!("nobody answers them"),
        bodies = answered => assert!(bodies.iter().all(|body| body == b"text")),
    }
}

#[test]
fn messages_name_the_host_and_nothing_that_may_be_secret() {
    assert_eq!(
        shown("https://calendar.test:8443/private-4711/basic.ics?key=1"),
        "https://calendar.test"
    );
    assert_eq!(shown("nonsense"), "the address");
}
