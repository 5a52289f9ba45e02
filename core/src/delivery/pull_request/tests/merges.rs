//! What becomes of a merge that is sent, and what is done before one can be.

use super::followed::{open_it, scene};
use super::*;

/// After a revert the target branch has all commits of what is proposed. Some forges open nothing then.
#[test]
fn what_has_nothing_to_merge_is_joined_before_it_is_opened() {
    let joining = Joining {
        head: COMMIT.to_owned(),
        active: OTHER.to_owned(),
        tree: "e".repeat(40),
        at: noon(),
    };
    let mut scene = scene();
    scene.owner.as_mut().unwrap().join = Some(joining.clone());
    let (join, empty) = (Task::Join(joining), || {
        Outcome::Failed(failure(Word::NothingToMerge))
    });
    // It is opened where the forge does.
    assert_eq!(scene.task(), Some(open_it()));
    scene.is_owner_current = false;
    assert_eq!(scene.over(open_it(), empty()), None);
    scene.is_owner_current = true;
    assert_eq!(scene.task(), Some(join.clone()));
    assert_eq!(scene.over(join, Outcome::Done), Some(open_it()));
    assert_eq!(scene.status().attempts, None);
    // It is joined once.
    assert_eq!(scene.over(open_it(), empty()), None);
    assert_eq!(scene.wake(), Some(after(10)));
}
