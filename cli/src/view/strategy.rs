//! A promotion strategy as it is shown: how far the newest commit has come, and its environments.

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use serde::Serialize;
use sluice_core::delivery::promotion_strategy::{BYPASSED, KIND, REVERT};
use sluice_core::offline::simulate::Key;
use sluice_core::verdict::condition::{READY, find, find_true};
use sluice_crds::PromotionStrategy;
use sluice_crds::promotion_strategy::{EnvironmentState, EnvironmentStatus, Summary, Tip};

use crate::arguments::Commit;
use crate::instant::Zone;

/// The titles of a table of environments: the last one is for sentences.
const TITLES: [&str; 7] = [
    "ENVIRONMENT",
    "HAS",
    "STATE",
    "WAITS-FOR",
    "UNTIL",
    "PULL-REQUEST",
    "BECAUSE",
];

/// Why an environment waits whose gates hold something back.
const CLOSED: &str = "GateClosed";

/// A promotion strategy, as its status has it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Strategy {
    kind: &'static str,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) suspended: bool,
    /// None: no controller has looked at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<Summary>,
    /// What is wrong with it as a whole, and what people have merged past a rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) troubles: Vec<String>,
    pub(crate) environments: Vec<Environment>,
}

/// An environment of it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Environment {
    pub(crate) branch: String,
    pub(crate) auto_merge: bool,
    /// None: no controller has looked at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<EnvironmentStatus>,
}

impl Strategy {
    pub(crate) fn of(object: &PromotionStrategy) -> Self {
        let Key { namespace, name } = Key::of(&object.metadata);
        let status = object.status.as_ref();
        let known = |branch: &str| {
            let mut all = status?.environments.iter();
            all.find(|it| it.branch == branch).cloned()
        };
        let environments = object.spec.environments.iter().map(|it| Environment {
            branch: it.branch.clone(),
            auto_merge: it.auto_merge,
            status: known(&it.branch),
        });
        let conditions = status.map_or(&[][..], |it| &it.conditions);
        let wrong = find(conditions, READY).filter(|ready| ready.status != "True");
        let told = wrong.into_iter().chain(find_true(conditions, BYPASSED));
        Self {
            kind: KIND,
            namespace,
            name,
            suspended: object.spec.suspend,
            summary: status.and_then(|it| it.summary.clone()),
            troubles: told.map(|it| it.message.clone()).collect(),
            environments: environments.collect(),
        }
    }

    /// How far the newest commit has come, in a sentence.
    pub(crate) fn headline(&self) -> String {
        let summary = self.summary.clone().unwrap_or_default();
        let said = match (&self.summary, summary.newest, summary.waits_at) {
            (None, ..) => "no controller has looked at it yet".to_owned(),
            (Some(_), None, _) => "no commit is known that is proposed".to_owned(),
            (Some(_), Some(newest), None) => {
                format!("the newest commit {newest} has reached every environment")
            }
            (Some(_), Some(newest), Some(at)) => {
                let reached = summary.reached;
                let reached = reached.unwrap_or_else(|| "no environment".to_owned());
                format!("the newest commit {newest} has reached {reached}, and waits at {at}")
            }
        };
        let suspended = if self.suspended { " (suspended)" } else { "" };
        format!("{KIND} {}/{}{suspended}: {said}", self.namespace, self.name)
    }

    /// The environment with this branch, or the only one with a branch that ends with it: `prod` for
    /// `env/prod`.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub(crate) fn environment(&self, named: &str) -> Result<&Environment> {
        let all = || self.environments.iter();
        if let Some(found) = all().find(|it| it.branch == named) {
            return Ok(found);
        }
        let end = format!("/{named}");
        let ends = all().filter(|it| it.branch.ends_with(&end));
        match ends.collect::<Vec<_>>().as_slice() {
            [one] => Ok(one),
            _ => {
                let names: Vec<_> = all().map(|it| it.branch.as_str()).collect();
                bail!(
                    "{} has no environment `{named}`; write one of {}",
                    self.name,
                    names.join(", ")
                )
            }
        }
    }

    /// The head and a row for each environment.
    pub(crate) fn table(&self, now: Timestamp, zone: &Zone) -> Vec<Vec<String>> {
        let head = TITLES.map(|title| match title {
            "UNTIL" => format!("UNTIL ({})", zone.name),
            other => other.to_owned(),
        });
        let rows = self.environments.iter();
        let rows = rows.map(|environment| environment.cells(now, zone));
        std::iter::once(head.into()).chain(rows).collect()
    }

    /// All dry commits that its environments have, or that are proposed for them.
    pub(crate) fn dry_commits(&self) -> impl Iterator<Item = &str> {
        let seen = self.environments.iter().filter_map(|it| it.status.as_ref());
        let tips = seen.flat_map(|it| it.active.iter().chain(&it.proposed));
        tips.filter_map(|tip| tip.dry_sha.as_deref())
    }
}

impl Environment {
    /// What its branch has.
    ///
    /// # Errors
    /// That is not known.
    pub(crate) fn active(&self) -> Result<(&EnvironmentStatus, &Tip)> {
        let status = self.status.as_ref();
        let known = status.and_then(|it| Some((it, it.active.as_ref()?)));
        known.with_context(|| {
            let message = status.and_then(|it| it.message.as_ref());
            let why = message.map(|it| format!(": {it}")).unwrap_or_default();
            format!("it is not known yet what {} has{why}", self.branch)
        })
    }

    /// The revision that its gates hold back, as they were asked about it. None: it waits for something else.
    ///
    /// The last decision may be older than what is proposed. Then it says nothing of that.
    pub(crate) fn held_back(&self) -> Option<&str> {
        let status = self.status.as_ref()?;
        let decision = status.last_decision.as_ref().filter(|it| !it.allowed)?;
        let subject = &decision.subject;
        let revision = subject.revision.as_deref()?;
        let is_about =
            |tip: &Tip| revision.ends_with(&tip.hydrated_sha) || decision.at.0 >= tip.since.0;
        let is_present = subject.kind == REVERT || status.proposed.as_ref().is_some_and(is_about);
        let is_closed = status.waits.iter().any(|it| it.reason == CLOSED);
        (is_closed && is_present).then_some(revision)
    }

    fn cells(&self, now: Timestamp, zone: &Zone) -> Vec<String> {
        let Some(status) = &self.status else {
            let unknown = EnvironmentState::Unknown.as_str().to_owned();
            let empty = String::new;
            let because = "no controller has looked at it yet".to_owned();
            return vec![
                self.branch.clone(),
                empty(),
                unknown,
                empty(),
                empty(),
                empty(),
                because,
            ];
        };
        let dry = status.active.as_ref().and_then(|tip| tip.dry_sha.as_ref());
        let has = dry.map_or("unknown", |sha| Commit::short(sha));
        let first = status.waits.first();
        let waits = match (first, status.waits.len()) {
            (None, _) => String::new(),
            (Some(first), 1) => first.reason.clone(),
            (Some(first), all) => format!("{} (+{})", first.reason, all - 1),
        };
        let next = first.and_then(|it| it.next.as_ref()).map(|at| at.0);
        let next = next.filter(|at| *at > now);
        let is_well = status.state == EnvironmentState::UpToDate;
        let message = status.message.clone().filter(|_| !is_well);
        vec![
            self.branch.clone(),
            has.to_owned(),
            status.state.as_str().to_owned(),
            waits,
            next.map(|at| zone.wall(at)).unwrap_or_default(),
            pull_request(status),
            message.unwrap_or_default(),
        ]
    }
}

/// The one that is not finished.
fn pull_request(status: &EnvironmentStatus) -> String {
    let record = status.pull_request.as_ref();
    let open = record.filter(|it| {
        !it.state
            .is_some_and(sluice_crds::pull_request::PullRequestState::is_final)
    });
    match open.map(|it| it.number) {
        Some(Some(number)) => format!("#{number}"),
        Some(None) => "not open yet".to_owned(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
