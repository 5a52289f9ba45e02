//! What is due of one lane, by namespace.
//!
//! Of the namespaces that have something due, the one with the fewest looks under way comes first: one that has
//! very many objects, or objects that take long to look at, delays the others by little. Slow looks at other kinds do
//! not count: they keep nobody from beginning. A namespace that has no place left is left out in one step, however
//! much of it is due.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;

use crate::cluster::key::Work;

/// A piece of work, and since when it is due.
pub(super) type Entry = (Timestamp, Work);

#[derive(Debug, Default)]
pub(super) struct Due {
    /// All of it, by namespace. Those with nothing due are not in it.
    of: HashMap<Arc<str>, BTreeSet<Entry>>,
    /// The first of each namespace.
    firsts: BTreeSet<Entry>,
}

impl Due {
    pub(super) fn insert(&mut self, entry: Entry) {
        let namespace = Arc::clone(&entry.1.key.namespace);
        self.change(&namespace, |all| all.insert(entry));
    }

    pub(super) fn remove(&mut self, entry: &Entry) {
        self.change(&entry.1.key.namespace, |all| all.remove(entry));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.firsts.is_empty()
    }

    /// Changes what is due of a namespace.
    fn change(&mut self, namespace: &Arc<str>, change: impl FnOnce(&mut BTreeSet<Entry>) -> bool) {
        let all = self.of.entry(Arc::clone(namespace)).or_default();
        let before = all.first().cloned();
        change(all);
        if all.first() != before.as_ref() {
            self.firsts.extend(all.first().cloned());
            if let Some(before) = before {
                self.firsts.remove(&before);
            }
        }
        if all.is_empty() {
            self.of.remove(namespace);
        }
    }

    /// What is to be taken next, and how many looks its namespace has under way. `under_way` says how many these are, and
    /// None where there is no place for the work. `holds` says what is being looked at: that is skipped.
    pub(super) fn next(
        &self,
        under_way: impl Fn(&Work) -> Option<usize>,
        holds: impl Fn(&Work) -> bool,
    ) -> Option<(usize, &Entry)> {
        let mut next: Option<(usize, &Entry)> = None;
        for head in &self.firsts {
            if next.is_some_and(|(count, first)| count == 0 && first <= head) {
                break;
            }
            let Some(count) = under_way(&head.1) else {
                continue;
            };
            let mut all = self.of.get(&head.1.key.namespace).into_iter().flatten();
            let found = all.find(|(_, work)| !holds(work)).map(|it| (count, it));
            next = [next, found].into_iter().flatten().min();
        }
        next
    }
}
