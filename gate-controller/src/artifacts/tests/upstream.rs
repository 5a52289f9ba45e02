//! Somebody else's artifacts, over http on loopback, good or bad.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::*;

/// How a request is answered.
#[derive(Clone)]
pub(super) enum Reply {
    /// With this content.
    Whole(Vec<u8>),
    /// With this content, once it is released.
    Held(Vec<u8>, Arc<Notify>),
    /// With the first half of it, and then no more.
    Cut(Vec<u8>),
    /// With the first half of it, and then nothing for ever.
    Stalled(Vec<u8>),
    /// With a byte now and then, for ever.
    Dripping,
    /// With bytes for as long as the other side takes them, without a length.
    Endless,
    /// With a status.
    Status(u16),
}

/// The server. Dropped, it stops.
pub(super) struct Upstream {
    pub(super) url: String,
    reply: Arc<Mutex<Reply>>,
    requests: Arc<AtomicUsize>,
    _serving: JoinSet<()>,
}

impl Upstream {
    pub(super) async fn new(reply: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (reply, requests) = (Arc::new(Mutex::new(reply)), Arc::<AtomicUsize>::default());
        let mut serving = JoinSet::new();
        let (replies, counted) = (Arc::clone(&reply), Arc::clone(&requests));
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (replies, counted) = (Arc::clone(&replies), Arc::clone(&counted));
                connections.spawn(async move {
                    let mut stream = stream;
                    let Ok(1..) = stream.read(&mut [0; 4096]).await else {
                        return;
                    };
                    counted.fetch_add(1, Ordering::SeqCst);
                    let reply = replies.lock().unwrap().clone();
                    // Some tests check that the other side does not listen any more.
                    let _ = answer(&mut stream, reply).await;
                });
            }
        });
        Self {
            url: format!("http://{address}/bucket/apps/web/latest.tar.gz?secret=no"),
            reply,
            requests,
            _serving: serving,
        }
    }

    pub(super) fn replies(&self, reply: Reply) {
        *self.reply.lock().unwrap() = reply;
    }

    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

async fn answer(stream: &mut TcpStream, reply: Reply) -> io::Result<()> {
    match reply {
        Reply::Whole(content) => whole(stream, &content).await,
        Reply::Held(content, released) => {
            released.notified().await;
            whole(stream, &content).await
        }
        Reply::Cut(content) => half(stream, &content).await,
        Reply::Stalled(content) => {
            half(stream, &content).await?;
            stream.read(&mut [0]).await.map(drop)
        }
        Reply::Dripping => {
            head(stream, 1000).await?;
            let mut drops = tokio::time::interval(Duration::from_millis(5));
            loop {
                drops.tick().await;
                stream.write_all(b".").await?;
            }
        }
        Reply::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            loop {
                stream.write_all(&[b'x'; 16 << 10]).await?;
            }
        }
        Reply::Status(status) => {
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(head.as_bytes()).await
        }
    }
}

async fn head(stream: &mut TcpStream, length: usize) -> io::Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await
}

async fn whole(stream: &mut TcpStream, content: &[u8]) -> io::Result<()> {
    head(stream, content.len()).await?;
    stream.write_all(content).await?;
    stream.shutdown().await
}

async fn half(stream: &mut TcpStream, content: &[u8]) -> io::Result<()> {
    head(stream, content.len()).await?;
    stream.write_all(&content[..content.len() / 2]).await?;
    stream.flush().await
}
