//! Asks a forge what was promoted before, as an errand, where the status of a pipeline is new or lost.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sluice_core::delivery::pipeline::{Errand, Outcome, Recall, Recalled};
use sluice_core::delivery::pull_request::Word;
use sluice_core::delivery::pull_request::trailers::Trailers;
use sluice_core::time::span::later;
use sluice_crds::pull_request::PullRequestState;
use sluice_forges::{Branch, Forge, Pull, PullState, Urgency};
use tokio::time::timeout;

use crate::act::forges::{Failure, Forges, Located};
use crate::act::reconcile::Context;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;

/// How long to wait before a forge that did not answer is asked again.
const RETRY: SignedDuration = SignedDuration::from_secs(30);
/// The longest that all questions together may take.
const LONGEST: Duration = Duration::from_secs(50);

/// Begins to ask, unless that has been begun. The answer wakes the pipeline. What was asked before about
/// the same environment is forgotten.
pub(super) fn begin(context: &Context, key: &ObjectKey, recall: Recall) {
    let work = Work::own(Kind::Pipeline, key.clone());
    let is_other = |known: &Errand| match (known, &recall.errand) {
        (Errand::Recall(known, _), Errand::Recall(environment, _)) => known != environment,
        _ => true,
    };
    context.errands.keep(&work, is_other);
    let (forges, clock) = (Arc::clone(&context.forges), Arc::clone(&context.clock));
    let (errand, namespace) = (recall.errand.clone(), key.namespace.to_string());
    let asks = context.shard.looks_at(Kind::PullRequest);
    let at = located(&namespace, &recall);
    let line = at.credential();
    let errands = &context.errands;
    errands.begin(&work, &errand, &line, move |_| async move {
        if !asks {
            // The tokens are with those who look at PullRequests. They close what is open there before they
            // open another one.
            return Outcome::Recalled(None);
        }
        let asked = timeout(
            LONGEST,
            ask(&forges, (&at, &namespace, clock.now()), &recall),
        )
        .await;
        let failed = match asked {
            Ok(Ok(found)) => return Outcome::Recalled(found),
            Ok(Err(failed)) => failed,
            Err(_) => Failure::new(Word::Unanswered, "there was no answer in time"),
        };
        let now = clock.now();
        let soonest = later(now, RETRY);
        Outcome::Failed {
            not_before: Some(failed.not_before(now).map_or(soonest, |at| at.max(soonest))),
            why: failed.why,
        }
    });
}

/// The newest pull request of the environment, if a commit of it is ours.
async fn ask(
    forges: &Forges,
    (at, by, now): (&Located, &str, Timestamp),
    recall: &Recall,
) -> Result<Option<Recalled>, Failure> {
    let forge = forges.open(at, (by, Urgency::Other), now).await?;
    let base = Branch::parse(&recall.strategy.base_branch);
    let base =
        base.map_err(|error| Failure::new(Word::InvalidSpec, format!("baseBranch: {error}")))?;
    let Some(pull) = forge.newest(&recall.branch_prefix, &base).await? else {
        return Ok(None);
    };
    let commits = forge.commits(pull.number).await?;
    let mut said = commits
        .iter()
        .filter_map(|commit| Trailers::read(&commit.message));
    // Our branches have our key as their last part.
    let Some(trailers) = said.find(|it| pull.head == format!("{}{}", recall.branch_prefix, it.key))
    else {
        return Ok(None);
    };
    let (Some(run), Some(revision)) = (trailers.run, trailers.revision) else {
        return Ok(None);
    };
    Ok(Some(Recalled {
        run,
        revision,
        key: trailers.key,
        state: state(&pull.state),
        merge: merge(&forge, &pull).await?,
        url: Some(pull.url),
    }))
}

fn located(namespace: &str, recall: &Recall) -> Located {
    let strategy = &recall.strategy;
    let secret = &strategy.secret_ref.name;
    Located::at(namespace, strategy.type_, &strategy.url, secret)
}

fn state(state: &PullState) -> PullRequestState {
    match state {
        PullState::Open { .. } => PullRequestState::Open,
        PullState::Merged { .. } => PullRequestState::Merged,
        PullState::Closed => PullRequestState::Closed,
    }
}

/// The commit that a merge has made, with its first parent.
async fn merge(forge: &Forge, pull: &Pull) -> Result<Option<(String, String)>, Failure> {
    let PullState::Merged {
        commit: Some(commit),
        ..
    } = &pull.state
    else {
        return Ok(None);
    };
    let read = forge.read_commit(commit).await?;
    let first = read.and_then(|read| read.parents.into_iter().next());
    Ok(first.map(|first| (commit.to_string(), first.to_string())))
}
