//! Where a run ends.

use sluice_crds::RolloutStatus;
use sluice_crds::rollout::Mode;

use super::{Look, Why, batches, course, presence, waits_for_news};
use crate::delivery::rollout::app::NotFound;
use crate::delivery::rollout::conflict;
use crate::delivery::rollout::desk::Desk;
use crate::delivery::rollout::ending::{ending, releases};
use crate::delivery::rollout::given::Name;
use crate::delivery::rollout::signals::Signal;
use crate::delivery::rollout::state::{Illegal, State};

pub(super) fn look(
    desk: &Desk<'_>,
    status: &RolloutStatus,
    state: State,
    look: &mut Look,
) -> Result<(), Illegal> {
    let run = status.run.as_ref().ok_or(Illegal)?;
    course(desk, status)?;
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
    let ending = ending(desk, status, run, &members);
    let here: Vec<_> = members
        .iter()
        .filter_map(|(record, member)| Some((*record, member.clone()?)))
        .collect();
    let concerns = |name: &Name| {
        let place = run.workloads.iter().position(|it| {
            let of = Name::of(&it.r#ref);
            of.as_ref() == Some(name)
        });
        place.is_some_and(|place| ending.writes_to(place))
    };
    look.facts.write_due = ending.writes() || ending.conflict.is_some();
    let found = conflict::midway(desk.given, run, &here, concerns);
    // That the template is another one is why it is brought back.
    let found = found.filter(|it| it.reason != "TargetChanged" || run.mode != Mode::Update);
    if let Some(conflict) = ending.conflict.clone().or(found) {
        look.say(Signal::Contested, conflict.into());
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

/// A run that is over.
pub(super) fn over(desk: &Desk<'_>, status: &RolloutStatus, look: &mut Look) {
    let reverts = desk.plan.revert_on_delete && status.run.is_some();
    look.facts.revert_due = reverts && !status.reverted;
}
