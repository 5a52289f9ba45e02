//! What is seen of a promotion beside its record.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sluice_crds::PullRequest;
use sluice_crds::pipeline::{MergeGate, Phase, PromotionRecord, PullRequestRecord};
use sluice_crds::pull_request::PullRequestState;

use super::super::child;
use super::super::key::repeat_after;
use super::super::reasons::{MERGED, MERGED_PAST_GATE, SENT};
use super::super::step::{Due, Try};
use super::super::{Errand, Outcome};
use super::Context;
use crate::time::stamp::time;

/// For how long a decision counts that has not been carried out.
const OLD: SignedDuration = SignedDuration::from_secs(60);

/// The PullRequest with this key, if the record names it: what somebody else has made ahead of it does not
/// count.
pub(super) fn named_object<'g>(
    context: Context<'g>,
    key: &str,
    record: Option<&PromotionRecord>,
) -> Option<&'g Arc<PullRequest>> {
    let of = record?.pull_request.as_ref()?;
    object(context, key).filter(|object| object.metadata.name.as_ref() == Some(&of.name))
}

/// The PullRequest with this key.
pub(super) fn object<'g>(context: Context<'g>, key: &str) -> Option<&'g Arc<PullRequest>> {
    let mut own = context.own.iter();
    own.find(|(about, _)| about.key == key)
        .map(|(_, object)| *object)
}

/// A record with what is seen of its pull request now.
pub(super) fn seen(context: Context<'_>, record: &PromotionRecord) -> PromotionRecord {
    match &record.pull_request {
        None => record.clone(),
        Some(_) => with_child(record.clone(), object(context, &record.key)),
    }
}

/// A record with what is seen of its pull request.
pub(super) fn with_child(
    record: PromotionRecord,
    object: Option<&Arc<PullRequest>>,
) -> PromotionRecord {
    let Some(object) = object else {
        return record;
    };
    let before = record.pull_request.clone();
    let before = before.unwrap_or_else(|| PullRequestRecord {
        name: object.metadata.name.clone().unwrap_or_default(),
        url: None,
        state: None,
        commit_sha: None,
        merge_commit: None,
        merged_onto: None,
    });
    PromotionRecord {
        pull_request: Some(child::mirrored(&before, object)),
        ..record
    }
}

/// A record with the name of the PullRequest that it is going to have. From here on there may be one.
/// `is_asked`: its gates are asked before it is opened.
pub(super) fn named(
    context: Context<'_>,
    record: PromotionRecord,
    is_asked: bool,
) -> PromotionRecord {
    let name = child::name(context.whose, &record.key);
    PromotionRecord {
        pull_request: Some(PullRequestRecord {
            name,
            url: None,
            state: None,
            commit_sha: None,
            merge_commit: None,
            merged_onto: None,
        }),
        gate: (!is_asked).then_some(MergeGate::Pending),
        ..record
    }
}

/// The reason of a success. A merge while the gates held it back is called by its name.
pub(super) fn reason(record: &PromotionRecord, reason: &'static str) -> &'static str {
    match (reason, record.gate, &record.order) {
        (MERGED, Some(MergeGate::Pending), None) => MERGED_PAST_GATE,
        _ => reason,
    }
}

/// A record that was over before its pull request was seen to be merged.
pub(super) fn merged(record: PromotionRecord) -> PromotionRecord {
    let state = record.pull_request.as_ref().and_then(|it| it.state);
    match state.filter(|state| state.is_final()) {
        Some(PullRequestState::Merged) if record.gate == Some(MergeGate::Pending) => {
            PromotionRecord {
                reason: Some(MERGED_PAST_GATE.to_owned()),
                gate: None,
                ..record
            }
        }
        Some(_) => PromotionRecord {
            gate: None,
            ..record
        },
        None => record,
    }
}

/// The errand of the present try.
pub(in super::super) fn errand(record: &PromotionRecord) -> Errand {
    let number = record.attempts.saturating_add(record.repeats);
    Errand::Try(record.key.clone(), number)
}

/// What has come of the present try. What was done before and could not be done again is tried once more
/// when it is time.
pub(super) fn tried(context: Context<'_>, record: &PromotionRecord) -> Try {
    match context.given.errands.get(&errand(record)) {
        None if is_old(record, context.now) => Try::TooOld,
        None => Try::NotBegun,
        Some(Outcome::UnderWay | Outcome::Recalled(_)) => Try::UnderWay,
        Some(Outcome::Done) => Try::Done,
        Some(Outcome::Failed { not_before, .. }) if record.phase == Phase::Succeeded => {
            match not_before.is_some_and(|not_before| context.now < not_before) {
                true => Try::Failed,
                false => Try::NotBegun,
            }
        }
        Some(Outcome::Failed { .. }) => Try::Failed,
    }
}

/// Whether what was decided is too old to be done without asking the gates again.
fn is_old(record: &PromotionRecord, now: Timestamp) -> bool {
    let end = record.at.0.saturating_add(OLD);
    record.phase == Phase::Attempting && end.is_ok_and(|end| time(end).0 <= now)
}

pub(super) fn tried_of(context: Context<'_>, record: Option<&PromotionRecord>) -> Try {
    record.map_or(Try::NotBegun, |record| tried(context, record))
}

/// Whether what has failed is tried again now.
pub(super) fn retry(record: &Option<PromotionRecord>, now: Timestamp) -> Due {
    let next = record.as_ref().and_then(|it| it.next_attempt_at.as_ref());
    due(next.is_none_or(|next| next.0 <= now))
}

/// Whether a notification that has had no effect is sent again now.
pub(super) fn repeat(record: &Option<PromotionRecord>, now: Timestamp) -> Due {
    let is_due = record.as_ref().is_some_and(|record| {
        let again = record.at.0.saturating_add(repeat_after(record.repeats));
        is_sent(record) && again.is_ok_and(|again| time(again).0 <= now)
    });
    due(is_due)
}

/// Whether it was sent, and nothing has come of it.
pub(super) fn is_sent(record: &PromotionRecord) -> bool {
    record.phase == Phase::Succeeded && record.reason.as_deref() == Some(SENT)
}

fn due(is_due: bool) -> Due {
    match is_due {
        true => Due::Now,
        false => Due::Later,
    }
}
