//! What people read: why something waits, and until when.

use jiff::Timestamp;
use sluice_crds::pipeline::{
    ClusterKind, ClusterReference, EnvironmentState, EnvironmentStatus, PromotionRecord,
    TargetStatus, WaitingApproval,
};

use super::target::{Runs, Seen, Verdict};
use crate::text::words::{clean, instant_utc};

/// The most characters of what others say.
pub(super) const LONGEST: usize = 500;

/// A target, as messages name it: its namespace, with its cluster where that is another.
pub fn target(status: &TargetStatus) -> String {
    match &status.cluster_ref {
        None => status.namespace.clone(),
        Some(cluster) => {
            let own = cluster.namespace.as_ref();
            let cluster = own.map_or_else(
                || cluster.name.clone(),
                |namespace| format!("{namespace}/{}", cluster.name),
            );
            format!("{cluster}/{}", status.namespace)
        }
    }
}

/// Why it is not known what a target runs.
pub(super) fn unknown(seen: &Seen) -> String {
    let why = seen.trouble.as_ref().map(|it| it.message.as_str());
    let why = clean(why.unwrap_or_default(), LONGEST);
    format!("{}: {why}", target(&seen.status))
}

/// Why a target does not run a revision healthily.
pub(super) fn lacking(seen: &Seen, runs: &Runs) -> String {
    let target = target(&seen.status);
    let revision = runs.applied.as_ref().map_or("nothing", |it| it.as_str());
    match &runs.verdict {
        Verdict::Healthy => format!("{target} runs {revision}"),
        Verdict::AtWork(why) | Verdict::Failed(why) => {
            format!("{target} runs {revision}: {why}")
        }
    }
}

/// Why a promotion waits for a person.
pub(super) fn awaited(revision: &str, environment: &str, run: i64) -> String {
    format!(
        "{revision} waits for a person to approve it for {environment}: create an Approval with \
         pipelineRef.run {run}"
    )
}

pub(super) const UNVERIFIED: &str = "it is approved, and nobody verifies who approves; install the \
     admission policies of the chart, or run the controller with --trust-unverified-identity";

pub(super) fn rejected(revision: &str, by: &str) -> String {
    format!("{revision} is rejected by {by}; it waits until that rejection is deleted")
}

/// What is said of a record whose last try failed.
pub(super) fn failed(record: &PromotionRecord) -> String {
    let why = record.message.as_deref().unwrap_or("the last try failed");
    match &record.next_attempt_at {
        Some(at) => format!("{why}; it is tried again at {}", instant_utc(at.0)),
        None => format!("{why}; it is tried again"),
    }
}

/// What is said of a promotion that has had no effect.
pub(super) fn no_effect(
    record: &PromotionRecord,
    is_sent: bool,
    again: Option<Timestamp>,
) -> String {
    let revision = &record.revision;
    let since = instant_utc(record.at.0);
    let cause = match is_sent {
        true => {
            "nothing that listens to notifications has acted; check that an Alert of Flux selects \
             it, and what its Provider does"
        }
        false => {
            "look whether Flux applies what was promoted, and whether somebody has undone it; it is \
             not promoted again in this run"
        }
    };
    let again = again.map(|at| format!("; the notification is sent again at {}", instant_utc(at)));
    let again = again.unwrap_or_default();
    format!("{revision} was promoted at {since}, and no target runs it: {cause}{again}")
}

/// What is said of an environment.
pub(super) fn of(environment: &EnvironmentStatus, name: &str) -> String {
    let said = environment.message.clone();
    said.unwrap_or_else(|| of_state(environment.state, name))
}

/// A state in a sentence.
pub(super) fn of_state(state: EnvironmentState, name: &str) -> String {
    let said = match state {
        EnvironmentState::Passed => "runs the revision healthily",
        EnvironmentState::Waiting => "waits for the environments before it",
        EnvironmentState::Arriving => "begins to run the revision",
        EnvironmentState::NotReady => "does not run one revision healthily",
        EnvironmentState::Unknown => "is not known: what a target runs cannot be read",
        EnvironmentState::Unpromoted => "is promoted to by people: the spec says nothing of it",
        EnvironmentState::Unapproved => "waits for a person to approve the promotion",
        EnvironmentState::Rejected => "is not promoted to: a person has rejected it",
        EnvironmentState::GatesClosed => "waits for its gates",
        EnvironmentState::CyclicGates => "has gates that wait for itself",
        EnvironmentState::Closing => "waits until its earlier pull request is closed",
        EnvironmentState::Promoting => "is being promoted to",
        EnvironmentState::Failed => "could not be promoted to, which is tried again",
        EnvironmentState::PullRequestOpen => "waits until its pull request is merged",
        EnvironmentState::Promoted => "was promoted to, and has not begun to run the revision",
        EnvironmentState::NoEffect => "was promoted to, and nothing has come of it",
        EnvironmentState::Abandoned => "has a pull request that was closed without a merge",
        EnvironmentState::Suspended => "is suspended with its Pipeline",
    };
    format!("{name} {said}")
}

/// What waits for a person, with the record of its promotion. The same as before keeps since when it waits: the
/// same revision in the same run and by the same key, so that a request that was signed before another way was
/// written into the spec does not approve that.
pub(super) fn still(
    waits: WaitingApproval,
    record: Option<&PromotionRecord>,
    before: Option<&EnvironmentStatus>,
) -> WaitingApproval {
    let key_before = before
        .and_then(|it| it.promotion.as_ref())
        .map(|it| &it.key);
    let before = before.and_then(|before| before.waiting_approval.as_ref());
    let same = before.filter(|it| {
        (it.run, &it.revision) == (waits.run, &waits.revision)
            && key_before == record.map(|it| &it.key)
    });
    same.cloned().unwrap_or(waits)
}

/// What names a cluster, as messages have it.
pub(super) fn cluster(cluster: &ClusterReference) -> String {
    let kind = match cluster.kind {
        ClusterKind::Secret => "Secret",
        ClusterKind::Cluster => "Cluster",
        ClusterKind::GitopsCluster => "GitopsCluster",
    };
    match &cluster.namespace {
        Some(namespace) => format!("{kind} {namespace}/{}", cluster.name),
        None => format!("{kind} {}", cluster.name),
    }
}
