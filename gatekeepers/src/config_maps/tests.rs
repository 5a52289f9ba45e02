//! Watches on an API server in memory.

use std::collections::HashSet;

use jiff::Timestamp;

use super::*;
use crate::fake_api::FakeApi;

fn key(namespace: &str, name: &str) -> ConfigMapKey {
    ConfigMapKey {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn text(map: Option<Arc<ConfigMap>>) -> Option<String> {
    map?.data.as_ref()?.get("key").cloned()
}

/// Waits for the next change, for a while.
async fn changed(changes: &mut broadcast::Receiver<ConfigMapKey>) -> ConfigMapKey {
    tokio::time::timeout(Duration::from_secs(10), changes.recv())
        .await
        .unwrap()
        .unwrap()
}

#[tokio::test]
async fn a_map_is_read_once_and_then_watched() {
    let api = FakeApi::new();
    api.put("apps", "holidays", &[("key", "one")]);
    let maps = ConfigMaps::new(api.client());
    let mut changes = maps.changes();
    let key = key("apps", "holidays");
    assert_eq!(text(maps.get(&key).await.unwrap()), Some("one".to_owned()));
    assert_eq!(changed(&mut changes).await, key);

    api.put("apps", "holidays", &[("key", "two")]);
    assert_eq!(changed(&mut changes).await, key);
    assert_eq!(text(maps.get(&key).await.unwrap()), Some("two".to_owned()));
    api.delete("apps", "holidays");
    assert_eq!(changed(&mut changes).await, key);
    assert_eq!(maps.get(&key).await.unwrap(), None);
    api.put("apps", "holidays", &[("key", "three")]);
    assert_eq!(changed(&mut changes).await, key);
    assert_eq!(
        text(maps.get(&key).await.unwrap()),
        Some("three".to_owned())
    );
    assert_eq!((api.lists(), maps.watched()), (1, 1));
}

#[tokio::test]
async fn what_does_not_change_the_data_wakes_nobody() {
    let api = FakeApi::new();
    api.put("apps", "holidays", &[("key", "one")]);
    let maps = ConfigMaps::new(api.client());
    let mut changes = maps.changes();
    maps.get(&key("apps", "holidays")).await.unwrap();
    assert_eq!(changed(&mut changes).await, key("apps", "holidays"));
    // Another version of the same, and then something else.
    api.put("apps", "holidays", &[("key", "one")]);
    api.put("apps", "holidays", &[("key", "two")]);
    assert_eq!(changed(&mut changes).await, key("apps", "holidays"));
    let read = maps.get(&key("apps", "holidays")).await.unwrap();
    assert_eq!(text(read), Some("two".to_owned()));
    assert!(changes.try_recv().is_err());
}

#[tokio::test]
async fn a_map_that_is_not_there_is_none_and_its_coming_is_seen() {
    let api = FakeApi::new();
    let maps = ConfigMaps::new(api.client());
    let mut changes = maps.changes();
    assert_eq!(maps.get(&key("apps", "holidays")).await.unwrap(), None);
    assert_eq!(changed(&mut changes).await, key("apps", "holidays"));
    api.put("apps", "holidays", &[("key", "one")]);
    assert_eq!(changed(&mut changes).await, key("apps", "holidays"));
    assert!(maps.get(&key("apps", "holidays")).await.unwrap().is_some());
}

#[tokio::test]
async fn missing_rights_are_named_at_once() {
    let api = FakeApi::new();
    api.forbid("apps");
    let maps = ConfigMaps::new(api.client());
    let error = maps.get(&key("apps", "holidays")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "may not watch configmaps in namespace apps: grant get, list, watch"
    );
}

#[tokio::test]
async fn rights_that_come_later_are_noticed() {
    let api = FakeApi::new();
    api.put("apps", "holidays", &[("key", "one")]);
    api.forbid("apps");
    let maps = ConfigMaps::new(api.client());
    let mut changes = maps.changes();
    assert!(maps.get(&key("apps", "holidays")).await.is_err());
    assert_eq!(changed(&mut changes).await, key("apps", "holidays"));
    api.permit("apps");
    assert_eq!(changed(&mut changes).await, key("apps", "holidays"));
    assert!(maps.get(&key("apps", "holidays")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_waited_for_only_so_long() {
    let api = FakeApi::new();
    api.put("apps", "holidays", &[("key", "one")]);
    api.silence("apps");
    let maps = ConfigMaps::with_deadline(api.client(), Duration::from_millis(50));
    let mut changes = maps.changes();
    let error = maps.get(&key("apps", "holidays")).await.unwrap_err();
    assert!(matches!(error, ReadError::Unanswered { .. }), "{error}");
    // Once it answers, those who wait are woken.
    api.speak("apps");
    assert_eq!(changed(&mut changes).await, key("apps", "holidays"));
    assert!(maps.get(&key("apps", "holidays")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_name_that_cannot_be_is_not_asked_for() {
    let api = FakeApi::new();
    let maps = ConfigMaps::new(api.client());
    for name in ["a,metadata.name!=b", "../secrets", ""] {
        assert_eq!(maps.get(&key("apps", name)).await.unwrap(), None);
    }
    assert_eq!((api.lists(), maps.watched()), (0, 0));
}

#[tokio::test]
async fn a_watch_outlives_its_last_user_by_a_while() {
    let api = FakeApi::new();
    let maps = ConfigMaps::new(api.client());
    for name in ["a", "b"] {
        maps.get(&key("apps", name)).await.unwrap();
    }
    let both: HashSet<_> = [key("apps", "a"), key("apps", "b")].into();
    let one: HashSet<_> = [key("apps", "a")].into();
    assert_eq!(maps.watches().keep(&both, at(0)), None);
    assert_eq!(maps.watches().keep(&one, at(100)), Some(at(160)));
    assert_eq!(maps.watches().keep(&one, at(130)), Some(at(160)));
    // Somebody comes back in time.
    assert_eq!(maps.watches().keep(&both, at(140)), None);
    assert_eq!(maps.watches().keep(&one, at(150)), Some(at(210)));
    assert_eq!(
        (maps.watches().keep(&one, at(209)), maps.watched()),
        (Some(at(210)), 2)
    );
    assert_eq!(
        (maps.watches().keep(&one, at(210)), maps.watched()),
        (None, 1)
    );
    // It is watched again when somebody asks again.
    maps.get(&key("apps", "b")).await.unwrap();
    assert_eq!(api.lists(), 3);
}

#[tokio::test]
async fn the_watches_end_with_their_last_owner() {
    let api = FakeApi::new();
    let maps = ConfigMaps::new(api.client());
    maps.get(&key("apps", "a")).await.unwrap();
    let watches = async |expected| {
        while api.watches() != expected {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), watches(1))
        .await
        .unwrap();
    drop(maps);
    tokio::time::timeout(Duration::from_secs(10), watches(0))
        .await
        .unwrap();
}

/// On the clock of the test, which goes on at once where nobody has anything to do.
async fn after(seconds: u64) {
    let _ = tokio::time::timeout(Duration::from_secs(seconds), std::future::pending::<()>()).await;
}

#[tokio::test(start_paused = true)]
async fn a_map_of_which_nothing_is_heard_counts_no_more_until_it_is_listed_again() {
    let api = FakeApi::new();
    api.put("apps", "holidays", &[("key", "one")]);
    let maps = ConfigMaps::new(api.client());
    let mut changes = maps.changes();
    let key = key("apps", "holidays");
    maps.get(&key).await.unwrap();
    assert_eq!(changed(&mut changes).await, key);
    // That nothing changes is not silence. There are no bookmarks either, so that a list follows each
    // watch.
    after(1000).await;
    assert!(maps.get(&key).await.is_ok());
    assert!((5..10).contains(&api.lists()), "{}", api.lists());

    api.silence("apps");
    after(400).await;
    assert_eq!(changed(&mut changes).await, key);
    let error = maps.get(&key).await.unwrap_err();
    assert!(matches!(error, ReadError::Unanswered { .. }), "{error}");
    assert!(error.to_string().contains("it says nothing"), "{error}");
    api.put("apps", "holidays", &[("key", "two")]);
    api.speak("apps");
    assert_eq!(changed(&mut changes).await, key);
    assert_eq!(text(maps.get(&key).await.unwrap()), Some("two".to_owned()));
}

/// Otherwise each outage would close what calendars open, a second time.
#[tokio::test(start_paused = true)]
async fn while_the_api_server_is_away_for_everybody_a_map_is_not_doubted() {
    let api = FakeApi::new();
    api.put("apps", "holidays", &[("key", "one")]);
    let maps = ConfigMaps::new(api.client());
    let key = key("apps", "holidays");
    maps.get(&key).await.unwrap();
    api.silence("apps");
    for _ in 0..400 {
        after(1).await;
        maps.watches().signals().away();
    }
    after(10).await;
    assert_eq!(text(maps.get(&key).await.unwrap()), Some("one".to_owned()));
    after(10).await;
    assert!(maps.get(&key).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn after_a_jump_a_map_is_listed_again_and_counts_for_a_moment_without() {
    let api = FakeApi::new();
    api.put("apps", "holidays", &[("key", "one")]);
    let maps = ConfigMaps::new(api.client());
    let key = key("apps", "holidays");
    maps.get(&key).await.unwrap();
    after(10).await;
    maps.watches().signals().list_again();
    after(60).await;
    assert!(maps.get(&key).await.is_ok());
    assert_eq!(api.lists(), 2);
    api.silence("apps");
    maps.watches().signals().list_again();
    after(10).await;
    assert!(maps.get(&key).await.is_ok());
    after(10).await;
    assert!(maps.get(&key).await.is_err());
}
