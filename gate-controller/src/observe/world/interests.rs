//! Who is interested in what: gates in their gatekeepers, gated sources in what they name.
//!
//! What comes in: for each object, the names in its spec. What goes out: for each name, the objects that
//! are interested in it, directly or indirectly. A name may be of any kind, on any cluster, and of an
//! object that does not exist. Each name is held once, even if many objects have it.

use std::collections::BTreeSet;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;

use crate::cluster::key::Work;

/// Who is interested in what, both ways.
#[derive(Default)]
pub(super) struct Interests(Mutex<Index>);

#[derive(Default)]
struct Index {
    /// Where each name is among the nodes.
    places: HashTable<usize>,
    hasher: DefaultHashBuilder,
    nodes: Vec<Node>,
    /// The nodes that nobody uses.
    free: Vec<usize>,
}

/// A name, with the places of others.
struct Node {
    name: Work,
    /// What it is interested in, in the order of the names.
    what: Box<[usize]>,
    /// Those who are interested in it.
    who: Vec<usize>,
}

impl Interests {
    /// From now on `who` is interested in these, and in nothing else. `what` is called under the lock: if
    /// two calls happen at once, the later one reads what is true by then.
    pub(super) fn set(&self, who: &Work, what: impl FnOnce() -> Vec<Work>) {
        let mut index = self.0.lock();
        let mut what = what();
        what.sort_unstable();
        what.dedup();
        if what.is_empty() && index.find(who).is_none() {
            return;
        }
        let name = who.clone();
        let who = index.add(name.clone());
        // The caches hold these very texts, too.
        index.nodes[who].name = name;
        let what: Box<[usize]> = what.into_iter().map(|name| index.add(name)).collect();
        let before = std::mem::replace(&mut index.nodes[who].what, what.clone());
        for place in what.iter().filter(|place| !before.contains(place)) {
            index.nodes[*place].who.push(who);
        }
        for place in before.iter().filter(|place| !what.contains(place)) {
            index.nodes[*place].who.retain(|other| *other != who);
            index.release(*place);
        }
        index.release(who);
    }

    /// Those who are interested in it.
    pub(super) fn of(&self, what: &Work) -> Vec<Work> {
        let index = self.0.lock();
        let who = index.find(what).map(|place| &index.nodes[place].who);
        let who = who.into_iter().flatten();
        who.map(|place| index.nodes[*place].name.clone()).collect()
    }

    /// Whether it is interested in anything.
    pub(super) fn has(&self, who: &Work) -> bool {
        let index = self.0.lock();
        let place = index.find(who);
        place.is_some_and(|place| !index.nodes[place].what.is_empty())
    }

    /// Those whose decisions depend on it, directly or through others: gates by their gatekeepers, and
    /// everything that waits for these gates.
    pub(super) fn concerned(&self, what: &Work) -> BTreeSet<Work> {
        let index = self.0.lock();
        let (mut found, mut left) = (BTreeSet::new(), vec![what.clone()]);
        while let Some(what) = left.pop() {
            for name in [what.all_beside(), what] {
                let places = index.find(&name).map(|place| &index.nodes[place].who);
                for place in places.into_iter().flatten() {
                    let who = &index.nodes[*place].name;
                    if let Some(look) = who.kind.look()
                        && found.insert(who.clone())
                        && look.is_decided_by
                    {
                        left.push(who.clone());
                    }
                }
            }
        }
        found.retain(|who| who.kind.look().is_some_and(|look| look.decides));
        found
    }
}

impl Index {
    fn find(&self, name: &Work) -> Option<usize> {
        let hash = self.hasher.hash_one(name);
        let is_it = |place: &usize| self.nodes[*place].name == *name;
        self.places.find(hash, is_it).copied()
    }

    /// The place of a name, which it has from now on.
    fn add(&mut self, name: Work) -> usize {
        if let Some(place) = self.find(&name) {
            return place;
        }
        let hash = self.hasher.hash_one(&name);
        let node = Node {
            name,
            what: Box::default(),
            who: Vec::new(),
        };
        let place = match self.free.pop() {
            Some(free) => {
                self.nodes[free] = node;
                free
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        };
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        let rehash = |place: &usize| hasher.hash_one(&nodes[*place].name);
        self.places.insert_unique(hash, place, rehash);
        place
    }

    /// Forgets a name that is not used any more.
    fn release(&mut self, place: usize) {
        let Node { name, what, who } = &self.nodes[place];
        if !what.is_empty() || !who.is_empty() {
            return;
        }
        let hash = self.hasher.hash_one(name);
        if let Ok(entry) = self.places.find_entry(hash, |other| *other == place) {
            entry.remove();
            self.free.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::key::KeyRef;
    use crate::cluster::kind::Kind;

    fn work(kind: Kind, name: &str) -> Work {
        let namespace = "apps";
        Work::own(kind, KeyRef { namespace, name }.into())
    }

    fn set(interests: &Interests, who: &Work, what: &[&Work]) {
        interests.set(who, || what.iter().copied().cloned().collect());
    }

    #[test]
    fn who_is_interested_is_known_until_nobody_is() {
        let interests = Interests::default();
        let [one, other] = ["one", "other"].map(|name| work(Kind::Gate, name));
        let [night, day] = ["night", "day"].map(|name| work(Kind::Gatekeeper, name));
        set(&interests, &one, &[&night, &day, &night]);
        set(&interests, &other, &[&night]);
        assert_eq!(interests.of(&night), [one.clone(), other.clone()]);
        assert_eq!(interests.of(&day), vec![one.clone()]);
        assert!(interests.has(&one) && !interests.has(&night));
        set(&interests, &one, &[&day]);
        assert_eq!(interests.of(&night), vec![other.clone()]);
        set(&interests, &one, &[]);
        set(&interests, &other, &[]);
        assert_eq!(interests.of(&night), []);
        // Nothing is left of any of them, and their places are taken again.
        let index = interests.0.lock();
        assert_eq!((index.places.len(), index.free.len()), (0, 4));
        drop(index);
        set(&interests, &other, &[&day]);
        assert_eq!(interests.of(&day), [other]);
        assert_eq!(interests.0.lock().nodes.len(), 4);
    }

    #[test]
    fn an_interest_reaches_through_those_that_are_decided_by() {
        let interests = Interests::default();
        let [inner, outer] = ["inner", "outer"].map(|name| work(Kind::Gate, name));
        let (both, app) = (
            work(Kind::Gatekeeper, "both"),
            work(Kind::GatedSource, "app"),
        );
        let freeze = work(Kind::GatePolicy, "freeze");
        set(&interests, &both, &[&inner]);
        set(&interests, &outer, &[&both]);
        set(&interests, &app, &[&outer]);
        set(&interests, &freeze, &[&inner]);
        // Only an object that looks for policies learns that the policy names the gate.
        assert!(interests.of(&inner).contains(&freeze));
        let concerned = interests.concerned(&inner);
        assert_eq!(concerned, [outer.clone(), both.clone(), app.clone()].into());
        assert_eq!(interests.concerned(&outer), [app.clone()].into());
        // A circle ends.
        set(&interests, &both, &[&inner, &outer]);
        assert_eq!(interests.concerned(&outer), [outer, both, app].into());
    }
}
