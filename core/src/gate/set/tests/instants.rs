//! When the answer changes by time alone, and until when it holds.

use rstest::rstest;

use super::*;
use crate::gatekeeper::{Evidence, Given, http, metric};

/// What runs out at 10:01:30, measured at the instant of the question.
const RUNS_OUT: &str = "2026-11-20T10:01:30Z";

/// A gate in the namespace apps that is kept by this, after its evidence was `given`.
fn kept_by(spec: &str, given: Option<&str>) -> World {
    let mut world = world(&format!(
        "{{apiVersion: sluice.dev/v1alpha1, kind: Gatekeeper, metadata: {{name: keeper, namespace: apps}}, \
         spec: {spec}}}\n---\n\
         {{apiVersion: sluice.dev/v1alpha1, kind: Gate, metadata: {{name: kept, namespace: apps}}, \
         spec: {{gatekeepers: [{{name: keeper}}]}}}}\n---\n\
         {{apiVersion: sluice.dev/v1alpha1, kind: Gatekeeper, metadata: {{name: nesting, namespace: apps}}, \
         spec: {{gates: {{refs: [{{name: kept}}]}}}}}}\n---\n\
         {{apiVersion: sluice.dev/v1alpha1, kind: Gate, metadata: {{name: around, namespace: apps}}, \
         spec: {{gatekeepers: [{{name: nesting}}]}}}}"
    ));
    if let Some(given) = given {
        let key = Key::from_reference("apps", None, "keeper");
        let given: Given = serde_saphyr::from_str(given).unwrap();
        world.give(&key, given, NOW.parse().unwrap()).unwrap();
        // As it is outside of a simulation: what was measured counts for three intervals.
        if let Some(evidence) = world.given.get_mut(&key) {
            if let Some(mut seen) = evidence.get::<metric::Observed>().cloned() {
                let last = seen.polled.last.as_mut().unwrap();
                last.good_until = RUNS_OUT.parse().unwrap();
                *evidence = Evidence::of(seen);
            } else {
                let mut seen = evidence.get::<http::Observed>().cloned().unwrap();
                let last = seen.last.as_mut().unwrap();
                last.good_until = RUNS_OUT.parse().unwrap();
                *evidence = Evidence::of(seen);
            }
        }
    }
    world
}

#[rstest]
#[case::metric(
    "{metric: {address: 'http://p', query: up, interval: 30s, range: {min: 1}}}",
    Some("{value: 1}"),
    Some(RUNS_OUT),
    None
)]
#[case::row(
    "{metric: {address: 'http://p', query: up, interval: 30s, for: 10m, range: {min: 1}}}",
    Some("{value: 1}"),
    Some(RUNS_OUT),
    Some("2026-11-20T10:10:00Z")
)]
#[case::http(
    "{http: {url: 'http://p', interval: 30s}}",
    Some("{status: 200}"),
    Some(RUNS_OUT),
    None
)]
#[case::external(
    "{external: {writers: [alice]}}",
    Some("{report: {state: open, expiresAt: '2026-11-20T10:01:30Z'}}"),
    Some(RUNS_OUT),
    None
)]
#[case::manual(
    "{manual: {state: open, until: '2026-11-20T12:00:00Z'}}",
    None,
    Some("2026-11-20T12:00:00Z"),
    Some("2026-11-20T12:00:00Z")
)]
#[case::schedule(
    "{schedule: {open: [{cron: '0 9 * * *', duration: 8h}]}}",
    None,
    Some("2026-11-20T17:00:00Z"),
    Some("2026-11-20T17:00:00Z")
)]
#[case::suspended(
    "{suspend: true, manual: {state: open, until: '2026-11-20T12:00:00Z'}}",
    None,
    None,
    None
)]
fn what_is_renewed_is_no_change_to_foretell(
    #[case] spec: &str,
    #[case] given: Option<&str>,
    #[case] until: Option<&str>,
    #[case] next: Option<&str>,
) {
    let world = kept_by(spec, given);
    let instant = |text: &str| text.parse::<Timestamp>().unwrap();
    for gate in ["kept", "around"] {
        let set = set(Require::All, &[gate]);
        let decision = ask(&world, &set, None);
        assert_eq!(decision.next.map(|at| at.0), next.map(instant), "{gate}");
        let question = Question::from(Now::given(instant(NOW)));
        let subject = decision.subject;
        let gathered = simulate::gather(&world, Some(&set), &subject, Identity::Trusted, question);
        let ruling = gathered.rule(question);
        assert_eq!(ruling.until, until.map(instant), "{gate}");
    }
}

#[test]
fn the_end_of_an_override_is_told() {
    let mut world = kept_by("{manual: {state: open}}", None);
    let gate = world
        .gates
        .get_mut(&Key::from_reference("apps", None, "kept"));
    let annotations = [
        ("sluice.dev/force", "closed"),
        ("sluice.dev/force-by", "alice"),
        ("sluice.dev/force-reason", "incident"),
        ("sluice.dev/force-until", "2026-11-20T10:30:00Z"),
    ];
    let annotations = annotations.map(|(name, value)| (name.to_owned(), value.to_owned()));
    gate.unwrap().metadata.annotations = Some(annotations.into());
    for gate in ["kept", "around"] {
        let decision = ask(&world, &set(Require::All, &[gate]), None);
        assert!(!decision.allowed);
        let next = decision.next.unwrap().0.to_string();
        assert_eq!(next, "2026-11-20T10:30:00Z", "{gate}");
    }
}
