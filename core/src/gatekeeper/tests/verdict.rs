//! What each kind says, and what stands above all kinds.

use rstest::rstest;

use super::*;

#[rstest]
#[case::inside(
    OFFICE,
    FRIDAY_10,
    State::Open,
    "InsideWindow",
    "inside window 'office-hours' until Fri 2026-11-20 16:30 Europe/London",
    Some("2026-11-20T16:30:00Z")
)]
#[case::too_late(
    OFFICE,
    "2026-11-20T16:30:00Z",
    State::Closed,
    "LastStart",
    "too late to start in window 'office-hours' until Fri 2026-11-20 17:00 Europe/London; opens Mon 2026-11-23 09:00 Europe/London",
    Some("2026-11-20T17:00:00Z")
)]
#[case::outside(
    OFFICE,
    "2026-11-20T17:00:00Z",
    State::Closed,
    "OutsideWindow",
    "outside every open window until Mon 2026-11-23 09:00 Europe/London",
    Some("2026-11-23T09:00:00Z")
)]
#[case::closed(
    FRIDAYS,
    FRIDAY_10,
    State::Closed,
    "ClosedWindow",
    "closed by window 'fridays' (No deploys on Fridays) until Sat 2026-11-21 00:00 Europe/London",
    Some("2026-11-21T00:00:00Z")
)]
#[case::not_closed(
    FRIDAYS,
    "2026-11-21T00:00:00Z",
    State::Open,
    "NoClosedWindow",
    "outside every closed window until Fri 2026-11-27 00:00 Europe/London",
    Some("2026-11-27T00:00:00Z")
)]
#[case::never_again(
    "{schedule: {closed: [{from: '2020-01-01T00:00:00', until: '2020-01-02T00:00:00'}]}}",
    FRIDAY_10,
    State::Open,
    "NoClosedWindow",
    "outside every closed window, with no change ahead",
    None
)]
#[case::switched_open(
    "{manual: {state: open}}",
    FRIDAY_10,
    State::Open,
    "Manual",
    "switched open",
    None
)]
#[case::switched_closed(
    "{manual: {state: closed, reason: incident 12}}",
    FRIDAY_10,
    State::Closed,
    "Manual",
    "switched closed (incident 12)",
    None
)]
#[case::for_a_time(
    "{manual: {state: open, until: '2026-11-20T18:00:00Z', reason: go}}",
    FRIDAY_10,
    State::Open,
    "Manual",
    "switched open (go) until Fri 2026-11-20 18:00 UTC",
    Some("2026-11-20T18:00:00Z")
)]
#[case::the_time_is_over(
    "{manual: {state: open, until: '2026-11-20T10:00:00Z'}}",
    FRIDAY_10,
    State::Closed,
    "Manual",
    "switched open, which ended Fri 2026-11-20 10:00 UTC",
    None
)]
#[case::closed_for_a_time(
    "{manual: {state: closed, until: '2026-11-20T10:00:00Z'}}",
    FRIDAY_10,
    State::Open,
    "Manual",
    "switched closed, which ended Fri 2026-11-20 10:00 UTC",
    None
)]
#[case::suspended(
    "{suspend: true, manual: {state: open}}",
    FRIDAY_10,
    State::Closed,
    "Suspended",
    "it is suspended",
    None
)]
fn a_verdict_says_what_why_and_until_when(
    #[case] spec: &str,
    #[case] instant: &str,
    #[case] state: State,
    #[case] reason: &str,
    #[case] message: &str,
    #[case] valid_until: Option<&str>,
) {
    let keeper = keeper(spec);
    let verdict = keeper.verdict(now(instant));
    assert_eq!(verdict.message, message);
    assert_eq!((verdict.state, verdict.reason.as_str()), (state, reason));
    assert_eq!(verdict.valid_until, valid_until.map(at));
    let opinion = keeper.opinion(now(instant));
    assert_eq!(
        (opinion.state, opinion.until),
        (verdict.state, verdict.valid_until)
    );
}

#[rstest]
#[case::schedule(
    "{schedule: {timeZone: Europe/Londn, open: [{cron: 0 9 * * *}]}}",
    "spec.schedule.timeZone: there is no time zone `Europe/Londn`"
)]
#[case::no_kind(
    "{}",
    "spec: a Gatekeeper has exactly one kind; write one of schedule, manual"
)]
#[case::two_kinds(
    "{manual: {state: open}, schedule: {open: [{cron: 0 9 * * *}]}}",
    "spec: a Gatekeeper has exactly one kind"
)]
fn a_refused_spec_admits_nothing_and_stalls(#[case] spec: &str, #[case] problem: &str) {
    let keeper = keeper(spec);
    assert!(check(&keeper.object().spec).is_err() && keeper.refusals().is_some());
    let verdict = keeper.verdict(now(FRIDAY_10));
    assert_eq!(
        (verdict.state, verdict.reason.as_str()),
        (State::Closed, "InvalidSpec")
    );
    assert!(
        verdict.message.starts_with("its spec is refused: "),
        "{}",
        verdict.message
    );
    assert!(verdict.message.contains(problem), "{}", verdict.message);
    let expected = ["Ready=False InvalidSpec", "Stalled=True InvalidSpec"];
    assert_eq!(conditions(&keeper, now(FRIDAY_10)), expected);
}

#[rstest]
#[case::by_windows(OFFICE, FRIDAY_10)]
#[case::by_a_switch("{manual: {state: open}}", FRIDAY_10)]
#[case::outside_closed_windows(FRIDAYS, "2026-11-21T10:00:00Z")]
fn nothing_is_open_while_the_clock_is_lost(#[case] spec: &str, #[case] instant: &str) {
    let keeper = keeper(spec);
    for (seconds, state) in [
        (0, State::Open),
        (30, State::Open),
        (31, State::Closed),
        (-31, State::Closed),
    ] {
        assert_eq!(
            keeper.opinion(off_by(seconds, instant)).state,
            state,
            "{seconds}"
        );
    }
    let verdict = keeper.verdict(off_by(-3600, instant));
    assert_eq!(verdict.reason, "ClockSkew");
    let message =
        "the clock differs by -3600s from the API server's, so nothing is open by time alone";
    assert_eq!(verdict.message, message);
    assert_eq!(
        conditions(&keeper, off_by(-3600, instant)),
        ["Ready=False ClockSkew"]
    );
    assert_eq!(keeper.upcoming(off_by(-3600, instant)), []);
}

#[test]
fn what_is_closed_stays_closed_for_its_own_reason_while_the_clock_is_lost() {
    let verdict = keeper(FRIDAYS).verdict(off_by(3600, FRIDAY_10));
    assert_eq!(verdict.reason, "ClosedWindow");
    assert_eq!(
        keeper(FRIDAYS).upcoming(off_by(3600, FRIDAY_10)),
        [],
        "it will not open by time alone"
    );
}

#[test]
fn any_instant_is_answered_whatever_it_was_prepared_for() {
    let office = keeper(OFFICE);
    assert!(office.reaches(at(FRIDAY_10)) && !office.reaches(at("2027-11-19T10:00:00Z")));
    for (instant, state) in [
        ("2027-11-19T10:00:00Z", State::Open),
        ("2027-11-20T10:00:00Z", State::Closed),
        ("2019-11-20T10:00:00Z", State::Open),
    ] {
        let fresh = keeper_with(OFFICE, Vec::new(), instant);
        assert_eq!(office.opinion(now(instant)).state, state);
        assert_eq!(office.verdict(now(instant)), fresh.verdict(now(instant)));
    }
}

#[rstest]
#[case::eight_at_most(OFFICE, FRIDAY_10, 8, Some("2026-11-20T16:30:00Z"))]
#[case::ninety_days_at_most(FREEZE, "2026-12-01T00:00:00Z", 0, None)]
#[case::some(FREEZE, "2026-11-01T00:00:00Z", 2, Some("2026-11-20T00:00:00Z"))]
#[case::at_the_horizon(FREEZE, "2026-08-22T00:00:00Z", 1, Some("2026-11-20T00:00:00Z"))]
#[case::a_switch(
    "{manual: {state: open, until: '2026-11-20T18:00:00Z'}}",
    FRIDAY_10,
    1,
    Some("2026-11-20T18:00:00Z")
)]
#[case::suspended(
    "{suspend: true, manual: {state: open, until: '2026-11-20T18:00:00Z'}}",
    FRIDAY_10,
    0,
    None
)]
fn the_next_changes_are_told(
    #[case] spec: &str,
    #[case] instant: &str,
    #[case] count: usize,
    #[case] first: Option<&str>,
) {
    let keeper = keeper_with(spec, Vec::new(), instant);
    let told = keeper.upcoming(now(instant));
    assert_eq!(
        (told.len(), told.first().map(|change| change.0)),
        (count, first.map(at))
    );
    for pair in told.windows(2) {
        assert!(pair[0].0 < pair[1].0 && pair[0].1 != pair[1].1, "{told:?}");
    }
}
