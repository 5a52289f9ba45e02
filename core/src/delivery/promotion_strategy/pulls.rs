//! Step 3: the pull request of each environment, which is open as long as something is proposed.
//!
//! One PullRequest stands for one pull request of the forge. Its name is in the status before it is created.
//! A pull request that a person has closed is not opened again before something else is proposed.

use std::cmp::Reverse;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use sluice_crds::pipeline::MergeGate;
use sluice_crds::promotion_strategy::PullRequestRecord;
use sluice_crds::pull_request::{Change, PullRequestState, Tree};
use sluice_crds::{PullRequest, PullRequestStatus};

use super::evidence::Sight;
use super::reverting::Current;
use super::tips::{Asker, Env, Tip};
use super::{Access, Act, Given, child, merges, words};
use crate::delivery::pull_request::{Word, is_throttled};

/// How many finished ones of an environment are kept.
const MOST_FINISHED: usize = 5;

/// How the pull request of an environment stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// There is none, and none is needed.
    None,
    /// It is being opened.
    Coming,
    /// It cannot be opened or looked at: why, in one word and in a sentence.
    Failing(String, String),
    /// The forge wants to be asked later, or only for merges: why, and until when.
    Throttled(String, Option<Time>),
    /// It is open, and the forge was not seen to have what is proposed as its head.
    Behind,
    /// It is open, with what is proposed as its head.
    Open,
    /// A person has closed it with this head.
    ClosedByPerson,
    /// It is merged, and the branch was not seen to have that.
    Merged,
}

/// What becomes of the pull request of an environment.
pub(super) struct Pull<'g> {
    pub(super) standing: Standing,
    pub(super) record: Option<PullRequestRecord>,
    pub(super) object: Option<&'g Arc<PullRequest>>,
    pub(super) acts: Vec<Act>,
}

/// The pull request of an environment: that of the revert which is under way, if there is one.
pub(super) fn of<'g>(
    given: &'g Given,
    asker: &Asker<'_>,
    env: &Env<'_>,
    own: &[&'g Arc<PullRequest>],
    reverting: Option<&Current<'_>>,
) -> Pull<'g> {
    let own = newest_first(own, env.branch());
    let highest = own.first().map_or(0, |it| number(it));
    let last = env.record.and_then(|record| record.pull_request.as_ref());
    let highest = last.map_or(highest, |last| last.n.max(highest));
    let mut pull = match reverting {
        Some(current) => revert(given, env, current, &own, highest),
        None => {
            let named = |name: &str| {
                let mut own = own.iter();
                own.find(|it| it.metadata.name.as_deref() == Some(name))
                    .copied()
            };
            // That of a revert which is over is another one's.
            let branch = given.object.spec.proposed_branch(env.spec);
            let is_ours =
                |it: &PullRequest| it.spec.change.is_none() && it.spec.source_branch == branch;
            let known = last.filter(|last| {
                named(&last.name).is_none_or(|it| is_ours(it)) && !is_of_revert(env, last)
            });
            let newest = || own.iter().find(|it| is_ours(it)).map(|it| first_record(it));
            let record = known.cloned().or_else(newest);
            let object = record.as_ref().and_then(|record| named(&record.name));
            match wanted(given, env) {
                Some(tip) => open((given, asker), env, tip, (record, object), highest),
                None => unwanted(env, record, object),
            }
        }
    };
    pull.record = pull.record.map(|record| seen(record, pull.object));
    let branch = given.object.spec.proposed_branch(env.spec);
    pull.acts.extend(expired(&own, pull.object, &branch));
    pull
}

/// Those of an environment.
pub(super) fn newest_first<'g>(
    own: &[&'g Arc<PullRequest>],
    branch: &str,
) -> Vec<&'g Arc<PullRequest>> {
    let mut own: Vec<_> = own.to_vec();
    own.retain(|it| it.spec.about.environment == branch);
    own.sort_by_key(|it| Reverse(number(it)));
    own
}

/// Whether the status says that a revert has it.
fn is_of_revert(env: &Env<'_>, record: &PullRequestRecord) -> bool {
    let reverts = env.record.map_or(&[][..], |it| &it.reverts);
    reverts
        .iter()
        .any(|it| it.pull_request.as_ref() == Some(&record.name))
}

/// The pull request of a revert: from a branch that nobody else has, with one commit.
fn revert<'g>(
    given: &Given,
    env: &Env<'_>,
    current: &Current<'_>,
    own: &[&'g Arc<PullRequest>],
    highest: i64,
) -> Pull<'g> {
    let branch = format!("{}{}", child::REVERTS, current.branch());
    let object = own
        .iter()
        .find(|it| it.spec.source_branch == branch)
        .copied();
    let Some(object) = object else {
        let reverts = env.record.map_or(&[][..], |it| &it.reverts);
        let known = reverts.iter().find(|it| it.name == current.name());
        let known = known.and_then(|it| it.pull_request.as_ref());
        let last = env.record.and_then(|record| record.pull_request.as_ref());
        let n = match last.filter(|last| known == Some(&last.name)) {
            // It was named, and perhaps not created.
            Some(last) => last.n,
            None => highest.saturating_add(1),
        };
        return create_revert(given, env, current, n);
    };
    let status = object.status.clone().unwrap_or_default();
    let is_ours = status.commit_sha.is_some() && status.head_sha == status.commit_sha;
    let (standing, acts) = match status.state.unwrap_or(PullRequestState::Pending) {
        PullRequestState::Pending => (failing(object).unwrap_or(Standing::Coming), Vec::new()),
        PullRequestState::Open if is_ours => (Standing::Open, Vec::new()),
        PullRequestState::Open => (failing(object).unwrap_or(Standing::Behind), Vec::new()),
        PullRequestState::Merged | PullRequestState::AlreadyInBase => {
            (Standing::Merged, vec![Act::List])
        }
        PullRequestState::Closed | PullRequestState::Missing => {
            (Standing::ClosedByPerson, Vec::new())
        }
    };
    Pull {
        standing,
        record: Some(first_record(object)),
        object: Some(object),
        acts,
    }
}

fn create_revert<'g>(given: &Given, env: &Env<'_>, current: &Current<'_>, n: i64) -> Pull<'g> {
    let spec = &current.object.spec;
    let (title, description) = words::of_revert(env.branch(), spec);
    let tree = current.change(env);
    let object = child::make_revert(
        &given.object,
        env.spec,
        (n, Some(&spec.dry_sha)),
        (&title, &description),
        (&current.branch(), tree),
    );
    created(object, n)
}

/// What the pull request is to merge, if there has to be one.
fn wanted<'e>(given: &Given, env: &'e Env<'_>) -> Option<&'e Tip> {
    let is_free = given.surroundings.get(env.place)?.owned_by.is_none();
    let may = given.access == Access::Ready && !given.object.spec.suspend && is_free;
    let proposed = env.proposed.as_ref()?;
    (may && env.proposes == Sight::Known(true)).then_some(proposed)
}

fn open<'g>(
    (given, asker): (&Given, &Asker<'_>),
    env: &Env<'_>,
    tip: &Tip,
    (record, object): (Option<PullRequestRecord>, Option<&'g Arc<PullRequest>>),
    highest: i64,
) -> Pull<'g> {
    let next = |record: &Option<PullRequestRecord>| {
        let last = record.as_ref().map_or(0, |record| record.n).max(highest);
        create(given, env, tip, last.saturating_add(1))
    };
    let Some(object) = object else {
        return match &record {
            // It was named, and perhaps not created.
            Some(named) if !named.state.is_some_and(PullRequestState::is_final) => {
                create(given, env, tip, named.n)
            }
            Some(_) | None => next(&record),
        };
    };
    let status = object.status.clone().unwrap_or_default();
    let is_head = status.head_sha.as_ref() == Some(&tip.sha);
    let state = status.state.unwrap_or(PullRequestState::Pending);
    let (standing, acts) = match state {
        PullRequestState::Pending | PullRequestState::Open if object.spec.close.is_some() => {
            // It is being closed: the next one follows when that is done.
            (Standing::Coming, Vec::new())
        }
        PullRequestState::Pending => (failing(object).unwrap_or(Standing::Coming), Vec::new()),
        PullRequestState::Open if is_head => (Standing::Open, Vec::new()),
        PullRequestState::Open => {
            // Either of both may be the older one.
            let name = object.metadata.name.clone().unwrap_or_default();
            let standing = failing(object).unwrap_or(Standing::Behind);
            (standing, vec![Act::LookAt(name), Act::List])
        }
        PullRequestState::Merged if is_head && merges::is_awaited(asker, env, &status) => {
            (Standing::Merged, vec![Act::List])
        }
        PullRequestState::Closed if is_head && object.spec.close.is_none() => {
            (Standing::ClosedByPerson, Vec::new())
        }
        PullRequestState::Merged
        | PullRequestState::Closed
        | PullRequestState::AlreadyInBase
        | PullRequestState::Missing => return next(&record),
    };
    let rewritten = rewritten(given, env, tip, object).filter(|_| !state.is_final());
    Pull {
        standing,
        record,
        object: Some(object),
        acts: acts.into_iter().chain(rewritten).collect(),
    }
}

/// Nothing is proposed, or nothing may be opened. One that is open is closed where nothing is proposed.
fn unwanted<'g>(
    env: &Env<'_>,
    record: Option<PullRequestRecord>,
    object: Option<&'g Arc<PullRequest>>,
) -> Pull<'g> {
    let state = object.and_then(|it| it.status.as_ref()?.state);
    let is_over = state.is_some_and(PullRequestState::is_final);
    // A forge closes the pull request of a branch that is deleted. That is no word against what is pushed next.
    let is_dropped = state == Some(PullRequestState::Closed) && env.proposed.is_none();
    let left = object.filter(|it| (!is_over || is_dropped) && it.spec.close.is_none());
    let close = left
        .filter(|_| env.proposes == Sight::Known(false))
        .map(|object| {
            let reason = format!(
                "{} has what was proposed, or nothing is proposed for it any more",
                env.branch()
            );
            closed(object, reason)
        });
    Pull {
        standing: Standing::None,
        record,
        object,
        acts: close.into_iter().collect(),
    }
}

fn create<'g>(given: &Given, env: &Env<'_>, tip: &Tip, n: i64) -> Pull<'g> {
    let (title, description) = texts(given, env, tip);
    let dry = tip.dry.known();
    let object = child::make(&given.object, env.spec, n, &title, &description, dry);
    created(object, n)
}

fn created<'g>(object: PullRequest, n: i64) -> Pull<'g> {
    let record = PullRequestRecord {
        name: object.metadata.name.clone().unwrap_or_default(),
        n,
        number: None,
        url: None,
        state: None,
    };
    Pull {
        standing: Standing::Coming,
        record: Some(record),
        object: None,
        acts: vec![Act::Create(Box::new(object))],
    }
}

fn texts(given: &Given, env: &Env<'_>, tip: &Tip) -> (String, String) {
    let about = words::About {
        object: &given.object,
        branch: env.branch(),
        tip,
        replaces: env.active.as_ref(),
    };
    (words::title(&about), words::description(&about))
}

/// Title and text, where they have to be others. What is not known yet changes nothing.
fn rewritten(given: &Given, env: &Env<'_>, tip: &Tip, object: &Arc<PullRequest>) -> Option<Act> {
    tip.dry.known()?;
    let (title, description) = texts(given, env, tip);
    let is_same = (&object.spec.title, &object.spec.description) == (&title, &description);
    (!is_same).then(|| Act::Change {
        before: Arc::clone(object),
        title,
        description,
        close: object.spec.close.clone(),
    })
}

/// What is done to one that is not wanted any more.
pub(super) fn closed(object: &Arc<PullRequest>, reason: String) -> Act {
    Act::Change {
        before: Arc::clone(object),
        title: object.spec.title.clone(),
        description: object.spec.description.clone(),
        close: Some(reason),
    }
}

fn failing(object: &PullRequest) -> Option<Standing> {
    let status = object.status.as_ref()?;
    if let Some((why, until)) = throttled(status) {
        return Some(Standing::Throttled(why.to_owned(), until));
    }
    status.attempts?;
    let word = status
        .outcome
        .clone()
        .unwrap_or_else(|| "Failed".to_owned());
    Some(Standing::Failing(
        word,
        status.message.clone().unwrap_or_default(),
    ))
}

/// Why the forge wants to be asked later, or only for merges, and until when.
pub(super) fn throttled(status: &PullRequestStatus) -> Option<(&str, Option<Time>)> {
    let is_limited =
        status.attempts.is_some() && status.outcome.as_deref() == Some(Word::RateLimited.as_str());
    let is_throttled = is_limited || is_throttled(status);
    let why = status.message.as_deref().unwrap_or_default();
    is_throttled.then(|| (why, status.next_attempt_at.clone()))
}

fn first_record(object: &PullRequest) -> PullRequestRecord {
    PullRequestRecord {
        name: object.metadata.name.clone().unwrap_or_default(),
        n: number(object),
        number: None,
        url: None,
        state: None,
    }
}

/// A record with what is seen of its pull request.
fn seen(record: PullRequestRecord, object: Option<&Arc<PullRequest>>) -> PullRequestRecord {
    match object.and_then(|object| object.status.as_ref()) {
        Some(status) => PullRequestRecord {
            number: status.id,
            url: status.url.clone(),
            state: status.state,
            ..record
        },
        None => record,
    }
}

fn number(object: &PullRequest) -> i64 {
    object.spec.about.run.unwrap_or_default()
}

/// Those of an environment that are not needed any more, the newest first. The forge keeps what it has.
fn expired(
    own: &[&Arc<PullRequest>],
    current: Option<&Arc<PullRequest>>,
    branch: &str,
) -> Vec<Act> {
    let is_final = |it: &PullRequest| {
        it.status
            .as_ref()
            .and_then(|it| it.state)
            .is_some_and(PullRequestState::is_final)
    };
    let is_current =
        |it: &Arc<PullRequest>| current.is_some_and(|current| Arc::ptr_eq(current, it));
    let others = own.iter().filter(|it| !is_current(it));
    let (finished, left): (Vec<_>, Vec<_>) = others.partition(|it| is_final(it));
    let finished = finished.into_iter().skip(MOST_FINISHED);
    let deleted = |it: &&Arc<PullRequest>| Act::Delete(Arc::clone(it));
    let left = left.into_iter().filter_map(|it: &&Arc<PullRequest>| {
        let spec = &it.spec;
        let is_followed = spec.change.is_none() && spec.source_branch == branch;
        let says_success = it.status.as_ref().and_then(|status| status.commit_status);
        match (is_followed, &spec.close) {
            // First nobody may be told any more that it can be merged.
            (true, _) if says_success == Some(MergeGate::Success) => None,
            (true, None) => Some(deleted(it)),
            // It is being closed.
            (true, Some(_)) => None,
            // Nobody else has its branch, or what is proposed is somewhere else now.
            (false, None) => Some(closed(
                it,
                "it is not what is to be merged any more".to_owned(),
            )),
            (false, Some(_)) => None,
        }
    });
    finished.map(deleted).chain(left).collect()
}

/// The reverts that were merged and are in what an environment has, whether or not their RevertCommits are there.
pub(super) fn reverts<'g>(
    asker: &Asker<'_>,
    env: &Env<'_>,
    own: &[&'g Arc<PullRequest>],
) -> impl Iterator<Item = &'g Tree> {
    let of_env = own
        .iter()
        .filter(|it| it.spec.about.environment == env.branch());
    of_env.filter_map(|it| {
        let Some(Change::Tree(tree)) = &it.spec.change else {
            return None;
        };
        merges::has(asker, env.active.as_ref()?, it.status.as_ref()?).then_some(tree)
    })
}

/// What becomes of those whose environment the spec does not have any more: they are closed, and then
/// deleted.
pub(super) fn swept(given: &Given, own: &[&Arc<PullRequest>]) -> Vec<Act> {
    let spec = &given.object.spec;
    let is_there = |branch: &str| spec.environments.iter().any(|it| it.branch == branch);
    let left = own
        .iter()
        .filter(|it| !is_there(&it.spec.about.environment));
    left.filter_map(|object| {
        let state = object.status.as_ref().and_then(|status| status.state);
        match (
            state.is_some_and(PullRequestState::is_final),
            &object.spec.close,
        ) {
            (true, _) => Some(Act::Delete(Arc::clone(object))),
            (false, Some(_)) => None,
            (false, None) => {
                let branch = &object.spec.about.environment;
                Some(closed(
                    object,
                    format!("{branch} is no environment of this strategy any more"),
                ))
            }
        }
    })
    .collect()
}
