//! Objects over time: soaks, and what starts them again.

use proptest::prelude::*;

use super::*;

#[test]
fn labels_select() {
    let rule = rule(
        &json!({ "selector": { "matchLabels": { "app": "web" } } }),
        0,
    );
    let labelled = |mut object: Value, app: &str| {
        object["metadata"]["labels"] = json!({ "app": app });
        object
    };
    let (a, b) = (labelled(ready("a"), "web"), labelled(unready("b"), "other"));
    assert_eq!(
        said(&rule, &[a.clone(), b.clone()], 0).0,
        Reason::ObjectsReady
    );
    // Its labels change: it is one of them, and again it is not.
    let mut course = course(&rule, &[(0, "a", Some(a)), (0, "b", Some(b.clone()))]);
    course.follow(
        &rule.parts()[0],
        "b",
        Some(labelled(b.clone(), "web")),
        at(5),
    );
    assert_eq!((course.len(), course.satisfied_since()), (2, None));
    course.follow(&rule.parts()[0], "b", Some(b), at(9));
    assert_eq!((course.len(), course.satisfied_since()), (1, Some(at(9))));
}

#[test]
fn a_soak_ends_and_starts_again_after_an_unready_moment() {
    let rule = rule(&json!({ "name": "web" }), 100);
    let ready = || Some(ready("web"));
    let reason = |events: &[(i64, &str, Option<Value>)], second| {
        let observed = seen(&rule, &course(&rule, events));
        let opinion = opinion(&rule, Some(&observed), Setting::Closed, now(second).into());
        (opinion.reason, opinion.next)
    };
    let steady = [(0, "web", ready()), (50, "web", ready())];
    assert_eq!(reason(&steady, 99), (Reason::Soaking, Some(at(100))));
    assert_eq!(reason(&steady, 100), (Reason::ObjectsReady, None));
    // Unready and ready again between two looks.
    let blinked = [
        (0, "web", ready()),
        (50, "web", Some(unready("web"))),
        (50, "web", ready()),
    ];
    assert_eq!(reason(&blinked, 100), (Reason::Soaking, Some(at(150))));
    let replaced = [(0, "web", ready()), (60, "web", None), (60, "web", ready())];
    assert_eq!(reason(&replaced, 159), (Reason::Soaking, Some(at(160))));
    assert_eq!(reason(&replaced[..2], 159), (Reason::ObjectsNotReady, None));
}

#[test]
fn one_unready_moment_of_one_object_is_one_of_all() {
    let rule = rule(&all(), 100);
    let events = [
        (0, "a", Some(ready("a"))),
        (0, "b", Some(ready("b"))),
        (30, "b", Some(unready("b"))),
        (40, "c", Some(unready("c"))),
        (50, "b", Some(ready("b"))),
        (60, "c", None),
    ];
    assert_eq!(course(&rule, &events[..2]).satisfied_since(), Some(at(0)));
    assert_eq!(course(&rule, &events[..5]).satisfied_since(), None);
    assert_eq!(course(&rule, &events).satisfied_since(), Some(at(60)));
}

#[test]
fn a_moment_out_of_sight_counts_as_unready_and_a_clock_set_back_begins_anew() {
    let rule = rule(&all(), 100);
    let mut course = course(&rule, &[(50, "a", Some(ready("a")))]);
    course.lose_sight(at(70));
    assert_eq!(course.satisfied_since(), Some(at(70)));
    course.not_after(at(80));
    assert_eq!(course.satisfied_since(), Some(at(70)));
    course.not_after(at(20));
    assert_eq!(course.satisfied_since(), Some(at(20)));
    let mut unready = self::course(&rule, &[(0, "a", Some(unready("a")))]);
    unready.lose_sight(at(70));
    assert_eq!(unready.satisfied_since(), None);
}

#[test]
fn all_parts_have_to_be_satisfied_together() {
    let mut spec = spec(&json!({ "name": "web" }));
    spec.of.push(
        self::spec(&json!({ "kind": "StatefulSet", "name": "db" }))
            .of
            .remove(0),
    );
    let rule = read(&spec).unwrap();
    let mut courses = [Course::begin(Some("apps")), Course::begin(None)];
    let look = |courses: &[Course]| {
        let parts: Vec<_> = rule.parts().iter().zip(courses).collect();
        Sighting::of(&parts, at(10_000))
    };
    courses[0].follow(&rule.parts()[0], "web", Some(ready("web")), at(10));
    let missing = Unsatisfied::Missing("StatefulSet db".to_owned());
    let sighting = look(&courses);
    assert_eq!(
        (sighting.first_unsatisfied, sighting.satisfied_since),
        (Some(missing), None)
    );
    courses[1].follow(&rule.parts()[1], "db", Some(ready("db")), at(30));
    let sighting = look(&courses);
    assert_eq!((sighting.seen, sighting.satisfied), (2, 2));
    assert_eq!(
        (sighting.first_unsatisfied, sighting.satisfied_since),
        (None, Some(at(30)))
    );
}

fn resumed(rule: &Rule, before: &[(i64, &str, Option<Value>)], after: Value) -> Timestamp {
    let said = seen(rule, &course(rule, before)).status().unwrap();
    let mut now = course(rule, &[(500, "web", Some(after))]);
    resume([&mut now].into_iter(), &said, at(500));
    now.satisfied_since().unwrap()
}

#[test]
fn a_soak_outlives_its_controller_where_nothing_can_have_happened() {
    let rule = rule(&json!({ "name": "web" }), 1000);
    let before = [(100, "web", Some(ready("web")))];
    assert_eq!(resumed(&rule, &before, ready("web")), at(100));
    let changed = |path: &str, value: Value| {
        let mut object = ready("web");
        *object.pointer_mut(path).unwrap() = value;
        object
    };
    for after in [
        changed("/metadata/uid", json!("another")),
        changed("/metadata/generation", json!(5)),
        changed("/status/conditions/0/lastTransitionTime", json!("later")),
    ] {
        assert_eq!(resumed(&rule, &before, after), at(500));
    }
    // What was not ready then was not ready since.
    let before = [(100, "web", Some(unready("web")))];
    assert_eq!(resumed(&rule, &before, ready("web")), at(500));
    // It is not known what the results of an expression were in that time.
    let rule = self::rule(&json!({ "name": "web", "expression": "true" }), 1000);
    let before = [(100, "web", Some(ready("web")))];
    assert_eq!(resumed(&rule, &before, ready("web")), at(500));
}

#[test]
fn a_status_tells_of_no_more_time_than_there_was_and_the_same_after_a_restart() {
    let rule = rule(&json!({ "name": "web" }), 1000);
    let told = |course: &Course| {
        let status = seen(&rule, course).status().unwrap();
        (status.satisfied_since.as_ref().unwrap().0, status)
    };
    let begun = |at| {
        let mut course = Course::begin(Some("apps"));
        course.follow(&rule.parts()[0], "web", Some(ready("web")), at);
        course
    };
    let (since, status) = told(&begun(Timestamp::from_millisecond(100_001).unwrap()));
    assert_eq!(since, at(101));
    let mut later = begun(at(500));
    resume([&mut later].into_iter(), &status, at(500));
    assert_eq!(told(&later), (since, status));
}

#[derive(Clone, Copy, Debug)]
enum Happening {
    Ready,
    Unready,
    Gone,
}

proptest! {
    /// The fold over events says what looking at the whole history says.
    #[test]
    fn since_when_all_are_ready_is_what_the_history_says(
        events in proptest::collection::vec(
            (0..3usize, prop_oneof![
                3 => Just(Happening::Ready), 1 => Just(Happening::Unready), 1 => Just(Happening::Gone),
            ]),
            0..40,
        ),
    ) {
        let rule = rule(&all(), 100);
        let (mut course, mut objects) = (Course::begin(None), [None::<bool>; 3]);
        let mut since = None;
        for ((which, happening), second) in events.into_iter().zip(0..) {
            let name = ["a", "b", "c"][which];
            let (known, object) = match happening {
                Happening::Ready => (Some(true), Some(ready(name))),
                Happening::Unready => (Some(false), Some(unready(name))),
                Happening::Gone => (None, None),
            };
            objects[which] = known;
            course.follow(&rule.parts()[0], name, object, at(second));
            let there: Vec<bool> = objects.iter().flatten().copied().collect();
            let good = !there.is_empty() && there.iter().all(|ready| *ready);
            since = good.then(|| since.unwrap_or(at(second)));
            prop_assert_eq!(course.satisfied_since(), since);
            let sighting = seen(&rule, &course);
            let sighting = self::sighting(&sighting);
            prop_assert_eq!(sighting.seen, there.len());
            prop_assert_eq!(sighting.satisfied, there.iter().filter(|ready| **ready).count());
            prop_assert_eq!(sighting.first_unsatisfied.is_none(), good);
        }
    }
}
