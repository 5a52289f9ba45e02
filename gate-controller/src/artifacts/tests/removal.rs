//! What is not needed any more goes, and not before a minute has passed.

use super::*;

async fn with(contents: &[&[u8]]) -> (TempDir, House) {
    let folder = folder();
    let mut house = House::ready(&folder).await;
    for content in contents {
        let upstream = Upstream::new(Reply::Whole(content.to_vec())).await;
        house.fetched(&digest_of(content), &upstream.url).await;
    }
    (folder, house)
}

#[tokio::test]
async fn a_file_goes_a_minute_after_it_was_needed() {
    let (folder, house) = with(&[b"old", b"new"]).await;
    let (old, new) = (digest_of(b"old"), digest_of(b"new"));
    house.clock.set(at(100));
    house.store.retain(&key(), std::slice::from_ref(&new));
    house.clock.set(at(159));
    assert!(house.store.has(&key(), &old).is_some());
    assert_eq!(files(&folder).len(), 2);
    house.clock.set(at(160));
    until(|| files(&folder) == [place::path(&key(), &new)]).await;
    assert_eq!(house.store.state(&key(), &old), State::Absent);
    until(|| house.counters.artifact_bytes.get() == 3).await;
}

#[tokio::test]
async fn of_what_is_forgotten_not_even_a_folder_stays() {
    let (folder, house) = with(&[b"one", b"two"]).await;
    house.store.forget(&key());
    house.clock.set(at(60));
    until(|| !folder.path().join("gatedsource/apps").exists()).await;
    assert!(house.store.keys().is_empty());
    assert!(folder.path().join("gatedsource/.incoming").exists());
}

#[tokio::test]
async fn what_went_can_be_fetched_again() {
    let (folder, mut house) = with(&[b"artifact"]).await;
    let digest = digest_of(b"artifact");
    house.store.forget(&key());
    house.clock.set(at(60));
    until(|| house.store.state(&key(), &digest) == State::Absent).await;
    let upstream = Upstream::new(Reply::Whole(b"artifact".to_vec())).await;
    let state = house.fetched(&digest, &upstream.url).await;
    assert!(matches!(state, State::Stored(_)), "{state:?}");
    assert_eq!(files(&folder), [place::path(&key(), &digest)]);
}
