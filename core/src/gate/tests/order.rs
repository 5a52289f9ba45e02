//! What decides, in order: a force, a refused spec, a suspension, the default, the verdicts.

use rstest::rstest;
use sluice_crds::gate::annotations::{FORCE, FORCE_BY, FORCE_REASON};

use super::*;
use crate::gatekeeper::schedule::Reading;

const BOTH: &str = "{gatekeepers: [{name: office}, {name: fridays}]}";
const FORCED_OPEN: [(&str, &str); 3] =
    [(FORCE, "open"), (FORCE_BY, "alice"), (FORCE_REASON, "why")];

fn office_and_fridays() -> Vec<Keeper> {
    vec![keeper("office", OFFICE), keeper("fridays", FRIDAYS)]
}

#[rstest]
#[case::force(BOTH, &FORCED_OPEN, State::Open, "Forced")]
#[case::force_over_suspend("{suspend: true}", &FORCED_OPEN, State::Open, "Forced")]
#[case::suspend_over_default("{suspend: true, default: open}", &[], State::Closed, "Suspended")]
#[case::suspend_over_verdicts("{suspend: true, gatekeepers: [{name: office}]}", &[], State::Closed, "Suspended")]
#[case::default_open("{default: open}", &[], State::Open, "Default")]
#[case::default_closed("{}", &[], State::Closed, "Default")]
#[case::verdicts("{gatekeepers: [{name: office}]}", &[], State::Open, "InsideWindow")]
#[case::all(BOTH, &[], State::Closed, "ClosedWindow")]
#[case::one_of("{require: oneOf, gatekeepers: [{name: office}, {name: fridays}]}", &[], State::Open, "InsideWindow")]
#[case::refused("{window: 2h, maxOverride: 1h, default: open}", &[], State::Closed, "InvalidSpec")]
#[case::refused_and_suspended("{window: 1 hour, suspend: true}", &[], State::Closed, "InvalidSpec")]
fn the_first_in_order_decides(
    #[case] spec: &str,
    #[case] annotations: &[(&str, &str)],
    #[case] state: State,
    #[case] reason: &str,
) {
    let mut scene = Scene::new(gate(spec, annotations), office_and_fridays());
    let (said, why, message) = scene.says(FRIDAY_10);
    assert_eq!((said, why.as_str()), (state, reason), "{message}");
    let report = scene.report(now(FRIDAY_10));
    scene.write(report);
    assert_eq!(answer(&scene.view(), now(FRIDAY_10)).state, state);
}

/// That somebody has closed it meanwhile would not be seen, also where it is forced open.
#[rstest]
#[case::default(&[])]
#[case::forced(&FORCED_OPEN)]
fn a_gate_is_closed_while_changes_are_not_seen(#[case] annotations: &[(&str, &str)]) {
    let mut scene = Scene::new(gate("{default: open}", annotations), Vec::new());
    let seen = scene.report(now(FRIDAY_10));
    scene.write(seen);
    assert_eq!(answer(&scene.view(), now(FRIDAY_10)).state, State::Open);
    let view = View {
        unwatched: Some("changes of gates are not seen any more: cannot watch gates: refused"),
        ..scene.view()
    };
    let report = report(&view, now(FRIDAY_10));
    let status = &report.status;
    assert_eq!(report.answer.state, State::Closed);
    assert_eq!(status.reason.as_deref(), Some("NotWatched"));
    assert_eq!(
        status.message.as_deref(),
        Some(
            "changes of gates are not seen any more: cannot watch gates: refused, so nobody here \
             would see that the gate is to be closed"
        )
    );
    let ready = status.conditions.iter().find(|it| it.type_ == "Ready");
    assert_eq!(ready.map(|it| it.status.as_str()), Some("False"));
    assert!(report.changed && status.upcoming.is_empty());
}

#[rstest]
#[case::missing(
    "{gatekeepers: [{name: office}, {name: offfice}]}",
    "GatekeeperMissing",
    "offfice: there is no such gatekeeper"
)]
#[case::forbidden(
    "{gatekeepers: [{name: office}, {name: office, namespace: ops}]}",
    "CrossNamespaceRef",
    "ops/office: it is in another namespace, which --no-cross-namespace-refs or \
     --watch-all-namespaces=false forbids"
)]
#[case::suspended(
    "{gatekeepers: [{name: office}, {name: paused}]}",
    "Suspended",
    "paused: it is suspended"
)]
#[case::invalid(
    "{gatekeepers: [{name: office}, {name: broken}]}",
    "InvalidSpec",
    "broken: its spec is refused: spec.schedule.timeZone: there is no time zone `Mars/Olympus`; write an IANA time zone such as UTC, Europe/London or America/New_York"
)]
#[case::unread(
    "{gatekeepers: [{name: office}, {name: holidays}]}",
    "NotObserved",
    "holidays: the calendar of window 'holidays' has not been read yet"
)]
fn a_gatekeeper_that_cannot_be_asked_closes_the_gate_and_is_named(
    #[case] spec: &str,
    #[case] reason: &str,
    #[case] message: &str,
) {
    let keepers = vec![
        keeper("office", OFFICE),
        keeper("paused", "{suspend: true, manual: {state: open}}"),
        keeper(
            "broken",
            "{schedule: {timeZone: Mars/Olympus, open: [{cron: 0 9 * * *}]}}",
        ),
        keeper("holidays", HOLIDAYS),
    ];
    let scene = Scene::new(gate(spec, &[]), keepers);
    let expected = (State::Closed, reason.to_owned(), message.to_owned());
    assert_eq!(scene.says(FRIDAY_10), expected);
    let conditions = scene.report(now(FRIDAY_10)).status.conditions;
    let ready = conditions
        .iter()
        .find(|condition| condition.type_ == "Ready")
        .unwrap();
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("False", reason)
    );
}

#[test]
fn one_that_cannot_be_read_closes_the_gate_and_says_why() {
    let gate = gate("{gatekeepers: [{name: newer}]}", &[]);
    let sight = |_: &GatekeeperReference| Named::Unreadable("unknown field metric".into());
    let view = View::new(&gate, Identity::Trusted, sight);
    let status = report(&view, now(FRIDAY_10)).status;
    assert_eq!(status.state, Some(State::Closed));
    assert_eq!(
        status.message.unwrap(),
        "newer: it cannot be read: unknown field metric"
    );
}

#[rstest]
#[case::all_admit(
    "{gatekeepers: [{name: a-open}, {name: b-open}]}",
    State::Open,
    "AllAdmit",
    "a-open: switched open (quiet time); b-open: switched open (quiet time)"
)]
#[case::one_refuses(
    "{gatekeepers: [{name: a-open}, {name: c-closed}]}",
    State::Closed,
    "Manual",
    "c-closed: switched closed (incident 12)"
)]
#[case::one_is_enough(
    "{require: oneOf, gatekeepers: [{name: c-closed}, {name: b-open}]}",
    State::Open,
    "Manual",
    "b-open: switched open (quiet time)"
)]
#[case::none_admits(
    "{require: oneOf, gatekeepers: [{name: c-closed}, {name: gone}]}",
    State::Closed,
    "NoneAdmits",
    "none admits: c-closed: switched closed (incident 12); gone: there is no such gatekeeper"
)]
#[case::many(
    "{gatekeepers: [{name: e1}, {name: e2}, {name: e3}, {name: e4}, {name: e5}]}",
    State::Closed,
    "GatekeeperMissing",
    "e1: there is no such gatekeeper; e2: there is no such gatekeeper; e3: there is no such gatekeeper; and 2 more"
)]
fn those_who_decide_are_named(
    #[case] spec: &str,
    #[case] state: State,
    #[case] reason: &str,
    #[case] message: &str,
) {
    let keepers = vec![
        keeper("a-open", OPEN),
        keeper("b-open", OPEN),
        keeper("c-closed", CLOSED),
    ];
    let scene = Scene::new(gate(spec, &[]), keepers);
    assert_eq!(
        scene.says(FRIDAY_10),
        (state, reason.to_owned(), message.to_owned())
    );
}

/// Open because its calendar is unavailable and its `onError` says so.
fn open_for_want_of_evidence() -> Keeper {
    let spec = HOLIDAYS.replacen('{', "{onError: open, ", 1);
    let calendars = vec![Reading::Unavailable("there is no ConfigMap days".into())];
    keeper_with("holidays", &spec, Evidence::of(calendars), at(FRIDAY_10))
}

#[rstest]
#[case::alone("{gatekeepers: [{name: holidays}]}", State::Open)]
#[case::with_one_that_admits("{gatekeepers: [{name: holidays}, {name: office}]}", State::Open)]
#[case::one_of_alone("{require: oneOf, gatekeepers: [{name: holidays}]}", State::Closed)]
#[case::one_of_two(
    "{require: oneOf, gatekeepers: [{name: holidays}, {name: fridays}]}",
    State::Closed
)]
#[case::one_of_with_one_that_admits(
    "{require: oneOf, gatekeepers: [{name: holidays}, {name: office}]}",
    State::Open
)]
fn on_error_open_never_opens_one_of_by_itself(#[case] spec: &str, #[case] state: State) {
    let mut keepers = office_and_fridays();
    keepers.push(open_for_want_of_evidence());
    let scene = Scene::new(gate(spec, &[]), keepers);
    let (said, _, message) = scene.says(FRIDAY_10);
    assert_eq!(said, state, "{message}");
    // Nor after a restart, by the report of it.
    let before = open_for_want_of_evidence();
    let mut object = Gatekeeper::clone(before.object());
    object.status = Some(crate::gatekeeper::report(&before, now(FRIDAY_10)).status);
    let reported = Keeper::new(Arc::new(object), Evidence::default(), at(FRIDAY_10));
    let scene = Scene {
        keepers: office_and_fridays().into_iter().chain([reported]).collect(),
        ..scene
    };
    let (said, _, message) = scene.says(FRIDAY_10);
    assert_eq!(said, state, "{message}");
}

#[test]
fn a_lost_clock_closes_what_is_open_by_time_and_leaves_forces() {
    let lost = Now {
        trust: crate::time::clock::Trust::from_difference(jiff::SignedDuration::from_secs(-90)),
        ..now(FRIDAY_10)
    };
    let keepers = vec![keeper("office", OFFICE)];
    let mut scene = Scene::new(gate("{gatekeepers: [{name: office}]}", &[]), keepers);
    let status = scene.report(lost).status;
    assert_eq!(status.state, Some(State::Closed));
    let message = status.message.unwrap();
    assert!(
        message.starts_with("office: the clock differs by -90s"),
        "{message}"
    );
    scene.gate = gate("{gatekeepers: [{name: office}]}", &FORCED_OPEN);
    let accepted = scene.report(now(FRIDAY_10));
    scene.write(accepted);
    assert_eq!(scene.report(lost).status.state, Some(State::Open));
    scene.gate = gate("{default: open}", &[]);
    assert_eq!(scene.report(lost).status.state, Some(State::Open));
}
