//! What has to be done for a promotion that is decided.

use sluice_crds::pipeline::{Environment as Spec, Phase, PromotionRecord, StrategyKind};

use super::super::reasons::{ADMITTED, REPORTED};
use super::super::{Act, Admit, Notice, ReportSight, child};
use super::{Context, facts};

/// The places of the targets whose gatekeepers have to be told a revision, which `record` is about. Once the
/// promotion is made, one that cannot be read is left alone, and so is one that says what somebody else has
/// written there.
pub(super) fn lacking(
    context: Context<'_>,
    place: usize,
    spec: &Spec,
    revision: &str,
    record: Option<&PromotionRecord>,
) -> Vec<usize> {
    let reports = reports(context, place);
    let is_made = record.is_some_and(|record| record.phase == Phase::Succeeded);
    let lacks = |place: &usize| match reports.get(*place) {
        Some(ReportSight::Says(said)) => {
            said != revision && !record.is_some_and(|record| is_foreign(record, said))
        }
        Some(ReportSight::Unreadable(_)) => !is_made,
        Some(ReportSight::Nothing) | None => true,
    };
    let places = 0..spec.targets.len();
    places.filter(lacks).collect()
}

/// Whether a gatekeeper says another revision than that of a promotion which is made, and somebody else has
/// written it: all gatekeepers have said ours since, or this promotion was reported to none when it was made.
/// What was only overtaken by people may still say what it was told before.
pub(super) fn is_foreign(record: &PromotionRecord, said: &str) -> bool {
    let is_settled = matches!(record.reason.as_deref(), Some(REPORTED | ADMITTED));
    record.phase == Phase::Succeeded && is_settled && said != record.revision
}

/// What the gatekeepers of an environment say.
pub(super) fn reports<'g>(context: Context<'g>, place: usize) -> &'g [ReportSight] {
    let surroundings = context.given.environments.get(place);
    surroundings.map_or(&[][..], |it| &it.reports)
}

/// Whether all of them say a revision.
pub(super) fn is_said(context: Context<'_>, place: usize, revision: &str) -> bool {
    let reports = reports(context, place);
    let says = |report: &ReportSight| matches!(report, ReportSight::Says(said) if said == revision);
    !reports.is_empty() && reports.iter().all(says)
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
            let targets = lacking(context, place, spec, &record.revision, Some(record));
            Act::Admit(Box::new(Admit {
                errand,
                environment: name.to_owned(),
                revision: record.revision.clone(),
                targets,
                again: record.phase == Phase::Succeeded,
            }))
        }
    };
    vec![act]
}
