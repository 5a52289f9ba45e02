//! Several opinions become one answer.

use sluice_crds::{Require, State};

use super::Answer;
use crate::verdict::{Opinion, Reason};

/// Whether `opinion` counts as admitting under `require`.
pub(super) fn admits(require: Require, opinion: &Opinion) -> bool {
    opinion.admits(require)
}

/// The answer of at least one opinion. The first that decides is named.
pub(super) fn fold(require: Require, opinions: impl Iterator<Item = Opinion>) -> Answer {
    let (mut admitting, mut refusing, mut count) = (None, None, 0);
    for (place, opinion) in opinions.enumerate() {
        let first = match opinion.admits(require) {
            true => &mut admitting,
            false => &mut refusing,
        };
        first.get_or_insert((place, opinion.reason));
        count += 1;
    }
    let (state, (decided_by, its_reason)) = match (require, admitting, refusing) {
        (Require::All, Some(first), None) | (Require::OneOf, Some(first), _) => {
            (State::Open, first)
        }
        (Require::All, _, Some(first)) | (Require::OneOf, None, Some(first)) => {
            (State::Closed, first)
        }
        (_, None, None) => {
            return Answer {
                state: State::Closed,
                reason: Reason::Missing,
                decided_by: None,
            };
        }
    };
    let reason = match (count, require, state) {
        (1, ..) => its_reason,
        (_, Require::All, State::Open) => Reason::AllAdmit,
        (_, Require::OneOf, State::Closed) => Reason::NoneAdmits,
        (_, Require::All, State::Closed) | (_, Require::OneOf, State::Open) => its_reason,
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
}
