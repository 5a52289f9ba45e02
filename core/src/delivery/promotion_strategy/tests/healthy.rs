//! Which dry commits an environment was healthy with.

use super::*;

/// One environment with two checks.
fn alone() -> Play {
    let mut play = Play::with(&json!({
        "repoRef": {"name": "shop"},
        "activeCommitStatuses": [{"key": "health"}, {"key": "load"}],
        "environments": [{"branch": "prod"}],
    }));
    play.settle();
    play
}

impl Play {
    /// What is merged is judged so by both checks.
    fn get(&mut self, name: &str, [health, load]: [&str; 2]) -> String {
        let dry = self.hydrate(name);
        self.settle();
        assert_eq!(self.at("prod"), Some(dry.as_str()));
        self.check("prod", "health", health);
        self.check("prod", "load", load);
        self.settle();
        dry
    }

    fn healthy(&self) -> Vec<&str> {
        let all = self.environment("prod").last_healthy.iter();
        all.map(|it| it.dry_sha.as_str()).collect()
    }
}

const WELL: [&str; 2] = ["success", "success"];

#[test]
fn the_five_newest_are_known_each_once() {
    let mut play = alone();
    let mut all: Vec<_> = (2..8).map(|n| play.get(&format!("v{n}"), WELL)).collect();
    all.reverse();
    assert_eq!(play.healthy(), all[..5]);
    let newest = &play.environment("prod").last_healthy[0];
    assert_eq!(newest.hydrated_sha, play.repository.head("prod"));
    // The last one is hydrated again: it is one dry commit, and the hydrated one is the newest.
    play.propose("prod", &all[0], "again");
    play.settle();
    play.check("prod", "health", "success");
    play.check("prod", "load", "success");
    play.pass(1);
    play.settle();
    assert_eq!(play.healthy(), all[..5]);
    let newest = &play.environment("prod").last_healthy[0];
    assert_eq!(newest.hydrated_sha, play.repository.head("prod"));
    assert_eq!(newest.time.0, play.now);
}

#[test]
fn only_what_passes_all_checks_was_healthy() {
    let mut play = alone();
    let good = play.get("v2", WELL);
    for (n, phases) in [
        ["success", "failure"],
        ["pending", "success"],
        ["cancelled", "queued"],
        ["in_progress", "success"],
    ]
    .into_iter()
    .enumerate()
    {
        play.get(&format!("bad{n}"), phases);
        assert_eq!(play.healthy(), [&good], "{phases:?}");
    }
    // What fails later was healthy once.
    play.check("prod", "health", "success");
    play.settle();
    play.check("prod", "health", "failure");
    play.settle();
    assert_eq!(play.healthy().len(), 2);
    // What somebody else has pushed is none to go back to, whatever its checks say.
    let dry = play.repository.commit_dry("v9");
    play.repository.push("prod", &dry, "foreign");
    play.check("prod", "health", "success");
    play.check("prod", "load", "success");
    play.settle();
    assert_eq!(play.healthy().len(), 2);
}
