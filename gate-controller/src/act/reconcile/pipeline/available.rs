//! Which ways to promote this controller carries out.

use sluice_core::text::refusal::{Refusal, Refusals};
use sluice_crds::Pipeline;
use sluice_crds::pipeline::{Admission, StrategyKind};

/// Refuses what would be decided, and never done.
///
/// # Errors
/// The environments that are promoted to in another way.
pub(super) fn check(object: &Pipeline) -> Result<(), Refusals> {
    let spec = &object.spec;
    let mut mistakes = Vec::new();
    for (place, environment) in spec.environments.iter().enumerate().skip(1) {
        let strategy = spec.promotion_of(environment);
        let problem = match strategy.and_then(|it| it.strategy.kind()) {
            None
            | Some(StrategyKind::Admission(Admission {
                gatekeeper_ref: None,
            })) => continue,
            Some(StrategyKind::Admission(_)) => {
                "this version does not report admissions to other clusters"
            }
            Some(StrategyKind::PullRequest(_)) => "this version opens no pull requests",
            Some(StrategyKind::Notification(_)) => "this version sends no notifications",
        };
        let field = match environment.promotion {
            Some(_) => format!("spec.environments[{place}].promotion.strategy"),
            None => "spec.promotion.strategy".to_owned(),
        };
        let remedy = "write `admission: {}`, or leave the promotion out and promote by hand";
        mistakes.push(Refusal::new(field, problem, remedy));
    }
    Refusals::unless_empty(mistakes, ())
}
