//! The first two rules of the proposal, in rows and in graphs.

use rstest::rstest;

use super::notes::held_at;
use super::*;
use crate::delivery::promotion_strategy::evidence::{Answer, Heads, Question, Sight};

/// A strategy of these environments, such as `dev; eu < dev; lab <`: without `<` each is after the one above.
/// All are healthy with the first commit.
fn in_a_graph(graph: &str) -> Play {
    let environments = graph.split("; ").map(|one| match one.split_once('<') {
        Some((branch, after)) => {
            let after: Vec<_> = after.split_whitespace().collect();
            json!({"branch": branch.trim(), "after": after})
        }
        None => json!({"branch": one}),
    });
    let mut play = Play::with(&json!({
        "repoRef": {"name": "shop"}, "activeCommitStatuses": [{"key": "health"}],
        "environments": environments.collect::<Vec<_>>(),
    }));
    play.all_healthy();
    play.settle();
    play
}

/// Each step is an environment that becomes healthy, and those that get the commit by that.
#[rstest]
#[case::three_in_a_row("dev; test; prod", "start:dev dev:test test:prod prod:")]
#[case::five_in_a_row("a; b; c; d; e", "start:a a:b b:c c:d d:e e:")]
#[case::a_diamond(
    "dev; eu < dev; us < dev; prod < eu us",
    "start:dev dev:eu,us us: eu:prod prod:"
)]
#[case::two_beginnings("a; b <; c < b a", "start:a,b a: b:c")]
#[case::three_meet("a; b <; c <; d < a b c; e", "start:a,b,c c: b: a:d d:e")]
#[case::a_long_way_and_a_short_one("a; b; c; d < a c; e < a", "start:a a:b,e b:c c:d e:")]
#[case::side_by_side("a; b <; c <", "start:a,b,c")]
fn each_gets_it_once_all_before_have_proved_it(#[case] graph: &str, #[case] steps: &str) {
    let mut play = in_a_graph(graph);
    let dry = play.hydrate("v2");
    for step in steps.split(' ') {
        let (healthy, gets) = step.split_once(':').unwrap();
        let before = play.merges.len();
        if healthy != "start" {
            play.check(healthy, "health", "failure");
            play.settle();
            assert_eq!(play.merges.len(), before, "{step}");
            play.check(healthy, "health", "success");
        }
        play.settle();
        let got = play.merges[before..].iter();
        let got: Vec<_> = got.map(|(branch, _)| branch.as_str()).collect();
        assert_eq!(got.join(","), gets, "{step}");
    }
    for branch in play.branches() {
        assert_eq!(play.at(&branch), Some(dry.as_str()), "{branch}");
    }
}

#[test]
fn what_stands_beside_moves_nothing_backwards() {
    let mut play = in_a_graph("dev; eu < dev; us < dev");
    let second = play.hydrate("v2");
    play.settle();
    // Somebody has brought a newer commit to us, by hand.
    let third = play.repository.commit_dry("v3");
    play.propose("us", &third, "v3");
    play.settle();
    play.merge_by_person("us");
    play.check("dev", "health", "success");
    play.settle();
    assert_eq!(play.at("eu"), Some(second.as_str()));
    assert_eq!(play.at("us"), Some(third.as_str()));
    // But dev has to come after it.
    play.propose("dev", &second, "v2 again");
    play.settle();
    assert_eq!(play.reason("dev"), Some("MovesBackwards"));
}

#[test]
fn the_same_commit_may_be_hydrated_again() {
    let mut play = held_at("");
    let second = play.hydrate("v2");
    play.settle();
    play.propose("env/dev", &second, "v2 again");
    play.settle();
    let merged: Vec<_> = play.merges.iter().map(|(branch, _)| branch).collect();
    assert_eq!(merged, ["env/dev", "env/dev"]);
    assert_eq!(play.at("env/dev"), Some(second.as_str()));
}

/// The forge says of no two commits which comes first.
struct Forgetful(Repository);

impl Evidence for Forgetful {
    fn heads(&self) -> Sight<Arc<Heads>> {
        self.0.heads()
    }

    fn read_by(&self) -> Option<String> {
        Some("access".to_owned())
    }

    fn listed_at(&self) -> Option<Timestamp> {
        self.0.listed_at()
    }

    fn is_list_failing(&self) -> bool {
        self.0.is_list_failing()
    }

    fn answer(&self, question: &Question) -> Sight<Answer> {
        match question {
            Question::Contains { .. } => Sight::Failed("the forge answers 500".to_owned()),
            _ => self.0.answer(question),
        }
    }
}

#[test]
fn what_cannot_be_told_to_come_later_waits() {
    let mut play = held_at("dev");
    play.hydrate("v2");
    play.settle();
    let mut given = play.given();
    given.evidence = Arc::new(Forgetful(play.repository.clone()));
    let status = report(consider(given), &[]).status;
    let reasons = |place: usize| {
        let waits = status.environments[place].waits.iter();
        waits.map(|it| it.reason.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(reasons(0), ["AncestryUnknown"]);
    assert_eq!(reasons(1), ["AncestryUnknown", "AncestryUnknown"]);
}
