//! Who may ask when, while time stands still.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::task::LocalSet;
use tokio::time::{advance, timeout};

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const DATE: &str = "Fri, 20 Nov 2026 12:00:00 GMT";

fn pacing(pace: &Arc<Pace>, urgency: Urgency) -> Pacing {
    pacing_of(pace, "apps", urgency)
}

fn pacing_of(pace: &Arc<Pace>, by: &str, urgency: Urgency) -> Pacing {
    let (pace, by) = (Arc::clone(pace), by.into());
    Pacing { pace, by, urgency }
}

fn reply(status: u16, headers: &[(&'static str, &str)]) -> Reply {
    let reply = Reply::new(status, Vec::new()).with("date", DATE);
    let headers = headers.iter();
    headers.fold(reply, |reply, (name, value)| reply.with(name, value))
}

/// What a forge says that allows 5,000 requests until 12:10.
fn left(remaining: &str) -> Reply {
    let reset = "1795176600";
    reply(
        200,
        &[
            ("x-ratelimit-limit", "5000"),
            ("x-ratelimit-remaining", remaining),
            ("x-ratelimit-reset", reset),
        ],
    )
}

async fn change(pacing: &Pacing) -> Result<(), Trouble> {
    pacing.change(true).await.map(drop)
}

fn limited(seconds: u64) -> Result<(), Trouble> {
    let wait = Wait::For(Duration::from_secs(seconds));
    Err(Trouble::RateLimited(wait))
}

#[tokio::test(start_paused = true)]
async fn changes_go_one_after_another_the_most_urgent_first_with_a_pause() {
    let pace = Arc::new(Pace::new(SECOND));
    let begun = Rc::new(RefCell::new(Vec::new()));
    let start = Instant::now();
    let local = LocalSet::new();
    for urgency in [
        Urgency::Other,
        Urgency::Opening,
        Urgency::Status,
        Urgency::Other,
        Urgency::Merge,
        Urgency::Withdrawal,
    ] {
        let (pacing, begun) = (pacing(&pace, urgency), Rc::clone(&begun));
        local.spawn_local(async move {
            let turn = pacing.change(true).await.unwrap();
            begun.borrow_mut().push((urgency, start.elapsed()));
            // The request takes a while.
            let _ = timeout(SECOND, std::future::pending::<()>()).await;
            drop(turn);
        });
    }
    local.await;
    let expected = [
        (Urgency::Other, 0),
        (Urgency::Withdrawal, 2),
        (Urgency::Merge, 4),
        (Urgency::Status, 6),
        (Urgency::Opening, 8),
        (Urgency::Other, 10),
    ];
    let expected = expected.map(|(urgency, at)| (urgency, Duration::from_secs(at)));
    assert_eq!(*begun.borrow(), expected);
    assert!(!pace.is_idle());
    advance(SECOND).await;
    assert!(pace.is_idle());
}

/// However urgent and however many: a namespace has one change between two of another.
#[tokio::test(start_paused = true)]
async fn namespaces_take_turns_whatever_is_urgent_to_them() {
    let pace = Arc::<Pace>::default();
    let usual = pacing(&pace, Urgency::Other);
    let first = usual.change(true).await.unwrap();
    let begun = Rc::new(RefCell::new(Vec::new()));
    let local = LocalSet::new();
    let wait = |by: &'static str, urgency| {
        let (pacing, begun) = (pacing_of(&pace, by, urgency), Rc::clone(&begun));
        local.spawn_local(async move {
            let _turn = pacing.change(true).await.unwrap();
            begun.borrow_mut().push((by, urgency));
        });
    };
    for _ in 0..3 {
        wait("flips", Urgency::Withdrawal);
    }
    for urgency in [Urgency::Other, Urgency::Merge] {
        wait("shop", urgency);
    }
    wait("web", Urgency::Merge);
    // All of them wait.
    local.run_until(tokio::task::yield_now()).await;
    drop(first);
    local.await;
    let expected = [
        ("flips", Urgency::Withdrawal),
        ("shop", Urgency::Merge),
        ("web", Urgency::Merge),
        ("flips", Urgency::Withdrawal),
        ("shop", Urgency::Other),
        ("flips", Urgency::Withdrawal),
    ];
    assert_eq!(*begun.borrow(), expected);
    assert!(pace.state().last.is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_is_given_up_while_it_waits_keeps_nobody_waiting() {
    let pace = Arc::<Pace>::default();
    let usual = pacing(&pace, Urgency::Other);
    let first = usual.change(true).await.unwrap();
    let urgent = pacing(&pace, Urgency::Merge);
    let mut waiting = Box::pin(urgent.change(true));
    let mut next = Box::pin(usual.change(true));
    assert!(futures::poll!(&mut waiting).is_pending());
    assert!(futures::poll!(&mut next).is_pending());
    drop(waiting);
    drop(first);
    assert!(next.await.is_ok());
    // A question waits for no change.
    let _change = usual.change(true).await.unwrap();
    assert!(usual.question(true).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn four_questions_are_asked_at_once() {
    let pace = Arc::<Pace>::default();
    let pacing = pacing(&pace, Urgency::Other);
    let mut asked = Vec::new();
    for _ in 0..4 {
        asked.push(pacing.question(true).await.unwrap());
    }
    let mut fifth = Box::pin(pacing.question(true));
    assert!(futures::poll!(&mut fifth).is_pending());
    asked.pop();
    assert!(fifth.await.is_ok());
}

/// Also what is most urgent, and what had begun to wait before that was said.
#[tokio::test(start_paused = true)]
async fn a_forge_that_wants_to_be_left_alone_is() {
    let pace = Arc::<Pace>::default();
    let urgent = pacing(&pace, Urgency::Withdrawal);
    let turn = urgent.change(true).await.unwrap();
    let mut waiting = Box::pin(change(&urgent));
    assert!(futures::poll!(&mut waiting).is_pending());
    pace.note(&reply(429, &[("retry-after", "30")]), true);
    drop(turn);
    assert_eq!(waiting.await, limited(30));
    // A shorter wait takes nothing back.
    pace.note(&reply(403, &[("retry-after", "5")]), true);
    advance(29 * SECOND).await;
    assert_eq!(change(&urgent).await, limited(1));
    assert!(urgent.question(false).await.is_err());
    advance(SECOND).await;
    assert_eq!(change(&urgent).await, Ok(()));
    // An instant counts from the time of the reply.
    let date = "Fri, 20 Nov 2026 12:00:20 GMT";
    pace.note(&reply(429, &[("retry-after", date)]), true);
    assert_eq!(change(&urgent).await, limited(20));
    advance(20 * SECOND).await;
    for (status, headers, seconds) in [
        (429, [("retry-after", "soon")], 60),
        (403, [("retry-after", "999999999")], 3600),
    ] {
        pace.note(&reply(status, &headers), true);
        assert_eq!(change(&urgent).await, limited(seconds));
        advance(Duration::from_secs(seconds)).await;
    }
    // A refusal for another reason says nothing of that.
    pace.note(&reply(403, &[]), true);
    assert_eq!(change(&urgent).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn the_last_tenth_is_kept_for_merges() {
    let pace = Arc::<Pace>::default();
    let [merge, usual] = [Urgency::Merge, Urgency::Status].map(|it| pacing(&pace, it));
    pace.note(&left("500"), true);
    assert_eq!(change(&usual).await, Ok(()));
    pace.note(&left("499"), true);
    let throttled = |seconds| Err(Trouble::Throttled(Wait::For(Duration::from_secs(seconds))));
    assert_eq!(change(&usual).await, throttled(600));
    assert_eq!(usual.question(true).await.map(drop), throttled(600));
    assert_eq!(change(&merge).await, Ok(()));
    // What is not counted goes on, and says nothing of what is left.
    assert!(usual.question(false).await.is_ok());
    pace.note(&left("5000"), false);
    assert_eq!(change(&usual).await, throttled(600));
    assert!(!pace.is_idle());
    advance(Duration::from_secs(600)).await;
    assert_eq!(change(&usual).await, Ok(()));
    // As soon as there is more, it is over.
    pace.note(&left("0"), true);
    assert!(change(&usual).await.is_err());
    pace.note(&left("5000"), true);
    assert_eq!(change(&usual).await, Ok(()));
}

/// Anyone who makes others ask much does not use up what merges need.
#[tokio::test(start_paused = true)]
async fn the_last_twentieth_is_not_for_questions_either() {
    let pace = Arc::<Pace>::default();
    let all = [Urgency::Merge, Urgency::Needed, Urgency::Status];
    let [merge, needed, usual] = all.map(|it| pacing(&pace, it));
    let throttled = Err(Trouble::Throttled(Wait::For(Duration::from_secs(600))));
    for (remaining, may_ask) in [("500", true), ("499", true), ("250", true), ("249", false)] {
        pace.note(&left(remaining), true);
        let asked = needed.question(true).await.map(drop);
        let expected = if may_ask { Ok(()) } else { throttled.clone() };
        assert_eq!(asked, expected, "{remaining}");
        let is_scarce = remaining != "500";
        assert_eq!(change(&usual).await.is_err(), is_scarce, "{remaining}");
        assert_eq!(merge.question(true).await.map(drop), Ok(()), "{remaining}");
        assert_eq!(change(&merge).await, Ok(()), "{remaining}");
    }
    // What is not counted goes on, and as soon as there is more, so does the rest.
    assert!(needed.question(false).await.is_ok());
    pace.note(&left("250"), true);
    assert!(needed.question(true).await.is_ok());
}

/// As GitLab writes them, and as nobody should.
#[tokio::test(start_paused = true)]
async fn what_is_left_is_read_as_forges_write_it() {
    let usual = Pacing::default();
    let said = |headers: &[(&'static str, &str)]| usual.pace.note(&reply(200, headers), true);
    let of_gitlab = [
        ("ratelimit-limit", "2000"),
        ("ratelimit-remaining", "100"),
        ("ratelimit-reset", "1795176030"),
    ];
    said(&of_gitlab);
    let wait = Wait::For(Duration::from_secs(30));
    assert_eq!(change(&usual).await, Err(Trouble::Throttled(wait)));
    for headers in [
        [of_gitlab[0], of_gitlab[1], ("ratelimit-reset", "1")],
        [of_gitlab[0], of_gitlab[1], ("ratelimit-reset", "soon")],
        [of_gitlab[0], ("ratelimit-remaining", "2000"), of_gitlab[2]],
    ] {
        said(&headers);
        assert_eq!(change(&usual).await, Ok(()), "{headers:?}");
    }
}
