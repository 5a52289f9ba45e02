//! What becomes of an earlier promotion when another begins.
//!
//! Its pull request is closed first. Nothing is begun before the forge has confirmed that, or the merge: at
//! no time are two pull requests of an environment open. A forge that the spec does not name any more holds
//! nobody up.

use std::sync::Arc;

use sluice_crds::pipeline::{PromotionRecord, PullRequestStrategy, StrategyKind};
use sluice_crds::pull_request::About;
use sluice_crds::{Pipeline, PullRequest};

use super::super::Act;
use super::super::child::{self, is_outstanding};
use super::super::environment::Standing;
use super::super::key::{Way, key};
use super::super::reasons::{ARRIVED, SUPERSEDED};
use super::super::run::Wanted;
use super::{At, Plan, Wish, frozen};
use crate::revision::Revision;

impl At<'_, '_> {
    /// Orders every other pull request of this environment to be closed. Returns whether one may still be
    /// open where the spec says.
    pub(super) fn close_others(
        &self,
        plan: &mut Plan,
        wish: Option<Wish<'_>>,
        former: Option<&PromotionRecord>,
    ) -> bool {
        let name = self.name();
        let others = self.context.own.iter().filter(|(about, object)| {
            about.environment == name
                && Some(about.key.as_str()) != plan.keeps.as_deref()
                && !child::is_final(object)
        });
        // Existing ones are closed by the sweep over all of them, in `settled`.
        let mut is_closing = false;
        for (_, object) in others {
            match self.is_named(object) {
                true => is_closing = true,
                false => {
                    let url = object.spec.repository.url.as_deref().unwrap_or_default();
                    let of = &object.metadata.name;
                    let of = of.as_deref().unwrap_or_default();
                    plan.message = Some(format!(
                        "ClosingUnconfirmed: the PullRequest {of} at {url}, which the spec does not \
                         name any more, may still be open"
                    ));
                }
            }
        }
        let Some(former) = former.filter(|former| is_outstanding(former)) else {
            return is_closing;
        };
        let is_there = self
            .context
            .own
            .iter()
            .any(|(about, _)| about.key == former.key);
        if is_there {
            plan.record = Some(frozen(former.clone()));
            return is_closing;
        }
        // Perhaps it was never created, or is not seen yet. With its order to close it is both.
        match self.rebuilt(wish, former) {
            Some(strategy) => {
                let why = SUPERSEDED.to_owned();
                let made = child::make(self.context.object, name, former, strategy, Some(why));
                plan.acts.push(Act::Create(Box::new(made)));
                plan.record = Some(frozen(former.clone()));
                true
            }
            None => is_closing,
        }
    }

    /// The strategy that a record was made with, if it is still the present one.
    fn rebuilt<'w>(
        &self,
        wish: Option<Wish<'w>>,
        record: &PromotionRecord,
    ) -> Option<&'w PullRequestStrategy> {
        let StrategyKind::PullRequest(strategy) = wish?.strategy else {
            return None;
        };
        let way = Way::of(StrategyKind::PullRequest(strategy));
        let (run, revision) = (record.run, &record.revision);
        let is_it = record.key == key(self.context.whose, self.name(), run, revision, way);
        is_it.then_some(strategy)
    }

    /// Whether the spec still names the repository and branch of a pull request.
    fn is_named(&self, object: &PullRequest) -> bool {
        let spec = &self.context.object.spec;
        let mut all = spec.environments.iter();
        all.any(|environment| {
            let promotion = spec.promotion_of(environment);
            let strategy = promotion.and_then(|it| it.strategy.pull_request.as_ref());
            strategy.is_some_and(|strategy| {
                Some(&strategy.url) == object.spec.repository.url.as_ref()
                    && strategy.base_branch == object.spec.target_branch
            })
        })
    }

    /// Takes back an admission that another run replaces, unless a target has begun to run it.
    pub(super) fn withdraw(
        &self,
        plan: &mut Plan,
        former: Option<&PromotionRecord>,
        wanted: &Wanted,
    ) {
        let Some(former) = former.filter(|it| it.reason.as_deref() != Some(ARRIVED)) else {
            return;
        };
        let newest = plan.admitted.first();
        let Some(newest) = newest.filter(|it| it.run == former.run && it.run != wanted.run) else {
            return;
        };
        let is_known = !matches!(
            self.environment.standing(&wanted.lineage),
            Standing::Unknown(_)
        );
        let is_on = Revision::parse(&newest.revision).is_ok_and(|it| self.environment.has(&it));
        if is_known && !is_on {
            plan.admitted.remove(0);
        }
    }
}

/// The acts that close what must not stay open, of all environments: what no plan keeps.
pub(in super::super) fn sweep(
    object: &Pipeline,
    own: &[(&About, &Arc<PullRequest>)],
    keeps: impl Fn(&About) -> bool,
) -> Vec<Act> {
    let left = own.iter().filter(|(about, object)| {
        !child::is_final(object) && object.spec.close.is_none() && !keeps(about)
    });
    let close = left.map(|(about, child)| Act::Change {
        before: Arc::clone(child),
        suspend: child.spec.suspend,
        close: Some(why_closed(object, &about.environment)),
    });
    close.collect()
}

/// Why the pull request of an environment must not stay open, which no plan keeps.
fn why_closed(object: &Pipeline, name: &str) -> String {
    let spec = &object.spec;
    let mut environments = spec.environments.iter().enumerate();
    let Some((place, environment)) = environments.find(|(_, it)| it.name == name) else {
        return format!("the Pipeline has no environment {name} any more");
    };
    let strategy = spec
        .promotion_of(environment)
        .and_then(|it| it.strategy.kind());
    // People give the first environment its revision.
    let is_promoted = place > 0 && strategy.is_some();
    match is_promoted {
        true => SUPERSEDED.to_owned(),
        false => format!("the Pipeline does not promote to {name} any more"),
    }
}
