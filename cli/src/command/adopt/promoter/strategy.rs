//! A PromotionStrategy as ours.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::guard::{Gates, Guard, Side};
use super::order::{self, Order};
use super::theirs::Theirs;
use crate::converted::{Converted, Notes, ours};

/// `has_access`: whether its repository is adopted. `guards`: what writes its checks. `order`: that of its
/// environments.
///
/// # Errors
/// What is wrong, a line for each mistake.
pub(super) fn strategy(
    theirs: &Theirs,
    has_access: bool,
    guards: &[&Guard<'_>],
    order: &Order<'_>,
) -> Result<Converted, Vec<String>> {
    let mut work = Work {
        notes: theirs.notes(),
        guards,
        order,
        kept: Vec::new(),
        left_out: BTreeSet::new(),
    };
    let spec = work.spec(theirs.spec());
    work.tell_of_order(theirs.spec());
    let Work {
        mut notes, kept, ..
    } = work;
    if !has_access {
        let access = theirs.names("gitRepositoryRef");
        notes.lose(format!(
            "spec.gitRepositoryRef: no GitRepositoryAccess {access} is made from these files; write one"
        ));
    }
    tell_of_checks(theirs, guards, &kept, &mut notes);
    notes.note(status_name(order));
    notes.note(format!(
        "it is suspended: delete the PromotionStrategy of GitOps Promoter, look at this one with `kubectl gate \
         promotion {} -n {}`, and then remove spec.suspend",
        theirs.name, theirs.namespace
    ));
    let key = (theirs.namespace.as_str(), theirs.name.as_str());
    let own = ours("PromotionStrategy", key, &theirs.value["metadata"], &spec);
    notes.finish(own)
}

/// What a branch protection has to require.
fn status_name(order: &Order<'_>) -> String {
    match order.names().as_slice() {
        [] => "statusName is what GitOps Promoter writes, so that the branch protection stays as it is. Leave it \
               out when your branch protection requires sluice/promotion/BRANCH"
            .to_owned(),
        names => format!(
            "where a branch protection requires {}, let it require sluice/promotion/BRANCH, or it waits for ever",
            names.join(" or ")
        ),
    }
}

/// Who has to write the checks that stay.
fn tell_of_checks(theirs: &Theirs, guards: &[&Guard<'_>], kept: &[String], notes: &mut Notes) {
    let mut written = Vec::new();
    for key in kept {
        let mut nobody = guards.iter().filter(|it| it.key == *key);
        let nobody = nobody.find_map(|it| Some((it.of, it.by.as_ref().err()?)));
        match nobody {
            Some((of, why)) => notes.lose(format!("the check {key} waits for ever: {of}: {why}")),
            None => written.push(key.as_str()),
        }
    }
    if !written.is_empty() {
        notes.note(format!(
            "what writes the CommitStatuses {} has to write apiVersion sluice.dev/v1alpha1, and repoRef in place \
             of gitRepositoryRef; the labels stay. Those of the namespace {} count, and of others if \
             commitStatusNamespaces names them",
            written.join(", "),
            theirs.namespace
        ));
    }
}

struct Work<'g> {
    notes: Notes,
    guards: &'g [&'g Guard<'g>],
    order: &'g Order<'g>,
    /// The keys of the checks that stay checks.
    kept: Vec<String>,
    /// The keys of those that tell of the order.
    left_out: BTreeSet<String>,
}

impl<'g> Work<'g> {
    fn spec(&mut self, spec: &Value) -> Value {
        let known = [
            "gitRepositoryRef",
            "activeCommitStatuses",
            "proposedCommitStatuses",
            "environments",
            "activePath",
            "orderCommitStatusRef",
            "pullRequest",
        ];
        self.notes.rest("spec", spec, &known);
        self.no_path("spec", spec);
        if !spec["pullRequest"].is_null() {
            self.notes.lose(
                "spec.pullRequest.labels: there are no labels by an expression. A pull request with the label \
                 sluice/hold is not merged",
            );
        }
        let repository = json!({"name": spec["gitRepositoryRef"]["name"]});
        let mut own = json!({"suspend": true, "repoRef": repository});
        if self.order.names().is_empty() {
            own["statusName"] = order::KEY.into();
        }
        for side in [Side::Active, Side::Proposed] {
            let (_, stay) = self.divided(side, spec);
            self.keep(&stay);
            if !stay.is_empty() {
                own[side.checks()] = checks(&stay);
            }
        }
        let all = self.order.environments.iter();
        let all = all.map(|(place, it)| self.environment(spec, *place, it));
        own["environments"] = all.collect();
        own
    }

    fn environment(&mut self, spec: &Value, place: usize, theirs: &Value) -> Value {
        let path = format!("spec.environments[{place}]");
        let known = [
            "branch",
            "autoMerge",
            "activeCommitStatuses",
            "proposedCommitStatuses",
            "activePath",
            "dependsOn",
        ];
        self.notes.rest(&path, theirs, &known);
        self.no_path(&path, theirs);
        let branch = theirs["branch"].as_str().unwrap_or_default();
        let is_awaited = self.order.is_awaited(branch);
        let mut own = Map::from_iter([("branch".to_owned(), branch.into())]);
        if let Some(after) = self.order.after(branch) {
            own.insert("after".to_owned(), json!(after));
        }
        if theirs["autoMerge"] == false {
            own.insert("autoMerge".to_owned(), false.into());
        }
        let mut is_checked = !self.divided(Side::Active, spec).1.is_empty();
        for side in [Side::Active, Side::Proposed] {
            let (gates, stay) = self.guarded(side, spec, theirs);
            is_checked |= side == Side::Active && !(stay.is_empty() && gates.is_empty());
            if !stay.is_empty() {
                own.insert(side.checks().to_owned(), checks(&stay));
            }
            if !gates.is_empty() {
                let refs: Vec<_> = gates.iter().map(|name| json!({"name": name})).collect();
                own.insert(side.gates().to_owned(), json!({ "refs": refs }));
            }
        }
        if !is_checked && is_awaited {
            own.insert("unchecked".to_owned(), true.into());
            self.notes.note(format!(
                "nothing is found out about what {branch} has before it goes on, which `unchecked: true` says: \
                 better write a check, such as `flux`"
            ));
        }
        Value::Object(own)
    }

    /// The gates of an environment, and the keys of the checks that stay its own.
    fn guarded(
        &mut self,
        side: Side,
        spec: &Value,
        environment: &Value,
    ) -> (Vec<&'g str>, Vec<String>) {
        let branch = environment["branch"].as_str().unwrap_or_default();
        let (of_all, _) = self.divided(side, spec);
        let (mut moved, mut stay) = self.divided(side, environment);
        self.keep(&stay);
        let more = of_all.into_iter().filter(|it| !moved.contains(it));
        moved.extend(more.collect::<Vec<_>>());
        let mut gates = Vec::new();
        for key in moved {
            match self.gates(side, &key) {
                Some(found) if found.of.contains_key(branch) => {
                    gates.push(found.of[branch].as_str());
                }
                Some(found) if found.others_wait && self.order.is_awaited(branch) => {
                    self.notes.note(format!(
                        "the check {key} waits for ever in {branch}, as before: what writes it does not list \
                         this branch. Remove the check, or write a gate into {}",
                        side.gates()
                    ));
                    stay.push(key);
                }
                Some(_) | None => {}
            }
        }
        (gates, stay)
    }

    /// The keys of a list: those in whose place there are gates, and those that stay.
    fn divided(&mut self, side: Side, of: &Value) -> (Vec<String>, Vec<String>) {
        let all = of[side.checks()].as_array().into_iter().flatten();
        let keys = all.filter_map(|it| Some(it["key"].as_str()?.to_owned()));
        let (left_out, keys): (Vec<_>, Vec<_>) = keys.partition(|key| self.order.is_told_by(key));
        self.left_out.extend(left_out);
        let keys = keys.into_iter();
        keys.partition(|key| self.gates(side, key).is_some())
    }

    fn gates(&self, side: Side, key: &str) -> Option<&'g Gates> {
        let mut own = self.guards.iter().filter(|it| it.key == key);
        own.find_map(|it| it.by.as_ref().ok().filter(|gates| gates.side == side))
    }

    fn keep(&mut self, keys: &[String]) {
        for key in keys {
            if !self.kept.contains(key) {
                self.kept.push(key.clone());
            }
        }
    }

    /// What becomes of what GitOps Promoter is told of the order.
    fn tell_of_order(&mut self, spec: &Value) {
        for key in &self.left_out {
            self.notes.note(format!(
                "the check {key} is left out, which would wait for ever: the order of the environments stands in \
                 its place"
            ));
        }
        if self.order.is_changed() {
            self.notes.note(
                "environments are listed in another order: those that one waits for stand above it",
            );
        }
        let by = spec["orderCommitStatusRef"]["kind"].as_str();
        if let Some(kind) = by.filter(|kind| order::told(kind).is_none()) {
            self.notes.lose(format!(
                "spec.orderCommitStatusRef: which order a {kind} makes is not known. Each environment waits for \
                 the one above it; write `after` where it is to wait for others"
            ));
        }
    }

    /// Several strategies on one branch are not taken.
    fn no_path(&mut self, path: &str, value: &Value) {
        if !value["activePath"].is_null() {
            let remedy = "give each strategy branches of its own, or leave it to GitOps Promoter";
            let problem = "several strategies on one branch, each in a folder, are not known";
            self.notes
                .refuse(&format!("{path}.activePath"), problem, remedy);
        }
    }
}

fn checks(keys: &[String]) -> Value {
    keys.iter().map(|key| json!({ "key": key })).collect()
}
