//! GitLab, by its REST API.
//!
//! What comes in: what a pull request needs: a merge request, as GitLab calls it. What goes out: what the
//! forge has, or what it did. Written from the public documentation (docs.gitlab.com/api) and shown against
//! contracts (`contracts/gitlab`). Used: the rooms `address`, `call`, `names`, `outcome` and `pulls`.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};
use sluice_egress::Method;
use tokio::time::Instant;

use crate::address::{Address, encoded};
use crate::call::{Access, Api, Call, May, Paging, Sending};
use crate::names::{Branch, FilePath, Sha};
use crate::outcome::{Act, ForgeError, Missing, Trouble, Undone};
use crate::pulls::{
    Blob, Change, Commit as Seen, Committed, File, MOST_COMMITS, Merge, MergeMethod, Mergeable,
    NewPull, Pull, closed_body, foremost,
};
use shapes::{BranchShape, Commit, CommitShape, FileShape, Made, RequestShape};

mod shapes;
mod statuses;

/// A project on GitLab.
#[derive(Clone)]
pub(crate) struct GitLab(Api);

impl GitLab {
    pub(crate) fn new(access: Access, address: Address) -> Self {
        let headers = &[("accept", "application/json")];
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
        let path = format!("/repository/files/{}", encoded(path.as_str()));
        let found = call.find(&path, &[("ref", commit.as_str())]).await?;
        let Some(FileShape {
            content,
            encoding,
            blob_id,
        }) = found
        else {
            return Ok(None);
        };
        let wrong = || call.error(Trouble::NotUnderstood("content".to_owned()));
        let bytes = BASE64_STANDARD.decode(content).map_err(|_| wrong())?;
        match encoding.as_str() {
            "base64" => Ok(Some(File {
                bytes,
                blob: Blob(blob_id),
            })),
            _ => Err(wrong()),
        }
    }

    /// The branch is made from the commit that the files were read at, which is the guard.
    pub(crate) async fn commit(&self, change: &Change<'_>, until: Instant) -> Act<Committed> {
        let call = self.0.call("commit to a new branch");
        let actions = change.files.iter().map(|file| {
            json!({
                "action": "update",
                "file_path": file.path.as_str(),
                "content": BASE64_STANDARD.encode(file.bytes),
                "encoding": "base64",
            })
        });
        let body = json!({
            "branch": change.branch.as_str(),
            "start_sha": change.from.as_str(),
            "commit_message": change.message,
            "actions": actions.collect::<Vec<_>>(),
        });
        let path = "/repository/commits";
        let reply = call.send(Method::Post, path, &body, until).await?;
        match reply.status {
            404 => Err(call.after_404(Trouble::Absent(Missing::Commit)).await),
            400 => match head(&call, change.branch).await {
                Ok(Some(_)) => call.undone(Trouble::BranchExists),
                Ok(None) | Err(_) => call.undone(call.trouble(&reply)),
            },
            _ => {
                let made: Made = call.made(&reply)?;
                let wrong = || Trouble::NotUnderstood("parent_ids".to_owned());
                let parent = made.parent_ids.into_iter().next();
                let parent = parent.ok_or_else(|| Undone::after(call.error(wrong())))?;
                Ok(Committed {
                    commit: made.id,
                    parent,
                })
            }
        }
    }

    pub(crate) async fn delete_branch(&self, branch: &Branch, until: Instant) -> Act<()> {
        let call = self.0.call("delete a branch");
        let path = format!("/repository/branches/{}", encoded(branch.as_str()));
        let reply = call
            .send(Method::Delete, &path, Sending::Nothing, until)
            .await?;
        match reply.status {
            404 => Ok(call.sees_repository().await?),
            _ => call.done(&reply),
        }
    }

    pub(crate) async fn open_pulls(&self, base: &Branch) -> Result<Vec<Pull>, ForgeError> {
        let call = self.0.call("list the open merge requests");
        let query = [
            ("state", "opened"),
            ("target_branch", base.as_str()),
            ("order_by", "created_at"),
            ("sort", "asc"),
        ];
        let requests: Vec<RequestShape> = call.list("/merge_requests", &query).await?;
        let listed = requests.into_iter().filter(RequestShape::has_head);
        listed.map(|request| request.read(&call)).collect()
    }

    pub(crate) async fn newest(
        &self,
        prefix: &str,
        base: &Branch,
    ) -> Result<Option<Pull>, ForgeError> {
        let call = self.0.call("look for the newest merge request");
        let query = [
            ("state", "all"),
            ("target_branch", base.as_str()),
            ("order_by", "created_at"),
            ("sort", "desc"),
        ];
        let is_under = |request: &RequestShape| request.is_under(prefix);
        let found = call.first("/merge_requests", &query, is_under).await?;
        found.map(|request| request.read(&call)).transpose()
    }

    pub(crate) async fn find(
        &self,
        head: &Branch,
        base: &Branch,
    ) -> Result<Option<Pull>, ForgeError> {
        let call = self.0.call("look for a merge request");
        let query = [
            ("state", "all"),
            ("source_branch", head.as_str()),
            ("target_branch", base.as_str()),
        ];
        let requests: Vec<RequestShape> = call.list("/merge_requests", &query).await?;
        let read = requests.into_iter().map(|request| request.read(&call));
        let mut pulls = read.collect::<Result<Vec<_>, _>>()?;
        pulls.retain(|pull| pull.own);
        Ok(foremost(pulls))
    }

    pub(crate) async fn pull(&self, number: u64) -> Result<Option<Pull>, ForgeError> {
        pull(&self.0.call("read a merge request"), number).await
    }

    pub(crate) async fn open(&self, new: &NewPull<'_>, until: Instant) -> Act<Pull> {
        let call = self.0.call("open a merge request");
        let body = json!({
            "title": new.title,
            "description": new.body,
            "source_branch": new.head.as_str(),
            "target_branch": new.base.as_str(),
        });
        let path = "/merge_requests";
        let reply = call.send(Method::Post, path, &body, until).await?;
        match reply.status {
            404 => Err(call.after_404(Trouble::Absent(Missing::Branch)).await),
            409 => call.undone(Trouble::PullExists),
            _ => {
                let made: RequestShape = call.made(&reply)?;
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
        let call = self.0.call("edit a merge request");
        let body = json!({"title": title, "description": body});
        let path = format!("/merge_requests/{number}");
        let reply = call.send_while(Method::Put, &path, &body, may).await?;
        match reply.status {
            404 => Err(call.after_404(Trouble::Absent(Missing::Pull)).await),
            _ => call.done(&reply),
        }
    }

    pub(crate) async fn close(&self, pull: &Pull, reason: &str, until: Instant) -> Act<()> {
        let call = self.0.call("close a merge request");
        let body = closed_body(&pull.body, reason);
        let body = json!({"state_event": "close", "description": body});
        let path = format!("/merge_requests/{}", pull.number);
        let reply = call.send(Method::Put, &path, &body, until).await?;
        if reply.status == 404 {
            return Err(call.after_404(Trouble::Absent(Missing::Pull)).await);
        }
        let made: RequestShape = call.made(&reply)?;
        let made = made.read(&call).map_err(Undone::after)?;
        made.closed().or_else(|trouble| call.undone(trouble))
    }

    /// The merge request is read first: that also makes GitLab check whether it can be merged, and shows
    /// that the token is known: a 401 to the merge is then a missing right.
    pub(crate) async fn merge(&self, number: u64, merge: &Merge<'_>, may: May<'_>) -> Act<()> {
        let call = self.0.call("merge a merge request");
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
        let mut body = Map::from_iter([("sha".to_owned(), Value::from(merge.head.as_str()))]);
        match merge.method {
            // What the project says of rebases counts for every request.
            None | Some(MergeMethod::NoRebase) => {}
            Some(MergeMethod::Merge) => drop(body.insert("squash".to_owned(), false.into())),
            Some(MergeMethod::Squash) => drop(body.insert("squash".to_owned(), true.into())),
            // The project says whether requests are rebased.
            Some(MergeMethod::Rebase) => return call.undone(Trouble::NoSuchMethod),
        }
        let path = format!("/merge_requests/{number}/merge");
        let body = Value::Object(body);
        let reply = call.send_in(&turn, Method::Put, &path, &body, may).await?;
        match reply.status {
            401 => call.undone(Trouble::NoRight(call.words(&reply))),
            404 => Err(call.after_404(Trouble::Absent(Missing::Pull)).await),
            409 => call.undone(Trouble::HeadMoved),
            405 | 406 | 422 => call.undone(Trouble::NotMergeable(call.words(&reply))),
            _ => call.done(&reply),
        }
    }

    pub(crate) async fn read_commit(&self, commit: &Sha) -> Result<Option<Seen>, ForgeError> {
        let call = self.0.call("read a commit");
        let path = format!("/repository/commits/{commit}");
        let found: Option<CommitShape> = call.find(&path, &[("stats", "false")]).await?;
        Ok(found.map(CommitShape::read))
    }

    pub(crate) async fn commits(&self, number: u64) -> Result<Vec<Seen>, ForgeError> {
        let call = self.0.call("read the commits of a merge request");
        let path = format!("/merge_requests/{number}/commits");
        let query = [("per_page", MOST_COMMITS)];
        let found: Option<Vec<CommitShape>> = call.find(&path, &query).await?;
        let found = found.unwrap_or_default().into_iter();
        Ok(found.map(CommitShape::read).collect())
    }

    pub(crate) async fn contains(&self, base: &Sha, commit: &Sha) -> Result<bool, ForgeError> {
        let call = self.0.call("compare two commits");
        let query = [("refs[]", base.as_str()), ("refs[]", commit.as_str())];
        let reply = call.ask("/repository/merge_base", &query).await?;
        match reply.status {
            // Two commits that have nothing in common.
            404 => call.sees_repository().await.map(|()| false),
            400 => Err(call.error(Trouble::Absent(Missing::Commit))),
            _ => {
                let common: Commit = call.read(&reply)?;
                Ok(common.id == *commit)
            }
        }
    }
}

async fn head(call: &Call<'_>, branch: &Branch) -> Result<Option<Sha>, ForgeError> {
    let path = format!("/repository/branches/{}", encoded(branch.as_str()));
    let found: Option<BranchShape> = call.find(&path, &[]).await?;
    Ok(found.map(|found| found.commit.id))
}

async fn pull(call: &Call<'_>, number: u64) -> Result<Option<Pull>, ForgeError> {
    let path = format!("/merge_requests/{number}");
    let found: Option<RequestShape> = call.find(&path, &[]).await?;
    found.map(|request| request.read(call)).transpose()
}
