//! A consumer of gates that is no GatedSource: an environment to which versions are promoted. It shares
//! what every consumer needs, and nothing else.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sluice_crds::{Decision, GateSet, Subject};

use super::act::{Refused, Report, replace_ready, still_refused, while_refused};
use super::choice::{Asked, Change, Gates};
use super::current;
use super::spread::Spread;
use crate::gate::Identity;
use crate::gate::set::Gathered;
use crate::offline::lint::{self, Object};
use crate::offline::simulate::{self, Key, World};
use crate::revision::Revision;
use crate::time::clock::Now;
use crate::verdict::condition::{READY, Wanted, settle};
use crate::verdict::question::Question;

const NOON: &str = "2026-11-20T12:00:00Z";

fn subject() -> Subject {
    Subject {
        kind: "Pipeline".to_owned(),
        namespace: "apps".to_owned(),
        name: Some("shop".to_owned()),
        environment: None,
        action: "promote".to_owned(),
        step: None,
        revision: None,
    }
}

/// A version as the gates are asked about it.
fn asked(version: &str) -> Asked {
    Asked {
        name: version.to_owned(),
        revision: Revision::parse(version).ok(),
    }
}

/// The status of an environment.
#[derive(Clone, Debug, Default, PartialEq)]
struct Status {
    promoted: Option<&'static str>,
    /// When the promotion that waits has its turn.
    turn: Option<Timestamp>,
    was_held_back: bool,
    last_decision: Option<Decision>,
}

/// An environment behind one gate, which has the gatekeeper `production`.
struct Environment {
    world: World,
    /// What could be promoted, the newest last.
    versions: Vec<&'static str>,
    spread: SignedDuration,
    now: Timestamp,
    status: Status,
}

/// The gate `production` of `world` has one gatekeeper of that name, with this spec.
pub(super) fn keep(world: &mut World, spec: &str) {
    let texts = [
        ("Gatekeeper", spec),
        ("Gate", "{gatekeepers: [{name: production}]}"),
    ];
    for (kind, spec) in texts {
        let text = format!(
            "{{apiVersion: sluice.dev/v1alpha1, kind: {kind}, \
             metadata: {{name: production, namespace: apps}}, spec: {spec}}}"
        );
        let value: Value = serde_saphyr::from_str(&text).unwrap();
        match lint::read(&value).object.unwrap() {
            Object::Gate(gate) => drop(world.gates.insert(Key::of(&gate.metadata), *gate)),
            Object::Gatekeeper(object) => {
                let key = Key::of(&object.metadata);
                world.gatekeepers.insert(key, Arc::new(*object));
            }
            other => unreachable!("{other:?}"),
        }
    }
}

impl Environment {
    fn new(keeper: &str, versions: &[&'static str]) -> Self {
        let mut environment = Self {
            world: World::default(),
            versions: versions.to_vec(),
            spread: SignedDuration::ZERO,
            now: NOON.parse().unwrap(),
            status: Status::default(),
        };
        keep(&mut environment.world, keeper);
        environment
    }

    fn gathered(&self, subject: &Subject) -> Gathered {
        let own: GateSet =
            serde_json::from_value(json!({"refs": [{"name": "production"}]})).unwrap();
        let question = Question::from(Now::given(self.now));
        simulate::gather(
            &self.world,
            Some(&own),
            subject,
            Identity::Trusted,
            question,
        )
    }

    /// One look. What is to be done is the version to promote.
    fn look(&self) -> Report<Status, &'static str> {
        let subject = subject();
        let gathered = self.gathered(&subject);
        let gates = Gates {
            gathered,
            subject,
            now: Now::given(self.now),
        };
        let changes = self.versions.iter().map(|version| Change {
            what: *version,
            name: (*version).to_owned(),
            parts: vec![asked(version)],
        });
        let mut status = self.status.clone();
        let Some(choice) = gates.choose(changes.collect()) else {
            return self.report(status, None);
        };
        let spread = Spread {
            over: self.spread,
            uid: "0b8a6f2e-6c1d-4f6b-9a57-2d0d7c3f1a11",
            turn: status.turn,
        };
        let allowed = choice.decision.allowed;
        let turn = spread.turn(&gates, &choice.change, status.was_held_back);
        status.turn = turn.filter(|_| allowed);
        status.was_held_back |= !allowed;
        let revision = choice.change.parts[0].revision.as_ref();
        let question = Question::new(gates.now, revision);
        let (before, now) = (self.status.last_decision.as_ref(), Some(&choice.decision));
        status.last_decision =
            current::kept(&gates.gathered, question, before, now, false).cloned();
        if allowed && turn.is_none() && status.promoted != Some(choice.change.what) {
            status.promoted = Some(choice.change.what);
        }
        self.report(status, turn.or(choice.next))
    }

    fn report(&self, status: Status, wake: Option<Timestamp>) -> Report<Status, &'static str> {
        let is_new = status.promoted != self.status.promoted;
        Report {
            changed: status != self.status,
            acts: status.promoted.filter(|_| is_new).into_iter().collect(),
            status,
            wake,
        }
    }

    /// A look whose status is written. Returns what is done.
    fn step(&mut self) -> Vec<&'static str> {
        let report = self.look();
        self.status = report.status;
        report.acts
    }
}

#[test]
fn any_consumer_promotes_the_newest_that_its_gates_admit() {
    let mut environment =
        Environment::new("{revisions: {allow: ['<2']}}", &["1.0.0", "1.1.0", "2.0.0"]);
    assert_eq!(environment.step(), ["1.1.0"]);
    let decision = environment.status.last_decision.clone().unwrap();
    assert_eq!(decision.subject.kind, "Pipeline");
    assert_eq!(decision.subject.revision.as_deref(), Some("1.1.0"));
    assert_eq!(decision.decided_by, ["apps/production"]);
    // If they admit none, they are asked about the newest.
    keep(
        &mut environment.world,
        "{manual: {state: closed, reason: freeze}}",
    );
    assert_eq!(environment.step(), [""; 0]);
    let decision = environment.status.last_decision.clone().unwrap();
    assert_eq!(
        (decision.allowed, decision.subject.revision.as_deref()),
        (false, Some("2.0.0"))
    );
}

#[test]
fn all_parts_of_a_change_have_to_pass() {
    let environment = Environment::new("{revisions: {allow: ['<2']}}", &[]);
    let subject = subject();
    let gathered = environment.gathered(&subject);
    let gates = Gates {
        gathered,
        subject,
        now: Now::given(environment.now),
    };
    let change = |versions: &[&str]| Change {
        what: (),
        name: versions.join(", "),
        parts: versions.iter().map(|version| asked(version)).collect(),
    };
    for (versions, named) in [
        (["1.0.0", "1.1.0"], Ok("1.0.0, 1.1.0")),
        (["1.0.0", "2.0.0"], Err("2.0.0")),
    ] {
        let choice = gates.choose(vec![change(&versions)]).unwrap();
        let Decision {
            allowed, subject, ..
        } = choice.decision;
        assert_eq!(allowed, named.is_ok());
        let (Ok(named) | Err(named)) = named;
        assert_eq!(subject.revision.as_deref(), Some(named));
    }
    assert!(gates.choose(Vec::<Change<()>>::new()).is_none());
}

#[test]
fn what_any_consumer_holds_back_waits_for_its_turn() {
    let mut environment = Environment::new("{manual: {state: closed, reason: freeze}}", &["1.0.0"]);
    environment.spread = SignedDuration::from_mins(10);
    assert_eq!(environment.step(), [""; 0]);
    keep(&mut environment.world, "{manual: {state: open}}");
    assert_eq!(environment.step(), [""; 0]);
    let turn = environment.status.turn.unwrap();
    assert!(turn > environment.now && turn <= environment.now + environment.spread);
    // It has the same turn at the next look, and not a later one.
    environment.now += SignedDuration::from_secs(1);
    assert_eq!(environment.look().wake, Some(turn));
    environment.now = turn;
    assert_eq!(environment.step(), ["1.0.0"]);
    // A change that was never held back does not wait.
    let mut open = Environment::new("{manual: {state: open}}", &["1.0.0"]);
    open.spread = SignedDuration::from_mins(10);
    assert_eq!(open.step(), ["1.0.0"]);
}

#[test]
fn the_status_of_any_consumer_is_written_only_if_it_says_something_else() {
    let mut environment = Environment::new("{manual: {state: open}}", &["1.0.0"]);
    assert_eq!(environment.step(), ["1.0.0"]);
    environment.now += SignedDuration::from_mins(1);
    let report = environment.look();
    assert_eq!((report.changed, report.acts.len()), (false, 0));
    let (now, noon) = (&report.status.last_decision, Some(NOON.parse().unwrap()));
    assert_eq!(now.as_ref().map(|decision| decision.at.0), noon);
    keep(
        &mut environment.world,
        "{manual: {state: closed, reason: freeze}}",
    );
    assert!(environment.look().changed);
}

/// The conditions of a consumer that knows of no status but its own.
#[test]
fn what_is_refused_of_any_consumer_is_said_until_it_is_done() {
    let now: Timestamp = NOON.parse().unwrap();
    let ready = |holds| vec![Wanted::new(READY, holds, "Promoted", "")];
    let blocked = vec![Wanted::new("Blocked", true, "GatesClosed", "closed")];
    let before = [ready(true), blocked].concat();
    let before = settle(before, &[], Some(1), now);
    let refused = Refused {
        what: "the PullRequest shop".to_owned(),
        code: 403,
        message: "no right".to_owned(),
    };
    let after = replace_ready(refused.conditions(), &before, Some(2), now);
    let said: Vec<_> = after.iter().map(|it| (&*it.type_, &*it.status)).collect();
    assert_eq!(
        said,
        [("Ready", "False"), ("Stalled", "True"), ("Blocked", "True")]
    );
    assert!(
        after[0]
            .message
            .contains("a write of the PullRequest shop, which is tried again")
    );
    assert_eq!(still_refused(&after, true), Some(refused.conditions()));
    assert_eq!(still_refused(&after, false), None);
    assert_eq!(still_refused(&before, true), None);
    // The next look says the same in the same order: nothing is written.
    let said = |is_left| {
        let ready = Wanted::new(READY, true, "Promoted", "");
        let blocked = Wanted::new("Blocked", true, "GatesClosed", "closed");
        let wanted = while_refused(vec![blocked, ready], &after, is_left);
        settle(wanted, &after, Some(1), now)
    };
    assert_eq!(
        said(true),
        replace_ready(refused.conditions(), &before, Some(1), now)
    );
    assert_eq!(said(false)[0].type_, "Blocked");
}
