//! What the forge is told of the newest dry commit.

use serde_json::json;

use super::*;
use crate::delivery::pull_request::{Failure, Word};

impl Play {
    /// The forge is told of a dry commit, if it answers.
    pub(super) fn tell(&mut self, Task { post, .. }: Task) {
        let said = post.description.clone();
        self.dry_told.push((post.sha.clone(), post.shown, said));
        let told = match self.forge_works {
            true => Ok(()),
            false => Err(Failure::new(Word::Unanswered, "nobody answers")),
        };
        self.dry_errand = Errand::Over(Box::new((post, told)));
    }
}

fn telling() -> Play {
    let mut play = Play::new();
    play.spec(|spec| spec["dryCommitStatus"] = true.into());
    play.all_healthy();
    play.settle();
    play
}

/// What was told of a commit, in order.
fn told<'p>(play: &'p Play, dry: &str) -> Vec<(Shown, &'p str)> {
    let all = play.dry_told.iter().filter(|(sha, ..)| sha == dry);
    all.map(|(_, shown, said)| (*shown, said.as_str()))
        .collect()
}

#[test]
fn it_is_told_in_how_many_environments_it_is() {
    let mut play = telling();
    let first = play.at("env/dev").unwrap().to_owned();
    assert_eq!(
        told(&play, &first),
        [(Shown::Success, "in 3 of 3 environments")]
    );
    let dry = play.hydrate("v2");
    for branch in play.branches() {
        play.settle();
        play.check(&branch, "health", "success");
    }
    play.settle();
    assert_eq!(
        told(&play, &dry),
        [
            (Shown::Pending, "in 0 of 3 environments"),
            (Shown::Pending, "in 1 of 3 environments"),
            (Shown::Pending, "in 2 of 3 environments"),
            (Shown::Success, "in 3 of 3 environments"),
        ]
    );
    let status = play
        .object
        .status
        .clone()
        .unwrap()
        .dry_commit_status
        .unwrap();
    assert_eq!(status.posted.unwrap().sha, dry);

    // Nothing is told and nothing is written while nothing happens, also after a restart.
    let (writes, said) = (play.writes, play.dry_told.len());
    play.repository.forget();
    play.pass(60);
    play.settle();
    assert_eq!((play.writes, play.dry_told.len()), (writes, said));
}

#[test]
fn an_environment_that_goes_back_takes_the_success_back() {
    let mut play = telling();
    let first = play.at("env/dev").unwrap().to_owned();
    play.repository.push("env/prod", "", "somebody else");
    play.settle();
    assert_eq!(
        told(&play, &first).last(),
        Some(&(Shown::Pending, "in 2 of 3 environments"))
    );
}

#[test]
fn what_fails_is_told_again_and_stands_in_the_status() {
    let mut play = Play::new();
    play.spec(|spec| spec["dryCommitStatus"] = true.into());
    play.all_healthy();
    play.forge_works = false;
    play.settle();
    assert_eq!(play.dry_told.len(), 1);
    let failed = play
        .object
        .status
        .clone()
        .unwrap()
        .dry_commit_status
        .unwrap();
    assert_eq!((failed.attempts, failed.posted), (Some(1), None));
    play.forge_works = true;
    play.settle();
    assert_eq!(play.dry_told.len(), 1, "it is not yet time");
    play.pass(1);
    play.settle();
    assert_eq!(play.dry_told.len(), 2);
    let told = play
        .object
        .status
        .clone()
        .unwrap()
        .dry_commit_status
        .unwrap();
    assert_eq!((told.attempts, told.posted.is_some()), (None, true));
}

#[test]
fn nothing_is_told_unless_somebody_wants_it() {
    let mut play = Play::new();
    play.all_healthy();
    play.settle();
    assert!(play.dry_told.is_empty());
    assert_eq!(play.object.status.clone().unwrap().dry_commit_status, None);
    // Nor while it is suspended, and nothing of it stays once it is not wanted any more.
    play.spec(|spec| {
        spec["dryCommitStatus"] = true.into();
        spec["suspend"] = json!(true);
    });
    play.settle();
    assert!(play.dry_told.is_empty());
    let mut play = telling();
    play.spec(|spec| spec["dryCommitStatus"] = false.into());
    play.settle();
    assert_eq!(play.object.status.unwrap().dry_commit_status, None);
}
