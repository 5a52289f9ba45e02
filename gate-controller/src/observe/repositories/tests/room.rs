//! How much memory answers take, and whose.

use super::*;

/// The answer to every question that is due.
fn answer_all(scene: &Scene, said: &Said) {
    while !scene.answer(said).0.is_empty() {}
}

fn long() -> Said {
    Said::Answer(Some(commit("x".repeat(64 << 10))))
}

fn of_commit(n: usize) -> Question {
    Question::Commit(n.to_string())
}

fn known(scene: &Scene, numbers: std::ops::Range<usize>) -> usize {
    let known = |n: &usize| matches!(scene.sight(&of_commit(*n)), Sight::Known(_));
    numbers.filter(known).count()
}

fn object(namespace: &str, name: &str) -> ObjectKey {
    KeyRef { namespace, name }.into()
}

fn strategy_of(namespace: &str, name: &str) -> Work {
    Work::own(Kind::PromotionStrategy, object(namespace, name))
}

/// Answers everything about a repository that is due, alike.
fn answer_of(scene: &Scene, access: &ObjectKey, said: &Said) {
    loop {
        let begun = scene.room.begin_questions(access).questions;
        if begun.is_empty() {
            break;
        }
        let said = begun.into_iter().map(|it| (it, said.clone()));
        scene.room.answered(access, Ok(said.collect()));
    }
}

/// How many of these long answers are known about a repository.
fn known_of(scene: &Scene, access: &ObjectKey) -> usize {
    let seen = scene.room.of(access, &strategy("one"));
    let all = (0..500).map(of_commit);
    all.filter(|it| matches!(seen.answer(it), Sight::Known(_)))
        .count()
}

#[test]
fn answers_that_nobody_asks_for_take_a_bounded_amount_of_memory() {
    let scene = Scene::new();
    for n in 0..300 {
        scene.ask("one", &[of_commit(n)]);
        scene.answer(&long());
    }
    let kept = known(&scene, 0..300);
    assert!((240..=257).contains(&kept), "{kept}");
    assert_eq!((known(&scene, 299..300), known(&scene, 0..1)), (1, 0));
}

/// Anyone who asks much must not take the room of others.
#[test]
fn each_who_asks_has_a_share_of_the_memory() {
    let scene = Scene::new();
    let all: Vec<_> = (0..100).map(of_commit).collect();
    scene.ask("one", &all);
    answer_all(&scene, &long());
    let kept = known(&scene, 0..100);
    assert!((60..=64).contains(&kept), "{kept}");
    let why = "its answers about this repository take more than 4 MiB".to_owned();
    assert_eq!(scene.sight(&of_commit(99)), Sight::Failed(why.clone()));
    // The next one has a share of its own, also for what the first one asks.
    scene.ask("other", &[of_commit(99), of_commit(200)]);
    answer_all(&scene, &long());
    assert_eq!((known(&scene, 99..100), known(&scene, 200..201)), (1, 1));
    // What it leaves to the first one still counts, and there is room again.
    scene.ask("other", &[]);
    assert_eq!(known(&scene, 99..100), 1);
    scene.ask("one", &all[..1]);
    scene.ask("one", &[of_commit(300)]);
    answer_all(&scene, &long());
    assert_eq!(known(&scene, 300..301), 1);
}

/// There may be room at any time: that is found out soon, and seldom if it takes long.
#[test]
fn an_answer_for_which_there_is_no_room_is_asked_for_again() {
    let scene = Scene::new();
    let all: Vec<_> = (0..63).map(of_commit).collect();
    let last = of_commit(100);
    scene.ask("one", &all);
    answer_all(&scene, &long());
    scene.ask("one", &[all.clone(), vec![last.clone()]].concat());
    let (mut asked, mut now) = (Vec::new(), 0);
    while now < 20_000 {
        scene.pass(now);
        if scene.answer(&long()).0.contains(&last) {
            asked.push(now);
        }
        assert!(matches!(scene.sight(&last), Sight::Failed(why) if why.contains("4 MiB")));
        now += 10;
    }
    assert_eq!(asked[..6], [0, 10, 30, 70, 150, 310]);
    assert_eq!(asked.len(), 14, "{asked:?}");
    // Anyone who asks less has room for it.
    scene.ask("one", &[all[..30].to_vec(), vec![last.clone()]].concat());
    scene.pass(now + 3_600);
    assert_eq!(scene.answer(&long()).0, std::slice::from_ref(&last));
    assert_eq!(known(&scene, 100..101), 1);
}

#[test]
fn each_namespace_has_a_share_of_the_memory() {
    let scene = Scene::new();
    for who in 0..6 {
        let from = who * 100;
        let all: Vec<_> = (from..from + 60).map(of_commit).collect();
        scene.ask(&who.to_string(), &all);
        answer_all(&scene, &long());
    }
    let kept = known(&scene, 0..600);
    assert!((240..=256).contains(&kept), "{kept}");
    let Sight::Failed(why) = scene.sight(&of_commit(559)) else {
        panic!("it is known");
    };
    assert!(why.contains("its namespace asks for"), "{why}");
    assert!(why.contains("take more than 16 MiB"), "{why}");
    // Another one has a share of its own, of the same repository, too.
    let other = strategy_of("other", "one");
    scene.room.ask(&access(), &other, [of_commit(599)]);
    answer_all(&scene, &long());
    assert_eq!(known(&scene, 599..600), 1);
}

/// As many answers as one can ask for, by five accesses of a namespace.
fn fill(scene: &Scene, namespace: &str) {
    for of in 0..5 {
        let access = object(namespace, &format!("access-{of}"));
        for who in 0..5 {
            let by = strategy_of(namespace, &format!("{of}-{who}"));
            let all = (who * 60..who * 60 + 60).map(of_commit);
            scene.room.ask(&access, &by, all);
        }
        answer_of(scene, &access, &long());
    }
}

/// However many namespaces ask for as much as they get.
#[test]
fn anyone_who_asks_for_much_leaves_room_for_others() {
    let scene = Scene::new();
    let quiet = Question::Statuses("a".to_owned());
    scene.ask("one", std::slice::from_ref(&quiet));
    scene.answer(&statuses("1 of 2"));
    let full = object("evil-0", "access-0");
    let by = strategy_of("evil-0", "quiet");
    scene.room.ask(&full, &by, [quiet.clone()]);
    answer_of(&scene, &full, &statuses("1 of 2"));
    for n in 0..8 {
        fill(&scene, &format!("evil-{n}"));
        let bytes = scene.room.whole.bytes();
        assert!(bytes <= 64 << 20, "{bytes}");
    }
    let refused = object("evil-0", "access-4");
    assert_eq!(known_of(&scene, &refused), 0);
    // One who has little gets what it asks for, and what was known stays known.
    scene.ask("other", &[of_commit(7)]);
    answer_all(&scene, &long());
    assert_eq!(known(&scene, 7..8), 1);
    scene.pass(60);
    // Nor is what gets no larger lost by one who has more than is left by now.
    for access in [access(), full] {
        answer_of(&scene, &access, &statuses("2 of 2"));
        let seen = scene.room.of(&access, &by);
        let Sight::Known(Answer::Statuses(now)) = seen.answer(&quiet) else {
            panic!("it was lost");
        };
        assert_eq!(now[0].description, "2 of 2");
    }
}

/// What is renewed where there is no room: it stays as it is if it gets no larger, and is not lost otherwise.
#[test]
fn what_is_renewed_is_not_lost_for_lack_of_room() {
    let scene = Scene::new();
    let renewed = Question::Statuses("a".to_owned());
    let short = statuses(&"x".repeat(1_000));
    scene.ask("one", std::slice::from_ref(&renewed));
    scene.answer(&short);
    let all = (0..100).map(of_commit).chain([renewed.clone()]);
    scene.ask("one", &all.collect::<Vec<_>>());
    answer_all(&scene, &long());
    assert!((60..=64).contains(&known(&scene, 0..100)));
    let says = || match scene.sight(&renewed) {
        Sight::Known(Answer::Statuses(now)) => now[0].description.len().to_string(),
        Sight::Failed(why) => why,
        other => panic!("{other:?}"),
    };
    scene.pass(60);
    answer_all(&scene, &statuses(&"y".repeat(1_000)));
    assert_eq!(says(), "1000");
    // One that is too large is tried again soon, until that which is known is too old.
    for second in [120, 130, 150] {
        scene.pass(second);
        let mut asked = 0;
        loop {
            let questions = scene.answer(&statuses(&"z".repeat(100_000))).0;
            asked += questions.iter().filter(|it| **it == renewed).count();
            if questions.is_empty() {
                break;
            }
        }
        assert_eq!((asked, says().as_str()), (1, "1000"));
    }
    scene.pass(360);
    assert!(says().contains("4 MiB"), "{}", says());
    // There is room again.
    scene.ask("one", std::slice::from_ref(&renewed));
    answer_all(&scene, &statuses(&"z".repeat(100_000)));
    assert_eq!(says(), "100000");
}

#[test]
fn the_answers_about_all_repositories_take_a_bounded_amount_of_memory() {
    let scene = Scene::new();
    let place = |of: usize| object(&format!("apps-{of}"), "shop");
    // Of the first ones nobody wants to know anything any more.
    for of in 0..7 {
        let namespace = format!("apps-{of}");
        let by = |who: usize| strategy_of(&namespace, &who.to_string());
        for who in 0..4 {
            let all = (who * 60..who * 60 + 60).map(of_commit);
            scene.room.ask(&place(of), &by(who), all);
        }
        answer_of(&scene, &place(of), &long());
        assert_eq!(known_of(&scene, &place(of)), 240);
        if of < 4 {
            for who in 0..4 {
                scene.room.ask(&place(of), &by(who), []);
            }
        }
    }
    let known = |of| known_of(&scene, &place(of));
    let all: Vec<_> = (0..7).map(known).collect();
    let kept: usize = all.iter().sum();
    assert!((720..=1_024).contains(&kept), "{all:?}");
    // Others were dropped for what somebody asks for.
    assert!(all[4..].iter().all(|known| *known == 240), "{all:?}");
    // Nothing is left of it.
    scene.room.clear();
    assert_eq!(scene.room.whole.bytes(), 0);
}

/// Anyone who asks for much and leaves it takes from nobody what is kept for it.
#[test]
fn those_give_way_first_who_leave_most() {
    let scene = Scene::new();
    scene.ask("one", &[of_commit(7)]);
    answer_all(&scene, &long());
    scene.ask("one", &[]);
    for round in 0..2 {
        for n in 0..4 {
            let namespace = format!("evil-{n}");
            fill(&scene, &namespace);
            for of in 0..5 {
                for who in 0..5 {
                    let by = strategy_of(&namespace, &format!("{of}-{who}"));
                    let access = object(&namespace, &format!("access-{of}"));
                    scene.room.ask(&access, &by, []);
                }
            }
        }
        assert_eq!(known(&scene, 7..8), 1, "{round}");
    }
}
