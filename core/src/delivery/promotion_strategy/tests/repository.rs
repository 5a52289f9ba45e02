//! A repository of Git in memory. What is asked of it is known from the next look on. The histories of
//! `tests/promotion_history` use it, too.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sluice_crds::promotion_strategy::Join;
use sluice_crds::pull_request::Tree;

use crate::delivery::promotion_strategy::evidence::{
    Answer, Commit, Evidence, ForgeStatus, Heads, Question, Sight,
};
use crate::delivery::promotion_strategy::join_message;
use sha2::{Digest, Sha256};
use std::sync::Arc;

#[derive(Clone, Default)]
pub(super) struct Repository {
    commits: BTreeMap<String, Arc<Commit>>,
    files: BTreeMap<String, String>,
    notes: BTreeMap<String, String>,
    /// Why it is not known what notes there are.
    pub(super) hidden_notes: Option<String>,
    branches: BTreeMap<String, String>,
    statuses: BTreeMap<String, Vec<ForgeStatus>>,
    /// What was asked for, and is answered.
    learned: BTreeSet<Question>,
    pub(super) is_silent: bool,
    pub(super) trouble: Option<String>,
    listed_at: Option<Timestamp>,
    pub(super) is_list_failing: bool,
    /// What is not known yet cannot be read.
    pub(super) fails: bool,
    /// A commit that cannot be read, although what is said of it can.
    pub(super) unread: Option<String>,
}

fn id(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest[..20]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

impl Repository {
    /// Its branches as they are listed at an instant.
    pub(super) fn listed(&self, at: Timestamp) -> Self {
        Self {
            listed_at: Some(at),
            ..self.clone()
        }
    }

    fn make(&mut self, files: &str, parents: Vec<String>, more: &str) -> String {
        let sha = id(&format!("commit {files} {parents:?} {more}"));
        let commit = Commit {
            tree: id(&format!("tree {files}")),
            parents,
            at: "2026-11-23T11:00:00Z".parse().unwrap(),
            message: more.to_owned(),
        };
        self.commits.insert(sha.clone(), Arc::new(commit));
        sha
    }

    /// A commit on the dry branch.
    pub(super) fn commit_dry(&mut self, name: &str) -> String {
        let parents = self.branches.get("main").cloned().into_iter().collect();
        let sha = self.make(&format!("dry {name}"), parents, "");
        self.branches.insert("main".to_owned(), sha.clone());
        sha
    }

    /// A commit on a branch with other files, and with this message.
    pub(super) fn push_with(
        &mut self,
        branch: &str,
        dry: &str,
        files: &str,
        message: &str,
    ) -> String {
        let parents = vec![self.head(branch)];
        let sha = self.make(files, parents, message);
        self.files
            .insert(sha.clone(), format!(r#"{{"drySha": "{dry}"}}"#));
        self.branches.insert(branch.to_owned(), sha.clone());
        sha
    }

    /// A commit on a branch, made from a dry commit.
    pub(super) fn push(&mut self, branch: &str, dry: &str, files: &str) -> String {
        let metadata = format!(r#"{{"drySha": "{dry}", "subject": "Change {files}"}}"#);
        let sha = self.push_bare(branch, &format!("{files} {dry}"));
        self.files.insert(sha.clone(), metadata);
        sha
    }

    /// A commit on a branch with the files that an earlier one had, of which the name begins so.
    pub(super) fn restore(&mut self, branch: &str, files: &str) -> String {
        let tree = |sha: &str| self.commits[sha].tree.clone();
        let is_it = |said: &str| said.contains(&format!("Change {files}\""));
        let mut all = self.files.iter();
        let tree = all.find(|(_, said)| is_it(said)).map(|(sha, _)| tree(sha));
        let parents = vec![self.head(branch)];
        let sha = self.make("restored", parents, "");
        let commit = Commit {
            tree: tree.unwrap(),
            ..Commit::clone(&self.commits[&sha])
        };
        self.commits.insert(sha.clone(), Arc::new(commit));
        self.branches.insert(branch.to_owned(), sha.clone());
        sha
    }

    /// A commit that says nothing of itself.
    pub(super) fn push_bare(&mut self, branch: &str, files: &str) -> String {
        let parents = self.branches.get(branch).cloned().into_iter().collect();
        let sha = self.make(files, parents, branch);
        self.branches.insert(branch.to_owned(), sha.clone());
        sha
    }

    pub(super) fn says(&mut self, branch: &str, metadata: &str) {
        let sha = self.head(branch);
        self.files.insert(sha, metadata.to_owned());
        self.learned.clear();
    }

    /// A hydrator had nothing to change.
    pub(super) fn note(&mut self, branch: &str, dry: &str) {
        let sha = self.head(branch);
        self.notes.insert(sha, format!(r#"{{"drySha": "{dry}"}}"#));
    }

    pub(super) fn branch(&mut self, name: &str, from: &str) {
        let sha = self.head(from);
        self.branches.insert(name.to_owned(), sha);
    }

    pub(super) fn set(&mut self, name: &str, sha: &str) {
        self.branches.insert(name.to_owned(), sha.to_owned());
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.branches.remove(name);
    }

    pub(super) fn find(&self, branch: &str) -> Option<String> {
        self.branches.get(branch).cloned()
    }

    pub(super) fn head(&self, branch: &str) -> String {
        self.branches[branch].clone()
    }

    /// A merge with two parents. What has changed on both sides is mixed, unless the head goes on from the
    /// base or from what was merged into it.
    pub(super) fn merge(&mut self, base: &str, head: &str) -> String {
        let parents = vec![self.head(base), head.to_owned()];
        self.merged(base, head, parents)
    }

    /// The commit of a revert, on a branch of its own.
    pub(super) fn of_tree(&mut self, branch: &str, tree: &Tree) -> String {
        let sha = id(&format!("revert {} {}", tree.of, tree.parent));
        let commit = Commit {
            tree: tree.of.clone(),
            parents: vec![tree.parent.clone()],
            at: "2026-11-23T11:30:00Z".parse().unwrap(),
            message: tree.message.clone(),
        };
        // It has the files of the commit with that tree, and so what that says of itself.
        let same = self.commits.iter().filter(|(_, it)| it.tree == tree.of);
        let said = same
            .filter_map(|(sha, _)| self.files.get(sha).cloned())
            .next();
        self.files.extend(said.map(|said| (sha.clone(), said)));
        self.commits.insert(sha.clone(), Arc::new(commit));
        self.branches.insert(branch.to_owned(), sha.clone());
        sha
    }

    /// A commit that changes no file and has both as its parents.
    pub(super) fn join(&mut self, branch: &str, join: &Join) -> String {
        let sha = id(&format!("join {} {}", join.head_sha, join.active_sha));
        let commit = Commit {
            tree: join.tree.clone(),
            parents: vec![join.head_sha.clone(), join.active_sha.clone()],
            at: join.at.0,
            message: join_message("env", &join.active_sha),
        };
        let said = self.files.get(&join.head_sha).cloned();
        self.files.extend(said.map(|said| (sha.clone(), said)));
        self.commits.insert(sha.clone(), Arc::new(commit));
        self.branches.insert(branch.to_owned(), sha.clone());
        sha
    }

    /// One commit with the files of the head.
    pub(super) fn squash(&mut self, base: &str, head: &str) -> String {
        let parents = vec![self.head(base)];
        self.merged(base, head, parents)
    }

    fn merged(&mut self, base: &str, head: &str, parents: Vec<String>) -> String {
        let tree = self.merged_tree(base, head);
        let sha = id(&format!("merge {tree} {parents:?}"));
        let commit = Commit {
            tree,
            parents,
            at: "2026-11-23T11:30:00Z".parse().unwrap(),
            message: String::new(),
        };
        self.commits.insert(sha.clone(), Arc::new(commit));
        if let Some(metadata) = self.files.get(head).cloned() {
            self.files.insert(sha.clone(), metadata);
        }
        self.branches.insert(base.to_owned(), sha.clone());
        sha
    }

    /// The files that a merge would make: those of one side, where the other has changed nothing since both
    /// parted, and else a mixture.
    pub(super) fn merged_tree(&self, base: &str, head: &str) -> String {
        let base = self.head(base);
        let (ours, theirs) = (self.tree(&base), self.tree(head));
        let (of_base, both) = (self.history(&base), self.history(head));
        let both: BTreeSet<_> = both.intersection(&of_base).copied().collect();
        let parents = |sha: &&str| self.parents(sha).iter().map(String::as_str);
        let older: BTreeSet<_> = both.iter().flat_map(parents).collect();
        let mut parted = both.difference(&older).map(|sha| self.tree(sha));
        match parted.find(|it| *it == ours || *it == theirs) {
            Some(unchanged) if unchanged == theirs => ours.to_owned(),
            Some(_) => theirs.to_owned(),
            None if ours == theirs => theirs.to_owned(),
            None => id(&format!("mixed {ours} {theirs}")),
        }
    }

    pub(super) fn tree(&self, sha: &str) -> &str {
        &self.commits[sha].tree
    }

    pub(super) fn parents(&self, sha: &str) -> &[String] {
        &self.commits[sha].parents
    }

    /// A commit and all before it.
    fn history<'r>(&'r self, sha: &'r str) -> BTreeSet<&'r str> {
        let (mut all, mut left) = (BTreeSet::new(), vec![sha]);
        while let Some(sha) = left.pop() {
            if all.insert(sha)
                && let Some(commit) = self.commits.get(sha)
            {
                left.extend(commit.parents.iter().map(String::as_str));
            }
        }
        all
    }

    pub(super) fn tell(&mut self, sha: &str, status: ForgeStatus) {
        self.statuses
            .entry(sha.to_owned())
            .or_default()
            .push(status);
    }

    pub(super) fn contains(&self, base: &str, commit: &str) -> bool {
        self.history(base).contains(commit)
    }

    /// From now on this is known.
    pub(super) fn learn(&mut self, wanted: &BTreeSet<Question>) {
        let is_unread = |it: &Question| match it {
            Question::Commit(sha) => self.unread.as_ref() == Some(sha),
            _ => false,
        };
        if !self.is_silent {
            let learned = wanted.iter().filter(|it| !is_unread(it));
            self.learned.extend(learned.cloned());
        }
    }

    pub(super) fn known(&self) -> usize {
        self.learned.len()
    }

    /// Two commits that the forge was asked to compare, although one was read, and names the other as its parent.
    pub(super) fn compared_needlessly(&self) -> Vec<&Question> {
        let names = |of: &String, parent: &String| {
            self.learned.contains(&Question::Commit(of.clone()))
                && self.parents(of).contains(parent)
        };
        let is_needless = |it: &&Question| match it {
            Question::Contains { base, commit } => names(base, commit) || names(commit, base),
            _ => false,
        };
        self.learned.iter().filter(is_needless).collect()
    }

    pub(super) fn forget(&mut self) {
        self.learned.clear();
    }
}

impl Evidence for Repository {
    fn heads(&self) -> Sight<Arc<Heads>> {
        match &self.trouble {
            Some(why) => Sight::Failed(why.clone()),
            None => Sight::Known(Arc::new(Heads {
                branches: self.branches.clone(),
                notes: match (&self.hidden_notes, self.notes.is_empty()) {
                    (Some(why), _) => Sight::Failed(why.clone()),
                    (None, true) => Sight::Absent,
                    (None, false) => Sight::Known(id(&format!("{:?}", self.notes))),
                },
            })),
        }
    }

    fn read_by(&self) -> Option<String> {
        Some("access".to_owned())
    }

    fn listed_at(&self) -> Option<Timestamp> {
        self.listed_at
    }

    fn is_list_failing(&self) -> bool {
        self.is_list_failing
    }

    fn answer(&self, question: &Question) -> Sight<Answer> {
        if !self.learned.contains(question) {
            return match self.fails {
                true => Sight::Failed("the forge answers 500".to_owned()),
                false => Sight::Pending,
            };
        }
        self.truth(question)
    }
}

impl Repository {
    /// The answer, whether or not it was asked for before.
    pub(super) fn truth(&self, question: &Question) -> Sight<Answer> {
        let text = |found: Option<&String>| match found {
            Some(text) => Sight::Known(Answer::Text(text.as_str().into())),
            None => Sight::Absent,
        };
        match question {
            Question::Commit(sha) => match self.commits.get(sha) {
                Some(commit) => Sight::Known(Answer::Commit(Arc::clone(commit))),
                None => Sight::Absent,
            },
            Question::Metadata(sha) => text(self.files.get(sha)),
            Question::Note { of, .. } => text(self.notes.get(of)),
            Question::Contains { base, commit } => match self.commits.contains_key(base) {
                true => Sight::Known(Answer::Contains(self.contains(base, commit))),
                false => Sight::Absent,
            },
            Question::Statuses(sha) => {
                let all = self.statuses.get(sha).cloned().unwrap_or_default();
                Sight::Known(Answer::Statuses(all.into()))
            }
        }
    }
}
