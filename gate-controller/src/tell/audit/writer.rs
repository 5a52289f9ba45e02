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

/// How many records are written at once, at most.
const TOGETHER: usize = 256;
/// After how long without a record it is checked that the file is still there, and what was lost is
/// reported.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

struct Writer {
    sink: Sink,
    entries: Receiver<Entry>,
    by: String,
    state: Arc<State>,
}

/// Starts the thread. It ends with the last of those who tell.
pub(super) fn start(
    destination: Destination,
    entries: Receiver<Entry>,
    by: &str,
    state: Arc<State>,
) -> io::Result<()> {
    let writer = Writer {
        sink: Sink::new(destination),
        entries,
        by: by.to_owned(),
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
            let first = match self.entries.recv_timeout(LOOK_AGAIN) {
                Ok(entry) => entry,
                Err(RecvTimeoutError::Timeout) => match (self.look(), self.entries.try_recv()) {
                    // A file may take long to be opened.
                    (_, Ok(entry)) => entry,
                    (is_fine, Err(_)) => {
                        if is_fine {
                            // Whether the disk is still full shows when there is something to write.
                            self.state.works();
                        }
                        continue;
                    }
                },
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let mut batch = Batch::default();
            batch.add(first);
            let mut drained = false;
            while batch.ends.len() < TOGETHER && batch.last.is_none() && !drained {
                match self.entries.try_recv() {
                    Ok(entry) => batch.add(entry),
                    Err(_) => drained = true,
                }
            }
            // It works again as soon as it has caught up: not while each batch that is written makes
            // room for more than it held.
            let told = self.tell_lost();
            if self.write(&mut batch) && told && drained {
                self.state.works();
            }
            if let Some(ended) = batch.last {
                self.tell_lost();
                let _ = ended.send(());
            }
        }
    }

    /// Sees to it that the file is there, and tells what was lost. Says whether that went well.
    fn look(&mut self) -> bool {
        match self.sink.open() {
            Err(error) => {
                self.state.fails(&error.to_string(), 0);
                false
            }
            Ok(()) => self.tell_lost(),
        }
    }

    /// Writes a batch, and says whether there was something and all of it is written.
    fn write(&mut self, batch: &mut Batch) -> bool {
        if batch.ends.is_empty() {
            return false;
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
        // Those who wait for one of them read why as soon as it is dropped.
        if let Err(error) = &result {
            self.state.fails(&error.to_string(), lost.len() as u64);
        }
        result.is_ok()
    }

    /// Writes how many records are missing here, if any, and says whether it could.
    fn tell_lost(&mut self) -> bool {
        let Some((records, message)) = self.state.lost() else {
            return true;
        };
        let mut batch = Batch::default();
        batch.add(Entry::Record(
            Box::new(Record {
                version: Version::default(),
                at: MicroTime(self.state.clock.now()),
                by: self.by.clone(),
                event: Event::Lost(Lost { records, message }),
            }),
            None,
        ));
        let (_, result) = self.sink.append(&batch.lines);
        match &result {
            Ok(()) => self.state.told(records),
            Err(error) => self.state.fails(&error.to_string(), 0),
        }
        result.is_ok()
    }
}

impl Batch {
    fn add(&mut self, entry: Entry) {
        match entry {
            // Nobody waits for it any more: the answer that it records was not given.
            Entry::Record(_, Some(waits)) if waits.is_closed() => {}
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
