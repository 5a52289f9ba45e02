//! How many events may report answers: somebody who asks something new each time must not fill the API
//! server, and must not silence the others.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

/// The limit for the controller itself, and for all other askers together.
const MANY: Rate = Rate {
    at_once: 200,
    each: SignedDuration::from_secs(1),
};
/// The limit for one asker.
const FEW: Rate = Rate {
    at_once: 40,
    each: SignedDuration::from_secs(5),
};
/// How many callers are remembered. If there are more, those who have spent nothing recently are
/// forgotten; if there are none of those, all are.
const CALLERS: usize = 1_024;

/// So many at once, and then one in each of these times.
#[derive(Clone, Copy)]
struct Rate {
    at_once: i32,
    each: SignedDuration,
}

/// The budgets of all.
pub(super) struct Budgets {
    controller: Budget,
    callers: Budget,
    /// By a hash of who asks.
    each: HashMap<u64, Budget>,
}

/// How many may be sent.
struct Budget {
    rate: Rate,
    /// Since when they might have been sent and were not.
    unspent: Timestamp,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            controller: Budget::new(MANY),
            callers: Budget::new(MANY),
            each: HashMap::new(),
        }
    }
}

impl Budgets {
    /// Whether an event of the controller's own may be sent.
    pub(super) fn spend_own(&mut self, now: Timestamp) -> bool {
        self.controller.spend(now)
    }

    /// Whether an event may be sent that `caller`, a hash of who asks, gives rise to.
    pub(super) fn spend(&mut self, caller: u64, now: Timestamp) -> bool {
        if self.each.len() >= CALLERS && !self.each.contains_key(&caller) {
            self.each.retain(|_, budget| !budget.is_whole(now));
            if self.each.len() >= CALLERS {
                self.each.clear();
            }
        }
        let own = self.each.entry(caller);
        let own = own.or_insert_with(|| Budget::new(FEW));
        own.has(now) && self.callers.spend(now) && own.spend(now)
    }
}

impl Budget {
    fn new(rate: Rate) -> Self {
        Self {
            rate,
            unspent: Timestamp::MIN,
        }
    }

    /// Since when nothing might have been spent if it were whole.
    fn earliest(&self, now: Timestamp) -> Timestamp {
        let most = self.rate.each.checked_mul(self.rate.at_once);
        let earliest = most.and_then(|most| now.checked_sub(most).ok());
        earliest.unwrap_or(Timestamp::MIN)
    }

    /// From which instant on it is unspent, at `now`. A clock that was set back must not silence anybody.
    fn unspent(&self, now: Timestamp) -> Timestamp {
        match self.unspent > now.saturating_add(self.rate.each).unwrap_or(now) {
            true => now.saturating_sub(self.rate.each).unwrap_or(now),
            false => self.unspent.max(self.earliest(now)),
        }
    }

    fn has(&self, now: Timestamp) -> bool {
        now.duration_since(self.unspent(now)) >= self.rate.each
    }

    fn is_whole(&self, now: Timestamp) -> bool {
        self.unspent <= self.earliest(now)
    }

    fn spend(&mut self, now: Timestamp) -> bool {
        if !self.has(now) {
            return false;
        }
        let unspent = self.unspent(now).saturating_add(self.rate.each);
        self.unspent = unspent.unwrap_or(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    #[test]
    fn each_caller_has_its_own_and_none_takes_all() {
        let mut budgets = Budgets::default();
        let mut spent = |caller, second| {
            (0..1_000)
                .filter(|_| budgets.spend(caller, at(second)))
                .count()
        };
        assert_eq!(spent(1, 0), 40);
        assert_eq!(spent(2, 0), 40);
        assert_eq!(spent(1, 4), 0);
        assert_eq!(spent(1, 10), 2);
        let all: usize = (3..100).map(|caller| spent(caller, 10)).sum();
        // Of 200 so many were left, and ten have come back since.
        assert_eq!(all, 200 - 80 - 2 + 10);
    }

    #[test]
    fn those_who_ask_take_nothing_from_the_controller() {
        let mut budgets = Budgets::default();
        for caller in 0..10_000 {
            budgets.spend(caller, at(0));
        }
        assert!(budgets.each.len() <= CALLERS);
        let own = (0..1_000).filter(|_| budgets.spend_own(at(0))).count();
        assert_eq!(own, 200);
    }

    #[test]
    fn a_clock_that_was_set_back_silences_nobody() {
        let mut budgets = Budgets::default();
        assert!(budgets.spend(1, at(10_000)) && budgets.spend_own(at(10_000)));
        assert!(budgets.spend(1, at(0)) && budgets.spend_own(at(0)));
    }
}
