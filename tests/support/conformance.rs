//! Whether a status says what [kstatus](https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus)
//! and Flux's conventions have it say: a book of rules, and a [`Watch`] that holds every version of
//! every object of a test to them. A test that has [`Judged`] fails if it breaks one.
//!
//! What comes in: objects as JSON, ours or those that we make for Flux. What goes out: every
//! violation. There are rules for each version by itself, rules for a version that follows another
//! one, and rules for an object that nobody has anything left to do about: while a write is under
//! way a status lags behind its spec, and must.
//!
//! Only what the controller wrote is judged. Tests write lies into statuses, to see them taken out.

mod judged;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::BTreeSet;

use serde_json::Value;

pub use judged::Judged;
pub use watch::Watch;

/// Conditions that are there only while they hold, because their absence is the normal thing.
const ABNORMAL: [&str; 5] = [
    "Reconciling",
    "Stalled",
    "Bypassed",
    "SelfGated",
    "PromotionPending",
];

/// Who writes status for us, by the beginning of the field manager's name.
const OURS: &str = "gate-controller";

/// The one field of a status that others write.
const THEIRS: &str = "f:report";

/// The conditions that objects of a kind may have. None: not one of ours.
fn known(kind: &str) -> Option<&'static [&'static str]> {
    match kind {
        "Gate" => Some(&["Ready", "Opened", "Reconciling", "Stalled"]),
        "Gatekeeper"
        | "GatePolicy"
        | "ExternalArtifact"
        | "PullRequest"
        | "GitRepositoryAccess"
        | "CommitStatus"
        | "RevertCommit" => Some(&["Ready", "Reconciling", "Stalled"]),
        "PromotionStrategy" => Some(&["Ready", "Blocked", "Bypassed", "Reconciling", "Stalled"]),
        "Rollout" => Some(&["Ready", "Blocked", "Reconciling", "Stalled"]),
        "Pipeline" => Some(&["Ready", "Blocked", "PromotionPending", "Stalled"]),
        "GatedSource" => Some(&[
            "Ready",
            "Blocked",
            "Recoverable",
            "Bypassed",
            "SelfGated",
            "Reconciling",
            "Stalled",
        ]),
        _ => None,
    }
}

/// A rule about a status, and what is wrong where it is broken.
type OfStatus = (&'static str, fn(&Status<'_>) -> Vec<String>);

/// The same, about two versions of one.
type OfChange = (&'static str, fn(&Change<'_>) -> Vec<String>);

/// What holds of each version by itself.
const OF_A_VERSION: [OfStatus; 9] = [
    (
        "a status has Ready, and says for which generation",
        has_ready,
    ),
    ("a condition is whole", are_whole),
    ("a condition is there once", are_there_once),
    ("a condition is one of its kind's", are_known),
    (
        "what is abnormal is there only while it holds",
        abnormal_only_while_it_holds,
    ),
    (
        "what is stalled is not under way",
        not_stalled_and_under_way,
    ),
    (
        "what is stalled or under way is not ready",
        not_ready_while_something_is_to_come,
    ),
    (
        "nothing is observed before it is there",
        nothing_from_the_future,
    ),
    (
        "ready is what the whole status is about",
        ready_as_the_status,
    ),
];

/// What holds of a version that follows another one.
const OF_A_CHANGE: [OfChange; 2] = [
    (
        "the last transition is another one only with the status",
        transitions_with_the_status,
    ),
    ("what was observed stays observed", observed_stays),
];

/// What holds of an object that nobody has anything left to do about.
const AT_REST: [OfStatus; 1] = [(
    "at rest the status is about the present generation",
    about_the_present,
)];

/// What is wrong with one version of an object.
#[must_use]
pub fn of_a_version(object: &Value) -> Vec<String> {
    judge(&OF_A_VERSION, object)
}

/// What is wrong with a version of an object that follows another one.
#[must_use]
pub fn of_a_change(before: &Value, after: &Value) -> Vec<String> {
    let Some((before, after)) = Status::of(before).zip(Status::of(after)) else {
        return Vec::new();
    };
    let change = Change { before, after };
    let broken = OF_A_CHANGE.iter();
    broken
        .flat_map(|(rule, broken)| told(rule, broken(&change)))
        .collect()
}

/// What is wrong with an object that nobody has anything left to do about.
#[must_use]
pub fn at_rest(object: &Value) -> Vec<String> {
    judge(&AT_REST, object)
}

fn judge(rules: &[OfStatus], object: &Value) -> Vec<String> {
    let Some(status) = Status::of(object) else {
        return Vec::new();
    };
    let broken = rules.iter();
    broken
        .flat_map(|(rule, broken)| told(rule, broken(&status)))
        .collect()
}

fn told(rule: &str, broken: Vec<String>) -> impl Iterator<Item = String> {
    broken
        .into_iter()
        .map(move |what| format!("{rule}: {what}"))
}

/// What is judged of an object.
struct Status<'a> {
    kind: &'a str,
    generation: Option<i64>,
    observed: Option<i64>,
    conditions: Vec<Condition<'a>>,
}

/// A version and the one before it.
struct Change<'a> {
    before: Status<'a>,
    after: Status<'a>,
}

/// A condition, as it is.
#[derive(Clone, Copy)]
struct Condition<'a>(&'a Value);

impl<'a> Condition<'a> {
    fn text(self, field: &str) -> &'a str {
        self.0[field].as_str().unwrap_or_default()
    }

    fn type_(self) -> &'a str {
        self.text("type")
    }

    fn observed(self) -> Option<i64> {
        self.0["observedGeneration"].as_i64()
    }

    fn holds(self) -> bool {
        self.text("status") == "True"
    }
}

impl<'a> Status<'a> {
    /// What the controller wrote, if it wrote any of it and nobody else did.
    fn of(object: &'a Value) -> Option<Self> {
        let status = object.get("status").filter(|status| !is_empty(status))?;
        if !is_ours(object) {
            return None;
        }
        let conditions = status["conditions"].as_array();
        let conditions = conditions.into_iter().flatten().map(Condition);
        let mut status = Self {
            kind: object["kind"].as_str().unwrap_or_default(),
            generation: object["metadata"]["generation"].as_i64(),
            observed: status["observedGeneration"].as_i64(),
            conditions: conditions.collect(),
        };
        // Flux's definition of it has no such field.
        if status.kind == "ExternalArtifact" {
            status.observed = status.find("Ready").and_then(Condition::observed);
        }
        Some(status)
    }

    fn find(&self, type_: &str) -> Option<Condition<'a>> {
        let mut conditions = self.conditions.iter();
        conditions.find(|it| it.type_() == type_).copied()
    }

    fn holds(&self, type_: &str) -> bool {
        self.find(type_).is_some_and(Condition::holds)
    }
}

/// Whether nothing is said, or by a third party alone.
fn is_empty(status: &Value) -> bool {
    let fields = status.as_object().into_iter().flatten();
    fields.into_iter().all(|(field, _)| field == "report")
}

/// Whether the controller alone owns the status, but for what is others' own.
fn is_ours(object: &Value) -> bool {
    let managers = object["metadata"]["managedFields"].as_array();
    let mut managers = managers.into_iter().flatten().filter(|manager| {
        let fields = manager["fieldsV1"]["f:status"].as_object();
        let mut fields = fields.into_iter().flatten();
        fields.any(|(field, _)| field != THEIRS && field != ".")
    });
    let is_controller = |manager: &Value| {
        let name = manager["manager"].as_str();
        name.is_some_and(|name| name.starts_with(OURS))
    };
    managers.all(is_controller)
}

fn has_ready(status: &Status<'_>) -> Vec<String> {
    let ready = status.find("Ready").is_none();
    let observed = status.observed.is_none();
    let missing = [
        ready.then_some("conditions have no Ready"),
        observed.then_some("there is no observedGeneration"),
    ];
    missing.into_iter().flatten().map(str::to_owned).collect()
}

fn are_whole(status: &Status<'_>) -> Vec<String> {
    let each = |condition: &Condition<'_>| {
        let word = |field| is_word(condition.text(field));
        let broken = [
            (!word("type"), "type is not one word"),
            (!word("reason"), "reason is not one word"),
            (
                !["True", "False", "Unknown"].contains(&condition.text("status")),
                "status is neither True nor False nor Unknown",
            ),
            (condition.text("message").is_empty(), "message is empty"),
            (
                !is_instant(condition.text("lastTransitionTime")),
                "lastTransitionTime is no instant",
            ),
            (
                condition.observed().is_none(),
                "there is no observedGeneration",
            ),
        ];
        let type_ = condition.type_();
        let broken = broken.into_iter().filter(|(broken, _)| *broken);
        let broken = broken.map(|(_, what)| format!("{type_}: {what}"));
        broken.collect::<Vec<_>>()
    };
    status.conditions.iter().flat_map(each).collect()
}

/// `CamelCase`.
fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.chars().all(|rest| rest.is_ascii_alphanumeric())
}

fn is_instant(text: &str) -> bool {
    text.parse::<jiff::Timestamp>().is_ok()
}

fn are_there_once(status: &Status<'_>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let types = status.conditions.iter().map(|condition| condition.type_());
    let again = types.filter(|type_| !seen.insert(*type_));
    again
        .map(|type_| format!("{type_} is there again"))
        .collect()
}

fn are_known(status: &Status<'_>) -> Vec<String> {
    let Some(known) = known(status.kind) else {
        return Vec::new();
    };
    let types = status.conditions.iter().map(|condition| condition.type_());
    let unknown = types.filter(|type_| !known.contains(type_));
    unknown
        .map(|type_| format!("a {} has no {type_}", status.kind))
        .collect()
}

fn abnormal_only_while_it_holds(status: &Status<'_>) -> Vec<String> {
    let found = ABNORMAL.iter().filter_map(|type_| status.find(type_));
    let idle = found.filter(|condition| !condition.holds());
    idle.map(|condition| format!("{} is {}", condition.type_(), condition.text("status")))
        .collect()
}

fn not_stalled_and_under_way(status: &Status<'_>) -> Vec<String> {
    let both = status.holds("Stalled") && status.holds("Reconciling");
    both.then(|| "both Stalled and Reconciling hold".to_owned())
        .into_iter()
        .collect()
}

fn not_ready_while_something_is_to_come(status: &Status<'_>) -> Vec<String> {
    let to_come = ["Stalled", "Reconciling"].into_iter();
    let to_come = to_come.filter(|type_| status.holds(type_) && status.holds("Ready"));
    to_come
        .map(|type_| format!("both Ready and {type_} hold"))
        .collect()
}

fn nothing_from_the_future(status: &Status<'_>) -> Vec<String> {
    // The schema of a kind without a status counts no generations.
    let Some(generation) = status.generation else {
        return Vec::new();
    };
    let conditions = status.conditions.iter();
    let conditions = conditions.map(|it| (it.type_(), it.observed()));
    let all = conditions.chain([("the status", status.observed)]);
    let ahead = all.filter(|(_, observed)| observed.is_some_and(|it| it > generation));
    ahead
        .map(|(what, observed)| {
            let observed = observed.unwrap_or_default();
            format!("{what} is about generation {observed}, and there is only {generation}")
        })
        .collect()
}

fn ready_as_the_status(status: &Status<'_>) -> Vec<String> {
    let ready = status.find("Ready").filter(|ready| ready.holds());
    let other = ready.filter(|ready| ready.observed() != status.observed);
    other
        .map(|ready| {
            let (ready, observed) = (ready.observed(), status.observed);
            format!("Ready is about generation {ready:?}, the status about {observed:?}")
        })
        .into_iter()
        .collect()
}

fn transitions_with_the_status(change: &Change<'_>) -> Vec<String> {
    let pairs = change.after.conditions.iter().filter_map(|after| {
        let before = change.before.find(after.type_())?;
        (before.text("status") == after.text("status")).then_some((before, *after))
    });
    let moved = pairs.filter(|(before, after)| {
        before.text("lastTransitionTime") != after.text("lastTransitionTime")
    });
    moved
        .map(|(before, after)| {
            let was = before.text("lastTransitionTime");
            let (type_, is) = (after.type_(), after.text("lastTransitionTime"));
            let stays = after.text("status");
            format!("{type_} stays {stays}, and its lastTransitionTime went from {was} to {is}")
        })
        .collect()
}

fn observed_stays(change: &Change<'_>) -> Vec<String> {
    let back = change.before.observed.zip(change.after.observed);
    let back = back.filter(|(before, after)| before > after);
    back.map(|(before, after)| format!("observedGeneration went from {before} to {after}"))
        .into_iter()
        .collect()
}

fn about_the_present(status: &Status<'_>) -> Vec<String> {
    let lags = status.generation.is_some() && status.observed != status.generation;
    let (observed, generation) = (status.observed, status.generation);
    lags.then(|| format!("generation {generation:?}, observedGeneration {observed:?}"))
        .into_iter()
        .collect()
}
