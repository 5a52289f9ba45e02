//! What is reported of a pipeline when its status has changed: in the log, and by events.
//!
//! News is that a run begins and ends, how the promotion of an environment goes on, that something waits
//! or no longer waits, and problems.

use sluice_core::delivery::pipeline::{BLOCKED, KIND};
use sluice_core::verdict::condition::READY;
use sluice_crds::Pipeline;
use sluice_crds::pipeline::{EnvironmentState, EnvironmentStatus, PipelineStatus, Run};

use crate::act::reconcile::Context;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use super::record;
use crate::tell::events::{About, More, Told, notifications};

/// A piece of news.
#[derive(Debug, PartialEq, Eq)]
struct Item {
    warning: bool,
    /// One word.
    reason: String,
    /// A sentence.
    message: String,
    /// The environment that it is about.
    environment: Option<String>,
    /// The revision that it is about.
    revision: Option<String>,
}

/// Reports what is new.
pub(super) fn tell(context: &Context, key: &ObjectKey, before: &Pipeline, now: &Pipeline) {
    let (Some(now_says), nothing) = (now.status.as_ref(), PipelineStatus::default()) else {
        return;
    };
    let before_says = before.status.as_ref().unwrap_or(&nothing);
    let work = Work::own(Kind::Pipeline, key.clone());
    let (at, promoted) = (context.clock.now(), &context.counters.promoted);
    promoted.note(&work, now, before_says, now_says, at);
    for item in news(before_says, now_says) {
        tracing::info!(
            target: "decision",
            kind = KIND,
            namespace = %key.namespace,
            name = %key.name,
    record::promotions(&context.audit, key, before_says, now_says);
            environment = item.environment,
            reason = item.reason,
            revision = item.revision,
            "{}",
            item.message
        );
        context.events.tell(Told {
            about: About::new(work.clone(), now),
            warning: item.warning,
            reason: item.reason.into(),
            action: "Promote",
            note: item.message.into(),
            more: Some(Box::new(More {
                annotations: (item.revision.into_iter())
                    .map(|revision| (notifications::REVISION.to_owned(), revision))
                    .collect(),
                ..More::default()
            })),
        });
    }
}

fn news(before: &PipelineStatus, now: &PipelineStatus) -> Vec<Item> {
    let mut news = of_run(before.run.as_ref(), now.run.as_ref());
    for (name, environment) in &now.environments {
        let was = before.environments.get(name);
        news.extend(of_environment(name, was, environment));
    }
    for condition in &now.conditions {
        let said = |status: &PipelineStatus| {
            let mut all = status.conditions.iter();
            let found = all.find(|it| it.type_ == condition.type_)?;
            Some((found.status.clone(), found.reason.clone()))
        };
        let (was, is) = (said(before), said(now));
        if was == is {
            continue;
        }
        let held = |said: &Option<(String, String)>, status: &str| {
            said.as_ref().is_some_and(|(is, _)| is == status)
        };
        let (warning, reason) = match condition.type_.as_str() {
            READY if held(&is, "False") => (true, condition.reason.as_str()),
            READY if held(&is, "True") && held(&was, "False") => (false, condition.reason.as_str()),
            BLOCKED if held(&is, "True") => (false, "Blocked"),
            BLOCKED if held(&was, "True") => (false, "Unblocked"),
            _ => continue,
        };
        news.push(Item {
            warning,
            reason: reason.to_owned(),
            message: condition.message.clone(),
            environment: None,
            revision: now.run.as_ref().map(|run| run.revision.clone()),
        });
    }
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
        EnvironmentState::Promoting
        | EnvironmentState::PullRequestOpen
        | EnvironmentState::Promoted => false,
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
        | EnvironmentState::Suspended => return None,
    };
    let revision = promotion.map(|it| it.revision.clone());
    let said = now.message.clone().or_else(|| promotion?.message.clone());
    let message = said.unwrap_or_else(|| now.state.as_str().to_owned());
    Some(Item {
        warning,
        reason: now.state.as_str().to_owned(),
        message: format!("{name}: {message}"),
        environment: Some(name.to_owned()),
        revision,
    })
}
