//! Long and unusual names.

use sluice_forges::Trouble;

use crate::scene::{FILE, Scene, branch, refused};

#[tokio::test]
async fn a_name_of_a_hundred_characters_goes_all_the_way() {
    let scene = Scene::new("hundred").await;
    let longest = format!("sluice/{}", "n".repeat(93));
    let (commit, pull) = scene.pull(&longest, b"version: 2\n").await;
    let found = scene
        .forge
        .find(&branch(&longest), &branch("main"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (found.number, found.head.as_str()),
        (pull.number, longest.as_str())
    );
    assert_eq!(scene.merge(pull.number, &commit, None).await, Ok(()));

    let longer = format!("{longest}n");
    let act = scene.change(&longer, &[(FILE, b"version: 3\n")]).await;
    assert_eq!(refused(act), Trouble::BranchTooLong(100));
    assert_eq!(scene.head(&longer).await, None);
}

#[tokio::test]
async fn names_with_slashes_and_letters_of_any_kind_are_found() {
    let scene = Scene::new("letters").await;
    for (number, name) in ["env/prod/next", "grün#1", "a%2Fb", "x+y&z=1"]
        .into_iter()
        .enumerate()
    {
        let version = format!("version: {number}\n");
        let (commit, pull) = scene.pull(name, version.as_bytes()).await;
        assert_eq!(scene.head(name).await, Some(commit), "{name}");
        let found = scene
            .forge
            .find(&branch(name), &branch("main"))
            .await
            .unwrap();
        assert_eq!(found.map(|found| found.number), Some(pull.number), "{name}");
        assert_eq!(scene.seen(pull.number).await.head, name);
    }
    // The forge gives all references that begin with a name.
    for name in ["env", "env/prod", "env/prod/nex", "mai", "x"] {
        assert_eq!(scene.head(name).await, None, "{name}");
    }
}
