//! After a restart, before the lists have been read that decide about each revision.

use rstest::rstest;

use super::*;
use crate::gatekeeper::approval::{Authors, Votes};
use crate::gatekeeper::revisions::List;
use crate::revision::Revision;

const LISTED: &str =
    "{revisions: {allow: [main], denyFrom: [{configMapRef: {name: denied, key: list}}]}}";
const FOUR_EYES: &str = "{approval: {required: 1, validFor: 24h, forbidSelf: {configMapRef: {name: authors, key: list}}}}";

fn list() -> Evidence {
    let list = List::parse("v1.*\n").unwrap();
    Evidence::of(vec![crate::gatekeeper::revisions::Reading::Read(Arc::new(
        list,
    ))])
}

fn authors() -> Evidence {
    Evidence::of(Votes {
        authors: Some(crate::gatekeeper::approval::Reading::Read(Arc::new(
            Authors::default(),
        ))),
        verified: true,
        ..Votes::default()
    })
}

/// Of a vote nobody knows whose the revision is.
fn unread_votes() -> Evidence {
    Evidence::of(Votes {
        verified: true,
        ..Votes::default()
    })
}

/// A status speaks of no revision: it stands in where nobody asks about one, and nowhere else.
#[rstest]
#[case::lists(LISTED, list(), Evidence::default())]
#[case::authors(FOUR_EYES, authors(), unread_votes())]
fn a_status_stands_in_for_lists_but_for_no_revision(
    #[case] spec: &str,
    #[case] read: Evidence,
    #[case] unread: Evidence,
) {
    let before = Keeper::new(Arc::new(object(spec)), read, at(FRIDAY_10));
    let status = status(&before, FRIDAY_10);
    assert_eq!(status.verdict.as_ref().unwrap().state, State::Conditional);
    let mut restarted = object(spec);
    let fresh = Keeper::new(Arc::new(restarted.clone()), unread.clone(), at(FRIDAY_10));
    let first = super::super::report(&fresh, now(FRIDAY_10));
    let reason = |report: &Report| report.status.verdict.as_ref().unwrap().reason.clone();
    assert_eq!(
        (first.changed, reason(&first).as_str()),
        (true, "NotObserved")
    );

    restarted.status = Some(status);
    let restarted = Keeper::new(Arc::new(restarted), unread, at(FRIDAY_10));
    assert!(!super::super::report(&restarted, now(FRIDAY_10)).changed);
    assert!(restarted.uses_status_fallback(now(FRIDAY_10)));
    assert_eq!(restarted.opinion(now(FRIDAY_10)).state, State::Conditional);
    let main = Revision::parse("main").unwrap();
    let opinion = restarted.opinion(Question::new(now(FRIDAY_10), Some(&main)));
    assert_eq!(
        (opinion.state, opinion.reason),
        (State::Closed, Reason::NotObserved)
    );
}
