//! Why an environment of a promotion strategy waits, in words.
//!
//! What comes in: a strategy, as its status has it. What goes out: a tree: each environment with
//! everything that it waits for, and how it came to what it has.

use anyhow::Result;
use serde_json::{Value, json};
use sluice_core::delivery::promotion_strategy::KIND;
use sluice_crds::Decision;
use sluice_crds::promotion_strategy::{
    Arrival, CheckOf, CheckStatus, EnvironmentStatus, Held, RevertStatus, Tip, Wait,
};

use crate::arguments::Commit;
use crate::explain::{self, Branch};
use crate::instant::Zone;
use crate::output;
use crate::view::Strategy;
use crate::view::strategy::Environment;

/// A strategy, and the environments that are asked about.
pub(super) struct Shown<'s> {
    strategy: &'s Strategy,
    environments: Vec<&'s Environment>,
}

impl<'s> Shown<'s> {
    /// These environments, or all.
    ///
    /// # Errors
    /// There is no such environment.
    pub(super) fn new(strategy: &'s Strategy, named: &[String]) -> Result<Self> {
        let mut environments: Vec<&Environment> = strategy.environments.iter().collect();
        if !named.is_empty() {
            let named = named.iter().map(|it| strategy.environment(it));
            environments = named.collect::<Result<_>>()?;
        }
        Ok(Self {
            strategy,
            environments,
        })
    }

    /// For people.
    pub(super) fn text(&self, zone: &Zone) -> String {
        let environments = self.environments.iter().map(|it| {
            let told = Told {
                strategy: &self.strategy.name,
                branch: &it.branch,
                zone,
            };
            match &it.status {
                Some(status) => told.environment(status),
                None => Branch::of(format!("{}: no controller has looked at it yet", it.branch)),
            }
        });
        let troubles = self.strategy.troubles.iter().cloned().map(Branch::of);
        let all: Vec<Branch> = environments.chain(troubles).collect();
        format!("{}\n{}", self.strategy.headline(), explain::branches(&all))
    }

    /// For programs.
    pub(super) fn data(&self) -> Value {
        json!({
            "kind": KIND, "namespace": self.strategy.namespace, "name": self.strategy.name,
            "summary": self.strategy.summary, "troubles": self.strategy.troubles,
            "environments": self.environments,
        })
    }
}

/// How one environment is told.
struct Told<'s> {
    strategy: &'s str,
    branch: &'s str,
    zone: &'s Zone,
}

impl Told<'_> {
    fn environment(&self, status: &EnvironmentStatus) -> Branch {
        let reason = status.reason.as_ref();
        let reason = reason.map(|it| format!(" ({it})")).unwrap_or_default();
        let state = status.state.as_str();
        let mut inside = vec![self.active(status.active.as_ref())];
        inside.extend(self.proposed(status).map(Branch::of));
        inside.extend(self.waits(&status.waits));
        inside.extend(status.checks.iter().map(check));
        inside.extend(status.last_decision.as_ref().map(|it| self.decision(it)));
        inside.extend(self.pull_request(status).map(Branch::of));
        inside.extend(status.held.iter().map(|it| Branch::of(self.held(it))));
        inside.extend(status.reverts.iter().map(revert));
        inside.extend(self.healthy(status).map(Branch::of));
        let mut lines = vec![format!("{} is {state}{reason}", self.branch)];
        // What waits says so itself.
        lines.extend(status.message.clone().filter(|_| status.waits.is_empty()));
        Branch { lines, inside }
    }

    /// What its branch has, and how that came there.
    fn active(&self, tip: Option<&Tip>) -> Branch {
        let Some(tip) = tip else {
            return Branch::of("it is not known what its branch has".to_owned());
        };
        let who = tip.by.as_deref().unwrap_or("a person");
        let how = match tip.arrived_by {
            None => "it is not known how it came there".to_owned(),
            Some(Arrival::Promotion) => "merged by the controller".to_owned(),
            Some(Arrival::Person) if tip.bypassed.is_empty() => format!("merged by {who}"),
            Some(Arrival::Person) => format!("merged by {who} past {}", tip.bypassed.join(", ")),
            Some(Arrival::Revert) => "brought back by a RevertCommit".to_owned(),
            Some(Arrival::Baseline) => {
                "there when the controller first looked, or accepted by a person".to_owned()
            }
            Some(Arrival::Foreign) => format!(
                "pushed by somebody else; to accept it, run `kubectl gate accept {} {} --reason TEXT`",
                self.strategy, self.branch
            ),
        };
        let since = self.zone.text(tip.since.0);
        Branch {
            lines: vec![format!("has {} since {since}", named(tip)), how],
            inside: Vec::new(),
        }
    }

    fn proposed(&self, status: &EnvironmentStatus) -> Option<String> {
        let proposed = status.proposed.as_ref()?;
        let tree = status.active.as_ref().map(|tip| &tip.tree);
        if tree == Some(&proposed.tree) {
            return Some("nothing else is proposed".to_owned());
        }
        let since = self.zone.text(proposed.since.0);
        Some(format!("{} is proposed since {since}", named(proposed)))
    }

    /// Everything that holds back what is proposed, in order.
    fn waits(&self, waits: &[Wait]) -> Option<Branch> {
        let head = match waits.len() {
            0 => return None,
            1 => "waits for one rule".to_owned(),
            many => format!("waits for {many} rules, the first of which decides"),
        };
        let inside = waits.iter().map(|wait| {
            let until = wait.next.as_ref();
            let until = until.map(|at| format!(" until {}", self.zone.text(at.0)));
            let first = format!("{}{}", wait.reason, until.unwrap_or_default());
            Branch {
                lines: vec![first, wait.message.clone()],
                inside: Vec::new(),
            }
        });
        Some(Branch {
            lines: vec![head],
            inside: inside.collect(),
        })
    }

    /// What the gates said last.
    fn decision(&self, decision: &Decision) -> Branch {
        let at = self.zone.text(decision.at.0);
        let allowed = output::allowed(decision.allowed);
        let line = format!("its gates said at {at}: {allowed}: {}", decision.message);
        let inside = decision.checked.iter().map(|gate| {
            let state = output::state(gate.state);
            let first = format!("{} is {state} ({})", gate.gate, gate.reason);
            Branch {
                lines: vec![first, gate.message.clone()],
                inside: Vec::new(),
            }
        });
        Branch {
            lines: vec![line],
            inside: inside.collect(),
        }
    }

    fn pull_request(&self, status: &EnvironmentStatus) -> Option<String> {
        let record = status.pull_request.as_ref()?;
        let number = record.number.map(|number| format!(" #{number}"));
        let state = record.state.map(|state| format!(" is {state:?}"));
        let url = record.url.as_ref().map(|url| format!(": {url}"));
        let ordered = status.order.as_ref().map(|order| {
            let end = self.zone.text(order.not_after.0);
            format!("; ordered to be merged until {end}")
        });
        let parts = [number, state, url, ordered].map(Option::unwrap_or_default);
        Some(format!("pull request{}", parts.concat()))
    }

    fn held(&self, held: &Held) -> String {
        let Held {
            dry_sha,
            revert_commit,
        } = held;
        format!(
            "{} was taken back by {revert_commit}, and does not return; to name its fix, run `kubectl gate \
             fixed {revert_commit} COMMIT`",
            Commit::short(dry_sha)
        )
    }

    fn healthy(&self, status: &EnvironmentStatus) -> Option<String> {
        let all = status.last_healthy.iter();
        let all = all.map(|it| {
            let at = self.zone.text(it.time.0);
            format!("{} ({at})", Commit::short(&it.dry_sha))
        });
        let all: Vec<String> = all.collect();
        (!all.is_empty()).then(|| format!("its checks have passed with {}", all.join(", ")))
    }
}

/// The dry commit, and what was made of it.
fn named(tip: &Tip) -> String {
    let dry = tip.dry_sha.as_deref();
    let dry = dry.map_or("an unknown dry commit", Commit::short);
    format!("{dry} as {}", Commit::short(&tip.hydrated_sha))
}

fn check(check: &CheckStatus) -> Branch {
    let of = match check.of {
        CheckOf::Active => "what it has",
        CheckOf::Proposed => "what is proposed",
    };
    let first = format!("check {} of {of}: {}", check.key, check.phase.as_str());
    let mut lines = vec![first];
    lines.extend(check.message.clone());
    Branch {
        lines,
        inside: Vec::new(),
    }
}

fn revert(revert: &RevertStatus) -> Branch {
    let mut lines = vec![
        format!(
            "RevertCommit {} is {} ({})",
            revert.name,
            revert.phase.as_str(),
            revert.reason
        ),
        revert.message.clone(),
    ];
    lines.extend(revert.url.clone());
    Branch {
        lines,
        inside: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
