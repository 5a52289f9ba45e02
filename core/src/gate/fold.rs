//! Several opinions become one answer.

use sluice_crds::{Require, State};

use super::Answer;
use crate::verdict::{Opinion, Reason};

/// The answer of at least one opinion. The first that decides is named.
pub(crate) fn fold(require: Require, opinions: impl Iterator<Item = Opinion>) -> Answer {
    let (mut open, mut closed, mut depends, mut count) = (None, None, None, 0);
    // Whether any of them knows what it says: want of evidence is no reason for another gate.
    let mut known = false;
    for (place, opinion) in opinions.enumerate() {
        known |= !opinion.reason.is_by_on_error();
        let first = match opinion.counts_as(require) {
            State::Open => &mut open,
            State::Closed => &mut closed,
            State::Conditional => &mut depends,
        };
        first.get_or_insert((place, opinion.reason));
        count += 1;
    }
    // What decides under `require`, the weightiest first.
    let (open, closed, depends) = (
        open.map(|first| (State::Open, first)),
        closed.map(|first| (State::Closed, first)),
        depends.map(|first| (State::Conditional, first)),
    );
    let decides = match require {
        Require::All => closed.or(depends).or(open),
        Require::OneOf => open.or(depends).or(closed),
    };
    let Some((state, (decided_by, its_reason))) = decides else {
        return Answer {
            state: State::Closed,
            reason: Reason::Missing,
            decided_by: None,
        };
    };
    let reason = match (count, require, state) {
        (1, ..) => its_reason,
        (_, Require::All, State::Open) if known => Reason::AllAdmit,
        (_, Require::All, State::Open) => its_reason,
        (_, Require::OneOf, State::Closed) => Reason::NoneAdmits,
        (_, Require::All, State::Closed)
        | (_, Require::OneOf, State::Open)
        | (_, _, State::Conditional) => its_reason,
    };
    Answer {
        state,
        reason,
        decided_by: Some(decided_by),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn opinion(letter: char) -> Opinion {
        let (state, reason) = match letter {
            'o' => (State::Open, Reason::InsideWindow),
            'c' => (State::Closed, Reason::OutsideWindow),
            // Open for want of evidence.
            'e' => (State::Open, Reason::EvidenceUnavailable),
            'd' => (State::Conditional, Reason::DependsOnRevision),
            other => unreachable!("{other}"),
        };
        Opinion {
            state,
            reason,
            until: None,
            next: None,
        }
    }

    #[rstest]
    #[case(Require::All, "o", State::Open, Some(0))]
    #[case(Require::All, "c", State::Closed, Some(0))]
    #[case(Require::All, "oo", State::Open, Some(0))]
    #[case(Require::All, "oc", State::Closed, Some(1))]
    #[case(Require::All, "cc", State::Closed, Some(0))]
    #[case(Require::All, "eo", State::Open, Some(0))]
    #[case(Require::All, "ec", State::Closed, Some(1))]
    #[case(Require::OneOf, "o", State::Open, Some(0))]
    #[case(Require::OneOf, "co", State::Open, Some(1))]
    #[case(Require::OneOf, "cc", State::Closed, Some(0))]
    #[case(Require::OneOf, "e", State::Closed, Some(0))]
    #[case(Require::OneOf, "ec", State::Closed, Some(0))]
    #[case(Require::OneOf, "eo", State::Open, Some(1))]
    #[case(Require::All, "od", State::Conditional, Some(1))]
    #[case(Require::All, "dc", State::Closed, Some(1))]
    #[case(Require::OneOf, "do", State::Open, Some(1))]
    #[case(Require::OneOf, "cd", State::Conditional, Some(1))]
    #[case(Require::OneOf, "ed", State::Conditional, Some(1))]
    #[case(Require::All, "", State::Closed, None)]
    #[case(Require::OneOf, "", State::Closed, None)]
    fn opinions_fold(
        #[case] require: Require,
        #[case] letters: &str,
        #[case] state: State,
        #[case] decided_by: Option<usize>,
    ) {
        let answer = fold(require, letters.chars().map(opinion));
        assert_eq!((answer.state, answer.decided_by), (state, decided_by));
    }

    #[rstest]
    #[case("oo", Reason::AllAdmit)]
    #[case("eo", Reason::AllAdmit)]
    #[case("ee", Reason::EvidenceUnavailable)]
    fn all_that_admit_for_want_of_evidence_are_no_better_than_one(
        #[case] letters: &str,
        #[case] reason: Reason,
    ) {
        assert_eq!(
            fold(Require::All, letters.chars().map(opinion)).reason,
            reason
        );
    }
}
