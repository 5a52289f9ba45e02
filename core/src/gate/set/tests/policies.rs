//! What policies add, and what is said of it; and what sets may be past admission.

use super::*;
use crate::gate::policy::{Labels, Readable};
use crate::gate::{Named, nested};
use crate::gatekeeper::Keeper;
use crate::offline::simulate::sources::Seen;
use sluice_crds::gate::GatekeeperReference;
use sluice_crds::{Gate, GatePolicy};

const FREEZE: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: freeze, namespace: platform}
spec: {}
---
apiVersion: sluice.dev/v1alpha1
kind: GatePolicy
metadata: {name: year-end}
spec: {namespaceSelector: {matchLabels: {tier: prod}}, gates: {refs: [{name: freeze, namespace: platform}]}}
---
apiVersion: v1
kind: Namespace
metadata: {name: apps, labels: {tier: prod}}
";

fn own() -> GateSet {
    set(Require::All, &["open"])
}

#[test]
fn a_decision_names_the_policy_that_asks_for_a_gate() {
    let decision = ask(&world(FREEZE), &own(), None);
    assert!(!decision.allowed);
    assert_eq!(
        decision.message,
        "held back by platform/freeze (GatePolicy year-end): closed by default: no gatekeeper keeps \
         the gate"
    );
    assert_eq!(decision.decided_by, ["platform/freeze"]);
    let policies: Vec<_> = (decision.checked.iter())
        .map(|gate| (gate.gate.as_str(), gate.policy.as_deref()))
        .collect();
    let expected = [("apps/open", None), ("platform/freeze", Some("year-end"))];
    assert_eq!(policies, expected);

    let elsewhere = FREEZE.replace("labels: {tier: prod}", "labels: {tier: dev}");
    let decision = ask(&world(&elsewhere), &own(), None);
    assert!(decision.allowed);
    assert_eq!(decision.checked.len(), 1);
}

/// What is done from one namespace takes effect in another.
#[test]
fn the_policies_of_every_namespace_in_which_it_takes_effect_are_asked() {
    let mut world = world(FREEZE);
    world.namespaces.insert("dev".to_owned(), Labels::new());
    let subject = Subject {
        kind: "Pipeline".to_owned(),
        namespace: "dev".to_owned(),
        name: None,
        environment: None,
        step: None,
        action: "promote".to_owned(),
        revision: None,
    };
    let seen = Seen {
        world: &world,
        identity: Identity::Trusted,
        from: NOW.parse().unwrap(),
    };
    let sets = |namespaces: &[&str]| {
        let gathered = gather_among(&seen, Some(&own()), &subject, namespaces, seen.from);
        gathered.sets().len()
    };
    assert_eq!(sets(&["dev"]), 1);
    assert_eq!(sets(&["apps"]), 2);
    assert_eq!(sets(&["dev", "apps", "apps"]), 2);
}

#[test]
fn a_namespace_that_nobody_knows_counts_as_selected() {
    let mut world = world(FREEZE);
    world.namespaces.clear();
    let decision = ask(&world, &own(), None);
    assert!(!decision.allowed);
    let expected = "held back by platform/freeze (GatePolicy year-end, because the \
                    labels of the namespace apps are unknown): closed";
    assert!(
        decision.message.starts_with(expected),
        "{}",
        decision.message
    );
    // Where its gates are open it makes no difference.
    let gate = Key {
        namespace: "platform".to_owned(),
        name: "freeze".to_owned(),
    };
    world.gates.get_mut(&gate).unwrap().spec.default = sluice_crds::Setting::Open;
    assert!(ask(&world, &own(), None).allowed);
}

#[test]
fn a_policy_that_cannot_be_read_holds_everything_back() {
    let mut world = world("");
    let why = "unknown field";
    world.policies.insert("odd".to_owned(), Err(why.into()));
    let decision = ask(&world, &own(), None);
    assert!(!decision.allowed);
    let expected = "held back by GatePolicy odd: it cannot be read: unknown field";
    assert_eq!(decision.message, expected);
    assert_eq!(decision.decided_by, ["GatePolicy odd"]);
    assert_eq!(decision.checked[1].policy.as_deref(), Some("odd"));
}

/// Admission refuses these; what came past it holds back.
#[test]
fn a_policy_without_gates_or_namespaces_holds_back() {
    let policy = |refs: &str| {
        let spec = serde_saphyr::from_str(&format!("{{gates: {{refs: [{refs}]}}}}")).unwrap();
        GatePolicy::new("odd", spec)
    };
    for (refs, expected) in [
        (
            "",
            "held back by GatePolicy odd: it cannot be read: it names no gate",
        ),
        (
            "{name: open}",
            "held back by /open (GatePolicy odd): it cannot be read: the policy names no namespace \
             for it",
        ),
    ] {
        let mut world = world("");
        world
            .policies
            .insert("odd".to_owned(), Ok(policy(refs).into()));
        let decision = ask(&world, &own(), None);
        assert!(!decision.allowed);
        assert_eq!(decision.message, expected);
    }
}

/// It is checked once for each who asks for it, and told once.
#[test]
fn a_gate_that_subject_and_policies_ask_for_is_told_once() {
    let named_twice = FREEZE.replace("year-end", "a") + "---" + &FREEZE.replace("year-end", "b");
    let own = set(Require::OneOf, &["closed", "platform/freeze"]);
    let decision = ask(&world(&named_twice), &own, None);
    assert!(!decision.allowed);
    assert_eq!(decision.decided_by, ["apps/closed", "platform/freeze"]);
    let said = "platform/freeze (and GatePolicy a, GatePolicy b): closed by default";
    assert!(decision.message.contains(said), "{}", decision.message);
    let freeze = decision
        .checked
        .iter()
        .filter(|gate| gate.gate == "platform/freeze");
    let policies: Vec<_> = freeze.map(|gate| gate.policy.as_deref()).collect();
    assert_eq!(policies, [None, Some("a"), Some("b")]);
}

/// Past admission, too: twice the same gate is no more than once.
#[test]
fn a_gate_that_is_listed_twice_is_one_gate() {
    let decision = ask(&world(""), &set(Require::All, &["closed", "closed"]), None);
    assert!(!decision.allowed);
    assert_eq!(decision.decided_by, ["apps/closed"]);
    let decision = ask(
        &world(""),
        &set(Require::OneOf, &["blind-open", "blind-open"]),
        None,
    );
    assert!(!decision.allowed, "{decision:?}");
}

#[test]
fn an_empty_set_lets_nothing_pass_whatever_policies_say() {
    let nothing = set(Require::OneOf, &[]);
    let decision = ask(&world(""), &nothing, None);
    assert!(!decision.allowed);
    assert_eq!(decision.message, "no gate is named, so nothing may pass");
    assert_eq!(decision.decided_by, [""; 0]);
    let decision = ask(&world(FREEZE), &nothing, None);
    assert!(!decision.allowed);
    let expected = "no gate is named, so nothing may pass; platform/freeze (GatePolicy year-end)";
    assert!(
        decision.message.starts_with(expected),
        "{}",
        decision.message
    );
}

#[test]
fn a_decision_says_when_it_can_change() {
    let decision = ask(&world(""), &set(Require::All, &["open", "closed"]), None);
    assert_eq!(
        decision.next.unwrap().0,
        "2026-11-20T12:00:00Z".parse().unwrap()
    );
    assert_eq!(
        decision.message,
        "held back by apps/closed: closed: switched closed (incident) until Fri 2026-11-20 12:00 UTC"
    );
    let all: Vec<&str> = GATES.iter().map(|(name, _)| *name).collect();
    let message = ask(&world(""), &set(Require::OneOf, &all[1..]), None).message;
    assert!(message.ends_with("; and 1 more"), "{message}");
}

/// The world of a controller with --no-cross-namespace-refs.
struct Strict<'a>(&'a World);

impl Strict<'_> {
    fn seen(&self) -> simulate::sources::Seen<'_> {
        simulate::sources::Seen {
            world: self.0,
            identity: Identity::Trusted,
            from: NOW.parse().unwrap(),
        }
    }
}

impl nested::Sources for Strict<'_> {
    fn gate(&self, from: &str, reference: &GateReference) -> Named<Arc<Gate>> {
        let namespace = reference.namespace.as_deref();
        match namespace.is_some_and(|namespace| namespace != from) {
            true => Named::Forbidden,
            false => self.seen().gate(from, reference),
        }
    }

    fn gatekeeper(
        &self,
        from: &str,
        reference: &GatekeeperReference,
        at: Timestamp,
    ) -> Named<Arc<Keeper>> {
        self.seen().gatekeeper(from, reference, at)
    }

    fn identity(&self, gate: &Gate) -> Identity {
        self.seen().identity(gate)
    }
}

/// A consumer that names no gates itself is held back only by those of policies, and by nothing that it
/// says.
#[test]
fn without_gates_of_its_own_policies_decide_alone() {
    for (text, allowed) in [
        ("", false),
        (FREEZE, false),
        (&FREEZE.replace("spec: {}", "spec: {default: open}"), true),
    ] {
        let world = world(text);
        let subject = ask(&world, &own(), None).subject;
        let now = Now::given(NOW.parse().unwrap());
        let decision = simulate::decide(&world, None, subject, Identity::Trusted, now.into());
        assert_eq!(decision.allowed, allowed, "{text}: {decision:#?}");
        let expected = if text.is_empty() {
            "no gate is named"
        } else {
            "platform/freeze"
        };
        assert!(decision.message.contains(expected), "{}", decision.message);
    }
}

impl Sources for Strict<'_> {
    fn policies(&self) -> Vec<(String, Readable)> {
        self.seen().policies()
    }

    fn labels(&self, namespace: &str) -> Option<Labels> {
        self.seen().labels(namespace)
    }
}

/// A subject may not name gates of other namespaces then. A policy may: a user who writes one has the
/// right to hold back all of them.
#[test]
fn a_forbidden_namespace_is_closed_to_subjects_and_not_to_policies() {
    let open = FREEZE.replace("spec: {}", "spec: {default: open}");
    let world = world(&open);
    let subject = ask(&world, &own(), None).subject;
    let at = NOW.parse().unwrap();
    let decide = |own: &GateSet| {
        let gathered = gather(&Strict(&world), Some(own), &subject, at);
        let now = Now::given(at);
        let decision = gathered.decide(subject.clone(), now);
        assert_eq!(gathered.rule(now).allowed, decision.allowed);
        decision
    };
    assert!(decide(&own()).allowed);
    let decision = decide(&set(Require::All, &["open", "platform/freeze"]));
    assert!(!decision.allowed);
    assert_eq!(decision.checked[1].reason, "CrossNamespaceRef");
    assert_eq!(decision.decided_by, ["platform/freeze"]);
}
