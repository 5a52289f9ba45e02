//! The thread that writes the audit log. It alone waits for the disk.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use sluice_crds::audit::{Event, Lost, Record, Version};
use tokio::sync::oneshot;

use super::file::Sink;
use super::{Destination, Entry, State};
use crate::clock::Clock;

/// How many records are written at once, at most.
const TOGETHER: usize = 256;
/// After how long without a record it is seen to that the file is still there, and what was lost is
/// told.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

struct Writer {
    sink: Sink,
    entries: Receiver<Entry>,
    by: String,
    clock: Arc<dyn Clock>,
    state: Arc<State>,
}

/// Starts the thread. It ends with the last of those who tell.
pub(super) fn start(
    destination: Destination,
    entries: Receiver<Entry>,
    by: &str,
    clock: Arc<dyn Clock>,
    state: Arc<State>,
) -> io::Result<()> {
    let writer = Writer {
        sink: Sink::new(destination),
        entries,
        by: by.to_owned(),
        clock,
        state,
    };
    thread::Builder::new()
        .name("audit-log".to_owned())
        .spawn(move || writer.run())
        .map(drop)
}

/// What is written at once.
#[derive(Default)]
struct Batch {
    lines: Vec<u8>,
    /// Where each line ends, and who waits for it.
    ends: Vec<(usize, Option<oneshot::Sender<()>>)>,
    last: Option<oneshot::Sender<()>>,
}

impl Writer {
    fn run(mut self) {
        self.look();
        loop {
            let mut batch = Batch::default();
            match self.entries.recv_timeout(LOOK_AGAIN) {
                Ok(entry) => batch.add(entry),
                Err(RecvTimeoutError::Timeout) => {
                    self.look();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while batch.ends.len() < TOGETHER && batch.last.is_none() {
                match self.entries.try_recv() {
                    Ok(entry) => batch.add(entry),
                    Err(_) => break,
                }
            }
            self.tell_lost();
            self.write(&mut batch);
            if let Some(ended) = batch.last {
                let _ = ended.send(());
            }
        }
    }

    /// Sees to it that the file is there, and tells what was lost.
    fn look(&mut self) {
        match self.sink.open() {
            Err(error) => self.state.fails(&error.to_string(), 0),
            Ok(()) if self.state.lost().is_some() => self.tell_lost(),
            // Whether the disk is still full shows when there is something to write.
            Ok(()) => self.state.works(),
        }
    }

    fn write(&mut self, batch: &mut Batch) {
        if batch.ends.is_empty() {
            return;
        }
        let (whole, result) = self.sink.append(&batch.lines);
        let written = batch.ends.partition_point(|(end, _)| *end <= whole);
        let lost = batch.ends.split_off(written);
        for (_, waits) in batch.ends.drain(..) {
            self.state.counters.audit_records.inc();
            if let Some(waits) = waits {
                let _ = waits.send(());
            }
        }
        match result {
            Ok(()) => self.state.works(),
            // Whoever waits for one of them reads why as soon as it is dropped.
            Err(error) => self.state.fails(&error.to_string(), lost.len() as u64),
        }
    }

    /// Writes how many records are missing here.
    fn tell_lost(&mut self) {
        let Some((records, message)) = self.state.lost() else {
            return;
        };
        let mut batch = Batch::default();
        batch.add(Entry::Record(
            Box::new(Record {
                version: Version::default(),
                at: MicroTime(self.clock.now()),
                by: self.by.clone(),
                event: Event::Lost(Lost { records, message }),
            }),
            None,
        ));
        match self.sink.append(&batch.lines) {
            (_, Ok(())) => {
                self.state.told(records);
                self.state.works();
            }
            (_, Err(error)) => self.state.fails(&error.to_string(), 0),
        }
    }
}

impl Batch {
    fn add(&mut self, entry: Entry) {
        match entry {
            Entry::Record(record, waits) => {
                // Nothing in a record cannot be written as JSON.
                if serde_json::to_writer(&mut self.lines, &record).is_ok() {
                    self.lines.push(b'\n');
                    self.ends.push((self.lines.len(), waits));
                }
            }
            Entry::End(ended) => self.last = Some(ended),
        }
    }
}
