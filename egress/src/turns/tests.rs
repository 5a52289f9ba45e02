//! Many requests at once, by a clock that stands still while any task has something to do.

use std::cell::{Cell, RefCell};

use futures::future::{join_all, pending};
use tokio::time::Instant;

use super::*;

const LIMITS: Limits = Limits {
    time: Duration::from_secs(10),
    body: 1 << 20,
    in_flight: 64,
    slow: 32,
    per_namespace: 64,
    per_host: 4,
};

/// Who asks, where that does not matter.
const APPS: &str = "apps";

fn url(host: usize, path: usize) -> Url {
    Url::parse(&format!("https://host-{host}.test/{path}")).unwrap()
}

/// So much time.
async fn pass(time: Duration) {
    let _ = timeout(time, pending::<()>()).await;
}

/// How many there are at once, and how many there were at most.
#[derive(Default)]
struct Count {
    now: Cell<usize>,
    most: Cell<usize>,
}

impl Count {
    async fn during(&self, request: impl Future<Output = ()>) {
        let _under_way = UnderWay::new(self);
        request.await;
    }
}

/// It ends also when the request is given up.
struct UnderWay<'a>(&'a Count);

impl<'a> UnderWay<'a> {
    fn new(count: &'a Count) -> Self {
        count.now.set(count.now.get() + 1);
        count.most.set(count.most.get().max(count.now.get()));
        Self(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.now.set(self.0.now.get() - 1);
    }
}

/// A hundred hosts, each asked by five, again and again. How long each of those waited who answer
/// at once: round by round the longest.
async fn rounds(dead: usize, slow: usize) -> Vec<Duration> {
    let turns = Turns::new(LIMITS);
    let count = Count::default();
    let mut longest = Vec::new();
    for _round in 0..4 {
        let begun = Instant::now();
        let waits = RefCell::new(Vec::new());
        join_all((0..500).map(|n| {
            let (turns, count, waits) = (&turns, &count, &waits);
            async move {
                let (host, path) = (n % 100, n / 100);
                let (takes, is_quick) = match host {
                    host if host < dead => (LIMITS.time, false),
                    host if host < dead + slow => (Duration::from_secs(3), false),
                    _ => (Duration::from_millis(20), true),
                };
                let asking = || count.during(pass(takes));
                turns.take(APPS, &url(host, path), asking).await;
                if is_quick {
                    waits.borrow_mut().push(begun.elapsed());
                }
            }
        }))
        .await;
        longest.push(waits.into_inner().into_iter().max().unwrap());
    }
    assert!(count.most.get() <= LIMITS.in_flight + LIMITS.slow);
    longest
}

/// What one of the dead hosts would do to them is ten seconds.
#[tokio::test(start_paused = true)]
async fn a_tenth_of_dead_hosts_and_slow_ones_delay_nobody_else() {
    let alone = rounds(0, 0).await;
    let beside = rounds(5, 5).await;
    // They meet once, in the first second, before it is known who is slow.
    assert!(beside[0] < QUICK, "{beside:?}");
    let spared = |wait: &Duration| *wait <= alone[0];
    assert!(beside[1..].iter().all(spared), "{beside:?}, {alone:?}");
}

/// However many they are, they hold a quick turn for a second each, once.
#[tokio::test(start_paused = true)]
async fn a_single_host_that_answers_is_not_delayed_by_ninety_nine_that_do_not() {
    let beside = rounds(99, 0).await;
    let turns_before = u32::try_from((99_usize * 5).div_ceil(LIMITS.in_flight)).unwrap();
    assert!(beside[0] <= QUICK * turns_before + QUICK, "{beside:?}");
    let alone = Duration::from_millis(20) * 2;
    assert!(beside[1..].iter().all(|wait| *wait <= alone), "{beside:?}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_question_does_not_delay_another_to_the_same_host() {
    let turns = Turns::new(LIMITS);
    let ask = async |path: usize, takes: Duration| {
        let begun = Instant::now();
        turns.take(APPS, &url(0, path), || pass(takes)).await;
        begun.elapsed()
    };
    let slow = |path| ask(path, Duration::from_secs(9));
    join_all((0..4).map(slow)).await;
    let both = async {
        tokio::join!(
            join_all((0..4).map(slow)),
            ask(9, Duration::from_millis(20))
        )
    };
    assert_eq!(both.await.1, Duration::from_millis(20));
}

#[tokio::test(start_paused = true)]
async fn each_lane_keeps_its_bounds() {
    let limits = Limits {
        in_flight: 3,
        slow: 2,
        per_host: 2,
        ..LIMITS
    };
    let (turns, one, all) = (Turns::new(limits), Count::default(), Count::default());
    let begun = Instant::now();
    join_all((0..12).map(|n| {
        let (turns, one, all) = (&turns, &one, &all);
        async move {
            let (host, takes) = (n / 4, Duration::from_millis(100));
            let asking = || async {
                match host {
                    0 => all.during(one.during(pass(takes))).await,
                    _ => all.during(pass(takes)).await,
                }
            };
            turns.take(APPS, &url(host, n), asking).await;
        }
    }))
    .await;
    assert_eq!((one.most.get(), all.most.get()), (2, 3));
    assert_eq!(begun.elapsed(), Duration::from_millis(400));
}

/// It is given up after a second, and starts again when it is its turn: with its whole time.
#[tokio::test(start_paused = true)]
async fn who_finds_the_slow_lane_full_begins_anew() {
    let limits = Limits { slow: 1, ..LIMITS };
    let (turns, begun) = (Turns::new(limits), Cell::new(0));
    let at = Instant::now();
    let ask = |host| {
        let (turns, begun) = (&turns, &begun);
        async move {
            let asking = || {
                begun.set(begun.get() + 1);
                pass(Duration::from_secs(4))
            };
            turns.take(APPS, &url(host, 0), asking).await;
            at.elapsed().as_secs()
        }
    };
    let mut took = <[u64; 2]>::from(tokio::join!(ask(0), ask(1)));
    took.sort_unstable();
    assert_eq!(took, [4, 8]);
    assert_eq!(begun.get(), 3);
}

#[tokio::test(start_paused = true)]
async fn who_is_quick_again_is_known_to_be() {
    let turns = Turns::new(LIMITS);
    let url = url(0, 0);
    let known = || turns.known_slow().len();
    turns
        .take(APPS, &url, || pass(Duration::from_secs(2)))
        .await;
    assert_eq!(known(), 1);
    turns
        .take(APPS, &url, || pass(Duration::from_secs(2)))
        .await;
    assert_eq!(known(), 1);
    turns
        .take(APPS, &url, || pass(Duration::from_millis(2)))
        .await;
    assert_eq!(known(), 0);
}

#[test]
fn what_is_known_has_a_bound() {
    let turns = Turns::new(LIMITS);
    for who in 0..=MOST_KNOWN as u64 {
        turns.note_slow(who);
    }
    assert_eq!(turns.known_slow().len(), 1);
}

#[test]
fn ports_are_hosts_of_their_own() {
    let host = |url: &str| host(&Url::parse(url).unwrap());
    assert_eq!(host("https://a.test/b?c"), "a.test:443");
    assert_eq!(host("http://a.test/b"), "a.test:80");
    assert_eq!(host("http://[::1]:9090/"), "[::1]:9090");
}

/// A team whose hosts never answer, however many it names, leaves turns to the others.
#[tokio::test(start_paused = true)]
async fn one_namespace_takes_its_share_of_turns_and_no_more() {
    let limits = Limits {
        in_flight: 6,
        slow: 4,
        per_namespace: 2,
        ..LIMITS
    };
    let (turns, theirs) = (Turns::new(limits), Count::default());
    let silent = (0..100).map(|n| {
        let (turns, theirs) = (&turns, &theirs);
        async move {
            let asking = || theirs.during(pending::<()>());
            turns.take("silent", &url(n, 0), asking).await;
        }
    });
    let asked = async {
        // Both of their lanes are full by then.
        pass(QUICK * 3).await;
        let begun = Instant::now();
        let slow = Duration::from_secs(4);
        for takes in [Duration::from_millis(20), slow] {
            turns.take(APPS, &url(200, 0), || pass(takes)).await;
        }
        begun.elapsed()
    };
    tokio::select! {
        _ = join_all(silent) => panic!("nobody answers them"),
        took = asked => assert_eq!(took, Duration::from_millis(4020)),
    }
    assert_eq!(theirs.most.get(), 2 * limits.per_namespace);
}

/// Two teams ask the same host: who waits behind their own is not in the way of the other.
#[tokio::test(start_paused = true)]
async fn a_host_is_shared_by_namespaces() {
    let limits = Limits {
        per_host: 1,
        ..LIMITS
    };
    let turns = Turns::new(limits);
    let ask = async |namespace: &str| {
        let begun = Instant::now();
        let asking = || pass(Duration::from_millis(100));
        turns.take(namespace, &url(0, 0), asking).await;
        begun.elapsed()
    };
    let waits = tokio::join!(ask("one"), ask("one"), ask("other"));
    let [first, second] = [1, 2].map(|times| Duration::from_millis(100) * times);
    assert_eq!(waits, (first, second, first));
}

/// Bodies that wait to be read are no more than there are turns.
#[tokio::test]
async fn a_turn_is_held_for_as_long_as_its_reply() {
    let limits = Limits {
        in_flight: 1,
        ..LIMITS
    };
    let turns = Turns::new(limits);
    let ask = |host| {
        let turns = &turns;
        async move { turns.take(APPS, &url(host, 0), async || ()).await }
    };
    let (_, first) = ask(0).await;
    let mut second = pin!(ask(1));
    assert!(futures::poll!(&mut second).is_pending());
    drop(first);
    second.await;
}
