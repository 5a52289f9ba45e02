//! The sizes of batches: KubeVela's own cases, and what holds of all of them.

use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn amount(text: &str) -> Amount {
    match text.strip_suffix('%') {
        Some(percent) => Amount::Percent(Percent::new(percent.parse().unwrap()).unwrap()),
        None => Amount::Pods(text.parse().unwrap()),
    }
}

/// Sizes as a plan writes them: `1 20% 50% 2`. A `-` is a last batch without a size.
fn each(texts: &str) -> Sizes {
    let mut texts: Vec<&str> = texts.split_whitespace().collect();
    let last = match texts.pop().unwrap() {
        text if text == "-" || text.ends_with('%') => Last::Rest,
        text => Last::Pods(text.parse().unwrap()),
    };
    Sizes::Each {
        before: texts.into_iter().map(amount).collect(),
        last,
    }
}

fn equal(count: u32) -> Sizes {
    Sizes::Equal(NonZeroU32::new(count).unwrap())
}

fn update(to: u32) -> Span {
    Span::Update {
        to: NonZeroU32::new(to).unwrap(),
    }
}

fn goals(sizes: &Sizes, span: Span) -> Vec<u32> {
    (0..sizes.count())
        .map(|index| sizes.goal(span, index))
        .collect()
}

const MIXED: &str = "1 20% 50% 2";
const RELAXED: &str = "20% 2 2 50%";
const NUMBERS: &str = "1 2 4 3";

/// 157: a new version, up to all of its pods.
#[rstest]
#[case::mixed(MIXED, 10, &[1, 3, 8, 10])]
#[case::relaxed(RELAXED, 10, &[2, 4, 6, 10])]
#[case::numbers(NUMBERS, 10, &[1, 3, 7, 10])]
#[case::the_story("1 25% 50% -", 20, &[1, 6, 16, 20])]
#[case::one("-", 7, &[7])]
#[case::rounded_up("10% 10% -", 4, &[1, 2, 4])]
#[case::no_percent("0% 50% -", 5, &[0, 3, 5])]
fn a_batch_counts_on_from_the_one_before(
    #[case] sizes: &str,
    #[case] to: u32,
    #[case] expected: &[u32],
) {
    let sizes = each(sizes);
    assert_eq!(sizes.fit(update(to)), Ok(()));
    assert_eq!(goals(&sizes, update(to)), expected);
}

/// 158: the same where one workload is scaled. Percentages are of the difference.
#[rstest]
#[case::up(MIXED, 2, 12, &[3, 5, 10, 12])]
#[case::up_from_three(MIXED, 3, 13, &[4, 6, 11, 13])]
#[case::up_from_four(MIXED, 4, 14, &[5, 7, 12, 14])]
#[case::up_from_five(MIXED, 5, 15, &[6, 8, 13, 15])]
#[case::down(MIXED, 12, 2, &[11, 9, 4, 2])]
#[case::down_to_the_rest("1 25% -", 12, 4, &[11, 9, 4])]
#[case::down_to_none("2 -", 5, 0, &[3, 0])]
#[case::up_from_none(NUMBERS, 0, 10, &[1, 3, 7, 10])]
#[case::nothing("0 0% -", 5, 5, &[5, 5, 5])]
fn a_scaled_workload_moves_by_the_same_sizes(
    #[case] sizes: &str,
    #[case] from: u32,
    #[case] to: u32,
    #[case] expected: &[u32],
) {
    let (sizes, span) = (each(sizes), Span::Scale { from, to });
    assert_eq!(sizes.fit(span), Ok(()));
    assert_eq!(goals(&sizes, span), expected);
}

/// 159: behind the last batch there is nothing more to do.
#[rstest]
#[case(update(10), 10)]
#[case(Span::Scale { from: 12, to: 2 }, 2)]
#[case(Span::Scale { from: 2, to: 12 }, 12)]
fn past_the_end_is_the_end(#[case] span: Span, #[case] expected: u32) {
    for sizes in [each(MIXED), each(RELAXED), equal(4)] {
        for index in [3, 4, 29, usize::MAX] {
            assert_eq!(sizes.goal(span, index), expected, "{sizes:?} {index}");
        }
    }
}

/// 160: a percentage of nothing is nothing.
#[test]
fn a_percentage_of_nothing_is_nothing() {
    for percent in [0, 1, 50, 100] {
        let percent = Amount::Percent(Percent::new(percent).unwrap());
        assert_eq!(percent.of(0), 0);
    }
    assert_eq!(Percent::new(101), None);
    assert_eq!(Amount::Percent(Percent(100)).of(u32::MAX), u32::MAX);
}

/// 161: whether a plan fits the pods that there are.
#[rstest]
#[case::exactly(NUMBERS, update(10), "")]
#[case::too_few_in_the_last(
    "1 2 4 2",
    update(10),
    "[3].replicas: all batches together move 9 pods, and there are 10 to move; write 3, or leave"
)]
#[case::too_many_in_the_last(
    "1 2 4 4",
    update(10),
    "[3].replicas: all batches together move 11 pods, and there are 10 to move; write 3, or leave"
)]
#[case::none_left(
    "5 5 -",
    update(10),
    "[1].replicas: the batches up to this one move 10 pods of 10, and leave none to the last one; write smaller"
)]
#[case::too_many_before(
    "5 6 -",
    update(10),
    "[1].replicas: the batches up to this one move 11 pods of 10"
)]
#[case::too_many_at_once(
    "20 -",
    update(10),
    "[0].replicas: the batches up to this one move 20 pods of 10"
)]
#[case::all_in_percent(
    "100% -",
    update(3),
    "[0].replicas: the batches up to this one move 3 pods of 3"
)]
#[case::rounded_up_to_all(
    "50% 50% 50% -",
    update(3),
    "[1].replicas: the batches up to this one move 4 pods of 3"
)]
#[case::a_last_percentage_is_the_rest("20% 90%", update(10), "")]
#[case::scaled_exactly("3 7", Span::Scale { from: 12, to: 2 }, "")]
#[case::scaled_too_far("3 8", Span::Scale { from: 12, to: 2 }, "[1].replicas: all batches together move 11 pods, and there are 10")]
#[case::scaled_and_none_left("10 -", Span::Scale { from: 12, to: 2 }, "[0].replicas: the batches up to this one move 10 pods of 10")]
#[case::nothing_to_move("50% -", Span::Scale { from: 5, to: 5 }, "")]
#[case::nothing_to_move_and_a_number("1 -", Span::Scale { from: 5, to: 5 }, "[0].replicas: the batches up to this one move 1 pods of 0")]
#[case::nothing_to_move_and_a_last_number("0 1", Span::Scale { from: 5, to: 5 }, "[1].replicas: all batches together move 1 pods, and there are 0")]
#[case::no_sum_is_too_great(
    "2147483647 2147483647 2147483647 -",
    update(10),
    "[0].replicas: the batches up to this one move 2147483647 pods of 10"
)]
fn a_plan_fits_or_says_where_it_does_not(
    #[case] sizes: &str,
    #[case] span: Span,
    #[case] said: &str,
) {
    let found = each(sizes).fit(span);
    let found = found.err().map(|it| it.to_string()).unwrap_or_default();
    let expected = match said {
        "" => String::new(),
        said => format!("spec.rolloutPlan.rolloutBatches{said}"),
    };
    assert!(found.starts_with(&expected), "{found}");
    assert_eq!(found.is_empty(), said.is_empty(), "{found}");
}

/// 162: batches of equal size, and what is left over.
#[rstest]
#[case(5, 5, &[1, 1, 1, 1, 1])]
#[case(5, 8, &[1, 1, 2, 2, 2])]
#[case(5, 4, &[0, 1, 1, 1, 1])]
#[case(4, 9, &[2, 2, 2, 3])]
#[case(1, 9, &[9])]
#[case(3, 1, &[0, 0, 1])]
fn what_is_left_over_goes_to_the_last_batches(
    #[case] count: u32,
    #[case] to: u32,
    #[case] expected: &[u32],
) {
    assert_eq!(equal(count).moves(update(to)), expected);
    assert_eq!(equal(count).fit(update(to)), Ok(()));
    let scaled = Span::Scale { from: to, to: 0 };
    assert_eq!(equal(count).moves(scaled), expected);
}

fn amounts() -> impl Strategy<Value = Amount> {
    prop_oneof![
        (0..50_u32).prop_map(Amount::Pods),
        (0..=100_u8).prop_map(|percent| Amount::Percent(Percent(percent))),
        Just(Amount::Pods(u32::MAX)),
    ]
}

fn sizes() -> impl Strategy<Value = Sizes> {
    let last = prop_oneof![Just(Last::Rest), (0..50_u32).prop_map(Last::Pods)];
    prop_oneof![
        (1..=30_u32).prop_map(equal),
        (prop::collection::vec(amounts(), 0..30), last)
            .prop_map(|(before, last)| Sizes::Each { before, last }),
    ]
}

fn spans() -> impl Strategy<Value = Span> {
    let pods = || prop_oneof![0..200_u32, Just(u32::MAX)];
    prop_oneof![
        pods().prop_map(|to| update(to.max(1))),
        (pods(), pods()).prop_map(|(from, to)| Span::Scale { from, to }),
    ]
}

proptest! {
    #[test]
    fn all_batches_together_move_all(sizes in sizes(), span in spans()) {
        let moves = sizes.moves(span);
        prop_assert_eq!(moves.len(), sizes.count());
        let sum: u64 = moves.iter().map(|size| u64::from(*size)).sum();
        prop_assert_eq!(sum, u64::from(span.total()));
        prop_assert_eq!(sizes.goal(span, sizes.count() - 1), span.end());
    }

    #[test]
    fn goals_go_one_way_and_never_beyond_the_end(sizes in sizes(), span in spans()) {
        let start = span.after(0);
        let mut before = start;
        for goal in goals(&sizes, span) {
            let (least, most) = (before.min(span.end()), before.max(span.end()));
            prop_assert!((least..=most).contains(&goal), "{} after {}", goal, before);
            before = goal;
        }
    }

    /// Where a plan fits, no batch is cut, and only the last one is filled up.
    #[test]
    fn a_plan_that_fits_is_carried_out_as_it_is_written(sizes in sizes(), span in spans()) {
        prop_assume!(sizes.fit(span).is_ok());
        let (wanted, moves) = (sizes.wanted(span.total()), sizes.moves(span));
        let last = moves.len() - 1;
        prop_assert_eq!(&wanted[..last], &moves[..last]);
        if matches!(sizes, Sizes::Equal(_) | Sizes::Each { last: Last::Pods(_), .. }) {
            prop_assert_eq!(wanted[last], moves[last]);
        }
    }
}
