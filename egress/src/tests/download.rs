//! Bodies that are read piece by piece.

use super::*;

const BOUNDS: Bounds = Bounds {
    length: 64 << 10,
    pause: Duration::from_secs(10),
};

async fn download(
    egress: &Egress,
    server: &TestServer,
    bounds: Bounds,
) -> Result<Vec<u8>, EgressError> {
    let url = server.address("http", HOST, "/bucket/a/b/c.tar.gz");
    let mut download = egress.download(&url, bounds).await?;
    let mut body = Vec::new();
    while let Some(chunk) = download.chunk().await? {
        body.extend_from_slice(chunk.as_ref());
    }
    Ok(body)
}

#[tokio::test]
async fn a_long_body_is_read_to_its_end() {
    let body = vec![7; BOUNDS.length];
    let server = TestServer::without_tls(Reply::ok(&body)).await;
    // The limits of short requests are not those of a download.
    let limits = Limits {
        body: 1,
        ..Limits::default()
    };
    let read = download(&to_loopback(limits), &server, BOUNDS).await;
    assert!(read.unwrap() == body);
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_announced_or_not() {
    let egress = to_loopback(Limits::default());
    let server = TestServer::without_tls(Reply::ok(vec![7; BOUNDS.length + 1])).await;
    let too_long = Err(EgressError::TooLong(BOUNDS.length));
    assert_eq!(download(&egress, &server, BOUNDS).await, too_long);
    server.replies(Reply::Endless).await;
    assert_eq!(download(&egress, &server, BOUNDS).await, too_long);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_no_body() {
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf".to_vec();
    let server = TestServer::without_tls(Reply::Raw(cut)).await;
    let read = download(&to_loopback(Limits::default()), &server, BOUNDS).await;
    assert_eq!(read, Err(EgressError::Broken));
}

#[rstest]
#[case::before_the_head(b"".to_vec())]
#[case::within_the_body(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf".to_vec())]
#[tokio::test]
async fn who_falls_silent_is_not_waited_for(#[case] said: Vec<u8>) {
    let pause = Duration::from_millis(50);
    let server = TestServer::without_tls(Reply::Stall(said)).await;
    let bounds = Bounds { pause, ..BOUNDS };
    let read = download(&to_loopback(Limits::default()), &server, bounds).await;
    assert_eq!(read, Err(EgressError::TimedOut(pause)));
}

#[tokio::test]
async fn the_rules_for_addresses_are_the_same() {
    let server = TestServer::without_tls(Reply::ok("body")).await;
    let names = Fixed::one(HOST, &["127.0.0.1"]);
    let strict = egress(rules(&[], &[]), names);
    let refused = download(&strict, &server, BOUNDS).await.unwrap_err();
    assert_eq!(refused, EgressError::Refused(Class::Loopback));
    let literal = server.address("http", "127.0.0.1", "/");
    let refused = strict.download(&literal, BOUNDS).await.unwrap_err();
    assert_eq!(refused, EgressError::Refused(Class::Loopback));
    assert_eq!(server.requests(), 0);

    let elsewhere = format!("location: {}\r\n", server.address("http", HOST, "/"));
    server.replies(Reply::status(302, &elsewhere, b"")).await;
    let read = download(&to_loopback(Limits::default()), &server, BOUNDS).await;
    assert_eq!(read, Err(EgressError::Status(302)));
    assert_eq!(server.requests(), 1);
}
