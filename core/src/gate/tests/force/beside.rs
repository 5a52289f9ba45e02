//! One force beside another: each has its own beginning, name and reason.

use rstest::rstest;
use sluice_crds::Setting;

use super::*;
use crate::time::clock::Trust;

const LATER: &str = "2026-11-20T10:30:00Z";

/// Open by alice until noon, accepted at ten; then somebody writes more.
fn open_and(annotations: &[(&str, &str)]) -> Gate {
    let mut gate = accepted(open_until("2026-11-20T12:00:00Z"), FRIDAY_10);
    write(&mut gate, annotations);
    gate
}

fn write(gate: &mut Gate, annotations: &[(&str, &str)]) {
    let all = gate.metadata.annotations.as_mut().unwrap();
    all.extend(
        annotations
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    );
}

/// State, name and reason of the force in effect.
fn told(gate: &Gate, identity: Identity, instant: &str) -> Option<(Setting, String, String)> {
    let forces = crate::gate::force::read(gate, identity, at(instant));
    let force = forces.in_effect(at(instant))?;
    Some((force.state, force.by.clone(), force.reason.clone()))
}

fn open_by_alice() -> Option<(Setting, String, String)> {
    let (by, reason) = ("alice@example.com", "hotfix 4711");
    Some((Setting::Open, by.to_owned(), reason.to_owned()))
}

#[rstest]
#[case::a_request(&[(RFC_OPEN, LATER)])]
#[case::a_request_in_another_name(&[(RFC_OPEN, LATER), (FORCE_BY, "dave"), (FORCE_REASON, "more")])]
#[case::a_request_to_close_that_is_over(&[(RFC_CLOSE, "2026-11-20T09:00:00Z"), (FORCE_BY, "dave")])]
#[case::nonsense(&[(RFC_OPEN, "now")])]
#[case::nonsense_in_another_name(&[(RFC_CLOSE, "now"), (FORCE_BY, "dave"), (FORCE_REASON, "")])]
fn a_request_beside_an_open_force_changes_nothing_about_it(#[case] annotations: &[(&str, &str)]) {
    let gate = open_and(annotations);
    for gate in [gate.clone(), noted(gate, LATER)] {
        let forces = read(&gate, LATER);
        let own = forces.in_effect(at(LATER)).unwrap();
        assert!(own.accepted);
        let expected = (FRIDAY_10.to_owned(), "2026-11-20T12:00:00Z".to_owned());
        assert_eq!((own.since.to_string(), own.until.to_string()), expected);
        assert_eq!(told(&gate, Identity::Trusted, LATER), open_by_alice());
    }
}

/// The gate as it is when the controller has seen it, whether or not there was anything to note.
fn noted(mut gate: Gate, instant: &str) -> Gate {
    let completion = read(&gate, instant).completion;
    complete(&mut gate, completion);
    gate
}

/// Closed beats open for as long as it lasts, and each is reported with its own name.
#[test]
fn each_keeps_its_name_and_its_reason() {
    let close = [
        (RFC_CLOSE, LATER),
        (FORCE_BY, "dave"),
        (FORCE_REASON, "wait"),
    ];
    let gate = noted(open_and(&close), LATER);
    let closed = Some((Setting::Closed, "dave".to_owned(), "wait".to_owned()));
    assert_eq!(told(&gate, Identity::Verified, LATER), closed);
    assert_eq!(
        told(&gate, Identity::Verified, "2026-11-20T11:30:00Z"),
        open_by_alice()
    );
}

/// The annotations of a force stay when it has ended, and the next request is not for its reason.
#[rstest]
#[case::verified(Identity::Verified, "alice@example.com")]
#[case::trusted(Identity::Trusted, "unknown")]
fn a_request_inherits_nothing_from_a_force_that_has_ended(
    #[case] identity: Identity,
    #[case] by: &str,
) {
    const AFTER: &str = "2026-11-20T13:00:00Z";
    let gate = open_and(&[(RFC_OPEN, AFTER)]);
    let completion = crate::gate::force::read(&gate, identity, at(AFTER)).completion;
    let mut gate = gate;
    complete(&mut gate, completion);
    let reason = format!("requested by {RFC_OPEN}");
    let expected = Some((Setting::Open, by.to_owned(), reason));
    assert_eq!(told(&gate, identity, AFTER), expected);

    // With words of its own.
    let own = [
        (RFC_OPEN, "2026-11-20T13:10:00Z"),
        (FORCE_BY, "dave"),
        (FORCE_REASON, "again"),
    ];
    write(&mut gate, &own);
    let gate = noted(gate, "2026-11-20T13:10:00Z");
    let expected = Some((Setting::Open, "dave".to_owned(), "again".to_owned()));
    assert_eq!(told(&gate, identity, "2026-11-20T13:10:00Z"), expected);
}

/// A name or a reason alone, without another force that could have brought it.
#[test]
fn anyone_who_writes_their_name_takes_the_forces_over() {
    let request = [(RFC_OPEN, LATER)];
    let mut gate = noted(open_and(&request), LATER);
    write(&mut gate, &[(FORCE_BY, "dave")]);
    let forces = read(&gate, LATER);
    assert_eq!(forces.in_effect(at(LATER)), None);
    assert_eq!(forces.asked_for(at(LATER)).unwrap().by, "dave");
    let all = forces.completion.unwrap();
    for name in ["force", "open"] {
        assert_eq!(seen(&all, name), LATER, "{name}");
    }
}

/// By a clock that is reported as off nothing is refused for good, and what is right is accepted.
#[test]
fn what_is_refused_holds_up_nothing_beside_it() {
    let gate = forced(&[
        (FORCE, "open"),
        (FORCE_BY, "a"),
        (FORCE_REASON, "b"),
        (RFC_CLOSE, "2026-11-20T10:30:00Z"),
    ]);
    let drifting = Now {
        trust: Trust::from_difference(jiff::SignedDuration::from_secs(-10)),
        ..now(FRIDAY_10)
    };
    let report = Scene::new(gate.clone(), vec![]).report(drifting);
    let all = report.completion.unwrap();
    assert_eq!(
        (seen(&all, "force").as_str(), seen(&all, "close").as_str()),
        (FRIDAY_10, "")
    );
    let right = noted(gate, FRIDAY_10);
    let all = right.metadata.annotations.unwrap();
    assert_eq!(seen(&all, "close"), FRIDAY_10);
}
