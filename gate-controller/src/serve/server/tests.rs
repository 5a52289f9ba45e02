use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::StatusCode;
use axum::routing::get;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;

use super::super::tls::tests::Folder;
use super::*;

const DEADLINE: Duration = Duration::from_secs(10);

/// A server with bounds of one's choice.
struct Served {
    at: SocketAddr,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl Served {
    async fn new(router: Router, bounds: Bounds, certificates: Option<Arc<Certificates>>) -> Self {
        let shutdown = CancellationToken::new();
        let tasks = TaskTracker::new();
        let server = Server {
            router,
            certificates,
            bounds,
            shutdown: shutdown.clone(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        server.start(listener, &tasks);
        Self {
            at,
            tasks,
            shutdown,
        }
    }

    async fn plain(bounds: Bounds) -> Self {
        let router = Router::new().route("/", get(async || "hello"));
        Self::new(router, bounds, None).await
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.at).await.unwrap()
    }

    async fn stopped(self) {
        self.shutdown.cancel();
        self.tasks.close();
        timeout(DEADLINE, self.tasks.wait()).await.unwrap();
    }
}

/// Everything that comes until the other side closes.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut text = String::new();
    // A reset after the last byte is an end as well.
    let _ = timeout(DEADLINE, stream.read_to_string(&mut text))
        .await
        .expect("it stays open");
    text
}

async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), headers: &str) -> String {
    let request =
        format!("GET / HTTP/1.1\r\nHost: localhost\r\n{headers}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    rest(stream).await
}

fn patience(millis: u64) -> Bounds {
    Bounds {
        patience: Duration::from_millis(millis),
        ..Bounds::default()
    }
}

#[tokio::test]
async fn anyone_who_asks_is_answered() {
    let served = Served::plain(Bounds::default()).await;
    let answer = ask(&mut served.connect().await, "").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("hello"), "{answer}");
    served.stopped().await;
}

#[tokio::test]
async fn anyone_who_says_nothing_or_stops_midway_is_let_go() {
    let served = Served::plain(patience(50)).await;
    for said in ["", "GET / HTTP/1.1\r\nHost: loc"] {
        let mut stream = served.connect().await;
        stream.write_all(said.as_bytes()).await.unwrap();
        let answer = rest(&mut stream).await;
        assert!(!answer.contains("200 OK"), "{answer}");
    }
    // Between two requests as well.
    let mut stream = served.connect().await;
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).await.unwrap();
    assert!(rest(&mut stream).await.ends_with("hello"));
}

#[tokio::test]
async fn headers_are_bounded() {
    let served = Served::plain(Bounds::default()).await;
    let many = "X-Header: value\r\n".repeat(HEADERS + 1);
    let long = format!("X-Header: {}\r\n", "x".repeat(HEADER_BYTES));
    for headers in [many, long] {
        let answer = ask(&mut served.connect().await, &headers).await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }
    let token = format!("Authorization: Bearer {}\r\n", "x".repeat(HEADER_BYTES / 2));
    let answer = ask(&mut served.connect().await, &token).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

#[tokio::test]
async fn one_address_does_not_take_every_connection() {
    let bounds = Bounds {
        each: 1,
        ..Bounds::default()
    };
    let served = Served::plain(bounds).await;
    let mut first = served.connect().await;
    // It is served, and so is counted.
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    first.write_all(request).await.unwrap();
    first.read_exact(&mut [0]).await.unwrap();
    let mut second = served.connect().await;
    assert_eq!(rest(&mut second).await, "");
    // From another address of this machine.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = socket.connect(served.at).await.unwrap();
    assert!(ask(&mut other, "").await.ends_with("hello"));
    drop(first);
    let again = async {
        while !ask_if_served(&served).await {
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, again).await.unwrap();
}

/// Whether a connection is taken, and answered.
async fn ask_if_served(served: &Served) -> bool {
    let mut stream = served.connect().await;
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.is_ok() && rest(&mut stream).await.ends_with("hello")
}

#[tokio::test]
async fn so_many_connections_and_no_more() {
    let bounds = Bounds {
        connections: 1,
        ..Bounds::default()
    };
    let served = Served::plain(bounds).await;
    let mut first = served.connect().await;
    // It is served, and so has the place.
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    first.write_all(request).await.unwrap();
    let mut byte = [0];
    first.read_exact(&mut byte).await.unwrap();
    let mut second = served.connect().await;
    second.write_all(request).await.unwrap();
    let waiting = timeout(Duration::from_millis(50), second.read_exact(&mut byte));
    assert!(waiting.await.is_err(), "two were served at once");
    drop(first);
    let answered = timeout(DEADLINE, second.read_exact(&mut byte));
    answered.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_connection_ends_when_it_is_old() {
    let bounds = Bounds {
        age: Duration::from_millis(50),
        ..Bounds::default()
    };
    let served = Served::plain(bounds).await;
    let mut stream = served.connect().await;
    assert_eq!(rest(&mut stream).await, "");
}

/// A route that answers on a signal.
fn slow() -> (Router, Arc<Notify>, Arc<AtomicBool>) {
    let (told, asked) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (notify, note) = (Arc::clone(&told), Arc::clone(&asked));
    let answer = move || async move {
        note.store(true, Ordering::SeqCst);
        notify.notified().await;
        StatusCode::OK
    };
    (Router::new().route("/", get(answer)), told, asked)
}

#[tokio::test]
async fn what_is_under_way_is_answered_before_the_end() {
    let (router, told, asked) = slow();
    let served = Served::new(router, Bounds::default(), None).await;
    let mut idle = served.connect().await;
    let mut stream = served.connect().await;
    let asking = tokio::spawn(async move { ask(&mut stream, "").await });
    let begun = async {
        while !asked.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, begun).await.unwrap();
    served.shutdown.cancel();
    assert_eq!(rest(&mut idle).await, "");
    assert!(!asking.is_finished());
    told.notify_one();
    let answer = asking.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let at = served.at;
    served.stopped().await;
    assert!(TcpStream::connect(at).await.is_err(), "it still listens");
}

#[tokio::test]
async fn what_never_ends_does_not_hold_up_the_end() {
    let (router, _, asked) = slow();
    let bounds = Bounds {
        grace: Duration::from_millis(50),
        ..Bounds::default()
    };
    let served = Served::new(router, bounds, None).await;
    let mut stream = served.connect().await;
    let asking = tokio::spawn(async move { ask(&mut stream, "").await });
    let begun = async {
        while !asked.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, begun).await.unwrap();
    served.stopped().await;
    assert_eq!(asking.await.unwrap(), "");
}

/// Asks over TLS, of a server that is known by this certificate and no other.
async fn ask_known(served: &Served, by: &CertificateDer<'static>) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(by.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, served.connect().await).await?;
    Ok(ask(&mut stream, "").await)
}

#[tokio::test]
async fn a_new_certificate_is_shown_to_the_next_one() {
    let folder = Folder::new();
    let first = folder.renew();
    let certificates = Arc::new(folder.read().await.unwrap());
    let router = Router::new().route("/", get(async || "hello"));
    let known_by = Some(Arc::clone(&certificates));
    let served = Served::new(router, Bounds::default(), known_by).await;
    let following = tokio::spawn({
        let certificates = Arc::clone(&certificates);
        async move { certificates.follow(Duration::from_millis(1)).await }
    });
    assert!(ask_known(&served, &first).await.unwrap().ends_with("hello"));

    let second = folder.renew();
    let seen = async {
        while ask_known(&served, &second).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, seen).await.unwrap();
    assert!(ask_known(&served, &first).await.is_err());
    following.abort();
    served.stopped().await;
}

#[tokio::test]
async fn anyone_who_does_not_speak_tls_is_let_go() {
    let folder = Folder::new();
    folder.renew();
    let certificates = Arc::new(folder.read().await.unwrap());
    let served = Served::new(Router::new(), patience(50), Some(certificates)).await;
    let answer = ask(&mut served.connect().await, "").await;
    assert!(!answer.contains("HTTP/1.1"), "{answer}");
    let mut silent = served.connect().await;
    assert_eq!(rest(&mut silent).await, "");
}

#[tokio::test]
async fn metrics_and_health_are_bounded_too() {
    let shutdown = CancellationToken::new();
    let here = "127.0.0.1:0".parse().unwrap();
    let health = crate::serve::health(|| Ok(()));
    let at = crate::serve::serve(here, health, shutdown.clone());
    let at = at.await.unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut held = Vec::new();
    for _ in 0..FEW_CONNECTIONS / 4 {
        let mut stream = TcpStream::connect(at).await.unwrap();
        stream.write_all(request).await.unwrap();
        stream.read_exact(&mut [0]).await.unwrap();
        held.push(stream);
    }
    let mut more = TcpStream::connect(at).await.unwrap();
    assert_eq!(rest(&mut more).await, "");
    shutdown.cancel();
}
