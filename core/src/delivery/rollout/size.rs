//! How many pods of the new version there are after each batch.
//!
//! What comes in: the sizes of the batches as a plan has them, and the numbers of pods between which the run
//! goes. What goes out: the goal of each batch, and whether the plan fits these numbers at all. The rules are
//! those of the OAM rollout plan as KubeVela carries it out.

use std::num::NonZeroU32;

use crate::text::refusal::Refusal;

#[cfg(test)]
mod tests;

/// A number of pods, or a part of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many pods.
    Pods(u32),
    /// So many hundredths of a total, rounded up.
    Percent(Percent),
}

/// A whole number from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent(u8);

impl Percent {
    /// The percentage, if there is such a one.
    pub fn new(percent: u8) -> Option<Self> {
        (percent <= 100).then_some(Self(percent))
    }

    /// So many hundredths of `total`, rounded up. Never more than `total`.
    fn of(self, total: u32) -> u32 {
        let part = (u64::from(total) * u64::from(self.0)).div_ceil(100);
        u32::try_from(part).unwrap_or(total)
    }
}

impl Amount {
    /// The number of pods that it is, of `total`.
    pub fn of(self, total: u32) -> u32 {
        match self {
            Amount::Pods(pods) => pods,
            Amount::Percent(percent) => percent.of(total),
        }
    }
}

/// The size of the last batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// Whatever is left. A percentage in the last batch means the same: rounded up as the ones before it, it
    /// would rarely be exact.
    Rest,
    /// So many pods, which have to be exactly those that are left.
    Pods(u32),
}

/// The sizes of all batches. There is always a last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// So many batches of equal size. What is left over goes to the last ones, one pod each.
    Equal(NonZeroU32),
    /// Each has its own size.
    Each {
        /// The batches before the last one.
        before: Vec<Amount>,
        /// The last one.
        last: Last,
    },
}

/// The numbers of pods between which a run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// From no pod of the new version to all of them. No version is rolled out to no pods.
    Update {
        /// All of them.
        to: NonZeroU32,
    },
    /// One workload gets another size.
    Scale {
        /// The size that it has.
        from: u32,
        /// The size that it is to have.
        to: u32,
    },
}

impl Span {
    /// The number of pods that all batches together move, and of which percentages are.
    pub fn total(self) -> u32 {
        match self {
            Span::Update { to } => to.get(),
            Span::Scale { from, to } => from.abs_diff(to),
        }
    }

    /// The number of pods at the end.
    pub fn end(self) -> u32 {
        match self {
            Span::Update { to } => to.get(),
            Span::Scale { to, .. } => to,
        }
    }

    /// The number of pods once `moved` of them have been moved.
    fn after(self, moved: u32) -> u32 {
        match self {
            Span::Update { .. } => moved,
            Span::Scale { from, to } if from <= to => from + moved,
            Span::Scale { from, .. } => from - moved,
        }
    }
}

impl Sizes {
    /// How many batches there are.
    pub fn count(&self) -> usize {
        match self {
            Sizes::Equal(count) => usize::try_from(count.get()).unwrap_or(usize::MAX),
            Sizes::Each { before, .. } => before.len() + 1,
        }
    }

    /// How many pods each batch moves. Together they move all.
    pub fn moves(&self, span: Span) -> Vec<u32> {
        let mut left = span.total();
        let mut sizes = self.wanted(span.total());
        for size in &mut sizes {
            *size = (*size).min(left);
            left -= *size;
        }
        if let Some(last) = sizes.last_mut() {
            *last += left;
        }
        sizes
    }

    /// How many pods there are to be once batch `index` is done: of the new version, or of the workload that
    /// is scaled. Behind the last batch it is the end, too.
    pub fn goal(&self, span: Span, index: usize) -> u32 {
        let moves = self.moves(span);
        let passed = moves.iter().take(index.saturating_add(1));
        span.after(passed.sum())
    }

    /// What each batch would move if there were pods enough.
    fn wanted(&self, total: u32) -> Vec<u32> {
        match self {
            Sizes::Equal(count) => {
                let (each, left) = (total / count.get(), total % count.get());
                let size = |place| each + u32::from(place >= count.get() - left);
                (0..count.get()).map(size).collect()
            }
            Sizes::Each { before, last } => {
                let last = match last {
                    Last::Rest => 0,
                    Last::Pods(pods) => *pods,
                };
                let before = before.iter().map(|amount| amount.of(total));
                before.chain([last]).collect()
            }
        }
    }

    /// Whether the batches fit these numbers of pods: those before the last one leave something to it, and
    /// it completes them. Where nothing has to be moved, no batch may move anything.
    ///
    /// # Errors
    /// The first batch that does not, by its field of the spec.
    pub fn fit(&self, span: Span) -> Result<(), Refusal> {
        let Sizes::Each { before, last } = self else {
            return Ok(());
        };
        let total = u64::from(span.total());
        let mut sum = 0;
        for (place, amount) in before.iter().enumerate() {
            sum += u64::from(amount.of(span.total()));
            if sum > total || (sum == total && total > 0) {
                return Err(Refusal::new(
                    field(place),
                    format!(
                        "the batches up to this one move {sum} pods of {total}, and leave none to the last one"
                    ),
                    "write smaller batches, or fewer of them",
                ));
            }
        }
        match last {
            Last::Pods(pods) if sum + u64::from(*pods) != total => Err(Refusal::new(
                field(before.len()),
                format!(
                    "all batches together move {} pods, and there are {total} to move",
                    sum + u64::from(*pods)
                ),
                format!(
                    "write {}, or leave the size of the last batch out",
                    total - sum
                ),
            )),
            Last::Pods(_) | Last::Rest => Ok(()),
        }
    }
}

/// Where a plan has the size of a batch.
fn field(place: usize) -> String {
    format!("spec.rolloutPlan.rolloutBatches[{place}].replicas")
}
