//! Whoever does not lead knows nothing, and serves nothing.

use super::*;

#[tokio::test]
async fn a_follower_knows_nothing_until_it_leads() {
    let folder = folder();
    let digest = digest_of(b"artifact");
    let path = folder.path().join(place::path(&key(), &digest));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, b"artifact").unwrap();
    let mut house = House::of(folder.path().to_owned(), Limits::default());
    assert_eq!(house.store.state(&key(), &digest), State::NotReady);
    let not_leading = Err("this replica does not lead".to_owned());
    assert_eq!(house.store.ready(), not_leading);

    house.lead();
    assert_eq!(house.told().await, Heard::Ready);
    assert_eq!(house.store.ready(), Ok(()));
    assert!(house.store.has(&key(), &digest).is_some());

    house.until.send_replace(None);
    // At once, whether or not anybody has noticed yet.
    assert_eq!(house.store.state(&key(), &digest), State::NotReady);
    assert_eq!(house.store.ready(), not_leading);
    until(|| house.counters.artifacts.get() == 0).await;

    house.lead();
    assert_eq!(house.told().await, Heard::Ready);
    assert!(house.store.has(&key(), &digest).is_some());
}

#[tokio::test]
async fn a_leader_that_is_not_renewed_ends_by_itself() {
    let folder = folder();
    let house = House::ready(&folder).await;
    let soon = Instant::now() + Duration::from_millis(50);
    house.until.send_replace(Some(soon));
    until(|| matches!(*house.store.standing(), Standing::Closed { .. })).await;
}

#[tokio::test]
async fn what_another_leader_has_left_is_found() {
    let folder = folder();
    let content = b"artifact".to_vec();
    let digest = digest_of(&content);
    let upstream = Upstream::new(Reply::Whole(content)).await;
    let mut first = House::ready(&folder).await;
    let mut second = House::of(folder.path().to_owned(), Limits::default());
    first.fetched(&digest, &upstream.url).await;
    first.until.send_replace(None);
    second.lead();
    assert_eq!(second.told().await, Heard::Ready);
    assert!(second.store.has(&key(), &digest).is_some());
    assert_eq!(first.store.has(&key(), &digest), None);
}

#[tokio::test]
async fn what_was_under_way_ends_with_leading() {
    let folder = folder();
    let house = House::ready(&folder).await;
    let content = vec![7; 1000];
    let digest = digest_of(&content);
    let upstream = Upstream::new(Reply::Stalled(content)).await;
    house.store.fetch(&key(), &digest, &upstream.url);
    until(|| files(&folder).len() == 1).await;
    house.until.send_replace(None);
    until(|| files(&folder).is_empty()).await;
    assert_eq!(house.fetches("unavailable"), 0);
}
