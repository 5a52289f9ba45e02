//! Which environments wait for which.
//!
//! Every environment waits for those that its `after` names, and for those that they wait for; without
//! `after` for the one above it. `after` names environments above it alone, so that there is no circle.

use std::collections::BTreeSet;

use sluice_crds::promotion_strategy::Environment;

/// The environments by their places in the spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Graph {
    directly: Vec<Vec<usize>>,
    before: Vec<BTreeSet<usize>>,
}

impl Graph {
    pub(super) fn new(environments: &[Environment]) -> Self {
        let place = |branch: &String| environments.iter().position(|it| it.branch == *branch);
        let mut directly: Vec<Vec<usize>> = Vec::with_capacity(environments.len());
        let mut before: Vec<BTreeSet<usize>> = Vec::with_capacity(environments.len());
        for (own, environment) in environments.iter().enumerate() {
            let named = match &environment.after {
                Some(after) => after
                    .iter()
                    .filter_map(place)
                    .filter(|it| *it < own)
                    .collect(),
                None => own.checked_sub(1).into_iter().collect::<Vec<_>>(),
            };
            let all = named.iter().flat_map(|it| before[*it].iter().chain([it]));
            before.push(all.copied().collect());
            directly.push(named);
        }
        Self { directly, before }
    }

    /// Those directly before one.
    pub(super) fn directly_before(&self, place: usize) -> &[usize] {
        &self.directly[place]
    }

    /// All before one, in the order of the spec.
    pub(super) fn before(&self, place: usize) -> impl Iterator<Item = usize> {
        self.before[place].iter().copied()
    }

    /// All after one, in the order of the spec.
    pub(super) fn after(&self, place: usize) -> impl Iterator<Item = usize> {
        let all = self.before.iter().enumerate();
        all.filter(move |(_, before)| before.contains(&place))
            .map(|(later, _)| later)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn graph(all: &[(&str, Option<&[&str]>)]) -> Graph {
        let environments = all.iter().map(|(branch, after)| {
            let mut one = json!({ "branch": branch });
            if let Some(after) = after {
                one["after"] = json!(after);
            }
            serde_json::from_value(one).unwrap()
        });
        Graph::new(&environments.collect::<Vec<_>>())
    }

    #[test]
    fn without_after_each_waits_for_the_one_above() {
        let line = graph(&[("dev", None), ("test", None), ("prod", None)]);
        assert_eq!(line.directly_before(0), [0; 0]);
        assert_eq!(line.directly_before(2), [1]);
        assert_eq!(line.before(2).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(line.after(0).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(line.after(2).count(), 0);
    }

    #[test]
    fn environments_stand_side_by_side_and_meet_again() {
        let diamond = graph(&[
            ("dev", None),
            ("eu", Some(&["dev"])),
            ("us", Some(&["dev"])),
            ("prod", Some(&["eu", "us"])),
            ("lab", Some(&[])),
        ]);
        assert_eq!(diamond.directly_before(3), [1, 2]);
        assert_eq!(diamond.before(3).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(diamond.after(1).collect::<Vec<_>>(), [3]);
        assert_eq!(diamond.before(4).count(), 0);
        assert_eq!(diamond.after(0).collect::<Vec<_>>(), [1, 2, 3]);
    }
}
