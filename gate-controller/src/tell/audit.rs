//! The audit log: what was decided, what changed, who overrode it, as lines of JSON.
//!
//! What comes in: events. What goes out: lines, into a file or onto standard output, by a separate thread
//! ([`writer`]). Nobody waits for a slow disk except those who ask for that ([`Audit::record`]): what
//! does not fit is counted, and a line says how much is missing.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use parking_lot::Mutex;
use sluice_crds::audit::{Event, Record, Version};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::observe::clock::Clock;
use crate::tell::counters::Counters;

mod file;
mod writer;

/// How many records may wait to be written: some 8 MiB of them.
const WAITING: usize = 8_192;
/// How long somebody who must know waits for a record to be written.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the controller waits at its end for what is under way.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How often it is logged, at most, that records are not written.
const LOG_AGAIN: SignedDuration = SignedDuration::from_mins(1);

/// Where the lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Standard output.
    Stdout,
    /// A file, which is appended to.
    File(PathBuf),
}

impl std::str::FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "" => Err("write the path of a file, or - for standard output".to_owned()),
            "-" => Ok(Self::Stdout),
            path => Ok(Self::File(path.into())),
        }
    }
}

/// The audit log, or none.
#[derive(Clone, Default)]
pub struct Audit(Option<Arc<Kept>>);

/// What a log that is kept consists of.
struct Kept {
    waiting: SyncSender<Entry>,
    required: bool,
    by: String,
    state: Arc<State>,
}

/// Something to be written.
enum Entry {
    /// A record, and the channel on which somebody waits for it.
    Record(Box<Record>, Option<oneshot::Sender<()>>),
    /// Everything that was recorded before this has to be handled first.
    End(oneshot::Sender<()>),
}

/// How it goes.
struct State {
    trouble: Mutex<Trouble>,
    counters: Arc<Counters>,
    clock: Arc<dyn Clock>,
}

/// What goes wrong.
#[derive(Default)]
struct Trouble {
    /// Why records are not written. None: they are.
    why: Option<String>,
    /// How many records were lost, and are not reported yet.
    lost: u64,
    /// Why they were.
    lost_for: String,
    /// Why, as the log has it last. None: that they are, or nothing.
    logged: Option<String>,
    /// When it was last logged that they are lost.
    logged_at: Option<Timestamp>,
}

impl Audit {
    /// A log that is written to from now on. `by` is the name of this replica. Whether decisions
    /// that cannot be recorded are closed is for the operator to say.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn start(
        destination: Destination,
        required: bool,
        by: &str,
        clock: Arc<dyn Clock>,
        counters: Arc<Counters>,
    ) -> std::io::Result<Self> {
        let (waiting, entries): (_, Receiver<Entry>) = sync_channel(WAITING);
        let state = Arc::new(State {
            trouble: Mutex::default(),
            counters,
            clock,
        });
        writer::start(destination, entries, by, Arc::clone(&state))?;
        Ok(Self(Some(Arc::new(Kept {
            waiting,
            required,
            by: by.to_owned(),
            state,
        }))))
    }

    /// Whether there is a log at all.
    pub fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a decision that cannot be recorded has to be closed.
    pub fn is_required(&self) -> bool {
        self.0.as_ref().is_some_and(|kept| kept.required)
    }

    /// Has an event written, and waits for nothing. What finds no room is counted.
    pub fn tell(&self, event: impl FnOnce() -> Event) {
        if let Some(kept) = &self.0 {
            let _ = kept.put(event(), None);
        }
    }

    /// Has an event written, and waits until it is.
    ///
    /// # Errors
    /// Why it is not.
    pub async fn record(&self, event: Event) -> Result<(), String> {
        let Some(kept) = &self.0 else {
            return Ok(());
        };
        let (written, done) = oneshot::channel();
        kept.put(event, Some(written))?;
        match timeout(PATIENCE, done).await {
            Ok(Ok(())) => Ok(()),
            // It could not be written.
            Ok(Err(_)) => Err(kept
                .state
                .why()
                .unwrap_or_else(|| "it has ended".to_owned())),
            Err(_) => {
                let why = format!("nothing was written within {PATIENCE:?}");
                kept.state.fails(&why, 0);
                Err(why)
            }
        }
    }

    /// Why decisions are closed because there is no log. None: they are not.
    pub fn obstacle(&self) -> Option<String> {
        let kept = self.0.as_ref().filter(|kept| kept.required)?;
        kept.state.why()
    }

    /// Why records are not written. None: they are, or none are kept.
    pub fn trouble(&self) -> Option<String> {
        self.0.as_ref()?.state.why()
    }

    /// Waits, for a moment at most, until everything that was recorded so far is written or lost. Says
    /// whether it is.
    pub async fn finish(&self) -> bool {
        let Some(kept) = &self.0 else {
            return true;
        };
        let (ended, done) = oneshot::channel();
        // If it takes longer at the end, it is lost with the process.
        kept.waiting.try_send(Entry::End(ended)).is_ok()
            && matches!(timeout(LAST_WORDS, done).await, Ok(Ok(())))
    }
}

impl Kept {
    fn put(&self, event: Event, written: Option<oneshot::Sender<()>>) -> Result<(), String> {
        let record = Record {
            version: Version::default(),
            at: MicroTime(self.state.clock.now()),
            by: self.by.clone(),
            event,
        };
        let entry = Entry::Record(Box::new(record), written);
        self.waiting.try_send(entry).map_err(|_| {
            let why = format!("{WAITING} records wait to be written already");
            self.state.fails(&why, 1);
            why
        })
    }
}

impl State {
    fn why(&self) -> Option<String> {
        self.trouble.lock().why.clone()
    }

    /// So many records are not written, and why. It is logged when it begins, or is for another
    /// cause, but not each time where that is often.
    fn fails(&self, why: &str, lost: u64) {
        self.counters.audit_dropped.inc_by(lost);
        let mut trouble = self.trouble.lock();
        trouble.lost = trouble.lost.saturating_add(lost);
        if lost > 0 {
            trouble.lost_for = why.to_owned();
        }
        let is_news = trouble.begins(why, self.clock.now());
        self.counters.audit_failing.set(1);
        drop(trouble);
        if is_news {
            tracing::error!("the audit log cannot be written: {why}");
        }
    }

    /// Records are written again, and none wait.
    fn works(&self) {
        let mut trouble = self.trouble.lock();
        let is_news = trouble.ends();
        self.counters.audit_failing.set(0);
        drop(trouble);
        if is_news {
            tracing::info!("the audit log is written again");
        }
    }

    /// How many are lost and not reported yet, and why.
    fn lost(&self) -> Option<(u64, String)> {
        let trouble = self.trouble.lock();
        (trouble.lost > 0).then(|| (trouble.lost, trouble.lost_for.clone()))
    }

    /// So many of them have been reported.
    fn told(&self, lost: u64) {
        let mut trouble = self.trouble.lock();
        trouble.lost = trouble.lost.saturating_sub(lost);
    }
}

impl Trouble {
    /// Records are not written. Returns whether to log that.
    fn begins(&mut self, why: &str, now: Timestamp) -> bool {
        if self.why.as_deref() != Some(why) {
            self.why = Some(why.to_owned());
        }
        // A clock that was set back must not silence it.
        let is_soon =
            |at: Timestamp| (SignedDuration::ZERO..LOG_AGAIN).contains(&now.duration_since(at));
        if self.logged.as_deref() == Some(why) || self.logged_at.is_some_and(is_soon) {
            return false;
        }
        self.logged = Some(why.to_owned());
        self.logged_at = Some(now);
        true
    }

    /// Records are written again. Returns whether to log that.
    fn ends(&mut self) -> bool {
        self.why = None;
        self.logged.take().is_some()
    }
}

#[cfg(test)]
mod tests;
