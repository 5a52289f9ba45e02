//! What is wrong with a strategy, also where the API server would have refused it.

use std::collections::BTreeSet;

use sluice_crds::PromotionStrategy;
use sluice_crds::promotion_strategy::{
    CommitStatusSelector, Environment, MOST_ENVIRONMENTS, PromotionStrategySpec,
};

use crate::gatekeeper::gates;
use crate::text::names::{LABEL_LENGTH, is_branch, is_label, is_label_value, subdomain};
use crate::text::refusal::{Refusal, Refusals};

/// The most characters of the name of a strategy: those of its PullRequests are longer.
pub const LONGEST_NAME: usize = 50;
/// The most checks of a list.
const MOST_CHECKS: usize = 16;
/// The most Kustomizations of a check.
const MOST_KUSTOMIZATIONS: usize = 16;

/// Everything that is wrong with a PromotionStrategy, whether or not admission would have refused it.
///
/// # Errors
/// The mistakes.
pub fn check(object: &PromotionStrategy) -> Result<(), Refusals> {
    let spec = &object.spec;
    let PromotionStrategySpec {
        repo_ref: _,
        dry_branch: _,
        active_commit_statuses,
        proposed_commit_statuses,
        commit_status_namespaces,
        environments: _,
        proposed_branch_suffix: _,
        hold_label,
        status_name,
        dry_commit_status: _,
        suspend: _,
    } = spec;
    let mut mistakes = Vec::new();
    let name = object.metadata.name.as_deref().unwrap_or_default();
    subdomain("metadata.name", name, LONGEST_NAME, &mut mistakes);
    branches(spec, &mut mistakes);
    let checks = Checks {
        status_name,
        mistakes: &mut mistakes,
    };
    checks.of("spec", active_commit_statuses, proposed_commit_statuses);
    let is_namespace = |it: &String| it.len() <= LABEL_LENGTH && is_label(it);
    if let Some(place) = (commit_status_namespaces.iter()).position(|it| !is_namespace(it)) {
        mistakes.push(Refusal::new(
            format!("spec.commitStatusNamespaces[{place}]"),
            format!(
                "`{}` is not the name of a namespace",
                commit_status_namespaces[place]
            ),
            "write its name; no pattern is read here",
        ));
    }
    for (field, text) in [
        ("spec.holdLabel", hold_label),
        ("spec.statusName", status_name),
    ] {
        if text.trim().is_empty() || text.contains(char::is_control) {
            mistakes.push(Refusal::new(
                field,
                "a forge shows nothing by that name",
                "write one line of text, or leave it out",
            ));
        }
    }
    self::status_name(status_name, &mut mistakes);
    environments(spec, &mut mistakes);
    Refusals::unless_empty(mistakes, ())
}

/// What the GitOps Promoter calls the status by which a pull request waits for the environment before.
const FORMER_STATUS: &str = "promoter-previous-environment";

/// A branch is added to the name: the whole has to say to which of both each part belongs, or two strategies could
/// speak by one name of one commit.
fn status_name(name: &str, mistakes: &mut Vec<Refusal>) {
    if name.trim().is_empty() || name.contains(char::is_control) || name == FORMER_STATUS {
        return;
    }
    let mut wrong = |problem: &str, remedy: String| {
        mistakes.push(Refusal::new("spec.statusName", problem, remedy));
    };
    let Some(word) = name.strip_prefix("sluice/") else {
        let remedy = format!("begin it with `sluice/`, or write {FORMER_STATUS}");
        return wrong("others write statuses by other names", remedy);
    };
    let is_taken = TAKEN.iter().any(|it| word.eq_ignore_ascii_case(it));
    if word.is_empty() || word.contains('/') || is_taken {
        wrong(
            "with a branch added it could be the name of something else",
            "write one word after `sluice/`, which is neither dry nor gate".to_owned(),
        );
    }
}

/// The words after `sluice/` by which the controller speaks of dry commits, and of promotions of pipelines.
const TAKEN: [&str; 2] = ["dry", "gate"];

/// Whether the controller itself writes a status by that name.
fn is_ours(forge: Option<&str>, status_name: &str) -> bool {
    forge.is_some_and(|it| it == status_name || it.starts_with("sluice/"))
}

/// The branches together: no two of them may be the same.
fn branches(spec: &PromotionStrategySpec, mistakes: &mut Vec<Refusal>) {
    let is_end = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let suffix = &spec.proposed_branch_suffix;
    if suffix.is_empty() || !suffix.chars().all(is_end) {
        mistakes.push(Refusal::new(
            "spec.proposedBranchSuffix",
            format!("`{suffix}` is no end of a branch's name"),
            "write letters, digits, - and _, such as -next",
        ));
    }
    let dry = &spec.dry_branch;
    let all = &spec.environments;
    let is_of = |it: &Environment| it.branch == *dry || spec.proposed_branch(it) == *dry;
    if !is_branch(dry) {
        mistakes.push(Refusal::new(
            "spec.dryBranch",
            format!("`{dry}` is not the name of a branch"),
            "write it without refs/heads/, such as main",
        ));
    } else if let Some(environment) = all.iter().find(|it| is_of(it)) {
        let problem = format!(
            "`{dry}` is the branch of the environment `{}`, or its proposed branch",
            environment.branch
        );
        let remedy = "give that another name";
        mistakes.push(Refusal::new("spec.dryBranch", problem, remedy));
    }
    for (place, environment) in all.iter().enumerate() {
        let proposed = all
            .iter()
            .find(|it| spec.proposed_branch(it) == environment.branch);
        if let Some(other) = proposed {
            mistakes.push(Refusal::new(
                format!("spec.environments[{place}].branch"),
                format!(
                    "`{}` is the proposed branch of `{}`",
                    environment.branch, other.branch
                ),
                "give it another name",
            ));
        }
    }
}

fn environments(spec: &PromotionStrategySpec, mistakes: &mut Vec<Refusal>) {
    let all = &spec.environments;
    let field = "spec.environments";
    if all.is_empty() || all.len() > MOST_ENVIRONMENTS {
        mistakes.push(Refusal::new(
            field,
            format!("there are {}", all.len()),
            format!("write 1 to {MOST_ENVIRONMENTS} environments"),
        ));
    }
    for (place, environment) in all.iter().enumerate() {
        let field = format!("{field}[{place}]");
        let above = all.get(..place).unwrap_or_default();
        if above.iter().any(|it| it.branch == environment.branch) {
            mistakes.push(Refusal::new(
                format!("{field}.branch"),
                format!("`{}` is listed twice", environment.branch),
                "list each branch once",
            ));
        }
        self::environment(spec, &field, environment, mistakes);
        after(&field, environment, above, mistakes);
        if is_awaited(all, place) && !is_checked(spec, environment) {
            mistakes.push(Refusal::new(
                field,
                format!(
                    "others wait for `{}`, and nothing is found out about what it has, so that what breaks \
                     it would go on at once",
                    environment.branch
                ),
                "write activeCommitStatuses or activeGates, or unchecked: true",
            ));
        }
    }
}

fn environment(
    spec: &PromotionStrategySpec,
    field: &str,
    environment: &Environment,
    mistakes: &mut Vec<Refusal>,
) {
    let Environment {
        branch,
        auto_merge: _,
        after: _,
        gates,
        active_gates,
        active_commit_statuses,
        proposed_commit_statuses,
        unchecked: _,
        merge_method: _,
        foreign_commits: _,
        revert_gates,
    } = environment;
    if !is_environment(branch) {
        mistakes.push(Refusal::new(
            format!("{field}.branch"),
            format!("`{branch}` is not the name of an environment branch"),
            "write letters, digits, -, _, . and /, without refs/heads/, such as env/prod",
        ));
    }
    let checks = Checks {
        status_name: &spec.status_name,
        mistakes,
    };
    checks.of(field, active_commit_statuses, proposed_commit_statuses);
    for (name, set) in [
        ("gates", gates),
        ("activeGates", active_gates),
        ("revertGates", revert_gates),
    ] {
        let found = set
            .as_ref()
            .map(|set| gates::check(set, &format!("{field}.{name}")));
        let found = found.and_then(Result::err).map(Refusals::into_vec);
        mistakes.extend(found.into_iter().flatten());
    }
}

/// The branch of an environment: all of its characters are safe in messages and addresses.
fn is_environment(branch: &str) -> bool {
    let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    branch.len() <= 200
        && is_branch(branch)
        && branch.chars().all(is_known)
        && !branch.ends_with('-')
        && !branch.contains(".lock")
}

/// What stands above an environment comes before it. A circle is thereby impossible.
fn after(
    field: &str,
    environment: &Environment,
    above: &[Environment],
    mistakes: &mut Vec<Refusal>,
) {
    let mut known = BTreeSet::new();
    for (place, branch) in environment.after.iter().flatten().enumerate() {
        let field = format!("{field}.after[{place}]");
        if !known.insert(branch) {
            let problem = format!("`{branch}` is listed twice");
            mistakes.push(Refusal::new(field, problem, "list each one once"));
        } else if !above.iter().any(|it| it.branch == *branch) {
            let above: Vec<&str> = above.iter().map(|it| it.branch.as_str()).collect();
            let remedy = match above.is_empty() {
                true => "leave it out: the first environment waits for none".to_owned(),
                false => format!("write some of {}", above.join(", ")),
            };
            let problem = format!("no environment `{branch}` stands above");
            mistakes.push(Refusal::new(field, problem, remedy));
        }
    }
}

/// Whether others may wait for an environment: those that name it, and those that name none. Which of the latter
/// stands directly below it admission cannot count; so none but the first is left out, and the same is refused
/// here. Nobody waits for the last one.
fn is_awaited(all: &[Environment], place: usize) -> bool {
    let (Some(environment), false) = (all.get(place), place + 1 == all.len()) else {
        return false;
    };
    let others = all.iter().enumerate().filter(|(other, _)| *other != place);
    let mut waiting = others.filter(|(other, it)| match &it.after {
        Some(after) => after.contains(&environment.branch),
        None => *other != 0,
    });
    waiting.next().is_some()
}

/// Whether anything is found out about what an environment has, or nobody wants to know.
fn is_checked(spec: &PromotionStrategySpec, environment: &Environment) -> bool {
    environment.unchecked
        || environment.active_gates.is_some()
        || !environment.active_commit_statuses.is_empty()
        || !spec.active_commit_statuses.is_empty()
}

/// The checks of a strategy, or of one of its environments.
struct Checks<'a> {
    /// What the controller says of a pull request is called so.
    status_name: &'a str,
    mistakes: &'a mut Vec<Refusal>,
}

impl Checks<'_> {
    fn of(
        mut self,
        field: &str,
        active: &[CommitStatusSelector],
        proposed: &[CommitStatusSelector],
    ) {
        self.list(&format!("{field}.activeCommitStatuses"), active);
        let field = format!("{field}.proposedCommitStatuses");
        self.list(&field, proposed);
        if let Some(place) = proposed.iter().position(|it| it.flux.is_some()) {
            self.mistakes.push(Refusal::new(
                format!("{field}[{place}].flux"),
                "Flux has not applied what is only proposed",
                "write `flux` among activeCommitStatuses",
            ));
        }
    }

    fn list(&mut self, field: &str, list: &[CommitStatusSelector]) {
        if list.len() > MOST_CHECKS {
            let problem = format!("there are more than {MOST_CHECKS}");
            self.mistakes
                .push(Refusal::new(field, problem, "list fewer"));
        }
        let mut known = BTreeSet::new();
        for (place, check) in list.iter().enumerate() {
            let field = format!("{field}[{place}]");
            if !known.insert(&check.key) {
                self.mistakes.push(Refusal::new(
                    format!("{field}.key"),
                    format!("`{}` is listed twice", check.key),
                    "list each key once",
                ));
            }
            self.one(&field, check);
        }
    }

    fn one(&mut self, field: &str, check: &CommitStatusSelector) {
        let CommitStatusSelector { key, flux, forge } = check;
        let mut wrong = |field: String, problem: &str, remedy: &str| {
            self.mistakes.push(Refusal::new(field, problem, remedy));
        };
        if key.is_empty() || !is_label_value(key) {
            let remedy = "write at most 63 letters, digits, -, _ and .";
            wrong(format!("{field}.key"), "it fits no label", remedy);
        }
        if flux.is_some() && forge.is_some() {
            let problem = "it is said in two ways by what the check is known";
            wrong(
                format!("{field}.forge"),
                problem,
                "write one of flux and forge",
            );
        } else if is_ours(forge.as_deref(), self.status_name) {
            let problem = "the controller itself writes the status of that name";
            wrong(
                format!("{field}.forge"),
                problem,
                "name the status of somebody else",
            );
        }
        let count = flux.as_ref().map(|flux| flux.kustomizations.len());
        if count.is_some_and(|count| !(1..=MOST_KUSTOMIZATIONS).contains(&count)) {
            let problem = "there are none, or too many";
            let remedy = format!("write 1 to {MOST_KUSTOMIZATIONS} Kustomizations");
            wrong(format!("{field}.flux.kustomizations"), problem, &remedy);
        }
    }
}

#[cfg(test)]
mod tests;
