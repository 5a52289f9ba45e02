//! Where environments go back to, who may stop that, and what does not return.

use rstest::rstest;
use sluice_crds::GatePolicy;
use sluice_crds::promotion_strategy::Arrival;
use sluice_crds::revert_commit::RevertPhase;

use super::reverts::{arrival, broken, phase, revert};
use super::*;

/// Nobody remembers that it was healthy: the commit of the branch is named, too.
#[test]
fn a_destination_may_be_given() {
    let (mut play, first, _) = broken(&json!({}));
    let record = &mut play.object.status.as_mut().unwrap().environments[0];
    let known = std::mem::take(&mut record.last_healthy);
    let mut one = revert(&play, "back", &first);
    play.reverts.push(one.clone());
    play.settle();
    assert_eq!(phase(&play, "back").1, "DestinationUnknown");
    one.spec.hydrated_sha = Some(known[0].hydrated_sha.clone());
    play.reverts = vec![one];
    play.settle();
    assert_eq!(phase(&play, "back").0, RevertPhase::Merged);
    assert_eq!(arrival(&play), Some(Arrival::Revert));
    assert_eq!(play.at("env/prod"), Some(first.as_str()));
}

#[test]
fn who_is_there_already_goes_nowhere() {
    let (mut play, _, second) = broken(&json!({}));
    play.check("env/prod", "health", "success");
    play.settle();
    let (merges, opened) = (play.merges.len(), play.pull_requests.len());
    let one = revert(&play, "back", &second);
    play.reverts.push(one);
    play.settle();
    assert_eq!(
        phase(&play, "back"),
        (RevertPhase::Done, "AlreadyThere".to_owned())
    );
    assert_eq!(
        (play.merges.len(), play.pull_requests.len()),
        (merges, opened)
    );
    assert_eq!(play.environment("env/prod").held, []);
    // Nothing is held: what comes next is merged.
    play.hydrate("v3");
    play.settle();
    assert_eq!(play.merges.len(), merges + 1);
}

/// The environment goes back from the second commit. What is proposed then?
#[rstest]
#[case::older(|play: &mut Play, first: &str| drop(play.propose("env/prod", first, "v1 again")), false)]
#[case::the_same_again(|play: &mut Play, _: &str| {
    let second = play.repository.head("main");
    play.propose("env/prod", &second, "v2 again");
}, false)]
#[case::newer(|play: &mut Play, _: &str| drop(play.hydrate("v3")), false)]
#[case::a_note_of_a_fix(|play: &mut Play, _: &str| {
    let fix = play.repository.commit_dry("fix");
    play.repository.note("env/prod-next", &fix);
    play.reverts[0].spec.fixed_by = Some(fix);
}, false)]
#[case::before_the_fix(|play: &mut Play, _: &str| {
    play.hydrate("v3");
    let fix = play.repository.commit_dry("fix");
    play.reverts[0].spec.fixed_by = Some(fix);
}, false)]
#[case::the_fix(|play: &mut Play, _: &str| play.reverts[0].spec.fixed_by = Some(play.hydrate("fix")), true)]
#[case::after_the_fix(|play: &mut Play, _: &str| {
    play.reverts[0].spec.fixed_by = Some(play.repository.commit_dry("fix"));
    play.hydrate("v4");
}, true)]
fn what_was_taken_back_comes_with_its_fix_alone(
    #[case] proposes: fn(&mut Play, &str),
    #[case] passes: bool,
) {
    let (mut play, first, _) = broken(&json!({}));
    let one = revert(&play, "back", &first);
    play.reverts.push(one);
    play.settle();
    let merges = play.merges.len();
    proposes(&mut play, &first);
    play.settle();
    assert_eq!(play.merges.len() > merges, passes);
    let is_held = play.reasons("env/prod").contains(&"Held");
    assert_eq!(is_held, !passes, "{:?}", play.reasons("env/prod"));
}

/// A freeze holds back what goes forward, and what goes back only if it says so.
#[rstest]
#[case::of_everything(json!(null), false)]
#[case::of_strategies(json!(["PromotionStrategy"]), false)]
#[case::of_reverts(json!(["PromotionStrategy", "RevertCommit"]), true)]
fn a_freeze_stops_the_way_back_only_if_it_names_it(#[case] kinds: Value, #[case] stops: bool) {
    let (mut play, first, _) = broken(&json!({}));
    let mut policy = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GatePolicy", "metadata": {"name": "freeze"},
        "spec": {"gates": {"refs": [{"name": "office", "namespace": "apps"}]}},
    });
    if !kinds.is_null() {
        policy["spec"]["kinds"] = kinds;
    }
    let policy: GatePolicy = serde_json::from_value(policy).unwrap();
    play.world
        .policies
        .insert("freeze".to_owned(), Ok(Arc::new(policy)));
    play.open.insert("office".to_owned(), false);
    let merges = play.merges.len();
    play.hydrate("v3");
    play.settle();
    assert_eq!(play.reasons("env/prod"), ["GateClosed"]);
    let one = revert(&play, "back", &first);
    play.reverts.push(one);
    play.settle();
    assert_eq!(play.merges.len() == merges, stops);
    assert_eq!(play.at("env/prod") == Some(first.as_str()), !stops);
}
