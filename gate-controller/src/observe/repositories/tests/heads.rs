//! Branches.

use rstest::rstest;

use super::*;

#[test]
fn branches_are_known_once_they_were_listed() {
    let scene = Scene::new();
    assert_eq!(scene.heads("one"), Sight::Pending);
    scene.need("one", &["dev", "prod"]);
    assert_eq!(scene.heads("one"), Sight::Pending);
    assert_eq!(scene.list(&[("dev", "a")]), ["one"]);
    // One that is not there was listed, too.
    let known = listed(&[("dev", "a")]);
    assert_eq!(scene.heads("one"), Sight::Known(Arc::new(known)));
    assert_eq!(scene.room.listed_at(&access()), Some(at(0)));

    // Another one needs more, and the first is not held up by that.
    scene.wakes();
    scene.need("other", &["dev", "test"]);
    assert_eq!(scene.wakes(), 1);
    assert_eq!(scene.heads("other"), Sight::Pending);
    assert!(matches!(scene.heads("one"), Sight::Known(_)));
    assert_eq!(scene.list(&[("dev", "a")]), ["other"]);
    assert!(matches!(scene.heads("other"), Sight::Known(_)));
    assert_eq!(scene.heads("nobody"), Sight::Pending);
}

#[test]
fn many_need_a_repository_and_one_list_does_for_all() {
    let scene = Scene::new();
    let branch = |n: usize| format!("env/{n}");
    for n in 0..500 {
        scene.need(&n.to_string(), &["main", &branch(n)]);
    }
    assert_eq!(scene.wakes(), 1);
    let needed = scene.room.begin_list(&access(), None);
    assert_eq!(needed.branches.len(), 501);
    assert_eq!(scene.known().list.unlisted_at, None);
    // What is being listed need not be listed again.
    scene.need("more", &["main"]);
    assert_eq!(scene.wakes(), 0);
    scene.need("other", &["else"]);
    assert_eq!(scene.wakes(), 1);
    let woken = scene
        .room
        .listed(&access(), Ok(listed(&[("main", "a")]).into()));
    assert_eq!(woken.len(), 502);
    assert_eq!(scene.heads("other"), Sight::Pending);
    // They say it again at each look.
    for n in 0..500 {
        scene.need(&n.to_string(), &["main", &branch(n)]);
    }
    assert_eq!(scene.wakes(), 0);
}

/// Anyone who pushes very much does not have others wait for it at each list.
#[test]
fn what_was_too_much_is_listed_last_the_next_time() {
    let scene = Scene::new();
    scene.need("one", &["dev", "r"]);
    let begin = || scene.room.begin_list(&access(), None).wide;
    assert_eq!(begin(), BTreeSet::new());
    let wide = BTreeSet::from(["refs/heads/r".to_owned()]);
    let brought = |wide: &BTreeSet<String>| Listed {
        wide: wide.clone(),
        ..listed(&[("dev", "a")]).into()
    };
    scene.room.listed(&access(), Ok(brought(&wide)));
    assert_eq!(begin(), wide);
    // Also after a list that fails.
    let failure = Failure::new(Word::Unanswered, "it is dead");
    scene.room.listed(&access(), Err(failure));
    assert_eq!(begin(), wide);
    scene.room.listed(&access(), Ok(brought(&BTreeSet::new())));
    assert_eq!(begin(), BTreeSet::new());
}

#[test]
fn only_those_are_woken_whose_branches_have_moved() {
    let scene = Scene::new();
    scene.need("one", &["main", "a"]);
    scene.need("other", &["main", "b"]);
    let both = ["one", "other"];
    assert_eq!(scene.list(&[("main", "1"), ("a", "1"), ("b", "1")]), both);
    assert_eq!(
        scene.list(&[("main", "1"), ("a", "1"), ("b", "1")]),
        nothing()
    );
    assert_eq!(
        scene.list(&[("main", "1"), ("a", "2"), ("b", "1")]),
        ["one"]
    );
    assert_eq!(scene.list(&[("main", "1"), ("a", "2")]), ["other"]);
    assert_eq!(scene.list(&[("main", "2"), ("a", "2")]), both);
    let noted = [("main", "2"), ("a", "2"), ("notes", "3")];
    assert_eq!(scene.list(&noted), both);
    assert_eq!(scene.list(&noted), nothing());
}

#[test]
fn a_wish_for_a_fresh_list_is_met_by_one_that_is_begun_later() {
    let scene = Scene::new();
    // Nobody needs it.
    scene.room.list_now(&access());
    assert_eq!((scene.known().list.wanted_at, scene.wakes()), (None, 0));
    scene.need("one", &["dev"]);
    scene.list(&[("dev", "a")]);
    scene.wakes();
    scene.room.begin_list(&access(), Some("please".to_owned()));
    scene.pass(5);
    scene.room.list_now(&access());
    scene.room.list_now(&access());
    assert_eq!(scene.wakes(), 1);
    scene
        .room
        .listed(&access(), Ok(listed(&[("dev", "a")]).into()));
    let list = scene.known().list;
    assert_eq!((list.wanted_at, list.listed_at), (Some(at(5)), Some(at(0))));
    assert_eq!(list.handled.as_deref(), Some("please"));
    scene.list(&[("dev", "a")]);
    let list = scene.known().list;
    assert_eq!((list.wanted_at, list.listed_at), (None, Some(at(5))));
}

#[test]
fn a_request_is_answered_by_a_list_that_succeeds() {
    let scene = Scene::new();
    let begin = || scene.room.begin_list(&access(), Some("please".to_owned()));
    assert_eq!(begin(), Needed::default());
    let failure = Failure::new(Word::Unanswered, "no");
    scene.room.listed(&access(), Err(failure));
    let list = scene.known().list;
    assert_eq!(list.requested.as_deref(), Some("please"));
    assert_eq!(list.handled, None);
    begin();
    scene.room.listed(&access(), Ok(listed(&[]).into()));
    assert_eq!(scene.known().list.handled.as_deref(), Some("please"));
}

#[test]
fn a_failure_that_passes_is_told_when_the_last_list_is_too_old() {
    let scene = Scene::new();
    scene.need("one", &["dev"]);
    scene.list(&[("dev", "a")]);
    scene.pass(60);
    assert_eq!(scene.list_fails(Word::Unanswered), nothing());
    assert!(matches!(scene.heads("one"), Sight::Known(_)));
    assert_eq!(scene.known().list.stale_at, Some(at(180)));
    // One that begins to need it has nothing to decide from.
    scene.need("other", &["new"]);
    assert_eq!(scene.list_fails(Word::RateLimited), ["other"]);
    assert!(matches!(scene.heads("other"), Sight::Failed(_)));

    scene.pass(180);
    let woken = || names(scene.room.outdated(&access()));
    assert_eq!(woken(), ["one", "other"]);
    assert_eq!(woken(), nothing());
    assert_eq!(
        scene.heads("one"),
        Sight::Failed("it is RateLimited".to_owned())
    );
    assert_eq!(scene.known().list.stale_at, None);
    // It fails again in the same way: that is no news.
    assert_eq!(scene.list_fails(Word::RateLimited), nothing());
    assert_eq!(scene.list(&[("dev", "a")]), ["one", "other"]);
    assert!(matches!(scene.heads("one"), Sight::Known(_)));
}

#[rstest]
#[case(Word::Unauthorized)]
#[case(Word::NoRepository)]
#[case(Word::SecretNotUsable)]
fn a_failure_that_lasts_is_told_at_once(#[case] word: Word) {
    let scene = Scene::new();
    scene.need("one", &["dev"]);
    scene.list(&[("dev", "a")]);
    assert_eq!(scene.list_fails(word), ["one"]);
    assert_eq!(scene.heads("one"), Sight::Failed(format!("it is {word}")));
    assert_eq!(scene.list_fails(word), nothing());
    let failing = scene.known().list.failing.unwrap();
    assert_eq!(failing.times, 2);
}

#[test]
fn a_list_that_does_not_come_is_missed() {
    let scene = Scene::new();
    scene.need("one", &["dev"]);
    scene.list(&[("dev", "a")]);
    scene.pass(181);
    assert_eq!(names(scene.room.outdated(&access())), ["one"]);
    let why = "its branches were not listed for too long";
    assert_eq!(scene.heads("one"), Sight::Failed(why.to_owned()));
}

/// Others may push so many branches whose names begin alike that one cannot be listed.
#[test]
fn a_branch_that_cannot_be_listed_stops_those_alone_who_need_it() {
    let scene = Scene::new();
    scene.need("one", &["main", "r"]);
    scene.need("other", &["main"]);
    let list = |unlisted: &[&str]| {
        scene.room.begin_list(&access(), None);
        let why = |branch: &&str| ((*branch).to_owned(), "there are too many".to_owned());
        let found = Listed {
            unlisted: unlisted.iter().map(why).collect(),
            ..listed(&[("main", "a")]).into()
        };
        names(scene.room.listed(&access(), Ok(found)))
    };
    assert_eq!(list(&[]), ["one", "other"]);
    assert_eq!(list(&["r"]), ["one"]);
    let why = "there are too many".to_owned();
    assert_eq!(scene.heads("one"), Sight::Failed(why));
    assert!(matches!(scene.heads("other"), Sight::Known(_)));
    assert_eq!(list(&["r"]), nothing());
    assert_eq!(scene.known().list.failing, None);
    assert_eq!(list(&[]), ["one"]);
    assert!(matches!(scene.heads("one"), Sight::Known(_)));
}

#[test]
fn who_waits_for_a_list_is_woken_by_its_end_once() {
    let scene = Scene::new();
    scene.need("one", &["dev"]);
    scene.need("other", &["dev"]);
    scene.list(&[("dev", "a")]);
    scene.wakes();
    let asks = |by: &str| scene.room.list_for(&access(), &strategy(by));
    // A list that was begun before does not count.
    scene.room.begin_list(&access(), None);
    scene.pass(5);
    asks("one");
    assert_eq!(scene.wakes(), 1);
    let listed = || Ok(listed(&[("dev", "a")]).into());
    assert_eq!(names(scene.room.listed(&access(), listed())), nothing());
    assert_eq!(scene.list(&[("dev", "a")]), ["one"]);
    assert_eq!(scene.list(&[("dev", "a")]), nothing());
    asks("other");
    assert_eq!(scene.list_fails(Word::Unanswered), ["other"]);
    assert_eq!(scene.list_fails(Word::Unanswered), nothing());
    // Nobody waits who needs it no more.
    asks("one");
    asks("nobody");
    scene.room.forget(&strategy("one"));
    assert_eq!(scene.list(&[("dev", "a")]), nothing());
}

/// It may have waited for others, and what it says is newer by that.
#[test]
fn a_list_is_as_new_as_its_forge_was_asked() {
    let scene = Scene::new();
    scene.need("one", &["dev"]);
    scene.room.begin_list(&access(), None);
    scene.pass(50);
    let listed = Listed {
        at: Some(at(40)),
        ..listed(&[("dev", "a")]).into()
    };
    scene.room.listed(&access(), Ok(listed));
    assert_eq!(scene.room.listed_at(&access()), Some(at(40)));
}
