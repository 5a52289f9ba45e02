//! A forge: its pull requests and commit statuses, and what is done there for a PullRequest.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sluice_core::delivery::pull_request::{
    Failure, Fate, Joining, Mergeable, Outcome, Pull as Shown, Task, Telling, Text, Word,
    is_followed,
};
use sluice_crds::PullRequest;
use sluice_crds::pipeline::MergeGate;
use sluice_crds::promotion_strategy::Join;
use sluice_crds::pull_request::Change;

use crate::world::World;

/// The label that holds a pull request back.
const HOLD: &str = "sluice/hold";

/// A pull request.
#[derive(Clone, Debug)]
pub(super) struct Pull {
    pub(super) number: i64,
    pub(super) source: String,
    pub(super) target: String,
    title: String,
    description: String,
    pub(super) state: State,
    pub(super) draft: bool,
    pub(super) is_held: bool,
}

/// What has become of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    Closed,
    Merged { commit: String, by: &'static str },
}

/// A merge that the forge was asked for, and that comes about later.
#[derive(Clone, Debug)]
pub(super) struct Late {
    number: i64,
    head: String,
    sent: Timestamp,
}

/// The forge.
#[derive(Clone, Default)]
pub(super) struct Forge {
    pub(super) pulls: Vec<Pull>,
    /// What each commit status says, by commit and name.
    pub(super) statuses: BTreeMap<(String, String), MergeGate>,
    pub(super) late: Vec<Late>,
    /// It answers nobody.
    pub(super) is_down: bool,
}

impl Forge {
    fn pull(&mut self, number: i64) -> &mut Pull {
        let mut all = self.pulls.iter_mut();
        all.find(|it| it.number == number).unwrap()
    }

    /// The open ones of both branches, the oldest first.
    fn open_of(&self, object: &PullRequest) -> impl Iterator<Item = &Pull> {
        let all = self.of(object);
        all.filter(|it| it.state == State::Open)
    }

    fn of(&self, object: &PullRequest) -> impl Iterator<Item = &Pull> {
        let (source, target) = (
            object.spec.source_branch.clone(),
            object.spec.target_branch.clone(),
        );
        let all = self.pulls.iter();
        all.filter(move |it| it.source == source && it.target == target)
    }
}

impl World {
    /// Does a task at the forge.
    pub(super) fn perform(&mut self, object: &PullRequest, task: &Task) -> Result<Outcome, String> {
        Ok(match task {
            Task::Commit => self.make_commit(object),
            Task::Open { commit } => self.open(object, commit.as_deref()),
            Task::Look { number, commit, .. } => self.seen(*number, commit.as_deref()),
            Task::SetStatus(telling) => {
                self.tells(object, telling)?;
                let Telling {
                    commit, context, ..
                } = telling;
                let of = (commit.clone(), context.clone());
                self.forge.statuses.insert(of, telling.gate);
                Outcome::Done
            }
            Task::Edit {
                number,
                title,
                description,
            } => {
                let pull = self.forge.pull(*number);
                (pull.title, pull.description) = (title.clone(), description.clone());
                Outcome::Done
            }
            Task::Join(joining) => self.join(object, joining)?,
            Task::Merge { number, commit, .. } => return self.merge(object, *number, commit),
            Task::Close { number, commit, .. } => {
                let number = number.or_else(|| Some(self.forge.of(object).last()?.number));
                let Some(number) = number else {
                    return Ok(Outcome::NoPull);
                };
                let pull = self.forge.pull(number);
                if pull.state == State::Open {
                    pull.state = State::Closed;
                }
                self.seen(number, commit.as_deref())
            }
            Task::DeleteBranch { commit } => {
                let branch = &object.spec.source_branch;
                if commit.is_some() && self.git.find(branch) == *commit {
                    let branch = branch.clone();
                    self.git().remove(&branch);
                }
                Outcome::Done
            }
        })
    }

    /// The commit of a revert.
    fn make_commit(&mut self, object: &PullRequest) -> Outcome {
        let Some(Change::Tree(tree)) = &object.spec.change else {
            unreachable!("no commit is made of {object:?}");
        };
        let (branch, last) = (&object.spec.source_branch, self.forge.of(object).last());
        match (
            last.map(|it| (it.number, it.state.clone())),
            self.git.find(branch),
        ) {
            (Some((_, State::Open)) | None, Some(head)) => Outcome::Committed(head),
            (Some((number, _)), _) => self.seen(number, None),
            (None, None) => Outcome::Committed(self.git().of_tree(branch, tree)),
        }
    }

    fn open(&mut self, object: &PullRequest, commit: Option<&str>) -> Outcome {
        let is_followed = is_followed(object);
        let known = match is_followed {
            true => self.forge.open_of(object).next(),
            false => self.forge.of(object).last(),
        };
        if let Some(number) = known.map(|it| it.number) {
            return self.seen(number, commit);
        }
        let spec = &object.spec;
        if self.git.find(&spec.source_branch).is_none() {
            return Outcome::Failed(Failure::new(Word::NoCommit, "there is no such branch"));
        }
        let number = i64::try_from(self.forge.pulls.len()).unwrap() + 1;
        self.forge.pulls.push(Pull {
            number,
            source: spec.source_branch.clone(),
            target: spec.target_branch.clone(),
            title: spec.title.clone(),
            description: spec.description.clone(),
            state: State::Open,
            draft: false,
            is_held: false,
        });
        self.seen(number, commit)
    }

    /// What has become of a pull request. `ours`: our commit, if nobody else pushes to its branch.
    fn seen(&self, number: i64, ours: Option<&str>) -> Outcome {
        let mut all = self.forge.pulls.iter();
        let pull = all.find(|it| it.number == number).unwrap();
        let head = self.git.find(&pull.source);
        let fate = match (&pull.state, &head) {
            (State::Open, Some(head)) => Fate::Open(head.clone()),
            (State::Open, None) | (State::Closed, _) => Fate::Closed,
            (State::Merged { commit, by }, _) => {
                let parents = self.git.parents(commit);
                Fate::Merged {
                    commit: Some(commit.clone()),
                    onto: parents.first().cloned(),
                    by: Some((*by).to_owned()),
                    head: parents.get(1).cloned(),
                    is_touched: false,
                }
            }
        };
        // Nobody else pushes to the branch of a revert.
        assert!(ours.is_none() || head.is_none() || head.as_deref() == ours);
        let labels = pull.is_held.then(|| HOLD.to_owned());
        let shown = Shown {
            number,
            url: format!("https://git.example.com/acme/shop/pulls/{number}"),
            text: Some(Text::of(&pull.title, &pull.description)),
            draft: pull.draft,
            labels: labels.into_iter().collect(),
            labels_cut: false,
            mergeable: match &head {
                Some(head) if self.conflicts(&pull.target, head) => Mergeable::Conflict,
                _ => Mergeable::Yes,
            },
        };
        Outcome::Seen(shown, fate)
    }

    /// Whether both sides have changed the same lines: of what would be a mixture, a half.
    fn conflicts(&self, target: &str, head: &str) -> bool {
        let merged = self.git.merged_tree(target, head);
        let base = self.git.head(target);
        let is_mixed = merged != self.git.tree(head) && merged != self.git.tree(&base);
        is_mixed && merged.as_bytes()[0].is_multiple_of(2)
    }

    fn join(&mut self, object: &PullRequest, joining: &Joining) -> Result<Outcome, String> {
        let branch = &object.spec.source_branch;
        if self.git.find(branch).as_ref() != Some(&joining.head) {
            let failure = Failure::new(Word::Changed, "it has another commit by now");
            return Ok(Outcome::Failed(failure));
        }
        self.joins(object, joining)?;
        let join = Join {
            head_sha: joining.head.clone(),
            active_sha: joining.active.clone(),
            tree: joining.tree.clone(),
            at: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(joining.at),
        };
        self.git().join(branch, &join);
        Ok(Outcome::Done)
    }

    /// The merge that an order asks for, now.
    fn merge(&mut self, object: &PullRequest, number: i64, head: &str) -> Result<Outcome, String> {
        let pull = self.forge.pull(number).clone();
        let ours = Some(head).filter(|_| !is_followed(object));
        let is_there = pull.state == State::Open
            && self.git.find(&pull.source).as_deref() == Some(head)
            && !(ours.is_none() && (pull.draft || pull.is_held));
        if !is_there {
            return Ok(self.seen(number, ours));
        }
        let held = |word| Ok(Outcome::Held(Failure::new(word, "the forge says so")));
        if self.conflicts(&pull.target, head) {
            return held(Word::Conflict);
        }
        if self.git.contains(&self.git.head(&pull.target), head) {
            return held(Word::NotYet);
        }
        self.merges(&pull, head, self.now)?;
        self.merge_pull(number, "sluice");
        Ok(self.seen(number, ours))
    }

    /// The forge has the request, and nobody knows what becomes of it.
    pub(super) fn delay(&mut self, object: &PullRequest, task: &Task) {
        if let Task::Merge { number, commit, .. } = task
            && object.status.is_some()
        {
            self.forge.late.push(Late {
                number: *number,
                head: commit.clone(),
                sent: self.now,
            });
        }
    }

    /// A merge comes about that the forge was asked for before.
    pub(super) fn late(&mut self) -> Result<(), String> {
        let Some(Late { number, head, sent }) = self.forge.late.pop() else {
            return Ok(());
        };
        let pull = self.forge.pull(number).clone();
        let is_there = pull.state == State::Open
            && self.git.find(&pull.source).as_ref() == Some(&head)
            && !self.conflicts(&pull.target, &head)
            && !self.git.contains(&self.git.head(&pull.target), &head);
        if is_there {
            self.merges(&pull, &head, sent)?;
            self.merge_pull(number, "sluice");
        }
        Ok(())
    }

    /// A pull request is merged.
    pub(super) fn merge_pull(&mut self, number: i64, by: &'static str) {
        let squashes = self.setup.squashes;
        let pull = self.forge.pull(number).clone();
        let head = self.git.head(&pull.source);
        let before = self.git.head(&pull.target);
        let git = self.git();
        let commit = match squashes {
            true => git.squash(&pull.target, &head),
            false => git.merge(&pull.target, &head),
        };
        self.forge.pull(number).state = State::Merged {
            commit: commit.clone(),
            by,
        };
        self.merged(&pull, (&before, &head), &commit);
    }

    /// The open pull requests into a branch.
    pub(super) fn open_into(&mut self, branch: &str) -> impl Iterator<Item = &mut Pull> {
        let all = self.forge.pulls.iter_mut();
        let branch = branch.to_owned();
        all.filter(move |it| it.target == branch && it.state == State::Open)
    }
}
