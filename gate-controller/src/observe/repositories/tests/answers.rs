//! Questions and their answers.

use super::*;
use crate::observe::repositories::kept::MOST;

fn metadata(of: impl Into<String>) -> Question {
    Question::Metadata(of.into())
}

fn note(of: &str) -> Question {
    let (notes, of) = ("n".to_owned(), of.to_owned());
    Question::Note { notes, of }
}

fn contains(base: &str) -> Question {
    let (base, commit) = (base.to_owned(), "c".to_owned());
    Question::Contains { base, commit }
}

fn of_statuses() -> Question {
    Question::Statuses("a".to_owned())
}

fn absent() -> Said {
    Said::Answer(None)
}

fn failed(word: Word) -> Said {
    Said::Failed(Failure::new(word, format!("it is {word}")))
}

/// The seconds until the next question is to be asked.
fn next_in(scene: &Scene, second: i64) -> Option<i64> {
    let next = scene.known().questions.next_at?;
    Some(next.duration_since(at(second)).as_secs())
}

#[test]
fn a_question_is_asked_once_however_many_want_to_know() {
    let scene = Scene::new();
    scene.ask("one", &[metadata("a")]);
    assert_eq!(scene.wakes(), 1);
    scene.ask("other", &[metadata("a")]);
    assert_eq!(scene.wakes(), 0);
    let (asked, woken) = scene.answer(&text("{}"));
    assert_eq!(asked, [metadata("a")]);
    assert_eq!(woken, ["one", "other"]);
    assert_eq!(
        scene.sight(&metadata("a")),
        Sight::Known(Answer::Text("{}".into()))
    );
    // It is right for ever.
    scene.ask("third", &[metadata("a")]);
    assert_eq!((scene.wakes(), next_in(&scene, 0)), (0, None));
    // Also once nobody asks it, and then somebody does.
    for who in ["one", "other", "third"] {
        scene.ask(who, &[]);
    }
    assert!(matches!(scene.sight(&metadata("a")), Sight::Known(_)));
    scene.wakes();
    scene.ask("one", &[metadata("a")]);
    assert_eq!(next_in(&scene, 0), None);
    assert!(matches!(scene.sight(&metadata("a")), Sight::Known(_)));
}

#[test]
fn what_nobody_wants_to_know_any_more_is_not_asked() {
    let scene = Scene::new();
    scene.ask("one", &[metadata("a"), metadata("b")]);
    scene.ask("one", &[metadata("b")]);
    let (asked, _) = scene.answer(&text("{}"));
    assert_eq!(asked, [metadata("b")]);
    // One that was being asked when it was given up is kept all the same.
    scene.ask("one", &[metadata("c")]);
    let begun = scene.begin();
    scene.ask("one", &[]);
    let answers = begun.into_iter().map(|it| (it, text("{}")));
    let woken = scene.room.answered(&access(), Ok(answers.collect()));
    assert_eq!(woken, BTreeSet::new());
    assert!(matches!(scene.sight(&metadata("c")), Sight::Known(_)));
}

#[test]
fn statuses_are_read_again_after_a_minute_or_when_somebody_knows_better() {
    let scene = Scene::new();
    scene.ask("one", &[of_statuses()]);
    assert_eq!(scene.answer(&statuses("1 of 2")).1, ["one"]);
    assert_eq!(next_in(&scene, 0), Some(60));
    scene.pass(60);
    assert_eq!(scene.answer(&statuses("1 of 2")).1, nothing());
    scene.pass(120);
    assert_eq!(scene.answer(&statuses("2 of 2")).1, ["one"]);
    // Not more than once a second.
    scene.wakes();
    scene.room.renew(&access(), &of_statuses());
    assert_eq!((scene.wakes(), next_in(&scene, 120)), (1, Some(1)));
    scene.pass(121);
    scene.answer(&statuses("2 of 2"));
    scene.pass(130);
    scene.room.renew(&access(), &of_statuses());
    assert_eq!(next_in(&scene, 130), Some(0));
    // Nobody asks this one.
    scene.wakes();
    scene
        .room
        .renew(&access(), &Question::Statuses("b".to_owned()));
    assert_eq!(scene.wakes(), 0);
    // They are not read while nobody wants to know, and nothing old is told afterwards.
    scene.ask("one", &[]);
    assert_eq!(next_in(&scene, 130), None);
    assert_eq!(scene.sight(&of_statuses()), Sight::Pending);
}

#[test]
fn statuses_that_cannot_be_read_again_are_too_old_some_time() {
    let scene = Scene::new();
    scene.ask("one", &[of_statuses()]);
    scene.answer(&statuses("2 of 2"));
    scene.pass(60);
    assert_eq!(scene.answer(&failed(Word::Unanswered)).1, nothing());
    assert!(matches!(scene.sight(&of_statuses()), Sight::Known(_)));
    assert_eq!(scene.known().questions.stale_at, Some(at(300)));
    scene.pass(300);
    assert_eq!(names(scene.room.outdated(&access())), ["one"]);
    assert_eq!(
        scene.sight(&of_statuses()),
        Sight::Failed("it is Unanswered".to_owned())
    );
    assert_eq!(scene.answer(&failed(Word::Unanswered)).1, nothing());
    scene.pass(400);
    assert_eq!(scene.answer(&statuses("2 of 2")).1, ["one"]);
    assert!(matches!(scene.sight(&of_statuses()), Sight::Known(_)));
}

/// A forge may show by its API later than by Git what was pushed.
#[test]
fn what_is_not_there_is_asked_for_once_more() {
    let scene = Scene::new();
    scene.ask("one", &[note("a")]);
    assert_eq!(scene.answer(&absent()).1, ["one"]);
    assert_eq!(scene.sight(&note("a")), Sight::Absent);
    assert_eq!(next_in(&scene, 0), Some(60));
    scene.pass(60);
    assert_eq!(scene.answer(&absent()).1, nothing());
    assert_eq!(next_in(&scene, 60), None);
    // A commit may still be pushed.
    scene.ask("one", &[contains("b")]);
    scene.answer(&absent());
    scene.pass(120);
    scene.answer(&absent());
    assert_eq!(next_in(&scene, 120), Some(3_600));
    scene.pass(3_720);
    let found = Said::Answer(Some(Answer::Contains(true)));
    assert_eq!(scene.answer(&found).1, ["one"]);
    assert_eq!(next_in(&scene, 3_720), None);
}

#[test]
fn what_cannot_be_used_is_said_and_seldom_asked_for() {
    let scene = Scene::new();
    scene.ask("one", &[metadata("a"), metadata("b")]);
    let unusable = Said::Unusable("it is too long".to_owned());
    let (asked, woken) = scene.answer(&unusable);
    assert_eq!((asked.len(), woken), (2, vec!["one".to_owned()]));
    assert_eq!(
        scene.sight(&metadata("a")),
        Sight::Failed("it is too long".to_owned())
    );
    assert_eq!(next_in(&scene, 0), Some(3_600));
    assert_eq!(scene.known().questions.failing, None);
    scene.pass(3_600);
    assert_eq!(scene.answer(&unusable).1, nothing());
}

#[test]
fn a_forge_that_fails_is_left_alone_for_a_while() {
    let scene = Scene::new();
    scene.ask("one", &[metadata("a")]);
    scene.ask("other", &[metadata("b")]);
    let failing = |word| {
        let begun = scene.begin();
        let said = vec![(begun[0].clone(), failed(word))];
        (begun, names(scene.room.answered(&access(), Ok(said))))
    };
    let (begun, woken) = failing(Word::NoRight);
    assert_eq!(begun, [metadata("a"), metadata("b")]);
    assert_eq!(woken, ["one", "other"]);
    for question in begun {
        assert_eq!(
            scene.sight(&question),
            Sight::Failed("it is NoRight".to_owned())
        );
    }
    let known = scene.known().questions;
    assert_eq!(known.failing.map(|it| it.word), Some(Word::NoRight));
    assert_eq!(next_in(&scene, 0), Some(10));
    // The one that has failed waits behind the other, and the wait gets longer.
    scene.pass(10);
    let (begun, _) = failing(Word::NoRight);
    assert_eq!(begun, [metadata("b"), metadata("a")]);
    assert_eq!(next_in(&scene, 10), Some(20));
    // With a word of the forge even longer.
    scene.pass(30);
    scene.begin();
    let mut limited = Failure::new(Word::RateLimited, "it is RateLimited");
    limited.not_before = Some(at(1_000));
    scene.room.answered(&access(), Err(limited));
    assert_eq!(next_in(&scene, 30), Some(970));
    scene.pass(1_000);
    let (asked, woken) = scene.answer(&text("{}"));
    assert_eq!((asked.len(), woken.len()), (2, 2));
    assert_eq!(scene.known().questions.failing, None);
}

#[test]
fn few_questions_are_asked_at_once_in_the_order_in_which_they_came() {
    let scene = Scene::new();
    for n in 0..40 {
        scene.ask(&n.to_string(), &[metadata(format!("{:02}", 39 - n))]);
    }
    let mut asked = Vec::new();
    for expected in [16, 16, 8] {
        let (now, _) = scene.answer(&text("{}"));
        assert_eq!(now.len(), expected);
        asked.extend(now);
    }
    let expected: Vec<_> = (0..40)
        .map(|n| metadata(format!("{:02}", 39 - n)))
        .collect();
    assert_eq!(asked, expected);
    assert_eq!(next_in(&scene, 0), None);
}

/// Anyone who asks much keeps nobody waiting who asks little, also where that is not needed at once.
#[test]
fn namespaces_take_turns_in_what_is_asked() {
    let scene = Scene::new();
    let by = |namespace: &str, n: usize| {
        let name = &*n.to_string();
        Work::own(Kind::PromotionStrategy, KeyRef { namespace, name }.into())
    };
    let ask = |namespace: &str, n: usize, question: Question| {
        scene.room.ask(&access(), &by(namespace, n), [question]);
    };
    ask("shop", 0, of_statuses());
    scene.answer(&statuses("1 of 2"));
    scene.pass(60);
    for n in 0..64 {
        ask("evil", n, metadata(format!("{n:02}")));
    }
    ask("web", 0, metadata("of web"));
    let web_and_evil = scene.begin();
    assert_eq!(web_and_evil.len(), 16);
    assert!(web_and_evil.contains(&metadata("of web")));
    answer(&scene, web_and_evil);
    // The statuses are renewed before more that is needed elsewhere.
    let renewed = scene.room.begin_questions(&access());
    assert_eq!(renewed.questions, [of_statuses()]);
    assert!(!renewed.are_needed);
    scene
        .room
        .answered(&access(), Ok(vec![(of_statuses(), statuses("2 of 2"))]));
    // Of those who come later, each has one before any has more.
    for n in 0..20 {
        ask(&format!("late-{n:02}"), 0, metadata(format!("of {n:02}")));
    }
    let late = scene.begin();
    let is_late = |it: &&Question| matches!(it, Question::Metadata(of) if of.starts_with("of"));
    assert_eq!(late.iter().filter(is_late).count(), 16);
    answer(&scene, late);
    let rest = scene.begin();
    assert_eq!(rest.iter().filter(is_late).count(), 4);
    answer(&scene, rest);
    while !scene.answer(&text("{}")).0.is_empty() {}
    assert_eq!(next_in(&scene, 60), Some(60));
}

/// The forge has answered these.
fn answer(scene: &Scene, questions: Vec<Question>) {
    let said = questions.into_iter().map(|it| (it, text("{}")));
    scene.room.answered(&access(), Ok(said.collect()));
}

#[test]
fn only_so_many_answers_are_kept_that_nobody_asks_for() {
    let scene = Scene::new();
    let learn = |n: usize| {
        scene.ask("one", &[metadata(n.to_string())]);
        scene.answer(&text("{}"));
    };
    (0..MOST + 2).for_each(learn);
    scene.ask("one", &[]);
    for n in [0, 1] {
        assert_eq!(scene.sight(&metadata(n.to_string())), Sight::Pending, "{n}");
    }
    for n in [2, MOST + 1] {
        assert!(
            matches!(scene.sight(&metadata(n.to_string())), Sight::Known(_)),
            "{n}"
        );
    }
    // One that is asked for again is the newest afterwards.
    scene.ask("one", &[metadata("2")]);
    scene.ask("one", &[]);
    learn(MOST + 2);
    learn(MOST + 3);
    assert!(matches!(scene.sight(&metadata("2")), Sight::Known(_)));
    assert_eq!(scene.sight(&metadata("3")), Sight::Pending);
}

#[test]
fn what_fails_of_one_question_holds_no_other() {
    let scene = Scene::new();
    scene.ask("one", &[metadata("a")]);
    scene.ask("other", &[metadata("b"), metadata("c")]);
    let begun = scene.begin();
    let alone = Said::FailedAlone(Failure::new(Word::Unanswered, "it is not understood"));
    let said = [(begun[0].clone(), alone), (begun[1].clone(), text("{}"))];
    let woken = scene.room.answered(&access(), Ok(said.into()));
    assert_eq!(names(woken), ["one", "other"]);
    let why = "it is not understood".to_owned();
    assert_eq!(scene.sight(&metadata("a")), Sight::Failed(why));
    assert_eq!(scene.sight(&metadata("c")), Sight::Pending);
    // The other one is asked at once, and the access is not said to fail.
    assert_eq!(next_in(&scene, 0), Some(0));
    assert_eq!(scene.known().questions.failing, None);
    let (asked, _) = scene.answer(&text("{}"));
    assert_eq!(asked, [metadata("c")]);
    assert_eq!(next_in(&scene, 0), Some(10));
    scene.pass(10);
    scene.answer(&text("{}"));
    assert!(matches!(scene.sight(&metadata("a")), Sight::Known(_)));
}

/// The last tenth of what a forge allows is for what nobody can decide without.
#[test]
fn what_nobody_knows_is_asked_before_what_is_known_is_renewed() {
    let scene = Scene::new();
    scene.ask("one", &[of_statuses()]);
    scene.answer(&statuses("1 of 2"));
    scene.pass(60);
    scene.ask("other", &[contains("b"), metadata("a")]);
    let begun = |questions: &[Question], are_needed| Begun {
        questions: questions.to_vec(),
        are_needed,
    };
    let begin = || scene.room.begin_questions(&access());
    assert_eq!(begin(), begun(&[metadata("a"), contains("b")], true));
    scene.answer(&text("{}"));
    assert_eq!(begin(), begun(&[of_statuses()], false));
    // It is kept for merges. No question that is needed waits for that, nor is this one held until it is too old.
    let mut throttled = Failure::new(Word::ForgeThrottled, "it is kept for merges");
    throttled.not_before = Some(at(3_600));
    scene.answer(&Said::FailedAlone(throttled));
    assert!(matches!(scene.sight(&of_statuses()), Sight::Known(_)));
    assert_eq!(next_in(&scene, 60), Some(180));
    scene.ask("other", &[contains("c")]);
    assert_eq!(begin(), begun(&[contains("c")], true));
    scene.answer(&text("{}"));
    scene.pass(240);
    assert_eq!(begin(), begun(&[of_statuses()], true));
}

#[test]
fn one_question_that_always_fails_holds_others_for_a_short_time_alone() {
    let scene = Scene::new();
    scene.ask("one", &[metadata("bad")]);
    scene.answer(&failed(Word::Unanswered));
    for n in 1..10 {
        let second = n * 400;
        scene.pass(second);
        let other = metadata(n.to_string());
        scene.ask("one", &[metadata("bad"), other.clone()]);
        let begun = scene.begin();
        let said = [
            (other, text("{}")),
            (metadata("bad"), failed(Word::Unanswered)),
        ];
        assert_eq!(begun.len(), 2);
        scene.room.answered(&access(), Ok(said.into()));
        scene.ask("one", &[metadata("bad"), metadata("next")]);
        assert_eq!(next_in(&scene, second), Some(10));
    }
}
