//! What is measured: many addresses on loopback, each a host of its own, and some that fall ill.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::Result;
use axum::Router;
use axum::extract::State;
use axum::http::header::{CONNECTION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Of so many hosts one goes dead, and one slow.
const ONE_IN: usize = 20;
/// What Prometheus answers to a query, and who else reads it sees the status alone.
const ANSWER: &str =
    r#"{"status":"success","data":{"resultType":"scalar","result":[1795168800,"0.01"]}}"#;

/// Hosts that answer, until they end with this.
pub(super) struct Endpoints {
    hosts: Vec<SocketAddr>,
    told: watch::Sender<bool>,
    asked: Arc<AtomicU64>,
    _served: JoinSet<()>,
}

/// One host.
#[derive(Clone)]
struct Host {
    place: usize,
    asked: Arc<AtomicU64>,
    ill: Arc<AtomicBool>,
}

impl Endpoints {
    /// So many hosts, all well.
    pub(super) async fn start(count: usize) -> Result<Self> {
        let (told, ill) = watch::channel(false);
        let asked = Arc::<AtomicU64>::default();
        let (mut hosts, mut served) = (Vec::new(), JoinSet::new());
        for place in 0..count {
            let [high, low] = u16::try_from(place + 2)?.to_be_bytes();
            let listener = TcpListener::bind((Ipv4Addr::new(127, 0, high, low), 0)).await?;
            hosts.push(listener.local_addr()?);
            let host = Host {
                place,
                asked: Arc::clone(&asked),
                ill: Arc::default(),
            };
            served.spawn(host.serve(listener, ill.clone()));
        }
        Ok(Self {
            hosts,
            told,
            asked,
            _served: served,
        })
    }

    /// The address of one of them.
    pub(super) fn url(&self, place: usize) -> String {
        format!("http://{}", self.hosts[place % self.hosts.len()])
    }

    /// From now on a tenth of them is dead or slow.
    pub(super) fn fall_ill(&self) {
        self.told.send_replace(true);
    }

    /// How many of them will.
    pub(super) fn weak(&self) -> usize {
        let weak = |place: &usize| is_dead(*place) || is_slow(*place);
        (0..self.hosts.len()).filter(weak).count()
    }

    /// How often they were asked.
    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

fn is_dead(place: usize) -> bool {
    place.is_multiple_of(ONE_IN)
}

fn is_slow(place: usize) -> bool {
    place % ONE_IN == ONE_IN / 2
}

impl Host {
    async fn serve(self, listener: TcpListener, mut ill: watch::Receiver<bool>) {
        let (place, flag) = (self.place, Arc::clone(&self.ill));
        let router = Router::new().fallback(answer).with_state(self);
        let serving = async { axum::serve(listener, router).await };
        let falls_ill = async {
            // Fails when nobody can tell any more.
            let _ = ill.wait_for(|ill| *ill).await;
            flag.store(true, Ordering::Relaxed);
            if !is_dead(place) {
                std::future::pending::<()>().await;
            }
        };
        // Who is dead listens no more.
        tokio::select! {
            _ = serving => {}
            () = falls_ill => {}
        }
    }
}

async fn answer(State(host): State<Host>) -> Response {
    host.asked.fetch_add(1, Ordering::Relaxed);
    if is_slow(host.place) && host.ill.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
    let json = (CONTENT_TYPE, "application/json");
    match is_dead(host.place) {
        // No connection is left over from when it was alive.
        true => ([json, (CONNECTION, "close")], ANSWER).into_response(),
        false => ([json], ANSWER).into_response(),
    }
}
