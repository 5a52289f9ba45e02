//! From the bytes of a calendar to a calendar that can be asked: once for each text.
//!
//! Parsing is bounded, but a mebibyte of it takes its time: it runs beside the threads that serve
//! everybody else, few at once. Who reads the same text in the same zone shares the result.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sha2::{Digest as _, Sha256};
use sluice_core::calendar::{Calendar, CalendarError, MAX_TEXT};
use sluice_core::schedule::Reading;
use tokio::sync::Semaphore;

/// How many texts are parsed at once.
const AT_ONCE: usize = 2;

/// The SHA-256 of a text.
type Digest = [u8; 32];

/// The zone of times that name none.
#[derive(Clone)]
pub(super) struct Zone {
    pub(super) zone: TimeZone,
    pub(super) name: String,
}

/// A text that was had, and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Text {
    /// None: it is too long to be looked at.
    digest: Option<Digest>,
    pub(super) parsed: Result<Arc<Calendar>, CalendarError>,
}

impl Text {
    /// What to judge from.
    pub(super) fn reading(&self, good_until: Option<Timestamp>) -> Reading {
        match &self.parsed {
            Ok(calendar) => Reading::Read {
                calendar: Arc::clone(calendar),
                good_until,
            },
            Err(error) => Reading::Broken(error.clone()),
        }
    }
}

/// Parses texts. Clones share what they have parsed.
#[derive(Clone)]
pub(crate) struct Reader(Arc<Inner>);

struct Inner {
    turns: Semaphore,
    /// By digest and zone, for as long as somebody uses them.
    parsed: Mutex<HashMap<(Digest, String), Weak<Calendar>>>,
}

impl Default for Reader {
    fn default() -> Self {
        let inner = Inner {
            turns: Semaphore::new(AT_ONCE),
            parsed: Mutex::default(),
        };
        Self(Arc::new(inner))
    }
}

impl Reader {
    /// What comes of `bytes`, which are parsed unless they are those of `last`, or those that
    /// somebody else uses.
    pub(super) async fn read(&self, bytes: &[u8], zone: &Zone, last: Option<&Text>) -> Text {
        if bytes.len() > MAX_TEXT {
            let error = CalendarError::TooLong { bytes: bytes.len() };
            return Text {
                digest: None,
                parsed: Err(error),
            };
        }
        let digest: Digest = Sha256::digest(bytes).into();
        if let Some(last) = last.filter(|last| last.digest == Some(digest)) {
            return last.clone();
        }
        let key = (digest, zone.name.clone());
        let parsed = match self.known(&key) {
            Some(calendar) => Ok(calendar),
            None => self
                .parse(bytes, zone)
                .await
                .map(|calendar| self.remember(key, calendar)),
        };
        Text {
            digest: Some(digest),
            parsed,
        }
    }

    async fn parse(&self, bytes: &[u8], zone: &Zone) -> Result<Calendar, CalendarError> {
        // Never closed; if it were, there would be no limit to keep.
        let _turn = self.0.turns.acquire().await.ok();
        let (bytes, zone) = (bytes.to_vec(), zone.zone.clone());
        let parsing = tokio::task::spawn_blocking(move || parse(&bytes, &zone));
        parsing.await.unwrap_or_else(|_| Err(stopped()))
    }

    fn known(&self, key: &(Digest, String)) -> Option<Arc<Calendar>> {
        let parsed = self.0.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        parsed.get(key).and_then(Weak::upgrade)
    }

    fn remember(&self, key: (Digest, String), calendar: Calendar) -> Arc<Calendar> {
        let mut parsed = self.0.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(calendar) = parsed.get(&key).and_then(Weak::upgrade) {
            return calendar;
        }
        // Before the map grows: room from those that nobody uses any more.
        if parsed.len() == parsed.capacity() {
            parsed.retain(|_, calendar| calendar.strong_count() > 0);
        }
        let calendar = Arc::new(calendar);
        parsed.insert(key, Arc::downgrade(&calendar));
        calendar
    }
}

fn parse(bytes: &[u8], zone: &TimeZone) -> Result<Calendar, CalendarError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        CalendarError::Line {
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            problem: "it is not UTF-8".to_owned(),
            remedy: "save the file as UTF-8".to_owned(),
        }
    })?;
    Calendar::parse(text, zone)
}

/// The parser panicked: a defect, which must not look like a calendar without events.
fn stopped() -> CalendarError {
    CalendarError::Line {
        line: 1,
        problem: "somewhere from here on the text stops its reader".to_owned(),
        remedy: "this is a defect of gate-controller; report it with the text".to_owned(),
    }
}
