//! The commit with the tree of another one: its id follows from the spec, so that it is the same however often it
//! is made.

use jiff::Timestamp;
use sluice_core::delivery::promotion_strategy::join_message;
use sluice_core::delivery::pull_request::{Joining, Outcome, Word};
use sluice_crds::pull_request::{Change, Tree};
use sluice_forges::{NewCommit, Sha, Target, Update};

use super::{Job, Stopped};

impl Job<'_> {
    /// The commit, where the spec has a tree.
    pub(super) fn of_tree(&self) -> Result<Option<NewCommit>, Stopped> {
        let Some(Change::Tree(tree)) = &self.object.spec.change else {
            return Ok(None);
        };
        let Tree {
            of,
            parent,
            message,
            date,
        } = tree;
        let wrong = |field: &str, what: &str| {
            let message = format!("change.tree.{field}: it is no {what}");
            Stopped::new(Word::InvalidSpec, message)
        };
        let sha = |field, text| Sha::parse(text).ok_or_else(|| wrong(field, "id of Git"));
        Ok(Some(NewCommit {
            tree: sha("of", of)?,
            parents: vec![sha("parent", parent)?],
            author: self.desk.at.author(),
            at: Timestamp::from_second(*date).map_err(|_| wrong("date", "date"))?,
            message: message.clone(),
        }))
    }

    /// Puts a commit on its branch that changes no file, and joins what the target branch has. If the branch
    /// has another commit by now, nothing is pushed.
    pub(super) async fn join(&self, joining: &Joining) -> Result<Outcome, Stopped> {
        let Joining {
            head,
            active,
            tree,
            at,
        } = joining;
        let wrong = || Stopped::new(Word::InvalidSpec, "what is to be joined is no id of Git");
        let sha = |text: &str| Sha::parse(text).ok_or_else(wrong);
        let from = sha(head)?;
        let commit = NewCommit {
            tree: sha(tree)?,
            parents: vec![from.clone(), sha(active)?],
            author: self.desk.at.author(),
            at: *at,
            message: join_message(self.base.as_str(), active),
        };
        let update = Update {
            branch: &self.head,
            from: Some(&from),
            to: Target::New(&commit),
        };
        self.forge().push(&update, self.desk.may_act).await?;
        Ok(Outcome::Done)
    }

    /// Pushes it to our branch, which has this commit now.
    pub(super) async fn push(
        &self,
        commit: &NewCommit,
        head: Option<Sha>,
    ) -> Result<Outcome, Stopped> {
        let id = commit.id();
        match head {
            Some(head) if head == id => {}
            Some(_) => return Err(self.touched()),
            None => {
                let update = Update {
                    branch: &self.head,
                    from: None,
                    to: Target::New(commit),
                };
                self.forge().push(&update, self.desk.may_act).await?;
            }
        }
        Ok(Outcome::Committed(id.to_string()))
    }
}
