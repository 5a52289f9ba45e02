//! GitHub, by its REST API.
//!
//! What comes in: what a pull request needs. What goes out: what the forge has, or what it did. Written from
//! the public documentation (docs.github.com/rest) and shown against contracts (`contracts/github`). Used:
//! the rooms `address`, `call`, `names`, `outcome` and `pulls`.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use sluice_egress::Method;
use tokio::time::Instant;

use crate::address::{Address, encoded_path};
use crate::call::{Access, Api, Call, May, Paging, Sending, says};
use crate::names::{Branch, FilePath, Sha};
use crate::outcome::{Act, ForgeError, Missing, Trouble, Undone, Words};
use crate::pulls::{
    Blob, Change, Commit as Seen, Committed, File, MOST_COMMITS, Merge, MergeMethod, Mergeable,
    NewPull, Pull, closed_body, foremost,
};
pub use app::{App, AppError, AppTokens};
use shapes::{
    Commit, CommitShape, Compared, Content, ListedCommit, Made, Object, PullShape, Reference,
    Repository,
};

mod app;
mod shapes;
mod statuses;

/// What a 404 to a change means where the repository can be seen: GitHub says 404 for what the token may not
/// do, and 422 for a branch or commit that is not there.
const NO_RIGHT: Trouble = Trouble::NoRight(Words::NONE);

/// A repository on GitHub.
#[derive(Clone)]
pub(crate) struct GitHub(Api);

impl GitHub {
    pub(crate) fn new(access: Access, address: Address) -> Self {
        let headers = &[
            ("accept", "application/vnd.github+json"),
            ("x-github-api-version", "2022-11-28"),
        ];
        let paging = Paging::Linked("per_page");
        Self(Api::new(access, address, headers, paging))
    }

    pub(crate) async fn head(&self, branch: &Branch) -> Result<Option<Sha>, ForgeError> {
        head(&self.0.call("read the head of a branch"), branch).await
    }

    pub(crate) async fn file(
        &self,
        commit: &Sha,
        path: &FilePath,
    ) -> Result<Option<File>, ForgeError> {
        let call = self.0.call("read a file");
        let path = format!("/contents/{}", encoded_path(path.as_str()));
        let found = call.find(&path, &[("ref", commit.as_str())]).await?;
        let Content {
            kind,
            encoding,
            content,
            sha,
        } = match found {
            None => return Ok(None),
            Some(Object::One(content)) => content,
            Some(Object::Folder(_)) => return Err(call.error(Trouble::NotAFile)),
        };
        if kind != "file" {
            return Err(call.error(Trouble::NotAFile));
        }
        let wrong = || call.error(Trouble::NotUnderstood("content".to_owned()));
        // It is broken into lines.
        let text: String = content.split_ascii_whitespace().collect();
        let bytes = BASE64_STANDARD.decode(text).map_err(|_| wrong())?;
        match encoding.as_str() {
            "base64" => Ok(Some(File {
                bytes,
                blob: Blob(sha),
            })),
            _ => Err(wrong()),
        }
    }

    /// Blobs, a tree and a commit are seen by nobody until a branch is made of them. They are made from the
    /// commit that the files were read at, which is the guard. A file becomes a regular one that cannot be
    /// executed.
    pub(crate) async fn commit(&self, change: &Change<'_>, until: Instant) -> Act<Committed> {
        let call = self.0.call("commit to a new branch");
        let path = format!("/git/commits/{}", change.from);
        let base: Commit = call.get(&path, &[], Missing::Commit).await?;
        let mut entries = Vec::new();
        for file in change.files {
            let content = BASE64_STANDARD.encode(file.bytes);
            let body = json!({"content": content, "encoding": "base64"});
            let blob = unseen(&call, "/git/blobs", &body, until).await?;
            let path = file.path.as_str();
            let sha = blob.as_str();
            entries.push(json!({"path": path, "mode": "100644", "type": "blob", "sha": sha}));
        }
        let body = json!({"base_tree": base.tree.sha.as_str(), "tree": entries});
        let tree = unseen(&call, "/git/trees", &body, until).await?;
        let body = json!({
            "message": change.message,
            "tree": tree.as_str(),
            "parents": [change.from.as_str()],
        });
        let commit = unseen(&call, "/git/commits", &body, until).await?;

        let body = json!({"ref": change.branch.reference(), "sha": commit.as_str()});
        let reply = call.send(Method::Post, "/git/refs", &body, until).await?;
        match reply.status {
            404 => Err(call.after_404(NO_RIGHT).await),
            422 => match head(&call, change.branch).await {
                Ok(Some(_)) => call.undone(Trouble::BranchExists),
                Ok(None) | Err(_) => call.undone(call.trouble(&reply)),
            },
            _ => {
                call.done(&reply)?;
                let parent = change.from.clone();
                Ok(Committed { commit, parent })
            }
        }
    }

    pub(crate) async fn delete_branch(&self, branch: &Branch, until: Instant) -> Act<()> {
        let call = self.0.call("delete a branch");
        let path = format!("/git/refs/heads/{}", encoded_path(branch.as_str()));
        let reply = call
            .send(Method::Delete, &path, Sending::Nothing, until)
            .await?;
        match reply.status {
            404 | 422 => match head(&call, branch).await? {
                None => Ok(()),
                Some(_) => call.done(&reply),
            },
            _ => call.done(&reply),
        }
    }

    pub(crate) async fn open_pulls(&self, base: &Branch) -> Result<Vec<Pull>, ForgeError> {
        let call = self.0.call("list the open pull requests");
        let query = [
            ("state", "open"),
            ("base", base.as_str()),
            ("sort", "created"),
            ("direction", "asc"),
        ];
        let pulls: Vec<PullShape> = call.list("/pulls", &query).await?;
        Ok(pulls.into_iter().map(PullShape::read).collect())
    }

    pub(crate) async fn newest(
        &self,
        prefix: &str,
        base: &Branch,
    ) -> Result<Option<Pull>, ForgeError> {
        let call = self.0.call("look for the newest pull request");
        let query = [
            ("state", "all"),
            ("base", base.as_str()),
            ("sort", "created"),
            ("direction", "desc"),
        ];
        let is_under = |pull: &PullShape| pull.is_under(prefix);
        match call.first("/pulls", &query, is_under).await? {
            Some(found) => pull(&call, found.number).await,
            None => Ok(None),
        }
    }

    pub(crate) async fn find(
        &self,
        head: &Branch,
        base: &Branch,
    ) -> Result<Option<Pull>, ForgeError> {
        let call = self.0.call("look for a pull request");
        let head = format!("{}:{head}", self.0.address.owner());
        let query = [
            ("state", "all"),
            ("head", head.as_str()),
            ("base", base.as_str()),
        ];
        let pulls: Vec<PullShape> = call.list("/pulls", &query).await?;
        let own = pulls
            .into_iter()
            .map(PullShape::read)
            .filter(|pull| pull.own);
        match foremost(own.collect()) {
            // Alone it also says who has merged it, and whether it can be merged.
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
            404 => Err(call.after_404(NO_RIGHT).await),
            422 if says(&reply.body, "already exists") => call.undone(Trouble::PullExists),
            422 if says(&reply.body, "No commits between") => call.undone(Trouble::NothingToMerge),
            422 if has_no_branch(&reply.body) => call.undone(Trouble::Absent(Missing::Branch)),
            _ => Ok(call.made::<PullShape>(&reply)?.read()),
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
            _ => call.done(&reply),
        }
    }

    pub(crate) async fn close(&self, pull: &Pull, reason: &str, until: Instant) -> Act<()> {
        let call = self.0.call("close a pull request");
        let body = json!({"state": "closed", "body": closed_body(&pull.body, reason)});
        let path = format!("/pulls/{}", pull.number);
        let reply = call.send(Method::Patch, &path, &body, until).await?;
        match reply.status {
            404 => Err(call.after_404(Trouble::Absent(Missing::Pull)).await),
            _ => {
                let made = call.made::<PullShape>(&reply)?.read();
                made.closed().or_else(|trouble| call.undone(trouble))
            }
        }
    }

    /// The pull request is read first: that also makes GitHub check whether it can be merged.
    pub(crate) async fn merge(&self, number: u64, merge: &Merge<'_>, may: May<'_>) -> Act<()> {
        let call = self.0.call("merge a pull request");
        let turn = call.turn_while(may).await?;
        let Some(pull) = pull(&call, number).await? else {
            return call.undone(Trouble::Absent(Missing::Pull));
        };
        match pull.mergeable(merge) {
            Ok(Mergeable::Yes | Mergeable::Unsaid) => {}
            Ok(Mergeable::Conflict) => return call.undone(Trouble::Conflict),
            Ok(Mergeable::Unknown) => return call.undone(Trouble::NotYet),
            Err(trouble) => return call.undone(trouble),
        }
        let method = match merge.method {
            Some(MergeMethod::Merge) => "merge",
            Some(MergeMethod::Squash) => "squash",
            Some(MergeMethod::Rebase) => "rebase",
            None | Some(MergeMethod::NoRebase) => {
                let repository: Repository = call.get("", &[], Missing::Pull).await?;
                match repository.method() {
                    "rebase" if merge.method.is_some() => return call.undone(Trouble::OnlyRebases),
                    allowed => allowed,
                }
            }
        };
        let body = json!({"sha": merge.head.as_str(), "merge_method": method});
        let path = format!("/pulls/{number}/merge");
        let reply = call.send_in(&turn, Method::Put, &path, &body, may).await?;
        match reply.status {
            404 => Err(call.after_404(NO_RIGHT).await),
            409 => call.undone(Trouble::HeadMoved),
            405 if says(&reply.body, "Base branch was modified") => call.undone(Trouble::Changed),
            405 => call.undone(Trouble::NotMergeable(call.words(&reply))),
            _ => call.done(&reply),
        }
    }

    pub(crate) async fn read_commit(&self, commit: &Sha) -> Result<Option<Seen>, ForgeError> {
        let call = self.0.call("read a commit");
        let found: Option<CommitShape> = call.find(&format!("/git/commits/{commit}"), &[]).await?;
        Ok(found.map(CommitShape::read))
    }

    pub(crate) async fn commits(&self, number: u64) -> Result<Vec<Seen>, ForgeError> {
        let call = self.0.call("read the commits of a pull request");
        let path = format!("/pulls/{number}/commits");
        let query = [("per_page", MOST_COMMITS)];
        let found: Option<Vec<ListedCommit>> = call.find(&path, &query).await?;
        let found = found.unwrap_or_default().into_iter();
        Ok(found.map(ListedCommit::read).collect())
    }

    /// The second page of the comparison has no files.
    pub(crate) async fn contains(&self, base: &Sha, commit: &Sha) -> Result<bool, ForgeError> {
        let call = self.0.call("compare two commits");
        let path = format!("/compare/{base}...{commit}");
        let query = [("per_page", "1"), ("page", "2")];
        let compared: Compared = call.get(&path, &query, Missing::Commit).await?;
        Ok(compared.ahead_by == 0)
    }
}

async fn head(call: &Call<'_>, branch: &Branch) -> Result<Option<Sha>, ForgeError> {
    let path = format!("/git/ref/heads/{}", encoded_path(branch.as_str()));
    let found: Option<Reference> = call.find(&path, &[]).await?;
    Ok(found.map(|found| found.object.sha))
}

async fn pull(call: &Call<'_>, number: u64) -> Result<Option<Pull>, ForgeError> {
    let found: Option<PullShape> = call.find(&format!("/pulls/{number}"), &[]).await?;
    Ok(found.map(PullShape::read))
}

/// Makes an object that nobody sees yet: if it is not known whether it was made, nothing was done.
async fn unseen(call: &Call<'_>, path: &str, body: &Value, until: Instant) -> Act<Sha> {
    let made = async {
        let reply = call.send(Method::Post, path, body, until).await?;
        match reply.status {
            404 => Err(call.after_404(NO_RIGHT).await),
            _ => Ok(call.made::<Made>(&reply)?.sha),
        }
    };
    made.await.map_err(|undone| match undone {
        Undone::Unknown(error) | Undone::NotDone(error) => Undone::NotDone(error),
        Undone::Refused(error) => Undone::Refused(error),
    })
}

/// Whether a pull request was refused because one of its branches is not there.
fn has_no_branch(body: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        return false;
    };
    let errors = value["errors"].as_array().into_iter().flatten();
    let is_branch = |field: &Value| matches!(field.as_str(), Some("head" | "base"));
    errors
        .into_iter()
        .any(|error| is_branch(&error["field"]) && error["code"] == "invalid")
}
