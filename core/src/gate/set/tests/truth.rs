//! The truth table: every pair of gates, by how they combine, the revision, and a policy; against
//! the rules of the specification, written once more in as few words as they take.

use super::*;

/// What a gate may be. `blind`: its evidence is unavailable, and `onError` says what then.
const STATES: [&str; 6] = [
    "open",
    "closed",
    "listed",
    "blind-open",
    "blind-closed",
    "missing",
];
pub(super) const REQUIRE: [Require; 2] = [Require::All, Require::OneOf];
/// One that `listed` lists, one that it does not, none.
pub(super) const REVISIONS: [Option<&str>; 3] = [Some("v1.2.3"), Some("v6.6.6"), None];
/// The gates that a policy adds; without any there is no policy.
pub(super) const POLICIES: [&[&str]; 5] = [
    &[],
    &["apps/open"],
    &["apps/closed"],
    &["apps/missing"],
    &["apps/open", "apps/listed"],
];

/// The oracle: whether a gate of that state lets `revision` pass.
fn admits(gate: &str, require: Require, revision: Option<&str>) -> bool {
    match gate.trim_start_matches("apps/") {
        "open" => true,
        "closed" | "blind-closed" | "missing" => false,
        "listed" => revision == Some("v1.2.3"),
        // It never by itself opens what one gate is enough for.
        "blind-open" => require == Require::All,
        other => unreachable!("{other}"),
    }
}

/// The oracle: what several gates say together.
fn combine(gates: &[&str], require: Require, revision: Option<&str>) -> bool {
    let mut answers = gates.iter().map(|gate| admits(gate, require, revision));
    match require {
        Require::All => answers.all(|admits| admits),
        Require::OneOf => answers.any(|admits| admits),
    }
}

/// One gate, and every pair of two.
pub(super) fn choices() -> Vec<Vec<&'static str>> {
    let ones = STATES.iter().map(|state| vec![*state]);
    let pairs = STATES.iter().flat_map(|one| {
        let others = STATES.iter().filter(move |other| *other != one);
        others.map(move |other| vec![*one, *other])
    });
    ones.chain(pairs).collect()
}

pub(super) fn policy(require: Require, gates: &[&str]) -> String {
    if gates.is_empty() {
        return String::new();
    }
    let reference = |gate: &&str| {
        let (namespace, name) = gate.split_once('/').unwrap();
        format!("{{name: {name}, namespace: {namespace}}}")
    };
    let refs: Vec<String> = gates.iter().map(reference).collect();
    format!(
        "{{apiVersion: sluice.dev/v1alpha1, kind: GatePolicy, metadata: {{name: freeze}}, \
         spec: {{gates: {{require: {require}, refs: [{}]}}}}}}",
        refs.join(", ")
    )
}

#[test]
fn every_combination_is_decided_as_the_rules_have_it() {
    let (mut rows, mut wrong) = (0, Vec::new());
    for (added, by) in POLICIES
        .iter()
        .flat_map(|added| REQUIRE.map(|by| (*added, by)))
    {
        let world = world(&policy(by, added));
        for (own, require) in choices().iter().flat_map(|own| REQUIRE.map(|by| (own, by))) {
            for revision in REVISIONS {
                rows += 1;
                let decision = ask(&world, &set(require, own), revision);
                let own_says = combine(own, require, revision);
                let policy_says = added.is_empty() || combine(added, by, revision);
                if decision.allowed != (own_says && policy_says) {
                    let policy = format!("{by} of {added:?}");
                    wrong.push(format!(
                        "{require} of {own:?}, {revision:?}, {policy}: {decision:?}"
                    ));
                }
                explained(&decision, own.len() + added.len());
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {rows} rows:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    // 6 gates and 30 pairs, 2 ways to combine them, 3 revisions, 5 policies in 2 ways.
    assert_eq!(rows, 36 * 2 * 3 * 5 * 2);
}

/// For every decision, it is said of each gate why, and which gates decided.
fn explained(decision: &Decision, gates: usize) {
    assert_eq!(decision.checked.len(), gates, "{decision:?}");
    assert!(!decision.decided_by.is_empty(), "{decision:?}");
    let known = |gate: &String| decision.checked.iter().any(|checked| checked.gate == *gate);
    assert!(decision.decided_by.iter().all(known), "{decision:?}");
    assert!(decision.checked.iter().all(|gate| !gate.message.is_empty()));
    let verb = match decision.allowed {
        true => "let pass by apps/",
        false => "held back by apps/",
    };
    assert!(decision.message.starts_with(verb), "{decision:?}");
}
