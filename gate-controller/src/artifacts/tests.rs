//! A store on a real disk, before a real upstream on loopback, with a clock that is set.

mod disk;
mod fetching;
mod leading;
mod removal;
mod serving;
mod upstream;

use std::fs;
use std::time::Instant;

use sha2::{Digest as _, Sha256};
use sluice_egress::Rules;
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::lease::Held;
use crate::observe::clock::{Jumps, SetClock};
use upstream::{Reply, Upstream};

const DEADLINE: Duration = Duration::from_secs(60);

/// What a store tells.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Ready,
    Of(ObjectKey),
}

/// A store that runs. Dropped, it stops.
struct House {
    store: Arc<Store>,
    clock: Arc<SetClock>,
    counters: Arc<Counters>,
    until: watch::Sender<Option<Held>>,
    told: mpsc::UnboundedReceiver<Heard>,
    running: JoinHandle<()>,
}

impl Drop for House {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl House {
    /// One that does not lead.
    fn of(path: PathBuf, limits: Limits) -> Self {
        let clock = Arc::new(SetClock::new(at(0)));
        let counters = Arc::<Counters>::default();
        let rules = Rules {
            allow: vec!["127.0.0.0/8".parse().unwrap()],
            ..Rules::default()
        };
        let store = Store::new(
            path,
            "artifacts.test".to_owned(),
            limits,
            Egress::new(rules).unwrap(),
            Arc::clone(&clock) as Arc<dyn Clock>,
            Arc::clone(&counters),
        );
        let (tell, told) = mpsc::unbounded_channel();
        store.follow(move |news| {
            let news = match news {
                News::Changed => return,
                News::Ready => Heard::Ready,
                News::Of(key) => Heard::Of(key.clone()),
            };
            let _ = tell.send(news);
        });
        let jumps = Arc::new(Jumps::new(clock.clone()));
        let (until, leadership) = Leadership::new(jumps);
        Self {
            running: tokio::spawn(Arc::clone(&store).run(leadership)),
            store,
            clock,
            counters,
            until,
            told,
        }
    }

    /// One that leads, and has verified its folder.
    async fn ready(folder: &TempDir) -> Self {
        Self::ready_with(folder, Limits::default()).await
    }

    async fn ready_with(folder: &TempDir, limits: Limits) -> Self {
        let mut house = Self::of(folder.path().to_owned(), limits);
        house.lead();
        house.verified().await;
        house
    }

    /// Waits until everything is verified.
    async fn verified(&mut self) {
        while self.told().await != Heard::Ready {}
    }

    fn lead(&self) {
        let later = Instant::now() + 100 * DEADLINE;
        self.until.send_replace(Some(Held::until(later)));
    }

    async fn told(&mut self) -> Heard {
        timeout(DEADLINE, self.told.recv()).await.unwrap().unwrap()
    }

    /// Fetches, and waits for the end.
    async fn fetched(&mut self, digest: &Digest, url: &str) -> State {
        let begun = self.store.fetch(&key(), digest, url);
        assert!(matches!(begun, State::Fetching(_)), "{begun:?}");
        assert_eq!(self.told().await, Heard::Of(key()));
        self.store.state(&key(), digest)
    }

    async fn failed(&mut self, digest: &Digest, url: &str) -> String {
        match self.fetched(digest, url).await {
            State::Failed(failure) => failure.why,
            other => panic!("it did not fail: {other:?}"),
        }
    }

    fn fetches(&self, outcome: &'static str) -> u64 {
        let labels = crate::tell::counters::ArtifactLabels { outcome };
        self.counters.artifact_fetches.get_or_create(&labels).get()
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn key() -> ObjectKey {
    place::key("apps", "web").unwrap()
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn digest_of(content: &[u8]) -> Digest {
    let checksum = Sha256::digest(content);
    let checksum: String = checksum.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{checksum}").parse().unwrap()
}

/// Every file below a folder, by its path in it.
fn files(folder: &TempDir) -> Vec<String> {
    fn walk(folder: &std::path::Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(folder.path(), &mut found);
    let names = found.iter().map(|path| {
        let path = path.strip_prefix(folder.path()).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// Waits until something is so.
async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        let mut looks = tokio::time::interval(Duration::from_millis(2));
        while !is_so() {
            looks.tick().await;
        }
    };
    timeout(DEADLINE, waiting).await.unwrap();
}
