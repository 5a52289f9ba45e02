//! A bare client: connections that it keeps, requests that are bytes, one thread.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use axum::body::Bytes;
use futures::future::try_join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use crate::bench::ordered::Ordered;

/// How often it is looked at what is due.
const TICK: Duration = Duration::from_millis(1);
/// How long an answer may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// What is sent.
#[derive(Clone, Copy)]
pub(super) struct Load {
    /// Requests a second. None: each connection sends the next one as soon as it has its answer.
    pub(super) rate: Option<u32>,
    pub(super) lasts: Duration,
    pub(super) connections: usize,
}

/// What came of a load.
pub(super) struct Times {
    /// How long each answer took, from the instant at which the request was due.
    pub(super) each: Ordered,
    took: Duration,
}

impl Times {
    /// Answers a second.
    #[allow(clippy::cast_precision_loss, reason = "a count of thousands")]
    pub(super) fn rate(&self) -> f64 {
        self.each.count() as f64 / self.took.as_secs_f64()
    }
}

/// One request; the body of its answer.
pub(super) async fn once(address: SocketAddr, request: &Bytes) -> Result<Bytes> {
    Connection::open(address).await?.ask(request).await
}

/// Sends a load, from a thread of its own.
pub(super) async fn run(address: SocketAddr, request: &Bytes, load: Load) -> Result<Times> {
    let request = request.clone();
    let sending = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(send(address, request, load))
    });
    sending.await?
}

async fn send(address: SocketAddr, request: Bytes, load: Load) -> Result<Times> {
    let opening = (0..load.connections).map(|_| Connection::open(address));
    let connections = try_join_all(opening).await?;
    let began = Instant::now();
    let times = match load.rate {
        Some(rate) => paced(connections, &request, rate, load.lasts).await?,
        None => flat_out(connections, &request, load.lasts).await?,
    };
    let took = began.elapsed();
    let times = times.iter().flatten().map(Duration::as_secs_f64);
    let each = Ordered::new(times.collect());
    Ok(Times { each, took })
}

/// So many a second, whether the answers keep up or not: what is due waits for its connection, and
/// its waiting counts.
async fn paced(
    connections: Vec<Connection>,
    request: &Bytes,
    rate: u32,
    lasts: Duration,
) -> Result<Vec<Vec<Duration>>> {
    let (mut dues, mut asking) = (Vec::new(), Vec::new());
    for mut connection in connections {
        let (due, mut requests) = mpsc::unbounded_channel::<Instant>();
        dues.push(due);
        asking.push(async move {
            let mut times = Vec::new();
            while let Some(due) = requests.recv().await {
                connection.ask(request).await?;
                times.push(due.elapsed());
            }
            anyhow::Ok(times)
        });
    }
    let timetable = async {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let (began, mut sent) = (Instant::now(), 0);
        let mut turns = (0..dues.len()).cycle();
        while began.elapsed() < lasts {
            ticks.tick().await;
            let now = Instant::now();
            let until_now = now.duration_since(began).min(lasts).as_secs_f64();
            let due = (until_now * f64::from(rate)) as u64;
            for turn in turns.by_ref().take(usize::try_from(due - sent)?) {
                // A client that has failed is found when the others end.
                let _ = dues[turn].send(now);
            }
            sent = due;
        }
        drop(dues);
        anyhow::Ok(())
    };
    let (times, timetable) = tokio::join!(try_join_all(asking), timetable);
    timetable?;
    times
}

/// As many as are answered.
async fn flat_out(
    connections: Vec<Connection>,
    request: &Bytes,
    lasts: Duration,
) -> Result<Vec<Vec<Duration>>> {
    let began = Instant::now();
    let asking = connections.into_iter().map(async |mut connection| {
        let mut times = Vec::new();
        while began.elapsed() < lasts {
            let due = Instant::now();
            connection.ask(request).await?;
            times.push(due.elapsed());
        }
        anyhow::Ok(times)
    });
    try_join_all(asking).await
}

struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            read: Vec::with_capacity(4096),
        })
    }

    /// One request, whose answer has to be 200 with a length.
    async fn ask(&mut self, request: &Bytes) -> Result<Bytes> {
        self.stream.write_all(request).await?;
        self.read.clear();
        let answer = tokio::time::timeout(DEADLINE, self.answer()).await;
        answer.context("no answer")?
    }

    async fn answer(&mut self) -> Result<Bytes> {
        loop {
            let more = self.stream.read_buf(&mut self.read).await?;
            ensure!(more > 0, "the connection was closed");
            if let Some((head, body)) = split(&self.read) {
                let head = std::str::from_utf8(head)?.to_ascii_lowercase();
                let length = length(&head)?;
                if body.len() >= length {
                    return Ok(Bytes::copy_from_slice(&body[..length]));
                }
            }
        }
    }
}

fn split(read: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = read.windows(4).position(|window| window == b"\r\n\r\n")?;
    Some((&read[..end], &read[end + 4..]))
}

fn length(head: &str) -> Result<usize> {
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default();
    ensure!(status.starts_with("http/1.1 200 "), "answered {status}");
    for line in lines {
        if let Some(length) = line.strip_prefix("content-length:") {
            return Ok(length.trim().parse()?);
        }
    }
    bail!("the answer has no length: {head}")
}
