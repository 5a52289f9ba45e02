//! A line to a server that passes bytes on and counts them, can hold them back, and can be cut.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// The line. Dropped, it is cut for ever.
pub struct Line {
    server: String,
    flow: Arc<Flow>,
    task: AbortHandle,
}

struct Flow {
    /// Whether bytes go on.
    open: watch::Sender<bool>,
    /// Counts the cuts. Every connection ends at the next.
    cuts: watch::Sender<u32>,
    connections: AtomicUsize,
    traffic: Mutex<Traffic>,
}

#[derive(Default)]
struct Traffic {
    /// How many connections are open.
    open: usize,
    bytes: u64,
    /// Each wait for the server: from the last bytes that it was sent to the first that it sent.
    waits: Vec<(Instant, Instant)>,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
        self.cut();
    }
}

impl Line {
    /// To `server`, an address as kubeconfigs have it, on this machine.
    ///
    /// # Errors
    ///
    /// If the address has no port.
    pub async fn open(server: &str) -> Result<Self> {
        let port = server.rsplit(':').next().context("it has no port")?;
        let target = SocketAddr::from(([127, 0, 0, 1], port.trim_end_matches('/').parse()?));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let own = listener.local_addr()?;
        let flow = Arc::new(Flow {
            open: watch::Sender::new(true),
            cuts: watch::Sender::new(0),
            connections: AtomicUsize::new(0),
            traffic: Mutex::default(),
        });
        let task = tokio::spawn(accept(listener, target, Arc::clone(&flow)));
        Ok(Self {
            server: format!("https://{own}"),
            flow,
            task: task.abort_handle(),
        })
    }

    /// What a kubeconfig says to come this way.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// From now on nothing comes through, and nothing is closed.
    pub fn hold(&self) {
        self.flow.open.send_replace(false);
    }

    /// What was held goes on.
    pub fn release(&self) {
        self.flow.open.send_replace(true);
    }

    /// Ends all connections.
    pub fn cut(&self) {
        self.flow.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// How many connections there have been.
    pub fn connections(&self) -> usize {
        self.flow.connections.load(Ordering::SeqCst)
    }

    /// Whether no connection is open.
    pub fn is_quiet(&self) -> bool {
        self.flow.traffic.lock().open == 0
    }

    /// How many bytes have come through, both ways together.
    pub fn bytes(&self) -> u64 {
        self.flow.traffic.lock().bytes
    }

    /// For how long the server was waited for between two instants: all connections together.
    pub fn waited(&self, from: Instant, until: Instant) -> Duration {
        let traffic = self.flow.traffic.lock();
        let within = |(asked, told): &(Instant, Instant)| {
            (*told.min(&until)).saturating_duration_since(*asked.max(&from))
        };
        traffic.waits.iter().map(within).sum()
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, flow: Arc<Flow>) {
    while let Ok((near, _)) = listener.accept().await {
        flow.connections.fetch_add(1, Ordering::SeqCst);
        flow.traffic.lock().open += 1;
        let flow = Arc::clone(&flow);
        tokio::spawn(async move {
            connect(near, target, &flow).await;
            flow.traffic.lock().open -= 1;
        });
    }
}

async fn connect(near: TcpStream, target: SocketAddr, flow: &Flow) {
    let Ok(far) = TcpStream::connect(target).await else {
        return;
    };
    // Each piece goes on as it has come.
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let (near_read, near_write) = near.into_split();
    let (far_read, far_write) = far.into_split();
    let mut cuts = flow.cuts.subscribe();
    // Only what comes after it.
    cuts.mark_unchanged();
    let asked = Mutex::new(None);
    let asks = |bytes| {
        flow.traffic.lock().bytes += bytes;
        *asked.lock() = Some(Instant::now());
    };
    let tells = |bytes| {
        let mut traffic = flow.traffic.lock();
        traffic.bytes += bytes;
        let waited = asked.lock().take().map(|asked| (asked, Instant::now()));
        traffic.waits.extend(waited);
    };
    tokio::select! {
        () = pass(near_read, far_write, flow.open.subscribe(), asks) => {}
        () = pass(far_read, near_write, flow.open.subscribe(), tells) => {}
        _ = cuts.changed() => {}
    }
}

/// Until one of the two sides closes. What has come is noted before it goes on.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut open: watch::Receiver<bool>,
    note: impl Fn(u64),
) {
    let mut bytes = vec![0; 16 << 10];
    loop {
        let read = match from.read(&mut bytes).await {
            Ok(read) if read > 0 => read,
            Ok(_) | Err(_) => return,
        };
        note(read as u64);
        let is_open = open.wait_for(|open| *open).await.is_ok();
        if !is_open || to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}
