//! What is on the disk at the start, and disks that are in the way.

use super::*;

fn put(folder: &TempDir, path: &str, content: &[u8]) {
    let path = folder.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn path_of(content: &[u8]) -> String {
    place::path(&key(), &digest_of(content))
}

#[tokio::test]
async fn a_restart_finds_what_is_whole_as_it_was() {
    let folder = folder();
    let content = b"artifact".to_vec();
    let digest = digest_of(&content);
    let upstream = Upstream::new(Reply::Whole(content)).await;
    let mut house = House::ready(&folder).await;
    let State::Stored(before) = house.fetched(&digest, &upstream.url).await else {
        panic!("it is not stored");
    };
    drop(house);
    let house = House::ready(&folder).await;
    assert_eq!(house.store.has(&key(), &digest), Some(before));
    assert_eq!(house.counters.artifact_bytes.get(), 8);
}

#[tokio::test]
async fn what_is_broken_or_half_written_is_removed_and_what_is_foreign_left_alone() {
    let folder = folder();
    let (good, cut, changed) = (b"good".as_slice(), b"cut".as_slice(), b"changed".as_slice());
    put(&folder, &path_of(good), good);
    put(&folder, &path_of(cut), b"cu");
    put(&folder, &path_of(changed), b"chanced");
    put(&folder, "gatedsource/.incoming/1-0", b"half");
    let foreign = [
        "README",
        "gatedsource/apps/notes.txt",
        "gatedsource/apps/web/latest.tar.gz",
        "gatedsource/Apps/web/latest.tar.gz",
        "lost+found/1",
    ];
    for path in foreign {
        put(&folder, path, b"somebody else's");
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("passwd");
    fs::write(&target, b"linked").unwrap();
    let linked = folder.path().join(path_of(b"linked"));
    std::os::unix::fs::symlink(&target, &linked).unwrap();

    let house = House::ready(&folder).await;
    assert!(house.store.has(&key(), &digest_of(good)).is_some());
    for gone in [cut, changed, b"linked"] {
        assert_eq!(house.store.state(&key(), &digest_of(gone)), State::Absent);
    }
    let mut expected: Vec<String> = foreign.iter().map(|path| (*path).to_owned()).collect();
    expected.extend([path_of(good), path_of(b"linked")]);
    expected.sort();
    assert_eq!(files(&folder), expected);
    assert_eq!(house.store.keys(), [key()]);
}

#[tokio::test]
async fn a_path_that_is_no_folder_is_told() {
    let folder = folder();
    let missing = folder.path().join("missing");
    let file = folder.path().join("file");
    fs::write(&file, b"").unwrap();
    for path in [missing, file] {
        let house = House::of(path.clone(), Limits::default());
        house.lead();
        let expected = format!(
            "--storage-path: {} is not a folder; mount a volume there",
            path.display()
        );
        until(|| house.store.ready() == Err(expected.clone())).await;
        let digest = digest_of(b"artifact");
        assert_eq!(house.store.state(&key(), &digest), State::NotReady);
        let asked = house.store.fetch(&key(), &digest, "http://127.0.0.1/");
        assert_eq!(asked, State::NotReady);
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_to_is_told_and_what_is_there_stays() {
    let folder = folder();
    put(&folder, "gatedsource", b"in the way");
    let house = House::of(folder.path().to_owned(), Limits::default());
    house.lead();
    let told = || {
        house
            .store
            .ready()
            .is_err_and(|why| why.contains("must be able to write"))
    };
    until(told).await;
    assert_eq!(files(&folder), ["gatedsource"]);
}

#[tokio::test]
async fn a_disk_that_fails_later_fails_the_fetch_and_nothing_else() {
    let folder = folder();
    put(&folder, &path_of(b"good"), b"good");
    let mut house = House::ready(&folder).await;
    let upstream = Upstream::new(Reply::Whole(b"artifact".to_vec())).await;
    let digest = digest_of(b"artifact");
    // A file where the folder of another object belongs.
    put(&folder, "gatedsource/team", b"in the way");
    let other = place::key("team", "web").unwrap();
    house.store.fetch(&other, &digest, &upstream.url);
    assert_eq!(house.told().await, Heard::Of(other.clone()));
    let State::Failed(failure) = house.store.state(&other, &digest) else {
        panic!("it did not fail");
    };
    assert!(
        failure.why.starts_with("the artifact cannot be stored: "),
        "{}",
        failure.why
    );
    // And where nothing can be written at all.
    fs::remove_dir(folder.path().join("gatedsource/.incoming")).unwrap();
    let why = house.failed(&digest, &upstream.url).await;
    assert!(why.contains("No such file"), "{why}");
    assert_eq!(house.fetches("disk"), 2);
    assert!(house.store.has(&key(), &digest_of(b"good")).is_some());
    assert_eq!(
        files(&folder),
        [path_of(b"good"), "gatedsource/team".to_owned()]
    );
}
