//! How many looks may be under way at once, and of what kind.
//!
//! Looks wait for the API server, and the API server for others: an admission webhook that does not
//! answer holds up every write to the kinds that it is for. That must not keep anything else from
//! being looked at:
//!
//! | bound | of |
//! |---|---|
//! | the limit | looks that are under way since less than a moment; people have a quarter more |
//! | the limit | looks at one kind, however long they take; people have a quarter more |
//! | half of the limit | looks at one kind that have hung before |
//!
//! So a kind that hangs takes its own places and no others, and what hangs each time leaves half of
//! those to what does not.

use std::collections::HashMap;
use std::hash::Hash;

use super::Urgency;

/// A piece of work of some kind.
pub trait OfKind {
    /// The kind. What hangs for one piece of work probably hangs for others of its kind.
    fn kind(&self) -> &'static str;
}

/// What is under way.
#[derive(Debug)]
pub(super) struct Places<W> {
    limit: usize,
    taken: HashMap<W, Taken>,
}

#[derive(Clone, Copy, Debug)]
struct Taken {
    urgency: Urgency,
    /// Whether it is under way for longer than most are.
    slow: bool,
}

impl<W: OfKind + Hash + Eq> Places<W> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            taken: HashMap::new(),
        }
    }

    /// Whether there is a place for work of that kind.
    pub(super) fn admits(&self, kind: &str, urgency: Urgency) -> bool {
        let limit = match urgency {
            Urgency::Person => self.with_kept(),
            Urgency::Delivery | Urgency::Gate | Urgency::Report | Urgency::Hung => self.limit,
        };
        let of_kind = || self.taken.iter().filter(|(work, _)| work.kind() == kind);
        let hung = || of_kind().filter(|(_, taken)| taken.urgency == Urgency::Hung);
        self.quick() < limit
            && of_kind().count() < limit
            && (urgency != Urgency::Hung || hung().count() < self.limit.div_ceil(2))
    }

    pub(super) fn take(&mut self, work: W, urgency: Urgency) {
        let slow = false;
        self.taken.insert(work, Taken { urgency, slow });
    }

    /// It takes longer than most do.
    pub(super) fn slow(&mut self, work: &W) {
        if let Some(taken) = self.taken.get_mut(work) {
            taken.slow = true;
        }
    }

    pub(super) fn leave(&mut self, work: &W) {
        self.taken.remove(work);
    }

    pub(super) fn holds(&self, work: &W) -> bool {
        self.taken.contains_key(work)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// How many are not slow.
    pub(super) fn quick(&self) -> usize {
        self.taken.values().filter(|taken| !taken.slow).count()
    }

    /// The limit, with what is kept for people.
    fn with_kept(&self) -> usize {
        self.limit.saturating_add(self.limit.div_ceil(4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source or a gate, and which.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    enum Some {
        Source(usize),
        Gate(usize),
    }

    impl OfKind for Some {
        fn kind(&self) -> &'static str {
            match self {
                Some::Source(_) => "Source",
                Some::Gate(_) => "Gate",
            }
        }
    }

    /// Takes as many as there are places for, and says how many that are.
    fn fill(places: &mut Places<Some>, work: impl Fn(usize) -> Some, urgency: Urgency) -> usize {
        let more = (0..).map(work).filter(|work| !places.holds(work));
        let mut count = 0;
        for work in more.take(100).collect::<Vec<_>>() {
            if !places.admits(work.kind(), urgency) {
                break;
            }
            places.take(work, urgency);
            count += 1;
        }
        count
    }

    fn hang(places: &mut Places<Some>) {
        let all: Vec<_> = places.taken.keys().copied().collect();
        for work in all {
            places.slow(&work);
        }
    }

    #[test]
    fn people_have_places_of_their_own() {
        let mut places = Places::new(8);
        assert_eq!(fill(&mut places, Some::Gate, Urgency::Gate), 8);
        assert_eq!(fill(&mut places, Some::Source, Urgency::Delivery), 0);
        assert_eq!(fill(&mut places, Some::Source, Urgency::Person), 2);
    }

    #[test]
    fn a_kind_that_hangs_takes_no_more_than_its_own_places() {
        let mut places = Places::new(8);
        assert_eq!(fill(&mut places, Some::Source, Urgency::Delivery), 8);
        hang(&mut places);
        assert_eq!(fill(&mut places, Some::Source, Urgency::Delivery), 0);
        // Not even where people ask.
        assert_eq!(fill(&mut places, Some::Source, Urgency::Person), 2);
        hang(&mut places);
        assert_eq!(fill(&mut places, Some::Gate, Urgency::Gate), 8);
        assert_eq!(fill(&mut places, Some::Gate, Urgency::Person), 2);
    }

    #[test]
    fn what_has_hung_before_leaves_half_of_its_places_to_the_rest() {
        let mut places = Places::new(8);
        assert_eq!(fill(&mut places, Some::Source, Urgency::Hung), 4);
        hang(&mut places);
        assert_eq!(fill(&mut places, Some::Source, Urgency::Hung), 0);
        assert_eq!(fill(&mut places, Some::Source, Urgency::Delivery), 4);
        // What hangs of one kind says nothing of another.
        assert_eq!(fill(&mut places, Some::Gate, Urgency::Hung), 4);
    }

    #[test]
    fn a_place_that_is_left_is_free() {
        let mut places = Places::new(1);
        assert_eq!(fill(&mut places, Some::Gate, Urgency::Gate), 1);
        places.leave(&Some::Gate(0));
        assert!(places.is_empty());
        assert!(places.admits("Gate", Urgency::Gate));
    }
}
