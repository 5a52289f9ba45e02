//! Gitea and Forgejo, by their REST API.
//!
//! What comes in: what a pull request needs. What goes out: what the forge has, or what it did. What was
//! observed of it is in a record (docs/design/2026-11-23-forges-for-pull-requests.md): most of what is
//! unusual here follows from that. Used: the rooms `address`, `call`, `names`, `outcome` and `pulls`.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use sluice_egress::Method;
use tokio::time::Instant;

use crate::address::{Address, encoded, encoded_path};
use crate::call::{Access, Api, Call, May, Paging, Sending, said, says};
use crate::names::{Branch, FilePath, Sha};
use crate::outcome::{Act, ForgeError, Missing, Trouble, Undone};
use crate::pulls::{
    Blob, Change, Commit, Committed, File, MOST_COMMITS, Merge, MergeMethod, NewPull, Pull,
    closed_body,
};
use shapes::{CommitShape, Committing, ContentShape, PullShape, References, RepositoryShape};

mod shapes;
mod statuses;

/// The most characters of a branch that the API makes. By a push it may be longer.
const LONGEST_BRANCH: usize = 100;

/// What is left out of commits.
const LITTLE: [(&str, &str); 3] = [
    ("stat", "false"),
    ("verification", "false"),
    ("files", "false"),
];

/// A repository on Gitea or Forgejo.
#[derive(Clone)]
pub(crate) struct Gitea(Api);

impl Gitea {
    pub(crate) fn new(access: Access, address: Address) -> Self {
        let headers = &[("accept", "application/json")];
        Self(Api::new(access, address, headers, Paging::Linked("limit")))
    }

    pub(crate) async fn head(&self, branch: &Branch) -> Result<Option<Sha>, ForgeError> {
        let call = self.0.call("read the head of a branch");
        head(&call, branch).await
    }

    pub(crate) async fn file(
        &self,
        commit: &Sha,
        path: &FilePath,
    ) -> Result<Option<File>, ForgeError> {
        let call = self.0.call("read a file");
        let path = format!("/contents/{}", encoded_path(path.as_str()));
        let Some(found) = call.find(&path, &[("ref", commit.as_str())]).await? else {
            return Ok(None);
        };
        let (text, sha) = match found {
            ContentShape::Entry { kind, content, sha } if kind == "file" => (content, sha),
            ContentShape::Entry { .. } | ContentShape::Folder(_) => {
                return Err(call.error(Trouble::NotAFile));
            }
        };
        let bytes = BASE64_STANDARD.decode(text.unwrap_or_default());
        let wrong = |_| call.error(Trouble::NotUnderstood("content".to_owned()));
        let bytes = bytes.map_err(wrong)?;
        Ok(Some(File {
            bytes,
            blob: Blob(sha),
        }))
    }

    /// One request. The base is given by the name of its branch; that no file has changed since it was read
    /// is guarded by the ids of the blobs. A file without one would be overwritten.
    pub(crate) async fn commit(&self, change: &Change<'_>, until: Instant) -> Act<Committed> {
        let call = self.0.call("commit to a new branch");
        if change.branch.as_str().chars().count() > LONGEST_BRANCH {
            return call.undone(Trouble::BranchTooLong(LONGEST_BRANCH));
        }
        let files = change.files.iter().map(|file| {
            json!({
                "operation": "update",
                "path": file.path.as_str(),
                "content": BASE64_STANDARD.encode(file.bytes),
                "sha": file.blob.0.as_str(),
            })
        });
        let body = json!({
            "branch": change.base.as_str(),
            "new_branch": change.branch.as_str(),
            "message": change.message,
            "files": files.collect::<Vec<_>>(),
        });
        let reply = call.send(Method::Post, "/contents", &body, until).await?;
        match reply.status {
            404 => Err(call.after_404(Trouble::Absent(Missing::BranchOrFile)).await),
            403 | 422 => {
                let trouble = match head(&call, change.branch).await {
                    Ok(Some(_)) => Trouble::BranchExists,
                    Ok(None) | Err(_) if says(&reply.body, "sha does not match") => {
                        Trouble::FileChanged
                    }
                    Ok(None) | Err(_) => call.trouble(&reply),
                };
                call.undone(trouble)
            }
            _ => {
                let Committing { commit } = call.made(&reply)?;
                let parent = commit.parents.into_iter().next();
                let wrong = || Trouble::NotUnderstood("commit.parents".to_owned());
                let parent = parent.ok_or_else(|| Undone::after(call.error(wrong())))?;
                Ok(Committed {
                    commit: commit.sha,
                    parent: parent.sha,
                })
            }
        }
    }

    pub(crate) async fn delete_branch(&self, branch: &Branch, until: Instant) -> Act<()> {
        let call = self.0.call("delete a branch");
        let path = format!("/branches/{}", encoded(branch.as_str()));
        let reply = call
            .send(Method::Delete, &path, Sending::Nothing, until)
            .await?;
        match reply.status {
            404 => Ok(call.sees_repository().await?),
            _ => call.done(&reply),
        }
    }

    pub(crate) async fn open_pulls(&self, base: &Branch) -> Result<Vec<Pull>, ForgeError> {
        let call = self.0.call("list the open pull requests");
        let query = [
            ("state", "open"),
            ("base_branch", base.as_str()),
            ("sort", "oldest"),
        ];
        let pulls: Vec<PullShape> = call.list("/pulls", &query).await?;
        let read = pulls
            .into_iter()
            .map(|pull| (pull.is_own(), pull.read(&call)));
        // Anybody may open one from a fork.
        let read = read.filter(|(is_own, read)| *is_own || read.is_ok());
        read.map(|(_, read)| read).collect()
    }

    /// Without `sort`, the newest come first.
    pub(crate) async fn newest(
        &self,
        prefix: &str,
        base: &Branch,
    ) -> Result<Option<Pull>, ForgeError> {
        let call = self.0.call("look for the newest pull request");
        let query = [("state", "all"), ("base_branch", base.as_str())];
        let is_under = |pull: &PullShape| pull.is_under(prefix);
        match call.first("/pulls", &query, is_under).await? {
            Some(found) => pull(&call, found.number).await,
            None => Ok(None),
        }
    }

    /// The oldest of this pair, as Gitea has it: a caller gives a branch a name that was never used.
    pub(crate) async fn find(
        &self,
        head: &Branch,
        base: &Branch,
    ) -> Result<Option<Pull>, ForgeError> {
        let call = self.0.call("look for a pull request");
        let (head, base) = (encoded(head.as_str()), encoded(base.as_str()));
        let found: Option<PullShape> = call.find(&format!("/pulls/{base}/{head}"), &[]).await?;
        match found {
            // Alone it also says who has merged it, and it is checked whether it can be merged.
            Some(found) => pull(&call, found.number).await,
            None => Ok(None),
        }
    }

    pub(crate) async fn pull(&self, number: u64) -> Result<Option<Pull>, ForgeError> {
        pull(&self.0.call("read a pull request"), number).await
    }

    pub(crate) async fn open(&self, new: &NewPull<'_>, until: Instant) -> Act<Pull> {
        let call = self.0.call("open a pull request");
        let body = json!({
            "title": new.title,
            "body": new.body,
            "head": new.head.as_str(),
            "base": new.base.as_str(),
        });
        let reply = call.send(Method::Post, "/pulls", &body, until).await?;
        match reply.status {
            404 => Err(call.after_404(Trouble::Absent(Missing::Branch)).await),
            409 => call.undone(Trouble::PullExists),
            _ => {
                let made: PullShape = call.made(&reply)?;
                made.read(&call).map_err(Undone::after)
            }
        }
    }

    pub(crate) async fn edit(
        &self,
        number: u64,
        (title, body): (&str, &str),
        may: May<'_>,
    ) -> Act<()> {
        let call = self.0.call("edit a pull request");
        let body = json!({"title": title, "body": body});
        let path = format!("/pulls/{number}");
        let reply = call.send_while(Method::Patch, &path, &body, may).await?;
        match reply.status {
            404 => Err(call.after_404(Trouble::Absent(Missing::Pull)).await),
            // Somebody has changed it in this moment.
            409 => call.undone(Trouble::Changed),
            _ => call.done(&reply),
        }
    }

    /// A comment would need another scope of the token, so that the reason is written into the body.
    pub(crate) async fn close(&self, pull: &Pull, reason: &str, until: Instant) -> Act<()> {
        let call = self.0.call("close a pull request");
        let body = json!({"state": "closed", "body": closed_body(&pull.body, reason)});
        let path = format!("/pulls/{}", pull.number);
        let reply = call.send(Method::Patch, &path, &body, until).await?;
        match reply.status {
            404 => Err(call.after_404(Trouble::Absent(Missing::Pull)).await),
            412 => call.undone(Trouble::AlreadyMerged),
            _ => call.done(&reply),
        }
    }

    /// The pull request is read first: that also makes Gitea check whether it can be merged.
    pub(crate) async fn merge(&self, number: u64, merge: &Merge<'_>, may: May<'_>) -> Act<()> {
        let call = self.0.call("merge a pull request");
        let turn = call.turn_while(may).await?;
        let Some(pull) = pull(&call, number).await? else {
            return call.undone(Trouble::Absent(Missing::Pull));
        };
        if let Err(trouble) = pull.mergeable(merge) {
            return call.undone(trouble);
        }
        let method = match merge.method {
            Some(MergeMethod::Merge) => "merge".to_owned(),
            Some(MergeMethod::Squash) => "squash".to_owned(),
            Some(MergeMethod::Rebase) => "rebase".to_owned(),
            None | Some(MergeMethod::NoRebase) => {
                let usual: RepositoryShape = call.get("", &[], Missing::Pull).await?;
                match merge.method {
                    None => usual.default_merge_style,
                    Some(_) => match usual.without_rebase() {
                        Ok(style) => style,
                        Err(trouble) => return call.undone(trouble),
                    },
                }
            }
        };
        let body = json!({"Do": method, "head_commit_id": merge.head.as_str()});
        let path = format!("/pulls/{number}/merge");
        let reply = call.send_in(&turn, Method::Post, &path, &body, may).await?;
        let words = said(&reply.body).unwrap_or_default();
        match reply.status {
            404 => call.undone(Trouble::Closed),
            // Both mean that something was pushed in between.
            409 if words.contains("head out of date") => call.undone(Trouble::HeadMoved),
            409 => call.undone(Trouble::Changed),
            405 if words.contains("try again later") => call.undone(Trouble::NotYet),
            405 if words.contains("already merged") => call.undone(Trouble::AlreadyMerged),
            405 if words.contains("User not allowed") => {
                call.undone(Trouble::NoRight(call.words(&reply)))
            }
            405 => call.undone(Trouble::NotMergeable(call.words(&reply))),
            _ => call.done(&reply),
        }
    }

    pub(crate) async fn read_commit(&self, commit: &Sha) -> Result<Option<Commit>, ForgeError> {
        let call = self.0.call("read a commit");
        Ok(read_commit(&call, commit).await?.map(CommitShape::read))
    }

    pub(crate) async fn commits(&self, number: u64) -> Result<Vec<Commit>, ForgeError> {
        let call = self.0.call("read the commits of a pull request");
        let mut query = LITTLE.to_vec();
        query.push(("limit", MOST_COMMITS));
        let path = format!("/pulls/{number}/commits");
        let found: Option<Vec<CommitShape>> = call.find(&path, &query).await?;
        let found = found.unwrap_or_default().into_iter();
        Ok(found.map(CommitShape::read).collect())
    }

    pub(crate) async fn contains(&self, base: &Sha, commit: &Sha) -> Result<bool, ForgeError> {
        let call = self.0.call("compare two commits");
        let query = [
            ("sha", commit.as_str()),
            ("not", base.as_str()),
            ("limit", "1"),
            ("stat", "false"),
            ("verification", "false"),
            ("files", "false"),
        ];
        let reply = call.ask("/commits", &query).await?;
        match reply.status {
            404 => {
                call.sees_repository().await?;
                Err(call.error(Trouble::Absent(Missing::Commit)))
            }
            500 if !has_commit(&call, base).await? || !has_commit(&call, commit).await? => {
                Err(call.error(Trouble::Absent(Missing::Commit)))
            }
            _ => {
                let ahead: Vec<CommitShape> = call.read(&reply)?;
                Ok(ahead.is_empty())
            }
        }
    }
}

/// By Git's own references: the list of branches is of a database that follows a moment later. All that
/// begin with the name are given.
async fn head(call: &Call<'_>, branch: &Branch) -> Result<Option<Sha>, ForgeError> {
    let path = format!("/git/refs/heads/{}", encoded_path(branch.as_str()));
    let found: Option<References> = call.find(&path, &[]).await?;
    let found = match found {
        None => Vec::new(),
        Some(References::One(one)) => vec![one],
        Some(References::Several(several)) => several,
    };
    let name = branch.reference();
    let found = found.into_iter().find(|found| found.name == name);
    Ok(found.map(|found| found.object.sha))
}

async fn pull(call: &Call<'_>, number: u64) -> Result<Option<Pull>, ForgeError> {
    let found: Option<PullShape> = call.find(&format!("/pulls/{number}"), &[]).await?;
    found.map(|pull| pull.read(call)).transpose()
}

async fn read_commit(call: &Call<'_>, commit: &Sha) -> Result<Option<CommitShape>, ForgeError> {
    call.find(&format!("/git/commits/{commit}"), &LITTLE).await
}

async fn has_commit(call: &Call<'_>, commit: &Sha) -> Result<bool, ForgeError> {
    Ok(read_commit(call, commit).await?.is_some())
}
