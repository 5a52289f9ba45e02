//! Requests with a query, credentials and a time of their own, over https and over http.

use rstest::rstest;
use tokio::time::timeout;

use super::*;

async fn plain(reply: Reply) -> TestServer {
    TestServer::without_tls(reply).await
}

async fn ask(
    request: &Request<'_>,
    wants_body: impl Fn(u16) -> bool,
) -> Result<super::super::Reply, EgressError> {
    to_loopback(Limits::default())
        .ask(request, wants_body)
        .await
}

#[rstest]
#[case(200, true, "{}")]
#[case(503, true, "{}")]
#[case(302, true, "{}")]
#[case(503, false, "")]
#[tokio::test]
async fn every_status_is_handed_back_with_its_body_where_that_is_wanted(
    #[case] status: u16,
    #[case] wanted: bool,
    #[case] body: &str,
) {
    let server = served(Reply::status(status, "", b"{}")).await;
    let url = server.url(HOST);
    let request = Request {
        authorities: Some(server.authority.as_bytes()),
        ..Request::to(&url)
    };
    let reply = ask(&request, |_| wanted).await.unwrap();
    assert_eq!((reply.status, &*reply.body), (status, body.as_bytes()));
}

#[tokio::test]
async fn a_body_that_nobody_wants_is_not_read() {
    let server = served(Reply::Endless).await;
    let url = server.url(HOST);
    let request = Request {
        authorities: Some(server.authority.as_bytes()),
        ..Request::to(&url)
    };
    let reply = ask(&request, |_| false).await.unwrap();
    assert_eq!((reply.status, reply.body.len()), (200, 0));
    let error = ask(&request, |_| true).await.unwrap_err();
    assert_eq!(error, EgressError::TooLong(1 << 20));
}

/// What has come of it is the reply, also where more does not come for long.
#[tokio::test]
async fn a_body_that_is_sifted_may_be_cut() {
    let begun = b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nkeep drop".to_vec();
    let keep = |body: &mut Vec<u8>| body.truncate(4);
    let sieve = |most, time| Sieve {
        most,
        time: Duration::from_millis(time),
        keep: &keep,
    };
    for (reply, sieve, body) in [
        (Reply::Endless, sieve(1 << 20, 60_000), None),
        (Reply::Stall(begun), sieve(1 << 20, 200), Some("keep")),
        (Reply::ok("keep drop"), sieve(8, 60_000), Some("")),
    ] {
        let server = plain(reply).await;
        let url = server.address("http", HOST, "/");
        let request = Request {
            sieve: Some(sieve),
            ..http_too(&url)
        };
        let reply = ask(&request, |_| true).await.unwrap();
        assert!(reply.is_cut);
        let expected = body.map_or(4, str::len);
        assert_eq!(reply.body.len(), expected);
        assert!(body.is_none_or(|body| *reply.body == *body.as_bytes()));
        assert!(
            server.written() < 16 << 20,
            "{} bytes were taken",
            server.written()
        );
    }
    let server = plain(Reply::ok("keep drop")).await;
    let url = server.address("http", HOST, "/");
    let request = Request {
        sieve: Some(sieve(9, 60_000)),
        ..http_too(&url)
    };
    let reply = ask(&request, |_| true).await.unwrap();
    assert_eq!((&*reply.body, reply.is_cut), (b"keep".as_slice(), false));
}

/// Three namespaces fill the turns of bodies that wait, and a fourth still has its metrics read.
#[tokio::test]
async fn bodies_that_wait_to_be_read_keep_no_turn_from_those_that_are_read_at_once() {
    let server = plain(Reply::ok("{}")).await;
    let egress = to_loopback(Limits::default());
    let url = server.address("http", HOST, "/");
    let ask = async |namespace: &str, body_waits: bool| {
        let request = Request {
            namespace,
            body_waits,
            ..http_too(&url)
        };
        let asked = egress.ask(&request, |_| true);
        timeout(Duration::from_millis(500), asked).await
    };
    let mut held = Vec::new();
    for namespace in ["one", "two", "three"] {
        for _ in 0..2 {
            held.push(ask(namespace, true).await.unwrap().unwrap());
        }
        assert!(ask(namespace, true).await.is_err(), "it has its share");
    }
    assert!(ask("other", true).await.is_err(), "all are held");
    let read = ask("other", false).await.unwrap().unwrap();
    assert_eq!(&*read.body, b"{}");
    drop(held);
    assert!(ask("other", true).await.is_ok());
}

#[tokio::test]
async fn a_query_is_added_and_escaped() {
    let server = plain(Reply::ok("")).await;
    let url = server.address("http", HOST, "/api/v1/query");
    let query = [("query", "sum(up{job=\"a&b\"}) > 0 # ü")];
    let request = Request {
        query: &query,
        ..http_too(&url)
    };
    ask(&request, |_| true).await.unwrap();
    let heads = server.heads().await;
    let expected =
        "GET /api/v1/query?query=sum%28up%7Bjob%3D%22a%26b%22%7D%29+%3E+0+%23+%C3%BC HTTP/1.1\r\n";
    assert!(heads[0].starts_with(expected), "{heads:?}");
}

#[rstest]
#[case(Credentials::bearer("t0ken"), "authorization: bearer t0ken")]
#[case(
    Credentials::basic("me", "pass:word"),
    "authorization: basic bwu6cgfzczp3b3jk"
)]
#[tokio::test]
async fn credentials_are_sent(#[case] credentials: Option<Credentials>, #[case] expected: &str) {
    let server = served(Reply::ok("")).await;
    let url = server.url(HOST);
    let request = Request {
        authorities: Some(server.authority.as_bytes()),
        credentials: credentials.as_ref(),
        ..Request::to(&url)
    };
    ask(&request, |_| true).await.unwrap();
    let heads = server.heads().await[0].to_lowercase();
    assert!(heads.contains(&format!("{expected}\r\n")), "{heads}");
}

#[tokio::test]
async fn credentials_are_never_sent_where_others_can_read_them() {
    let server = plain(Reply::ok("")).await;
    let credentials = Credentials::bearer("t0ken").unwrap();
    let url = server.address("http", HOST, "/");
    let request = Request {
        credentials: Some(&credentials),
        ..http_too(&url)
    };
    let error = ask(&request, |_| true).await.unwrap_err();
    assert_eq!(error, EgressError::SecretOverHttp);
    assert_eq!(server.requests(), 0);
}

#[rstest]
#[case("")]
#[case("two words")]
#[case("line\nbreak")]
#[case("ümlaut")]
fn what_no_header_may_hold_is_no_token(#[case] token: &str) {
    assert!(Credentials::bearer(token).is_none());
}

#[test]
fn secrets_are_not_shown() {
    assert!(Credentials::basic("a:b", "c").is_none());
    let credentials = [
        Credentials::bearer("s3cr3t"),
        Credentials::basic("me", "s3cr3t"),
    ];
    assert!(!format!("{credentials:?}").contains("s3cr3t"));
    let reply = crate::Reply::new(200, b"s3cr3t".to_vec());
    assert_eq!(format!("{reply:?}"), "Reply { status: 200, 6 bytes }");
}

#[rstest]
#[case("ftp://calendar.test/", EgressError::NotHttp)]
#[case("calendar.test", EgressError::NotHttp)]
#[case("http://me:secret@calendar.test/", EgressError::NamesAUser)]
#[case("http://nowhere.test/", EgressError::Unresolved)]
#[tokio::test]
async fn an_address_that_cannot_be_used_is_refused_where_http_is_allowed(
    #[case] url: &str,
    #[case] expected: EgressError,
) {
    let error = ask(&http_too(url), |_| true).await.unwrap_err();
    assert_eq!(error, expected);
}

#[tokio::test]
async fn http_is_for_those_who_say_so() {
    let server = plain(Reply::ok("text")).await;
    let url = server.address("http", HOST, "/");
    assert_eq!(
        ask(&http_too(&url), |_| true).await.unwrap().body[..],
        *b"text"
    );
    let error = ask(&Request::to(&url), |_| true).await.unwrap_err();
    assert_eq!((error, server.requests()), (EgressError::NotHttps, 1));
}

/// Over http the same rules hold, whichever way an address is written.
#[rstest]
#[case("127.0.0.1", Class::Loopback)]
#[case("2130706433", Class::Loopback)]
#[case("[::1]", Class::Loopback)]
#[case("0.0.0.0", Class::Unspecified)]
#[case("169.254.169.254", Class::LinkLocal)]
#[case("[fd00:ec2::254]", Class::Metadata)]
#[case("224.0.0.1", Class::Multicast)]
#[case("255.255.255.255", Class::Broadcast)]
#[case("10.96.0.1", Class::ApiServer)]
#[tokio::test]
async fn http_leads_nowhere_that_https_does_not(#[case] host: &str, #[case] class: Class) {
    let literal = egress(rules(&[], &["10.96.0.1"]), Fixed::default());
    let url = format!("http://{host}/latest/meta-data/");
    let error = literal.ask(&http_too(&url), |_| true).await.unwrap_err();
    assert_eq!(error, EgressError::Refused(class));
    if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
        let named = Fixed([(HOST, vec![address])].into());
        let named = egress(rules(&[], &["10.96.0.1"]), named);
        let url = format!("http://{HOST}/");
        let error = named.ask(&http_too(&url), |_| true).await.unwrap_err();
        assert_eq!(error, EgressError::Refused(class));
    }
}

#[tokio::test]
async fn a_redirect_leads_nowhere() {
    let other = plain(Reply::ok("from elsewhere")).await;
    let head = format!("location: {}\r\n", other.address("http", HOST, "/"));
    let server = plain(Reply::status(307, &head, b"")).await;
    let url = server.address("http", HOST, "/");
    let reply = ask(&http_too(&url), |_| true).await.unwrap();
    assert_eq!((reply.status, other.requests()), (307, 0));
}

#[tokio::test]
async fn anyone_who_asks_may_wait_for_less_than_everybody() {
    let server = plain(Reply::Stall(Vec::new())).await;
    let url = server.address("http", HOST, "/");
    let waiting = |time| Request {
        time: Some(time),
        ..http_too(&url)
    };
    let short = Duration::from_millis(200);
    let error = ask(&waiting(short), |_| true).await.unwrap_err();
    assert_eq!(error, EgressError::TimedOut(short));
    let limits = Limits {
        time: short,
        ..Limits::default()
    };
    let long = Duration::from_secs(60);
    let error = to_loopback(limits).ask(&waiting(long), |_| true).await;
    assert_eq!(error.unwrap_err(), EgressError::TimedOut(short));
}

#[test]
fn messages_name_the_scheme() {
    assert_eq!(
        shown("http://status.test:8080/a?key=1"),
        "http://status.test"
    );
}

#[tokio::test]
async fn what_has_not_changed_is_not_sent_again() {
    let server = plain(Reply::status(304, "etag: \"v1\"\r\n", b"")).await;
    let url = server.address("http", HOST, "/");
    let request = Request {
        headers: &[("If-None-Match", "\"v1\"")],
        ..http_too(&url)
    };
    let reply = ask(&request, |_| true).await.unwrap();
    assert_eq!((reply.status, reply.header("etag")), (304, Some("\"v1\"")));
    let head = server.heads().await[0].to_lowercase();
    assert!(head.contains("if-none-match: \"v1\"\r\n"), "{head}");
}

#[tokio::test]
async fn a_question_may_be_as_long_as_a_body() {
    let server = plain(Reply::ok("refs")).await;
    let url = server.address("http", HOST, "/git-upload-pack");
    let content = Content {
        media_type: "application/x-git-upload-pack-request",
        body: b"0000",
    };
    let request = Request {
        ask: Repeatable::Query(content),
        ..http_too(&url)
    };
    assert_eq!(&*ask(&request, |_| true).await.unwrap().body, b"refs");
    let head = server.heads().await[0].to_lowercase();
    assert!(
        head.starts_with("post /git-upload-pack ") && head.ends_with("\r\n\r\n0000"),
        "{head}"
    );
}

#[rstest]
#[case("Authorization", "Bearer t0ken")]
#[case("host", "other.test")]
#[case("Content-Length", "1")]
#[case("two words", "a")]
#[case("x-key", "line\nbreak")]
#[tokio::test]
async fn a_header_that_is_not_the_callers_is_refused(#[case] name: &str, #[case] value: &str) {
    let server = plain(Reply::ok("")).await;
    let url = server.address("http", HOST, "/");
    let request = Request {
        headers: &[(name, value)],
        ..http_too(&url)
    };
    let error = ask(&request, |_| true).await.unwrap_err();
    assert_eq!(error, EgressError::Header(name.to_owned()));
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_text_with_a_secret_is_known() {
    let token = Credentials::bearer("t0ken").unwrap();
    let basic = Credentials::basic("bot", "sesame").unwrap();
    let nothing = Credentials::basic("bot", "").unwrap();
    assert!(token.is_in("no such token: t0ken") && !token.is_in("Bearer"));
    assert!(basic.is_in("open sesame") && !basic.is_in("bot"));
    assert!(!nothing.is_in("anything"));
}
