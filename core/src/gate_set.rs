//! Gate sets: whether a change may pass all the gates that it has to.
//!
//! What comes in: the gates that a consumer names, and those that policies add, each with
//! everything that it depends on. What goes out: a [`Decision`], which says which gates were
//! checked, which decided, and when that can change.

use jiff::Timestamp;
use sluice_crds::{CheckedGate, Decision, Require, Subject};

use crate::gate::nested::{FORBIDDEN, Named};
use crate::gate::{self, View};
use crate::question::Question;
use crate::report::time;
use crate::verdict::{Opinion, Reason};

/// How many gates a message names before it only counts them.
const NAMED: usize = 3;

/// Several gates, and how their answers combine.
#[derive(Clone, Debug)]
pub struct Set<'a> {
    /// How.
    pub require: Require,
    /// The policy that asks for them. None: the subject itself does.
    pub policy: Option<String>,
    /// The gates, as `namespace/name`.
    pub gates: Vec<(String, Named<View<'a>>)>,
}

/// Whether the change that `subject` is about may pass every one of `sets`, of which the first is
/// its own. A set without gates lets nothing pass.
pub fn decide<'q>(
    subject: Subject,
    sets: &[Set<'_>],
    question: impl Into<Question<'q>>,
) -> Decision {
    let question = question.into();
    let of = |set| Outcome::of(set, question);
    let outcomes: Vec<Outcome> = sets.iter().map(of).collect();
    let allowed = !outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.allowed);
    let decisive = outcomes.iter().filter(|outcome| outcome.allowed == allowed);
    let decided_by: Vec<&CheckedGate> = decisive.flat_map(Outcome::decided_by).collect();
    let message = explain(allowed, &outcomes, &decided_by);
    let next = outcomes.iter().filter_map(|outcome| outcome.until).min();
    Decision {
        allowed,
        at: time(question.now.at),
        subject,
        require: sets.first().map(|set| set.require).unwrap_or_default(),
        decided_by: decided_by.iter().map(|gate| gate.gate.clone()).collect(),
        message,
        next: next.map(time),
        checked: outcomes
            .into_iter()
            .flat_map(|outcome| outcome.gates)
            .map(|(gate, _)| gate)
            .collect(),
    }
}

/// What a set comes to.
struct Outcome {
    allowed: bool,
    require: Require,
    /// Each gate, and whether it lets the change pass.
    gates: Vec<(CheckedGate, bool)>,
    /// Until when none of them can change by time.
    until: Option<Timestamp>,
}

impl Outcome {
    fn of(set: &Set<'_>, question: Question<'_>) -> Self {
        let mut until: Option<Timestamp> = None;
        let gates: Vec<(CheckedGate, bool)> = (set.gates.iter())
            .map(|(name, sight)| {
                let (opinion, message) = ask(sight, question);
                until = until.into_iter().chain(opinion.until).min();
                let gate = CheckedGate {
                    gate: name.clone(),
                    policy: set.policy.clone(),
                    state: opinion.state,
                    reason: opinion.reason.as_str().to_owned(),
                    message,
                };
                (gate, opinion.admits(set.require))
            })
            .collect();
        let passes = |(_, passes): &(CheckedGate, bool)| *passes;
        Self {
            allowed: match set.require {
                Require::All => !gates.is_empty() && gates.iter().all(passes),
                Require::OneOf => gates.iter().any(passes),
            },
            require: set.require,
            gates,
            until,
        }
    }

    /// The gates that made it so: one that lets pass is enough of which one is, and one that holds
    /// back where all have to let pass.
    fn decided_by(&self) -> impl Iterator<Item = &CheckedGate> {
        let most = match (self.require, self.allowed) {
            (Require::OneOf, true) => 1,
            (Require::OneOf, false) | (Require::All, _) => usize::MAX,
        };
        let same = self.gates.iter().filter(|gate| gate.1 == self.allowed);
        same.map(|(gate, _)| gate).take(most)
    }
}

/// What a gate says, with its words, and until when that holds.
fn ask(sight: &Named<View<'_>>, question: Question<'_>) -> (Opinion, String) {
    match sight {
        Named::Missing => (
            Opinion::closed(Reason::Missing),
            "there is no such gate".to_owned(),
        ),
        Named::Forbidden => (
            Opinion::closed(Reason::CrossNamespaceRef),
            FORBIDDEN.to_owned(),
        ),
        Named::Unreadable(why) => (
            Opinion::closed(Reason::InvalidSpec),
            format!("it cannot be read: {why}"),
        ),
        Named::Here(view) => {
            let (answer, until, message) = gate::explain(view, question);
            let opinion = Opinion {
                until,
                ..Opinion::of(answer.state, answer.reason)
            };
            (opinion, message)
        }
    }
}

fn explain(allowed: bool, outcomes: &[Outcome], decided_by: &[&CheckedGate]) -> String {
    if outcomes.iter().all(|outcome| outcome.gates.is_empty()) {
        return "no gate is named, so nothing may pass".to_owned();
    }
    let said = |gate: &&CheckedGate| {
        let policy = gate.policy.as_ref();
        let policy = policy.map(|policy| format!(" (GatePolicy {policy})"));
        let policy = policy.unwrap_or_default();
        format!("{}{policy}: {}", gate.gate, gate.message)
    };
    let mut message: Vec<String> = decided_by.iter().take(NAMED).map(said).collect();
    if decided_by.len() > NAMED {
        message.push(format!("and {} more", decided_by.len() - NAMED));
    }
    let verb = match allowed {
        true => "let pass by",
        false => "held back by",
    };
    format!("{verb} {}", message.join("; "))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use sluice_crds::{Gate, GateSpec, Gatekeeper};

    use super::*;
    use crate::clock::Now;
    use crate::gate::Identity;
    use crate::gatekeeper::{Evidence, Keeper};

    const NOW: &str = "2026-11-20T10:00:00Z";

    fn now() -> Now {
        Now::given(NOW.parse().unwrap())
    }

    fn subject() -> Subject {
        Subject {
            kind: "Check".to_owned(),
            namespace: "apps".to_owned(),
            name: None,
            action: "promote".to_owned(),
            revision: None,
        }
    }

    /// A gate for each letter: o open, c closed, e open only for want of evidence, m missing.
    struct Gates(Vec<(String, Option<(Gate, Keeper)>)>);

    impl Gates {
        fn new(letters: &str) -> Self {
            let spec = |letter| match letter {
                'o' => "{manual: {state: open, reason: quiet}}",
                'c' => "{manual: {state: closed, reason: incident, until: '2026-11-20T12:00:00Z'}}",
                'e' => {
                    "{onError: open, schedule: {closed: [{calendar: {configMapRef: {name: a, key: b}}}]}}"
                }
                other => unreachable!("{other}"),
            };
            let gate = |(place, letter): (usize, char)| {
                let name = format!("{letter}{place}");
                if letter == 'm' {
                    return (format!("apps/{name}"), None);
                }
                let of = serde_saphyr::from_str::<GateSpec>("{gatekeepers: [{name: k}]}").unwrap();
                let mut gate = Gate::new(&name, of);
                gate.metadata.namespace = Some("apps".to_owned());
                let keeper = Gatekeeper::new("k", serde_saphyr::from_str(spec(letter)).unwrap());
                let missing = crate::schedule::Reading::Unavailable("gone".to_owned());
                let evidence = match letter {
                    'e' => Evidence::Calendars(vec![missing]),
                    _ => Evidence::Nothing,
                };
                let keeper = Keeper::new(Arc::new(keeper), evidence, now().at);
                (format!("apps/{name}"), Some((gate, keeper)))
            };
            Self(letters.chars().enumerate().map(gate).collect())
        }

        fn set(&self, require: Require, policy: Option<&str>) -> Set<'_> {
            let gates = self.0.iter().map(|(name, found)| {
                let sight = match found {
                    None => Named::Missing,
                    Some((gate, keeper)) => Named::Here(View::new(gate, Identity::Trusted, |_| {
                        gate::Sight::Seen(keeper)
                    })),
                };
                (name.clone(), sight)
            });
            Set {
                require,
                policy: policy.map(str::to_owned),
                gates: gates.collect(),
            }
        }
    }

    /// Every combination of gates, `require`, and a policy that adds a gate.
    #[rstest]
    #[case::one("o", "", true, true)]
    #[case::closed("c", "", false, false)]
    #[case::missing("m", "", false, false)]
    #[case::for_want_of_evidence("e", "", true, false)]
    #[case::both("oo", "", true, true)]
    #[case::mixed("oc", "", false, true)]
    #[case::mixed_with_missing("om", "", false, true)]
    #[case::evidence_does_not_open_alone("ec", "", false, false)]
    #[case::none("", "", false, false)]
    #[case::policy_lets_pass("o", "o", true, true)]
    #[case::policy_holds_back("o", "c", false, false)]
    #[case::policy_does_not_open("c", "o", false, false)]
    #[case::policy_names_nothing_there("o", "m", false, false)]
    fn sets_decide(
        #[case] own: &str,
        #[case] policy: &str,
        #[case] all: bool,
        #[case] one_of: bool,
    ) {
        for (require, allowed) in [(Require::All, all), (Require::OneOf, one_of)] {
            let (gates, added) = (Gates::new(own), Gates::new(policy));
            let mut sets = vec![gates.set(require, None)];
            if !policy.is_empty() {
                sets.push(added.set(Require::All, Some("freeze")));
            }
            let decision = decide(subject(), &sets, now());
            assert_eq!(decision.allowed, allowed, "{require} {decision:#?}");
            assert_eq!(decision.checked.len(), own.len() + policy.len());
        }
    }

    #[test]
    fn a_decision_names_what_decided_and_when_that_can_change() {
        let (gates, freeze) = (Gates::new("oc"), Gates::new("m"));
        let sets = [
            gates.set(Require::All, None),
            freeze.set(Require::All, Some("freeze")),
        ];
        let decision = decide(subject(), &sets, now());
        assert_eq!(decision.decided_by, ["apps/c1", "apps/m0"]);
        assert_eq!(
            decision.message,
            "held back by apps/c1: k: switched closed (incident) until Fri 2026-11-20 12:00 UTC; \
             apps/m0 (GatePolicy freeze): there is no such gate"
        );
        assert_eq!(
            decision.next.unwrap().0,
            "2026-11-20T12:00:00Z".parse().unwrap()
        );
        let sets = [gates.set(Require::OneOf, None)];
        let decision = decide(subject(), &sets, now());
        assert_eq!(decision.decided_by, ["apps/o0"]);
        assert!(
            decide(subject(), &[], now())
                .message
                .starts_with("no gate is named")
        );
    }
}
