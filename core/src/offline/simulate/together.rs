//! The state of several gates together: when a change may pass every set of gates that it has to pass.
//!
//! What comes in: for each set how its gates combine, and the [`Stretches`] of each. What goes out:
//! the stretches of them all, by the rules of [`crate::gate::set`].

use jiff::Timestamp;
use sluice_crds::{Require, State};

use super::{Stretch, Stretches};
use crate::gate::{self, Answer};
use crate::time::span::Span;
use crate::verdict::{Opinion, Reason};

/// The gates of one set.
#[derive(Clone, Debug)]
pub struct Set<'a> {
    /// How they combine.
    pub require: Require,
    /// Each with its name.
    pub gates: Vec<(&'a str, &'a Stretches)>,
}

/// The state of the gates of one set, or of several.
struct Standing<'a> {
    state: State,
    reason: Reason,
    unknown: bool,
    decisive: Vec<(&'a str, &'a Stretch)>,
}

impl Stretches {
    /// Closed all the time: for a gate that cannot be asked.
    pub fn closed(span: Span, reason: Reason, cause: &str) -> Self {
        let answer = Answer {
            state: State::Closed,
            reason,
            decided_by: None,
        };
        let stretch = Stretch {
            span,
            answer,
            causes: vec![cause.to_owned()],
            unknown: false,
        };
        Self {
            list: vec![stretch],
            cut_off: None,
        }
    }

    fn at(&self, at: Timestamp) -> Option<&Stretch> {
        let next = self.list.partition_point(|stretch| stretch.span.end <= at);
        self.list.get(next)
    }
}

/// The states of all sets together in `span`. Without any gate, nothing may pass.
pub fn together(sets: &[Set<'_>], span: Span) -> Stretches {
    let gates = || sets.iter().flat_map(|set| &set.gates);
    let cut_off = gates().filter_map(|(_, gate)| gate.cut_off).min();
    let end = cut_off.map_or(span.end, |known| known.min(span.end));
    let changes = gates().flat_map(|(_, gate)| gate.list.iter().map(|stretch| stretch.span.start));
    let within = changes.filter(|at| span.start < *at && *at < end);
    let mut starts: Vec<Timestamp> = std::iter::once(span.start).chain(within).collect();
    starts.sort_unstable();
    starts.dedup();
    let ends = starts.iter().skip(1).copied().chain([end]);
    let mut list: Vec<Stretch> = Vec::new();
    for (start, end) in starts.iter().copied().zip(ends) {
        let fresh = all(sets, start).stretch(Span { start, end });
        match list.last_mut() {
            Some(last) if last.answer == fresh.answer && last.causes == fresh.causes => {
                last.span.end = end;
            }
            _ => list.push(fresh),
        }
    }
    Stretches { list, cut_off }
}

/// All sets have to let pass.
fn all<'a>(sets: &[Set<'a>], at: Timestamp) -> Standing<'a> {
    let each = sets.iter().map(|set| set.standing(at)).collect();
    fold(each, Require::All)
}

impl<'a> Set<'a> {
    fn standing(&self, at: Timestamp) -> Standing<'a> {
        let gates = self.gates.iter();
        let each = gates.filter_map(|(name, gate)| {
            let stretch = gate.at(at)?;
            Some(Standing {
                state: stretch.answer.state,
                reason: stretch.answer.reason,
                unknown: stretch.unknown,
                decisive: vec![(*name, stretch)],
            })
        });
        fold(each.collect(), self.require)
    }
}

/// What several gates say together, by the fold of [`gate::set`]. What is not known counts as closed; the
/// result is not known if it would be different with that open.
fn fold(each: Vec<Standing<'_>>, require: Require) -> Standing<'_> {
    let state = state(&each, require, State::Closed);
    let otherwise = || self::state(&each, require, State::Open) != state;
    let unknown = state == State::Closed && otherwise();
    let same = each.into_iter().filter(|it| {
        let counts_as = it.opinion(State::Closed).counts_as(require);
        (counts_as, it.unknown) == (state, unknown)
    });
    let same: Vec<_> = same.collect();
    Standing {
        state,
        reason: same.first().map_or(Reason::GateMissing, |it| it.reason),
        unknown,
        decisive: same.into_iter().flat_map(|it| it.decisive).collect(),
    }
}

/// What they say together if what is not known is `unknown`.
fn state(each: &[Standing<'_>], require: Require, unknown: State) -> State {
    gate::set::fold(require, each.iter().map(|it| it.opinion(unknown)))
}

impl Standing<'_> {
    /// What it says, where what is not known is `unknown`.
    fn opinion(&self, unknown: State) -> Opinion {
        let state = if self.unknown { unknown } else { self.state };
        Opinion::of(state, self.reason)
    }

    fn stretch(self, span: Span) -> Stretch {
        let forced = self.decisive.iter().any(|(_, stretch)| stretch.is_forced());
        let reason = if forced { Reason::Forced } else { self.reason };
        let mut causes: Vec<String> = Vec::new();
        for (name, stretch) in &self.decisive {
            let said = stretch
                .causes
                .iter()
                .map(|cause| format!("{name}: {cause}"));
            for cause in said {
                if !causes.contains(&cause) {
                    causes.push(cause);
                }
            }
        }
        Stretch {
            span,
            answer: Answer {
                state: self.state,
                reason,
                decided_by: None,
            },
            causes,
            unknown: self.unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn span(start: i64, end: i64) -> Span {
        Span {
            start: at(start),
            end: at(end),
        }
    }

    /// One letter for ten seconds: open, closed, conditional, or not known.
    fn gate(letters: &str) -> Stretches {
        let stretch = |(n, letter): (usize, char)| {
            let start = 10 * i64::try_from(n).unwrap();
            let state = match letter {
                'o' => State::Open,
                'x' | '?' => State::Closed,
                _ => State::Conditional,
            };
            Stretch {
                span: span(start, start + 10),
                answer: Answer {
                    state,
                    reason: Reason::Manual,
                    decided_by: None,
                },
                causes: vec![letter.to_string()],
                unknown: letter == '?',
            }
        };
        Stretches {
            list: letters.chars().enumerate().map(stretch).collect(),
            cut_off: None,
        }
    }

    fn letters(stretches: &Stretches, parts: i64) -> String {
        let letter = |n| match stretches.at(at(10 * n)) {
            Some(it) if it.unknown => '?',
            Some(it) if it.answer.state == State::Open => 'o',
            Some(it) if it.answer.state == State::Closed => 'x',
            Some(_) => '~',
            None => ' ',
        };
        (0..parts).map(letter).collect()
    }

    #[rstest]
    #[case(Require::All, "ooxx~o??", "oxoxo~ox", "oxxx~~?x")]
    #[case(Require::OneOf, "ooxx~x??", "oxoxo~ox", "ooox o~o?")]
    fn two_gates_combine_as_a_set_does(
        #[case] require: Require,
        #[case] a: &str,
        #[case] b: &str,
        #[case] expected: &str,
    ) {
        let (a, b) = (gate(a), gate(b));
        let set = Set {
            require,
            gates: vec![("a", &a), ("b", &b)],
        };
        let both = together(&[set], span(0, 80));
        assert_eq!(letters(&both, 8), expected.replace(' ', ""));
        let ends: Vec<_> = both.list.iter().map(|it| it.span.end).collect();
        let starts: Vec<_> = both.list.iter().skip(1).map(|it| it.span.start).collect();
        assert_eq!(starts, ends[..ends.len() - 1]);
    }

    #[test]
    fn every_set_has_to_let_pass_and_causes_name_their_gate() {
        let (a, b) = (gate("oo"), gate("ox"));
        let one = |name, gate| Set {
            require: Require::All,
            gates: vec![(name, gate)],
        };
        let both = together(&[one("a", &a), one("b", &b)], span(0, 20));
        assert_eq!(letters(&both, 2), "ox");
        assert_eq!(both.list[1].causes, ["b: x"]);
        assert_eq!(letters(&together(&[], span(0, 20)), 2), "xx");
    }

    #[test]
    fn nothing_is_known_beyond_what_is_known_of_each() {
        let (a, mut b) = (gate("oo"), gate("o"));
        b.cut_off = Some(at(10));
        let set = Set {
            require: Require::All,
            gates: vec![("a", &a), ("b", &b)],
        };
        let both = together(&[set], span(0, 20));
        assert_eq!(both.cut_off, Some(at(10)));
        assert_eq!(both.list.last().unwrap().span.end, at(10));
    }
}
