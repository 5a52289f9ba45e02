use std::path::PathBuf;

use jiff::Timestamp;
use sluice_core::gate::Identity;
use sluice_core::time::clock::Trust;
use sluice_crds::audit::Record;
use sluice_crds::decision::told;
use sluice_crds::{CheckedGate, Require, State, Subject};
use tempfile::TempDir;

use super::*;
use crate::observe::clock::SetClock;
use crate::observe::world::Standing;
use crate::tell::events::{Queued, Sending};

mod lines;
mod room;
mod waiting;

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

    fn events(&self) -> Vec<Queued> {
        std::iter::from_fn(|| self.sending.try_next()).collect()
    }

    fn outcomes(&self) -> Vec<String> {
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
async fn equal_answers_are_counted_and_others_reported() {
    let desk = Desk::open(false);
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

/// Each environment asks for itself; another step of the same is another question.
#[tokio::test]
async fn reports_name_the_environment_and_the_step() {
    let desk = Desk::open(false);
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
