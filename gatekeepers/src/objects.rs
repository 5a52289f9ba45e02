//! Evidence for `objects`: the state of other objects, seen with the rights of a service account.
//!
//! What comes in: the spec, and what was seen of each of its parts before. What goes out: what is seen of
//! all of them now, as `sluice_core::gatekeeper::objects` judges it. A [`Look`] finds the kind
//! ([`kinds`]), asks for the account's right ([`rights`]), and reads what has happened since the last
//! look ([`watches`]): every change, so that a moment in which something was not ready between two looks
//! is not missed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use jiff::{SignedDuration, Timestamp};
use sluice_core::gatekeeper::Evidence;
use sluice_core::gatekeeper::objects::{self, Course, Observed, Part, Rule, Sighting};
use sluice_core::time::span::later;
use sluice_crds::Gatekeeper;
use sluice_crds::gatekeeper::{self as api, ObjectRule, ObjectsStatus};

use crate::observation::{self, Look as Asked, Observation, Observe, namespace};
use crate::source::{ObjectsKey, Source};

mod answers;
mod follow;
mod kinds;
mod look;
mod rights;
mod store;
#[cfg(test)]
mod tests;
mod watches;

use kinds::Obstacle;
use look::Look;
use store::Cursor;
pub use store::Limits;
pub use watches::ObjectWatches;

/// How long to wait for one answer of the API server.
const DEADLINE: Duration = Duration::from_secs(10);
/// How soon to look again though nothing has changed.
const LOOK: SignedDuration = SignedDuration::from_secs(60);
/// For how long others may rely on what was seen. It is renewed when half of that time is over.
const GOOD_FOR: SignedDuration = SignedDuration::from_mins(30);
/// The most objects that one part may be about.
pub const MOST_OBJECTS: usize = 1000;

/// What was seen for one gatekeeper.
#[derive(Clone, Debug, Default)]
struct Seen {
    rule: Option<(api::Objects, Arc<Rule>)>,
    parts: Vec<Followed>,
    /// The evidence. None: nothing was observed yet, or there is nothing to observe.
    observed: Option<Observed>,
    again: Option<Timestamp>,
    /// Until when it is not looked at: looking took too long.
    put_off_until: Option<Timestamp>,
    asks_again: bool,
}

/// A part, followed over time.
#[derive(Clone, Debug)]
struct Followed {
    spec: ObjectRule,
    course: Arc<Course>,
    /// How far its watch was read.
    cursor: Cursor,
    /// When its rights are asked for again.
    again: Timestamp,
}

impl Seen {
    /// Whether a look at `spec` is delayed, even if something has changed.
    fn is_put_off(&self, spec: &api::Objects, now: Timestamp) -> bool {
        let same = self.rule.as_ref().is_some_and(|(before, _)| before == spec);
        same && !self.asks_again && self.put_off_until.is_some_and(|until| now < until)
    }
}

impl observation::Seen for Seen {
    /// The next look asks for everything again, also for what was answered before.
    fn make_due(&mut self) {
        self.asks_again = true;
    }
}

impl Observe for api::Objects {
    fn sources(&self, namespace: &str) -> Vec<Source> {
        sources(self, namespace)
    }

    fn known(&self, last: &Observation) -> Option<Evidence> {
        let last = last.seen().cloned().unwrap_or_default();
        known(self, &last).map(evidence)
    }

    fn observe<'a>(&'a self, look: Asked<'a>) -> BoxFuture<'a, Observation> {
        async move {
            let said = look.status().and_then(|it| it.objects.as_ref());
            let (watches, last) = (&look.clients.objects, look.seen().unwrap_or_default());
            let seen = observe(look.object, self, watches, &last, said, look.now).await;
            Observation::new(evidence(seen.observed.clone()), seen.again, seen)
        }
        .boxed()
    }
}

fn evidence(observed: Option<Observed>) -> Evidence {
    observed.map_or_else(Evidence::default, Evidence::of)
}

/// What the objects of a spec are read from. Whether a kind has namespaces is not known from a
/// spec: each is watched in its namespace or, if it has none, without one.
fn sources(spec: &api::Objects, namespace: &str) -> Vec<Source> {
    let keys = spec.of.iter().flat_map(|part| {
        let own = part.namespace.as_deref().unwrap_or(namespace);
        [Some(own), None].map(|namespace| Source::Objects(key(part, namespace)))
    });
    let mut keys: Vec<_> = keys.collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn key(part: &ObjectRule, namespace: Option<&str>) -> ObjectsKey {
    ObjectsKey {
        api_version: part.api_version.clone(),
        kind: part.kind.clone(),
        namespace: namespace.map(str::to_owned),
    }
}

/// The evidence for `spec`, if all of it was seen already, for this spec or for an earlier one, with the
/// rights of the same account. A spec that is refused needs nothing.
fn known(spec: &api::Objects, last: &Seen) -> Option<Option<Observed>> {
    let Ok(rule) = Rule::read(spec, "spec.objects") else {
        return Some(None);
    };
    let (before, _) = last.rule.as_ref()?;
    if before.service_account_name != spec.service_account_name {
        return None;
    }
    let found = |part: &Part| find(&last.parts, part).map(|followed| &*followed.course);
    let courses: Option<Vec<&Course>> = rule.parts().iter().map(found).collect();
    let courses = courses?;
    match last.observed.as_ref()? {
        Observed::Unavailable(why) => Some(Some(Observed::Unavailable(why.clone()))),
        Observed::Seen(sighting) => {
            let parts: Vec<_> = rule.parts().iter().zip(courses).collect();
            let sighting = Sighting::of(&parts, sighting.good_until);
            Some(Some(Observed::Seen(sighting)))
        }
    }
}

fn find<'a>(last: &'a [Followed], part: &Part) -> Option<&'a Followed> {
    last.iter().find(|followed| followed.spec == *part.spec())
}

/// The objects as they are seen at `now`. `said` is what a status says of exactly this spec, if that
/// still holds: a controller that has just started continues from there. A spec that is refused has no
/// objects.
async fn observe(
    object: &Gatekeeper,
    spec: &api::Objects,
    watches: &ObjectWatches,
    last: &Seen,
    said: Option<&ObjectsStatus>,
    now: Timestamp,
) -> Seen {
    let Some(rule) = read(spec, last) else {
        return Seen::default();
    };
    if last.is_put_off(spec, now) {
        return Seen {
            again: last.put_off_until,
            ..last.clone()
        };
    }
    let look = Look {
        home: namespace(object),
        rule: Arc::clone(&rule),
        watches,
        asks_again: last.asks_again,
        now,
        began: Instant::now(),
    };
    let parts = rule.parts().iter().enumerate();
    let looks = parts.map(|(n, part)| look.at(n, find(&last.parts, part)));
    let looked = join_all(looks).await;
    let mut seen = gathered(&rule, looked, last, now);
    if !matches!(last.observed, Some(Observed::Seen(_)))
        && matches!(seen.observed, Some(Observed::Seen(_)))
        && let Some(said) = said
    {
        let courses = seen.parts.iter_mut();
        let courses = courses.map(|followed| Arc::make_mut(&mut followed.course));
        objects::resume(courses, said, now);
        seen.observed = Some(Observed::Seen(sighting(&rule, &seen.parts, last, now)));
    }
    Seen {
        rule: Some((spec.clone(), rule)),
        ..seen
    }
}

/// The rule of a spec; the same as before, if it is the same spec.
fn read(spec: &api::Objects, last: &Seen) -> Option<Arc<Rule>> {
    match &last.rule {
        Some((before, rule)) if before == spec => Some(Arc::clone(rule)),
        _ => Rule::read(spec, "spec.objects").ok().map(Arc::new),
    }
}

/// The results of looking at each part.
fn gathered(
    rule: &Rule,
    looked: Vec<Result<Followed, (Option<Followed>, Obstacle)>>,
    last: &Seen,
    now: Timestamp,
) -> Seen {
    let mut obstacle: Option<Obstacle> = None;
    let mut put_off_until = None;
    let mut again = later(now, LOOK);
    let mut parts = Vec::with_capacity(looked.len());
    for part in looked {
        match part {
            Ok(followed) => {
                again = again.min(followed.again);
                parts.push(followed);
            }
            Err((before, found)) => {
                again = again.min(found.again);
                put_off_until = put_off_until.max(found.costly.then_some(found.again));
                // What was seen of it is kept although something is in the way: it was watched all the
                // time.
                parts.extend(before);
                obstacle = obstacle.or(Some(found));
            }
        }
    }
    let observed = match obstacle {
        Some(obstacle) => Observed::Unavailable(obstacle.why),
        None => Observed::Seen(sighting(rule, &parts, last, now)),
    };
    Seen {
        rule: None,
        parts,
        observed: Some(observed),
        again: Some(again),
        put_off_until,
        asks_again: false,
    }
}

fn sighting(rule: &Rule, parts: &[Followed], last: &Seen, now: Timestamp) -> Sighting {
    let courses = parts.iter().map(|followed| &*followed.course);
    let parts: Vec<_> = rule.parts().iter().zip(courses).collect();
    Sighting::of(&parts, good_until(last, now))
}

/// Until when others may rely on what is seen now: the instant that they were given before, as long as
/// half of the time is left, so that seeing the same again is not reported as a change.
fn good_until(last: &Seen, now: Timestamp) -> Timestamp {
    let before = last.observed.as_ref().and_then(Observed::good_until);
    let left = |end: &Timestamp| end.duration_since(now);
    let stands = |end: &Timestamp| left(end) * 2 >= GOOD_FOR && left(end) <= GOOD_FOR;
    let fresh = || later(now, GOOD_FOR);
    before.filter(stands).unwrap_or_else(fresh)
}
