//! What `get` says of one object, a cell for each column.

use std::collections::BTreeMap;

use anyhow::Result;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::Value;
use sluice_core::delivery::pipeline::View;
use sluice_core::delivery::rollout;
use sluice_core::gatekeeper::approval::Approvals;
use sluice_core::offline::simulate::{Decision, Key};
use sluice_core::revision;
use sluice_core::verdict::condition::{READY, STALLED, find, find_true};
use sluice_crds::approval::Vote;
use sluice_crds::gate_policy::{LabelOperator, LabelRequirement, NamespaceSelector};
use sluice_crds::{
    Approval, Gate, GatePolicy, GatedSource, Gatekeeper, Pipeline, PromotionStrategy, RevertCommit,
    Rollout, State,
};

use super::source::{blocked, turn};
use crate::arguments::Commit;
use crate::cluster;
use crate::instant::{Zone, age};

/// One object.
pub(crate) struct Row {
    pub(crate) key: Key,
    /// One for each title, and the message.
    pub(crate) cells: Vec<String>,
    /// Of what can be open and closed: it colors the cell of the state.
    pub(crate) state: Option<State>,
    /// As kubectl prints it.
    pub(crate) object: Value,
}

/// How old an object is.
fn age_of(metadata: &ObjectMeta, now: Timestamp) -> String {
    let created = metadata.creation_timestamp.as_ref();
    created.map(|time| age(time.0, now)).unwrap_or_default()
}

fn row(key: Key, cells: Vec<String>, state: Option<State>, object: &impl Serialize) -> Result<Row> {
    Ok(Row {
        key,
        cells,
        state,
        object: serde_json::to_value(object)?,
    })
}

pub(super) fn gate(gate: &Gate, decision: &Decision, now: Timestamp, zone: &Zone) -> Result<Row> {
    let next = decision.upcoming.first().map(|change| change.at.0);
    let status = gate.status.as_ref();
    let since = status.filter(|status| status.state == Some(decision.state));
    let since = since.and_then(|status| Some(status.since.as_ref()?.0));
    let forced_by = decision.r#override.as_ref().map(|force| force.by.clone());
    let cells = vec![
        decision.state.to_string(),
        decision.reason.clone(),
        next.map(|at| zone.wall(at)).unwrap_or_default(),
        forced_by.unwrap_or_default(),
        since.map(|at| age(at, now)).unwrap_or_default(),
        age_of(&gate.metadata, now),
        decision.message.clone(),
    ];
    row(Key::of(&gate.metadata), cells, Some(decision.state), gate)
}

pub(super) fn gatekeeper(gatekeeper: &Gatekeeper, now: Timestamp, zone: &Zone) -> Result<Row> {
    let status = gatekeeper.status.as_ref();
    let verdict = status.and_then(|status| status.verdict.as_ref());
    let upcoming = status.map_or(&[][..], |status| &status.upcoming);
    // A controller that does not run leaves changes behind that have come.
    let mut upcoming = upcoming.iter().map(|change| change.at.0);
    let next = upcoming.find(|at| *at > now);
    let state = verdict.map(|verdict| verdict.state);
    let kind = gatekeeper.spec.kind().map_or("", |kind| kind.as_str());
    let cells = vec![
        state.map_or("Unknown".to_owned(), |state| state.to_string()),
        kind.to_owned(),
        verdict.map(|it| it.reason.clone()).unwrap_or_default(),
        next.map(|at| zone.wall(at)).unwrap_or_default(),
        age_of(&gatekeeper.metadata, now),
        verdict.map(|it| it.message.clone()).unwrap_or_default(),
    ];
    row(Key::of(&gatekeeper.metadata), cells, state, gatekeeper)
}

/// What its status says: something waits, or nothing does.
pub(super) fn source(source: &GatedSource, now: Timestamp, zone: &Zone) -> Result<Row> {
    let status = source.status.clone().unwrap_or_default();
    let stalled = find_true(&status.conditions, STALLED);
    let blocked = blocked(&status);
    let ready = || find(&status.conditions, READY);
    let (word, told) = match () {
        () if source.spec.suspend => ("Suspended", None),
        () if stalled.is_some() => ("Stalled", stalled),
        () if blocked.is_some() => ("Blocked", blocked),
        () if status.pending.is_some() => ("Pending", ready()),
        () if status.conditions.is_empty() => ("Unknown", None),
        () => ("Current", ready()),
    };
    let held = status.last_decision.as_ref().filter(|_| word == "Blocked");
    let until = turn(&status).or(held.and_then(|it| it.next.as_ref()));
    let revision =
        |text: Option<&String>| text.map(|text| revision::short(text)).unwrap_or_default();
    let cells = vec![
        word.to_owned(),
        revision(status.admitted.as_ref().map(|it| &it.revision)),
        revision(status.pending.as_ref().map(|it| &it.revision)),
        held.map(|it| it.decided_by.join(",")).unwrap_or_default(),
        until.map(|at| zone.wall(at.0)).unwrap_or_default(),
        age_of(&source.metadata, now),
        told.map(|it| it.message.clone()).unwrap_or_default(),
    ];
    row(Key::of(&source.metadata), cells, None, source)
}

/// What its status says, or what is wrong with it as a whole.
pub(super) fn pipeline(view: &View, object: &Pipeline, now: Timestamp, zone: &Zone) -> Result<Row> {
    let run = view.run.as_ref();
    let word = match (view.suspended, view.troubles.is_empty(), run) {
        (true, ..) => "Suspended",
        (false, false, _) => "Stalled",
        (false, true, Some(run)) => run.state.as_str(),
        (false, true, None) => "NoRun",
    };
    let until = run.and_then(|run| run.next.as_ref());
    let said = view.troubles.first().cloned();
    let text = |text: Option<String>| text.unwrap_or_default();
    let cells = vec![
        word.to_owned(),
        text(run.map(|run| run.short.clone())),
        text(run.map(|run| run.environment.clone())),
        text(run.and_then(|run| run.decided_by.clone())),
        until.map(|at| zone.wall(at.0)).unwrap_or_default(),
        age_of(&object.metadata, now),
        text(said.or_else(|| run.map(|run| run.message.clone()))),
    ];
    row(Key::of(&object.metadata), cells, None, object)
}

/// A promotion strategy, as its status has it.
pub(super) fn strategy(object: &PromotionStrategy, now: Timestamp, zone: &Zone) -> Result<Row> {
    let status = object.status.as_ref();
    let conditions = status
        .map(|it| it.conditions.as_slice())
        .unwrap_or_default();
    let wrong = find(conditions, READY).filter(|ready| ready.status != "True");
    let summary = status.and_then(|it| it.summary.clone()).unwrap_or_default();
    let word = match (wrong, &summary.reason) {
        (Some(ready), _) => ready.reason.clone(),
        (None, Some(reason)) => reason.clone(),
        (None, None) if status.is_none() => "Unknown".to_owned(),
        (None, None) => "UpToDate".to_owned(),
    };
    let next = summary.next.map(|at| at.0).filter(|at| *at > now);
    let said = wrong.map(|ready| ready.message.clone()).or(summary.message);
    let cells = vec![
        word,
        summary.newest.unwrap_or_default(),
        summary.reached.unwrap_or_default(),
        summary.waits_at.unwrap_or_default(),
        next.map(|at| zone.wall(at)).unwrap_or_default(),
        age_of(&object.metadata, now),
        said.unwrap_or_default(),
    ];
    row(Key::of(&object.metadata), cells, None, object)
}

/// A revert, as its status has it.
pub(super) fn revert(object: &RevertCommit, now: Timestamp) -> Result<Row> {
    let spec = &object.spec;
    let status = object.status.clone().unwrap_or_default();
    let phase = status.phase.map_or("Unknown", |phase| phase.as_str());
    let ready = find(&status.conditions, READY);
    let short = |sha: &String| Commit::short(sha).to_owned();
    let cells = vec![
        phase.to_owned(),
        spec.active_branch.clone(),
        short(&spec.dry_sha),
        spec.fixed_by.as_ref().map(short).unwrap_or_default(),
        spec.by.clone(),
        age_of(&object.metadata, now),
        ready.map_or_else(|| spec.reason.clone(), |it| it.message.clone()),
    ];
    row(Key::of(&object.metadata), cells, None, object)
}

/// A rollout, as its status has it.
pub(super) fn rollout(object: &Rollout, now: Timestamp, zone: &Zone) -> Result<Row> {
    let view = rollout::view(object, &BTreeMap::new());
    let held = view.held.as_ref();
    let waits = held.map(|held| match &held.by {
        Some(by) if held.reason == rollout::CLOSED => by.clone(),
        Some(_) | None => held.reason.clone(),
    });
    let pods = view.ready.zip(view.size);
    let until = view.until.as_ref().map(|at| at.0).filter(|at| *at > now);
    let said = held.map(|it| it.message.clone());
    let cells = vec![
        view.state.map_or("Unknown", |it| it.as_str()).to_owned(),
        view.revision
            .as_deref()
            .map(revision::short)
            .unwrap_or_default(),
        view.progress.unwrap_or_default(),
        pods.map(|(ready, size)| format!("{ready}/{size}"))
            .unwrap_or_default(),
        waits.unwrap_or_default(),
        until.map(|at| zone.wall(at)).unwrap_or_default(),
        age_of(&object.metadata, now),
        said.or(view.message).unwrap_or_default(),
    ];
    row(Key::of(&object.metadata), cells, None, object)
}

/// Until when an approval counts. None: it is a rejection, or nobody asks for it.
pub(super) fn counts_until(approval: &Approval, gatekeepers: &[Gatekeeper]) -> Option<Timestamp> {
    if approval.spec.decision == Vote::Reject {
        return None;
    }
    let key = Key::of(&approval.metadata);
    let named = &approval.spec.gatekeeper_ref.as_ref()?.name;
    let asks = |keeper: &&Gatekeeper| {
        let other = Key::of(&keeper.metadata);
        (&other.namespace, &other.name) == (&key.namespace, named)
    };
    let rule = gatekeepers.iter().find(asks)?.spec.approval.as_ref()?;
    let rule = Approvals::read(rule, "spec.approval").ok()?;
    Some(rule.counts_until(approval))
}

pub(super) fn approval(
    approval: &Approval,
    until: Option<Timestamp>,
    now: Timestamp,
    zone: &Zone,
) -> Result<Row> {
    let spec = &approval.spec;
    let promotion = spec.pipeline_ref.as_ref();
    let promotion = promotion.map(|it| format!("{}:{}", it.name, it.environment));
    let state = match (spec.decision, until) {
        (Vote::Reject, _) => "Rejects",
        (Vote::Approve, None) if promotion.is_some() => "Approves",
        (Vote::Approve, Some(until)) if until > now => "Approves",
        (Vote::Approve, Some(_)) => "Expired",
        (Vote::Approve, None) => "Unasked",
    };
    let ahead = until.filter(|until| *until > now);
    let cells = vec![
        state.to_owned(),
        spec.gatekeeper_ref
            .as_ref()
            .map(|it| it.name.clone())
            .or(promotion)
            .unwrap_or_default(),
        revision::short(&spec.revision),
        spec.by.clone(),
        ahead.map(|at| zone.wall(at)).unwrap_or_default(),
        age_of(&approval.metadata, now),
        spec.reason.clone().unwrap_or_default(),
    ];
    row(Key::of(&approval.metadata), cells, None, approval)
}

pub(super) fn policy(
    policy: &GatePolicy,
    decision: &sluice_crds::Decision,
    next: Option<Timestamp>,
    now: Timestamp,
    zone: &Zone,
) -> Result<Row> {
    let state = match decision.allowed {
        true => State::Open,
        false => State::Closed,
    };
    let gates: Vec<String> = cluster::gates_of(policy)
        .iter()
        .map(Key::to_string)
        .collect();
    let all_or = |texts: Vec<String>| match texts.is_empty() {
        true => "all".to_owned(),
        false => texts.join(","),
    };
    let cells = vec![
        state.to_string(),
        gates.join(","),
        all_or(policy.spec.kinds.clone()),
        all_or(selected(&policy.spec.namespace_selector)),
        next.map(|at| zone.wall(at)).unwrap_or_default(),
        age_of(&policy.metadata, now),
        decision.message.clone(),
    ];
    let key = Key {
        namespace: String::new(),
        ..Key::of(&policy.metadata)
    };
    row(key, cells, Some(state), policy)
}

/// What is asked of the labels of namespaces, as kubectl writes it.
fn selected(selector: &NamespaceSelector) -> Vec<String> {
    let labels = selector.match_labels.iter();
    let labels = labels.map(|(key, value)| format!("{key}={value}"));
    let expressions = selector.match_expressions.iter().map(|it| {
        let LabelRequirement {
            key,
            operator,
            values,
        } = it;
        match operator {
            LabelOperator::In => format!("{key} in ({})", values.join(",")),
            LabelOperator::NotIn => format!("{key} notin ({})", values.join(",")),
            LabelOperator::Exists => key.clone(),
            LabelOperator::DoesNotExist => format!("!{key}"),
        }
    });
    labels.chain(expressions).collect()
}
