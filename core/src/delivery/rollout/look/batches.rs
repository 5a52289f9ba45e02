//! While a run goes on: from its start to its last batch.

use jiff::Timestamp;
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::{MetricRecord, Mode, Run};

use super::{Gates, Look, Why, appliers, autoscalers, closed, course, presence};
use crate::delivery::rollout::batch::Due;
use crate::delivery::rollout::calls::{self, Hooks};
use crate::delivery::rollout::conflict;
use crate::delivery::rollout::course::{Course, is_reached, pods as number, present};
use crate::delivery::rollout::desk::{Desk, OfRun, sizes};
use crate::delivery::rollout::identity;
use crate::delivery::rollout::metric::{self, Verdict};
use crate::delivery::rollout::plan::Metric;
use crate::delivery::rollout::signals::Signal;
use crate::delivery::rollout::state::{Illegal, State};
use crate::delivery::rollout::workload::{Kind, Workload};
use crate::time::stamp::time;

pub(super) fn look(
    desk: &Desk<'_>,
    status: &RolloutStatus,
    state: State,
    gates: Gates<'_>,
    look: &mut Look,
) -> Result<(), Illegal> {
    let run = status.run.as_ref().ok_or(Illegal)?;
    let course = course(desk, status)?;
    let members = desk.of_run(run);
    let index = calls::batch(status);
    presence(desk, &members, look, false);
    autoscalers(desk, look);
    let here = members.iter().enumerate();
    let here = here.filter_map(|(place, (_, member))| Some((place, member.as_ref()?)));
    appliers(desk, here, look);
    contested(desk, status, run, &members, look);
    let own = (state == State::BatchInitializing).then_some(index);
    let next = own.or_else(|| (state == State::BatchReady).then_some(index + 1));
    let next = next.filter(|next| *next < desk.batches());
    let is_met = |index| course.is_met(course.goal(desk.plan, index), &sizes(&members));
    look.facts.is_last = state == State::BatchReady && next.is_none();
    look.facts.goal_met = state == State::BatchInitializing && is_met(index);
    if let Some(next) = next.filter(|next| !is_met(*next)) {
        closed(desk, next, gates, look);
    }
    match state {
        State::Initializing => {
            start(desk, status, run, (&course, &members), gates, look);
        }
        State::BatchInitializing if look.facts.goal_met => {
            there(desk, (&course, &members), index, look);
        }
        State::BatchInitializing | State::BatchFinalizing => hooks(desk, status, run, state, look),
        State::BatchInRolling | State::BatchVerifying => {
            pods(desk, status, (&course, &members), state, look);
        }
        // After a batch only the next one counts.
        State::BatchReady
        | State::VerifyingSpec
        | State::Finalising
        | State::Failing
        | State::Abandoned
        | State::Deleting
        | State::Succeeded
        | State::Failed => {}
    }
    Ok(())
}

/// Somebody else writes, or the plan of what was decided is another one.
fn contested(
    desk: &Desk<'_>,
    status: &RolloutStatus,
    run: &Run,
    members: &[OfRun<'_>],
    look: &mut Look,
) {
    let here: Vec<_> = members
        .iter()
        .filter_map(|(record, member)| Some((*record, member.clone()?)))
        .collect();
    if let Some(conflict) = conflict::midway(desk, run, &here) {
        look.say(Signal::Contested, conflict);
    }
    let decided = status.batches.iter().enumerate();
    let changed = decided
        .filter_map(|(index, batch)| Some((index, batch.checksum.as_ref()?)))
        .find(|(index, checksum)| **checksum != identity::batch(desk.object(), *index));
    if let Some((index, _)) = changed {
        let by = Some(format!("spec.rolloutPlan.rolloutBatches[{index}]"));
        let message = format!(
            "{} is out, and the plan ends with it or has another one in its place; bring the plan back, or begin another run by another spec.revision or sluice.dev/retry",
            desk.called(index)
        );
        look.say(
            Signal::Contested,
            Why {
                by,
                ..Why::new("PlanChanged", message)
            },
        );
    }
}

/// The workloads are claimed, hooks are called, and only then are the starting sizes written. Where these make pods of
/// the new version, the gates of the first batch are asked once more: it may be long since they let the run begin.
fn start(
    desk: &Desk<'_>,
    status: &RolloutStatus,
    run: &Run,
    (course, members): (&Course, &[OfRun<'_>]),
    gates: Gates<'_>,
    look: &mut Look,
) {
    let here = || members.iter().filter_map(|(_, member)| member.as_ref());
    if !desk.has_finalizer() {
        return look.wait("the Rollout gets its finalizer");
    }
    if let Some((name, _)) = here().find(|(_, workload)| !desk.is_claimed(run, workload)) {
        return look.wait(format!("{name} is claimed"));
    }
    hooks(desk, status, run, State::Initializing, look);
    let is_passed = !look.signals.has(Signal::Refused) && !look.signals.has(Signal::Waiting);
    if is_passed && !is_started(status, members) {
        look.wait("the workloads get their starting sizes");
        if makes_pods(status, members) {
            look.makes_pods = true;
            let is_met = |it: &usize| course.is_met(course.goal(desk.plan, *it), &sizes(members));
            let first = (0..desk.batches()).find(|it| !is_met(it));
            closed(desk, first.unwrap_or(0), gates, look);
        }
    } else if is_passed && let (Course::Pair(_), Some((name, target))) = (course, here().next()) {
        // A batch may take old pods away before it makes new ones: those of the start are there first.
        let unavailable = desk.plan.batch(0).max_unavailable.of(course.total());
        let seen = target.seen();
        if !seen.is_observed || seen.available.saturating_add(unavailable) < seen.wanted {
            let (available, all) = (seen.available, seen.wanted);
            look.wait(format!("of {name} {available} of {all} pods are available"));
        }
    }
}

/// The sizes of a batch are there already. Its pods are waited for all the same, and nothing else.
fn there(
    desk: &Desk<'_>,
    (course, members): (&Course, &[OfRun<'_>]),
    index: usize,
    look: &mut Look,
) {
    let goal = course.goal(desk.plan, index);
    let unavailable = desk.plan.batch(index).max_unavailable.of(course.total());
    let here: Vec<Workload<'_>> = members
        .iter()
        .filter_map(|(_, member)| member.as_ref().map(|(_, workload)| *workload))
        .collect();
    let available = here.first().and_then(|target| desk.available(target));
    let wanted = course.sizes(goal, &sizes(members));
    match course.due(&wanted, goal, unavailable, &here, available) {
        Due::Nothing => {}
        Due::Target | Due::Sources | Due::Pods => {
            look.wait(waits_for_pods(&desk.called(index), goal, available));
        }
    }
}

/// Whether the workloads have the sizes with which the run starts, and make pods.
pub(in crate::delivery::rollout) fn is_started(
    status: &RolloutStatus,
    members: &[OfRun<'_>],
) -> bool {
    let wanted = status.intent.iter().flat_map(|intent| &intent.sizes);
    let mut each = wanted.zip(members).enumerate();
    each.all(|(place, (wanted, (_, member)))| {
        let Some((_, workload)) = member else {
            return true;
        };
        let makes_pods = place > 0 || !keeps_from_pods(status, workload);
        is_reached(*wanted, present(Some(workload))) && makes_pods
    })
}

/// Whether a pause keeps the target from what the run does with it. That of a CloneSet is about its template alone.
pub(in crate::delivery::rollout) fn keeps_from_pods(
    status: &RolloutStatus,
    target: &Workload<'_>,
) -> bool {
    let mode = status.run.as_ref().map(|run| run.mode);
    let is_scaled = mode == Some(Mode::Scale) && target.kind == Kind::CloneSet;
    target.is_paused() && !is_scaled
}

/// Whether the start itself makes pods of the new version: the target gets more of them, or is a Deployment with pods
/// that is paused no longer.
fn makes_pods(status: &RolloutStatus, members: &[OfRun<'_>]) -> bool {
    let wanted = status.intent.as_ref().and_then(|it| it.sizes.first());
    let target = members.first().and_then(|(_, it)| it.as_ref());
    let (Some(wanted), Some((_, target))) = (wanted, target) else {
        return false;
    };
    let now = target.seen().wanted;
    let grows = wanted.replicas.is_some_and(|it| number(it) > now);
    let resumes = target.kind == Kind::Deployment && target.is_paused() && now > 0;
    grows || resumes
}

/// The hooks of the moment.
pub(super) fn hooks(
    desk: &Desk<'_>,
    status: &RolloutStatus,
    run: &Run,
    state: State,
    look: &mut Look,
) {
    match calls::hooks(desk, status, run, state) {
        Hooks::Passed => {}
        Hooks::Calling(call) => {
            look.wait(format!("the hook {} is called", call.hook.name));
            look.call = Some(call);
        }
        Hooks::Waiting(at, why) => {
            look.wait(why);
            look.wakes.push(at);
        }
        Hooks::Vetoed(why) => look.say(Signal::Refused, Why::new("HookVetoed", why)),
    }
}

/// The sizes of the batch are written, and its pods come.
fn pods(
    desk: &Desk<'_>,
    status: &RolloutStatus,
    (course, members): (&Course, &[OfRun<'_>]),
    state: State,
    look: &mut Look,
) {
    let index = calls::batch(status);
    let goal = course.goal(desk.plan, index);
    let unavailable = desk.plan.batch(index).max_unavailable.of(course.total());
    let here: Option<Vec<Workload<'_>>> = members
        .iter()
        .map(|(_, member)| member.as_ref().map(|(_, workload)| *workload))
        .collect();
    let (Some(here), Some(intent)) = (here, status.intent.as_ref()) else {
        return;
    };
    let available = here.first().and_then(|target| desk.available(target));
    let due = course.due(&intent.sizes, goal, unavailable, &here, available);
    let is_in_place = matches!(course, Course::Update(_) | Course::Scale(_));
    let called = desk.called(index);
    match due {
        Due::Nothing => look.is_ready = true,
        Due::Target | Due::Sources => look.wait(format!("the sizes of {called} are written")),
        // The object has its size, and the next state waits for its pods.
        Due::Pods if is_in_place && state == State::BatchInRolling => {}
        Due::Pods => look.wait(waits_for_pods(&called, goal, available)),
    }
    // What is not up to date for a moment breaks no row: only a value does.
    let counts = look.is_ready || look.signals.has(Signal::Stale);
    if counts && state == State::BatchVerifying {
        metrics(desk, status, index, look);
    }
}

/// Why a batch of this name waits.
fn waits_for_pods(called: &str, goal: u32, available: Option<u32>) -> String {
    match available {
        Some(available) => {
            format!("{called} waits for pods: {available} of {goal} are available")
        }
        None => format!("the pods of {called} are not listed yet"),
    }
}

/// Whether the metrics are good since the pods of the batch are there.
fn metrics(desk: &Desk<'_>, status: &RolloutStatus, index: usize, look: &mut Look) {
    let ready = status.batches.get(index).and_then(|it| it.ready.as_ref());
    let began = ready.map(|ready| ready.0);
    let all = desk.plan.metrics_of(index);
    let records = all.map(|metric| judged(desk, status, metric, began, look));
    look.metrics = Some(records.collect());
}

fn judged(
    desk: &Desk<'_>,
    status: &RolloutStatus,
    metric: &Metric,
    began: Option<Timestamp>,
    look: &mut Look,
) -> MetricRecord {
    let measure = desk.given.measures.get(&metric.gatekeeper);
    let measured = measure.and_then(|it| it.measured);
    let own = measure.map_or(metric::ANY, |it| it.range);
    let checksum = Some(metric::checksum(metric, own));
    let before = status.metrics.iter().find(|it| it.checksum == checksum);
    let since = before.and_then(|it| Some(it.within_since.as_ref()?.0));
    // That the pods are there is accepted first.
    let began = began.unwrap_or_else(|| desk.at());
    let (verdict, since) = metric::judge(metric, own, measured, began, since);
    let name = &metric.name;
    match verdict {
        Verdict::Good => {}
        Verdict::Blind => {
            let message = format!(
                "the metric {name} has no value that counts: see the Gatekeeper {}",
                metric.gatekeeper
            );
            let by = Some(format!("Gatekeeper {}", metric.gatekeeper));
            look.say(
                Signal::Blind,
                Why {
                    by,
                    ..Why::new("MetricBlind", message)
                },
            );
        }
        Verdict::Unmeasured => {
            look.wait(format!(
                "waits for the first measurement of the metric {name} after the pods became available"
            ));
        }
        Verdict::Outside => {
            let value = measured.map_or(f64::NAN, |it| it.value);
            look.wait(format!("the metric {name} is {value}, outside its range"));
        }
        Verdict::Soaking => {
            look.wait(format!("the metric {name} has to stay within its range"));
        }
    }
    // A value from before the pods were there says nothing of them.
    let counts = !matches!(verdict, Verdict::Blind | Verdict::Unmeasured);
    let value = measured.filter(|_| counts);
    let value = value.map(|it| it.value.to_string());
    // That it was bad is remembered until it is good.
    let bad = before.filter(|it| it.within_since.is_none());
    let value = value.or_else(|| bad?.value.clone());
    // A value by itself is no news: it is another one after each measurement.
    let same = before
        .filter(|it| it.within_since == since.map(time) && it.value.is_some() == value.is_some());
    same.cloned().unwrap_or_else(|| MetricRecord {
        name: name.clone(),
        checksum,
        value,
        within_since: since.map(time),
    })
}
