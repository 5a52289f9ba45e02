//! Sizes of workloads, of single looks and of whole runs.

use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::delivery::rollout::size::{Amount, Last, Sizes};

fn pair(target_size: Option<u32>, was: &[u32]) -> Pair {
    let strategy = RolloutStrategy::IncreaseFirst;
    Pair::of(target_size, None, was.to_vec(), strategy).unwrap()
}

fn sizes(target: u32, sources: &[u32]) -> PairSizes {
    PairSizes {
        target,
        sources: sources.to_vec(),
    }
}

fn three_three_rest() -> Sizes {
    Sizes::Each {
        before: vec![Amount::Pods(3), Amount::Pods(3)],
        last: Last::Rest,
    }
}

#[rstest]
#[case::nothing_is_made_before_the_first_batch(Some(16), &[11], 0, 0)]
#[case::one_with_pods_completes_the_total(Some(16), &[11], 2, 5)]
#[case::the_total_is_there(None, &[9, 3], 1, 1)]
#[case::never_scaled_down(Some(16), &[11], 9, 9)]
fn a_target_begins(
    #[case] target_size: Option<u32>,
    #[case] was: &[u32],
    #[case] present: u32,
    #[case] expected: u32,
) {
    let present = sizes(present, was);
    assert_eq!(pair(target_size, was).start(&present), expected);
}

#[test]
fn a_total_below_the_sources_is_refused() {
    let strategy = RolloutStrategy::IncreaseFirst;
    let refused = Pair::of(Some(9), None, vec![8, 2], strategy).unwrap_err();
    assert_eq!(refused.field, "spec.rolloutPlan.targetSize");
    assert_eq!(
        refused.problem,
        "9 pods are fewer than the 10 of the sources"
    );
    // A run after one that was abandoned has the total that its claim tells.
    let resumed = Pair::of(None, Some(12), vec![3], strategy).unwrap();
    assert_eq!(resumed.span().unwrap().end(), 12);
    let nothing = Pair::of(None, None, vec![0], strategy).unwrap();
    assert!(nothing.span().is_err());
}

/// A run that is resumed with 9 pods of the new version, in three batches.
#[test]
fn what_is_reached_is_passed() {
    let strategy = RolloutStrategy::IncreaseFirst;
    let pair = Pair::of(None, Some(12), vec![12], strategy).unwrap();
    let (span, present) = (pair.span().unwrap(), sizes(9, &[3]));
    let goals: Vec<u32> = (0..3)
        .map(|index| three_three_rest().goal(span, index))
        .collect();
    assert_eq!(goals, [3, 6, 12]);
    let met = |goal: &u32| pair.is_met(*goal, &present);
    assert_eq!(
        goals.iter().map(met).collect::<Vec<_>>(),
        [true, true, false]
    );
    assert_eq!(pair.sizes(12, &present), sizes(12, &[0]));
}

#[rstest]
#[case(&[4, 4], 6, &[2, 4])]
#[case(&[4, 4], 3, &[0, 3])]
#[case(&[4, 4], 0, &[0, 0])]
#[case(&[1, 4], 9, &[1, 4])]
fn sources_are_emptied_in_their_order(
    #[case] present: &[u32],
    #[case] keep: u64,
    #[case] expected: &[u32],
) {
    assert_eq!(emptied(present, keep), expected);
}

#[rstest]
#[case::a_half_of_decrease_first(&[10], sizes(2, &[6]), &[8])]
#[case::a_target_that_is_gone(&[10], sizes(0, &[4]), &[10])]
#[case::the_last_source_first(&[4, 6], sizes(3, &[0, 2]), &[1, 6])]
#[case::nothing_is_missing(&[10], sizes(6, &[6]), &[6])]
fn the_sources_never_stay_short(
    #[case] was: &[u32],
    #[case] present: PairSizes,
    #[case] expected: &[u32],
) {
    assert_eq!(pair(None, was).settled(0, was, &present).sources, expected);
    // Pods that a greater total has never made are not made by the old version either.
    let greater = pair(Some(100), was).settled(0, was, &present);
    assert_eq!(greater.sources, expected);
}

/// A run may begin in the middle of another one's work. In the end there are as many pods as before it.
#[rstest]
#[case::a_half_of_decrease_first(sizes(6, &[1]), &[4])]
#[case::a_target_that_is_gone(sizes(0, &[4]), &[10])]
fn pods_that_the_target_had_before_are_made_up_for(
    #[case] present: PairSizes,
    #[case] expected: &[u32],
) {
    let pair = pair(Some(10), &[4]);
    assert_eq!(pair.settled(6, &[4], &present).sources, expected);
}

/// The target had 5 pods before the run, and the sources had 6, 4 and none. Of one that is gone nothing is given back.
#[rstest]
#[case::the_last_one_with_pods(&[6, 4, 0], sizes(0, &[6, 4, 0]), &[6, 9, 0])]
#[case::each_first_gets_what_it_had(&[6, 4, 0], sizes(0, &[0, 3, 0]), &[6, 9, 0])]
#[case::one_that_is_here(&[6, 0, 0], sizes(5, &[2, 0, 0]), &[10, 0, 0])]
#[case::nobody(&[0, 0, 0], sizes(5, &[0, 0, 0]), &[0, 0, 0])]
fn a_source_that_had_no_pods_gets_none(
    #[case] had: &[u32],
    #[case] present: PairSizes,
    #[case] expected: &[u32],
) {
    let pair = pair(Some(15), &[6, 4, 0]);
    assert_eq!(pair.settled(5, had, &present).sources, expected);
}

/// The same, and the target has begun with 5 pods and has 9.
#[rstest]
#[case::all_are_here(&[6, 4, 0], 9, sizes(5, &[6, 4, 0]))]
#[case::the_target_is_gone(&[6, 4, 0], 0, sizes(0, &[6, 9, 0]))]
#[case::a_source_is_gone(&[6, 0, 0], 9, sizes(5, &[10, 0, 0]))]
#[case::all_with_pods_are_gone(&[0, 0, 0], 9, sizes(9, &[0, 0, 0]))]
#[case::and_there_are_more_than_before(&[0, 0, 0], 17, sizes(17, &[0, 0, 0]))]
fn a_revert_brings_back_what_was_there(
    #[case] had: &[u32],
    #[case] target: u32,
    #[case] expected: PairSizes,
) {
    let pair = pair(Some(15), &[6, 4, 0]);
    assert_eq!(pair.reverted((5, 5), had, target).0, expected);
}

fn seen(wanted: u32, replicas: u32, available: u32) -> Seen {
    Seen {
        wanted,
        is_observed: true,
        replicas,
        available,
    }
}

/// From 10 to 7 and 3: each look of one batch.
#[rstest]
#[case::begins(seen(0, 0, 0), seen(10, 10, 10), Due::Target, Due::Sources)]
#[case::pods_come(seen(3, 3, 2), seen(10, 10, 10), Due::Pods, Due::Sources)]
#[case::pods_are_there(seen(3, 3, 3), seen(10, 10, 10), Due::Sources, Due::Sources)]
#[case::old_ones_go(seen(3, 3, 3), seen(7, 8, 8), Due::Pods, Due::Pods)]
#[case::old_ones_go_first(seen(0, 0, 0), seen(7, 8, 8), Due::Target, Due::Pods)]
#[case::old_ones_are_gone(seen(0, 0, 0), seen(7, 7, 7), Due::Target, Due::Target)]
#[case::done(seen(3, 3, 3), seen(7, 7, 7), Due::Nothing, Due::Nothing)]
fn one_half_after_the_other(
    #[case] target: Seen,
    #[case] source: Seen,
    #[case] increase: Due,
    #[case] decrease: Due,
) {
    let wanted = sizes(3, &[7]);
    let due = |strategy| {
        let pair = Pair::of(None, None, vec![10], strategy).unwrap();
        pair.due(&wanted, 3, 0, target, &[source])
    };
    assert_eq!(due(RolloutStrategy::IncreaseFirst), increase);
    assert_eq!(due(RolloutStrategy::DecreaseFirst), decrease);
}

#[test]
fn counts_of_an_older_spec_are_waited_for() {
    let (pair, wanted) = (pair(None, &[10]), sizes(3, &[7]));
    let mut target = seen(3, 3, 3);
    target.is_observed = false;
    let due = pair.due(&wanted, 3, 0, target, &[seen(10, 10, 10)]);
    assert_eq!(due, Due::Pods);
    let mut source = seen(7, 7, 7);
    source.is_observed = false;
    assert_eq!(pair.due(&wanted, 3, 0, seen(3, 3, 3), &[source]), Due::Pods);
    // One that need not be available is not waited for.
    assert_eq!(
        pair.due(&wanted, 3, 1, seen(3, 3, 2), &[seen(7, 7, 7)]),
        Due::Nothing
    );
}

#[test]
fn a_partition_only_falls() {
    let in_place = InPlace { replicas: 10 };
    assert_eq!(in_place.partition(3, ARMED), 7);
    assert_eq!(in_place.partition(3, 5), 5);
    assert_eq!(in_place.partition(10, 7), 0);
    assert_eq!(in_place.partition(12, 7), 0);
    assert!(InPlace::is_armed(ARMED));
    assert!(!InPlace::is_armed(10));
}

#[test]
fn a_scaled_workload_goes_one_way() {
    let (up, down) = (Scale { from: 2, to: 12 }, Scale { from: 12, to: 2 });
    assert_eq!([up.replicas(5, 2), up.replicas(5, 7)], [5, 7]);
    assert_eq!([down.replicas(5, 12), down.replicas(5, 3)], [5, 3]);
    assert!(up.is_reached(5, 0, seen(5, 5, 5)) && !up.is_reached(5, 0, seen(5, 5, 4)));
    assert!(up.is_reached(5, 1, seen(5, 5, 4)));
    assert!(down.is_reached(5, 0, seen(5, 5, 0)) && !down.is_reached(5, 0, seen(5, 6, 6)));
}

proptest! {
    /// Batch after batch, whatever the sizes are at its beginning.
    #[test]
    fn a_run_goes_one_way_and_ends_with_all(
        was in prop::collection::vec(0..40_u32, 1..4),
        more in 0..10_u32,
        target in 0..60_u32,
        count in 1..6_u32,
    ) {
        let sum: u32 = was.iter().sum();
        prop_assume!(sum + more > 0);
        let pair = pair(Some(sum + more), &was);
        let (span, batches) = (pair.span().unwrap(), Sizes::Equal(count.try_into().unwrap()));
        let mut present = sizes(target, &was);
        present.target = pair.start(&present);
        for index in 0..batches.count() {
            let next = pair.sizes(batches.goal(span, index), &present);
            prop_assert!(next.target >= present.target);
            prop_assert!(next.old() <= present.old());
            // There are never fewer pods than there were, once both halves are done.
            prop_assert!(u64::from(next.target) + next.old() >= u64::from(sum));
            prop_assert!(pair.is_met(batches.goal(span, index), &next));
            present = next;
        }
        prop_assert!(present.target >= sum + more);
        prop_assert_eq!(present.old(), 0);
    }

    /// Wherever a run ends, the pods are there that were there, as far as any source that had some is still here.
    #[test]
    fn an_end_leaves_as_many_pods_as_there_were(
        was in prop::collection::vec(0..40_u32, 1..4),
        left in prop::collection::vec(0..40_u32, 4),
        here in prop::collection::vec(any::<bool>(), 4),
        target in 0..60_u32,
        target_was in 0..20_u32,
    ) {
        let had = was.iter().zip(here).map(|(was, is_here)| if is_here { *was } else { 0 });
        let had: Vec<u32> = had.collect();
        let sources: Vec<u32> = had.iter().zip(&left).map(|(had, left)| *had.min(left)).collect();
        let sum: u64 = was.iter().map(|size| u64::from(*size)).sum::<u64>() + u64::from(target_was);
        let total = u32::try_from(sum).unwrap();
        let pair = pair(Some(total), &was);
        let settled = pair.settled(target_was, &had, &sizes(target, &sources));
        prop_assert_eq!(settled.target, target);
        let grown = settled.sources.iter().zip(&sources).all(|(after, before)| after >= before);
        prop_assert!(grown);
        let (reverted, is_whole) = pair.reverted((target_was, target_was), &had, target);
        let is_there = had.iter().any(|had| *had > 0) || u64::from(target.min(target_was)) >= sum;
        prop_assert_eq!(is_whole, is_there);
        for end in [settled, reverted] {
            let is_left = u64::from(end.target) + end.old() >= sum.min(u64::from(target));
            prop_assert!(is_left);
            let comes_back = had.iter().any(|had| *had > 0);
            prop_assert!(!comes_back || u64::from(end.target) + end.old() >= sum);
            let is_new = end.sources.iter().zip(&had).any(|(size, had)| *had == 0 && *size > 0);
            prop_assert!(!is_new);
        }
    }
}
