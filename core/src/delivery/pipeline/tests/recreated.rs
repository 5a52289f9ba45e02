//! What becomes of PullRequests whose Pipeline is deleted and created again, or has lost its status.

use rstest::rstest;

use super::*;
use crate::delivery::pull_request::Says;

/// The controller merges 6.1.6 into staging: its pull request is open, and ordered to be merged.
fn play() -> Play {
    let mut play = Play::new(&super::by_pull_request(&json!({"merge": "auto"})));
    play.settle();
    play.runs("dev", "6.1.6");
    play.settle();
    play.forge("staging", PullRequestState::Open);
    play.settle();
    assert!(play.record("staging").order.is_some());
    play
}

/// There is another Pipeline of the same name, and the forge knows this of staging.
fn recreate(play: &mut Play, known: Option<Recalled>) {
    play.pass(1);
    play.object.status = None;
    play.object.metadata.uid = Some("another".to_owned());
    let errand = Errand::Recall("staging".to_owned(), String::new());
    play.errands.insert(errand, Outcome::Recalled(known));
}

/// As the forge says it.
fn open_of(record: &PromotionRecord) -> Recalled {
    Recalled {
        run: record.run,
        revision: record.revision.clone(),
        key: record.key.clone(),
        state: PullRequestState::Open,
        url: None,
        merge: None,
    }
}

/// The forge closes what has to be closed. Returns whether it did.
fn close(play: &mut Play) -> bool {
    let mut closed = false;
    for object in &mut play.pull_requests {
        let status = object.status.get_or_insert_default();
        if object.spec.close.is_some() && !status.state.is_some_and(PullRequestState::is_final) {
            status.state = Some(PullRequestState::Closed);
            closed = true;
        }
    }
    closed
}

fn keys(play: &Play) -> Vec<&str> {
    let all = play.pull_requests.iter();
    all.map(|it| it.spec.about.key.as_str()).collect()
}

/// Whenever the garbage collector deletes the PullRequest of the Pipeline that is gone: its pull request is
/// closed, and a new run opens another.
#[rstest]
fn what_an_earlier_pipeline_has_left_open_is_closed_and_begins_again(
    #[values(0, 1, 2, 3, usize::MAX)] deleted: usize,
    #[values("run", "pairwise")] algorithm: &str,
) {
    let mut play = play();
    play.spec(|spec| spec["algorithm"] = algorithm.into());
    let old = play.record("staging").clone();
    recreate(&mut play, Some(open_of(&old)));
    let mut is_open = true;
    for look in 0..8 {
        if look == deleted {
            play.pull_requests.retain(|it| it.spec.about.key != old.key);
        }
        play.look();
        let of = play.pull_requests.iter();
        let of = of.filter(|it| it.spec.about.key == old.key);
        let mut said = of.filter_map(|it| Says::of(it, &play.object));
        assert_eq!(said.next(), None, "look {look}");
        let others = keys(&play).iter().filter(|it| **it != old.key).count();
        assert!(!is_open || others == 0, "two may be open after look {look}");
        is_open &= !close(&mut play);
    }
    assert!(!is_open);
    let record = play.record("staging");
    assert!(record.run > old.run, "{record:?}");
    assert_eq!(record.phase, Phase::Attempting);
    assert!(keys(&play).contains(&record.key.as_str()));
}

/// Its own close would look at the forge as if people had closed it.
#[test]
fn nothing_that_is_left_is_closed_before_the_forge_has_answered() {
    let mut play = play();
    recreate(&mut play, None);
    play.errands.clear();
    for _ in 0..3 {
        let report = play.look();
        let only_asks = report.acts.iter().all(|it| matches!(it, Act::Recall(_)));
        assert!(only_asks, "{:?}", report.acts);
    }
    assert!(!close(&mut play));
}

/// A process without the token is told nothing by the forge: what is still there is closed first all the same.
#[test]
fn what_is_left_is_closed_first_also_where_nobody_asks_the_forge() {
    for state in [PullRequestState::Pending, PullRequestState::Open] {
        let mut play = play();
        play.forge("staging", state);
        let old = play.record("staging").clone();
        recreate(&mut play, None);
        play.settle();
        assert_eq!(play.state("staging"), EnvironmentState::Closing);
        assert_eq!(keys(&play), [&old.key]);
        assert!(close(&mut play));
        play.settle();
        assert!(play.record("staging").run > old.run);
        assert_eq!(play.phase("staging"), Phase::Attempting);
    }
}

/// It promotes in another way: what the earlier one has opened is closed, and waited for.
#[test]
fn a_pipeline_with_another_spec_closes_what_is_left() {
    let mut play = play();
    let old = play.record("staging").clone();
    recreate(&mut play, Some(open_of(&old)));
    let mut promotion = super::by_pull_request(&json!({"paths": ["staging/podinfo.yaml"]}));
    promotion["manual"] = true.into();
    play.spec(|spec| spec["promotion"] = promotion);
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Closing);
    assert!(close(&mut play));
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Unapproved);
    assert!(play.record("staging").run > old.run);
}

/// What the forge says to have ended has ended, whatever is left of it.
#[rstest]
#[case::merged(PullRequestState::Merged, Phase::Succeeded)]
#[case::closed(PullRequestState::Closed, Phase::Abandoned)]
fn what_was_merged_or_closed_meanwhile_is_not_promoted_again(
    #[case] state: PullRequestState,
    #[case] phase: Phase,
) {
    let mut play = play();
    let old = play.record("staging").clone();
    let known = Recalled {
        state,
        ..open_of(&old)
    };
    recreate(&mut play, Some(known));
    play.settle();
    assert_eq!(play.phase("staging"), phase);
    play.forge("staging", state);
    play.settle();
    play.pull_requests.clear();
    play.settle();
    assert_eq!(
        (play.phase("staging"), play.record("staging").run),
        (phase, old.run)
    );
    assert_eq!(keys(&play), [""; 0]);
}

/// `kubectl delete --cascade=orphan` keeps the objects, a restore may leave out their owners: they go on.
#[test]
fn one_without_an_owner_goes_on_and_gets_one() {
    let mut play = play();
    let old = play.record("staging").clone();
    recreate(&mut play, Some(open_of(&old)));
    play.pull_requests[0].metadata.owner_references = None;
    play.settle();
    let record = play.record("staging");
    assert_eq!((record.run, &record.key), (old.run, &old.key));
    assert_eq!(record.phase, Phase::Created);
    assert!(Says::of(&play.pull_requests[0], &play.object).is_some());
    let owners = play.pull_requests[0].metadata.owner_references.as_ref();
    let owners: Vec<_> = owners.into_iter().flatten().map(|it| &*it.uid).collect();
    assert_eq!(owners, ["another"]);
    assert_eq!(play.look().acts, []);
}

/// The status is lost before it was opened. Nobody knows who made the object: people and gates are asked again.
#[test]
fn what_is_not_open_yet_asks_people_and_gates_again() {
    let mut promotion = super::by_pull_request(&json!({}));
    promotion["manual"] = true.into();
    let mut play = play();
    let run = play.record("staging").run;
    for suspend in [false, true] {
        play.spec(|spec| spec["promotion"] = promotion.clone());
        let object = &mut play.pull_requests[0];
        (object.status, object.spec.suspend) = (None, suspend);
        let says = |play: &Play| Says::of(&play.pull_requests[0], &play.object);
        play.votes.all.clear();
        play.object.status = None;
        play.gate("staging", false);
        play.settle();
        assert_eq!(play.state("staging"), EnvironmentState::Unapproved);
        assert_eq!((play.record("staging").run, says(&play)), (run, None));
        play.spec(|spec| spec["promotion"]["manual"] = false.into());
        play.settle();
        assert_eq!(play.state("staging"), EnvironmentState::GatesClosed);
        assert_eq!(says(&play), None);
        play.gate("staging", true);
        play.settle();
        assert!(says(&play).is_some(), "{:?}", play.record("staging"));
        let object = &play.pull_requests[0];
        assert_eq!((play.pull_requests.len(), object.spec.suspend), (1, false));
    }
}

/// The controller has given it up: that is no word of people.
#[rstest]
fn what_had_to_be_closed_before_the_status_was_lost_begins_again(
    #[values(
        PullRequestState::Pending,
        PullRequestState::Open,
        PullRequestState::Closed
    )]
    state: PullRequestState,
) {
    let mut play = play();
    let old = play.record("staging").clone();
    play.forge("staging", state);
    play.pull_requests[0].spec.close = Some("another promotion takes its place".to_owned());
    play.object.status = None;
    play.settle();
    assert_eq!(Says::of(&play.pull_requests[0], &play.object), None);
    close(&mut play);
    play.settle();
    assert!(play.record("staging").run > old.run);
    assert_eq!(play.phase("staging"), Phase::Attempting);
}
