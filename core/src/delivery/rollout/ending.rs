//! How a run ends: what is settled, what is brought back, and what is given back.
//!
//! What comes in: the accepted status of a run that ends, and its workloads. What goes out: what has still to
//! be written, and what is waited for. Where a run does not succeed, the sources first get what the target does
//! not have, or all that they had: they never stay short of pods. A workload that is gone counts as one without
//! pods.

use serde_json::Value;
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::{Mode, RollingState, Run, Size};

use super::batch::{ARMED, Pair, PairSizes};
use super::claim::Ended;
use super::course::{Course, count, is_reached, of_pair, pods, present, to_sizes};
use super::desk::{Desk, OfRun, sizes};
use super::given::{Pod, Templates};
use super::hook::hash;
use super::state::State;
use super::why::Why;
use super::workload::Workload;
use super::{identity, restore};

/// What is left to do at an end.
#[derive(Clone, Debug, Default)]
pub(super) struct Ending {
    /// The workloads whose sizes are written now: their places in the run, and the sizes.
    pub(super) scale: Vec<(usize, Size)>,
    /// The template that is brought back, as a hash.
    pub(super) restores: Option<String>,
    /// The template that is written now.
    pub(super) restore: Option<Value>,
    /// The pod that is deleted now: it is broken, and keeps the old version from coming back.
    pub(super) delete: Option<Pod>,
    /// What is waited for.
    pub(super) waits: Option<String>,
    /// Why it cannot be done.
    pub(super) conflict: Option<Why>,
}

impl Ending {
    fn waiting(why: impl Into<String>) -> Self {
        Self {
            waits: Some(why.into()),
            ..Self::default()
        }
    }

    /// Whether something is written to the workload in this place.
    pub(super) fn writes_to(&self, place: usize) -> bool {
        let is_target = place == 0;
        self.scale.iter().any(|(it, _)| *it == place)
            || (is_target && (self.restore.is_some() || self.delete.is_some()))
    }

    /// Whether anything is written.
    pub(super) fn writes(&self) -> bool {
        !self.scale.is_empty() || self.restore.is_some() || self.delete.is_some()
    }
}

/// The sizes at which a run that does not succeed is left. None: as they are.
pub(super) fn left(
    course: &Course,
    (status, run): (&RolloutStatus, &Run),
    members: &[OfRun<'_>],
) -> Option<Vec<Size>> {
    match status.reverted {
        true => Some(reverted(course, run, members)),
        false => settled(course, run, members),
    }
}

/// The same where the old version does not come back.
fn settled(course: &Course, run: &Run, members: &[OfRun<'_>]) -> Option<Vec<Size>> {
    let Course::Pair(pair) = course else {
        return None;
    };
    let now = sizes(members);
    let target_was = pods(run.workloads.first().map_or(0, |it| it.was));
    let settled = to_sizes(&pair.settled(target_was, &had(members), &of_pair(&now)));
    (settled != now).then(|| of_those_here(settled, members))
}

/// What each source had before the run. One that is gone takes nothing back.
fn had(members: &[OfRun<'_>]) -> Vec<u32> {
    let sources = members.iter().skip(1);
    let had = sources.map(|(record, member)| member.as_ref().map_or(0, |_| pods(record.was)));
    had.collect()
}

/// Nothing is intended for a workload that is gone: one that only could not be read stays as it is.
fn of_those_here(sizes: Vec<Size>, members: &[OfRun<'_>]) -> Vec<Size> {
    let all = sizes.into_iter().zip(members);
    all.map(|(size, (_, member))| member.as_ref().map_or(Size::default(), |_| size))
        .collect()
}

/// Whether there are sources for all pods that the old version had before the run.
pub(super) fn comes_back_whole(course: &Course, run: &Run, members: &[OfRun<'_>]) -> bool {
    match course {
        Course::Pair(pair) => of_before(pair, run, members).1,
        Course::Update(_) | Course::Scale(_) => true,
    }
}

fn of_before(pair: &Pair, run: &Run, members: &[OfRun<'_>]) -> (PairSizes, bool) {
    let first = run.workloads.first();
    let target_had = first.map_or((0, 0), |it| (pods(it.was), pods(it.start)));
    let target = of_pair(&sizes(members)).target;
    pair.reverted(target_had, &had(members), target)
}

/// The sizes of the old version.
fn reverted(course: &Course, run: &Run, members: &[OfRun<'_>]) -> Vec<Size> {
    let was = pods(run.workloads.first().map_or(0, |it| it.was));
    match course {
        Course::Pair(pair) => {
            let (sizes, _) = of_before(pair, run, members);
            of_those_here(to_sizes(&sizes), members)
        }
        Course::Update(_) => vec![Size {
            replicas: None,
            partition: Some(0),
        }],
        Course::Scale(_) => vec![Size {
            replicas: Some(count(was)),
            partition: None,
        }],
    }
}

/// The partition with which a run in place ends after success: armed again. Otherwise it stays as it is, at 0 after the
/// last batch: where there was nothing to roll, no gate was asked, and the next template has to wait for one.
pub(super) fn rearmed(run: &Run, members: &[OfRun<'_>], rearm: bool) -> Option<Vec<Size>> {
    if run.mode != Mode::Update || !rearm {
        return None;
    }
    let partition = count(ARMED);
    let (_, target) = members.first()?;
    let now = present(target.as_ref().map(|(_, it)| it)).partition;
    (now != Some(partition)).then(|| {
        vec![Size {
            replicas: None,
            partition: Some(partition),
        }]
    })
}

/// What is left to do.
pub(super) fn ending(
    desk: &Desk<'_>,
    status: &RolloutStatus,
    run: &Run,
    members: &[OfRun<'_>],
) -> Ending {
    let Some(intent) = status.intent.as_ref().filter(|it| it.batch.is_none()) else {
        return Ending::default();
    };
    match (run.mode, status.reverted) {
        (Mode::Pair, reverted) => {
            let gives_way = status.rolling_state == Some(RollingState::RolloutAbandoned);
            let named = desk.names();
            // The next run has it too, and counts what there is: it does not wait for a template to come back.
            let is_left = |(record, member): &OfRun<'_>| {
                member.as_ref().is_some_and(|(name, it)| {
                    let is_other = record.template != identity::template(it.object);
                    gives_way && named.contains(name) && record.template.is_some() && is_other
                })
            };
            pair(&intent.sizes, members, reverted, is_left)
        }
        (Mode::Scale, _) => first_of(&intent.sizes, members),
        (Mode::Update, false) => rearm(&intent.sizes, members),
        (Mode::Update, true) => restored(desk, run, members),
    }
}

/// The sources rise first. When the old version comes back, the target falls once they are available: if they
/// do not come up, the new pods stay.
fn pair(
    wanted: &[Size],
    members: &[OfRun<'_>],
    reverted: bool,
    is_left: impl Fn(&OfRun<'_>) -> bool,
) -> Ending {
    let here = members.iter().enumerate().zip(wanted);
    let here = here.filter(|((_, of_run), _)| !is_left(of_run));
    let here = here.filter_map(|((place, (_, member)), wanted)| {
        let (name, workload) = member.as_ref()?;
        Some((place, *wanted, name, workload))
    });
    let (target, sources): (Vec<_>, Vec<_>) = here.partition(|(place, ..)| *place == 0);
    let is_due = |(_, wanted, _, workload): &&(_, Size, _, &Workload<'_>)| {
        !is_reached(*wanted, present(Some(workload)))
    };
    let scale: Vec<_> = sources
        .iter()
        .filter(is_due)
        .map(|it| (it.0, it.1))
        .collect();
    if !scale.is_empty() {
        return Ending {
            scale,
            ..Ending::waiting("the sources get their pods")
        };
    }
    if !reverted {
        return Ending::default();
    }
    let short = sources.iter().find(|(_, wanted, _, workload)| {
        let seen = workload.seen();
        !seen.is_observed || seen.available < pods(wanted.replicas.unwrap_or(0))
    });
    if let Some((_, wanted, name, workload)) = short {
        let available = workload.seen().available;
        let all = wanted.replicas.unwrap_or(0);
        return Ending::waiting(format!("of {name} {available} of {all} pods are available"));
    }
    let scale: Vec<_> = target
        .iter()
        .filter(is_due)
        .map(|it| (it.0, it.1))
        .collect();
    match scale.is_empty() {
        true => Ending::default(),
        false => Ending {
            scale,
            ..Ending::waiting("the target goes back to its size")
        },
    }
}

fn first_of(wanted: &[Size], members: &[OfRun<'_>]) -> Ending {
    let (Some((_, Some((name, workload)))), Some(wanted)) = (members.first(), wanted.first())
    else {
        return Ending::default();
    };
    match is_reached(*wanted, present(Some(workload))) {
        true => Ending::default(),
        false => Ending {
            scale: vec![(0, *wanted)],
            ..Ending::waiting(format!("{name} goes back to its size"))
        },
    }
}

/// Armed again only when all pods are new: until then the partition lets the last of them out.
fn rearm(wanted: &[Size], members: &[OfRun<'_>]) -> Ending {
    let Some((_, Some((name, workload)))) = members.first() else {
        return Ending::default();
    };
    let arms = wanted.first().and_then(|size| size.partition) == Some(count(ARMED));
    match arms && workload.is_updating() && !workload.is_armed() {
        true => Ending::waiting(format!("{name} has pods of the former revision")),
        false => first_of(wanted, members),
    }
}

/// The old template comes back, and all pods get it. Then it is armed and given back in one write: after that,
/// its partition is no more what lets all pods have the old template.
fn restored(desk: &Desk<'_>, run: &Run, members: &[OfRun<'_>]) -> Ending {
    let Some((record, Some((name, workload)))) = members.first() else {
        return Ending::default();
    };
    if desk.is_given_back(run, workload) {
        return Ending::default();
    }
    let former = record.former.as_deref().unwrap_or("of before");
    let (now, kept) = match &desk.given.templates {
        None => return Ending::waiting(format!("the template of {name} is being read")),
        Some(Templates { now, former }) => (
            now,
            former
                .as_ref()
                .and_then(|it| restore::template(workload, it)),
        ),
    };
    let Some(template) = kept else {
        return Ending {
            conflict: Some(restore::lost(name, former)),
            ..Ending::default()
        };
    };
    if identity::template(workload.object) != Some(hash(now)) {
        return Ending::waiting(format!(
            "what is known of {name} is older than its template"
        ));
    }
    let patch = restore::patch(workload, now, &template);
    let restores = Some(hash(&template));
    if let Some(patch) = patch {
        return Ending {
            restores,
            restore: Some(patch),
            ..Ending::waiting(format!("{name} gets its old template back"))
        };
    }
    let seen = workload.seen();
    let is_there = seen.is_observed
        && !workload.is_updating()
        && workload.updated() >= seen.wanted
        && seen.available >= seen.wanted;
    match is_there {
        true => Ending::default(),
        false => Ending {
            restores,
            delete: broken(desk, workload),
            ..Ending::waiting(format!(
                "of {name} {} of {} pods of the old version are available",
                seen.available, seen.wanted
            ))
        },
    }
}

/// A pod of the new version that does not become available. A StatefulSet that replaces one pod after another
/// waits for it for ever, also when the template is another one: the last of them is deleted.
fn broken(desk: &Desk<'_>, workload: &Workload<'_>) -> Option<Pod> {
    if !workload.is_ordered() || !workload.seen().is_observed {
        return None;
    }
    let (_, revision) = workload.revisions();
    let pods = desk.given.pods.iter().flatten();
    let broken = pods.filter(|pod| {
        let is_new = Some(pod.revision.as_str()) != revision;
        is_new && !pod.is_going && !desk.is_available(workload, pod)
    });
    let ordinal = |pod: &&Pod| -> Option<u64> { pod.name.rsplit('-').next()?.parse().ok() };
    broken.max_by_key(ordinal).cloned()
}

/// How the claims of a run that is over say that it has ended. None: they stay.
pub(super) fn ended(state: State) -> Option<Ended> {
    match state {
        State::Succeeded => Some(Ended::Done),
        State::Failed => Some(Ended::Failed),
        State::Deleting => Some(Ended::Aborted),
        State::VerifyingSpec
        | State::Initializing
        | State::BatchInitializing
        | State::BatchInRolling
        | State::BatchVerifying
        | State::BatchFinalizing
        | State::BatchReady
        | State::Finalising
        | State::Failing
        | State::Abandoned => None,
    }
}

/// The workloads of a run that are to be released, by their places: those that have its claim, or that of a run before it
/// which has not ended. Of a run that gives way to another one, those that the spec names no longer.
pub(super) fn releases(
    desk: &Desk<'_>,
    run: &Run,
    members: &[OfRun<'_>],
    state: State,
) -> Vec<usize> {
    let named = desk.names();
    let all = members.iter().enumerate();
    let all = all.filter_map(|(place, (_, member))| {
        let (name, workload) = member.as_ref()?;
        let gives_way = state == State::Abandoned && !named.contains(name);
        let goes = gives_way || ended(state).is_some();
        (goes && desk.is_to_release(run, workload)).then_some(place)
    });
    all.collect()
}
