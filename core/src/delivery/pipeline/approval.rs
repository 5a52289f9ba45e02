//! Step 3: whether a person has approved a promotion, where one has to.
//!
//! One approval is enough, and one rejection holds until its author takes it back. Both are for one run:
//! who approves a revision once has not approved that it is promoted again. An approval that names the key
//! of a promotion does not count for another way to do it. Who may approve what, the API server says: a
//! right for each environment. A ServiceAccount that has it counts, such as that of a
//! pipeline of CI.

use sluice_crds::Approval;
use sluice_crds::approval::Vote;

use super::Votes;
use super::whose::Whose;
use crate::revision::Revision;

/// What people say of a promotion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Nobody has to approve it.
    NotNeeded,
    /// It is approved.
    Approved,
    /// Nobody has approved it yet.
    Awaited,
    /// It is approved, and it is not verified by whom.
    Unverified,
    /// It is rejected: by whom.
    Rejected(String),
}

/// What people say of the promotion of `revision` in a run to an environment. A rejection counts also where
/// no approval is needed. If its revision cannot be read, it rejects what that run promotes.
pub(super) fn word(
    votes: &Votes,
    is_needed: bool,
    whose: Whose<'_>,
    environment: &str,
    run: i64,
    revision: &Revision,
    key: &str,
) -> Word {
    let is_about = |approval: &Approval| {
        let named = approval.spec.pipeline_ref.as_ref();
        named.is_some_and(|it| {
            it.name == whose.name && it.environment == environment && it.run == run
        }) && approval.metadata.deletion_timestamp.is_none()
    };
    let about = votes.all.iter().filter(|approval| is_about(approval));
    let mut is_approved = false;
    for approval in about {
        let named = Revision::parse(&approval.spec.revision);
        let of = approval.spec.pipeline_ref.as_ref();
        let of = of.and_then(|it| it.key.as_deref());
        let is_this_way = of.is_none_or(|of| of == key);
        match (approval.spec.decision, named) {
            (Vote::Reject, Ok(named)) if !named.is(revision) => {}
            (Vote::Reject, _) => return Word::Rejected(approval.spec.by.clone()),
            (Vote::Approve, Ok(named)) => is_approved |= is_this_way && named.is(revision),
            (Vote::Approve, Err(_)) => {}
        }
    }
    match (is_needed, is_approved) {
        (false, _) => Word::NotNeeded,
        (true, false) => Word::Awaited,
        (true, true) if votes.verified => Word::Approved,
        (true, true) => Word::Unverified,
    }
}
