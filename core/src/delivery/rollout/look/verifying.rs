//! Verifying: whether a run may begin, and which.

use super::{Gates, Look, Why, autoscalers, closed};
use crate::delivery::rollout::begin::{self, Beginning};
use crate::delivery::rollout::conflict::{self, Member};
use crate::delivery::rollout::course::Course;
use crate::delivery::rollout::desk::{Desk, Named};
use crate::delivery::rollout::signals::Signal;

pub(super) fn look(desk: &Desk<'_>, gates: Gates<'_>, look: &mut Look) {
    if let Some(refusal) = begin::refuse_app(&desk.plan.members) {
        look.say(
            Signal::Refused,
            Why::new("NotSupported", refusal.to_string()),
        );
        return;
    }
    let members = match desk.named() {
        Named::Here(members) => members,
        Named::Unsure(why) => return look.say(Signal::Stale, why),
        Named::Missing(name) => {
            let message = format!("there is no {name}");
            look.say(Signal::Gone, Why::new("WorkloadMissing", message));
            return;
        }
    };
    autoscalers(desk, look);
    match begin::begin(desk.given, desk.plan, &members) {
        Err(refusal) => look.say(
            Signal::Refused,
            Why::new("InvalidSpec", refusal.to_string()),
        ),
        Ok(None) => look.say(
            Signal::Stale,
            Why::new("Stale", "the target has no pod template"),
        ),
        Ok(Some(beginning)) => begins(desk, &members, beginning, gates, look),
    }
}

fn begins(
    desk: &Desk<'_>,
    members: &[Member<'_>],
    beginning: Beginning,
    gates: Gates<'_>,
    look: &mut Look,
) {
    look.facts.nothing_to_roll = beginning.first.is_none();
    let conflict = match beginning.first {
        Some(_) => conflict::at_start(desk.given, desk.plan, members).or_else(|| {
            let target = members.first()?;
            let rolls = matches!(beginning.course, Course::Update(_));
            rolls.then(|| conflict::not_armed(desk.given, target))?
        }),
        None => conflict::of_others(desk.given, members),
    };
    if let Some(conflict) = conflict {
        look.say(Signal::Contested, conflict.into());
    }
    if let Some(first) = beginning.first {
        closed(desk, first, gates, look);
    }
    look.beginning = Some(beginning);
}
