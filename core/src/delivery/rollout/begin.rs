//! How a run begins: what is latched of the workloads, from which sizes to which it goes, and what it begins
//! with.
//!
//! What comes in: the plan, the runs before, and the workloads that the spec names, all of them there. What goes out: a
//! [`Beginning`], or a mistake that only another spec fixes. A run whose status is lost is found by its claims:
//! it keeps its number, so that hooks know their calls again.

use std::ops::RangeInclusive;

use sluice_crds::rollout::{Mode, PastRun, Run, Size, WorkloadRecord};

use super::app;
use super::batch::{InPlace, Pair, PairSizes, Scale};
use super::claim::{Claim, Ended};
use super::course::{Course, count, is_reached, of_pair, pods, present};
use super::given::{Given, Member};
use super::identity;
use super::plan::Plan;
use super::size::Span;
use super::workload::{Kind, Workload};
use crate::text::refusal::Refusal;

/// How far the number of a run may be ahead of the clock, in milliseconds: a year.
const AHEAD: i64 = 365 * 86_400_000;

/// A run that would begin.
#[derive(Clone, Debug)]
pub(super) struct Beginning {
    /// What is latched.
    pub(super) run: Run,
    /// Its course.
    pub(super) course: Course,
    /// How many pods there are to be.
    pub(super) total: u32,
    /// How many there were.
    pub(super) original: u32,
    /// The sizes with which it starts.
    pub(super) start: Vec<Size>,
    /// The first batch that has something to do. None: nothing is left to roll.
    pub(super) first: Option<usize>,
}

/// The run that would begin with these workloads, the target first, after the runs of this history.
///
/// # Errors
/// A mistake that only another spec fixes.
pub(super) fn begin(
    given: &Given,
    history: &[PastRun],
    plan: &Plan,
    members: &[Member<'_>],
) -> Result<Option<Beginning>, Refusal> {
    let Some((target, _)) = members.split_first() else {
        return Ok(None);
    };
    let object = given.object.as_ref();
    let ids = (
        identity::identity(object, Some(target.1.object)),
        app::revision(given, Some(target.1.object)),
    );
    let (Some(identity), Some(revision)) = ids else {
        return Ok(None);
    };
    let lost = lost(given, history, &identity, members);
    let course = course(given, lost, plan, &identity, members)?;
    let present: Vec<Size> = members.iter().map(|(_, it)| present(Some(it))).collect();
    let (mode, total, original) = totals(&course, members);
    let is_nothing = is_nothing(&course, members);
    if let Some(span) = course.span().filter(|_| !is_nothing) {
        plan.sizes.fit(span)?;
    }
    let start = start(&course, &present);
    let records = members.iter().zip(&start).enumerate();
    let records = records.map(|(place, ((name, workload), start))| {
        let claim = Claim::of(workload.object).filter(|it| is_of_lost(given, lost, it));
        record(place, (name.reference(), workload), *start, claim)
    });
    let run = Run {
        id: lost.unwrap_or_else(|| next_id(given, history, members)),
        mode,
        revision,
        identity,
        workloads: records.collect(),
    };
    let is_open = |index: &usize| !course.is_met(course.goal(plan, *index), &present);
    let first = (0..plan.sizes.count()).find(is_open);
    Ok(Some(Beginning {
        first: first.filter(|_| !is_nothing),
        run,
        total,
        original,
        start,
        course,
    }))
}

/// The number of the run of the same that was not ended, and of which the status is lost.
fn lost(given: &Given, history: &[PastRun], identity: &str, members: &[Member<'_>]) -> Option<i64> {
    let object = given.object.as_ref();
    let newest = history.iter().map(|run| run.id).max().unwrap_or(0);
    let claims = members
        .iter()
        .filter_map(|(_, workload)| Claim::of(workload.object));
    let same = claims.filter(|claim| {
        claim.ended.is_none()
            && claim.is_by(object)
            && claim.is_asked_for(identity, object)
            && claim.run > newest
            && claim.run < far_ahead(given)
    });
    same.map(|claim| claim.run).max()
}

/// Whether a claim is of the run that is lost: that of another run says nothing of what was before this one.
fn is_of_lost(given: &Given, lost: Option<i64>, claim: &Claim) -> bool {
    claim.is_by(&given.object) && lost == Some(claim.run)
}

/// More than that of every run before it.
fn next_id(given: &Given, history: &[PastRun], members: &[Member<'_>]) -> i64 {
    let history = history.iter().map(|run| run.id);
    let claims = members
        .iter()
        .filter_map(|(_, it)| Claim::of(it.object))
        .map(|claim| claim.run);
    let claims = claims.filter(|run| *run < far_ahead(given));
    let newest = history.chain(claims).max().unwrap_or(0);
    let now = given.now.at.as_millisecond();
    now.max(newest.saturating_add(1))
}

/// Anybody may have written a claim. No run of ours has so great a number, whatever the clock was.
fn far_ahead(given: &Given) -> i64 {
    given.now.at.as_millisecond().saturating_add(AHEAD)
}

fn course(
    given: &Given,
    lost: Option<i64>,
    plan: &Plan,
    identity: &str,
    members: &[Member<'_>],
) -> Result<Course, Refusal> {
    let claims: Vec<Option<Claim>> = members.iter().map(|(_, it)| Claim::of(it.object)).collect();
    let was = |place: usize| {
        let claim = claims
            .get(place)
            .and_then(Option::as_ref)
            .filter(|it| is_of_lost(given, lost, it));
        let seen = members.get(place).map(|(_, it)| it.seen().wanted);
        claim.map_or(seen.unwrap_or(0), |claim| pods(claim.was))
    };
    match (members[0].0.kind, members.len()) {
        (Kind::StatefulSet | Kind::CloneSet, _) => in_place(plan, &members[0].1, was(0)),
        (Kind::Deployment, 2..) => {
            let sources: Vec<u32> = (1..members.len()).map(was).collect();
            let old = sources.iter().map(|size| u64::from(*size)).sum();
            let there = old..=old + u64::from(was(0));
            let claimed = claims.iter().zip(members).filter_map(|(claim, (_, it))| {
                let claim = claim.as_ref()?;
                counts(given, lost, (claim, it), identity, &there).then_some(claim)
            });
            let newest = claimed.max_by_key(|claim| claim.run);
            let of = newest.map(|claim| pods(claim.of));
            let strategy = plan.members.strategy();
            let pair = Pair::of(plan.target_size, of, sources, strategy)?;
            pair.span()?;
            Ok(Course::Pair(pair))
        }
        (Kind::Deployment, _) => {
            let to = plan.target_size.ok_or_else(|| {
                Refusal::new(
                    "spec.rolloutPlan.targetSize",
                    "without a source nothing says how many pods there are to be",
                    "write targetSize, or name the Deployment with the old version in sourceRef",
                )
            })?;
            Ok(Course::Scale(Scale { from: was(0), to }))
        }
    }
}

/// Whether the total of a claim counts: of the run that is lost, of another run of this Rollout that was left halfway
/// and whose sizes nobody has changed since, or of the same after it has ended. Also of any other that was left halfway,
/// while the target has the pods that the sources lack. Never one below the pods of the sources, which somebody has
/// scaled since. `there`: the pods of the sources, and those of all.
fn counts(
    given: &Given,
    lost: Option<i64>,
    (claim, workload): (&Claim, &Workload<'_>),
    identity: &str,
    there: &RangeInclusive<u64>,
) -> bool {
    let is_same = claim.identity == identity;
    let of = u64::from(pods(claim.of));
    if of == 0 || of < *there.start() || claim.run >= far_ahead(given) {
        return false;
    }
    match claim.ended {
        None if is_of_lost(given, lost, claim) => true,
        None if claim.is_by(&given.object) && is_reached(claim.wrote, present(Some(workload))) => {
            true
        }
        Some(Ended::Done) => is_same,
        None | Some(Ended::Failed | Ended::Aborted) => is_same || there.contains(&of),
    }
}

fn in_place(plan: &Plan, target: &Workload<'_>, was: u32) -> Result<Course, Refusal> {
    let replicas = target.seen().wanted;
    let to = plan.target_size.unwrap_or(was);
    match target.is_updating() {
        true if plan.target_size.is_some_and(|size| size != replicas) => Err(Refusal::new(
            "spec.rolloutPlan.targetSize",
            format!("there are {replicas} pods, and they have to be updated, too"),
            "leave it out; scale in a run of its own",
        )),
        false if to != replicas || to != was => Ok(Course::Scale(Scale { from: was, to })),
        true | false => Ok(Course::Update(InPlace { replicas })),
    }
}

fn totals(course: &Course, members: &[Member<'_>]) -> (Mode, u32, u32) {
    let seen = |place: usize| members.get(place).map_or(0, |(_, it)| it.seen().wanted);
    match course {
        Course::Pair(pair) => {
            let total = pair.span().map_or(0, Span::end);
            let original = (1..members.len()).map(seen);
            (Mode::Pair, total, original.fold(0, u32::saturating_add))
        }
        Course::Update(it) => (Mode::Update, it.replicas, it.replicas),
        Course::Scale(it) => (Mode::Scale, it.to, it.from),
    }
}

/// The sizes with which a run starts.
fn start(course: &Course, present: &[Size]) -> Vec<Size> {
    match course {
        Course::Pair(pair) => {
            let sizes = of_pair(present);
            let target = pair.start(&sizes);
            super::course::to_sizes(&PairSizes { target, ..sizes })
        }
        // Only what the run writes: the rest is latched, and anyone who changes it is told.
        Course::Update(_) => present
            .iter()
            .map(|size| Size {
                replicas: None,
                ..*size
            })
            .collect(),
        Course::Scale(_) => present
            .iter()
            .map(|size| Size {
                partition: None,
                ..*size
            })
            .collect(),
    }
}

/// Whether there is nothing to roll out, however its partition is.
fn is_nothing(course: &Course, members: &[Member<'_>]) -> bool {
    match course {
        Course::Update(_) => !members.iter().any(|(_, it)| it.is_updating()),
        Course::Scale(scale) => scale.from == scale.to,
        Course::Pair(_) => false,
    }
}

fn record(
    place: usize,
    (reference, workload): (sluice_crds::rollout::WorkloadReference, &Workload<'_>),
    start: Size,
    claim: Option<Claim>,
) -> WorkloadRecord {
    let is_target = place == 0;
    let former = || workload.revisions().0.map(str::to_owned);
    let (was, begun, from) = match claim {
        Some(claim) => (claim.was, claim.start, claim.former),
        None => {
            let begun = start.partition.or(start.replicas).unwrap_or(0);
            (count(workload.seen().wanted), begun, former())
        }
    };
    WorkloadRecord {
        r#ref: reference,
        uid: workload.uid().to_owned(),
        was,
        start: begun,
        template: identity::template(workload.object),
        former: from.filter(|_| is_target && workload.kind != Kind::Deployment),
    }
}
