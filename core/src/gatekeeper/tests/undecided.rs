//! A calendar that is unavailable leaves undecided what the other windows do not decide.

use rstest::rstest;

use super::*;

const CALENDAR: &str = "{name: holidays, calendar: {configMapRef: {name: days, key: uk.ics}}}";
const FRIDAYS_TOO: &str = "{name: fridays, cron: 0 0 * * FRI, duration: 24h}";
const OFFICE_HOURS: &str = "{name: office, cron: 0 9 * * MON-FRI, duration: 8h, lastStart: 30m}";
const MISSING: &str =
    "the calendar of window 'holidays' is unavailable: there is no ConfigMap days";

const FRIDAY_3: &str = "2026-11-20T03:00:00Z";
const FRIDAY_16_45: &str = "2026-11-20T16:45:00Z";
const MONDAY_10: &str = "2026-11-23T10:00:00Z";

fn undecided(on_error: &str, open: &[&str], closed: &[&str], from: &str) -> Keeper {
    let (open, closed) = (open.join(", "), closed.join(", "));
    let spec = format!("{{onError: {on_error}, schedule: {{open: [{open}], closed: [{closed}]}}}}");
    let missing = Reading::Unavailable("there is no ConfigMap days".to_owned());
    keeper_with(&spec, vec![missing], from)
}

/// `State Reason` of each instant at which either changes, up to so many.
fn told(keeper: &Keeper, from: &str, count: usize) -> Vec<String> {
    let mut at = Some(at(from));
    let mut told = Vec::new();
    while let Some(now) = at.filter(|_| told.len() < count) {
        let opinion = keeper.opinion(Now::given(now));
        told.push(format!("{now} {} {}", opinion.state, opinion.reason));
        at = opinion.until;
    }
    told
}

#[rstest]
#[case::inside_a_known_closed_window("open", &[], &[FRIDAYS_TOO, CALENDAR], FRIDAY_10, (State::Closed, "ClosedWindow"), [Some("2026-11-21T00:00:00Z"), Some("2026-11-21T00:00:00Z")])]
#[case::outside_of_it("open", &[], &[FRIDAYS_TOO, CALENDAR], MONDAY_10, (State::Open, "EvidenceUnavailable"), [Some("2026-11-27T00:00:00Z"), Some("2026-11-27T00:00:00Z")])]
#[case::and_closed_on_error("closed", &[], &[FRIDAYS_TOO, CALENDAR], MONDAY_10, (State::Closed, "EvidenceUnavailable"), [Some("2026-11-27T00:00:00Z"), None])]
#[case::outside_the_open_windows("open", &[OFFICE_HOURS], &[CALENDAR], FRIDAY_3, (State::Closed, "OutsideWindow"), [Some("2026-11-20T09:00:00Z"), Some("2026-11-20T09:00:00Z")])]
#[case::inside_them("open", &[OFFICE_HOURS], &[CALENDAR], FRIDAY_10, (State::Open, "EvidenceUnavailable"), [Some("2026-11-20T16:30:00Z"), Some("2026-11-20T16:30:00Z")])]
#[case::too_late_in_them("open", &[OFFICE_HOURS], &[CALENDAR], FRIDAY_16_45, (State::Closed, "LastStart"), [Some("2026-11-20T17:00:00Z"), Some("2026-11-23T09:00:00Z")])]
#[case::inside_and_closed_on_error("closed", &[OFFICE_HOURS], &[CALENDAR], FRIDAY_10, (State::Closed, "EvidenceUnavailable"), [Some("2026-11-20T16:30:00Z"), None])]
#[case::a_known_open_window_is_enough("closed", &[OFFICE_HOURS, CALENDAR], &[], FRIDAY_10, (State::Open, "InsideWindow"), [Some("2026-11-20T16:30:00Z"), Some("2026-11-20T16:30:00Z")])]
#[case::outside_of_which_it_depends("open", &[OFFICE_HOURS, CALENDAR], &[], FRIDAY_3, (State::Open, "EvidenceUnavailable"), [Some("2026-11-20T09:00:00Z"), None])]
#[case::also_too_late_in_it("open", &[OFFICE_HOURS, CALENDAR], &[], FRIDAY_16_45, (State::Open, "EvidenceUnavailable"), [Some("2026-11-23T09:00:00Z"), None])]
#[case::closed_beats_what_may_be_open("open", &[CALENDAR], &[FRIDAYS_TOO], FRIDAY_10, (State::Closed, "ClosedWindow"), [Some("2026-11-21T00:00:00Z"), Some("2026-11-21T00:00:00Z")])]
#[case::open_by_nothing_else("open", &[CALENDAR], &[FRIDAYS_TOO], MONDAY_10, (State::Open, "EvidenceUnavailable"), [Some("2026-11-27T00:00:00Z"), Some("2026-11-27T00:00:00Z")])]
#[case::nothing_else_is_known("open", &[], &[CALENDAR], FRIDAY_10, (State::Open, "EvidenceUnavailable"), [None, None])]
fn what_is_known_decides_before_on_error(
    #[case] on_error: &str,
    #[case] open: &[&str],
    #[case] closed: &[&str],
    #[case] instant: &str,
    #[case] (state, reason): (State, &str),
    #[case] until_and_next: [Option<&str>; 2],
) {
    let keeper = undecided(on_error, open, closed, instant);
    let opinion = keeper.opinion(now(instant));
    assert_eq!((opinion.state, opinion.reason.as_str()), (state, reason));
    assert_eq!(
        [opinion.until, opinion.next],
        until_and_next.map(|change| change.map(at))
    );
    let verdict = keeper.verdict(now(instant));
    assert_eq!(verdict.reason, reason);
    assert!(verdict.message.contains(MISSING), "{}", verdict.message);
    // The evidence is in trouble, independent of what decides.
    assert_eq!(
        conditions(&keeper, now(instant)),
        ["Ready=False EvidenceUnavailable"]
    );
    assert_eq!(
        keeper.upcoming(now(instant)).first().map(|change| change.0),
        opinion.next
    );
}

#[rstest]
#[case::the_known_window_decides(
    "open",
    FRIDAY_10,
    "closed by window 'fridays' until Sat 2026-11-21 00:00 UTC; the calendar of window 'holidays' is unavailable: there is no ConfigMap days"
)]
#[case::on_error_open_decides(
    "open",
    MONDAY_10,
    "the calendar of window 'holidays' is unavailable: there is no ConfigMap days; onError is open, which decides until Fri 2026-11-27 00:00 UTC"
)]
#[case::on_error_closed_decides(
    "closed",
    MONDAY_10,
    "the calendar of window 'holidays' is unavailable: there is no ConfigMap days; onError is closed, which decides until Fri 2026-11-27 00:00 UTC"
)]
fn a_message_says_what_is_missing_and_what_decided(
    #[case] on_error: &str,
    #[case] instant: &str,
    #[case] message: &str,
) {
    let keeper = undecided(on_error, &[], &[FRIDAYS_TOO, CALENDAR], instant);
    assert_eq!(keeper.verdict(now(instant)).message, message);
}

#[test]
fn causes_follow_each_other() {
    let keeper = undecided(
        "open",
        &[OFFICE_HOURS],
        &[FRIDAYS_TOO, CALENDAR],
        "2026-11-19T20:00:00Z",
    );
    assert_eq!(
        told(&keeper, "2026-11-19T20:00:00Z", 6),
        [
            "2026-11-19T20:00:00Z Closed OutsideWindow",
            "2026-11-20T00:00:00Z Closed ClosedWindow",
            "2026-11-21T00:00:00Z Closed OutsideWindow",
            "2026-11-23T09:00:00Z Open EvidenceUnavailable",
            "2026-11-23T16:30:00Z Closed LastStart",
            "2026-11-23T17:00:00Z Closed OutsideWindow",
        ]
    );
}

/// However long it is looked at: what is undecided for ever is prepared at once.
#[rstest]
#[case("closed", &[OFFICE_HOURS], &[CALENDAR])]
#[case("open", &[OFFICE_HOURS, CALENDAR], &[])]
#[case("closed", &["{cron: '*/2 * * * *'}", CALENDAR], &["{cron: '* * * * *'}"])]
fn what_never_changes_has_nothing_ahead(
    #[case] on_error: &str,
    #[case] open: &[&str],
    #[case] closed: &[&str],
) {
    let keeper = undecided(on_error, open, closed, FRIDAY_10);
    assert_eq!(keeper.upcoming(now(FRIDAY_10)), []);
    assert_eq!(keeper.opinion(now(FRIDAY_10)).next, None);
}
