//! How many looks may be under way at once, and of what kind.
//!
//! Looks wait for the API server, and the API server for others: an admission webhook that does not
//! answer holds up every write to the kinds that it is for. Looks at other objects must go on all the
//! same:
//!
//! | bound | of |
//! |---|---|
//! | the limit | looks that are under way since less than a moment; people have a quarter more |
//! | an eighth less (one at least, where there are two), and half of it | the same, of reports, and of looks that have hung before |
//! | the limit | looks at one kind in one namespace, however long they take; people have a quarter more |
//! | twice the limit | the same, in all namespaces of a cluster |
//! | half of the limit | looks at one kind on one cluster that have hung before |
//! | half of the limit | looks at one other cluster than our own; people have a quarter more |
//!
//! So a kind that hangs takes its own places and no others, a namespace whose objects are slow leaves half
//! of these to other namespaces, and objects that hang each time leave most of them to objects that do not.
//! A cluster that is dead takes its own places, and reports leave some places to what is more urgent.

use std::collections::HashMap;

use super::{Lane, lane};
use crate::cluster::key::{Cluster, Work};
use crate::cluster::kind::Urgency;

/// What is under way.
#[derive(Debug)]
pub(super) struct Places {
    limit: usize,
    taken: HashMap<Work, Taken>,
}

#[derive(Clone, Debug)]
struct Taken {
    lane: Lane,
    urgency: Urgency,
    /// Whether it has been under way for longer than most looks.
    slow: bool,
}

impl Places {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            taken: HashMap::new(),
        }
    }

    /// Whether there is a place for work of that cluster and kind, in whatever namespace.
    pub(super) fn admits(&self, lane: &Lane, urgency: Urgency) -> bool {
        let (limit, half) = (self.limit, self.limit.div_ceil(2));
        let kept = self.kept(urgency);
        let of_class = match urgency {
            Urgency::Person | Urgency::Delivery | Urgency::Gate => limit + kept,
            Urgency::Report if limit > 1 => limit - (limit / 8).max(1),
            Urgency::Report => limit,
            Urgency::Hung => half,
        };
        let alike = || self.count(|it| it.urgency == urgency && !it.slow);
        let here = || self.count(|it| it.lane == *lane);
        let hung = || self.count(|it| it.lane == *lane && it.urgency == Urgency::Hung);
        let on_cluster = || self.count(|it| it.lane.0 == lane.0);
        self.quick() < limit + kept
            && alike() < of_class
            && here() < 2 * limit + kept
            && (urgency != Urgency::Hung || hung() < half)
            && (lane.0 == Cluster::Own || on_cluster() < half + kept)
    }

    /// How many looks keep others from beginning that are under way in the namespace of `work`: those at its kind, and
    /// quick ones at others. None: it has no place left there.
    pub(super) fn beside(&self, work: &Work, urgency: Urgency) -> Option<usize> {
        #[cfg(test)]
        super::tests::look_up();
        let place = (&work.cluster, &work.key.namespace);
        let beside = self.taken.iter();
        let beside = beside.filter(|(it, _)| (&it.cluster, &it.key.namespace) == place);
        let is_alike = |it: &Work| it.kind == work.kind;
        let alike = beside.clone().filter(|(it, _)| is_alike(it));
        let counted = beside.filter(|(it, taken)| is_alike(it) || !taken.slow);
        let is_free = alike.count() < self.limit + self.kept(urgency);
        is_free.then(|| counted.count())
    }

    /// How many places are left to people.
    fn kept(&self, urgency: Urgency) -> usize {
        match urgency {
            Urgency::Person => self.limit.div_ceil(4),
            Urgency::Delivery | Urgency::Gate | Urgency::Report | Urgency::Hung => 0,
        }
    }

    fn count(&self, is_counted: impl Fn(&Taken) -> bool) -> usize {
        self.taken.values().filter(|it| is_counted(it)).count()
    }

    pub(super) fn take(&mut self, work: Work, urgency: Urgency) {
        let taken = Taken {
            lane: lane(&work),
            urgency,
            slow: false,
        };
        self.taken.insert(work, taken);
    }

    /// It takes longer than most looks.
    pub(super) fn slow(&mut self, work: &Work) {
        if let Some(taken) = self.taken.get_mut(work) {
            taken.slow = true;
        }
    }

    pub(super) fn leave(&mut self, work: &Work) {
        self.taken.remove(work);
    }

    pub(super) fn holds(&self, work: &Work) -> bool {
        #[cfg(test)]
        super::tests::look_up();
        self.taken.contains_key(work)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// How many are not slow.
    pub(super) fn quick(&self) -> usize {
        self.count(|it| !it.slow)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::tests::work;
    use super::*;
    use crate::cluster::kind::Kind;

    fn source(number: usize) -> Work {
        work(Kind::GatedSource, number)
    }

    fn gate(number: usize) -> Work {
        work(Kind::Gate, number)
    }

    fn gatekeeper(number: usize) -> Work {
        work(Kind::Gatekeeper, number)
    }

    fn in_namespace(namespace: &str, number: usize) -> Work {
        let mut work = source(number);
        work.key.namespace = namespace.into();
        work
    }

    fn on(cluster: &str, number: usize) -> Work {
        Work {
            cluster: Cluster::Named(Arc::new(cluster.into())),
            ..source(number)
        }
    }

    /// Takes as many as there are places for, and says how many that are.
    fn fill(places: &mut Places, work: impl Fn(usize) -> Work, urgency: Urgency) -> usize {
        let more = (0..).map(work).filter(|work| !places.holds(work));
        let mut count = 0;
        for work in more.take(100).collect::<Vec<_>>() {
            if !places.admits(&lane(&work), urgency) || places.beside(&work, urgency).is_none() {
                break;
            }
            places.take(work, urgency);
            count += 1;
        }
        count
    }

    fn hang(places: &mut Places) {
        let all: Vec<_> = places.taken.keys().cloned().collect();
        for work in all {
            places.slow(&work);
        }
    }

    #[test]
    fn people_have_places_of_their_own() {
        let mut places = Places::new(8);
        assert_eq!(fill(&mut places, gate, Urgency::Gate), 8);
        assert_eq!(fill(&mut places, source, Urgency::Delivery), 0);
        assert_eq!(fill(&mut places, source, Urgency::Person), 2);
    }

    #[test]
    fn a_kind_that_hangs_takes_no_more_than_its_own_places() {
        let mut places = Places::new(8);
        assert_eq!(fill(&mut places, source, Urgency::Delivery), 8);
        hang(&mut places);
        assert_eq!(fill(&mut places, source, Urgency::Delivery), 0);
        // Not even where people ask.
        assert_eq!(fill(&mut places, source, Urgency::Person), 2);
        hang(&mut places);
        assert_eq!(fill(&mut places, gate, Urgency::Gate), 8);
        assert_eq!(fill(&mut places, gate, Urgency::Person), 2);
    }

    #[test]
    fn a_namespace_that_is_slow_leaves_as_many_places_to_others() {
        let mut places = Places::new(8);
        assert_eq!(fill(&mut places, source, Urgency::Delivery), 8);
        hang(&mut places);
        assert_eq!(fill(&mut places, source, Urgency::Delivery), 0);
        let [other, third] = ["other", "third"].map(|it| move |number| in_namespace(it, number));
        assert_eq!(fill(&mut places, other, Urgency::Delivery), 8);
        hang(&mut places);
        assert_eq!(fill(&mut places, third, Urgency::Delivery), 0);
        places.leave(&source(0));
        assert_eq!(fill(&mut places, third, Urgency::Delivery), 1);
    }

    #[test]
    fn what_has_hung_before_leaves_most_of_its_places_to_the_rest() {
        let mut places = Places::new(8);
        assert_eq!(fill(&mut places, source, Urgency::Hung), 4);
        hang(&mut places);
        let elsewhere = |number| in_namespace("other", number);
        assert_eq!(fill(&mut places, elsewhere, Urgency::Hung), 0);
        assert_eq!(fill(&mut places, source, Urgency::Delivery), 4);
        // What hangs of one kind says nothing of another.
        assert_eq!(fill(&mut places, gate, Urgency::Hung), 4);
    }

    #[test]
    fn reports_leave_a_place_to_what_is_more_urgent() {
        let mut places = Places::new(8);
        assert_eq!(fill(&mut places, gatekeeper, Urgency::Report), 7);
        assert_eq!(fill(&mut places, gate, Urgency::Gate), 1);
        // What hangs may be waited for, and others begin in that time.
        hang(&mut places);
        assert_eq!(fill(&mut places, gatekeeper, Urgency::Report), 1);
        // Where there is only one place, everybody has it.
        let mut places = Places::new(1);
        assert_eq!(fill(&mut places, gatekeeper, Urgency::Report), 1);
    }

    #[test]
    fn what_has_hung_before_leaves_half_of_all_places_to_the_rest() {
        let mut places = Places::new(8);
        assert_eq!(fill(&mut places, source, Urgency::Hung), 4);
        assert_eq!(fill(&mut places, gate, Urgency::Hung), 0);
        assert_eq!(fill(&mut places, gate, Urgency::Gate), 4);
    }

    #[test]
    fn a_cluster_that_is_dead_takes_no_more_than_its_own_places() {
        let mut places = Places::new(8);
        let (dead, alive) = (|number| on("dead", number), |number| on("alive", number));
        assert_eq!(fill(&mut places, dead, Urgency::Delivery), 4);
        // Before it is known that the cluster is dead, the other half of the places is left.
        assert_eq!(fill(&mut places, alive, Urgency::Delivery), 4);
        hang(&mut places);
        assert_eq!(fill(&mut places, dead, Urgency::Delivery), 0);
        assert_eq!(fill(&mut places, dead, Urgency::Person), 2);
        for number in 0..4 {
            places.leave(&alive(number));
        }
        assert_eq!(fill(&mut places, alive, Urgency::Delivery), 4);
        hang(&mut places);
        // The same kind on our own cluster has all of its places.
        assert_eq!(fill(&mut places, source, Urgency::Delivery), 8);
        hang(&mut places);
        assert_eq!(fill(&mut places, gate, Urgency::Gate), 8);
    }

    #[test]
    fn a_place_that_is_left_is_free() {
        let mut places = Places::new(1);
        assert_eq!(fill(&mut places, gate, Urgency::Gate), 1);
        places.leave(&gate(0));
        assert!(places.is_empty());
        assert!(places.admits(&lane(&gate(0)), Urgency::Gate));
    }
}
