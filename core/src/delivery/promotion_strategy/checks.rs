//! Step 3: what was found out about a commit.
//!
//! A check passes by exactly one CommitStatus with its key for this very commit, by Kustomizations of Flux
//! that are ready with it, or by a status that the forge has of it. Anything else does not pass: nothing was
//! found out, several say something, or it has expired.

use jiff::{SignedDuration, Timestamp};
use sluice_crds::commit_status::{KEY_LABELS, Phase};
use sluice_crds::flux::FluxObject;
use sluice_crds::promotion_strategy::{
    CheckOf, CheckStatus, CommitStatusSelector, Environment, KustomizationReference,
};
use sluice_crds::{CommitStatus, PromotionStrategySpec};

use super::Given;
use super::evidence::{ForgeState, Sight};
use super::tips::Asker;
use crate::flux::observed::{Found, condition, is_observed, is_suspended};
use crate::text::words::{clean, instant_utc};
use crate::time::clock::{Now, Trust};
use crate::verdict::condition::listed;

/// After so long without any CommitStatus it is told which keys there are.
const LONG: SignedDuration = SignedDuration::from_mins(10);
/// The most characters of what others say.
const LONGEST: usize = 200;

/// A check with what it says of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) key: String,
    pub(super) phase: Phase,
    /// Why it does not pass, in one word.
    pub(super) reason: &'static str,
    pub(super) message: Option<String>,
    /// When time alone changes it.
    pub(super) next: Option<Timestamp>,
    /// When more is said of it.
    pub(super) wake: Option<Timestamp>,
}

impl Check {
    pub(super) fn passes(&self) -> bool {
        self.phase == Phase::Success
    }

    pub(super) fn status(&self, of: CheckOf) -> CheckStatus {
        CheckStatus {
            key: self.key.clone(),
            of,
            phase: self.phase,
            message: self.message.clone(),
        }
    }
}

/// All checks together: the worst of them. None: there are none.
pub(super) fn together(checks: &[Check]) -> Option<Phase> {
    let rank = |phase: &Phase| match phase {
        Phase::Failure => 0,
        Phase::Cancelled => 1,
        Phase::Pending => 2,
        Phase::Queued => 3,
        Phase::InProgress => 4,
        Phase::Success => 5,
    };
    checks.iter().map(|it| it.phase).min_by_key(rank)
}

/// The checks of an environment: its own, and those of all environments that it does not replace.
pub(super) fn selectors<'s>(
    spec: &'s PromotionStrategySpec,
    environment: &'s Environment,
    of: CheckOf,
) -> impl Iterator<Item = &'s CommitStatusSelector> {
    let (all, own) = match of {
        CheckOf::Active => (
            &spec.active_commit_statuses,
            &environment.active_commit_statuses,
        ),
        CheckOf::Proposed => (
            &spec.proposed_commit_statuses,
            &environment.proposed_commit_statuses,
        ),
    };
    let is_replaced = |it: &&CommitStatusSelector| own.iter().any(|own| own.key == it.key);
    let others = all.iter().filter(move |it| !is_replaced(it));
    others.chain(own)
}

/// A commit that checks are about: since when its branch has it, as far as that was seen.
#[derive(Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) sha: &'a str,
    pub(super) since: Option<Timestamp>,
    /// Another commit with the same files, whose CommitStatuses count, too.
    pub(super) same: Option<&'a str>,
    /// What the status says of its checks, where nothing is decided from it: forges are not asked again
    /// about what has passed.
    pub(super) recorded: &'a [CheckStatus],
}

/// What the checks of an environment say of a commit.
pub(super) fn of(
    given: &Given,
    asker: &Asker<'_>,
    environment: &Environment,
    of: CheckOf,
    about: About<'_>,
) -> Vec<Check> {
    let selectors = selectors(&given.object.spec, environment, of);
    selectors
        .map(|selector| match (&selector.flux, &selector.forge) {
            (Some(flux), _) => by_flux(given, &selector.key, &flux.kustomizations, about.sha),
            (None, Some(context)) => by_forge(asker, &selector.key, context, about),
            (None, None) => by_objects(given, &selector.key, about),
        })
        .collect()
}

/// The key of a CommitStatus. None: it has none, or labels that say different ones.
fn key_of(object: &CommitStatus) -> Option<&str> {
    let labels = object.metadata.labels.as_ref()?;
    let mut said = KEY_LABELS.iter().filter_map(|label| labels.get(*label));
    let first = said.next()?;
    said.all(|other| other == first).then_some(first)
}

fn by_objects(given: &Given, key: &str, about: About<'_>) -> Check {
    let of = |sha: &str| {
        let all = given.commit_statuses.iter();
        let found = all.filter(|it| it.spec.sha == sha && it.metadata.deletion_timestamp.is_none());
        found.collect::<Vec<_>>()
    };
    let with_key = |sha: &str| {
        let mut all = of(sha);
        all.retain(|it| key_of(it) == Some(key));
        all
    };
    let mut found = with_key(about.sha);
    if let (true, Some(same)) = (found.is_empty(), about.same) {
        found = with_key(same);
    }
    match found.as_slice() {
        [] => {
            let message = missing(given, key, about, &of(about.sha));
            let long = about.since.unwrap_or(given.now.at).checked_add(LONG).ok();
            Check {
                wake: long.filter(|long| *long > given.now.at),
                ..pending(key, "CheckMissing", message)
            }
        }
        [one] => by_object(key, one, given.now),
        [first, second, ..] => {
            let (first, second) = (name(first), name(second));
            let message = format!(
                "several CommitStatuses have the key {key} for {}, such as {first} and {second}; delete all \
                 but one",
                short(about.sha)
            );
            pending(key, "CheckDuplicate", message)
        }
    }
}

fn missing(
    given: &Given,
    key: &str,
    about: About<'_>,
    there: &[&std::sync::Arc<CommitStatus>],
) -> String {
    let none = format!(
        "no CommitStatus with the key {key} is there for {}",
        short(about.sha)
    );
    let is_long = about.since.and_then(|since| since.checked_add(LONG).ok());
    if is_long.is_none_or(|long| long > given.now.at) {
        return none;
    }
    let mut keys: Vec<String> = there
        .iter()
        .filter_map(|it| key_of(it))
        .map(str::to_owned)
        .collect();
    keys.sort();
    keys.dedup();
    match keys.is_empty() {
        true => format!("{none}, nor with any other; check what writes them"),
        false => format!("{none}; there are {}", listed(&keys, 5)),
    }
}

fn by_object(key: &str, object: &CommitStatus, now: Now) -> Check {
    let spec = &object.spec;
    let ends = spec.expires_at.as_ref().map(|end| end.0);
    if let (Some(_), Trust::Lost(_)) = (ends, now.trust) {
        let message = format!(
            "CommitStatus {} has an end, and the clock is not right",
            name(object)
        );
        return pending(key, "ClockLost", message);
    }
    if let Some(end) = ends.filter(|end| *end <= now.at) {
        let message = format!(
            "CommitStatus {} has expired at {}",
            name(object),
            instant_utc(end)
        );
        return pending(key, "CheckExpired", message);
    }
    let reason = match spec.phase {
        Phase::Failure | Phase::Cancelled => "CheckFailed",
        Phase::Pending | Phase::Queued | Phase::InProgress | Phase::Success => "CheckPending",
    };
    let said = spec.description.as_deref().map(|text| clean(text, LONGEST));
    Check {
        key: key.to_owned(),
        phase: spec.phase,
        reason,
        message: said.filter(|said| !said.is_empty()),
        next: ends,
        wake: None,
    }
}

/// Kustomizations on this cluster.
fn by_flux(given: &Given, key: &str, all: &[KustomizationReference], sha: &str) -> Check {
    let own = given
        .object
        .metadata
        .namespace
        .as_deref()
        .unwrap_or_default();
    let checks = all.iter().map(|reference| {
        let namespace = reference.namespace.as_deref().unwrap_or(own);
        let shown = format!("Kustomization {namespace}/{}", reference.name);
        let at = (namespace.to_owned(), reference.name.clone());
        let (phase, why) = match given.kustomizations.get(&at) {
            Some(Found::Here(object)) => kustomization(object, sha),
            Some(Found::Missing) | None => (Phase::Pending, "is not there".to_owned()),
            Some(Found::NotInstalled) => (
                Phase::Pending,
                "is of a kind that is not installed".to_owned(),
            ),
            Some(Found::Unreadable(why)) => (Phase::Pending, format!("cannot be read: {why}")),
        };
        Check {
            key: key.to_owned(),
            phase,
            reason: if phase == Phase::Failure {
                "CheckFailed"
            } else {
                "CheckPending"
            },
            message: Some(format!("{shown} {}", clean(&why, LONGEST))),
            next: None,
            wake: None,
        }
    });
    let checks: Vec<Check> = checks.collect();
    let worst = together(&checks);
    let found = checks.into_iter().find(|it| Some(it.phase) == worst);
    let found = found.map(|check| Check {
        message: check.message.filter(|_| check.phase != Phase::Success),
        ..check
    });
    found.unwrap_or_else(|| pending(key, "CheckMissing", "no Kustomization is named".to_owned()))
}

/// Whether a Kustomization is ready with a commit, and what is said of it.
fn kustomization(object: &FluxObject, sha: &str) -> (Phase, String) {
    let status = &object.status;
    // As Flux writes it: main@sha1:<commit>, main/<commit> or the commit alone.
    let is_it = |text: &String| text.rsplit([':', '/']).next() == Some(sha);
    let has = |revision: &Option<String>| revision.as_ref().is_some_and(is_it);
    let ready = condition(object, "Ready");
    let is_ready = ready.is_some_and(|ready| ready.status == "True");
    let has_applied =
        has(&status.last_applied_revision) || has(&status.last_applied_origin_revision);
    if is_suspended(object) {
        return (Phase::Pending, "is suspended".to_owned());
    }
    if !is_observed(object) {
        return (
            Phase::Pending,
            "was changed, and Flux has not looked at it yet".to_owned(),
        );
    }
    if is_ready && has_applied {
        return (Phase::Success, "is ready".to_owned());
    }
    match ready {
        Some(ready) if ready.status == "False" && has(&status.last_attempted_revision) => {
            (Phase::Failure, format!("is not ready: {}", ready.message))
        }
        Some(ready) if has_applied || has(&status.last_attempted_revision) => (
            Phase::Pending,
            format!("is not ready yet: {}", ready.message),
        ),
        Some(_) | None => {
            let applied = status.last_applied_revision.as_deref().unwrap_or("nothing");
            (
                Phase::Pending,
                format!("has applied {applied}, and not {} yet", short(sha)),
            )
        }
    }
}

/// A status or check of the forge.
fn by_forge(asker: &Asker<'_>, key: &str, context: &str, about: About<'_>) -> Check {
    let mut recorded = about.recorded.iter();
    let passed = recorded.find(|it| it.key == key && it.phase == Phase::Success);
    if let Some(passed) = passed {
        return Check {
            key: key.to_owned(),
            phase: passed.phase,
            reason: "CheckPending",
            message: passed.message.clone(),
            next: None,
            wake: None,
        };
    }
    let of = |sha: &str| {
        let all = asker.statuses(sha);
        all.map(|all| all.iter().find(|it| it.context == context).cloned())
    };
    let found = match (of(about.sha), about.same) {
        (Sight::Known(None), Some(same)) => of(same),
        (found, _) => found,
    };
    let found = match found {
        Sight::Known(found) => found,
        Sight::Absent | Sight::Pending => None,
        Sight::Failed(why) => {
            let message = format!(
                "the statuses of the forge cannot be read: {}",
                clean(&why, LONGEST)
            );
            return pending(key, "CheckPending", message);
        }
    };
    let Some(found) = found else {
        let message = format!(
            "the forge has no status `{context}` of {}",
            short(about.sha)
        );
        return pending(key, "CheckMissing", message);
    };
    let (phase, reason) = match found.state {
        ForgeState::Pending => (Phase::Pending, "CheckPending"),
        ForgeState::Success => (Phase::Success, "CheckPending"),
        ForgeState::Failure => (Phase::Failure, "CheckFailed"),
    };
    let said = clean(&found.description, LONGEST);
    Check {
        key: key.to_owned(),
        phase,
        reason,
        message: (!said.is_empty()).then_some(said),
        next: None,
        wake: None,
    }
}

fn pending(key: &str, reason: &'static str, message: String) -> Check {
    Check {
        key: key.to_owned(),
        phase: Phase::Pending,
        reason,
        message: Some(message),
        next: None,
        wake: None,
    }
}

fn name(object: &CommitStatus) -> String {
    let metadata = &object.metadata;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    format!(
        "{namespace}/{}",
        metadata.name.as_deref().unwrap_or_default()
    )
}

/// The first twelve digits of a commit.
pub(super) fn short(sha: &str) -> &str {
    sha.get(..12).unwrap_or(sha)
}
