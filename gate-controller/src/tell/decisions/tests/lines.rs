//! Which answers are lines of the audit log, and what they count.

use rstest::rstest;

use super::*;

#[rstest]
#[case::while_time_passes(0)]
#[case::although_the_clock_was_set_back(-300)]
#[tokio::test]
async fn what_was_counted_is_reported_when_nothing_comes_after_it(#[case] minutes: i64) {
    let desk = Arc::new(Desk::open(false));
    for _ in 0..5 {
        desk.ask(Some("shop"), false, "OutsideWindow").await;
    }
    let sweeping = Arc::clone(&desk);
    let sweeps = tokio::spawn(async move { sweeping.decisions.sweep().await });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    desk.pass(minutes);
    let told = async {
        // In all less than what it was set back by.
        let mut passed = 0;
        while desk.counters.audit_records.get() < 2 {
            if passed < 200 {
                desk.pass(2);
                passed += 2;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), told)
        .await
        .unwrap();
    sweeps.abort();
    // The line is the last of the five, and counts the three between.
    assert_eq!(desk.lines().await, [(false, 0), (false, 3)]);
}

#[tokio::test]
async fn every_yes_is_a_line_where_it_has_to_be_recorded() {
    let desk = Desk::open(true);
    for _ in 0..3 {
        assert!(desk.ask(Some("shop"), true, "InsideWindow").await.allowed);
        desk.ask(Some("till"), false, "OutsideWindow").await;
    }
    let lines = desk.lines().await;
    assert_eq!(lines.iter().filter(|line| line.0).count(), 3, "{lines:?}");
    assert_eq!(lines.len(), 4, "{lines:?}");
}

/// A controller that looks again and again at what holds back, or lets pass, nothing new.
#[tokio::test]
async fn of_what_is_looked_at_again_only_news_is_reported() {
    for required in [false, true] {
        let desk = Desk::open(required);
        let look = |minutes: i64, allowed: bool| {
            let at = NOON.parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes);
            let decision = decision(at, allowed, "InRange");
            desk.decisions.look(&decision);
            let labels = labels::of(&decision);
            desk.counters.decisions.get_or_create(&labels).get()
        };
        for minutes in 0..20 {
            assert_eq!(look(minutes, true), 1);
        }
        for minutes in 20..80 {
            assert_eq!(look(minutes, false), 1);
        }
        assert_eq!(look(80, true), 2);
        assert_eq!(desk.lines().await, [(true, 0), (false, 0), (true, 0)]);
        // That it still waits is reported as often as for other callers.
        let outcomes = ["Admitted", "Blocked", "Blocked", "Admitted"];
        assert_eq!(desk.outcomes(), outcomes);
    }
}

/// What comes into effect is recorded first, also where it was seen before.
#[tokio::test]
async fn what_is_done_by_an_answer_that_was_looked_at_has_a_line_of_its_own() {
    let desk = Desk::open(true);
    let yes = decision(desk.clock.now(), true, "InRange");
    desk.decisions.look(&yes);
    desk.pass(10);
    assert!(desk.tell(yes).await.allowed);
    assert_eq!(desk.lines().await, [(true, 0), (true, 0)]);
}

/// Somebody goes back and forth between two revisions: each time one goes out.
#[tokio::test]
async fn each_act_has_a_line_however_often_the_same_was_answered() {
    for required in [false, true] {
        let desk = Desk::open(required);
        let admit = |revision: &str| {
            let mut yes = decision(desk.clock.now(), true, "InRange");
            yes.subject.kind = "GatedSource".to_owned();
            yes.subject.revision = Some(revision.to_owned());
            yes
        };
        for revision in ["a", "b", "a", "b", "a"] {
            desk.decisions.look(&admit(revision));
            assert!(desk.decisions.act(admit(revision)).await.decision.allowed);
        }
        // What was looked at first is the news, and has a line, too.
        assert_eq!(desk.lines().await, [(true, 0); 7], "required: {required}");
        desk.decisions.finish().await;
        assert_eq!(desk.lines().await.len(), 7);
    }
}

#[tokio::test]
async fn what_was_counted_is_reported_beside_a_yes_that_has_its_own_line_and_at_the_end() {
    let desk = Desk::open(true);
    for _ in 0..5 {
        desk.ask(Some("shop"), false, "OutsideWindow").await;
    }
    desk.ask(Some("shop"), true, "InsideWindow").await;
    let lines = [(false, 0), (true, 0), (false, 3)];
    assert_eq!(desk.lines().await, lines);
    for _ in 0..3 {
        desk.ask(Some("till"), false, "OutsideWindow").await;
    }
    desk.decisions.finish().await;
    desk.decisions.finish().await;
    let more = [(false, 0), (false, 1)];
    assert_eq!(desk.lines().await, [&lines[..], &more].concat());
}

#[tokio::test]
async fn all_that_was_counted_finds_room_at_the_end() {
    let desk = Desk::open(false);
    for n in 0..9_500 {
        let name = format!("shop-{n}");
        for _ in 0..2 {
            desk.ask(Some(&name), false, "OutsideWindow").await;
        }
        if n % 1_000 == 0 {
            assert!(desk.decisions.audit.finish().await);
        }
    }
    assert!(desk.decisions.audit.finish().await);
    desk.decisions.finish().await;
    assert_eq!(desk.lines().await.len(), 19_000);
    assert_eq!(desk.counters.audit_dropped.get(), 0);
}
