//! What hydrators say of commits that change nothing in an environment.

use rstest::rstest;

use super::*;

const ALL: [&str; 3] = ["env/dev", "env/test", "env/prod"];

/// All are healthy with the first commit. Into some of them nothing is merged before the gate opens.
pub(super) fn held_at(held: &str) -> Play {
    let mut play = Play::new();
    play.spec(|spec| {
        for (place, name) in ["dev", "test", "prod"].into_iter().enumerate() {
            let is_held = held.split_whitespace().any(|it| it == name);
            let gates = is_held.then(|| json!({"refs": [{"name": "office"}]}));
            spec["environments"][place]["gates"] = json!(gates);
        }
    });
    play.open.insert("office".to_owned(), false);
    play.all_healthy();
    play.settle();
    play
}

impl Play {
    /// A dry commit that changes something in some environments, as in `dev prod`, and nothing in the others.
    pub(super) fn hydrate_some(&mut self, name: &str, changed: &str) -> String {
        let dry = self.repository.commit_dry(name);
        for branch in self.branches() {
            let is_changed = |it: &str| branch.strip_prefix("env/") == Some(it) || branch == it;
            match changed.split_whitespace().any(is_changed) {
                true => drop(self.propose(&branch, &dry, name)),
                false => self.repository.note(&format!("{branch}-next"), &dry),
            }
        }
        dry
    }

    /// Looks until nothing changes, while whatever is merged is healthy.
    fn settle_healthy(&mut self) {
        for _ in 0..6 {
            self.all_healthy();
            self.settle();
        }
    }
}

/// Whatever changes where, and whatever waits meanwhile: in the end all have the newest, and nobody was told
/// to repair something.
#[rstest]
#[case::prod_alone("", "prod")]
#[case::nothing_on_what_waits_in_prod("prod", "dev test prod,")]
#[case::nothing_on_what_waits_in_dev("dev", "dev,")]
#[case::nothing_on_what_waits_everywhere("dev", "dev test prod,,")]
#[case::dev_on_what_waits_in_test("test", "test,dev")]
#[case::dev_and_nothing_on_what_waits_in_test("test", "test,dev,")]
#[case::prod_and_nothing_on_what_waits_in_test("test", "test,prod,")]
#[case::one_after_another("dev", "dev,test,prod")]
#[case::one_before_another("prod", "prod,test,dev")]
#[case::those_around_what_waits("test", "prod,test,dev")]
#[case::some_twice("test prod", "prod,test dev,test")]
fn in_the_end_all_have_the_newest(#[case] held: &str, #[case] commits: &str) {
    let mut play = held_at(held);
    let mut newest = String::new();
    for (n, changed) in commits.split(',').enumerate() {
        newest = play.hydrate_some(&format!("v{n}"), changed);
        play.settle_healthy();
        assert_eq!(play.says("Ready").unwrap(), "True ReconciliationSucceeded");
    }
    play.open.insert("office".to_owned(), true);
    play.settle_healthy();
    // What is written of notes is read with something else that is proposed.
    play.hydrate_some("last", "dev test prod");
    play.settle();
    for branch in ALL {
        let record = play.environment(branch).active.as_ref().unwrap();
        let is_it = record.dry_sha.as_ref() == Some(&newest);
        assert!(
            is_it || branch == "env/dev",
            "{branch} {:?}",
            play.reasons(branch)
        );
    }
    play.settle_healthy();
    for branch in ALL {
        assert_eq!(play.state(branch), EnvironmentState::UpToDate, "{branch}");
    }
}

/// As in issue 967 of the GitOps Promoter.
#[test]
fn nothing_on_top_leaves_what_waits_as_it_is() {
    let mut play = held_at("dev");
    play.hydrate_some("v2", "dev");
    play.settle();
    let before = play.pull_request("env/dev").clone();
    let third = play.hydrate_some("v3", "");
    play.settle();
    assert_eq!(play.reasons("env/dev"), ["GateClosed"]);
    assert_eq!(play.pull_requests, [before]);
    assert_eq!(play.says("Blocked").as_deref(), Some("True GateClosed"));
    play.open.insert("office".to_owned(), true);
    play.settle();
    assert_eq!(play.merges.len(), 1);
    assert_eq!(play.at("env/dev"), Some(third.as_str()));
}

/// As in issue 1319 of the GitOps Promoter: what stands for the newest commit is not proved by that.
#[test]
fn a_newer_note_is_no_check_of_what_was_merged() {
    let mut play = held_at("");
    play.hydrate("v2");
    play.settle();
    let third = play.hydrate_some("v3", "");
    for (phase, reason) in [
        (None, "CheckMissing"),
        (Some("pending"), "CheckPending"),
        (Some("failure"), "CheckFailed"),
    ] {
        if let Some(phase) = phase {
            play.check("env/dev", "health", phase);
        }
        play.settle();
        assert_eq!(play.at("env/dev"), Some(third.as_str()));
        assert_ne!(play.state("env/dev"), EnvironmentState::UpToDate);
        assert_eq!(play.reasons("env/test"), [reason]);
        assert_eq!(play.merges.len(), 1);
    }
    play.check("env/dev", "health", "success");
    play.settle();
    assert_eq!(play.merges.len(), 2);
}

/// Who needs a note waits, and nothing goes back to where it was before one.
#[test]
fn what_notes_have_said_stays_while_nobody_knows_them() {
    let mut play = held_at("prod");
    let second = play.hydrate_some("v2", "prod");
    play.settle();
    let waits = ["GateClosed"];
    let is_at = |play: &Play, dry: &str| play.at("env/dev") == Some(dry);
    assert!(is_at(&play, &second));
    assert_eq!(play.reasons("env/prod"), waits);
    play.repository.hidden_notes = Some("there are too many".to_owned());
    play.settle();
    assert!(is_at(&play, &second));
    assert_eq!(play.reasons("env/prod"), waits);
    let third = play.hydrate_some("v3", "prod");
    play.open.insert("office".to_owned(), true);
    play.settle_healthy();
    assert!(is_at(&play, &second));
    assert_eq!(play.reasons("env/prod"), ["WaitsForEnvironment"]);
    assert_eq!(play.merges.len(), 0);
    play.repository.hidden_notes = None;
    play.settle_healthy();
    assert!(is_at(&play, &third));
    assert_eq!(play.at("env/prod"), Some(third.as_str()));
}

#[test]
fn what_a_note_has_said_stays_when_something_else_is_proposed() {
    let mut play = held_at("test");
    play.spec(|spec| spec["environments"][0]["autoMerge"] = json!(false));
    play.hydrate_some("v2", "test");
    play.settle();
    // The commit that has the note is not the newest of its branch any more.
    play.hydrate_some("v3", "dev");
    play.settle();
    assert_eq!(play.reasons("env/dev"), ["WaitsForPerson"]);
    assert_eq!(play.reasons("env/test"), ["GateClosed"]);
    play.open.insert("office".to_owned(), true);
    play.settle();
    assert_eq!(play.merges.len(), 1);
    assert_eq!(play.merges[0].0, "env/test");
}

#[rstest]
#[case::what_it_was_made_from(|play: &mut Play| play.repository.head("main"))]
#[case::something_older(|play: &mut Play| play.environment("env/prod").last_healthy[0].dry_sha.clone())]
#[case::something_beside(|play: &mut Play| {
    let main = play.repository.head("main");
    let first = play.environment("env/prod").last_healthy[0].dry_sha.clone();
    play.repository.set("main", &first);
    let beside = play.repository.commit_dry("beside");
    play.repository.set("main", &main);
    beside
})]
#[case::no_commit_of_the_repository(|_: &mut Play| "d".repeat(40))]
#[case::no_commit(|_: &mut Play| "HEAD".to_owned())]
fn a_note_that_names_nothing_newer_says_nothing(#[case] says: fn(&mut Play) -> String) {
    let mut play = held_at("prod");
    let second = play.hydrate_some("v2", "dev test prod");
    play.settle();
    let said = says(&mut play);
    play.repository.note("env/dev-next", &said);
    play.repository.note("env/test-next", &said);
    play.settle_healthy();
    assert_eq!(play.at("env/dev"), Some(second.as_str()));
    assert_eq!(play.at("env/test"), Some(second.as_str()));
    assert_eq!(play.reasons("env/prod"), ["GateClosed"]);
}

/// What has no note of its own waits for what it was made from.
#[test]
fn what_stands_for_a_commit_by_its_note_proves_nothing_of_those_before_it() {
    let mut play = held_at("dev");
    play.hydrate_some("v2", "dev prod");
    play.settle();
    assert_eq!(play.reasons("env/prod"), ["WaitsForEnvironment"]);
    assert!(play.message("env/prod").starts_with("env/dev is at"));
    play.open.insert("office".to_owned(), true);
    play.settle();
    // It was merged into dev, and is not proved there.
    assert_eq!(play.reasons("env/prod"), ["CheckMissing"]);
    play.check("env/dev", "health", "failure");
    play.settle();
    assert_eq!(play.reasons("env/prod"), ["CheckFailed"]);
    play.check("env/dev", "health", "success");
    play.settle();
    let merged = play.merges.iter().map(|(branch, _)| branch.as_str());
    assert_eq!(merged.collect::<Vec<_>>(), ["env/dev", "env/prod"]);
}

/// Nothing moves backwards where what is proposed stands for what a later environment was made from, or where
/// that has nothing newer.
#[test]
fn a_later_environment_is_ahead_by_its_files_alone() {
    let mut play = held_at("dev");
    play.hydrate_some("v2", "dev");
    // The note of test comes before that of dev.
    let third = play.repository.commit_dry("v3");
    play.repository.note("env/test-next", &third);
    play.settle();
    assert_eq!(play.reasons("env/dev"), ["GateClosed"]);
    // A person merges what only test has, past dev.
    let fourth = play.hydrate_some("v4", "test");
    play.settle();
    assert_eq!(play.reasons("env/test"), ["WaitsForEnvironment"]);
    play.merge_by_person("env/test");
    play.settle();
    assert_eq!(play.at("env/test"), Some(fourth.as_str()));
    assert_eq!(play.reasons("env/dev"), ["GateClosed"]);
}
