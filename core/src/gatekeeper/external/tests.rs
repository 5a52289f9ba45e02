use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;
use sluice_crds::Setting;

use super::*;

const COMMIT: &str = "4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";
const NOW: &str = "2026-11-20T12:00:00Z";

fn report(change: impl FnOnce(&mut ExternalReport)) -> ExternalReport {
    let mut report = ExternalReport {
        state: Setting::Open,
        revisions: Vec::new(),
        reason: Some("run 7".to_owned()),
        expires_at: Time("2026-11-20T13:00:00Z".parse().unwrap()),
        for_generation: 3,
        by: "reporter".to_owned(),
    };
    change(&mut report);
    report
}

fn judged(report: Option<&ExternalReport>, verified: bool, revision: Option<&str>) -> Opinion {
    let spec = External {
        writers: vec!["reporter".to_owned()],
    };
    let revision = revision.map(|text| Revision::parse(text).unwrap());
    opinion(
        &spec,
        report,
        Some(3),
        verified,
        revision.as_ref(),
        NOW.parse().unwrap(),
    )
}

#[rstest]
#[case::open(|_: &mut ExternalReport| (), State::Open, Reason::External)]
#[case::closed(|it: &mut ExternalReport| it.state = Setting::Closed, State::Closed, Reason::External)]
#[case::of_an_earlier_spec(|it: &mut ExternalReport| it.for_generation = 2, State::Closed, Reason::NotReported)]
#[case::of_a_later_spec(|it: &mut ExternalReport| it.for_generation = 4, State::Closed, Reason::NotReported)]
#[case::run_out(|it: &mut ExternalReport| it.expires_at = Time(NOW.parse().unwrap()), State::Closed, Reason::Expired)]
#[case::by_a_stranger(|it: &mut ExternalReport| it.by = "mallory".to_owned(), State::Closed, Reason::UnverifiedIdentity)]
fn a_report_counts_for_one_spec_until_it_runs_out(
    #[case] change: fn(&mut ExternalReport),
    #[case] state: State,
    #[case] reason: Reason,
) {
    let opinion = judged(Some(&report(change)), true, None);
    assert_eq!((opinion.state, opinion.reason), (state, reason));
}

#[test]
fn without_a_report_or_anybody_who_verifies_it_there_is_none() {
    assert_eq!(judged(None, true, None).reason, Reason::NotReported);
    let unverified = judged(Some(&report(|_| ())), false, None);
    assert_eq!(unverified.reason, Reason::UnverifiedIdentity);
}

#[rstest]
#[case::nobody_asks_about_one(None, State::Conditional, Reason::External)]
#[case::that_one(Some(format!("main@sha1:{COMMIT}")), State::Open, Reason::External)]
#[case::another(Some("main".to_owned()), State::Closed, Reason::RevisionNotListed)]
fn a_report_may_be_about_some_revisions(
    #[case] revision: Option<String>,
    #[case] state: State,
    #[case] reason: Reason,
) {
    let some = report(|it| it.revisions = vec![COMMIT.to_owned()]);
    let opinion = judged(Some(&some), true, revision.as_deref());
    assert_eq!((opinion.state, opinion.reason), (state, reason));
    assert_eq!(opinion.until, Some(some.expires_at.0));
}

#[test]
fn the_same_said_again_is_told_in_the_same_words() {
    let spec = External {
        writers: vec!["reporter".to_owned()],
    };
    let told =
        |report: &ExternalReport| explain(&spec, Some(report), &judged(Some(report), true, None));
    let later = report(|it| it.expires_at = Time("2026-11-20T14:00:00Z".parse().unwrap()));
    assert_eq!(told(&later), told(&report(|_| ())));
    assert_eq!(told(&later), "reported open by reporter (run 7)");
    let turned = report(|it| it.reason = Some("a\u{202e}b\n".to_owned()));
    assert_eq!(told(&turned), "reported open by reporter (ab)");
}
