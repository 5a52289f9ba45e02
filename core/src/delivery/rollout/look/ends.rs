//! Where a run ends.

use sluice_crds::RolloutStatus;
use sluice_crds::rollout::{Intent, Run, Size};

use super::{Look, Why, batches, course, presence, waits_for_news};
use crate::delivery::rollout::app::NotFound;
use crate::delivery::rollout::conflict::{self, Latched, Undoing};
use crate::delivery::rollout::course::Course;
use crate::delivery::rollout::desk::{Desk, OfRun};
use crate::delivery::rollout::ending::{Ending, ending, left, releases};
use crate::delivery::rollout::given::Name;
use crate::delivery::rollout::signals::Signal;
use crate::delivery::rollout::state::{Illegal, State};
use crate::time::span::later;

pub(super) fn look(
    desk: &Desk<'_>,
    status: &RolloutStatus,
    state: State,
    look: &mut Look,
) -> Result<(), Illegal> {
    let run = status.run.as_ref().ok_or(Illegal)?;
    let course = course(desk, status)?;
    let members = desk.of_run(run);
    presence(desk, &members, look, state == State::Finalising);
    // Which claims stay for the run that follows is decided by what the spec names.
    if state == State::Abandoned
        && waits_for_news(desk)
        && let Err(NotFound::Unsure(why)) = desk.named()
    {
        look.say(Signal::Stale, why);
    }
    let names = members.iter().filter_map(|(it, _)| Name::of(&it.r#ref));
    let mut unsure = names.filter_map(|name| desk.unsure(&name));
    if state == State::Deleting && !waits_for_news(desk) && unsure.next().is_some() {
        let message = "what its workloads are is not known; they are left as they are";
        look.say(Signal::Contested, Why::new("Unknown", message));
    }
    let is_known = !look.signals.has(Signal::Stale) && !look.signals.has(Signal::Contested);
    if is_known && state != State::Finalising {
        look.settles = short_of_pods(&course, (status, run), &members);
    }
    let ending = ending(desk, status, run, &members);
    let here = members.iter().enumerate();
    let here =
        here.filter_map(|(place, (record, member))| Some((place, (*record, member.clone()?))));
    let here: Vec<_> = here.collect();
    look.facts.write_due = ending.writes() || ending.conflict.is_some();
    if let Some(conflict) = ending
        .conflict
        .clone()
        .or_else(|| contested(desk, status, state, &ending, &here))
    {
        look.say(Signal::Contested, conflict);
    }
    if let Some(why) = &ending.waits {
        look.wait(why.clone());
    } else {
        // First the pods, then the hooks, then the claims.
        batches::hooks(desk, status, run, state, look);
        let is_called = look.signals.has(Signal::Waiting);
        if !is_called && !releases(desk, run, &members, state).is_empty() {
            look.wait("the workloads are released");
        }
    }
    look.ending = ending;
    Ok(())
}

/// The sizes that leave nobody short of pods, where those that are intended do: a workload has gone while a run ends.
fn short_of_pods(
    course: &Course,
    (status, run): (&RolloutStatus, &Run),
    members: &[OfRun<'_>],
) -> Option<Vec<Size>> {
    if members.iter().all(|(_, member)| member.is_some()) {
        return None;
    }
    let sizes = left(course, (status, run), members)?;
    let of_those_here = |sizes: &[Size]| -> i64 {
        let all = sizes.iter().zip(members);
        let here = all.filter(|(_, (_, member))| member.is_some());
        here.filter_map(|(size, _)| size.replicas.map(i64::from))
            .sum()
    };
    let intent = status.intent.as_ref().filter(|it| it.batch.is_none());
    // It was intended while the workload was here. Nothing is intended a second time because it is gone: what somebody
    // writes to the others meanwhile is theirs.
    let is_new = |it: &Intent| {
        let mut all = it.sizes.iter().zip(members);
        all.any(|(size, (_, member))| member.is_none() && *size != Size::default())
    };
    let is_more = |it: &Intent| of_those_here(&sizes) > of_those_here(&it.sizes);
    let is_due = intent.is_none_or(|it| is_new(it) && is_more(it));
    is_due.then_some(sizes)
}

/// What stands in the way of what is written now.
fn contested(
    desk: &Desk<'_>,
    status: &RolloutStatus,
    state: State,
    ending: &Ending,
    here: &[(usize, Latched<'_>)],
) -> Option<Why> {
    let run = status.run.as_ref()?;
    let all: Vec<_> = here.iter().map(|(_, it)| it.clone()).collect();
    // It had ended, and is brought back because its Rollout is deleted.
    let was_over = state == State::Deleting && status.history.iter().any(|it| it.id == run.id);
    if was_over
        && (ending.writes() || ending.waits.is_some())
        && let Some(conflict) = conflict::rolled_since(desk.given, run, &all)
    {
        return Some(conflict);
    }
    let written = here.iter().filter(|(place, _)| ending.writes_to(*place));
    let written: Vec<_> = written.map(|(_, it)| it.clone()).collect();
    if state == State::Finalising {
        return conflict::after_success(desk.given, &written);
    }
    let restores = ending.restores.as_deref();
    let gives_way = state == State::Abandoned;
    conflict::undoing(
        desk,
        run,
        &written,
        Undoing {
            gives_way,
            restores,
        },
    )
}

/// A run that is over. It gives its workloads back before another one begins: what that one does not name would stay
/// claimed.
pub(super) fn over(desk: &Desk<'_>, status: &RolloutStatus, state: State, look: &mut Look) {
    let reverts = desk.plan.revert_on_delete && status.run.is_some();
    look.facts.revert_due = reverts && !status.reverted;
    let Some(run) = &status.run else {
        return;
    };
    let named = desk.names();
    let members = desk.of_run(run);
    let mut due = releases(desk, run, &members, state).into_iter();
    let is_named = |place: usize| {
        let member = members[place].1.as_ref();
        member.is_some_and(|(name, _)| named.contains(name))
    };
    let mut names = run.workloads.iter().filter_map(|it| Name::of(&it.r#ref));
    let is_unsure = names.any(|name| desk.unsure(&name).is_some());
    let since = desk.given.unsure_since.filter(|_| is_unsure);
    let until = since.map(|since| later(since, desk.plan.deadline));
    let may_wait = until.is_none_or(|until| desk.at() < until);
    if desk.is_modified(status) && may_wait && due.any(|place| !is_named(place)) {
        look.signals = look.signals.without(Signal::Modified);
        look.gives_back = true;
        look.wakes.extend(until);
    }
}
