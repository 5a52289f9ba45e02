//! Nobody fills the memory, or takes the place and the events of others.

use super::super::known::News;
use super::*;

#[tokio::test]
async fn one_who_asks_something_new_each_time_fills_nothing() {
    let desk = Desk::open(false);
    for n in 0..10_500 {
        let name = format!("shop-{n}");
        desk.ask(Some(&name), false, "OutsideWindow").await;
    }
    assert_eq!(desk.events().len(), 40);
    assert!(desk.counters.events_dropped.get() >= 10_000);
    let known = desk.decisions.waiting().len();
    assert!(known <= 10_000, "{known}");
    desk.pass(1);
    desk.ask(Some("shop"), false, "OutsideWindow").await;
    assert_eq!(desk.events().len(), 1);
}

#[test]
fn each_event_is_paid_for_and_what_makes_room_is_reported_at_once() {
    let mut known = Known::default();
    let mut ask = |n: usize, words: usize| -> News {
        let mut decision = decision(NOON.parse().unwrap(), false, "OutsideWindow");
        decision.subject.name = Some(format!("shop-{n}"));
        decision.decided_by = (0..5).map(|gate| format!("apps/{gate}")).collect();
        decision.message = "w".repeat(words);
        known.note(&decision, Asker::Controller, Lines::All)
    };
    let news: Vec<News> = (0..100).map(|n| ask(n, 1)).collect();
    assert_eq!(news.iter().map(|it| it.events).sum::<usize>(), 200);
    assert_eq!(news.iter().map(|it| it.dropped).sum::<u64>(), 100);
    // Equal answers of each of many long ones: those that made room are reported, and the others are
    // still known.
    let mut told = 0;
    for n in 100..1_100 {
        let news = [ask(n, 1 << 16), ask(n, 1 << 16), ask(n, 1 << 16)];
        told += news.iter().map(|it| it.counted.len()).sum::<usize>();
    }
    assert!((700..1_000).contains(&told), "{told}");
    assert_eq!(told + known.drain().len(), 1_000);
}

/// Whose subject it is, nobody has verified.
#[tokio::test]
async fn one_who_is_not_known_speaks_for_nobody() {
    let desk = Desk::open(false);
    let now = desk.clock.now();
    let tell = async |desk: &Desk, asker: Asker<'_>, kind: &str| {
        let mut decision = decision(now, false, "OutsideWindow");
        decision.subject.kind = kind.to_owned();
        desk.decisions.tell(decision, asker).await;
    };
    tell(&desk, Asker::Stranger, "Canary").await;
    // The controller asks for these itself.
    for kind in [
        "GatedSource",
        "Pipeline",
        "PromotionStrategy",
        "RevertCommit",
        "Rollout",
    ] {
        tell(&desk, Asker::Caller("alice"), kind).await;
    }
    assert!(desk.events().is_empty() && desk.decisions.waiting().is_empty());
    assert_eq!(desk.lines().await.len(), 6);

    tell(&desk, Asker::Caller("alice"), "Canary").await;
    assert_eq!(desk.events().len(), 1);
    let waiting = desk.decisions.waiting();
    assert_eq!((waiting.len(), waiting[0].kind.as_str()), (1, "Canary"));
}

/// One who asks something new each time makes room at their own expense.
#[tokio::test]
async fn one_caller_takes_no_room_and_no_events_from_another() {
    let desk = Desk::open(false);
    let ask = async |desk: &Desk, asker: Asker<'_>, n: usize| {
        let mut decision = decision(desk.clock.now(), false, "OutsideWindow");
        decision.subject.name = Some(format!("{asker:?}-{n}"));
        desk.decisions.tell(decision, asker).await;
    };
    let (noisy, quiet) = (Asker::Caller("noisy"), Asker::Caller("quiet"));
    for n in 0..100 {
        ask(&desk, quiet, n).await;
        ask(&desk, Asker::Controller, n).await;
    }
    assert_eq!(desk.events().len(), 40 + 100);
    for n in 0..15_000 {
        ask(&desk, noisy, n).await;
    }
    assert_eq!(desk.events().len(), 40);
    let waiting = desk.decisions.waiting();
    let of = |name: &str| waiting.iter().filter(|it| it.name.contains(name)).count();
    assert_eq!((of("quiet"), of("Controller")), (100, 100));
    assert!(of("noisy") < 10_000);
    // The same again is no news.
    for n in 0..100 {
        ask(&desk, quiet, n).await;
        ask(&desk, Asker::Controller, n).await;
    }
    assert!(desk.events().is_empty());
}
