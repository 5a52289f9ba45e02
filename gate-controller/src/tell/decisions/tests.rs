use std::path::PathBuf;

use rstest::rstest;
use sluice_core::gate::Identity;
use sluice_core::time::clock::Trust;
use sluice_crds::audit::Record;
use sluice_crds::decision::told;
use sluice_crds::{CheckedGate, Require, State, Subject};
use tempfile::TempDir;

use super::known::News;
use super::*;
use crate::observe::clock::SetClock;
use crate::observe::world::Standing;
use crate::tell::events::{Queued, Sending};

const NOON: &str = "2026-11-20T12:00:00Z";

struct Desk {
    decisions: Decisions,
    clock: Arc<SetClock>,
    counters: Arc<Counters>,
    sending: Sending,
    _folder: TempDir,
    path: PathBuf,
}

impl Desk {
    fn open(required: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let clock = Arc::new(SetClock::new(NOON.parse().unwrap()));
        let counters = Arc::<Counters>::default();
        let told: Arc<dyn Clock> = clock.clone();
        let (events, sending) = Events::new(Arc::clone(&counters), Arc::clone(&told));
        let destination = path.to_str().unwrap().parse().unwrap();
        let (by, kept) = (Arc::clone(&told), Arc::clone(&counters));
        let audit = Audit::start(destination, required, "c-0", by, kept).unwrap();
        let standing = Standing {
            trust: Trust::Good,
            identity: Identity::Trusted,
        };
        let world = Arc::new(World::new(standing, true));
        Self {
            decisions: Decisions::new(world, told, Arc::clone(&counters), events, audit),
            clock,
            counters,
            sending,
            _folder: folder,
            path,
        }
    }

    fn pass(&self, minutes: i64) {
        self.clock
            .set(self.clock.now() + SignedDuration::from_mins(minutes));
    }

    async fn ask(&self, name: Option<&str>, allowed: bool, reason: &str) -> Decision {
        let mut decision = decision(self.clock.now(), allowed, reason);
        decision.subject.name = name.map(str::to_owned);
        self.tell(decision).await
    }

    async fn tell(&self, decision: Decision) -> Decision {
        let alice = Asker::Caller("alice");
        self.decisions.tell(decision, alice).await.decision
    }

    fn events(&mut self) -> Vec<Queued> {
        let mut all = Vec::new();
        while let Ok(event) = self.sending.try_recv() {
            all.push(event);
        }
        all
    }

    fn outcomes(&mut self) -> Vec<String> {
        let events = self.events().into_iter();
        events.map(|event| event.told.reason.to_string()).collect()
    }

    /// Whether each line is a yes, and how many other answers it counts.
    async fn lines(&self) -> Vec<(bool, u64)> {
        // What comes after all is written after all.
        self.decisions.audit.finish().await;
        let text = std::fs::read_to_string(&self.path).unwrap();
        let read = |line| match serde_json::from_str::<Record>(line).unwrap().event {
            Event::Decision(told) => (told.decision.allowed, told.repeated),
            other => panic!("{other:?}"),
        };
        text.lines().map(read).collect()
    }
}

/// The answer to `shop` about one gate.
fn decision(at: Timestamp, allowed: bool, reason: &str) -> Decision {
    let gate = CheckedGate {
        gate: "apps/production".to_owned(),
        policy: None,
        state: if allowed { State::Open } else { State::Closed },
        reason: reason.to_owned(),
        message: format!("measured at {at}"),
    };
    Decision {
        allowed,
        at: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at),
        subject: Subject {
            kind: "Kustomization".to_owned(),
            namespace: "apps".to_owned(),
            name: Some("shop".to_owned()),
            environment: None,
            action: "sync".to_owned(),
            step: None,
            revision: None,
        },
        require: Require::All,
        checked: vec![gate],
        decided_by: vec!["apps/production".to_owned()],
        message: "m".to_owned(),
        next: None,
    }
}

#[tokio::test]
async fn equal_answers_are_counted_and_others_told() {
    let mut desk = Desk::open(false);
    for _ in 0..1_000 {
        desk.ask(Some("shop"), false, "OutsideWindow").await;
    }
    desk.pass(1);
    // Of another gatekeeper: the same answer for another reason.
    desk.ask(Some("shop"), false, "ClosedWindow").await;
    desk.ask(Some("shop"), true, "InsideWindow").await;
    desk.ask(Some("shop"), true, "InsideWindow").await;
    assert_eq!(desk.outcomes(), ["Blocked", "Blocked", "Admitted"]);
    let lines = [(false, 0), (false, 999), (true, 0)];
    assert_eq!(desk.lines().await, lines);
    let held = labels::of(&desk.ask(Some("shop"), false, "OutsideWindow").await);
    let counted = desk.counters.decisions.get_or_create(&held).get();
    assert_eq!(
        (held.kind, held.action, counted),
        ("Kustomization", "sync", 1_002)
    );
}

#[tokio::test]
async fn whoever_waits_is_told_again_while_they_ask() {
    let mut desk = Desk::open(false);
    for _ in 0..7 {
        desk.ask(Some("shop"), false, "OutsideWindow").await;
        desk.ask(Some("till"), true, "InsideWindow").await;
        desk.pass(10);
    }
    let events = desk.events();
    let waits = (events.iter()).filter(|event| event.told.reason == "Blocked");
    let since = |event: &Queued| {
        let more = event.told.more.as_ref().unwrap();
        assert_eq!(more.labels["sluice.dev/decision"], "Blocked");
        assert_eq!(more.annotations["sluice.dev/subject-name"], "shop");
        assert_eq!(more.annotations["sluice.dev/decided-by"], "apps/production");
        more.annotations["sluice.dev/since"].clone()
    };
    assert_eq!(waits.map(since).collect::<Vec<_>>(), [NOON; 3]);
    assert_eq!(events.len(), 4, "of what goes on once");
    // Every 10 minutes is more seldom than equal answers are folded.
    assert_eq!(desk.lines().await.len(), 14);
}

#[tokio::test]
async fn what_waits_is_shown_until_it_goes_on_or_is_forgotten() {
    let desk = Desk::open(false);
    let waiting = || {
        let all = desk.decisions.waiting().into_iter();
        all.map(|it| (it.name, it.waits)).collect::<Vec<_>>()
    };
    desk.ask(Some("shop"), false, "OutsideWindow").await;
    desk.ask(Some("till"), false, "OutsideWindow").await;
    desk.ask(None, false, "OutsideWindow").await;
    desk.ask(Some("till"), true, "InsideWindow").await;
    let shown = |name: &str, waits| (name.to_owned(), waits);
    assert_eq!(waiting(), [shown("shop", true), shown("till", false)]);
    desk.pass(59);
    desk.ask(Some("shop"), false, "OutsideWindow").await;
    desk.pass(1);
    assert_eq!(waiting(), [shown("shop", true)]);
    desk.pass(59);
    assert_eq!(waiting(), []);
}

/// A gated source that asks no more, since its source is back at what is out or since it is gone, waits
/// no more.
#[tokio::test]
async fn a_gated_source_waits_while_something_is_pending() {
    let desk = Desk::open(false);
    let spec = |strategy: &str| {
        serde_json::json!({
            "sourceRef": {"kind": "GitRepository", "name": "upstream"},
            "gates": {"refs": [{"name": "production"}]}, "strategy": strategy,
        })
    };
    let is = |name: &str, version: &str, strategy: &str, status: serde_json::Value| {
        let metadata = serde_json::json!({
            "namespace": "apps", "name": name, "resourceVersion": version,
        });
        let spec = spec(strategy);
        let object = serde_json::json!({"metadata": metadata, "spec": spec, "status": status});
        let object: sluice_crds::GatedSource = serde_json::from_value(object).unwrap();
        desk.decisions.world.gated_sources.put(Arc::new(object));
    };
    let waiting = || {
        let all = desk.decisions.waiting().into_iter();
        all.map(|it| (it.name, it.waits)).collect::<Vec<_>>()
    };
    let pending = serde_json::json!({"pending": {"revision": "r", "since": NOON}});
    is("app", "1", "pin", pending);
    is("still", "1", "suspend", serde_json::json!({}));
    for name in ["app", "gone", "still"] {
        let mut decision = decision(desk.clock.now(), false, "OutsideWindow");
        decision.subject.kind = "GatedSource".to_owned();
        decision.subject.name = Some(name.to_owned());
        desk.decisions.tell(decision, Asker::Controller).await;
    }
    let shown = |name: &str, waits| (name.to_owned(), waits);
    assert_eq!(waiting(), [shown("app", true), shown("still", true)]);
    is("app", "2", "pin", serde_json::json!({}));
    assert_eq!(waiting(), [shown("app", false), shown("still", true)]);
}

#[rstest]
#[case::while_time_passes(0)]
#[case::although_the_clock_was_set_back(-300)]
#[tokio::test]
async fn what_was_counted_is_told_when_nothing_comes_after_it(#[case] minutes: i64) {
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
async fn of_what_is_looked_at_again_only_news_is_told() {
    for required in [false, true] {
        let mut desk = Desk::open(required);
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
async fn whoever_asks_something_new_each_time_fills_nothing() {
    let mut desk = Desk::open(false);
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

#[tokio::test]
async fn what_was_counted_is_told_beside_a_yes_that_has_its_own_line_and_at_the_end() {
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

#[tokio::test]
async fn it_waits_while_one_of_its_questions_is_answered_no() {
    let desk = Desk::open(false);
    let ask = async |action: &str, revision: &str, allowed| {
        let mut decision = decision(desk.clock.now(), allowed, "r");
        decision.subject.action = action.to_owned();
        decision.subject.revision = Some(revision.to_owned());
        desk.tell(decision).await;
    };
    let waits = || desk.decisions.waiting()[0].waits;
    ask("promote", "v1", false).await;
    ask("rollback", "v1", true).await;
    assert!(waits());
    // It wants to promote another one by now.
    ask("promote", "v2", true).await;
    assert!(!waits());
    assert_eq!(desk.decisions.waiting().len(), 1);
}

/// Each environment asks for itself; another step of the same is another question.
#[tokio::test]
async fn what_is_told_names_the_environment_and_the_step() {
    let mut desk = Desk::open(false);
    let ask = async |desk: &Desk, environment: &str, step: &str, allowed| {
        let mut decision = decision(desk.clock.now(), allowed, "r");
        decision.subject.environment = Some(environment.to_owned());
        decision.subject.step = Some(step.to_owned());
        desk.tell(decision).await;
    };
    ask(&desk, "staging", "1/2", false).await;
    ask(&desk, "prod", "1/2", true).await;
    assert!(desk.decisions.waiting()[0].waits);
    ask(&desk, "staging", "2/2", true).await;
    assert!(!desk.decisions.waiting()[0].waits);

    let (mut notes, mut marks) = (Vec::new(), Vec::new());
    for event in desk.events() {
        notes.push(event.told.note.to_string());
        let more = event.told.more.as_ref().unwrap();
        let mark = |key| more.annotations.get(key).cloned().unwrap_or_default();
        marks.push((mark(told::ENVIRONMENT), mark(told::STEP)));
    }
    let expected = [
        "Kustomization apps/shop (staging), sync 1/2: m",
        "Kustomization apps/shop (prod), sync 1/2: m",
        "Kustomization apps/shop (staging), sync 2/2: m",
    ];
    assert_eq!(notes, expected);
    let expected = [("staging", "1/2"), ("prod", "1/2"), ("staging", "2/2")];
    let expected = expected.map(|(place, step)| (place.to_owned(), step.to_owned()));
    assert_eq!(marks, expected);
    desk.decisions.audit.finish().await;
    let text = std::fs::read_to_string(&desk.path).unwrap();
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let subject = &last["event"]["decision"]["subject"];
    assert_eq!(
        (&subject["environment"], &subject["step"]),
        (&"staging".into(), &"2/2".into())
    );
}

#[test]
fn each_event_is_paid_for_and_what_makes_room_is_told_at_once() {
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
async fn whoever_is_not_known_speaks_for_nobody() {
    let mut desk = Desk::open(false);
    let now = desk.clock.now();
    let tell = async |desk: &Desk, asker: Asker<'_>, kind: &str| {
        let mut decision = decision(now, false, "OutsideWindow");
        decision.subject.kind = kind.to_owned();
        desk.decisions.tell(decision, asker).await;
    };
    tell(&desk, Asker::Stranger, "Canary").await;
    // A gated source asks for itself.
    tell(&desk, Asker::Caller("alice"), "GatedSource").await;
    assert!(desk.events().is_empty() && desk.decisions.waiting().is_empty());
    assert_eq!(desk.lines().await.len(), 2);

    tell(&desk, Asker::Caller("alice"), "Canary").await;
    assert_eq!(desk.events().len(), 1);
    let waiting = desk.decisions.waiting();
    assert_eq!((waiting.len(), waiting[0].kind.as_str()), (1, "Canary"));
}

/// One who asks something new each time makes room at their own expense.
#[tokio::test]
async fn one_caller_takes_no_room_and_no_events_from_another() {
    let mut desk = Desk::open(false);
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
