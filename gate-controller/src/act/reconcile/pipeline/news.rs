//! What is reported of a pipeline when its status has changed: in the log, and by events.
//!
//! News is that a run begins and ends, how the promotion of an environment goes on, that something waits
//! or no longer waits, that a cluster goes away or comes back, and problems. Each is told once: a status that
//! says the same is no news.

use sluice_core::delivery::pipeline::{Act, MERGED, MERGED_PAST_GATE, RECALLED, SUPERSEDED};
use sluice_crds::pipeline::{
    ClusterStatus, EnvironmentState, EnvironmentStatus, MergeGate, Phase, PromotionRecord, Run,
};
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{Pipeline, PipelineStatus};

use super::record;
use crate::act::reconcile::Context;
use crate::act::reconcile::news::{self, Item, of_conditions};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;

/// Reports what is new.
pub(super) fn tell(
    context: &Context,
    key: &ObjectKey,
    object: &Pipeline,
    before: &PipelineStatus,
    now: &PipelineStatus,
) {
    let work = Work::own(Kind::Pipeline, key.clone());
    let (at, promoted) = (context.clock.now(), &context.counters.promoted);
    promoted.note(&work, object, before, now, at);
    record::promotions(&context.audit, key, before, now);
    for item in news(before, now) {
        news::tell(context, key, object, item);
    }
}

fn news(before: &PipelineStatus, now: &PipelineStatus) -> Vec<Item> {
    let mut news = of_run(before.run.as_ref(), now.run.as_ref());
    for (name, environment) in &now.environments {
        let was = before.environments.get(name);
        news.extend(of_pull_request(name, was, environment));
        news.extend(of_environment(name, was, environment));
    }
    news.extend(of_clusters(&before.clusters, &now.clusters));
    let revision = now.run.as_ref().map(|run| run.revision.as_str());
    news.extend(of_conditions(&before.conditions, &now.conditions, revision));
    news
}

fn of_run(before: Option<&Run>, now: Option<&Run>) -> Vec<Item> {
    let Some(run) = now else { return Vec::new() };
    let before = before.filter(|before| before.id == run.id);
    let item = |reason: &str, message: String| Item {
        warning: false,
        reason: reason.to_owned(),
        message,
        environment: None,
        revision: Some(run.revision.clone()),
    };
    let began = before.is_none();
    let ended =
        run.completed_at.is_some() && before.is_none_or(|before| before.completed_at.is_none());
    let began = began.then(|| item("RunStarted", format!("a run of {} begins", run.revision)));
    let ended = ended.then(|| {
        let message = format!("every environment runs {}", run.revision);
        item("RunCompleted", message)
    });
    began.into_iter().chain(ended).collect()
}

/// How the pull request of a promotion goes on: that does not depend on what the gates say meanwhile.
fn of_pull_request(
    name: &str,
    before: Option<&EnvironmentStatus>,
    now: &EnvironmentStatus,
) -> Option<Item> {
    let record = now.promotion.as_ref()?;
    let step = |it: &PromotionRecord| (it.phase, it.reason.clone(), is_merged(it));
    let was = before.and_then(|before| before.promotion.as_ref());
    let was = was.filter(|was| was.key == record.key);
    if was.map(step) == Some(step(record)) {
        return None;
    }
    let was_open = was.is_some_and(|was| was.phase == Phase::Created);
    let was_merged = was.is_some_and(is_merged);
    let revision = &record.revision;
    let page = page(
        record
            .pull_request
            .as_ref()
            .and_then(|it| it.url.as_deref()),
    );
    let (warning, reason, message) = match (record.phase, record.reason.as_deref()) {
        (_, Some(MERGED_PAST_GATE)) => {
            let message = format!("{revision} was merged while its gates held that back{page}");
            (true, MERGED_PAST_GATE, message)
        }
        // It is only there to be closed.
        (_, Some(RECALLED)) => return None,
        // What the gates have held back is called by its name with the next look.
        _ if is_merged(record) && record.gate == Some(MergeGate::Pending) => return None,
        _ if is_merged(record) && !was_merged => {
            (false, MERGED, format!("{revision} was merged{page}"))
        }
        (Phase::Created, _) if !was_open => {
            let message = format!("the pull request for {revision} is open{page}");
            (false, "PullRequestOpened", message)
        }
        _ => return None,
    };
    Some(Item {
        warning,
        reason: reason.to_owned(),
        message: format!("{name}: {message}"),
        environment: Some(name.to_owned()),
        revision: Some(revision.clone()),
    })
}

/// Whether it has ended with a merge, also where the environment ran the revision before that was seen.
fn is_merged(record: &PromotionRecord) -> bool {
    let reason = record.reason.as_deref();
    let state = record.pull_request.as_ref().and_then(|it| it.state);
    let is_said = [Some(MERGED), Some(MERGED_PAST_GATE)].contains(&reason);
    record.phase == Phase::Succeeded && (is_said || state == Some(PullRequestState::Merged))
}

/// The end of a sentence that names a page, if there is one.
fn page(url: Option<&str>) -> String {
    url.map(|url| format!(": {url}")).unwrap_or_default()
}

fn of_environment(
    name: &str,
    before: Option<&EnvironmentStatus>,
    now: &EnvironmentStatus,
) -> Option<Item> {
    let promotion = now.promotion.as_ref();
    let key = |status: &EnvironmentStatus| status.promotion.as_ref().map(|it| it.key.clone());
    let is_same = before.is_some_and(|before| before.state == now.state && key(before) == key(now));
    if is_same {
        return None;
    }
    let warning = match now.state {
        // The record says it.
        EnvironmentState::Promoted if promotion.is_some_and(is_merged) => return None,
        EnvironmentState::Promoting | EnvironmentState::Promoted => false,
        EnvironmentState::Failed
        | EnvironmentState::NoEffect
        | EnvironmentState::Abandoned
        | EnvironmentState::Rejected
        | EnvironmentState::CyclicGates => true,
        EnvironmentState::Passed
        | EnvironmentState::Waiting
        | EnvironmentState::Arriving
        | EnvironmentState::NotReady
        | EnvironmentState::Unknown
        | EnvironmentState::Unpromoted
        | EnvironmentState::Unapproved
        | EnvironmentState::GatesClosed
        | EnvironmentState::Closing
        | EnvironmentState::PullRequestOpen
        | EnvironmentState::Suspended => return None,
    };
    let said = now.message.clone().or_else(|| promotion?.message.clone());
    let message = said.unwrap_or_else(|| words(now.state, promotion));
    Some(Item {
        warning,
        reason: now.state.as_str().to_owned(),
        message: format!("{name}: {message}"),
        environment: Some(name.to_owned()),
        revision: promotion.map(|it| it.revision.clone()),
    })
}

/// What is said of a promotion of which the status says no more than its state.
fn words(state: EnvironmentState, record: Option<&PromotionRecord>) -> String {
    match record {
        None => state.as_str().to_owned(),
        Some(record) if record.phase == Phase::Succeeded => {
            format!("{} was promoted", record.revision)
        }
        Some(record) => format!("{} is being promoted", record.revision),
    }
}

/// The pull request that this orders to be closed for the first time. One of which nobody knows whether it is
/// there is created with that order.
pub(super) fn of_closing(act: &Act) -> Option<Item> {
    let (object, why) = match act {
        Act::Change {
            before,
            close: Some(why),
            ..
        } if before.spec.close.is_none() => (before.as_ref(), why),
        Act::Create(object) => (object.as_ref(), object.spec.close.as_ref()?),
        Act::Change { .. }
        | Act::Belong { .. }
        | Act::Delete(_)
        | Act::LookAt(_)
        | Act::Recall(_)
        | Act::Notify(_)
        | Act::Admit(_) => return None,
    };
    let about = &object.spec.about;
    let (name, revision) = (&about.environment, about.revision.clone());
    let page = page(object.status.as_ref().and_then(|it| it.url.as_deref()));
    let of = revision.as_deref().unwrap_or_default();
    let reason = match why.as_str() {
        SUPERSEDED => "Superseded",
        _ => "Closing",
    };
    Some(Item {
        warning: false,
        reason: reason.to_owned(),
        message: format!("{name}: the pull request for {of} is being closed, because {why}{page}"),
        environment: Some(name.clone()),
        revision,
    })
}

/// Clusters that were read before and are not now, and the other way around: one item for each, however many
/// targets are on it.
fn of_clusters(before: &[ClusterStatus], now: &[ClusterStatus]) -> Vec<Item> {
    let changed = now.iter().filter(|cluster| {
        let was = before.iter().find(|was| was.cluster == cluster.cluster);
        was.is_some_and(|was| was.reachable != cluster.reachable)
    });
    let items = changed.map(|cluster| {
        let (reason, what) = match cluster.reachable {
            true => ("ClusterReachable", "it can be read again"),
            false => (
                "ClusterUnreachable",
                cluster.message.as_deref().unwrap_or("it cannot be read"),
            ),
        };
        Item {
            warning: !cluster.reachable,
            reason: reason.to_owned(),
            message: format!("{}: {what}", cluster.cluster),
            environment: None,
            revision: None,
        }
    });
    items.collect()
}

#[cfg(test)]
mod tests;
