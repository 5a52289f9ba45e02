//! How much there is to do for this replica.

use std::sync::Arc;

use crate::act::queue::Shared;
use crate::lease::Leadership;

/// What is due, as far as this replica is the one to look at it.
#[derive(Clone)]
pub(super) struct Load {
    pub(super) queue: Arc<Shared>,
    /// Until when this replica may write.
    pub(super) leadership: Leadership,
}

impl Load {
    /// Whether this replica may write.
    pub(super) fn leads(&self) -> bool {
        self.leadership.left().is_some()
    }

    /// How many objects are due to be looked at by this replica: none while it does not lead. What
    /// was due when it lost the lead stays in its queue, and another replica looks at it.
    pub(super) fn backlog(&self) -> usize {
        if self.leads() {
            self.queue.backlog()
        } else {
            0
        }
    }

    /// Whether something waits that this replica may begin with now.
    pub(super) fn busy(&self) -> bool {
        self.leads() && self.queue.busy()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::cluster::key::{KeyRef, Work};
    use crate::cluster::kind::{Kind, Urgency};
    use crate::lease::Held;
    use crate::observe::clock::{Jumps, SetClock};

    #[tokio::test]
    async fn who_has_lost_the_lead_has_nothing_left_to_do() {
        let clock = Arc::new(SetClock::new("2026-11-20T12:00:00Z".parse().unwrap()));
        let (until, leadership) = Leadership::new(Arc::new(Jumps::new(clock.clone())));
        let load = Load {
            queue: Arc::new(Shared::new(8)),
            leadership,
        };
        for name in ["first", "second", "third"] {
            let namespace = "apps";
            let gate = Work::own(Kind::Gate, KeyRef { namespace, name }.into());
            load.queue
                .push(gate, Urgency::Gate, "2026-11-20T11:00:00Z".parse().unwrap());
        }
        let later = Instant::now() + Duration::from_secs(3600);
        until.send_replace(Some(Held::until(later)));
        let taken = load.queue.next(clock.as_ref()).await;
        assert_eq!((load.leads(), load.backlog()), (true, 2));
        until.send_replace(None);
        load.queue.done(&taken);
        assert_eq!((load.leads(), load.backlog()), (false, 0));
    }
}
