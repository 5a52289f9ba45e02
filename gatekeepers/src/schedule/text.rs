//! From the bytes of a calendar to a calendar that can be asked: once for each text.
//!
//! Parsing is bounded, but a mebibyte of it takes its time: it runs beside the threads that serve
//! everybody else, few at once. Who reads the same text in the same zone shares the result.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use sluice_core::gatekeeper::schedule::Reading;
use sluice_core::time::calendar::{Calendar, CalendarError, MAX_TEXT};
use sluice_egress::places::Places;

/// How many texts are parsed at once, and how many of them for one namespace.
const AT_ONCE: usize = 2;
const EACH: usize = 1;

/// The SHA-256 of a text.
type Digest = [u8; 32];

/// The zone of times that name none.
#[derive(Clone)]
pub(super) struct Zone {
    pub(super) zone: TimeZone,
    pub(super) name: String,
}

/// What came of a text.
pub(super) type Parsed = Result<Arc<Calendar>, CalendarError>;

/// What to judge from, for so long.
pub(super) fn reading(parsed: &Parsed, good_until: Option<Timestamp>) -> Reading {
    match parsed {
        Ok(calendar) => Reading::Read {
            calendar: Arc::clone(calendar),
            good_until,
            overdue: None,
        },
        Err(error) => Reading::Broken(error.clone()),
    }
}

/// Parses texts. Clones share what they have parsed.
#[derive(Clone)]
pub(crate) struct Reader(Arc<Inner>);

struct Inner {
    places: Places,
    /// By digest and zone, for as long as somebody uses them.
    parsed: Mutex<HashMap<(Digest, String), Weak<Calendar>>>,
}

impl Default for Reader {
    fn default() -> Self {
        let inner = Inner {
            places: Places::new(AT_ONCE, EACH),
            parsed: Mutex::default(),
        };
        Self(Arc::new(inner))
    }
}

impl Reader {
    /// What comes of `bytes`, which are parsed for a namespace unless somebody uses the calendar
    /// that they are.
    pub(super) async fn read(&self, bytes: &[u8], zone: &Zone, namespace: &str) -> Parsed {
        if bytes.len() > MAX_TEXT {
            return Err(CalendarError::TooLong { bytes: bytes.len() });
        }
        let key = (Sha256::digest(bytes).into(), zone.name.clone());
        match self.known(&key) {
            Some(calendar) => Ok(calendar),
            None => {
                let parsed = self.parse(bytes, zone, namespace).await;
                parsed.map(|calendar| self.remember(key, calendar))
            }
        }
    }

    async fn parse(
        &self,
        bytes: &[u8],
        zone: &Zone,
        namespace: &str,
    ) -> Result<Calendar, CalendarError> {
        let _place = self.0.places.take(namespace).await;
        let (bytes, zone) = (bytes.to_vec(), zone.zone.clone());
        let parsing = tokio::task::spawn_blocking(move || Calendar::read(&bytes, &zone));
        parsing.await.unwrap_or_else(|_| Err(stopped()))
    }

    fn known(&self, key: &(Digest, String)) -> Option<Arc<Calendar>> {
        let parsed = self.0.parsed.lock();
        parsed.get(key).and_then(Weak::upgrade)
    }

    fn remember(&self, key: (Digest, String), calendar: Calendar) -> Arc<Calendar> {
        let mut parsed = self.0.parsed.lock();
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

/// The parser panicked: a defect, which must not look like a calendar without events.
fn stopped() -> CalendarError {
    CalendarError::Line {
        line: 1,
        problem: "somewhere from here on the text stops its reader".to_owned(),
        remedy: "this is a defect of gate-controller; report it with the text".to_owned(),
    }
}
