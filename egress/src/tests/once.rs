//! Requests that change something: no server ever sees one of them twice.

use tokio::time::Instant;

use super::*;

/// Longer than a server reads at once.
static LONG: [u8; 64 << 10] = [b'x'; 64 << 10];

fn post(body: &[u8]) -> Once<'_> {
    Once {
        method: Method::Post,
        content: Some(Content {
            media_type: "application/json",
            body,
        }),
        until: Instant::now() + Duration::from_secs(60),
    }
}

fn plain<'a>(once: Once<'a>, url: &'a str) -> Request<'a, Once<'a>> {
    Request {
        schemes: Schemes::HttpToo,
        ..Request::once(once, url)
    }
}

async fn send(egress: &Egress, once: Once<'_>, url: &str) -> Sent {
    egress.send(&plain(once, url), |_| true).await
}

/// What comes of a POST to a server that answers so, and how many requests it has seen.
async fn sent(limits: Limits, body: &[u8], reply: Reply) -> (Sent, usize) {
    let server = TestServer::without_tls(reply).await;
    let url = server.address("http", HOST, "/");
    let sent = send(&to_loopback(limits), post(body), &url).await;
    (sent, server.requests())
}

fn in_short() -> Limits {
    Limits {
        time: Duration::from_millis(300),
        ..Limits::default()
    }
}

#[rstest]
#[case(Method::Post, "POST")]
#[case(Method::Put, "PUT")]
#[case(Method::Patch, "PATCH")]
#[case(Method::Delete, "DELETE")]
#[tokio::test]
async fn method_headers_and_body_are_sent(#[case] method: Method, #[case] name: &str) {
    let server = served(Reply::status(201, "etag: \"v1\"\r\n", b"done")).await;
    let url = server.url(HOST);
    let credentials = Credentials::bearer("t0ken").unwrap();
    let request = Request {
        authorities: Some(server.authority.as_bytes()),
        credentials: Some(&credentials),
        headers: &[("X-Key", "k1")],
        ..Request::once(
            Once {
                method,
                ..post(b"{}")
            },
            &url,
        )
    };
    let egress = to_loopback(Limits::default());
    let Sent::Replied(reply) = egress.send(&request, |_| true).await else {
        panic!("it was answered");
    };
    assert_eq!((reply.status, &*reply.body), (201, &b"done"[..]));
    assert_eq!(
        (reply.header("ETag"), reply.header("x")),
        (Some("\"v1\""), None)
    );
    let seen = server.heads().await[0].to_lowercase();
    let start = format!("{} /holidays.ics http/1.1\r\n", name.to_lowercase());
    assert!(seen.starts_with(&start), "{seen}");
    for header in [
        "content-type: application/json",
        "x-key: k1",
        "authorization: bearer t0ken",
    ] {
        assert!(seen.contains(&format!("{header}\r\n")), "{seen}");
    }
    assert!(seen.ends_with("\r\n\r\n{}"), "{seen}");
}

#[rstest]
#[case::a_reset_after_the_head(&LONG, Reply::Reset, EgressError::Broken)]
#[case::no_reply(b"{}", Reply::Reset, EgressError::Broken)]
#[case::half_a_reply(b"{}", Reply::Raw(b"HTTP/1.1 201 X\r\ncontent-le".to_vec()), EgressError::Broken)]
#[case::half_a_body(
    b"{}", Reply::Raw(b"HTTP/1.1 201 X\r\ncontent-length: 9\r\n\r\nhalf".to_vec()), EgressError::Broken
)]
#[case::too_long_a_reply(b"{}", Reply::Endless, EgressError::TooLong(1 << 20))]
#[tokio::test]
async fn what_breaks_off_once_it_is_sent_is_unknown(
    #[case] body: &[u8],
    #[case] reply: Reply,
    #[case] why: EgressError,
) {
    let sent = sent(Limits::default(), body, reply).await;
    assert_eq!(sent, (Sent::Unknown(why), 1));
}

#[tokio::test]
async fn a_server_that_never_answers_leaves_it_unknown() {
    let sent = sent(in_short(), b"{}", Reply::Stall(Vec::new())).await;
    let why = EgressError::TimedOut(in_short().time);
    assert_eq!(sent, (Sent::Unknown(why), 1));
}

/// The end of its own time counts like the limit for everybody.
#[tokio::test]
async fn nobody_waits_longer_than_until() {
    let server = TestServer::without_tls(Reply::Stall(Vec::new())).await;
    let url = server.address("http", HOST, "/");
    let (egress, began) = (to_loopback(Limits::default()), Instant::now());
    let until = |millis| Once {
        until: began + Duration::from_millis(millis),
        ..post(b"{}")
    };
    let sent = send(&egress, until(200), &url).await;
    assert!(
        matches!(sent, Sent::Unknown(EgressError::TimedOut(_))),
        "{sent:?}"
    );
    let sent = send(&egress, until(200), &url).await;
    assert_eq!(sent, Sent::NotSent(EgressError::NoTurn));
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn a_connection_that_the_server_keeps_is_not_used_again() {
    let kept = b"HTTP/1.1 201 X\r\ncontent-length: 0\r\n\r\n".to_vec();
    let server = TestServer::without_tls(Reply::Keep(kept)).await;
    let url = server.address("http", HOST, "/");
    let egress = to_loopback(Limits::default());
    for requests in 1..4 {
        let sent = send(&egress, post(b"{}"), &url).await;
        assert!(matches!(sent, Sent::Replied(reply) if reply.status == 201));
        assert_eq!(server.requests(), requests);
    }
}

#[rstest]
#[case(["127.0.0.2", "127.0.0.1"])]
#[case(["127.0.0.1", "127.0.0.2"])]
#[tokio::test]
async fn an_address_that_refuses_costs_nothing_where_another_one_answers(#[case] two: [&str; 2]) {
    let server = TestServer::without_tls(Reply::ok("")).await;
    let url = server.address("http", HOST, "/");
    let egress = egress(rules(&["127.0.0.0/8"], &[]), Fixed::one(HOST, &two));
    let sent = send(&egress, post(b"{}"), &url).await;
    assert!(matches!(sent, Sent::Replied(_)), "{sent:?}");
    assert_eq!(server.requests(), 1);
}

/// As a GET it would be followed by many clients, and change something else.
#[rstest]
#[case(301)]
#[case(303)]
#[case(307)]
#[case(308)]
#[tokio::test]
async fn a_redirect_is_told_and_leads_nowhere(#[case] status: u16) {
    let other = TestServer::without_tls(Reply::ok("from elsewhere")).await;
    let location = other.address("http", "other.test", "/");
    let head = format!("location: {location}\r\n");
    let server = TestServer::without_tls(Reply::status(status, &head, b"")).await;
    let url = server.address("http", HOST, "/");
    let Sent::Replied(reply) = send(&to_loopback(Limits::default()), post(b"{}"), &url).await
    else {
        panic!("it was answered");
    };
    assert_eq!(
        (reply.status, reply.header("location")),
        (status, Some(&*location))
    );
    assert_eq!((server.requests(), other.requests()), (1, 0));
}

#[tokio::test]
async fn what_reaches_no_server_may_be_sent_again() {
    let allowed = to_loopback(in_short());
    let server = TestServer::start(Certificate::For(HOST), Reply::ok("")).await;
    let nobody = format!("http://{HOST}:{}/", free_port());
    let strict = egress(rules(&[], &[]), Fixed::one(HOST, &["127.0.0.1"]));
    for (egress, url, why) in [
        (&allowed, nobody.as_str(), EgressError::ConnectionRefused),
        (&allowed, "http://nowhere.test/", EgressError::Unresolved),
        (&allowed, "ftp://calendar.test/", EgressError::NotHttp),
        (
            &allowed,
            &server.url(HOST),
            EgressError::CertificateNotTrusted,
        ),
        (&strict, &nobody, EgressError::Refused(Class::Loopback)),
    ] {
        assert_eq!(
            send(egress, post(b"{}"), url).await,
            Sent::NotSent(why),
            "{url}"
        );
    }
    assert_eq!(server.requests(), 0);
    // A server that accepts connections and says nothing of TLS.
    let silent = TestServer::without_tls(Reply::Stall(Vec::new())).await;
    let sent = send(&allowed, post(b"{}"), &silent.url(HOST)).await;
    assert_eq!(sent, Sent::NotSent(EgressError::TimedOut(in_short().time)));
}

/// A GET that is slow is given up and begins again; a POST waits for a turn, and keeps it.
#[tokio::test]
async fn slow_servers_see_it_once_however_many_are_slow() {
    let limits = Limits {
        in_flight: 1,
        slow: 1,
        ..Limits::default()
    };
    let egress = to_loopback(limits);
    let released = Arc::new(Notify::new());
    let server = TestServer::without_tls(Reply::Held(Arc::clone(&released))).await;
    let url = server.address("http", HOST, "/");
    let asked = http_too(&url);
    let release = async {
        // Longer than any request keeps a quick turn.
        pass(Duration::from_millis(1500)).await;
        for _ in 0..1000 {
            released.notify_waiters();
            pass(Duration::from_millis(10)).await;
        }
    };
    let all = async {
        let (get, posts) = tokio::join!(
            egress.ask(&asked, |_| false),
            join_all((0..3).map(|_| send(&egress, post(b"{}"), &url)))
        );
        assert!(get.is_ok());
        assert!(
            posts.iter().all(|sent| matches!(sent, Sent::Replied(_))),
            "{posts:?}"
        );
    };
    tokio::select! {
        () = all => {}
        () = release => panic!("they were released"),
    }
    let heads = server.heads().await;
    assert_eq!(
        heads.iter().filter(|head| head.starts_with("POST")).count(),
        3
    );
}

#[tokio::test]
async fn who_gets_no_turn_in_time_has_sent_nothing() {
    let limits = Limits {
        slow: 1,
        ..Limits::default()
    };
    let egress = to_loopback(limits);
    let server = TestServer::without_tls(Reply::Stall(Vec::new())).await;
    let url = server.address("http", HOST, "/");
    let soon = Once {
        until: Instant::now() + Duration::from_millis(300),
        ..post(b"{}")
    };
    let (first, second) = (plain(post(b"{}"), &url), plain(soon, &url));
    tokio::select! {
        biased;
        sent = egress.send(&first, |_| true) => panic!("nobody answers: {sent:?}"),
        sent = egress.send(&second, |_| true) => {
            assert_eq!(sent, Sent::NotSent(EgressError::NoTurn));
        }
    }
    assert_eq!(server.requests(), 1);
}
