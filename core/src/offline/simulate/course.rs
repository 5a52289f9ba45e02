//! How a revision goes through the environments of a Pipeline, when nothing but time passes.
//!
//! What comes in: a [`World`] with the Pipeline, its gates and its apps, and a span. What goes out: each
//! promotion that is begun or merged, with the decision of its gates, and what is waited for at the end.
//!
//! Others are taken to do their part at once and well: a pull request is open as soon as it is created, a
//! person merges it as soon as the gates admit that, and an environment runs healthily what was promoted to
//! it. So the course shows the earliest instants at which gates let a revision pass. People approve nothing
//! in it that is not among the objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use sluice_crds::pipeline::{Environment, StrategyKind, Target, TargetStatus};
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{Decision, Pipeline, PullRequest};

use super::{Key, World, gather_promotion};
use crate::delivery::pipeline::{
    self, Act, App, Asked, Errand, Given, Missing, Outcome, Reader, Report, ReportSight, Sight,
    Surroundings, Trouble, View, Votes, What,
};
use crate::gate::Identity;
use crate::revision::Revision;
use crate::text::refusal::Refusals;
use crate::time::clock::Now;
use crate::time::span::Span;
use crate::verdict::question::Question;

/// How often a Pipeline is looked at, at most.
const MOST_LOOKS: usize = 2_000;
/// The commit of pull requests that nobody has made.
const COMMIT: &str = "0000000000000000000000000000000000000000";

/// What happens to a Pipeline.
#[derive(Clone, Debug)]
pub struct Course {
    /// Each promotion, in the order in which they happen.
    pub steps: Vec<Step>,
    /// The Pipeline at the end.
    pub end: View,
    /// Where there was too much to look at up to the end.
    pub cut_off: Option<Timestamp>,
}

/// A promotion that is begun, or whose pull request is merged.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// When.
    pub at: Timestamp,
    /// The environment.
    pub environment: String,
    /// The revision.
    pub revision: String,
    /// What is done.
    pub what: What,
    /// What the gates said.
    pub decision: Decision,
}

/// The course of the Pipeline of that name in `span`, both ends included. None: there is no such Pipeline,
/// or it may not be read.
///
/// # Errors
/// Its spec is refused.
pub fn course(
    world: &World,
    key: &Key,
    identity: Identity,
    span: Span,
) -> Option<Result<Course, Refusals>> {
    let object = world.pipelines.get(key)?.as_ref()?;
    Some(match pipeline::check(object) {
        Ok(reader) => Ok(Play::new(world, key, object, Arc::new(reader), identity).through(span)),
        Err(refusals) => Err(refusals),
    })
}

/// A Pipeline with everybody around it.
struct Play {
    world: World,
    key: Key,
    object: Pipeline,
    /// As it was at first: what its status told of apps that are not among the objects.
    told: Pipeline,
    reader: Arc<Reader>,
    identity: Identity,
    /// What was promoted, by environment: its targets run it healthily.
    arrived: BTreeMap<String, Revision>,
    pull_requests: Vec<Arc<PullRequest>>,
    errands: BTreeMap<Errand, Outcome>,
}

impl Play {
    fn new(
        world: &World,
        key: &Key,
        object: &Pipeline,
        reader: Arc<Reader>,
        identity: Identity,
    ) -> Self {
        // No forge remembers anything.
        let version = object.metadata.resource_version.clone();
        let version = version.unwrap_or_default();
        let environments = object.spec.environments.iter();
        let recalls = environments.map(|it| {
            let errand = Errand::Recall(it.name.clone(), version.clone());
            (errand, Outcome::Recalled(None))
        });
        Self {
            world: world.clone(),
            key: key.clone(),
            object: object.clone(),
            told: object.clone(),
            reader,
            identity,
            arrived: BTreeMap::new(),
            pull_requests: Vec::new(),
            errands: recalls.collect(),
        }
    }

    fn through(mut self, span: Span) -> Course {
        let mut steps = Vec::new();
        let mut at = span.start;
        let mut cut_off = Some(at);
        for _ in 0..MOST_LOOKS {
            cut_off = Some(at);
            let (report, asked) = self.look(at);
            let changed = self.happens(&asked, report.acts, at, &mut steps);
            self.object.status = Some(report.status);
            let now = Some(Arc::new(self.object.clone()));
            self.world.pipelines.insert(self.key.clone(), now);
            match report.wake {
                _ if changed => {}
                Some(wake) if wake <= span.end => at = wake,
                Some(_) | None => {
                    cut_off = None;
                    break;
                }
            }
        }
        Course {
            steps,
            end: pipeline::view(&self.object, &[]),
            cut_off,
        }
    }

    /// One look, as the controller looks.
    fn look(&self, at: Timestamp) -> (Report, Vec<Asked>) {
        let now = Now::given(at);
        let environments = self.object.spec.environments.iter();
        let votes = self.world.approvals.values();
        let votes = votes.filter(|it| Key::of(&it.metadata).namespace == self.key.namespace);
        let given = Given {
            checked: Ok(Arc::clone(&self.reader)),
            environments: environments.map(|it| self.around(it, now)).collect(),
            pull_requests: self.pull_requests.clone(),
            votes: Votes {
                all: votes.cloned().collect(),
                verified: self.identity != Identity::Unverified,
            },
            errands: self.errands.clone(),
            clusters: Vec::new(),
            object: Arc::new(self.object.clone()),
            now,
        };
        let considered = pipeline::consider(given);
        let asked = considered.asked().to_vec();
        let decisions: Vec<Decision> = asked.iter().map(|it| it.decision.clone()).collect();
        (pipeline::report(considered, &decisions), asked)
    }

    fn around(&self, environment: &Environment, now: Now) -> Surroundings {
        let question = Question::new(now, None);
        let gates = gather_promotion(
            &self.world,
            &self.object,
            environment,
            self.identity,
            question,
        );
        let arrived = self.arrived.get(&environment.name);
        let report = arrived.map_or(ReportSight::Nothing, |revision| {
            ReportSight::Says(revision.to_string())
        });
        let targets = environment.targets.iter().enumerate();
        Surroundings {
            targets: targets
                .map(|(place, target)| self.sight(environment, place, target))
                .collect(),
            depends_on: pipeline::depends_on(&gates),
            gates,
            reports: vec![report; environment.targets.len()],
        }
    }

    /// The app in a target: as it will be, as it is among the objects, or as the status told of it.
    fn sight(&self, environment: &Environment, place: usize, target: &Target) -> Sight {
        if let Some(revision) = self.arrived.get(&environment.name) {
            return Sight::Here(Arc::new(App::healthy(revision.clone())));
        }
        let here = target.cluster_ref.is_none();
        let object = self.app(&target.namespace).filter(|_| here);
        if let Some(object) = object {
            return Sight::Here(Arc::new(self.reader.read(object)));
        }
        let told = self.told.status.as_ref();
        let told = told.and_then(|status| status.environments.get(&environment.name));
        let told: Option<&TargetStatus> = told.and_then(|it| it.targets.get(place));
        let told = told.filter(|it| {
            let named = |it: &sluice_crds::pipeline::ClusterReference| {
                (it.kind, it.name.clone(), it.namespace.clone())
            };
            it.namespace == target.namespace
                && it.cluster_ref.as_ref().map(named) == target.cluster_ref.as_ref().map(named)
        });
        match told.and_then(App::told) {
            Some(app) => Sight::Here(Arc::new(app)),
            None => Sight::Unknown(Trouble {
                what: Missing::App,
                message: format!(
                    "there is no {} {}/{} among the objects, and the status does not say what runs there",
                    self.object.spec.app_ref.kind, target.namespace, self.object.spec.app_ref.name
                ),
            }),
        }
    }

    fn app(&self, namespace: &str) -> Option<&Value> {
        let app = &self.object.spec.app_ref;
        let (group, kind) = pipeline::kind_of(app)?;
        let key = Key::from_reference(namespace, None, &app.name);
        let place = (group.to_owned(), kind.to_owned(), key);
        self.world.apps.get(&place).map(AsRef::as_ref)
    }

    /// What follows from a look. Whether anything has changed, so that it has to be looked at again.
    fn happens(
        &mut self,
        asked: &[Asked],
        acts: Vec<Act>,
        at: Timestamp,
        steps: &mut Vec<Step>,
    ) -> bool {
        let before = steps.len();
        for asked in asked.iter().filter(|asked| asked.decision.allowed) {
            let is_merge = asked.what == What::Merge;
            if !asked.takes_effect && !is_merge {
                continue;
            }
            let Some(revision) = asked.decision.subject.revision.clone() else {
                continue;
            };
            let arrives = is_merge || !self.is_by_pull_request(&asked.environment);
            if let Ok(revision) = Revision::parse(&revision)
                && arrives
            {
                self.arrived.insert(asked.environment.clone(), revision);
            }
            steps.push(Step {
                at,
                environment: asked.environment.clone(),
                revision,
                what: asked.what,
                decision: asked.decision.clone(),
            });
        }
        let opened: Vec<_> = acts.into_iter().filter_map(opened).collect();
        let is_new = |made: &Arc<PullRequest>| {
            let mut known = self.pull_requests.iter();
            !known.any(|it| it.metadata.name == made.metadata.name)
        };
        let opened: Vec<_> = opened.into_iter().filter(is_new).collect();
        let changed = steps.len() > before || !opened.is_empty();
        self.pull_requests.extend(opened);
        changed
    }

    fn is_by_pull_request(&self, name: &str) -> bool {
        let spec = &self.object.spec;
        let environment = spec.environments.iter().find(|it| it.name == name);
        let promotion = environment.and_then(|it| spec.promotion_of(it));
        let strategy = promotion.and_then(|it| it.strategy.kind());
        matches!(strategy, Some(StrategyKind::PullRequest(_)))
    }
}

/// The pull request that an act creates, open at once.
fn opened(act: Act) -> Option<Arc<PullRequest>> {
    let Act::Create(mut made) = act else {
        return None;
    };
    let status = made.status.get_or_insert_default();
    status.state = Some(PullRequestState::Open);
    status.commit_sha = Some(COMMIT.to_owned());
    status.head_sha = Some(COMMIT.to_owned());
    Some(Arc::from(made))
}

#[cfg(test)]
mod tests;
