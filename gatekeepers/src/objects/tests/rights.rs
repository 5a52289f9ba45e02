//! With whose rights objects are seen.

use super::*;
use crate::observation::Seen as _;

#[tokio::test]
async fn the_api_server_is_asked_for_the_account_and_its_groups() {
    let stage = Stage::new();
    stage.put("web", ready());
    let node = json!({ "apiVersion": "v1", "kind": "Node", "selector": {} });
    stage
        .look(&spec(&[named("web"), node]), &Seen::default(), 0)
        .await;
    let asked = |attributes: Value| {
        json!({
            "user": "system:serviceaccount:apps:reader",
            "groups": [
                "system:serviceaccounts", "system:serviceaccounts:apps", "system:authenticated",
            ],
            "resourceAttributes": attributes,
        })
    };
    let reviews = stage.api.reviews();
    for verb in ["get", "list", "watch"] {
        let deployment = json!({
            "group": "apps", "resource": "deployments", "namespace": "apps", "verb": verb,
        });
        let node = json!({ "group": "", "resource": "nodes", "verb": verb });
        assert!(reviews.contains(&asked(deployment)), "{verb}: {reviews:?}");
        assert!(reviews.contains(&asked(node)), "{verb}: {reviews:?}");
    }
    assert_eq!(reviews.len(), 6);
}

#[tokio::test]
async fn the_right_to_one_object_is_enough_for_it() {
    let stage = Stage::new();
    stage.put("web", ready());
    stage.put("api", ready());
    stage
        .api
        .put_account("apps", "reader", &["deployments/web"]);
    let seen = stage
        .look(&spec(&[named("web")]), &Seen::default(), 0)
        .await;
    assert_eq!(counts(&seen), (1, 1, Some(0)));
    for spec in [spec(&[named("api")]), spec(&[all()])] {
        let seen = stage.look(&spec, &Seen::default(), 0).await;
        assert!(why(&seen).contains("may not get deployments.apps"));
    }
}

#[tokio::test]
async fn a_missing_right_is_named_and_nothing_is_watched() {
    let stage = Stage::new();
    stage.api.put_account("apps", "reader", &["pods"]);
    let seen = stage.look(&spec(&[all()]), &Seen::default(), 0).await;
    assert_eq!(
        why(&seen),
        "the service account apps/reader may not get deployments.apps in namespace apps: grant it \
         get, list, watch"
    );
    let seen = stage
        .look(&spec(&[named("web")]), &Seen::default(), 0)
        .await;
    assert_eq!(
        why(&seen),
        "the service account apps/reader may not get deployments.apps web in namespace apps: grant \
         it get, list, watch"
    );
    stage.api.delete_account("apps", "reader");
    let seen = stage.look(&spec(&[all()]), &seen, 60).await;
    assert_eq!(why(&seen), "there is no service account apps/reader");
    assert_eq!((stage.api.lists(), stage.watches.watched()), (0, 0));
}

#[tokio::test]
async fn a_right_is_asked_for_again_after_a_minute() {
    let stage = Stage::new();
    stage.put("web", ready());
    let spec = spec(&[all()]);
    let mut last = stage.look(&spec, &Seen::default(), 0).await;
    stage.api.put_account("apps", "reader", &[]);
    for second in [1, 30, 59] {
        last = stage.look(&spec, &last, second).await;
        assert_eq!(counts(&last), (1, 1, Some(0)));
    }
    // It looks when it is time to ask, if not before.
    assert_eq!(last.again, Some(at(60)));
    let denied = stage.look(&spec, &last, 60).await;
    assert!(why(&denied).contains("may not get deployments.apps"));
    // A right that is given again is noticed within 15 seconds; the objects were watched all along.
    stage.api.put_account("apps", "reader", &["deployments"]);
    assert!(stage.look(&spec, &denied, 74).await.observed == denied.observed);
    assert_eq!(denied.again, Some(at(75)));
    assert_eq!(
        counts(&stage.look(&spec, &denied, 75).await),
        (1, 1, Some(0))
    );
}

#[tokio::test]
async fn who_asks_for_a_look_is_answered_anew() {
    let stage = Stage::new();
    stage.put("web", ready());
    let spec = spec(&[all()]);
    let mut last = stage.look(&spec, &Seen::default(), 0).await;
    stage.api.delete_account("apps", "reader");
    last.make_due();
    let seen = stage.look(&spec, &last, 1).await;
    assert_eq!(why(&seen), "there is no service account apps/reader");
}

#[tokio::test]
async fn a_right_outlives_an_api_server_that_does_not_answer_by_ten_minutes() {
    let stage = Stage::new();
    stage.put("web", ready());
    let spec = spec(&[all()]);
    let first = stage.look(&spec, &Seen::default(), 0).await;
    stage.api.fail_reviews(true);
    let second = stage.look(&spec, &first, 60).await;
    assert_eq!(
        (counts(&second), second.again),
        ((1, 1, Some(0)), Some(at(75)))
    );
    let third = stage.look(&spec, &second, 599).await;
    assert_eq!(counts(&third), (1, 1, Some(0)));
    let fourth = stage.look(&spec, &third, 614).await;
    let words = "the API server does not tell what the service account apps/reader may read";
    assert_eq!(why(&fourth), words);
    // Nobody is trusted before the first answer.
    let fresh = ObjectWatches::new(stage.api.client());
    let seen = observe(&gatekeeper(), &spec, &fresh, &Seen::default(), None, at(0)).await;
    assert_eq!(why(&seen), words);
}

#[tokio::test]
async fn many_who_want_to_know_at_once_ask_once() {
    let stage = Stage::new();
    let spec = spec(&[all()]);
    let (object, last) = (gatekeeper(), Seen::default());
    let looks = (0..50).map(|_| observe(&object, &spec, &stage.watches, &last, None, at(0)));
    let seen = join_all(looks).await;
    assert!(seen.iter().all(|seen| counts(seen) == (0, 0, None)));
    assert_eq!((stage.api.reviews().len(), stage.api.lists()), (3, 1));
}

#[tokio::test]
async fn secrets_are_not_read_whatever_they_are_called() {
    let stage = Stage::new();
    stage.api.serve_kind("v1", "Secret", "secrets", true);
    // As if the API server had another name for them.
    stage.api.serve_kind("v1", "Confidant", "secrets", true);
    stage.api.put_account("apps", "reader", &["secrets"]);
    let secret = |kind: &str| json!({ "apiVersion": "v1", "kind": kind, "selector": {} });
    let refused = stage
        .look(&spec(&[secret("Secret")]), &Seen::default(), 0)
        .await;
    assert_eq!(refused.observed, None);
    let seen = stage
        .look(&spec(&[secret("Confidant")]), &Seen::default(), 0)
        .await;
    assert_eq!(why(&seen), "Secrets are never read; name another kind");
    assert_eq!((stage.api.lists(), stage.api.reviews().len()), (0, 0));
}

#[tokio::test]
async fn the_controllers_own_missing_rights_are_named() {
    let stage = Stage::new();
    stage.api.forbid("shop");
    let mut elsewhere = named("cart");
    elsewhere["namespace"] = json!("shop");
    let seen = stage.look(&spec(&[elsewhere]), &Seen::default(), 0).await;
    let words = "may not list deployments.apps in namespace shop: grant gate-controller get, list, \
                 watch";
    assert_eq!(why(&seen), words);
    stage.api.forbid("apps");
    let fresh = ObjectWatches::new(stage.api.client());
    let spec = spec(&[all()]);
    let seen = observe(&gatekeeper(), &spec, &fresh, &Seen::default(), None, at(0)).await;
    let words = "may not get serviceaccounts in namespace apps: grant gate-controller get";
    assert_eq!(why(&seen), words);
}
