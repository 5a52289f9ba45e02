//! What is reported of a commit status when its forge cannot be told, or can again: in the log, and by an event.

use sluice_core::verdict::condition::{READY, find};
use sluice_crds::CommitStatus;

use crate::act::reconcile::Context;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::tell::events::{About, Told};

/// While it is being told, nothing is known.
const POSTING: &str = "Posting";

/// Reports what is new.
pub(super) fn tell(context: &Context, key: &ObjectKey, before: &CommitStatus, now: &CommitStatus) {
    let Some((warning, reason, message)) = news(before, now) else {
        return;
    };
    tracing::info!(
        kind = "CommitStatus",
        namespace = %key.namespace,
        name = %key.name,
        reason,
        "{message}"
    );
    context.events.tell(Told {
        about: About::new(Work::own(Kind::CommitStatus, key.clone()), now),
        warning,
        reason: reason.into(),
        action: "Post",
        note: message.into(),
        more: None,
    });
}

/// Whether it is a warning, a word and a sentence. None: nothing that anybody has to know.
fn news(before: &CommitStatus, now: &CommitStatus) -> Option<(bool, String, String)> {
    let (is_shown, reason, message) = ready(now)?;
    let is_known = |reason: &str| reason != POSTING;
    let is_same = match ready(before).filter(|(_, was, _)| is_known(was)) {
        // That it is shown is news only after it could not be.
        Some((true, ..)) | None if is_shown => true,
        Some((_, was, _)) => was == reason,
        None => false,
    };
    (!is_same && is_known(&reason)).then_some((!is_shown, reason, message))
}

fn ready(object: &CommitStatus) -> Option<(bool, String, String)> {
    let ready = find(&object.status.as_ref()?.conditions, READY)?;
    let is_shown = ready.status == "True";
    Some((is_shown, ready.reason.clone(), ready.message.clone()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn object(ready: Option<(&str, &str)>) -> CommitStatus {
        let conditions = ready.map(|(status, reason)| {
            json!([{
                "type": "Ready", "status": status, "reason": reason, "message": "why",
                "lastTransitionTime": "2026-11-20T12:00:00Z",
            }])
        });
        serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "CommitStatus",
            "metadata": {"namespace": "apps", "name": "test"},
            "spec": {
                "repoRef": {"name": "shop"}, "sha": "7".repeat(40), "name": "test",
                "phase": "success",
            },
            "status": {"conditions": conditions.unwrap_or_else(|| json!([]))},
        }))
        .unwrap()
    }

    const POSTED: Option<(&str, &str)> = Some(("True", "Posted"));
    const BEGINS: Option<(&str, &str)> = Some(("False", "Posting"));
    const FAILS: Option<(&str, &str)> = Some(("False", "NoCommit"));

    #[rstest]
    #[case::begins(None, BEGINS, None)]
    #[case::shown(BEGINS, POSTED, None)]
    #[case::shown_at_once(None, POSTED, None)]
    #[case::shown_again(POSTED, POSTED, None)]
    #[case::fails_at_once(None, FAILS, Some(true))]
    #[case::fails_first(BEGINS, FAILS, Some(true))]
    #[case::fails(POSTED, FAILS, Some(true))]
    #[case::still(FAILS, FAILS, None)]
    #[case::otherwise(FAILS, Some(("False", "Unanswered")), Some(true))]
    #[case::another_try(FAILS, BEGINS, None)]
    #[case::again(FAILS, POSTED, Some(false))]
    fn what_has_changed_is_told(
        #[case] before: Option<(&str, &str)>,
        #[case] now: Option<(&str, &str)>,
        #[case] expected: Option<bool>,
    ) {
        let told = news(&object(before), &object(now));
        assert_eq!(told.map(|(warning, ..)| warning), expected);
    }
}
