//! What a forge shows of a pull request whose branch somebody else pushes to: whether it is a draft, its labels,
//! and whether it has conflicts.
//!
//! Gitea has one word for a conflict and for "not found out yet", and finds out only if the pull request is
//! asked about alone. So one that has another head, or could not be merged, is asked about alone; what is not
//! known after some seconds counts as a conflict. A busy Gitea takes longer to find out, so that it is asked often
//! for two minutes, and then alone, once a minute, as long as the conflict lasts.

use jiff::{SignedDuration, Timestamp};
use sluice_crds::PullRequestStatus;

use super::{Mergeable, Pull, Recent};
use crate::text::words::clean;

/// What is not known after so long counts as a conflict, and after so long it is one.
const UNSURE: SignedDuration = SignedDuration::from_secs(10);
const SURE: SignedDuration = SignedDuration::from_mins(2);

/// The most labels, and the most characters of one.
const MOST_LABELS: usize = 32;
const LONGEST_LABEL: usize = 128;

/// How it was seen.
pub(super) struct Seen<'a> {
    pub(super) pull: &'a Pull,
    /// Whether it was asked about alone.
    pub(super) is_alone: bool,
    /// Whether it has another head than before.
    pub(super) is_moved: bool,
    /// The label that holds it back.
    pub(super) hold_label: Option<&'a str>,
    pub(super) now: Timestamp,
}

/// Takes what was seen into the status.
pub(super) fn take(seen: &Seen<'_>, status: &mut PullRequestStatus, recent: &mut Recent) {
    let pull = seen.pull;
    status.draft = pull.draft;
    status.labels = labels(pull, seen.hold_label);
    recent.text = pull.text;
    let is_sure = seen.is_alone && !seen.is_moved;
    match pull.mergeable {
        Mergeable::Unsaid => (status.conflict, recent.unsure_since) = (false, None),
        // Of a draft Gitea says that it cannot be merged.
        _ if pull.draft => (status.conflict, recent.unsure_since) = (false, None),
        Mergeable::Conflict => (status.conflict, recent.unsure_since) = (true, None),
        Mergeable::Yes if is_sure => (status.conflict, recent.unsure_since) = (false, None),
        Mergeable::Unknown if is_sure => {
            // A conflict that stands, and is not in doubt, stays one.
            let is_new = !status.conflict;
            let since = recent.unsure_since.or(is_new.then_some(seen.now));
            let unsure = since.map(|since| seen.now.duration_since(since));
            status.conflict |= unsure.is_some_and(|it| it >= UNSURE);
            recent.unsure_since = since.filter(|_| unsure.is_some_and(|it| it < SURE));
        }
        Mergeable::Yes | Mergeable::Unknown if seen.is_moved => {
            recent.unsure_since = Some(seen.now);
        }
        Mergeable::Yes | Mergeable::Unknown => {}
    }
}

/// The one that holds it back is never left out. One with more labels than were read counts as having it.
fn labels(pull: &Pull, hold: Option<&str>) -> Vec<String> {
    let unread = hold.filter(|_| pull.labels_cut).map(str::to_owned);
    let all = pull.labels.iter().map(|it| clean(it, LONGEST_LABEL));
    let mut labels: Vec<_> = all.chain(unread).collect();
    labels.sort_by_key(|it| (hold != Some(it.as_str()), it.clone()));
    labels.dedup();
    labels.truncate(MOST_LABELS);
    labels.sort();
    labels
}
