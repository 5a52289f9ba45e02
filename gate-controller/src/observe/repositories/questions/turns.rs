//! Whose questions are asked next.
//!
//! Namespaces take turns, so that one which has many keeps no other waiting: next is the one whose last question
//! was the longest ago. Of each one those come first that are needed, in the order in which they came.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use sluice_core::delivery::promotion_strategy::evidence::Question;

use crate::cluster::key::Work;

/// The turns of the namespaces.
#[derive(Default)]
pub(super) struct Turns {
    /// The number of the last question of each, for as long as any waits.
    last: HashMap<Arc<str>, u64>,
    numbers: u64,
}

/// A question that is due.
pub(super) struct Due<'q> {
    pub(super) question: &'q Arc<Question>,
    pub(super) who: &'q BTreeSet<Work>,
    /// Its place among all others.
    pub(super) turn: u64,
    /// Whether nobody can decide without an answer much longer.
    pub(super) is_needed: bool,
}

impl Turns {
    /// The next of these, at most so many, and whether they are needed: all of them are, or none is. That is as
    /// with the first question of the namespace whose turn it is.
    pub(super) fn next(
        &mut self,
        mut due: Vec<Due<'_>>,
        most: usize,
    ) -> (Vec<Arc<Question>>, bool) {
        due.sort_unstable_by_key(|it| (!it.is_needed, it.turn));
        let mut rows = rows(&due);
        let first = self.first(&rows).and_then(|by| rows.get(&by)?.front());
        let are_needed = first.is_some_and(|first| first.is_needed);
        for row in rows.values_mut() {
            row.retain(|it| it.is_needed == are_needed);
        }
        let (mut next, mut taken) = (Vec::new(), BTreeSet::new());
        while next.len() < most
            && let Some(by) = self.first(&rows)
        {
            let Some(it) = rows.get_mut(&by).and_then(VecDeque::pop_front) else {
                break;
            };
            // Another namespace may ask the same.
            if taken.insert(it.turn) {
                next.push(Arc::clone(it.question));
                self.numbers += 1;
                self.last.insert(by, self.numbers);
            }
        }
        if next.len() == due.len() {
            self.last.clear();
        }
        (next, are_needed)
    }

    /// The namespace whose turn it is.
    fn first(&self, rows: &HashMap<Arc<str>, VecDeque<&Due<'_>>>) -> Option<Arc<str>> {
        let fronts = rows.iter().filter_map(|(by, row)| Some((by, row.front()?)));
        let rank = |(by, front): &(&Arc<str>, &&Due<'_>)| {
            (self.last.get(*by).copied(), !front.is_needed, front.turn)
        };
        fronts.min_by_key(rank).map(|(by, _)| Arc::clone(by))
    }
}

/// What each namespace waits for, in order.
fn rows<'d, 'q>(due: &'d [Due<'q>]) -> HashMap<Arc<str>, VecDeque<&'d Due<'q>>> {
    let mut rows = HashMap::<_, VecDeque<&Due<'_>>>::new();
    for it in due {
        let namespaces: BTreeSet<_> = it.who.iter().map(|by| &by.key.namespace).collect();
        for namespace in namespaces {
            rows.entry(Arc::clone(namespace)).or_default().push_back(it);
        }
    }
    rows
}
