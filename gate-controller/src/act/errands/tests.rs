use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use jiff::Timestamp;
use tokio::sync::{mpsc, watch};

use super::*;
use crate::cluster::key::ObjectKey;
use crate::cluster::kind::Kind;
use crate::lease::Held;
use crate::observe::clock::{Jumps, SetClock};

struct Desk {
    errands: Arc<Errands<&'static str, u32>>,
    woken: mpsc::UnboundedReceiver<Work>,
    lead: watch::Sender<Option<Held>>,
}

fn desk() -> Desk {
    let clock = Arc::new(SetClock::new(Timestamp::UNIX_EPOCH));
    let (lead, leadership) = Leadership::new(Arc::new(Jumps::new(clock)));
    lead.send_replace(Some(Held::for_ever()));
    let (wake, woken) = mpsc::unbounded_channel();
    let errands = Errands::new(leadership, move |work: &Work| {
        let _ = wake.send(work.clone());
    });
    Desk {
        errands,
        woken,
        lead,
    }
}

/// How an errand stands. None: it has not been begun, or was forgotten.
fn stands(
    errands: &Errands<&'static str, u32>,
    of: &Work,
    key: &'static str,
) -> Option<Standing<u32>> {
    errands.of(of).remove(key)
}

fn app(name: &str) -> Work {
    let (namespace, name) = ("apps".into(), name.into());
    Work::own(Kind::GatedSource, ObjectKey { namespace, name })
}

#[tokio::test]
async fn an_errand_is_run_once_and_its_outcome_is_kept_until_it_was_accepted() {
    let Desk {
        errands, mut woken, ..
    } = desk();
    let (work, runs) = (app("podinfo"), Arc::new(AtomicUsize::new(0)));
    assert_eq!(stands(&errands, &work, "key"), None);
    for _ in 0..3 {
        let runs = Arc::clone(&runs);
        errands.begin(&work, &"key", "git.example.com", |_| async move {
            runs.fetch_add(1, SeqCst);
            7
        });
    }
    assert_eq!(stands(&errands, &work, "key"), Some(Standing::UnderWay));
    assert_eq!(woken.recv().await, Some(work.clone()));
    // A look whose status was refused finds it again, and begins nothing.
    for _ in 0..2 {
        assert_eq!(stands(&errands, &work, "key"), Some(Standing::Over(Ok(7))));
        errands.begin(&work, &"key", "git.example.com", |_| async { 8 });
    }
    assert_eq!(runs.load(SeqCst), 1);
    errands.keep(&work, |_| false);
    assert_eq!(stands(&errands, &work, "key"), None);
    assert!(errands.lock().is_empty());
}

#[tokio::test]
async fn what_nobody_wants_any_more_is_stopped_and_wakes_nobody() {
    let Desk {
        errands, mut woken, ..
    } = desk();
    let work = app("podinfo");
    errands.begin(&work, &"old", "git.example.com", |_| pending());
    errands.keep(&work, |key| *key == "new");
    errands.begin(&work, &"new", "git.example.com", |_| async { 1 });
    assert_eq!(woken.recv().await, Some(work.clone()));
    assert_eq!(stands(&errands, &work, "old"), None);
    assert_eq!(stands(&errands, &work, "new"), Some(Standing::Over(Ok(1))));
    assert!(woken.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_host_that_never_answers_delays_nobody_else() {
    let Desk {
        errands, mut woken, ..
    } = desk();
    for n in 0..100 {
        let work = app(&format!("app-{n}"));
        errands.begin(&work, &"key", "dead.example.com", |_| pending());
    }
    let work = app("podinfo");
    errands.begin(&work, &"key", "git.example.com", |_| async { 1 });
    let before = Instant::now();
    assert_eq!(woken.recv().await, Some(work));
    assert_eq!(Instant::now(), before);
    // Each of the others is over in its turn.
    let over = woken.recv().await.unwrap();
    let outcome = stands(&errands, &over, "key");
    assert_eq!(
        outcome,
        Some(Standing::Over(Err(Unfinished::Late(LONGEST))))
    );
    assert_eq!(Instant::now() - before, LONGEST);
}

/// What an errand does at a live host is done at once, and holds nothing up there while another part waits.
#[tokio::test(start_paused = true)]
async fn each_part_waits_for_its_own_host_alone() {
    let Desk {
        errands, mut woken, ..
    } = desk();
    let (done, mut parts) = mpsc::unbounded_channel();
    let begin = |of: &Work| {
        let part = |host: &'static str| {
            let done = done.clone();
            let run = move |_: Term| async move {
                if host == "dead.example.com" {
                    pending::<()>().await;
                }
                let _ = done.send(host);
                1
            };
            (host.to_owned(), run)
        };
        let parts = vec![part("dead.example.com"), part("git.example.com")];
        let sum = |outcomes: Vec<Result<u32, Unfinished>>| {
            let ended: Vec<u32> = outcomes.iter().flatten().copied().collect();
            match ended.len() == outcomes.len() {
                true => Ok(ended.iter().sum()),
                false => Err(Unfinished::Late(LONGEST)),
            }
        };
        errands.begin_parts(of, &"key", parts, sum);
    };
    let before = Instant::now();
    for n in 0..20 {
        // Of namespaces of their own, so that only the places at the hosts are few.
        begin(&of(&format!("team-{n}"), "app"));
        assert_eq!(parts.recv().await, Some("git.example.com"));
    }
    assert_eq!(Instant::now(), before);
    let first = woken.recv().await.unwrap();
    assert_eq!(Instant::now() - before, LONGEST);
    let outcome = stands(&errands, &first, "key");
    assert_eq!(
        outcome,
        Some(Standing::Over(Err(Unfinished::Late(LONGEST))))
    );
}

/// Begins an errand with a part at each host. Only those that are not dead answer, with 1.
fn begin_at(
    errands: &Arc<Errands<&'static str, u32>>,
    of: &Work,
    hosts: impl Iterator<Item = String>,
) {
    let parts = hosts.map(|host| {
        let is_dead = host.ends_with("dead.example.com");
        let run = move |_: Term| async move {
            if is_dead {
                pending::<()>().await;
            }
            1
        };
        (host, run)
    });
    errands.begin_parts(of, &"key", parts.collect(), |ended| ended.into_iter().sum());
}

#[tokio::test(start_paused = true)]
async fn an_errand_with_many_dead_hosts_delays_nothing_else_of_its_namespace() {
    let Desk {
        errands, mut woken, ..
    } = desk();
    let dead = (0..100).map(|n| format!("{n}.dead.example.com"));
    begin_at(&errands, &app("dead"), dead);
    // It holds what it can hold.
    tokio::task::yield_now().await;
    let before = Instant::now();
    let (parts, told) = (app("parts"), app("told"));
    let live = (0..20).map(|n| format!("{n}.example.com"));
    begin_at(&errands, &parts, live);
    assert_eq!(woken.recv().await, Some(parts.clone()));
    assert_eq!(
        stands(&errands, &parts, "key"),
        Some(Standing::Over(Ok(20)))
    );
    errands.begin(&told, &"key", "git.example.com", |_| async { 1 });
    assert_eq!(woken.recv().await, Some(told));
    assert_eq!(Instant::now(), before);
}

/// Nor do many of them together delay what has one part.
#[tokio::test(start_paused = true)]
async fn the_parts_of_many_errands_delay_nothing_that_has_one_part() {
    let Desk {
        errands, mut woken, ..
    } = desk();
    for n in 0..10 {
        let dead = (0..20).map(|part| format!("{part}-{n}.dead.example.com"));
        begin_at(&errands, &app(&format!("dead-{n}")), dead);
    }
    // These wait for a place in the namespace, at a host that answers.
    for n in 0..10 {
        let hosts = ["git.example.com".to_owned()];
        begin_at(&errands, &app(&format!("live-{n}")), hosts.into_iter());
    }
    tokio::task::yield_now().await;
    let before = Instant::now();
    errands.begin(&app("told"), &"key", "git.example.com", |_| async { 1 });
    assert_eq!(woken.recv().await, Some(app("told")));
    assert_eq!(Instant::now(), before);
}

#[tokio::test]
async fn a_panic_ends_its_own_errand_alone() {
    let Desk {
        errands, mut woken, ..
    } = desk();
    let work = app("podinfo");
    errands.begin(&work, &"key", "git.example.com", |_| async {
        panic!("a defect")
    });
    assert_eq!(woken.recv().await, Some(work.clone()));
    let outcome = stands(&errands, &work, "key");
    assert_eq!(outcome, Some(Standing::Over(Err(Unfinished::Defect))));
}

#[tokio::test]
async fn who_does_not_lead_any_more_acts_no_more() {
    let Desk {
        errands,
        mut woken,
        lead,
    } = desk();
    let work = app("podinfo");
    let (term, mut terms) = mpsc::unbounded_channel();
    errands.begin(&work, &"key", "git.example.com", move |its| async move {
        let _ = term.send(its);
        pending().await
    });
    let term = terms.recv().await.unwrap();
    assert!(term.may_act().is_some());
    lead.send_replace(None);
    assert!(term.may_act().is_none());
    assert_eq!(woken.recv().await, Some(work.clone()));
    assert_eq!(stands(&errands, &work, "key"), None);
    errands.begin(&work, &"over", "git.example.com", |_| async { 1 });
    errands.clear();
    assert!(errands.of(&work).is_empty());
    // The next one begins nothing before this replica leads again.
    errands.begin(&work, &"key", "git.example.com", |_| async { 1 });
    assert_eq!(woken.recv().await, Some(work.clone()));
    assert_eq!(stands(&errands, &work, "key"), None);
}

fn of(namespace: &str, name: &str) -> Work {
    let (namespace, name) = (namespace.into(), name.into());
    Work::own(Kind::PullRequest, ObjectKey { namespace, name })
}

#[tokio::test(start_paused = true)]
async fn a_namespace_with_many_hosts_delays_no_other_namespace() {
    let Desk {
        errands, mut woken, ..
    } = desk();
    for n in 0..100 {
        let host = format!("{n}.dead.example.com");
        errands.begin(&of("many", &n.to_string()), &"key", &host, |_| pending());
        let hosts = (0..20).map(|part| format!("{part}-{n}.dead.example.com"));
        begin_at(&errands, &of("many", &format!("parts-{n}")), hosts);
    }
    errands.begin(&of("shop", "app"), &"key", "git.example.com", |_| async {
        1
    });
    let before = Instant::now();
    assert_eq!(woken.recv().await, Some(of("shop", "app")));
    assert_eq!(Instant::now(), before);
}

#[tokio::test(start_paused = true)]
async fn what_must_not_wait_has_places_of_its_own() {
    let Desk {
        errands, mut woken, ..
    } = desk();
    for n in 0..100 {
        let host = format!("{n}.dead.example.com");
        errands.begin(&of("shop", &n.to_string()), &"key", &host, |_| pending());
    }
    // All places of the namespace are taken, and one of those that are kept, too.
    tokio::task::yield_now().await;
    for n in 0..10 {
        let work = of("shop", &format!("first-{n}"));
        errands.begin_by(Turn::First, &work, &"key", "dead.example.com", |_| {
            pending()
        });
    }
    let before = Instant::now();
    errands.begin(&of("shop", "later"), &"key", "git.example.com", |_| async {
        1
    });
    // Merges wait for none of these either.
    for (turn, name) in [(Turn::First, "app"), (Turn::Merge, "merge")] {
        let work = of("shop", name);
        errands.begin_by(turn, &work, &"key", "git.example.com", |_| async { 1 });
        assert_eq!(woken.recv().await, Some(work));
        assert_eq!(Instant::now(), before);
    }
}

/// One namespace has many errands of each kind that do not end, in a line of its own and in one that it shares.
#[tokio::test(start_paused = true)]
async fn no_namespace_takes_all_places_of_a_line() {
    let Desk {
        errands, mut woken, ..
    } = desk();
    for turn in [Turn::Usual, Turn::First, Turn::Merge] {
        for n in 0..20 {
            for line in ["many/token at github.com", "all/shared at github.com"] {
                let work = of("many", &format!("{turn:?} {n} {line}"));
                errands.begin_by(turn, &work, &"key", line, |_| pending());
            }
        }
    }
    tokio::task::yield_now().await;
    let before = Instant::now();
    for line in ["shop/token at github.com", "all/shared at github.com"] {
        for turn in [Turn::Usual, Turn::First, Turn::Merge] {
            let work = of("shop", &format!("{turn:?} {line}"));
            errands.begin_by(turn, &work, &"key", line, |_| async { 1 });
            assert_eq!(woken.recv().await, Some(work));
        }
    }
    assert_eq!(Instant::now(), before);
}

/// As it is where all of them wait for forges that want to be left alone.
#[tokio::test(start_paused = true)]
async fn many_namespaces_that_fill_their_places_delay_no_other() {
    let Desk {
        errands, mut woken, ..
    } = desk();
    for n in 0..15 {
        for errand in 0..20 {
            let work = of(&format!("team-{n}"), &errand.to_string());
            let line = format!("team-{n}/{} at github.com", errand % 5);
            errands.begin(&work, &"key", &line, |_| pending());
        }
    }
    tokio::task::yield_now().await;
    let before = Instant::now();
    let work = of("shop", "app");
    errands.begin(&work, &"key", "shop/token at github.com", |_| async { 1 });
    assert_eq!(woken.recv().await, Some(work));
    assert_eq!(Instant::now(), before);
}

#[tokio::test]
async fn what_is_left_goes_on_and_nobody_hears_of_it() {
    let Desk {
        errands, mut woken, ..
    } = desk();
    let (gone, (done, mut ended)) = (of("apps", "gone"), mpsc::unbounded_channel());
    let begin = |key: &'static str| {
        let (go, may_go) = tokio::sync::oneshot::channel::<()>();
        let done = done.clone();
        errands.begin(&gone, &key, "git.example.com", move |_| async move {
            let _ = may_go.await;
            let _ = done.send(key);
            1
        });
        go
    };
    let (left, stopped) = (begin("left"), begin("stopped"));
    errands.leave(&gone, |key| *key == "left");
    assert!(errands.lock().is_empty());
    let _ = stopped.send(());
    let _ = left.send(());
    assert_eq!(ended.recv().await, Some("left"));
    let work = of("apps", "other");
    errands.begin(&work, &"key", "git.example.com", |_| async { 1 });
    assert_eq!(woken.recv().await, Some(work));
    assert!(ended.try_recv().is_err());
}
