//! What the workloads of a run are to have, at its start, for a batch, and where it ends.
//!
//! What comes in: the totals of the run, the goal of a batch, and what the workloads have now. What goes out:
//! sizes, all of a batch at once, and which half of them is due. Goals never go back: a size that is beyond
//! what a batch wants stays, however it came there. So a run that is resumed passes the batches that it has
//! reached.

use std::num::NonZeroU32;

use sluice_crds::rollout::RolloutStrategy;

use super::size::Span;
use crate::text::refusal::Refusal;

#[cfg(test)]
mod tests;

/// What a workload says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The replicas that its spec wants.
    pub wanted: u32,
    /// Whether what follows is about this spec.
    pub is_observed: bool,
    /// Its pods.
    pub replicas: u32,
    /// Those of them that are available.
    pub available: u32,
}

/// What has to be done next for the sizes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The size of the target is written.
    Target,
    /// The sizes of the sources are written.
    Sources,
    /// Pods come or go.
    Pods,
    /// Nothing: it is reached.
    Nothing,
}

/// Deployments that are scaled against each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    total: u32,
    was: Vec<u32>,
    strategy: RolloutStrategy,
}

/// The sizes of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairSizes {
    /// That of the target.
    pub target: u32,
    /// Those of the sources, in their order.
    pub sources: Vec<u32>,
}

impl PairSizes {
    /// All pods of the old version.
    fn old(&self) -> u64 {
        self.sources.iter().map(|size| u64::from(*size)).sum()
    }
}

impl Pair {
    /// The pair of a run whose sources had these sizes. The total is the target size of the spec, or that of
    /// the run that has left its claim, or the sum of the sources.
    ///
    /// # Errors
    /// A target size that is below that sum: pods that serve would be taken away.
    pub fn of(
        target_size: Option<u32>,
        claimed: Option<u32>,
        was: Vec<u32>,
        strategy: RolloutStrategy,
    ) -> Result<Self, Refusal> {
        let sum: u64 = was.iter().map(|size| u64::from(*size)).sum();
        let sum = u32::try_from(sum).unwrap_or(u32::MAX);
        let total = target_size.or(claimed).unwrap_or(sum);
        if total < sum {
            return Err(Refusal::new(
                "spec.rolloutPlan.targetSize",
                format!("{total} pods are fewer than the {sum} of the sources"),
                "write as many at least, and scale down when the rollout is done",
            ));
        }
        Ok(Self {
            total,
            was,
            strategy,
        })
    }

    /// Between which numbers of pods it goes.
    ///
    /// # Errors
    /// There are none: a new version is rolled out to no pods.
    pub fn span(&self) -> Result<Span, Refusal> {
        let to = NonZeroU32::new(self.total).ok_or_else(|| {
            Refusal::new(
                "spec.rolloutPlan.targetSize",
                "the sources have no pods, and there is no target size",
                "write how many pods there are to be",
            )
        })?;
        Ok(Span::Update { to })
    }

    /// The size with which the target begins. One without pods has none before the first batch, however many
    /// there are to be. Others complete the total, and are never scaled down.
    pub fn start(&self, present: &PairSizes) -> u32 {
        match present.target {
            0 => 0,
            target => target.max(self.missing(present.old(), self.total)),
        }
    }

    /// The sizes that a batch with this goal wants.
    pub fn sizes(&self, goal: u32, present: &PairSizes) -> PairSizes {
        let old = self.total.saturating_sub(goal);
        PairSizes {
            target: present.target.max(goal),
            sources: emptied(&present.sources, u64::from(old)),
        }
    }

    /// Whether a batch with this goal has nothing to do.
    pub fn is_met(&self, goal: u32, present: &PairSizes) -> bool {
        self.sizes(goal, present) == *present
    }

    /// The sizes at which a run that does not succeed is left: the sources have what the target does not, which had
    /// `target_was` before the run. There are never more pods than there were, for some may never have been made.
    /// `had`: what each source had before the run. Of one that is gone it is 0, and so is what it has.
    pub fn settled(&self, target_was: u32, had: &[u32], present: &PairSizes) -> PairSizes {
        let total = self.total.min(self.before(target_was));
        let left = self.missing(present.old() + u64::from(present.target), total);
        let mut sources = present.sources.clone();
        give_back(&mut sources, had, left);
        PairSizes {
            target: present.target,
            sources,
        }
    }

    /// The sizes of the old version, and whether it has all pods that it had. The target, which has `target` pods now,
    /// goes back to those with which it began; where no source takes them, they stay. What workloads had that are gone,
    /// the others have.
    pub fn reverted(
        &self,
        (target_was, start): (u32, u32),
        had: &[u32],
        target: u32,
    ) -> (PairSizes, bool) {
        // A run may have begun with fewer pods than there had been: then its target began with more.
        let before = PairSizes {
            target: target_was,
            sources: self.was.clone(),
        };
        let start = start.min(self.start(&before));
        let mut back = PairSizes {
            target: target.min(start),
            sources: had.to_vec(),
        };
        let there = back.old() + u64::from(back.target);
        let left = self.missing(there, self.before(target_was));
        let is_whole = give_back(&mut back.sources, had, left) == 0;
        if !is_whole {
            back.target = target;
        }
        (back, is_whole)
    }

    /// All pods that there were before the run.
    fn before(&self, target_was: u32) -> u32 {
        let were = self.was.iter().chain([&target_was]);
        let sum: u64 = were.map(|size| u64::from(*size)).sum();
        u32::try_from(sum).unwrap_or(u32::MAX)
    }

    /// How many pods `present` ones are short of a total.
    fn missing(&self, present: u64, total: u32) -> u32 {
        let missing = u64::from(total).saturating_sub(present);
        u32::try_from(missing).unwrap_or(total)
    }

    /// Which half of `sizes` is due, for a batch with this goal, of which so many pods need not be available.
    pub fn due(
        &self,
        sizes: &PairSizes,
        goal: u32,
        unavailable: u32,
        target: Seen,
        sources: &[Seen],
    ) -> Due {
        let up = if target.wanted < sizes.target {
            Due::Target
        } else if !target.is_observed || target.available.saturating_add(unavailable) < goal {
            Due::Pods
        } else {
            Due::Nothing
        };
        let both = || sources.iter().zip(&sizes.sources);
        let down = if both().any(|(seen, size)| seen.wanted > *size) {
            Due::Sources
        } else if both().any(|(seen, size)| !seen.is_observed || seen.replicas > *size) {
            Due::Pods
        } else {
            Due::Nothing
        };
        let (first, second) = match self.strategy {
            RolloutStrategy::IncreaseFirst => (up, down),
            RolloutStrategy::DecreaseFirst => (down, up),
        };
        match first {
            Due::Nothing => second,
            due => due,
        }
    }
}

/// Gives so many pods to the sources, each of which had so many before the run. One that had none gets none: of its
/// version nobody was asked. Returns how many no source takes.
pub(super) fn give_back(sources: &mut [u32], had: &[u32], mut left: u32) -> u32 {
    let mut last = None;
    // The last ones are emptied last: they have the newer of the old versions.
    for (size, had) in sources.iter_mut().zip(had).rev() {
        let more = had.saturating_sub(*size).min(left);
        *size += more;
        left -= more;
        if *had > 0 {
            last.get_or_insert(size);
        }
    }
    // The others had these.
    match last {
        Some(size) => {
            *size = size.saturating_add(left);
            0
        }
        None => left,
    }
}

/// The sources with so many pods at most together. They are emptied in their order, and none of them grows.
fn emptied(sources: &[u32], keep: u64) -> Vec<u32> {
    let sum: u64 = sources.iter().map(|size| u64::from(*size)).sum();
    let mut excess = sum.saturating_sub(keep);
    let empty = |size: &u32| {
        let taken = u32::try_from(excess).unwrap_or(u32::MAX).min(*size);
        excess -= u64::from(taken);
        size - taken
    };
    sources.iter().map(empty).collect()
}

/// The partition that no number of replicas reaches: nothing is rolled by itself.
pub const ARMED: u32 = 2_147_483_647;

/// An object that has both versions: so many of its pods stay old as its partition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPlace {
    /// Its replicas.
    pub replicas: u32,
}

impl InPlace {
    /// The partition that a batch with this goal wants.
    pub fn partition(self, goal: u32, present: u32) -> u32 {
        present.min(self.replicas.saturating_sub(goal))
    }

    /// Whether nothing of a new template goes out by itself. That the partition is the number of replicas is
    /// not enough: one commit may raise both.
    pub fn is_armed(partition: u32) -> bool {
        partition == ARMED
    }
}

/// One workload that gets another size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The size that it had.
    pub from: u32,
    /// The size that it is to have.
    pub to: u32,
}

impl Scale {
    /// The replicas that a batch with this goal wants.
    pub fn replicas(self, goal: u32, present: u32) -> u32 {
        match self.from <= self.to {
            true => present.max(goal),
            false => present.min(goal),
        }
    }

    /// Whether the workload has reached the goal: its pods are available, or gone.
    pub fn is_reached(self, goal: u32, unavailable: u32, seen: Seen) -> bool {
        seen.is_observed
            && match self.from <= self.to {
                true => seen.available.saturating_add(unavailable) >= goal,
                false => seen.replicas <= goal,
            }
    }
}
