//! Calendars that are there, missing, broken, too old, or known from the status alone.

use rstest::rstest;

use super::*;
use crate::gatekeeper::schedule::Overdue;

const CHRISTMAS_DAY: &str = "2026-12-25T10:00:00Z";

fn unavailable() -> Reading {
    Reading::Unavailable("there is no ConfigMap days".to_owned())
}

fn broken() -> Reading {
    let zone = crate::time::zone::find("UTC").unwrap();
    Reading::Broken(Calendar::parse("nonsense", &zone).unwrap_err())
}

fn with_on_error(setting: &str) -> String {
    HOLIDAYS.replacen('{', &format!("{{onError: {setting}, "), 1)
}

#[rstest]
#[case::read(vec![christmas(None)], "closed", State::Closed, "ClosedWindow", &["Ready=True ClosedWindow"])]
#[case::unread(vec![], "open", State::Closed, "NotObserved", &["Ready=False NotObserved", "Reconciling=True NotObserved"])]
#[case::unavailable(vec![unavailable()], "closed", State::Closed, "EvidenceUnavailable", &["Ready=False EvidenceUnavailable"])]
#[case::unavailable_on_error_open(vec![unavailable()], "open", State::Open, "EvidenceUnavailable", &["Ready=False EvidenceUnavailable"])]
#[case::broken(vec![broken()], "open", State::Closed, "EvidenceBroken", &["Ready=False EvidenceBroken", "Stalled=True EvidenceBroken"])]
#[case::expired(vec![christmas(Some(CHRISTMAS_DAY))], "open", State::Closed, "Expired", &["Ready=False Expired"])]
#[case::not_yet_expired(vec![christmas(Some("2026-12-25T10:00:01Z"))], "open", State::Closed, "ClosedWindow", &["Ready=True ClosedWindow"])]
fn evidence_decides(
    #[case] calendars: Vec<Reading>,
    #[case] on_error: &str,
    #[case] state: State,
    #[case] reason: &str,
    #[case] expected: &[&str],
) {
    let keeper = keeper_with(&with_on_error(on_error), calendars, CHRISTMAS_DAY);
    let verdict = keeper.verdict(now(CHRISTMAS_DAY));
    assert_eq!(
        (verdict.state, verdict.reason.as_str()),
        (state, reason),
        "{}",
        verdict.message
    );
    assert_eq!(conditions(&keeper, now(CHRISTMAS_DAY)), expected);
}

#[rstest]
#[case::an_event(vec![christmas(None)], CHRISTMAS_DAY, "closed by window 'holidays' (Christmas) until Sat 2026-12-26 00:00 Europe/London")]
#[case::unread(vec![], FRIDAY_10, "the calendar of window 'holidays' has not been read yet")]
#[case::unavailable(vec![unavailable()], FRIDAY_10, "the calendar of window 'holidays' is unavailable: there is no ConfigMap days")]
#[case::broken(vec![broken()], FRIDAY_10, "the calendar of window 'holidays' is broken: the text does not begin with BEGIN:VCALENDAR; give the text of an iCalendar (.ics) file")]
#[case::expired(vec![christmas(Some("2026-11-20T09:00:00Z"))], FRIDAY_10, "its evidence expired Fri 2026-11-20 09:00 UTC")]
fn a_message_names_the_event_or_the_trouble(
    #[case] calendars: Vec<Reading>,
    #[case] instant: &str,
    #[case] message: &str,
) {
    let keeper = keeper_with(HOLIDAYS, calendars, instant);
    assert_eq!(keeper.verdict(now(instant)).message, message);
}

#[test]
fn what_was_read_is_judged_until_it_is_too_old_and_not_longer() {
    let end = "2026-11-20T13:00:00Z";
    let keeper = keeper_with(HOLIDAYS, vec![christmas(Some(end))], FRIDAY_10);
    let before = keeper.opinion(now("2026-11-20T12:59:59.999Z"));
    assert_eq!((before.state, before.until), (State::Open, Some(at(end))));
    let after = keeper.opinion(now(end));
    assert_eq!(
        (after.state, after.reason),
        (State::Closed, Reason::Expired)
    );
    assert_eq!(
        super::super::report(&keeper, now(FRIDAY_10)).wake,
        Some(at("2026-11-20T13:00:00Z"))
    );
}

#[test]
fn the_status_says_what_was_read() {
    let keeper = keeper_with(HOLIDAYS, vec![christmas(None)], FRIDAY_10);
    let calendars = status(&keeper, FRIDAY_10).evidence.unwrap().calendars;
    let said = &calendars[0];
    assert_eq!(
        (said.window.as_str(), said.events, &said.error),
        ("holidays", Some(1), &None)
    );
    assert_eq!(said.digest.as_ref().unwrap().len(), 12);
    let keeper = keeper_with(HOLIDAYS, vec![unavailable()], FRIDAY_10);
    let calendars = status(&keeper, FRIDAY_10).evidence.unwrap().calendars;
    assert_eq!(
        calendars[0].error.as_deref(),
        Some("there is no ConfigMap days")
    );
    assert_eq!(status(&super::keeper(OFFICE), FRIDAY_10).evidence, None);
}

#[test]
fn the_status_says_what_is_kept_and_why_it_is_not_read_again() {
    let why = "https://calendar.test: status 500";
    let read_at = at("2026-11-20T08:00:00Z");
    let overdue = |why: &str| match christmas(Some("2026-11-20T11:00:00Z")) {
        Reading::Read {
            calendar,
            good_until,
            ..
        } => Reading::Read {
            calendar,
            good_until,
            overdue: Some(Overdue {
                read_at,
                why: why.to_owned(),
            }),
        },
        other => other,
    };
    let before = keeper_with(HOLIDAYS, vec![overdue(why)], FRIDAY_10);
    let status = status(&before, FRIDAY_10);
    let said = &status.evidence.as_ref().unwrap().calendars[0];
    assert_eq!(said.events, Some(1));
    let error = "kept as it was read Fri 2026-11-20 08:00 UTC; reading it again fails: https://calendar.test: status 500";
    assert_eq!(said.error.as_deref(), Some(error));
    assert_eq!(
        conditions(&before, now(FRIDAY_10)),
        ["Ready=True NoClosedWindow"]
    );
    // Quiet, unless it fails for another reason.
    let later = |why| {
        let keeper = keeper_with(HOLIDAYS, vec![overdue(why)], FRIDAY_10);
        let keeper = written(&keeper, status.clone(), at(FRIDAY_10));
        super::super::report(&keeper, now("2026-11-20T10:01:00Z")).changed
    };
    assert!(!later(why) && later("https://calendar.test: timed out"));
}

/// A gatekeeper whose status was written before a restart, when the calendar was known.
fn after_a_restart(change: impl FnOnce(&mut Gatekeeper)) -> Keeper {
    let before = keeper_with(HOLIDAYS, vec![christmas(None)], FRIDAY_10);
    let mut object = Gatekeeper::clone(before.object());
    object.status = Some(status(&before, FRIDAY_10));
    change(&mut object);
    Keeper::new(Arc::new(object), Evidence::default(), at(FRIDAY_10))
}

#[test]
fn what_the_status_reports_holds_where_nobody_has_looked() {
    let keeper = after_a_restart(|_| ());
    let opinion = keeper.opinion(now("2026-11-20T11:00:00Z"));
    assert_eq!(
        (opinion.state, opinion.reason),
        (State::Open, Reason::Reported)
    );
    assert_eq!(opinion.until, Some(at("2026-12-25T00:00:00Z")));
    let verdict = keeper.verdict(now("2026-11-20T11:00:00Z"));
    assert_eq!(
        (verdict.state, verdict.reason.as_str()),
        (State::Open, "NoClosedWindow")
    );
    assert!(
        verdict
            .message
            .starts_with("outside every closed window until Fri 2026-12-25")
    );
    let report = super::super::report(&keeper, now("2026-11-20T11:00:00Z"));
    assert!(!report.changed, "what is known did not change");
}

#[test]
fn but_not_longer_than_it_says() {
    let keeper = after_a_restart(|_| ());
    assert_eq!(
        keeper.opinion(now("2026-12-24T23:59:59Z")).reason,
        Reason::Reported
    );
    let opinion = keeper.opinion(now("2026-12-25T00:00:00Z"));
    assert_eq!(
        (opinion.state, opinion.reason),
        (State::Closed, Reason::NotObserved)
    );
}

/// A gatekeeper that was open only for want of its calendar, before a restart.
fn open_for_want_of_evidence() -> Keeper {
    let before = keeper_with(&with_on_error("open"), vec![unavailable()], FRIDAY_10);
    let written = written(&before, status(&before, FRIDAY_10), at(FRIDAY_10));
    let object = written.object().clone();
    Keeper::new(object, Evidence::default(), at(FRIDAY_10))
}

#[test]
fn a_report_that_evidence_cannot_be_had_stays_one() {
    let keeper = open_for_want_of_evidence();
    let opinion = keeper.opinion(now(FRIDAY_10));
    assert_eq!(
        (opinion.state, opinion.reason),
        (State::Open, Reason::EvidenceUnavailable)
    );
    let verdict = keeper.verdict(now(FRIDAY_10));
    assert_eq!(verdict.reason, "EvidenceUnavailable");
    let message = "the calendar of window 'holidays' is unavailable: there is no ConfigMap days; onError is open";
    assert_eq!(verdict.message, message);
    let report = super::super::report(&keeper, now("2026-11-20T11:00:00Z"));
    assert!(!report.changed, "what is known did not change");
}

#[rstest]
#[case::of_another_generation(|object: &mut Gatekeeper| object.metadata.generation = Some(4))]
#[case::of_none(|object: &mut Gatekeeper| object.status.as_mut().unwrap().observed_generation = None)]
#[case::without_a_verdict(|object: &mut Gatekeeper| object.status.as_mut().unwrap().verdict = None)]
#[case::at_all(|object: &mut Gatekeeper| object.status = None)]
fn no_report_counts_for_nothing(#[case] change: fn(&mut Gatekeeper)) {
    let opinion = after_a_restart(change).opinion(now(FRIDAY_10));
    assert_eq!(
        (opinion.state, opinion.reason),
        (State::Closed, Reason::NotObserved)
    );
}

#[test]
fn a_report_is_no_match_for_evidence_nor_for_a_suspension() {
    let report = after_a_restart(|_| ()).object().status.clone().unwrap();
    let read = keeper_with(HOLIDAYS, vec![broken()], FRIDAY_10);
    let read = written(&read, report, at(FRIDAY_10));
    assert_eq!(read.opinion(now(FRIDAY_10)).reason, Reason::EvidenceBroken);
    let suspended = after_a_restart(|object| object.spec.suspend = true);
    assert_eq!(suspended.opinion(now(FRIDAY_10)).reason, Reason::Suspended);
}

/// A calendar that is read every hour, is good for three, and says the same each time.
#[test]
fn reading_the_same_again_is_written_when_half_of_its_validity_is_spent() {
    let read = |at: &str, good_until| {
        let before = keeper_with(
            HOLIDAYS,
            vec![christmas(Some("2026-11-20T13:00:00Z"))],
            FRIDAY_10,
        );
        let mut object = Gatekeeper::clone(before.object());
        object.status = Some(status(&before, FRIDAY_10));
        let calendars = vec![christmas(Some(good_until))];
        let keeper = Keeper::new(Arc::new(object), Evidence::of(calendars), self::at(at));
        super::super::report(&keeper, now(at))
    };
    let until = |report: &super::super::Report| {
        let verdict = report.status.verdict.as_ref().unwrap();
        verdict.valid_until.as_ref().unwrap().0
    };
    let early = read("2026-11-20T11:00:00Z", "2026-11-20T14:00:00Z");
    assert!(!early.changed, "an hour of three is spent");
    let late = read("2026-11-20T12:00:00Z", "2026-11-20T15:00:00Z");
    assert!(late.changed, "two of three are");
    assert_eq!(until(&late), at("2026-11-20T15:00:00Z"));
    let sooner = read("2026-11-20T10:30:00Z", "2026-11-20T12:00:00Z");
    assert!(
        sooner.changed,
        "nobody may rely on it for longer than it is good"
    );
    assert_eq!(until(&sooner), at("2026-11-20T12:00:00Z"));
}

/// What is open only by a report, or only by `onError`, depends on the clock as windows do.
#[rstest]
#[case::reported(after_a_restart(|_| ()))]
#[case::on_error_open(keeper_with(&with_on_error("open"), vec![unavailable()], FRIDAY_10))]
#[case::reported_on_error_open(open_for_want_of_evidence())]
fn nothing_is_open_without_evidence_while_the_clock_is_lost(#[case] keeper: Keeper) {
    assert_eq!(keeper.opinion(off_by(30, FRIDAY_10)).state, State::Open);
    let lost = off_by(31, FRIDAY_10);
    let opinion = keeper.opinion(lost);
    assert_eq!(
        (opinion.state, opinion.reason),
        (State::Closed, Reason::ClockSkew)
    );
    assert_eq!(keeper.verdict(lost).reason, "ClockSkew");
    assert_eq!(keeper.upcoming(lost), []);
}

const TWO_CALENDARS: &str = "{onError: open, schedule: {closed: [{name: first, calendar: {configMapRef: {name: days, key: a}}}, {name: second, calendar: {configMapRef: {name: days, key: b}}}]}}";

#[rstest]
#[case::broken_behind_unavailable(vec![unavailable(), broken()], "EvidenceBroken")]
#[case::broken_before_unavailable(vec![broken(), unavailable()], "EvidenceBroken")]
#[case::unread_behind_unavailable(vec![unavailable()], "NotObserved")]
#[case::unread_behind_broken(vec![broken()], "EvidenceBroken")]
#[case::both_unavailable(vec![unavailable(), unavailable()], "EvidenceUnavailable")]
#[case::one_unavailable(vec![christmas(None), unavailable()], "EvidenceUnavailable")]
fn the_worst_of_several_calendars_decides(#[case] calendars: Vec<Reading>, #[case] reason: &str) {
    let keeper = keeper_with(TWO_CALENDARS, calendars, FRIDAY_10);
    let verdict = keeper.verdict(now(FRIDAY_10));
    assert_eq!(verdict.reason, reason, "{}", verdict.message);
    let state = match reason {
        "EvidenceUnavailable" => State::Open,
        _ => State::Closed,
    };
    assert_eq!(verdict.state, state);
}

const OFFICE_AND_HOLIDAYS: &str = "{schedule: {timeZone: Europe/London, open: [{name: office, cron: 0 9 * * MON-FRI, duration: 8h}], closed: [{name: holidays, calendar: {url: 'https://calendar.test/'}}]}}";

/// Evidence is renewed before it runs out: what lies behind its end is foretold all the same.
#[test]
fn changes_are_foretold_beyond_what_is_read_already() {
    let friday_18 = "2026-11-20T18:00:00Z";
    let holidays = christmas(Some("2026-11-20T20:00:00Z"));
    let keeper = keeper_with(OFFICE_AND_HOLIDAYS, vec![holidays], friday_18);
    let told = keeper.upcoming(now(friday_18));
    assert_eq!(told.len(), 8);
    assert_eq!(told[0], (at("2026-11-23T09:00:00Z"), State::Open));
    let status = status(&keeper, friday_18);
    assert_eq!(status.upcoming[0].at.0, at("2026-11-23T09:00:00Z"));
    // But nothing once it has run out.
    assert_eq!(keeper.upcoming(now("2026-11-20T20:00:00Z")), []);
}

/// A verdict says when time changes it: that evidence runs out before is no part of it, and would
/// come and go with every reading.
#[rstest]
#[case::long_after("2026-11-23T13:00:00Z")]
#[case::just_before("2026-11-20T16:59:59Z")]
#[case::at_the_same_instant("2026-11-20T17:00:00Z")]
fn the_end_of_a_verdict_does_not_move_with_each_reading(#[case] good_until: &str) {
    let holidays = christmas(Some(good_until));
    let keeper = keeper_with(OFFICE_AND_HOLIDAYS, vec![holidays], FRIDAY_10);
    let verdict = keeper.verdict(now(FRIDAY_10));
    assert_eq!(verdict.valid_until, Some(at("2026-11-20T17:00:00Z")));
    assert_eq!(
        keeper.opinion(now(FRIDAY_10)).until,
        Some(at(good_until).min(at("2026-11-20T17:00:00Z")))
    );
}
