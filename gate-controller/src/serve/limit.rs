//! How often somebody may ask.
//!
//! What comes in: who asks, and how much. What goes out: whether they may, or when.
//!
//! Each caller has a slot, chosen by a hash that nobody outside can predict. The number of slots is
//! fixed, however many callers there are. Two callers with the same slot share its rate: that becomes
//! likely only among hundreds who ask without a pause.

use std::hash::{BuildHasher, Hash, RandomState};
use std::marker::PhantomData;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed, StateStore};
use governor::{Quota, RateLimiter};

/// How many slots there are: 512 KiB of them.
const SLOTS: usize = 1 << 16;

/// How much one may ask: so much a second, and so much at once after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// A second.
    pub rate: NonZeroU32,
    /// At once.
    pub burst: NonZeroU32,
}

/// Who is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Who {
    /// Somebody who is known, by a hash of what is known of them.
    Caller([u8; 32]),
    /// A machine of which no more is known.
    Address(IpAddr),
}

impl Who {
    /// Who is at an address. Of IPv6 the first 64 bits: who has one address may have all of those,
    /// and would have a share for each.
    pub(super) fn at(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => {
                let network = address.to_bits() >> 64 << 64;
                IpAddr::V6(network.into())
            }
        })
    }
}

/// The limits of all.
pub(super) struct Limiter<C: Clock = MonotonicClock> {
    limiter: RateLimiter<Who, Slots<Who>, C, NoOpMiddleware<C::Instant>>,
    burst: NonZeroU32,
}

impl Limiter {
    /// Nobody has asked for anything yet.
    pub(super) fn new(rate: Rate) -> Self {
        Self::with_clock(rate, MonotonicClock)
    }
}

impl<C: Clock> Limiter<C> {
    fn with_clock(Rate { rate, burst }: Rate, clock: C) -> Self {
        let quota = Quota::per_second(rate).allow_burst(burst);
        let limiter = RateLimiter::new(quota, Slots::new(SLOTS), clock);
        Self { limiter, burst }
    }

    /// Whether `who` may ask for `much` now.
    ///
    /// # Errors
    /// How long they have to wait. More than there is at once is never granted: it is counted as
    /// all there is.
    pub(super) fn take(&self, who: Who, much: NonZeroU32) -> Result<(), Duration> {
        let clock = self.limiter.clock();
        match self.limiter.check_key_n(&who, much.min(self.burst)) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(not_until)) => Err(not_until.wait_time_from(clock.now())),
            // It cannot be: that much is never asked for.
            Err(_) => Err(Duration::from_secs(1)),
        }
    }
}

/// As many states as there are slots, for any number of keys.
struct Slots<K> {
    hasher: RandomState,
    states: Box<[InMemoryState]>,
    keys: PhantomData<fn(K)>,
}

impl<K: Hash> Slots<K> {
    fn new(count: usize) -> Self {
        Self {
            hasher: RandomState::new(),
            states: (0..count).map(|_| InMemoryState::default()).collect(),
            keys: PhantomData,
        }
    }

    fn slot(&self, key: &K) -> &InMemoryState {
        let hash = self.hasher.hash_one(key);
        let count = self.states.len() as u64;
        // The remainder fits, since the count does.
        &self.states[usize::try_from(hash % count).unwrap_or_default()]
    }
}

impl<K: Hash> StateStore for Slots<K> {
    type Key = K;

    fn measure_and_replace<T, F, E>(&self, key: &K, change: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        self.slot(key)
            .measure_and_replace(&NotKeyed::NonKey, change)
    }
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    fn n(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).unwrap()
    }

    fn limiter(rate: u32, burst: u32) -> (Limiter<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        let rate = Rate {
            rate: n(rate),
            burst: n(burst),
        };
        (Limiter::with_clock(rate, clock.clone()), clock)
    }

    #[test]
    fn a_burst_is_granted_and_the_rest_when_its_time_has_come() {
        let (limiter, clock) = limiter(2, 4);
        let alice = Who::Caller([1; 32]);
        assert_eq!(limiter.take(alice, n(3)), Ok(()));
        assert_eq!(limiter.take(alice, n(1)), Ok(()));
        assert_eq!(limiter.take(alice, n(1)), Err(Duration::from_millis(500)));
        clock.advance(Duration::from_millis(499));
        assert_eq!(limiter.take(alice, n(1)), Err(Duration::from_millis(1)));
        clock.advance(Duration::from_millis(1));
        assert_eq!(limiter.take(alice, n(1)), Ok(()));
    }

    #[test]
    fn one_does_not_pay_for_another() {
        let (limiter, _) = limiter(1, 1);
        let all = (0..100).map(|n| Who::Caller([n; 32]));
        // Of a hundred, two may share a slot; not many.
        let granted = all.filter(|who| limiter.take(*who, n(1)).is_ok()).count();
        assert!(granted >= 95, "{granted}");
    }

    #[test]
    fn more_than_there_is_at_once_costs_all_there_is() {
        let (limiter, clock) = limiter(1, 4);
        let alice = Who::Caller([1; 32]);
        assert_eq!(limiter.take(alice, n(32)), Ok(()));
        clock.advance(Duration::from_secs(3));
        assert_eq!(limiter.take(alice, n(32)), Err(Duration::from_secs(1)));
    }

    #[test]
    fn however_many_turn_up_there_are_so_many_slots() {
        let slots = Slots::new(8);
        for key in 0..1_000_u32 {
            slots
                .measure_and_replace(&key, |_| Ok::<_, ()>(((), Nanos::new(1))))
                .unwrap();
        }
        assert_eq!(slots.states.len(), 8);
    }

    #[test]
    fn an_address_is_the_network_that_its_owner_has() {
        let at = |text: &str| Who::at(text.parse().unwrap());
        assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:0:0:1"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
    }
}
