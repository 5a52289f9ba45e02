use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;
use sluice_crds::ApprovalSpec;
use sluice_crds::approval::LocalReference;

use super::*;

const COMMIT: &str = "4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";
const NOW: &str = "2026-11-20T12:00:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn revision() -> Revision {
    Revision::parse(&format!("v1.4.2@sha1:{COMMIT}")).unwrap()
}

fn rule(spec: &str) -> Approvals {
    let spec: Spec = serde_saphyr::from_str(spec).unwrap();
    Approvals::read(&spec, "spec.approval").unwrap()
}

/// A vote by a letter: a, b, c approve, and A, B, C reject, in the groups `x` and so on.
fn vote(by: char, revision: &str, created: &str) -> Arc<Approval> {
    let mut approval = Approval::new(
        &format!("vote-{by}"),
        ApprovalSpec {
            gatekeeper_ref: Some(LocalReference {
                name: "release".to_owned(),
            }),
            pipeline_ref: None,
            revision: revision.to_owned(),
            decision: match by.is_uppercase() {
                true => Vote::Reject,
                false => Vote::Approve,
            },
            by: by.to_lowercase().to_string(),
            groups: vec![format!("group-{}", by.to_lowercase())],
            reason: None,
        },
    );
    approval.metadata.creation_timestamp = Some(Time(at(created)));
    Arc::new(approval)
}

fn votes(letters: &str) -> Ballot {
    let revision = revision().to_string();
    letters
        .chars()
        .map(|by| vote(by, &revision, "2026-11-20T10:00:00Z"))
        .collect()
}

/// Votes that somebody verifies.
fn verified(ballot: &Ballot, authors: Option<Reading>) -> Votes {
    Votes {
        ballot: Arc::new(ballot.clone()),
        unreadable: None,
        authors,
        verified: true,
    }
}

fn says(rule: &Approvals, ballot: &Ballot) -> Reason {
    let opinion = rule.opinion(&verified(ballot, None), Some(&revision()), at(NOW));
    assert_eq!(
        opinion.state == State::Open,
        opinion.reason == Reason::Approved
    );
    opinion.reason
}

#[rstest]
#[case::nobody("", Reason::AwaitingApproval)]
#[case::one("a", Reason::AwaitingApproval)]
#[case::one_twice("aa", Reason::AwaitingApproval)]
#[case::two("ab", Reason::Approved)]
#[case::one_rejects("abC", Reason::Rejected)]
#[case::on_second_thought("abA", Reason::Rejected)]
fn votes_are_counted_by_person(#[case] letters: &str, #[case] reason: Reason) {
    assert_eq!(says(&rule("{required: 2}"), &votes(letters)), reason);
}

const ROBOT: &str = "system:serviceaccount:ci:robot";

/// A vote by the ServiceAccount `robot` of the namespace `ci`, which names these of its groups.
fn by_robot(letter: char, groups: &[&str]) -> Arc<Approval> {
    let mut vote = Approval::clone(&vote(
        letter,
        &revision().to_string(),
        "2026-11-20T10:00:00Z",
    ));
    vote.spec.by = ROBOT.to_owned();
    vote.spec.groups = groups.iter().map(ToString::to_string).collect();
    Arc::new(vote)
}

/// Somebody who may create ServiceAccounts, or act as one, would have as many votes as they like.
#[rstest]
#[case::nobody_is_named("", &["system:serviceaccounts"], false)]
#[case::all_who_are_known("groups: ['system:authenticated']", &["system:authenticated"], false)]
#[case::people("groups: [people]", &["people"], false)]
#[case::of_another_namespace("groups: ['system:serviceaccounts:cd']", &["system:serviceaccounts:ci"], false)]
#[case::a_name_that_begins_so("groups: ['system:serviceaccountsx']", &["system:serviceaccountsx"], false)]
#[case::all_of_them("groups: ['system:serviceaccounts']", &["system:serviceaccounts"], true)]
#[case::of_its_namespace("groups: ['system:serviceaccounts:ci']", &["system:serviceaccounts:ci"], true)]
fn a_service_account_is_nobody_unless_a_group_of_it_is_named(
    #[case] rule: &str,
    #[case] groups: &[&str],
    #[case] counts: bool,
) {
    let rule = self::rule(&format!("{{{rule}}}"));
    let mut ballot = Ballot::default();
    ballot.insert(by_robot('r', groups));
    let expected = match counts {
        true => Reason::Approved,
        false => Reason::AwaitingApproval,
    };
    assert_eq!(says(&rule, &ballot), expected);
    let votes = verified(&ballot, None);
    let opinion = rule.opinion(&votes, Some(&revision()), at(NOW));
    let told = rule.explain(&votes, Some(&revision()), &opinion, at(NOW));
    let words = "; ServiceAccounts are not people, and count only if a group of theirs is in \
                 spec.approval.groups";
    assert_eq!(told.ends_with(words), !counts, "{told}");
}

/// A vote that closes may be from anybody.
#[test]
fn a_service_account_rejects_like_anybody() {
    let mut ballot = votes("a");
    ballot.insert(by_robot('R', &[]));
    assert_eq!(says(&rule("{}"), &ballot), Reason::Rejected);
}

#[test]
fn an_approval_counts_for_its_time_and_a_rejection_for_ever() {
    let rule = rule("{validFor: 2h}");
    let opinion = |now| rule.opinion(&verified(&votes("a"), None), Some(&revision()), at(now));
    let open = opinion("2026-11-20T11:59:59Z");
    assert_eq!((open.state, open.until), (State::Open, Some(at(NOW))));
    assert_eq!(opinion(NOW).reason, Reason::AwaitingApproval);
    let rejected = rule.opinion(
        &verified(&votes("A"), None),
        Some(&revision()),
        at("2036-01-01T00:00:00Z"),
    );
    assert_eq!(rejected.reason, Reason::Rejected);
    // Where nobody asks about a revision, the next end is when to look again.
    let any = rule.opinion(
        &verified(&votes("a"), None),
        None,
        at("2026-11-20T11:00:00Z"),
    );
    assert_eq!((any.state, any.until), (State::Conditional, Some(at(NOW))));
}

#[rstest]
#[case::same_commit_elsewhere("main@sha1:{commit}", Reason::Approved, Reason::Rejected)]
#[case::tag_alone("v1.4.2", Reason::AwaitingApproval, Reason::Rejected)]
#[case::tag_without_v("1.4.2", Reason::AwaitingApproval, Reason::Rejected)]
#[case::another_tag("v1.4.3", Reason::AwaitingApproval, Reason::AwaitingApproval)]
#[case::cut_short("main@4f2a9c1", Reason::AwaitingApproval, Reason::Rejected)]
#[case::commit_alone_cut_short("4f2a9c1", Reason::AwaitingApproval, Reason::Rejected)]
#[case::another_commit_cut_short("4f2a9c2", Reason::AwaitingApproval, Reason::AwaitingApproval)]
#[case::another_commit(
    "v1.4.2@sha1:0000000000000000000000000000000000000000",
    Reason::AwaitingApproval,
    Reason::AwaitingApproval
)]
fn what_is_vague_approves_of_nothing_and_rejects_what_it_may_mean(
    #[case] text: &str,
    #[case] approving: Reason,
    #[case] rejecting: Reason,
) {
    let text = text.replace("{commit}", COMMIT);
    let rule = rule("{}");
    for (by, reason) in [('a', approving), ('A', rejecting)] {
        assert_eq!(
            says(&rule, &Ballot::from_iter([vote(by, &text, NOW)])),
            reason,
            "{by}"
        );
    }
}

/// An artifact that is built from a commit is often tagged with it.
#[rstest]
#[case::in_full("{commit}", "{commit}@{digest}", true)]
#[case::as_the_source_has_it("main@sha1:{commit}", "{commit}@{digest}", true)]
#[case::with_an_end("{commit}", "{commit}-amd64@{digest}", true)]
#[case::cut_short("{commit}", "4f2a9c1@{digest}", true)]
#[case::in_capitals("{commit}", "4F2A9C1E0B7D@{digest}", true)]
#[case::another("{commit}", "4f2a9c2@{digest}", false)]
#[case::too_short("{commit}", "4f2a@{digest}", false)]
#[case::tag_of_two_parts("2.1.0", "2.1@{digest}", true)]
#[case::two_parts("2.1", "v2.1.0@{digest}", true)]
#[case::another_version("2.1", "2.1.1@{digest}", false)]
#[case::date("20261120153000", "20261120153000@{digest}", true)]
fn a_rejection_finds_what_is_tagged_with_it(
    #[case] rejected: &str,
    #[case] asked: &str,
    #[case] counts: bool,
) {
    let filled = |text: &str| {
        let digest = format!("sha256:{}", "9d1c".repeat(16));
        text.replace("{commit}", COMMIT)
            .replace("{digest}", &digest)
    };
    let rule = rule("{}");
    let asked = Revision::parse(&filled(asked)).unwrap();
    let approved = vote('b', asked.as_str(), NOW);
    let reason = |by: char| {
        let ballot = Ballot::from_iter([approved.clone(), vote(by, &filled(rejected), NOW)]);
        rule.opinion(&verified(&ballot, None), Some(&asked), at(NOW))
            .reason
    };
    let expected = match counts {
        true => Reason::Rejected,
        false => Reason::Approved,
    };
    assert_eq!(reason('A'), expected);
    // Nobody approves of a tag by approving of what it may mean.
    let alone = Ballot::from_iter([vote('a', &filled(rejected), NOW)]);
    let opinion = rule.opinion(&verified(&alone, None), Some(&asked), at(NOW));
    assert_eq!(opinion.reason, Reason::AwaitingApproval);
}

#[test]
fn groups_and_authors_say_who_counts() {
    let members = rule("{groups: [group-a, group-c]}");
    assert_eq!(says(&members, &votes("b")), Reason::AwaitingApproval);
    assert_eq!(says(&members, &votes("c")), Reason::Approved);
    // A rejection counts for every author.
    assert_eq!(says(&members, &votes("aB")), Reason::Rejected);

    let rule = rule("{forbidSelf: {configMapRef: {name: authors, key: list}}}");
    let by_authors = |list: &str, letters: &str| {
        let authors = Reading::Read(Arc::new(Authors::parse(list).unwrap()));
        let votes = verified(&votes(letters), Some(authors));
        rule.opinion(&votes, Some(&revision()), at(NOW)).reason
    };
    let list = format!("main@sha1:{COMMIT} a # first\n{COMMIT} b\n");
    // Both authors are authors.
    assert_eq!(by_authors(&list, "ab"), Reason::AwaitingApproval);
    assert_eq!(by_authors(&list, "abc"), Reason::Approved);
    assert_eq!(by_authors("", "c"), Reason::EvidenceUnavailable);
    let unread = rule.opinion(&verified(&votes("c"), None), Some(&revision()), at(NOW));
    assert_eq!(unread.reason, Reason::NotObserved);
}

#[test]
fn nothing_counts_that_nobody_verifies() {
    let unverified = Votes {
        verified: false,
        ..verified(&votes("abc"), None)
    };
    for asked in [None, Some(&revision())] {
        let opinion = rule("{}").opinion(&unverified, asked, at(NOW));
        assert_eq!(opinion.reason, Reason::UnverifiedIdentity);
    }
}

#[rstest]
#[case("nobody", "line 1: there is no author")]
#[case("# a\nmain@4f2a9c1 a", "line 2: ")]
fn a_list_of_authors_names_the_line_that_makes_no_sense(#[case] text: &str, #[case] why: &str) {
    let refusal = Authors::parse(text).unwrap_err();
    assert!(refusal.starts_with(why), "{refusal}");
}

/// However the revision of a vote is written, and however many others there are, it is found.
#[test]
fn a_vote_is_found_among_many_and_taken_out_again() {
    let mut ballot: Ballot = (0..1000)
        .map(|n| vote('A', &format!("main@sha1:{n:040x}"), NOW))
        .collect();
    let others = ballot.len();
    let rule = rule("{}");
    assert_eq!(says(&rule, &ballot), Reason::AwaitingApproval);
    for text in ["v1.4.2+3", "main@oops", &format!("sha1:{COMMIT}")] {
        let mut rejection = Approval::clone(&vote('A', text, NOW));
        rejection.metadata.name = Some("late".to_owned());
        ballot.insert(Arc::new(rejection.clone()));
        assert_eq!(says(&rule, &ballot), Reason::Rejected, "{text}");
        ballot.remove(&rejection);
        assert_eq!(
            (ballot.len(), says(&rule, &ballot)),
            (others, Reason::AwaitingApproval)
        );
    }
    let version = Revision::parse("1.4.2").unwrap();
    let one = Ballot::from_iter([vote('a', "v1.4.2+3", NOW)]);
    let opinion = rule.opinion(&verified(&one, None), Some(&version), at(NOW));
    assert_eq!(opinion.reason, Reason::Approved);
}

/// What nobody knows the name of may be what somebody rejected by its name; nobody approves of it so.
#[rstest]
#[case::by_another_name("nightly", Some("may be what a rejected: no source shows its name"))]
#[case::by_version("v1.4.1", Some("may be what a rejected: no source shows its name"))]
#[case::by_its_digest("v9@sha256:{digest}", Some("is rejected by a"))]
#[case::by_another_digest("v1.4.2@sha256:{other}", None)]
#[case::by_a_commit_that_it_may_be_tagged_with("{commit}", Some("may be what a rejected"))]
fn a_rejection_of_a_name_that_no_source_shows(
    #[case] rejected: &str,
    #[case] expected: Option<&str>,
) {
    let digest = format!("sha256:{}", "9d1c".repeat(16));
    let rejected = rejected.replace("sha256:{digest}", &digest);
    let rejected = rejected.replace("{other}", &"0".repeat(64));
    let rejected = rejected.replace("{commit}", COMMIT);
    let asked = Revision::parse(&format!("v1.4.2@{digest}")).unwrap();
    let asked = asked.of_unknown_name();
    let rule = rule("{}");
    let ballot = Ballot::from_iter([vote('b', &digest, NOW), vote('A', &rejected, NOW)]);
    let votes = verified(&ballot, None);
    let opinion = rule.opinion(&votes, Some(&asked), at(NOW));
    let reason = match expected {
        Some(_) => Reason::Rejected,
        None => Reason::Approved,
    };
    assert_eq!(opinion.reason, reason);
    let words = rule.explain(&votes, Some(&asked), &opinion, at(NOW));
    let expected = expected.unwrap_or("has 1 of 1 approvals (b)");
    assert!(
        words.starts_with(&format!("{digest} {expected}")),
        "{words}"
    );
    let by_name = Ballot::from_iter([vote('b', "v1.4.2", NOW)]);
    let opinion = rule.opinion(&verified(&by_name, None), Some(&asked), at(NOW));
    assert_eq!(opinion.reason, Reason::AwaitingApproval);
}

#[test]
fn more_votes_than_may_be_counted_let_nothing_pass_and_say_so() {
    let rule = rule("{}");
    let mut ballot: Ballot = (0..MOST_VOTES).map(|_| vote('a', "main", NOW)).collect();
    let main = Revision::parse("main").unwrap();
    let opinion = |ballot: &Ballot| rule.opinion(&verified(ballot, None), Some(&main), at(NOW));
    assert_eq!(opinion(&ballot).reason, Reason::Approved);
    ballot.insert(vote('b', "main", NOW));
    let closed = opinion(&ballot);
    assert_eq!(closed.reason, Reason::EvidenceBroken);
    assert_eq!(
        rule.explain(&verified(&ballot, None), Some(&main), &closed, at(NOW)),
        "there are 10001 Approvals for it, more than 10000; delete those that are no longer needed"
    );
}

/// It may be a rejection.
#[test]
fn a_vote_that_nobody_can_read_lets_nothing_pass_and_is_told() {
    let rule = rule("{}");
    let votes = Votes {
        unreadable: Some("the Approval odd cannot be read".into()),
        ..verified(&votes("a"), None)
    };
    for asked in [None, Some(&revision())] {
        let opinion = rule.opinion(&votes, asked, at(NOW));
        assert_eq!(opinion.reason, Reason::EvidenceBroken);
        let words = rule.explain(&votes, asked, &opinion, at(NOW));
        assert_eq!(words, "the Approval odd cannot be read");
    }
}

/// Revisions that nobody approves of any more make no room scarce for those that somebody does.
#[test]
fn approvals_that_have_run_out_are_listed_no_more() {
    let rule = rule("{required: 2, validFor: 24h}");
    let of = |digit: char| format!("sha1:{}", digit.to_string().repeat(40));
    let ballot: Ballot = [
        vote('a', &of('1'), "2026-11-19T11:00:00Z"),
        vote('b', &of('2'), "2026-11-19T13:00:00Z"),
        vote('C', &of('3'), "2026-01-01T00:00:00Z"),
    ]
    .into_iter()
    .collect();
    let listed = |now: &str| -> Vec<String> {
        let latest = rule
            .latest(&verified(&ballot, None), 2, at(now))
            .into_iter();
        latest.map(|it| it.revision).collect()
    };
    assert_eq!(listed("2026-11-19T13:00:00Z"), [of('2'), of('1')]);
    assert_eq!(listed(NOW), [of('2'), of('3')]);
}
