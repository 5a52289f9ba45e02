//! A replica that does not lead knows nothing, and serves nothing.

use super::serving::{ask, serve};
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
    house.verified().await;
    assert_eq!(house.store.ready(), Ok(()));
    assert!(house.store.has(&key(), &digest).is_some());

    house.until.send_replace(None);
    // At once, even if nothing has noticed it yet.
    assert_eq!(house.store.state(&key(), &digest), State::NotReady);
    assert_eq!(house.store.ready(), not_leading);
    until(|| house.counters.artifacts.get() == 0).await;

    house.lead();
    house.verified().await;
    assert!(house.store.has(&key(), &digest).is_some());
}

/// A file that takes hours to read holds up nobody but itself.
#[tokio::test]
async fn each_artifact_is_served_as_soon_as_it_is_verified() {
    let folder = folder();
    let put = |content: &[u8]| {
        let path = folder.path().join(place::path(&key(), &digest_of(content)));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    };
    let (short, long) = (digest_of(b"short"), digest_of(b"long"));
    put(b"short");
    let path = put(b"long");
    let sparse = fs::File::options().write(true).open(path).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let mut house = House::of(folder.path().to_owned(), Limits::default());
    house.lead();
    assert_eq!(house.told().await, Heard::Of(key()));
    assert!(house.store.has(&key(), &short).is_some());
    assert_eq!(house.store.ready(), Ok(()));
    assert_eq!(house.store.state(&key(), &long), State::Verifying);
    assert_eq!(house.store.verifying(&key()), Some(at(0)));
    assert_eq!(house.counters.artifacts.get(), 1);
    let address = serve(&house).await;
    for (digest, expected) in [(&short, "http/1.1 200 "), (&long, "http/1.1 503 ")] {
        let path = format!("/{}", place::path(&key(), digest));
        let (head, _) = ask(address, "GET", &path).await;
        assert!(head.starts_with(expected), "{head}");
    }
    // Nobody fetches it meanwhile.
    let asked = house.store.fetch(&key(), &long, "http://127.0.0.1/");
    assert_eq!(asked, State::Verifying);
    // Who leads no longer gives it up.
    house.until.send_replace(None);
    until(|| matches!(*house.store.standing.lock(), Standing::Closed { .. })).await;
    assert_eq!(house.store.verifying(&key()), None);
}

#[tokio::test]
async fn a_leader_that_is_not_renewed_ends_by_itself() {
    let folder = folder();
    let house = House::ready(&folder).await;
    let soon = Instant::now() + Duration::from_millis(50);
    house.until.send_replace(Some(Held::until(soon)));
    until(|| matches!(*house.store.standing.lock(), Standing::Closed { .. })).await;
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
    second.verified().await;
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
