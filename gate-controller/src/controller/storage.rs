//! The artifact store of the settings: where it is, and where it is served.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use sluice_egress::Egress;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::settings::Settings;
use crate::artifacts::{Limits, Store};
use crate::observe::clock::Clock;
use crate::serve;
use crate::serve::server::Bounds;
use crate::tell::counters::Counters;

/// The Service that the chart has for artifacts, unless the release has another name.
const SERVICE: &str = "gate-controller-artifacts";

/// Where artifacts are to be stored and served.
pub(super) struct Storage {
    path: PathBuf,
    listener: TcpListener,
    bound: SocketAddr,
    advertised: String,
    limits: Limits,
}

/// Listens at the address of the settings. None: artifacts are not stored here.
///
/// # Errors
/// It cannot be listened at, or there is none.
pub(super) async fn listen(settings: &Settings) -> anyhow::Result<Option<Storage>> {
    let Some(path) = settings.storage_path.clone() else {
        return Ok(None);
    };
    let Some(address) = settings.storage_addr.0 else {
        bail!(
            "--storage-addr: artifacts that are stored have to be served; give an address, or no \
             --storage-path"
        );
    };
    let listening = async {
        let listener = TcpListener::bind(address).await?;
        let bound = listener.local_addr()?;
        Ok::<_, std::io::Error>((listener, bound))
    };
    let listening = listening.await;
    let (listener, bound) =
        listening.with_context(|| format!("--storage-addr: cannot listen at {address}"))?;
    Ok(Some(Storage {
        path,
        listener,
        bound,
        advertised: advertised(settings, bound),
        limits: limits(settings),
    }))
}

/// What the settings say of the limits of the store.
fn limits(settings: &Settings) -> Limits {
    Limits {
        quota: match settings.storage_namespace_quota {
            0 => u64::MAX,
            quota => quota,
        },
        ..Limits::default()
    }
}

fn advertised(settings: &Settings, bound: SocketAddr) -> String {
    match &settings.storage_adv_addr {
        Some(given) => given.clone(),
        None if bound.ip().is_unspecified() => {
            format!("{SERVICE}.{}.svc", settings.runtime_namespace)
        }
        None => bound.to_string(),
    }
}

impl Storage {
    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.bound
    }

    /// The store.
    pub(super) fn store(
        &self,
        egress: &Egress,
        clock: &Arc<dyn Clock>,
        counters: &Arc<Counters>,
    ) -> Arc<Store> {
        Store::new(
            self.path.clone(),
            self.advertised.clone(),
            self.limits,
            egress.clone(),
            Arc::clone(clock),
            Arc::clone(counters),
        )
    }

    /// Serves it until `shutdown`. What is under way then belongs to `tasks`.
    pub(super) fn serve(
        self,
        store: &Arc<Store>,
        tasks: &TaskTracker,
        shutdown: &CancellationToken,
    ) {
        let Self {
            path,
            listener,
            bound,
            advertised,
            limits: _,
        } = self;
        tracing::info!(address = %bound, advertised, path = %path.display(), "serving artifacts");
        let bounds = Bounds::default();
        serve::server::serve_at(listener, store.router(), bounds, tasks, shutdown.clone());
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rstest::rstest;

    use super::*;

    fn settings(flags: &[&str]) -> Settings {
        let flags = [&["gate-controller", "--runtime-namespace=sluice"], flags].concat();
        Settings::try_parse_from(flags).unwrap()
    }

    #[rstest]
    #[case(&[], "0.0.0.0:9790", "gate-controller-artifacts.sluice.svc")]
    #[case(&[], "127.0.0.1:4711", "127.0.0.1:4711")]
    #[case(&["--storage-adv-addr=a.example.com"], "127.0.0.1:4711", "a.example.com")]
    fn others_are_told_an_address_that_outlives_the_pod(
        #[case] flags: &[&str],
        #[case] bound: SocketAddr,
        #[case] expected: &str,
    ) {
        assert_eq!(advertised(&settings(flags), bound), expected);
    }

    #[tokio::test]
    async fn what_is_stored_has_to_be_served() {
        let off = listen(&settings(&["--storage-addr=127.0.0.1:0"])).await;
        assert!(off.unwrap().is_none());
        let nowhere = ["--storage-path=/data", "--storage-addr=0"];
        let refused = listen(&settings(&nowhere)).await.err().unwrap();
        assert!(
            refused
                .to_string()
                .starts_with("--storage-addr: artifacts that are stored"),
            "{refused}"
        );
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("--storage-addr={}", taken.local_addr().unwrap());
        let refused = listen(&settings(&["--storage-path=/data", &address])).await;
        let refused = format!("{:#}", refused.err().unwrap());
        assert!(refused.contains("cannot listen at 127.0.0.1:"), "{refused}");
    }
}
