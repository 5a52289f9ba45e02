//! Which revision of an event counts, where a calendar holds several: RFC 5546, section 2.1.5.
//!
//! What comes in: events with their UID, RECURRENCE-ID, SEQUENCE, DTSTAMP and LAST-MODIFIED. What
//! goes out: those of them that no other one supersedes, in the same order.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::Date;

use super::draft::Draft;
use super::values::When;

/// What an event is a revision of: a series, or that of its instances which started on that day or
/// at that instant.
#[derive(PartialEq, Eq, Hash)]
enum Subject {
    Series,
    Day(Date),
    Time(Option<Timestamp>),
}

impl Subject {
    fn of(replaces: Option<&When>) -> Self {
        match replaces {
            None => Self::Series,
            Some(start) if start.all_day => Self::Day(start.wall.date()),
            Some(start) => Self::Time(start.instant()),
        }
    }
}

/// The drafts without those that another one supersedes: of one UID and one RECURRENCE-ID, those with
/// the highest SEQUENCE stay; of these, those with the latest DTSTAMP, then with the latest
/// LAST-MODIFIED, if all of them have one. Where that leaves several, all of them count:
/// it cannot be known which one is meant.
pub(super) fn newest(mut drafts: Vec<Draft>) -> Vec<Draft> {
    let mut revisions: HashMap<(&str, Subject), Vec<usize>> = HashMap::new();
    let mut counts = vec![true; drafts.len()];
    for (place, draft) in drafts.iter().enumerate() {
        if let Some(uid) = &draft.uid {
            let subject = Subject::of(draft.replaces.as_ref());
            revisions.entry((uid, subject)).or_default().push(place);
        }
    }
    for mut left in revisions.into_values().filter(|places| places.len() > 1) {
        let all = left.clone();
        let of = |place: &usize| drafts.get(*place).map(|draft| &draft.revision);
        keep_latest(&mut left, |place| Some(of(place)?.sequence));
        keep_latest(&mut left, |place| of(place)?.stamped);
        keep_latest(&mut left, |place| of(place)?.modified);
        for place in all {
            counts[place] = left.contains(&place);
        }
    }
    let mut counts = counts.into_iter();
    drafts.retain(|_| counts.next().unwrap_or(true));
    drafts
}

/// Keeps the places with the largest key, if each has one.
fn keep_latest<T: Ord + Copy>(places: &mut Vec<usize>, key: impl Fn(&usize) -> Option<T>) {
    let keys: Option<Vec<T>> = places.iter().map(&key).collect();
    if let Some(latest) = keys.and_then(|keys| keys.into_iter().max()) {
        places.retain(|place| key(place) == Some(latest));
    }
}
