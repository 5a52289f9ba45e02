//! What is served, over http.

use std::net::SocketAddr;

use rstest::rstest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

use super::*;
use crate::serve::server::{Bounds, serve_at};

/// A store that is served. It has one artifact, of several pieces.
struct Shop {
    house: House,
    folder: TempDir,
    at: SocketAddr,
    stored: Stored,
    content: Vec<u8>,
}

pub(super) async fn serve(house: &House) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let tasks = TaskTracker::new();
    let never = CancellationToken::new();
    serve_at(
        listener,
        house.store.router(),
        Bounds::default(),
        &tasks,
        never,
    );
    at
}

impl Shop {
    async fn open() -> Self {
        let folder = folder();
        let mut house = House::ready(&folder).await;
        let content: Vec<u8> = (0..200_000).map(|at: u32| at.to_le_bytes()[1]).collect();
        let upstream = Upstream::new(Reply::Whole(content.clone())).await;
        let fetched = house.fetched(&digest_of(&content), &upstream.url).await;
        let State::Stored(stored) = fetched else {
            panic!("it is not stored");
        };
        Self {
            at: serve(&house).await,
            house,
            folder,
            stored,
            content,
        }
    }

    async fn ask(&self, method: &str, path: &str) -> (String, Vec<u8>) {
        ask(self.at, method, path).await
    }

    fn path(&self) -> String {
        format!("/{}", self.stored.path)
    }
}

/// The head and the body of an answer.
pub(super) async fn ask(at: SocketAddr, method: &str, path: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    timeout(DEADLINE, read).await.unwrap().unwrap();
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
    let body = answer.split_off(end);
    (String::from_utf8(answer).unwrap().to_lowercase(), body)
}

#[tokio::test]
async fn anyone_who_knows_the_address_gets_the_file() {
    let shop = Shop::open().await;
    let (head, body) = shop.ask("GET", &shop.path()).await;
    assert!(head.starts_with("http/1.1 200 ok\r\n"), "{head}");
    assert!(body == shop.content);
    let (only_head, nothing) = shop.ask("HEAD", &shop.path()).await;
    assert!(nothing.is_empty());
    for head in [head, only_head] {
        for line in [
            "content-length: 200000\r\n",
            "content-type: application/gzip\r\n",
            "connection: close\r\n",
        ] {
            assert!(head.contains(line), "{head}");
        }
    }
}

#[rstest]
#[case("/")]
#[case("/gatedsource")]
#[case("/gatedsource/")]
#[case("/gatedsource/apps/web")]
#[case("/gatedsource/apps/web/")]
#[case("/gatedsource/.incoming/secret")]
#[case("/secret")]
#[case("/../secret")]
#[case("/gatedsource/../secret")]
#[case("/gatedsource/apps/web/../../../secret")]
#[case("/gatedsource/apps/web/..%2f..%2f..%2fsecret")]
#[case("/%2e%2e/%2e%2e/etc/passwd")]
#[case("//etc/passwd")]
#[case("/gatedsource/apps/web/PLANTED")]
#[case("/gatedsource//apps/web/FILE")]
#[case("/gatedsource/apps/./web/FILE")]
#[case("/gatedsource/apps/other/FILE")]
#[case("/gatedsource/apps/web/FILE/")]
#[case("/gatedsource/apps/web/FILE%00")]
#[tokio::test]
async fn nothing_else_is_served(#[case] path: &str) {
    let shop = Shop::open().await;
    let planted = place::path(&key(), &digest_of(b"secret"));
    for secret in ["secret", "gatedsource/.incoming/secret", &planted] {
        fs::write(shop.folder.path().join(secret), b"secret").unwrap();
    }
    let name = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    let path = path.replace("FILE", &name(&shop.stored.path));
    let path = path.replace("PLANTED", &name(&planted));
    let (head, body) = shop.ask("GET", &path).await;
    assert!(head.starts_with("http/1.1 404 "), "{head}");
    assert!(body.is_empty());
}

#[rstest]
#[case("POST")]
#[case("PUT")]
#[case("DELETE")]
#[case("PATCH")]
#[case("PROPFIND")]
#[tokio::test]
async fn nothing_is_written(#[case] method: &str) {
    let shop = Shop::open().await;
    let (head, _) = shop.ask(method, &shop.path()).await;
    assert!(head.starts_with("http/1.1 405 "), "{head}");
    assert!(head.contains("allow: get, head\r\n"), "{head}");
    assert_eq!(files(&shop.folder).len(), 1);
}

#[tokio::test]
async fn a_follower_serves_nothing_and_says_so() {
    let shop = Shop::open().await;
    let (head, body) = shop.ask("GET", "/readyz").await;
    assert!(head.starts_with("http/1.1 200 "), "{head}");
    assert_eq!(body, b"ok\n");
    shop.house.until.send_replace(None);
    for path in ["/readyz", &shop.path()] {
        let (head, body) = shop.ask("GET", path).await;
        assert!(head.starts_with("http/1.1 503 "), "{head}");
        assert!(head.contains("connection: close\r\n"), "{head}");
        assert_eq!(body, b"this replica does not lead\n");
    }
}

#[tokio::test]
async fn a_leader_whose_folder_cannot_be_used_is_not_ready() {
    let folder = folder();
    let house = House::of(folder.path().join("missing"), Limits::default());
    house.lead();
    until(|| {
        house
            .store
            .ready()
            .is_err_and(|why| why.contains("mount a volume"))
    })
    .await;
    let (head, body) = ask(serve(&house).await, "GET", "/readyz").await;
    assert!(head.starts_with("http/1.1 503 "), "{head}");
    assert!(String::from_utf8(body).unwrap().contains("mount a volume"));
}

#[tokio::test]
async fn a_file_that_is_gone_or_cut_is_noticed_and_told() {
    for harm in [
        (|path| fs::remove_file(path).unwrap()) as fn(PathBuf),
        |path| fs::write(path, b"cut").unwrap(),
    ] {
        let mut shop = Shop::open().await;
        harm(shop.folder.path().join(&shop.stored.path));
        let (head, _) = shop.ask("GET", &shop.path()).await;
        assert!(head.starts_with("http/1.1 404 "), "{head}");
        assert_eq!(shop.house.told().await, Heard::Of(key()));
        let digest = digest_of(&shop.content);
        assert_eq!(shop.house.store.state(&key(), &digest), State::Absent);
        let upstream = Upstream::new(Reply::Whole(shop.content.clone())).await;
        shop.house.fetched(&digest, &upstream.url).await;
        let (_, body) = shop.ask("GET", &shop.path()).await;
        assert!(body == shop.content);
    }
}

#[tokio::test]
async fn what_was_served_stays_a_minute_longer() {
    let shop = Shop::open().await;
    shop.house.store.forget(&key());
    shop.house.clock.set(at(50));
    shop.ask("HEAD", &shop.path()).await;
    shop.house.clock.set(at(109));
    let digest = digest_of(&shop.content);
    assert!(shop.house.store.has(&key(), &digest).is_some());
    shop.house.clock.set(at(110));
    until(|| files(&shop.folder).is_empty()).await;
}
