//! Watches: how they begin, break, go on and end.

use super::*;
use crate::observation::Seen as _;

/// On the clock of the test, which goes on at once where nobody has anything to do.
async fn after(seconds: u64) {
    let _ = tokio::time::timeout(Duration::from_secs(seconds), std::future::pending::<()>()).await;
}

fn kind_of(second: i64, seen: &Seen) -> (String, i64) {
    let again = seen.again.unwrap().as_second() - second;
    (why(seen).to_owned(), again)
}

#[tokio::test]
async fn a_kind_that_is_not_there_is_looked_for_until_it_comes() {
    let stage = Stage::new();
    stage.api.put_account("apps", "reader", &["canaries"]);
    let canary = json!({ "apiVersion": "flagger.app/v1beta1", "kind": "Canary", "selector": {} });
    let spec = spec(&[canary]);
    let missing = "the API server has no kind Canary in flagger.app/v1beta1".to_owned();
    let mut last = Seen::default();
    let mut second = 0;
    for wait in [5, 10, 20, 40, 60, 60] {
        last = stage.look(&spec, &last, second).await;
        assert_eq!(kind_of(second, &last), (missing.clone(), wait));
        second += wait;
    }
    stage
        .api
        .serve_kind("flagger.app/v1beta1", "Canary", "canaries", true);
    let of = ("flagger.app/v1beta1", "canaries");
    stage.api.put_object(of, Some("apps"), "web", ready());
    // Not before it is time, unless somebody asks.
    assert_eq!(why(&stage.look(&spec, &last, second - 1).await), missing);
    let mut due = last.clone();
    due.make_due();
    assert_eq!(counts(&stage.look(&spec, &due, second - 1).await).0, 1);
    assert_eq!(
        counts(&stage.look(&spec, &last, second).await),
        (1, 1, Some(second / 10 * 10))
    );
}

#[tokio::test]
async fn a_kind_that_vanishes_is_told_and_found_again() {
    let mut stage = Stage::new();
    stage.put("web", ready());
    let spec = spec(&[all()]);
    let first = stage.look(&spec, &Seen::default(), 0).await;
    stage.changed(1).await;
    stage.api.drop_kind("Deployment");
    stage.changed(1).await;
    let second = stage.look(&spec, &first, 10).await;
    let missing = "the API server has no kind Deployment in apps/v1".to_owned();
    assert_eq!(kind_of(10, &second), (missing, 5));
    stage
        .api
        .serve_kind("apps/v1", "Deployment", "deployments", true);
    stage.put("web", ready());
    // Another kind of the same name: nobody knows what was meanwhile.
    assert_eq!(
        counts(&stage.look(&spec, &second, 20).await),
        (1, 1, Some(20))
    );
}

#[tokio::test]
async fn a_watch_that_breaks_goes_on_without_a_gap() {
    let mut stage = Stage::new();
    stage.put("web", ready());
    let spec = spec(&[all()]);
    let first = stage.look(&spec, &Seen::default(), 0).await;
    stage.put("web", ready());
    stage.changed(2).await;
    stage.api.hang_up(false);
    stage.put("web", unready());
    stage.put("web", ready());
    stage.changed(2).await;
    let second = stage.look(&spec, &first, 10).await;
    assert_eq!((counts(&second), stage.api.lists()), ((1, 1, Some(10)), 1));
}

#[tokio::test]
async fn a_watch_that_lost_its_place_counts_anew_what_has_changed() {
    let mut stage = Stage::new();
    stage.put("web", ready());
    stage.put("api", ready());
    let (web, api) = (spec(&[named("web")]), spec(&[named("api")]));
    let first = [
        stage.look(&web, &Seen::default(), 0).await,
        stage.look(&api, &Seen::default(), 0).await,
    ];
    stage.changed(1).await;
    stage.api.hang_up(true);
    stage.put("web", unready());
    stage.put("web", ready());
    // One list tells both.
    stage.changed(1).await;
    let second = [
        stage.look(&web, &first[0], 10).await,
        stage.look(&api, &first[1], 10).await,
    ];
    assert_eq!(
        second.each_ref().map(counts),
        [(1, 1, Some(10)), (1, 1, Some(0))]
    );
    assert_eq!(stage.api.lists(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_nothing_is_heard_of_is_not_relied_on() {
    let mut stage = Stage::new();
    stage.put("web", ready());
    let spec = spec(&[all()]);
    let first = stage.look(&spec, &Seen::default(), 0).await;
    stage.changed(1).await;
    // That nothing changes is not silence. There are no bookmarks either, so that a list follows each
    // watch: something on the way may hold back what happens.
    after(1000).await;
    let lists = stage.api.lists();
    assert!((5..10).contains(&lists), "{lists}");
    assert_eq!(
        counts(&stage.look(&spec, &first, 30).await),
        (1, 1, Some(0))
    );
    stage.api.silence("apps");
    after(100).await;
    assert_eq!(
        counts(&stage.look(&spec, &first, 40).await),
        (1, 1, Some(0))
    );
    after(300).await;
    stage.changed(1).await;
    let stale = stage.look(&spec, &first, 50).await;
    let words = "nothing was heard of the deployments.apps in namespace apps for 300s";
    assert_eq!(why(&stale), words);
    // It is listed again; it was so all the time.
    stage.api.speak("apps");
    stage.changed(1).await;
    assert_eq!(
        counts(&stage.look(&spec, &stale, 55).await),
        (1, 1, Some(0))
    );
    assert_eq!(stage.api.lists(), lists + 1);
}

/// Otherwise each outage would close what objects open, a second time.
#[tokio::test(start_paused = true)]
async fn while_the_api_server_is_away_for_everybody_objects_are_not_doubted() {
    let stage = Stage::new();
    stage.put("web", ready());
    let spec = spec(&[all()]);
    let first = stage.look(&spec, &Seen::default(), 0).await;
    stage.api.silence("apps");
    for _ in 0..600 {
        after(1).await;
        stage.watches.watches().signals().away();
    }
    after(10).await;
    assert_eq!(
        counts(&stage.look(&spec, &first, 30).await),
        (1, 1, Some(0))
    );
    after(10).await;
    let stale = stage.look(&spec, &first, 40).await;
    assert!(why(&stale).starts_with("nothing was heard"));
}

/// The machine slept: nobody knows what was meanwhile.
#[tokio::test(start_paused = true)]
async fn after_a_jump_objects_are_listed_again_and_count_for_a_moment_without() {
    let mut stage = Stage::new();
    stage.put("web", ready());
    let spec = spec(&[all()]);
    let first = stage.look(&spec, &Seen::default(), 0).await;
    stage.changed(1).await;
    stage.watches.watches().signals().list_again();
    after(60).await;
    assert_eq!(
        counts(&stage.look(&spec, &first, 30).await),
        (1, 1, Some(0))
    );
    assert_eq!(stage.api.lists(), 2);
    stage.api.silence("apps");
    stage.watches.watches().signals().list_again();
    after(10).await;
    assert_eq!(
        counts(&stage.look(&spec, &first, 40).await),
        (1, 1, Some(0))
    );
    after(10).await;
    stage.changed(1).await;
    let stale = stage.look(&spec, &first, 50).await;
    assert!(why(&stale).starts_with("nothing was heard"));
}

/// As they do for ConfigMaps: what was read does not change, and is sent once more all the same.
#[tokio::test(start_paused = true)]
async fn the_controllers_rights_may_go_and_come_back() {
    let mut stage = Stage::new();
    stage.api.put_account("shop", "reader", &["deployments"]);
    stage
        .api
        .put_object(DEPLOYMENTS, Some("shop"), "cart", ready());
    let mut elsewhere = named("cart");
    elsewhere["namespace"] = json!("shop");
    let spec = spec(&[elsewhere]);
    let first = stage.look(&spec, &Seen::default(), 0).await;
    stage.changed(1).await;
    stage.api.forbid("shop");
    stage.api.hang_up(false);
    stage.changed(1).await;
    let refused = stage.look(&spec, &first, 10).await;
    assert!(why(&refused).starts_with("may not watch deployments.apps in namespace shop"));
    stage.api.permit("shop");
    stage.changed(1).await;
    assert_eq!(
        counts(&stage.look(&spec, &refused, 20).await),
        (1, 1, Some(0))
    );
}

#[tokio::test]
async fn an_api_server_that_does_not_answer_is_waited_for_only_so_long() {
    let mut stage = Stage::with(Limits::default(), Duration::from_millis(50));
    stage
        .api
        .put_object(DEPLOYMENTS, Some("shop"), "cart", ready());
    stage.api.silence("shop");
    let mut elsewhere = named("cart");
    elsewhere["namespace"] = json!("shop");
    let spec = spec(&[elsewhere]);
    let seen = stage.look(&spec, &Seen::default(), 0).await;
    let words = "the API server has not told the deployments.apps in namespace shop within 0s";
    assert_eq!(why(&seen), words);
    stage.api.speak("shop");
    stage.changed(1).await;
    assert_eq!(
        counts(&stage.look(&spec, &seen, 10).await),
        (1, 1, Some(10))
    );
}

#[tokio::test]
async fn long_lists_are_read_in_pages() {
    let stage = Stage::new();
    (0..600).for_each(|n| stage.put(&format!("web-{n}"), ready()));
    let seen = stage.look(&spec(&[all()]), &Seen::default(), 0).await;
    // Ten, to see how large they are; then as many as fit.
    assert_eq!((counts(&seen), stage.api.lists()), ((600, 600, Some(0)), 3));
}

#[tokio::test]
async fn too_many_objects_are_not_held() {
    let limits = Limits {
        objects: 3,
        ..Limits::default()
    };
    let mut stage = Stage::with(limits, Duration::from_secs(10));
    (0..3).for_each(|n| stage.put(&format!("web-{n}"), ready()));
    let spec = spec(&[all()]);
    let first = stage.look(&spec, &Seen::default(), 0).await;
    assert_eq!(counts(&first), (3, 3, Some(0)));
    stage.changed(1).await;
    stage.put("web-3", ready());
    stage.changed(1).await;
    let second = stage.look(&spec, &first, 10).await;
    let words = "cannot watch deployments.apps in namespace apps: there are more than 3 of them";
    assert_eq!(why(&second), words);
    // The same where they are too many from the start.
    let fresh = ObjectWatches::with(stage.api.client(), limits, DEADLINE);
    let seen = observe(&gatekeeper(), &spec, &fresh, &Seen::default(), None, at(0)).await;
    assert_eq!(why(&seen), words);
}

#[tokio::test]
async fn one_part_is_about_so_many_objects_at_most() {
    let mut stage = Stage::new();
    let labelled = |n: usize| {
        let mut object = ready();
        object["metadata"]["labels"] =
            json!({ "app": "web", "many": (n < MOST_OBJECTS).to_string() });
        stage.put(&format!("web-{n}"), object);
    };
    (0..=MOST_OBJECTS).for_each(labelled);
    let selecting = |label: &str, value: &str| {
        let mut part = all();
        part["selector"] = json!({ "matchLabels": { label: value } });
        spec(&[part])
    };
    let (many, more) = (selecting("many", "true"), selecting("app", "web"));
    let seen = stage.look(&many, &Seen::default(), 0).await;
    assert_eq!(counts(&seen), (MOST_OBJECTS, MOST_OBJECTS, Some(0)));
    let words = "cannot judge Deployment: the selector matches more than 1000 objects; write a \
                 narrower one";
    assert_eq!(why(&stage.look(&more, &Seen::default(), 0).await), words);
    stage.changed(1).await;
}

#[tokio::test]
async fn a_watch_outlives_its_last_user_by_a_while() {
    let stage = Stage::new();
    let spec = spec(&[all()]);
    stage.look(&spec, &Seen::default(), 0).await;
    let used: HashSet<_> = sources(&spec, "apps")
        .into_iter()
        .filter_map(|source| match source {
            Source::Objects(key) => Some(key),
            Source::ConfigMap(_) => None,
        })
        .collect();
    let keep = |used: &HashSet<ObjectsKey>, second| stage.watches.watches().keep(used, at(second));
    assert_eq!(keep(&used, 0), None);
    assert_eq!(keep(&HashSet::new(), 100), Some(at(160)));
    assert_eq!(keep(&used, 140), None);
    assert_eq!(keep(&HashSet::new(), 150), Some(at(210)));
    assert_eq!(
        (keep(&HashSet::new(), 209), stage.watches.watched()),
        (Some(at(210)), 1)
    );
    assert_eq!(
        (keep(&HashSet::new(), 210), stage.watches.watched()),
        (None, 0)
    );
    let ended = async {
        while stage.api.watches() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ended)
        .await
        .unwrap();
}
