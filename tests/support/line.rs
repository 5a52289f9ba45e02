//! A line to an API server that passes bytes on, can hold them back, and can be cut.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
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
}

async fn accept(listener: TcpListener, target: SocketAddr, flow: Arc<Flow>) {
    while let Ok((near, _)) = listener.accept().await {
        flow.connections.fetch_add(1, Ordering::SeqCst);
        let flow = Arc::clone(&flow);
        tokio::spawn(async move {
            let Ok(far) = TcpStream::connect(target).await else {
                return;
            };
            let (near_read, near_write) = near.into_split();
            let (far_read, far_write) = far.into_split();
            let mut cuts = flow.cuts.subscribe();
            // Only what comes after it.
            cuts.mark_unchanged();
            tokio::select! {
                () = pass(near_read, far_write, flow.open.subscribe()) => {}
                () = pass(far_read, near_write, flow.open.subscribe()) => {}
                _ = cuts.changed() => {}
            }
        });
    }
}

/// Until one of the two sides closes.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut open: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 16 << 10];
    loop {
        let read = match from.read(&mut bytes).await {
            Ok(read) if read > 0 => read,
            Ok(_) | Err(_) => return,
        };
        let is_open = open.wait_for(|open| *open).await.is_ok();
        if !is_open || to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}
