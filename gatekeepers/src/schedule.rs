//! Evidence for `schedule`: its calendars.
//!
//! What comes in: the spec, and each calendar as it was last seen. What goes out: each calendar as
//! it is seen now, in the order in which `sluice_core::gatekeeper::schedule` asks for them. A
//! ConfigMap is read when it changes ([`config_map`]), an address at its interval ([`address`]); both
//! texts are parsed by one [`Reader`].

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use jiff::Timestamp;
use kube::ResourceExt;
use sluice_core::gatekeeper::Evidence;
use sluice_core::gatekeeper::schedule::{Reading, Schedule};
use sluice_core::time::calendar;
use sluice_crds::Gatekeeper;
use sluice_crds::gatekeeper::{self as api, Calendar};

use crate::observation::{self, Look as Asked, Observation, Observe, namespace};
use crate::{Clients, Source, lists};

mod address;
mod config_map;
#[cfg(test)]
mod tests;
mod text;

use address::Rereads;
pub(crate) use text::Reader;
use text::Zone;

/// A calendar as it was last seen.
#[derive(Clone, Debug)]
struct Seen {
    source: Calendar,
    zone: String,
    /// What to judge from.
    reading: Reading,
    /// The last calendar that was read: while it is kept, its text is not parsed again.
    kept: Option<Arc<calendar::Calendar>>,
    /// Of an address: when it is read again.
    rereads: Option<Rereads>,
}

impl Seen {
    /// When to look again, if nothing changes before.
    fn again(&self) -> Option<Timestamp> {
        self.rereads
            .as_ref()
            .map(|rereads| rereads.again(&self.reading))
    }

    /// An address is read at the next look, independent of its interval.
    fn make_due(&mut self) {
        if let Some(rereads) = &mut self.rereads {
            rereads.make_due();
        }
    }
}

impl observation::Seen for Vec<Seen> {
    fn make_due(&mut self) {
        self.iter_mut().for_each(Seen::make_due);
    }
}

impl Observe for api::Schedule {
    fn needs_evidence(&self) -> bool {
        calendars(self).next().is_some()
    }

    fn sources(&self, namespace: &str) -> Vec<Source> {
        let references = calendars(self).filter_map(|calendar| calendar.config_map_ref.as_ref());
        lists::sources(references, namespace)
    }

    fn known(&self, last: &Observation) -> Option<Evidence> {
        known(self, last.seen().map_or(&[], Vec::as_slice)).map(Evidence::of)
    }

    fn observe<'a>(&'a self, look: Asked<'a>) -> BoxFuture<'a, Observation> {
        async move {
            let last = look.seen::<Vec<Seen>>().unwrap_or_default();
            let seen = observe(look.object, self, look.clients, &last, look.now).await;
            let readings: Vec<Reading> = seen.iter().map(|seen| seen.reading.clone()).collect();
            let again = seen.iter().filter_map(Seen::again).min();
            Observation::new(Evidence::of(readings), again, seen)
        }
        .boxed()
    }
}

fn calendars(spec: &api::Schedule) -> impl Iterator<Item = &Calendar> {
    spec.open
        .iter()
        .chain(&spec.closed)
        .filter_map(|window| window.calendar.as_ref())
}

/// The readings of the calendars of `spec`, if all of them are among what was seen. A spec that is
/// refused has none.
fn known(spec: &api::Schedule, last: &[Seen]) -> Option<Vec<Reading>> {
    let Ok(schedule) = Schedule::read(spec, "spec.schedule") else {
        return Some(Vec::new());
    };
    let zone = schedule.zone_name();
    let reading = |source| Some(find(last, source, zone)?.reading.clone());
    schedule
        .calendars()
        .map(|(_, source)| reading(source))
        .collect()
}

/// What was seen of a calendar is found by its source, not by its place: a window that is added
/// above it changes nothing.
fn find<'a>(last: &'a [Seen], source: &Calendar, zone: &str) -> Option<&'a Seen> {
    last.iter()
        .find(|seen| seen.source == *source && seen.zone == zone)
}

/// The calendars as they are seen at `now`. A spec that is refused has none.
async fn observe(
    object: &Gatekeeper,
    spec: &api::Schedule,
    clients: &Clients,
    last: &[Seen],
    now: Timestamp,
) -> Vec<Seen> {
    let Ok(schedule) = Schedule::read(spec, "spec.schedule") else {
        return Vec::new();
    };
    let look = Look {
        namespace: namespace(object),
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        zone: Zone {
            zone: schedule.zone().clone(),
            name: schedule.zone_name().to_owned(),
        },
        clients,
        now,
    };
    join_all(
        schedule
            .calendars()
            .map(|(_, source)| look.at(source, last)),
    )
    .await
}

/// What a look at a calendar is taken with.
struct Look<'a> {
    namespace: String,
    name: String,
    uid: String,
    zone: Zone,
    clients: &'a Clients,
    now: Timestamp,
}

impl Look<'_> {
    async fn at(&self, source: &Calendar, last: &[Seen]) -> Seen {
        let last = find(last, source, &self.zone.name);
        match (&source.config_map_ref, &source.url) {
            (Some(reference), _) => self.at_config_map(source, reference, last).await,
            (None, Some(url)) => self.at_address(source, url, last).await,
            // The spec was refused before.
            (None, None) => self.seen(
                source,
                Reading::Unavailable("it has no source".to_owned()),
                None,
                None,
            ),
        }
    }

    fn seen(
        &self,
        source: &Calendar,
        reading: Reading,
        kept: Option<Arc<calendar::Calendar>>,
        rereads: Option<Rereads>,
    ) -> Seen {
        Seen {
            source: source.clone(),
            zone: self.zone.name.clone(),
            reading,
            kept,
            rereads,
        }
    }
}
