//! What is reported of an access when it can be used no more, or again: in the log, and by an event.

use sluice_core::verdict::condition::{READY, find};
use sluice_crds::GitRepositoryAccess;

use crate::act::reconcile::Context;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::tell::events::{About, Told};

/// Reports what is new.
pub(super) fn tell(
    context: &Context,
    key: &ObjectKey,
    before: &GitRepositoryAccess,
    now: &GitRepositoryAccess,
) {
    let Some((warning, reason, message)) = news(before, now) else {
        return;
    };
    tracing::info!(
        kind = "GitRepositoryAccess",
        namespace = %key.namespace,
        name = %key.name,
        reason,
        "{message}"
    );
    context.events.tell(Told {
        about: About::new(Work::own(Kind::GitRepositoryAccess, key.clone()), now),
        warning,
        reason: reason.into(),
        action: "Read",
        note: message.into(),
        more: None,
    });
}

/// Whether it is a warning, a word and a sentence. None: nothing that anybody has to know.
fn news(before: &GitRepositoryAccess, now: &GitRepositoryAccess) -> Option<(bool, String, String)> {
    let ready = |object: &GitRepositoryAccess| {
        let ready = find(&object.status.as_ref()?.conditions, READY)?;
        let is_begun = ready.reason == "Listing";
        (!is_begun).then(|| {
            (
                ready.status == "True",
                ready.reason.clone(),
                ready.message.clone(),
            )
        })
    };
    let (is_ready, reason, message) = ready(now)?;
    let was = ready(before);
    let is_same = match &was {
        // That it is needed, or not any more, is nothing to tell.
        Some((was_ready, ..)) if *was_ready && is_ready => true,
        Some((_, was, _)) => *was == reason,
        None => is_ready,
    };
    (!is_same).then_some((!is_ready, reason, message))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn object(ready: Option<(&str, &str)>) -> GitRepositoryAccess {
        let conditions = ready.map(|(status, reason)| {
            json!([{
                "type": "Ready", "status": status, "reason": reason, "message": "why",
                "lastTransitionTime": "2026-11-20T12:00:00Z",
            }])
        });
        serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "GitRepositoryAccess",
            "metadata": {"namespace": "apps", "name": "shop"},
            "spec": {
                "provider": "gitea", "url": "https://git.example.com/acme/shop",
                "secretRef": {"name": "token"},
            },
            "status": {"conditions": conditions.unwrap_or_else(|| json!([]))},
        }))
        .unwrap()
    }

    const LISTED: Option<(&str, &str)> = Some(("True", "Listed"));
    const FAILS: Option<(&str, &str)> = Some(("False", "Unauthorized"));

    #[rstest]
    #[case::new(None, LISTED, None)]
    #[case::begins(None, Some(("False", "Listing")), None)]
    #[case::idle(LISTED, Some(("True", "NotNeeded")), None)]
    #[case::fails_at_once(None, FAILS, Some(true))]
    #[case::fails(LISTED, FAILS, Some(true))]
    #[case::still(FAILS, FAILS, None)]
    #[case::otherwise(FAILS, Some(("False", "Unanswered")), Some(true))]
    #[case::again(FAILS, LISTED, Some(false))]
    fn what_has_changed_is_told(
        #[case] before: Option<(&str, &str)>,
        #[case] now: Option<(&str, &str)>,
        #[case] expected: Option<bool>,
    ) {
        let told = news(&object(before), &object(now));
        assert_eq!(told.map(|(warning, ..)| warning), expected);
    }
}
