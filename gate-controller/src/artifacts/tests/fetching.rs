//! The results of a fetch, and what it leaves.

use futures::future::join_all;
use rstest::rstest;

use super::*;

#[tokio::test]
async fn what_is_fetched_is_verified_and_kept() {
    let folder = folder();
    let mut house = House::ready(&folder).await;
    let content: Vec<u8> = (0..200_000).map(|at: u32| at.to_le_bytes()[1]).collect();
    let digest = digest_of(&content);
    let upstream = Upstream::new(Reply::Whole(content.clone())).await;
    assert_eq!(house.store.state(&key(), &digest), State::Absent);
    assert_eq!(house.store.has(&key(), &digest), None);

    let State::Stored(stored) = house.fetched(&digest, &upstream.url).await else {
        panic!("it is not stored");
    };
    let (_, checksum) = digest.parts();
    let path = format!("gatedsource/apps/web/sha256-{checksum}.tar.gz");
    assert_eq!((&stored.path, stored.size), (&path, 200_000));
    assert_eq!(
        house.store.url_of(&stored),
        format!("http://artifacts.test/{path}")
    );
    assert_eq!(house.store.has(&key(), &digest), Some(stored));
    assert_eq!(files(&folder), std::slice::from_ref(&path));
    assert!(fs::read(folder.path().join(path)).unwrap() == content);
    assert_eq!(house.store.keys(), [key()]);

    // It is not fetched again.
    let again = house.store.fetch(&key(), &digest, &upstream.url);
    assert!(matches!(again, State::Stored(_)));
    assert_eq!(upstream.requests(), 1);
    assert_eq!(house.fetches("stored"), 1);
    assert_eq!(house.counters.artifacts.get(), 1);
    assert_eq!(house.counters.artifact_bytes.get(), 200_000);
}

#[rstest]
#[case::another(Reply::Whole(b"another artifact".to_vec()), "mismatch", "has the digest sha256:")]
#[case::cut(Reply::Cut(vec![7; 1000]), "unavailable", "the reply broke off")]
#[case::silent(Reply::Stalled(vec![7; 1000]), "unavailable", "timed out after 0.2s")]
#[case::slow(Reply::Dripping, "unavailable", "within 0.5s")]
#[case::long(Reply::Whole(vec![7; 4097]), "unavailable", "longer than 4096 bytes")]
#[case::endless(Reply::Endless, "unavailable", "longer than 4096 bytes")]
#[case::gone(Reply::Status(404), "unavailable", "status 404")]
#[case::elsewhere(Reply::Status(302), "unavailable", "redirects are not followed")]
#[tokio::test]
async fn what_fails_says_why_and_leaves_nothing(
    #[case] reply: Reply,
    #[case] outcome: &'static str,
    #[case] expected: &str,
) {
    let folder = folder();
    let limits = Limits {
        length: 4096,
        pause: Duration::from_millis(200),
        time: Duration::from_millis(500),
        at_once: 1,
        ..Limits::default()
    };
    let mut house = House::ready_with(&folder, limits).await;
    let digest = digest_of(&[7; 1000]);
    let upstream = Upstream::new(reply).await;
    let why = house.failed(&digest, &upstream.url).await;
    assert!(why.contains(expected), "{why}");
    assert!(
        why.contains("http://127.0.0.1") && !why.contains("secret"),
        "{why}"
    );
    assert_eq!(files(&folder), [""; 0]);
    assert_eq!(house.fetches(outcome), 1);

    // And the next fetch, when it is asked for, has its own result.
    house.clock.set(at(10));
    house.failed(&digest, &upstream.url).await;
    let State::Failed(failure) = house.store.state(&key(), &digest) else {
        panic!("it is not as it was");
    };
    assert_eq!((failure.failures, failure.at), (2, at(10)));
    upstream.replies(Reply::Whole(vec![7; 1000]));
    let state = house.fetched(&digest, &upstream.url).await;
    assert!(matches!(state, State::Stored(_)), "{state:?}");
}

#[tokio::test]
async fn an_address_that_nobody_is_led_to_is_not_asked() {
    let folder = folder();
    let mut house = House::ready(&folder).await;
    let why = house
        .failed(&digest_of(b"secrets"), "http://169.254.169.254/latest")
        .await;
    assert!(why.contains("refused: it is a link-local address"), "{why}");
}

#[tokio::test]
async fn two_who_want_the_same_wait_for_one() {
    let folder = folder();
    let mut house = House::ready(&folder).await;
    let released = Arc::new(Notify::new());
    let content = b"artifact".to_vec();
    let digest = digest_of(&content);
    let upstream = Upstream::new(Reply::Held(content, Arc::clone(&released))).await;
    let asking = (0..20).map(async |_| house.store.fetch(&key(), &digest, &upstream.url));
    for state in join_all(asking).await {
        assert_eq!(state, State::Fetching(None));
    }
    until(|| upstream.requests() == 1).await;
    released.notify_one();
    assert_eq!(house.told().await, Heard::Of(key()));
    assert!(house.store.has(&key(), &digest).is_some());
    assert_eq!((upstream.requests(), house.fetches("stored")), (1, 1));
    house.told.try_recv().unwrap_err();
}

#[tokio::test]
async fn so_many_at_once_and_no_more() {
    let folder = folder();
    let limits = Limits {
        at_once: 2,
        ..Limits::default()
    };
    let mut house = House::ready_with(&folder, limits).await;
    let released = Arc::new(Notify::new());
    let content = b"artifact".to_vec();
    let digest = digest_of(&content);
    let upstream = Upstream::new(Reply::Held(content, Arc::clone(&released))).await;
    for name in ["a", "b", "c"] {
        let key = place::key("apps", name).unwrap();
        house.store.fetch(&key, &digest, &upstream.url);
    }
    until(|| upstream.requests() == 2).await;
    for requests in [3, 3, 3] {
        released.notify_one();
        house.told().await;
        until(|| upstream.requests() == requests).await;
    }
    assert_eq!(house.counters.artifacts.get(), 3);
}

#[tokio::test]
async fn a_namespace_whose_upstreams_are_slow_keeps_no_other_waiting() {
    let folder = folder();
    let limits = Limits {
        each: 1,
        ..Limits::default()
    };
    let mut house = House::ready_with(&folder, limits).await;
    let content = b"artifact".to_vec();
    let digest = digest_of(&content);
    let slow = Upstream::new(Reply::Stalled(content.clone())).await;
    for name in ["a", "b"] {
        let key = place::key("slow", name).unwrap();
        house.store.fetch(&key, &digest, &slow.url);
    }
    until(|| slow.requests() == 1).await;
    let upstream = Upstream::new(Reply::Whole(content)).await;
    let state = house.fetched(&digest, &upstream.url).await;
    assert!(matches!(state, State::Stored(_)), "{state:?}");
    assert_eq!(slow.requests(), 1, "both have a turn");
}

#[tokio::test]
async fn a_namespace_has_so_much_room_and_no_more() {
    let folder = folder();
    let limits = Limits {
        quota: 1000,
        ..Limits::default()
    };
    let mut house = House::ready_with(&folder, limits).await;
    let (first, second) = (vec![7; 600], vec![8; 401]);
    let upstream = Upstream::new(Reply::Whole(first.clone())).await;
    let state = house.fetched(&digest_of(&first), &upstream.url).await;
    assert!(matches!(state, State::Stored(_)), "{state:?}");

    upstream.replies(Reply::Whole(second.clone()));
    let digest = digest_of(&second);
    let why = house.failed(&digest, &upstream.url).await;
    let expected =
        "more than namespace apps may have: 600 of 1000 bytes are in use, and it has 401";
    assert!(why.contains(expected), "{why}");
    assert!(why.contains("--storage-namespace-quota"), "{why}");
    assert_eq!((files(&folder).len(), house.fetches("quota")), (1, 1));

    // Another namespace has its own.
    let other = place::key("shop", "web").unwrap();
    house.store.fetch(&other, &digest, &upstream.url);
    assert_eq!(house.told().await, Heard::Of(other.clone()));
    assert!(house.store.has(&other, &digest).is_some());
}

#[tokio::test]
async fn what_has_no_room_for_anything_is_not_fetched() {
    let folder = folder();
    let limits = Limits {
        quota: 600,
        ..Limits::default()
    };
    let mut house = House::ready_with(&folder, limits).await;
    let full = vec![7; 600];
    let upstream = Upstream::new(Reply::Whole(full.clone())).await;
    house.fetched(&digest_of(&full), &upstream.url).await;
    let why = house.failed(&digest_of(b"more"), &upstream.url).await;
    assert!(why.contains("600 of 600 bytes are in use;"), "{why}");
    assert_eq!(upstream.requests(), 1);
}

#[tokio::test]
async fn what_nobody_wants_any_more_is_given_up() {
    let folder = folder();
    let mut house = House::ready(&folder).await;
    let content = vec![7; 1000];
    let digest = digest_of(&content);
    let upstream = Upstream::new(Reply::Stalled(content.clone())).await;
    house.store.fetch(&key(), &digest, &upstream.url);
    until(|| files(&folder).len() == 1).await;
    house.store.retain(&key(), &[]);
    assert_eq!(house.store.state(&key(), &digest), State::Absent);
    until(|| files(&folder).is_empty()).await;
    assert_eq!(house.fetches("unavailable"), 0);

    upstream.replies(Reply::Whole(content));
    let state = house.fetched(&digest, &upstream.url).await;
    assert!(matches!(state, State::Stored(_)), "{state:?}");
}
