//! One Pipeline for people and programs: what its status says, beside what its spec asks for.
//!
//! What comes in: the Pipeline as the API server has it, and the votes on its promotions. What goes out:
//! [`View`], which `kubectl gate pipeline` draws and prints, and which is served over HTTP. Nothing is
//! decided here. Fields are added, and never renamed.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::Serialize;
use sluice_crds::approval::Vote;
use sluice_crds::pipeline::{
    ClusterStatus, Environment, EnvironmentState, EnvironmentStatus, MergeGate, MergeMode, Phase,
    PullRequestRecord, Run, StrategyKind, TargetStatus, WaitingApproval,
};
use sluice_crds::{Approval, Pipeline};

use super::words;
use crate::verdict::condition::{READY, STALLED, find, find_true};

/// A Pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Pipeline")]
pub struct View {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The app that it promotes.
    pub app: App,
    /// Whether `spec.suspend` is set.
    pub suspended: bool,
    /// Who or what it waits for, over all environments.
    pub needs: Needs,
    /// The newest run. None: there has been none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// The environments in the order of the spec.
    pub environments: Vec<EnvironmentView>,
    /// The other clusters that it names, and whether they can be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<ClusterStatus>,
    /// What is wrong with it as a whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<String>,
}

/// The app of a Pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct App {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// Who or what is waited for. What needs people most is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Needs {
    /// A person has to act: approve, merge, promote or start again.
    Person,
    /// Something fails, or is not known: somebody has to look.
    Repair,
    /// It goes on by itself, or when its gates open.
    Time,
    /// Nothing is waited for.
    Nothing,
}

/// An environment of a Pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentView {
    /// Its name.
    pub name: String,
    /// How it stands. None: the controller has not looked at it yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<EnvironmentState>,
    /// The same in a sentence.
    pub message: String,
    /// Who or what it waits for.
    pub needs: Needs,
    /// How a revision is promoted to it: `pull-request`, `notification` or `admission`. None: nothing is
    /// promoted to the first environment, and to others people promote where the spec does not say how.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// Whether a person has to approve each promotion.
    pub manual: bool,
    /// The gates that it names, as `namespace/name`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
    /// The gates that hold the promotion back, as `namespace/name`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decided_by: Vec<String>,
    /// When time alone may change the answer of those gates, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// The revision and the run that a person has to approve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_approval: Option<WaitingApproval>,
    /// The newest promotion to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promotion: Option<PromotionView>,
    /// What people have said of that promotion. It is empty over HTTP: Approvals have rights of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<VoteView>,
    /// Where the app runs, in the order of the spec.
    pub targets: Vec<TargetStatus>,
}

/// A promotion to an environment.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromotionView {
    /// The run.
    pub run: i64,
    /// The revision.
    pub revision: String,
    /// What tells it from every other promotion.
    pub key: String,
    /// How far it is.
    pub phase: Phase,
    /// Since when.
    pub at: Time,
    /// When it is tried or sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Time>,
    /// Its pull request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequestRecord>,
}

/// What somebody has said of a promotion.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VoteView {
    /// Who.
    pub by: String,
    /// Yes or no.
    pub decision: Vote,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A Pipeline as it is shown, with those of `votes` that are about its present promotions.
pub fn view(object: &Pipeline, votes: &[Arc<Approval>]) -> View {
    let metadata = &object.metadata;
    let status = object.status.clone().unwrap_or_default();
    let environments = object.spec.environments.iter().enumerate();
    let environments: Vec<EnvironmentView> = environments
        .map(|(place, spec)| {
            let status = status.environments.get(&spec.name);
            environment(object, place, spec, status, votes)
        })
        .collect();
    let troubles = troubles(object);
    let each = environments.iter().map(|environment| environment.needs);
    let is_broken = !troubles.is_empty();
    let whole = is_broken.then_some(Needs::Repair);
    View {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
        app: App {
            kind: object.spec.app_ref.kind.clone(),
            name: object.spec.app_ref.name.clone(),
        },
        suspended: object.spec.suspend,
        needs: each.chain(whole).min().unwrap_or(Needs::Nothing),
        run: status.run,
        environments,
        clusters: status.clusters,
        troubles,
    }
}

/// What is wrong as a whole: what the conditions say, and whether they speak of the present spec.
fn troubles(object: &Pipeline) -> Vec<String> {
    let Some(status) = object.status.as_ref() else {
        return vec!["it has no status: no controller has looked at it yet".to_owned()];
    };
    let all = &status.conditions;
    let not_ready = || find(all, READY).filter(|it| it.status == "False");
    let found = find_true(all, STALLED).or_else(not_ready);
    let mut troubles: Vec<String> = found.map(|it| it.message.clone()).into_iter().collect();
    if status.observed_generation != object.metadata.generation {
        let line = "its status speaks of an earlier spec: the controller has not looked yet";
        troubles.push(line.to_owned());
    }
    troubles
}

fn environment(
    object: &Pipeline,
    place: usize,
    spec: &Environment,
    status: Option<&EnvironmentStatus>,
    votes: &[Arc<Approval>],
) -> EnvironmentView {
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    let promotion = (place > 0).then(|| object.spec.promotion_of(spec));
    let promotion = promotion.flatten();
    let strategy = promotion.and_then(|it| it.strategy.kind());
    let gates = spec.gates.iter().flat_map(|set| &set.refs);
    let gates =
        gates.map(|gate| format!("{}/{}", gate.namespace.as_deref().unwrap_or(own), gate.name));
    let held = status.filter(|status| is_held(status));
    let decision = held.and_then(|status| status.last_decision.as_ref());
    let decision = decision.filter(|decision| !decision.allowed);
    let record = status.and_then(|status| status.promotion.as_ref());
    let unseen = || format!("{} has not been looked at yet", spec.name);
    EnvironmentView {
        name: spec.name.clone(),
        state: status.map(|status| status.state),
        message: status.map_or_else(unseen, |status| words::of(status, &spec.name)),
        needs: status.map_or(Needs::Time, |status| needs(status, strategy)),
        strategy: strategy.map(|it| it.as_str().to_owned()),
        manual: promotion.is_some_and(|it| it.manual),
        gates: gates.collect(),
        decided_by: decision.map(|it| it.decided_by.clone()).unwrap_or_default(),
        until: decision.and_then(|it| it.next.clone()),
        waiting_approval: status.and_then(|status| status.waiting_approval.clone()),
        promotion: record.map(|record| PromotionView {
            run: record.run,
            revision: record.revision.clone(),
            key: record.key.clone(),
            phase: record.phase,
            at: record.at.clone(),
            next_attempt_at: record.next_attempt_at.clone(),
            pull_request: record.pull_request.clone(),
        }),
        votes: cast(object, spec, status, votes),
        targets: status.map_or_else(|| unseen_targets(spec), |it| it.targets.clone()),
    }
}

/// Whether gates hold it back: before a promotion, before a notification is sent again, or before a merge.
fn is_held(status: &EnvironmentStatus) -> bool {
    let gate = status.promotion.as_ref().and_then(|record| record.gate);
    match status.state {
        EnvironmentState::GatesClosed | EnvironmentState::NoEffect => true,
        EnvironmentState::PullRequestOpen => gate == Some(MergeGate::Pending),
        _ => false,
    }
}

/// Who or what an environment waits for.
fn needs(status: &EnvironmentStatus, strategy: Option<StrategyKind<'_>>) -> Needs {
    let merges_itself = matches!(
        strategy,
        Some(StrategyKind::PullRequest(forge)) if forge.merge == MergeMode::Auto
    );
    match status.state {
        EnvironmentState::Passed => Needs::Nothing,
        EnvironmentState::Unpromoted | EnvironmentState::Unapproved => Needs::Person,
        EnvironmentState::Abandoned => Needs::Person,
        EnvironmentState::PullRequestOpen if merges_itself || is_held(status) => Needs::Time,
        EnvironmentState::PullRequestOpen => Needs::Person,
        EnvironmentState::NotReady
        | EnvironmentState::Unknown
        | EnvironmentState::CyclicGates
        | EnvironmentState::Failed
        | EnvironmentState::NoEffect => Needs::Repair,
        EnvironmentState::Waiting
        | EnvironmentState::Arriving
        | EnvironmentState::Rejected
        | EnvironmentState::GatesClosed
        | EnvironmentState::Closing
        | EnvironmentState::Promoting
        | EnvironmentState::Promoted
        | EnvironmentState::Suspended => Needs::Time,
    }
}

/// The votes on the promotion that an environment waits with or has had last, the oldest first.
fn cast(
    object: &Pipeline,
    spec: &Environment,
    status: Option<&EnvironmentStatus>,
    votes: &[Arc<Approval>],
) -> Vec<VoteView> {
    let waits = status.and_then(|status| status.waiting_approval.as_ref());
    let record = status.and_then(|status| status.promotion.as_ref());
    let run = waits.map(|it| it.run).or(record.map(|it| it.run));
    let metadata = &object.metadata;
    let is_about = |approval: &&Arc<Approval>| {
        let named = approval.spec.pipeline_ref.as_ref();
        approval.metadata.namespace == metadata.namespace
            && approval.metadata.deletion_timestamp.is_none()
            && named.is_some_and(|named| {
                Some(&named.name) == metadata.name.as_ref()
                    && named.environment == spec.name
                    && Some(named.run) == run
            })
    };
    let about = votes.iter().filter(is_about);
    let mut cast: Vec<VoteView> = about
        .map(|approval| VoteView {
            by: approval.spec.by.clone(),
            decision: approval.spec.decision,
            at: approval.metadata.creation_timestamp.clone(),
            reason: approval.spec.reason.clone(),
        })
        .collect();
    cast.sort_by(|a, b| (a.at.as_ref(), &a.by).cmp(&(b.at.as_ref(), &b.by)));
    cast
}

/// The targets of the spec, of which nothing is known.
fn unseen_targets(spec: &Environment) -> Vec<TargetStatus> {
    let targets = spec.targets.iter().map(|target| TargetStatus {
        namespace: target.namespace.clone(),
        cluster_ref: target.cluster_ref.clone(),
        ready: false,
        revision: None,
        attempted: None,
        versions: std::collections::BTreeMap::new(),
        error: None,
    });
    targets.collect()
}

#[cfg(test)]
mod tests;
