//! What entries match, and what they hold back.

use rstest::rstest;

use super::*;

const COMMIT: &str = "4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";

#[rstest]
#[case::in_full("4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3", "main@sha1:{commit}", true)]
#[case::twelve_digits("4f2a9c1e0b7d", "main@sha1:{commit}", true)]
#[case::with_algorithm("sha1:4F2A9C1E0B7D", "main@sha1:{commit}", true)]
#[case::another_algorithm("sha256:4f2a9c1e0b7d", "main@sha1:{commit}", false)]
#[case::another_commit("4f2a9c1e0b7e", "main@sha1:{commit}", false)]
#[case::a_name_that_begins_so("4f2a9c1e0b7d", "4f2a9c1e0b7d-branch", false)]
#[case::a_tag_that_is_a_commit("{commit}", "{commit}@sha256:{digest}", true)]
#[case::a_tag_that_is_a_date("20261120153000", "20261120153000@sha256:{digest}", true)]
#[case::a_version_that_is_a_date("20261120153000", "20261120153000", true)]
#[case::a_later_date("20261120153000", "202611201530001@sha256:{digest}", false)]
#[case::a_tag_is_no_algorithm("sha1:{commit}", "{commit}@sha256:{digest}", false)]
#[case::two_parts(">=2.0.0", "2.1@sha256:{digest}", false)]
#[case::one_part("2.0.0", "v2@sha256:{digest}", false)]
#[case::range(">=1.4.0, <2", "1.9.3", true)]
#[case::range_of_a_tag("^1.4", "v1.9.3@sha1:{commit}", true)]
#[case::outside("~1.4.2", "1.5.0", false)]
#[case::no_version("^1.4", "main@sha1:{commit}", false)]
#[case::branch("release-*", "release-2026@sha1:{commit}", true)]
#[case::branch_with_slash("release/*", "release/2026/11@sha1:{commit}", true)]
#[case::version_glob("1.4.?", "v1.4.2", true)]
#[case::version_without_build("6.7.1", "6.7.1+3", true)]
#[case::version_with_v("v1.4.3", "1.4.3", true)]
#[case::version_without_v("1.4.3", "v1.4.3@sha1:{commit}", true)]
#[case::another_version("6.7.1", "6.7.10", false)]
#[case::whole("main@sha1:4f2a*", "main@sha1:{commit}", true)]
#[case::another_branch("release-*", "main@sha1:{commit}", false)]
#[case::everything("*", "{commit}", true)]
fn matching(#[case] entry: &str, #[case] revision: &str, #[case] matches: bool) {
    let pattern = Pattern::parse(&filled(entry)).unwrap();
    let revision = Revision::parse(&filled(revision)).unwrap();
    assert_eq!(pattern.matches(&revision), matches);
    assert!(pattern.covers(&revision) || !matches);
}

fn filled(text: &str) -> String {
    let text = text.replace("{commit}", COMMIT);
    text.replace("{digest}", &"9d1c".repeat(16))
}

/// Another way to write it is no way around what denies it.
#[rstest]
#[case::tag_of_the_commit("{commit}", "{commit}@sha256:{digest}", true)]
#[case::tag_of_the_commit_with_its_algorithm("sha1:{commit}", "{commit}@sha256:{digest}", true)]
#[case::tag_of_twelve_digits("{commit}", "4f2a9c1e0b7d@sha256:{digest}", true)]
#[case::tag_cut_short("{commit}", "4f2a9c1@sha256:{digest}", true)]
#[case::tag_for_a_machine("4f2a9c1e0b7d", "{commit}-amd64@sha256:{digest}", true)]
#[case::tag_of_another_commit("{commit}", "4f2a9c2@sha256:{digest}", false)]
#[case::date("20261120153000", "20261120153000@sha256:{digest}", true)]
#[case::date_without_a_digest("20261120153000", "20261120153000", true)]
#[case::day_of_the_date("20261120153000", "20261120@sha256:{digest}", false)]
#[case::two_parts(">=2.0.0", "2.1@sha256:{digest}", true)]
#[case::two_parts_alone(">=2.0.0", "2.1", true)]
#[case::one_part(">=2.0.0", "v2@sha256:{digest}", true)]
#[case::one_part_before(">=2.0.0", "v1@sha256:{digest}", false)]
#[case::missing_parts_are_zero(">2.1.0", "2.1@sha256:{digest}", false)]
#[case::prerelease_of_two_parts(">=2.0.0", "2.1-rc.1@sha256:{digest}", true)]
#[case::prerelease_of_the_first(">=2.0.0", "2.0-rc.1@sha256:{digest}", true)]
#[case::flavour(">=2.0.0", "2.1.3-alpine@sha256:{digest}", true)]
#[case::chart_in_a_registry("=6.7.1", "6.7.1_3@sha256:{digest}", true)]
#[case::leading_zeros(">=2026.1.0", "2026.01.15@sha256:{digest}", true)]
#[case::version_in_full("2.1.0", "2.1@sha256:{digest}", true)]
#[case::version_cut_short("2.1", "v2.1.0@sha256:{digest}", true)]
#[case::another_version("2.1", "2.1.1@sha256:{digest}", false)]
#[case::glob("2.1.*", "2.1@sha256:{digest}", true)]
#[case::version_with_a_digest_of_another_kind("v2.1.0@sha1:{commit}", "2.1@sha256:{digest}", true)]
#[case::version_with_another_digest(
    "v2.1.0@4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a4",
    "v2.1.0@sha1:{commit}",
    false
)]
#[case::no_version(">=2.0.0", "main@sha1:{commit}", false)]
#[case::no_name(">=2.0.0", "{commit}", false)]
fn what_denies_covers_whatever_may_mean_the_same(
    #[case] entry: &str,
    #[case] revision: &str,
    #[case] covers: bool,
) {
    let pattern = Pattern::parse(&filled(entry)).unwrap();
    let revision = Revision::parse(&filled(revision)).unwrap();
    assert_eq!(pattern.covers(&revision), covers);
}

/// What may not go out may not go out as a prerelease either; what may has to name those.
#[rstest]
#[case::later(">=2.0.0", "2.1.0-rc.1", false, true)]
#[case::of_the_first(">=2.0.0", "2.0.0-rc.1", false, true)]
#[case::right_before_the_end("<2", "v2.0.0-rc.1", false, true)]
#[case::up_to_the_end(">1.0.0, <=2.0.0", "2.0.0-rc.1", false, true)]
#[case::of_that_one("=2.0.0", "2.0.0-rc.1", false, true)]
#[case::compatible("^1.4", "1.9.0-beta", false, true)]
#[case::next_major("^1.4", "2.0.0-beta", false, false)]
#[case::after_the_end("<2.0.0", "2.0.1-rc.1", false, false)]
#[case::before_the_first(">2.0.0", "2.0.0-rc.1", false, false)]
#[case::outside(">=3, <4", "2.1.0-rc.1", false, false)]
#[case::named(">=2.0.0-rc.2", "2.0.0-rc.3", true, true)]
#[case::before_the_named(">=2.0.0-rc.2", "2.0.0-rc.1", false, true)]
#[case::no_prerelease(">=2.0.0", "2.1.0", true, true)]
#[case::no_version(">=2.0.0", "main", false, false)]
fn prereleases(
    #[case] entry: &str,
    #[case] revision: &str,
    #[case] matches: bool,
    #[case] covers: bool,
) {
    let (entry, revision) = (Pattern::parse(entry), Revision::parse(revision));
    let (entry, revision) = (entry.unwrap(), revision.unwrap());
    assert_eq!(
        (entry.matches(&revision), entry.covers(&revision)),
        (matches, covers)
    );
}

/// What nobody knows the name of is let pass by its digest alone, and held back by every name.
#[rstest]
#[case::the_commit("4f2a9c1e0b7d", "sha1:{commit}", true, true)]
#[case::the_digest("sha256:{digest}", "sha256:{digest}", true, true)]
#[case::another_commit("4f2a9c1e0b7e", "sha1:{commit}", false, false)]
#[case::another_digest("sha256:4f2a9c1e0b7d", "sha256:{digest}", false, false)]
#[case::a_name_with_the_digest("v1@sha1:{commit}", "main@sha1:{commit}", true, true)]
#[case::a_glob_with_the_digest("v*@sha1:{commit}", "sha1:{commit}", true, true)]
#[case::a_name_with_another("v1@sha256:{digest}", "sha1:{commit}", false, true)]
#[case::everything("*", "sha1:{commit}", true, true)]
#[case::version("1.4.9", "v1.4.9@sha1:{commit}", false, true)]
#[case::range(">=1.4.0", "v1.4.9@sha1:{commit}", false, true)]
#[case::branch("main", "main@sha1:{commit}", false, true)]
#[case::glob("s*", "sha1:{commit}", false, true)]
#[case::a_commit_that_may_be_a_tag("4f2a9c1e0b7d", "sha256:{digest}", false, true)]
#[case::a_date_that_may_be_a_tag("20261120153000", "sha1:{commit}", false, true)]
#[case::a_chart_is_its_version(">=1.4.0", "1.4.9", true, true)]
fn names_that_nobody_knows(
    #[case] entry: &str,
    #[case] revision: &str,
    #[case] matches: bool,
    #[case] covers: bool,
) {
    let pattern = Pattern::parse(&filled(entry)).unwrap();
    let revision = Revision::parse(&filled(revision)).unwrap();
    let revision = revision.of_unknown_name();
    assert_eq!(
        (pattern.matches(&revision), pattern.covers(&revision)),
        (matches, covers)
    );
}

#[rstest]
#[case::empty("  ", "is empty")]
#[case::a_short_commit("4f2a9c1", "fewer than 12 digits")]
#[case::a_short_digest("sha1:4f2a", "fewer than 12 digits")]
#[case::no_digest("sha1:main", "is not a digest")]
#[case::no_range(">=one", "not a range of versions")]
#[case::no_glob("release-[", "not a glob")]
fn what_is_none_is_refused(#[case] entry: &str, #[case] problem: &str) {
    let refusal = Pattern::parse(entry).unwrap_err();
    assert!(refusal.contains(problem), "{refusal}");
    assert!(Pattern::parse(&"x".repeat(257)).is_err());
}

#[test]
fn a_number_is_a_name() {
    let build = Revision::parse("1234567").unwrap();
    assert!(Pattern::parse("1234567").unwrap().matches(&build));
}
