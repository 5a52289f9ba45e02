//! Carries out what was decided about a strategy: its status, then what follows from it.

use std::sync::Arc;

use serde_json::json;
use sluice_core::delivery::promotion_strategy::evidence::{Answer, Evidence, Question, Sight};
use sluice_core::delivery::promotion_strategy::{self, Act, Report};
use sluice_crds::promotion_strategy::EnvironmentStatus;
use sluice_crds::{PromotionStrategy, PromotionStrategyStatus};

use super::{access_of, news};
use crate::act::reconcile::{Context, Outcome, Reconciled, owned, status, write};
use crate::cluster::failure;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;

/// Writes the status onto this version of the strategy: that is where merges are ordered. Only if the API
/// server accepts it, does what follows. If it refuses one of the writes that follow, the others go on, and
/// the status reports the refusal.
pub(super) async fn apply(
    context: &Context,
    key: &ObjectKey,
    object: &Arc<PromotionStrategy>,
    report: Report,
) -> Result<Outcome, kube::Error> {
    let Report {
        status,
        changed,
        acts,
        wake,
    } = report;
    let mut present = Arc::clone(object);
    if changed {
        present = write(context, key, object, status).await?;
    }
    let mut refusal = None;
    for act in acts {
        let what = what(&act);
        match carry_out(context, key, &present, act).await {
            Ok(()) => {}
            Err(error) if failure::is_refusal(&error) => {
                refusal.get_or_insert((what, error));
            }
            Err(error) => return Err(error),
        }
    }
    let Some((what, error)) = refusal else {
        return Ok(Outcome::Wake(wake));
    };
    let refused = write::refused(what, &error);
    if let Some(status) = promotion_strategy::refused(&present, &refused, context.clock.now()) {
        write(context, key, &present, status).await?;
    }
    let error = Box::new(error);
    Ok(Outcome::Unfinished { error, wake })
}

/// Writes the status, and reports what is new in it. Returns the strategy as it is then.
async fn write(
    context: &Context,
    key: &ObjectKey,
    object: &PromotionStrategy,
    status: PromotionStrategyStatus,
) -> Result<Arc<PromotionStrategy>, kube::Error> {
    let written = status::write(context, object, status).await?;
    news::tell(context, key, object, &written);
    count(context, key, object, &written);
    Ok(written)
}

/// Counts what is new in its status.
fn count(context: &Context, key: &ObjectKey, before: &PromotionStrategy, now: &PromotionStrategy) {
    fn environments(object: &PromotionStrategy) -> &[EnvironmentStatus] {
        let status = object.status.as_ref();
        status.map_or(&[], |status| &status.environments)
    }
    let own = Work::own(Kind::PromotionStrategy, key.clone());
    let access = access_of(key, &now.spec.repo_ref).key;
    let made = |dry: &str| {
        let seen = context.repositories.of(&access, &own);
        match seen.answer(&Question::Commit(dry.to_owned())) {
            Sight::Known(Answer::Commit(commit)) => Some(commit.at),
            _ => None,
        }
    };
    let (before, now) = (environments(before), environments(now));
    let at = context.clock.now();
    context.counters.branches.note(&own, before, now, at, made);
}

/// Which object it writes, in words.
fn what(act: &Act) -> String {
    let name = match act {
        Act::Create(object) => object.metadata.name.as_deref(),
        Act::Change { before, .. } | Act::Delete(before) => before.metadata.name.as_deref(),
        Act::LookAt(_) | Act::List | Act::Freshen | Act::Told | Act::Tell(_) => None,
    };
    format!("the PullRequest {}", name.unwrap_or_default())
}

async fn carry_out(
    context: &Context,
    key: &ObjectKey,
    object: &PromotionStrategy,
    act: Act,
) -> Result<(), kube::Error> {
    let manager = PromotionStrategy::MANAGER;
    let own = Work::own(Kind::PromotionStrategy, key.clone());
    match act {
        Act::Create(child) => owned::create(context, manager, *child).await,
        Act::Change {
            before,
            title,
            description,
            close,
        } => {
            let spec = json!({ "title": title, "description": description, "close": close });
            owned::change(context, manager, &before, json!({ "spec": spec })).await
        }
        Act::Delete(before) => owned::delete(context, manager, &before).await,
        Act::LookAt(name) => {
            let child = key.naming(None, &name);
            context.at_forges.look_now(context, &child);
            Ok(())
        }
        Act::List => {
            let access = access_of(key, &object.spec.repo_ref);
            context.repositories.list_now(&access.key);
            Ok(())
        }
        Act::Freshen => {
            let access = access_of(key, &object.spec.repo_ref);
            context.repositories.list_for(&access.key, &own);
            Ok(())
        }
        Act::Told => {
            context.postings.accepted(&own);
            Ok(())
        }
        Act::Tell(task) => {
            let access = &object.spec.repo_ref;
            context.postings.begin(context, &own, access, task);
            Ok(())
        }
    }
}
