//! The order of the environments. GitOps Promoter writes it as a check, by an object of its own in its newer
//! versions; in Sluice it stands in the strategy.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::theirs::{Found, Theirs};

/// The check that GitOps Promoter writes for the order where no object does.
pub(super) const KEY: &str = "promoter-previous-environment";

/// What is told of an object that writes such a check.
const SAME: &str = "the order of the environments of our strategy stands in its place: one gets a commit when \
                    those before it have that commit, and their checks pass. Its check is left out";
const REMEMBERED: &str = "the order of the environments of our strategy stands in its place, and remembers \
                          nothing: one gets a commit when those before it have that commit now, and their checks \
                          pass. Its check is left out";

/// The kinds of objects that write one.
const KINDS: [(&str, &str); 4] = [
    ("DAGCommitStatus", SAME),
    ("DependentsSuccessfulCommitStatus", SAME),
    ("DryShaSuccessfulCommitStatus", REMEMBERED),
    ("PreviousEnvironmentCommitStatus", SAME),
];

/// What is told of an object of this kind. None: it writes no order.
pub(super) fn told(kind: &str) -> Option<&'static str> {
    let mut all = KINDS.iter();
    Some(all.find(|(known, _)| *known == kind)?.1)
}

/// The order of the environments of a strategy.
pub(super) struct Order<'f> {
    /// What writes it as a check.
    pub(super) by: Vec<&'f Theirs>,
    /// The environments, each with its place in the list of GitOps Promoter. Those that one waits for stand
    /// above it.
    pub(super) environments: Vec<(usize, &'f Value)>,
    /// The branches that each one waits for. None: each waits for the one above it.
    after: Option<After<'f>>,
    keys: BTreeSet<&'f str>,
}

type After<'f> = BTreeMap<&'f str, Vec<&'f str>>;

impl<'f> Order<'f> {
    pub(super) fn of(strategy: &'f Theirs, found: &'f Found) -> Self {
        let by = found.all().filter(|it| told(&it.kind).is_some());
        let by: Vec<_> = by.filter(|it| it.is_about(strategy)).collect();
        let specs = [strategy].into_iter().chain(by.iter().copied());
        let after = specs.map(Theirs::spec).find_map(graph);
        let listed = environments(strategy.spec()).iter().enumerate().collect();
        let environments = match &after {
            Some(after) => sorted(listed, after),
            None => listed,
        };
        let keys = by.iter().filter_map(|it| it.spec()["key"].as_str());
        Self {
            keys: keys.chain([KEY]).collect(),
            after: after.filter(|after| !is_a_line(&environments, after)),
            by,
            environments,
        }
    }

    /// Whether a check is about the order alone.
    pub(super) fn is_told_by(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    /// The names under which pull requests are told of the order, other than the old one.
    pub(super) fn names(&self) -> Vec<&'f str> {
        let keys = self.keys.iter().copied();
        keys.filter(|key| *key != KEY).collect()
    }

    /// The branches that an environment waits for, where it says so. None: the one above it, if there is one.
    pub(super) fn after(&self, branch: &str) -> Option<&[&'f str]> {
        let after = self.after.as_ref()?;
        let first = self.environments.first().map(|(_, it)| name(it));
        let own = after.get(branch).map_or(&[][..], Vec::as_slice);
        (first != Some(branch) || !own.is_empty()).then_some(own)
    }

    /// Whether another environment waits for this one.
    pub(super) fn is_awaited(&self, branch: &str) -> bool {
        match &self.after {
            Some(after) => after.values().any(|all| all.contains(&branch)),
            None => self
                .environments
                .last()
                .is_some_and(|(_, it)| name(it) != branch),
        }
    }

    /// Whether an environment stands in another place than it did.
    pub(super) fn is_changed(&self) -> bool {
        !self.environments.is_sorted_by_key(|(place, _)| *place)
    }
}

fn environments(spec: &Value) -> &[Value] {
    spec["environments"].as_array().map_or(&[], Vec::as_slice)
}

fn name(environment: &Value) -> &str {
    environment["branch"].as_str().unwrap_or_default()
}

/// What environments wait for. None: nothing is said of that. Once something is said, those of which nothing is
/// said wait for none.
fn graph(spec: &Value) -> Option<After<'_>> {
    let all = environments(spec).iter();
    let all = all.map(|it| (name(it), before(it)));
    let all: After<'_> = all.collect();
    all.values().any(|it| !it.is_empty()).then_some(all)
}

fn before(environment: &Value) -> Vec<&str> {
    let all = environment["dependsOn"].as_array().into_iter().flatten();
    all.filter_map(Value::as_str).collect()
}

/// Those that one waits for come first. What waits for itself is left at the end: reading the strategy says so.
fn sorted<'f>(mut left: Vec<(usize, &'f Value)>, after: &After<'_>) -> Vec<(usize, &'f Value)> {
    let waits = |it: &Value, left: &[(usize, &Value)]| {
        let own = after.get(name(it));
        let mut left = left.iter();
        left.any(|(_, other)| own.is_some_and(|own| own.contains(&name(other))))
    };
    let mut sorted = Vec::new();
    while let Some(next) = left.iter().position(|(_, it)| !waits(it, &left)) {
        sorted.push(left.remove(next));
    }
    sorted.extend(left);
    sorted
}

/// Whether each environment waits for the one above it, and for no other.
fn is_a_line(environments: &[(usize, &Value)], after: &After<'_>) -> bool {
    let mut above: Option<&str> = None;
    environments.iter().all(|(_, it)| {
        let expected: Vec<&str> = above.replace(name(it)).into_iter().collect();
        after.get(name(it)).map_or(&[][..], Vec::as_slice) == expected
    })
}
