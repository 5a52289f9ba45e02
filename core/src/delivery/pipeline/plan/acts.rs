//! What has to be done for a promotion that is decided.

use sluice_crds::pipeline::{Environment as Spec, PromotionRecord, StrategyKind};

use super::super::{Act, Admit, Notice, ReportSight, child};
use super::{Context, facts};

/// The places of the targets whose gatekeepers do not say a revision.
pub(super) fn lacking(
    context: Context<'_>,
    place: usize,
    spec: &Spec,
    revision: &str,
) -> Vec<usize> {
    let surroundings = context.given.environments.get(place);
    let reports = surroundings.map_or(&[][..], |it| &it.reports);
    let says = |place: &usize| match reports.get(*place) {
        Some(ReportSight::Says(said)) => said == revision,
        Some(ReportSight::Nothing | ReportSight::Unreadable(_)) | None => false,
    };
    let places = 0..spec.targets.len();
    places.filter(|place| !says(place)).collect()
}

/// What has to be done for a promotion that is decided.
pub(in super::super) fn acts(
    context: Context<'_>,
    place: usize,
    spec: &Spec,
    record: &PromotionRecord,
    strategy: StrategyKind<'_>,
) -> Vec<Act> {
    let name = spec.name.as_str();
    let errand = facts::errand(record);
    let act = match strategy {
        StrategyKind::PullRequest(strategy) => {
            let made = child::make(context.object, name, record, strategy, None);
            Act::Create(Box::new(made))
        }
        StrategyKind::Notification(notification) => {
            let token = match record.repeats {
                0 => record.key.clone(),
                repeats => format!("{}-{repeats}", record.key),
            };
            let first = spec.targets.first();
            Act::Notify(Box::new(Notice {
                errand,
                involved: notification.involved_object,
                app_namespace: first.map(|it| it.namespace.clone()).unwrap_or_default(),
                environment: name.to_owned(),
                revision: record.revision.clone(),
                token,
                message: format!(
                    "Promote {} {} to {name}",
                    context.object.spec.app_ref.name, record.revision
                ),
            }))
        }
        StrategyKind::Admission(admission) => {
            if admission.gatekeeper_ref.is_none() {
                return Vec::new();
            }
            Act::Admit(Box::new(Admit {
                errand,
                environment: name.to_owned(),
                revision: record.revision.clone(),
                targets: lacking(context, place, spec, &record.revision),
            }))
        }
    };
    vec![act]
}
