//! The course of a run: what each batch wants the workloads to have.
//!
//! What comes in: the plan, the totals of the run, and what the workloads have. What goes out: goals, sizes in
//! the order of the workloads, which of them is written next, and whether the pods are there.

use sluice_crds::RolloutStatus;
use sluice_crds::rollout::{Mode, Run, Size};

use super::batch::{Due, InPlace, Pair, PairSizes, Scale, Seen};
use super::plan::Plan;
use super::size::Span;
use super::state::Illegal;
use super::workload::{Kind, Workload};

/// The course of a run.
#[derive(Clone, Debug)]
pub(super) enum Course {
    /// Deployments are scaled against each other.
    Pair(Pair),
    /// A partition is lowered.
    Update(InPlace),
    /// One workload is scaled.
    Scale(Scale),
}

/// What people are told of a batch: its index, which `lastBatchToRollout` has as well, and its step.
pub(super) fn called(index: usize, batches: usize) -> String {
    format!("batch {index} ({}/{batches})", index + 1)
}

/// A number of pods, as a status has it.
pub(super) fn count(pods: u32) -> i32 {
    i32::try_from(pods).unwrap_or(i32::MAX)
}

/// A number of pods of a status. None of them is below zero.
pub(super) fn pods(count: i32) -> u32 {
    u32::try_from(count).unwrap_or(0)
}

/// What a workload has. One that is gone has nothing.
pub(super) fn present(workload: Option<&Workload<'_>>) -> Size {
    let Some(workload) = workload else {
        return Size {
            replicas: Some(0),
            partition: None,
        };
    };
    let partition = match workload.kind {
        Kind::Deployment => None,
        Kind::StatefulSet | Kind::CloneSet => Some(count(workload.pods_held())),
    };
    Size {
        replicas: Some(count(workload.seen().wanted)),
        partition,
    }
}

fn replicas(size: Option<&Size>) -> u32 {
    pods(size.and_then(|size| size.replicas).unwrap_or(0))
}

/// The sizes of a pair.
pub(super) fn of_pair(sizes: &[Size]) -> PairSizes {
    PairSizes {
        target: replicas(sizes.first()),
        sources: sizes
            .iter()
            .skip(1)
            .map(|size| replicas(Some(size)))
            .collect(),
    }
}

fn sized(pods: u32) -> Size {
    Size {
        replicas: Some(count(pods)),
        partition: None,
    }
}

/// The same in the order of the workloads.
pub(super) fn to_sizes(pair: &PairSizes) -> Vec<Size> {
    let sources = pair.sources.iter().copied();
    [pair.target]
        .into_iter()
        .chain(sources)
        .map(sized)
        .collect()
}

impl Course {
    /// The course of a run that a status has.
    ///
    /// # Errors
    /// No run can have written it.
    pub(super) fn of(plan: &Plan, run: &Run, status: &RolloutStatus) -> Result<Self, Illegal> {
        let total = pods(status.rollout_target_size.ok_or(Illegal)?);
        let original = pods(status.rollout_original_size.unwrap_or(0));
        match run.mode {
            Mode::Pair => {
                // Where the spec names something else now, this run only ends.
                let strategy = plan.members.strategy();
                let was = run.workloads.iter().skip(1).map(|it| pods(it.was));
                Pair::of(Some(total), None, was.collect(), strategy)
                    .map(Course::Pair)
                    .map_err(|_| Illegal)
            }
            Mode::Update => Ok(Course::Update(InPlace { replicas: total })),
            Mode::Scale => Ok(Course::Scale(Scale {
                from: original,
                to: total,
            })),
        }
    }

    /// Between which numbers of pods it goes. None: it goes nowhere.
    pub(super) fn span(&self) -> Option<Span> {
        match self {
            Course::Pair(pair) => pair.span().ok(),
            Course::Update(it) => Some(Span::Update {
                to: it.replicas.try_into().ok()?,
            }),
            Course::Scale(it) => Some(Span::Scale {
                from: it.from,
                to: it.to,
            }),
        }
    }

    /// How many pods there are to be once a batch is done.
    pub(super) fn goal(&self, plan: &Plan, index: usize) -> u32 {
        self.span().map_or(0, |span| plan.sizes.goal(span, index))
    }

    /// The number of pods of which a percentage is.
    pub(super) fn total(&self) -> u32 {
        self.span().map_or(0, Span::total)
    }

    /// The sizes that a batch with this goal wants.
    pub(super) fn sizes(&self, goal: u32, present: &[Size]) -> Vec<Size> {
        match self {
            Course::Pair(pair) => to_sizes(&pair.sizes(goal, &of_pair(present))),
            Course::Update(it) => {
                let before = present.first().and_then(|size| size.partition);
                let partition = it.partition(goal, pods(before.unwrap_or(0)));
                vec![Size {
                    replicas: None,
                    partition: Some(count(partition)),
                }]
            }
            Course::Scale(it) => vec![sized(it.replicas(goal, replicas(present.first())))],
        }
    }

    /// Whether a batch with this goal has nothing to do.
    pub(super) fn is_met(&self, goal: u32, present: &[Size]) -> bool {
        let wanted = self.sizes(goal, present);
        wanted.len() == present.len()
            && (wanted.iter().zip(present)).all(|(wanted, size)| is_reached(*wanted, *size))
    }

    /// What has to be done next so that the workloads have these sizes, and whether their pods are there.
    pub(super) fn due(
        &self,
        sizes: &[Size],
        goal: u32,
        unavailable: u32,
        workloads: &[Workload<'_>],
        available: Option<u32>,
    ) -> Due {
        let Some((target, sources)) = workloads.split_first() else {
            return Due::Pods;
        };
        let is_written = sizes
            .first()
            .is_some_and(|wanted| is_reached(*wanted, present(Some(target))));
        match self {
            Course::Pair(pair) => {
                let seen: Vec<Seen> = sources.iter().map(Workload::seen).collect();
                pair.due(&of_pair(sizes), goal, unavailable, target.seen(), &seen)
            }
            Course::Update(_) | Course::Scale(_) if !is_written => Due::Target,
            Course::Update(_) => {
                let enough = |available: u32| available.saturating_add(unavailable) >= goal;
                match target.seen().is_observed && available.is_some_and(enough) {
                    true => Due::Nothing,
                    false => Due::Pods,
                }
            }
            Course::Scale(scale) => match scale.is_reached(goal, unavailable, target.seen()) {
                true => Due::Nothing,
                false => Due::Pods,
            },
        }
    }
}

/// Whether a workload with the second size has what the first one wants.
pub(super) fn is_reached(wanted: Size, present: Size) -> bool {
    let is_same = |wanted: Option<i32>, present| wanted.is_none() || wanted == present;
    is_same(wanted.replicas, present.replicas) && is_same(wanted.partition, present.partition)
}
