//! Which ways to promote this controller carries out.

use sluice_core::text::refusal::{Refusal, Refusals};
use sluice_crds::Pipeline;
use sluice_crds::pipeline::StrategyKind;

use crate::observe::cache::Progress;

/// What to write where notifications cannot be sent.
const ADDRESS: &str = "give it the address of Flux's notification-controller by the flag --events-addr \
                       (`events.addr` of the chart), or write `admission: {}`";
/// The same where the controller sees no PullRequests.
const CHART: &str = "upgrade the chart, with its CRDs and its rights, or write `admission: {}`";

/// Refuses what would be decided, and never done. `notifies`: whether there is a notification-controller
/// that notifications are sent to. `listed`: how far the list of PullRequests has come.
///
/// # Errors
/// The environments that are promoted to in another way.
pub(super) fn check(object: &Pipeline, notifies: bool, listed: Progress) -> Result<(), Refusals> {
    let spec = &object.spec;
    let mut mistakes = Vec::new();
    for (place, environment) in spec.environments.iter().enumerate().skip(1) {
        let strategy = spec.promotion_of(environment);
        let (problem, remedy) = match strategy.and_then(|it| it.strategy.kind()) {
            None | Some(StrategyKind::Admission(_)) => continue,
            Some(StrategyKind::Notification(_)) if notifies => continue,
            Some(StrategyKind::Notification(_)) => (
                "this controller does not know where to send notifications",
                ADDRESS,
            ),
            Some(StrategyKind::PullRequest(_)) => match listed {
                Progress::Synced => continue,
                Progress::Unanswered | Progress::NotInstalled => (
                    "the cluster has no CustomResourceDefinition pullrequests.sluice.dev",
                    CHART,
                ),
                Progress::Refused => (
                    "the controller has no right to list and watch pullrequests in group `sluice.dev`",
                    CHART,
                ),
            },
        };
        let field = match environment.promotion {
            Some(_) => format!("spec.environments[{place}].promotion.strategy"),
            None => "spec.promotion.strategy".to_owned(),
        };
        mistakes.push(Refusal::new(field, problem, remedy));
    }
    Refusals::unless_empty(mistakes, ())
}
