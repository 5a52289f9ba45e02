//! Verifying: whether a run may begin, and which.

use sluice_crds::RolloutStatus;

use super::{Gates, Look, Why, appliers, autoscalers, closed, waits_for_news};
use crate::delivery::rollout::app::{self, NotFound};
use crate::delivery::rollout::begin::{self, Beginning};
use crate::delivery::rollout::conflict;
use crate::delivery::rollout::course::Course;
use crate::delivery::rollout::desk::Desk;
use crate::delivery::rollout::given::{Applier, Member};
use crate::delivery::rollout::signals::Signal;
use crate::delivery::rollout::why::INVALID_SPEC;
use crate::text::refusal::Refusal;

/// The workloads of an application are not what the spec needs.
const UNFIT: &str = "ApplicationUnfit";

pub(super) fn look(desk: &Desk<'_>, status: &RolloutStatus, gates: Gates<'_>, look: &mut Look) {
    let found = desk.named().and_then(|members| {
        let refusal = app::refuse(desk.object(), &members);
        refusal.map_or(Ok(members), |it| Err(NotFound::Unfit(it)))
    });
    let members = match found {
        Ok(members) => members,
        Err(NotFound::Unsure(why)) if waits_for_news(desk) => {
            return look.say(Signal::Stale, why);
        }
        Err(NotFound::Unsure(_)) => return,
        Err(NotFound::Missing(message)) => {
            return look.say(Signal::Gone, Why::new("WorkloadMissing", message));
        }
        Err(NotFound::Unfit(refusal)) => {
            let why = Why::new(UNFIT, refusal.to_string());
            return look.say(Signal::Contested, why);
        }
    };
    autoscalers(desk, look);
    appliers(desk, members.iter().enumerate(), look);
    if let Some(why) = app::unsettled(desk.given, &members[0].1) {
        let until = app::may_be_old_until(desk.given, &members[0].1);
        look.wakes.extend(until);
        return look.say(Signal::Closed, why);
    }
    match begin::begin(desk.given, &status.history, desk.plan, &members) {
        Err(refusal) => refused(desk, &refusal, look),
        Ok(None) => look.say(
            Signal::Stale,
            Why::new("Stale", "the target has no pod template"),
        ),
        Ok(Some(beginning)) => begins(desk, &members, beginning, gates, look),
    }
}

/// The spec does not fit its workloads. Of an application it is not the spec that says which these are.
fn refused(desk: &Desk<'_>, refusal: &Refusal, look: &mut Look) {
    let object = desk.object();
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let (signal, reason) = match Applier::of(namespace, &object.spec.target_ref) {
        Some(_) => (Signal::Contested, UNFIT),
        None => (Signal::Refused, INVALID_SPEC),
    };
    look.say(signal, Why::new(reason, refusal.to_string()));
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
        Some(_) => conflict::at_start(desk, &beginning.run, members).or_else(|| {
            let target = members.first()?;
            let rolls = matches!(beginning.course, Course::Update(_));
            rolls.then(|| conflict::not_armed(desk.given, target))?
        }),
        None => conflict::of_others(desk.given, members),
    };
    if let Some(conflict) = conflict {
        look.say(Signal::Contested, conflict);
    }
    if let Some(first) = beginning.first {
        match desk.again.once_more(members) {
            Some(why) => look.say(Signal::Closed, why),
            None => closed(desk, first, gates, look),
        }
    }
    look.beginning = Some(beginning);
}
