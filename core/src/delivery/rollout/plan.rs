//! What the spec of a Rollout says, read once.
//!
//! What comes in: a Rollout as it was written, also one that came past admission. What goes out: a [`Plan`],
//! whose types cannot say anything that makes no sense, or every mistake with its field and a remedy. What
//! only the cluster knows is not found here: whether the objects are there, and how many pods they have.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use sluice_crds::gatekeeper::Range;
use sluice_crds::rollout::{HookType, Method, OnFailure};
use sluice_crds::{GateSet, Rollout, RolloutSpec};

use super::size::{Amount, Sizes, Span};
use crate::gatekeeper::gates;
use crate::text::names::{LABEL_LENGTH, NAME_LENGTH, subdomain};
use crate::text::refusal::{Refusal, Refusals};
use crate::time::duration;

mod batches;
mod hooks;
mod members;
#[cfg(test)]
mod tests;

pub use members::{AppKind, InPlaceKind, Members};

/// The shortest time that a rollout may go without progress.
const SHORTEST_DEADLINE: SignedDuration = SignedDuration::from_secs(30);
/// The longest.
const LONGEST_DEADLINE: SignedDuration = SignedDuration::from_hours(24);
/// The most characters of a revision.
const LONGEST_REVISION: usize = 256;

/// What a Rollout says.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What is rolled out in place of what.
    pub members: Members,
    /// The revision that the spec names.
    pub revision: Option<String>,
    /// The gates of every batch.
    pub gates: Option<GateSet>,
    /// In whose name workloads are changed.
    pub account: String,
    /// How long it may go without progress.
    pub deadline: SignedDuration,
    /// What is done when it fails.
    pub on_failure: OnFailure,
    /// How many pods there are to be at the end. None: as many as before.
    pub target_size: Option<u32>,
    /// The sizes of the batches.
    pub sizes: Sizes,
    /// The last batch that may go out. None: all may.
    pub partition: Option<usize>,
    /// Whether the old version comes back when the Rollout is deleted.
    pub revert_on_delete: bool,
    /// Whether nothing new may begin.
    pub paused: bool,
    /// The hooks of the rollout, and of every batch.
    pub hooks: Vec<Hook>,
    /// The metrics of every batch.
    pub metrics: Vec<Metric>,
    /// What the batches have of their own. Empty where they are of equal size.
    batches: Vec<Batch>,
}

/// What a batch has of its own in addition to its size.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// How many of the pods that are to be available need not be.
    pub max_unavailable: Amount,
    /// Its hooks: before it and after it.
    pub hooks: Vec<Hook>,
    /// Its metrics.
    pub metrics: Vec<Metric>,
    /// Its gates, in addition to those of every batch.
    pub gates: Option<GateSet>,
}

/// A batch that has nothing of its own.
const PLAIN: &Batch = &Batch {
    max_unavailable: Amount::Pods(0),
    hooks: Vec::new(),
    metrics: Vec::new(),
    gates: None,
};

/// A call whose answer may stop the rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// When it is called.
    pub type_: HookType,
    /// What it is called in messages.
    pub name: String,
    /// The address: http or https, without a user name.
    pub url: String,
    /// The method.
    pub method: Method,
    /// The answers that let the rollout go on.
    pub expected: Expected,
    /// What else is sent.
    pub metadata: Vec<(String, String)>,
    /// How long one answer may take.
    pub timeout: SignedDuration,
    /// The Secret whose token is sent. Only where the address is https.
    pub secret: Option<String>,
}

/// The answers that let a rollout go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// 200 to 204.
    Success,
    /// One of these.
    OneOf(BTreeSet<u16>),
}

impl Plan {
    /// The metrics of a batch: those of every batch, and its own.
    pub(super) fn metrics_of(&self, batch: usize) -> impl Iterator<Item = &Metric> {
        self.metrics.iter().chain(&self.batch(batch).metrics)
    }
}

impl Expected {
    /// One of them.
    pub fn first(&self) -> u16 {
        match self {
            Expected::Success => 200,
            Expected::OneOf(all) => all.first().copied().unwrap_or(200),
        }
    }

    /// Whether the HTTP status is one of them.
    pub fn has(&self, status: u16) -> bool {
        match self {
            Expected::Success => (200..=204).contains(&status),
            Expected::OneOf(all) => all.contains(&status),
        }
    }
}

/// A value that has to be within a range.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// What it is called in messages.
    pub name: String,
    /// The Gatekeeper that measures it.
    pub gatekeeper: String,
    /// For how long. None: one measurement.
    pub interval: Option<SignedDuration>,
    /// The range. None: that of the Gatekeeper.
    pub range: Option<Range>,
}

impl Plan {
    /// What batch `index` has of its own.
    pub fn batch(&self, index: usize) -> &Batch {
        self.batches.get(index).unwrap_or(PLAIN)
    }

    /// The hooks of this type, those of every batch before those of `batch`.
    pub fn hooks_of(&self, type_: HookType, batch: usize) -> impl Iterator<Item = &Hook> {
        let own = match type_ {
            HookType::PreBatchRollout | HookType::PostBatchRollout => self.batch(batch),
            HookType::InitializeRollout | HookType::FinalizeRollout => PLAIN,
        };
        let all = self.hooks.iter().chain(&own.hooks);
        all.filter(move |hook| hook.type_ == type_)
    }

    /// Whether batch `index` may go out as far as the plan itself says.
    pub fn lets_out(&self, index: usize) -> bool {
        self.partition.is_none_or(|last| index <= last)
    }
}

/// Everything that is wrong with a Rollout, whether or not admission would have refused it.
///
/// # Errors
/// The mistakes.
pub fn check(object: &Rollout) -> Result<Plan, Refusals> {
    let mut mistakes = Vec::new();
    let name = object.metadata.name.as_deref().unwrap_or_default();
    subdomain("metadata.name", name, LABEL_LENGTH, &mut mistakes);
    match read(&object.spec, &mut mistakes) {
        Some(plan) => Refusals::unless_empty(mistakes, plan),
        // Nothing is refused without saying why.
        None => Err(Refusals::unless_empty(mistakes, ())
            .err()
            .unwrap_or_else(|| {
                let remedy = "see the reference of this kind";
                Refusal::new("spec", "it cannot be read", remedy).into()
            })),
    }
}

/// The first mistake about what is rolled out in place of what.
pub(super) fn refuse_members(spec: &RolloutSpec) -> Option<Refusal> {
    let mut mistakes = Vec::new();
    members::read(spec, &mut mistakes);
    mistakes.into_iter().next()
}

/// The plan, if what it is made of can be read. Whatever is wrong is added to `mistakes`.
fn read(spec: &RolloutSpec, mistakes: &mut Vec<Refusal>) -> Option<Plan> {
    let RolloutSpec {
        target_ref: _,
        source_ref: _,
        component: _,
        revision,
        gates,
        service_account_name,
        progress_deadline,
        on_failure,
        rearm: _,
        rollout_plan,
    } = spec;
    let members = members::read(spec, mistakes);
    self::revision(revision.as_deref(), mistakes);
    set("spec.gates", gates.as_ref(), mistakes);
    let field = "spec.serviceAccountName";
    subdomain(field, service_account_name, NAME_LENGTH, mistakes);
    let deadline = within(
        "spec.progressDeadline",
        progress_deadline,
        (
            SHORTEST_DEADLINE,
            LONGEST_DEADLINE,
            "must be between 30s and 24h",
        ),
        mistakes,
    );
    let target_size = target_size(rollout_plan.target_size, mistakes);
    let read = batches::read(rollout_plan, mistakes);
    let hooks = hooks::of_plan(rollout_plan, mistakes);
    let metrics = hooks::metrics("spec.rolloutPlan", &rollout_plan.canary_metric, mistakes);
    let (members, read) = (members?, read?);
    if let (Members::Pair { .. }, Some(size)) = (&members, target_size) {
        fit(size, &read.sizes, mistakes);
    }
    Some(Plan {
        members,
        revision: revision.clone(),
        gates: gates.clone(),
        account: service_account_name.clone(),
        deadline: deadline?,
        on_failure: *on_failure,
        target_size,
        sizes: read.sizes,
        partition: read.partition,
        revert_on_delete: rollout_plan.revert_on_delete,
        paused: rollout_plan.paused,
        hooks: hooks?,
        metrics: metrics?,
        batches: read.batches,
    })
}

fn revision(revision: Option<&str>, mistakes: &mut Vec<Refusal>) {
    let Some(revision) = revision else {
        return;
    };
    let problem = if revision.trim().is_empty() || revision.contains(char::is_control) {
        "it is no line of text"
    } else if revision.chars().count() > LONGEST_REVISION {
        "it has more than 256 characters"
    } else {
        return;
    };
    let remedy = "write a version such as 6.8.0, or leave it out";
    mistakes.push(Refusal::new("spec.revision", problem, remedy));
}

fn target_size(size: Option<i32>, mistakes: &mut Vec<Refusal>) -> Option<u32> {
    let read = size.map(u32::try_from);
    if let Some(Err(_)) = read {
        mistakes.push(Refusal::new(
            "spec.rolloutPlan.targetSize",
            "no number of pods is below zero",
            "write 0 or more, or leave it out",
        ));
    }
    read.and_then(Result::ok)
}

/// Where the plan says itself how many pods there are to be, it is known at once whether the batches fit.
fn fit(size: u32, sizes: &Sizes, mistakes: &mut Vec<Refusal>) {
    match size.try_into() {
        Ok(to) => mistakes.extend(sizes.fit(Span::Update { to }).err()),
        Err(_) => mistakes.push(Refusal::new(
            "spec.rolloutPlan.targetSize",
            "a new version is rolled out to no pods",
            "write 1 or more; to scale a Deployment down to 0, name it as the target, without a source",
        )),
    }
}

/// A set of gates that may be absent.
fn set(field: &str, set: Option<&GateSet>, mistakes: &mut Vec<Refusal>) {
    let found = set.map(|set| gates::check(set, field));
    let found = found.and_then(Result::err).map(Refusals::into_vec);
    mistakes.extend(found.into_iter().flatten());
}

/// A length of time between two others, in words: `must be between 30s and 24h`.
fn within(
    field: &str,
    text: &sluice_crds::Duration,
    (least, most, words): (SignedDuration, SignedDuration, &str),
    mistakes: &mut Vec<Refusal>,
) -> Option<SignedDuration> {
    let problem = match duration::parse(text) {
        Ok(length) if (least..=most).contains(&length) => return Some(length),
        Ok(_) => format!("`{text}` {words}"),
        Err(problem) => problem,
    };
    mistakes.push(Refusal::new(field, problem, duration::REMEDY));
    None
}

/// The names of a list: each is there once, and fits into a line.
fn names<'a>(
    field: &str,
    longest: usize,
    names: impl Iterator<Item = &'a str>,
    mistakes: &mut Vec<Refusal>,
) {
    let mut known = BTreeSet::new();
    for (place, name) in names.enumerate() {
        let field = format!("{field}[{place}].name");
        let is_line = !name.trim().is_empty() && !name.contains(char::is_control);
        if !is_line || name.chars().count() > longest {
            let remedy = format!("write one line of at most {longest} characters");
            mistakes.push(Refusal::new(field, "it is no name", remedy));
        } else if !known.insert(name) {
            let problem = format!("`{name}` is listed twice");
            mistakes.push(Refusal::new(field, problem, "give each one its own name"));
        }
    }
}
