//! What follows from the status of a strategy, once it was accepted.

use std::sync::Arc;

use serde_json::json;
use sluice_core::delivery::promotion_strategy::Act;
use sluice_core::delivery::promotion_strategy::evidence::{Answer, Evidence, Question, Sight};
use sluice_crds::promotion_strategy::EnvironmentStatus;
use sluice_crds::{PromotionStrategy, PromotionStrategyStatus};

use super::{access_of, news};
use crate::act::reconcile::consumer::Consumer;
use crate::act::reconcile::news::tell;
use crate::act::reconcile::{Context, Reconciled, owned};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;

impl Consumer for PromotionStrategy {
    const ACTION: &'static str = "Promote";

    type Act = Act;

    fn accepted(
        context: &Context,
        key: &ObjectKey,
        object: &Self,
        before: &PromotionStrategyStatus,
        now: &PromotionStrategyStatus,
    ) {
        for item in news::of(before, now) {
            tell(context, key, object, item);
        }
        let (before, now) = (&before.environments, &now.environments);
        count(context, key, object, before, now);
    }

    async fn carry_out(
        context: &Context,
        key: &ObjectKey,
        object: &mut Arc<Self>,
        act: Act,
    ) -> Result<(), kube::Error> {
        let manager = Self::MANAGER;
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
}

/// Counts what is new in its status.
fn count(
    context: &Context,
    key: &ObjectKey,
    object: &PromotionStrategy,
    before: &[EnvironmentStatus],
    now: &[EnvironmentStatus],
) {
    let own = Work::own(Kind::PromotionStrategy, key.clone());
    let access = access_of(key, &object.spec.repo_ref).key;
    let made = |dry: &str| {
        let seen = context.repositories.of(&access, &own);
        match seen.answer(&Question::Commit(dry.to_owned())) {
            Sight::Known(Answer::Commit(commit)) => Some(commit.at),
            _ => None,
        }
    };
    let at = context.clock.now();
    context.counters.branches.note(&own, before, now, at, made);
}
