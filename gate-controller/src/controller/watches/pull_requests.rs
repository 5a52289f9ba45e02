//! The watch of pull requests.

use kube::ResourceExt;
use sluice_crds::{Pipeline, PromotionStrategy, PullRequest};

use super::promotion_strategies::at_each_step;
use super::{Parts, follow_kind};
use crate::act::reconcile::pull_request::owner;
use crate::act::shard::Shard;
use crate::cluster::kind::Kind;
use crate::observe::cache::{Change, Seen};

/// Follows pull requests. The owner of each that changes records what becomes of it.
pub(super) async fn follow(parts: Parts) {
    let waker = parts.waker.clone();
    let told = |change: &Change<'_, PullRequest>| {
        if is_another(&parts.shard, change) {
            parts.at_forges.forget(change.key);
        }
        let seen = change.now.or(change.before).and_then(Seen::object);
        let owner = seen.and_then(|object| owner(change.key, &object.spec.about));
        if let Some(owner) = owner {
            waker.wake(owner);
        }
    };
    let following = follow_kind(&parts, parts.api(), told);
    // Owners wait until it is known which there are, or that none can be.
    tokio::join!(
        following,
        at_each_step::<PullRequest, Pipeline>(&parts),
        at_each_step::<PullRequest, PromotionStrategy>(&parts)
    );
}

/// Whether what is known of it is of no use any more: it is gone, another one has its name, or another shard
/// looks at it.
fn is_another(shard: &Shard, change: &Change<'_, PullRequest>) -> bool {
    let uid =
        |seen: Option<&Seen<PullRequest>>| seen.and_then(Seen::object).and_then(|it| it.uid());
    let now = change.now.and_then(Seen::object);
    let is_held = now.is_some_and(|it| shard.holds(Kind::PullRequest, it.labels()));
    !is_held || (change.before.is_some() && uid(change.before) != uid(change.now))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::cluster::key::ObjectKey;

    fn seen(uid: &str, shard: &str) -> Seen<PullRequest> {
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "PullRequest",
            "metadata": {
                "namespace": "apps", "name": "one", "uid": uid, "labels": {"shard": shard},
            },
            "spec": {
                "repository": {
                    "type": "gitea", "url": "https://git.example.com/a/b", "secretRef": {"name": "t"},
                },
                "sourceBranch": "a", "targetBranch": "main", "title": "t",
                "change": {"markers": {"name": "a:b:c", "revision": "1", "paths": ["a"]}},
                "about": {"kind": "Pipeline", "name": "b", "environment": "c", "key": "k"},
            },
        });
        Seen::Object(Arc::new(serde_json::from_value(object).unwrap()))
    }

    #[rstest]
    #[case::new(None, Some(("u", "one")), false)]
    #[case::the_same(Some(("u", "one")), Some(("u", "one")), false)]
    #[case::gone(Some(("u", "one")), None, true)]
    #[case::another_of_its_name(Some(("u", "one")), Some(("v", "one")), true)]
    #[case::of_another_shard(Some(("u", "one")), Some(("u", "two")), true)]
    fn what_is_known_of_another_one_is_forgotten(
        #[case] before: Option<(&str, &str)>,
        #[case] now: Option<(&str, &str)>,
        #[case] expected: bool,
    ) {
        let shard = Shard::parse(Some("shard=one")).unwrap();
        let object = |it: Option<(&str, &str)>| it.map(|(uid, shard)| seen(uid, shard));
        let (before, now) = (object(before), object(now));
        let key = ObjectKey {
            namespace: "apps".into(),
            name: "one".into(),
        };
        let change = Change {
            key: &key,
            before: before.as_ref(),
            now: now.as_ref(),
        };
        assert_eq!(is_another(&shard, &change), expected);
    }
}
