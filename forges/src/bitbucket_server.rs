//! Bitbucket Data Center, by its REST API.
//!
//! What comes in: what a pull request needs. What goes out: what the forge has, or what it did. Written from
//! the public documentation (developer.atlassian.com/server/bitbucket/rest) and shown against contracts
//! (`contracts/bitbucket-server`). Used: the rooms `address`, `call`, `names`, `outcome` and `pulls`.
//!
//! It commits one file at a time, so that a change is one file. It gives no ids of blobs: the commit that a
//! file was read at guards it. A merge is guarded by the version of the pull request.

use serde_json::{Value, json};
use sluice_egress::{Content, Method};
use tokio::time::Instant;

use crate::address::{Address, encoded_path};
use crate::call::{Access, Api, Call, May, Page, Paging, Sending, is_success, says};
use crate::names::{Branch, FilePath, Sha};
use crate::outcome::{Act, ForgeError, Missing, Trouble, Undone};
use crate::pulls::{
    Blob, Change, Commit as Seen, Committed, File, MOST_COMMITS, Merge, MergeMethod, NewPull, Pull,
    PullState, foremost,
};
use form::Form;
use shapes::{Commit, CommitShape, Made, PullShape, SettingsShape};

mod form;
mod shapes;
mod statuses;

/// The errors of a merge that say that the pull request is not as it was read: it has another version, or a
/// person has merged or declined it.
const CHANGED: [&str; 2] = [
    "PullRequestOutOfDateException",
    "IllegalPullRequestStateException",
];

/// A repository on Bitbucket.
#[derive(Clone)]
pub(crate) struct BitbucketServer(Api);

impl BitbucketServer {
    pub(crate) fn new(access: Access, address: Address) -> Self {
        // Without the second header, Bitbucket takes a form for one of another site.
        let headers = &[
            ("accept", "application/json"),
            ("x-atlassian-token", "no-check"),
        ];
        Self(Api::new(access, address, headers, Paging::Starting))
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
        let path = format!("/raw/{}", encoded_path(path.as_str()));
        let reply = call.ask(&path, &[("at", commit.as_str())]).await?;
        match reply.status {
            404 => call.sees_repository().await.map(|()| None),
            _ if is_success(&reply) => {
                let (bytes, blob) = (reply.body.to_vec(), Blob(commit.clone()));
                Ok(Some(File { bytes, blob }))
            }
            // A folder has no bytes.
            400 => Err(call.error(Trouble::NotAFile)),
            _ => Err(call.error(call.trouble(&reply))),
        }
    }

    pub(crate) async fn commit(&self, change: &Change<'_>, until: Instant) -> Act<Committed> {
        let call = self.0.call("commit to a new branch");
        let [file] = change.files else {
            return call.undone(Trouble::TooManyFiles(change.files.len()));
        };
        let form = Form::new(
            &[
                ("message", change.message),
                ("branch", change.branch.as_str()),
                ("sourceBranch", change.base.as_str()),
                ("sourceCommitId", file.blob.0.as_str()),
            ],
            ("content", file.bytes),
        );
        let content = Content {
            media_type: &form.media_type,
            body: &form.body,
        };
        let path = format!("/browse/{}", encoded_path(file.path.as_str()));
        let reply = call
            .send(Method::Put, &path, Sending::Other(content), until)
            .await?;
        match reply.status {
            404 => Err(call.after_404(Trouble::Absent(Missing::BranchOrFile)).await),
            409 => match head(&call, change.branch).await {
                Ok(Some(_)) => call.undone(Trouble::BranchExists),
                Ok(None) | Err(_) => call.undone(Trouble::FileChanged),
            },
            _ => {
                let made: Made = call.made(&reply)?;
                let wrong = || Trouble::NotUnderstood("parents".to_owned());
                let parent = made.parents.into_iter().next();
                let parent = parent.ok_or_else(|| Undone::after(call.error(wrong())))?;
                Ok(Committed {
                    commit: made.id,
                    parent: parent.id,
                })
            }
        }
    }

    pub(crate) async fn delete_branch(&self, branch: &Branch, until: Instant) -> Act<()> {
        let call = self.0.call("delete a branch");
        let repository = self.0.address.repository();
        let path = repository.replacen("/api/", "/branch-utils/", 1);
        let url = format!("{}{path}/branches", self.0.address.api());
        let body = json!({"name": branch.reference(), "dryRun": false});
        let reply = call
            .send_to(Method::Delete, &url, Sending::Json(&body), until)
            .await?;
        match reply.status {
            400 | 404 => match head(&call, branch).await? {
                None => Ok(()),
                Some(_) => call.done(&reply),
            },
            _ => call.done(&reply),
        }
    }

    pub(crate) async fn open_pulls(&self, base: &Branch) -> Result<Vec<Pull>, ForgeError> {
        let call = self.0.call("list the open pull requests");
        let base = base.reference();
        let query = [
            ("state", "OPEN"),
            ("direction", "INCOMING"),
            ("at", base.as_str()),
            ("order", "OLDEST"),
        ];
        let pulls: Vec<PullShape> = call.list("/pull-requests", &query).await?;
        Ok(pulls.into_iter().map(PullShape::read).collect())
    }

    pub(crate) async fn newest(
        &self,
        prefix: &str,
        base: &Branch,
    ) -> Result<Option<Pull>, ForgeError> {
        let call = self.0.call("look for the newest pull request");
        let base = base.reference();
        let query = [
            ("state", "ALL"),
            ("direction", "INCOMING"),
            ("at", base.as_str()),
            ("order", "NEWEST"),
        ];
        let is_under = |pull: &PullShape| pull.is_under(prefix);
        let found = call.first("/pull-requests", &query, is_under).await?;
        Ok(found.map(PullShape::read))
    }

    pub(crate) async fn find(
        &self,
        head: &Branch,
        base: &Branch,
    ) -> Result<Option<Pull>, ForgeError> {
        let call = self.0.call("look for a pull request");
        let reference = head.reference();
        let query = [
            ("state", "ALL"),
            ("direction", "OUTGOING"),
            ("at", reference.as_str()),
            ("order", "NEWEST"),
        ];
        let pulls: Vec<PullShape> = call.list("/pull-requests", &query).await?;
        let same =
            |pull: &Pull| pull.own && pull.head == head.as_str() && pull.base == base.as_str();
        let same = pulls.into_iter().map(PullShape::read).filter(same);
        Ok(foremost(same.collect()))
    }

    pub(crate) async fn pull(&self, number: u64) -> Result<Option<Pull>, ForgeError> {
        let call = self.0.call("read a pull request");
        Ok(pull(&call, number).await?.map(PullShape::read))
    }

    pub(crate) async fn open(&self, new: &NewPull<'_>, until: Instant) -> Act<Pull> {
        let call = self.0.call("open a pull request");
        let (owner, name) = (self.0.address.owner(), self.0.address.name());
        let repository = json!({"slug": name, "project": {"key": owner}});
        let body = json!({
            "title": new.title,
            "description": new.body,
            "fromRef": {"id": new.head.reference(), "repository": repository},
            "toRef": {"id": new.base.reference(), "repository": repository},
        });
        let path = "/pull-requests";
        let reply = call.send(Method::Post, path, &body, until).await?;
        match reply.status {
            404 => Err(call.after_404(Trouble::Absent(Missing::Branch)).await),
            409 if is(&reply.body, "DuplicatePullRequestException") => {
                call.undone(Trouble::PullExists)
            }
            409 if is(&reply.body, "EmptyPullRequestException") => {
                call.undone(Trouble::NothingToMerge)
            }
            _ => Ok(call.made::<PullShape>(&reply)?.read()),
        }
    }

    /// Anyone who changes it has to say the rest again: what is left out is taken away.
    pub(crate) async fn edit(
        &self,
        number: u64,
        (title, body): (&str, &str),
        may: May<'_>,
    ) -> Act<()> {
        let call = self.0.call("edit a pull request");
        let Some(seen) = pull(&call, number).await? else {
            return call.undone(Trouble::Absent(Missing::Pull));
        };
        let mut edited = json!({
            "version": seen.version,
            "title": title,
            "description": body,
            "reviewers": seen.reviewers(),
        });
        if let Some(draft) = seen.draft {
            edited["draft"] = draft.into();
        }
        let path = format!("/pull-requests/{number}");
        let reply = call.send_while(Method::Put, &path, &edited, may).await?;
        match reply.status {
            409 => call.undone(Trouble::Changed),
            _ => call.done(&reply),
        }
    }

    /// The reason becomes a comment: who changes the description has to name all reviewers again.
    pub(crate) async fn close(&self, old: &Pull, reason: &str, until: Instant) -> Act<()> {
        let call = self.0.call("close a pull request");
        let Some(seen) = pull(&call, old.number).await? else {
            return call.undone(Trouble::Absent(Missing::Pull));
        };
        let version = seen.version;
        match seen.read().state {
            PullState::Merged { .. } => return call.undone(Trouble::AlreadyMerged),
            PullState::Closed => return Ok(()),
            PullState::Open { .. } => {}
        }
        let path = format!("/pull-requests/{}/decline?version={version}", old.number);
        let body = json!({"version": version, "comment": reason});
        let reply = call.send(Method::Post, &path, &body, until).await?;
        match reply.status {
            // It has changed since: perhaps it was merged.
            409 => call.undone(Trouble::Changed),
            _ => call.done(&reply),
        }
    }

    /// The version of a pull request changes with what people write into it. Whether it also changes with
    /// each push is not documented, so that the head is read in the same reply as the version.
    pub(crate) async fn merge(&self, number: u64, merge: &Merge<'_>, may: May<'_>) -> Act<()> {
        let call = self.0.call("merge a pull request");
        let turn = call.turn_while(may).await?;
        let Some(seen) = pull(&call, number).await? else {
            return call.undone(Trouble::Absent(Missing::Pull));
        };
        let version = seen.version;
        if let Err(trouble) = seen.read().mergeable(merge) {
            return call.undone(trouble);
        }
        let mut body = json!({"version": version});
        match merge.method {
            None => {}
            Some(MergeMethod::Merge) => body["strategyId"] = "no-ff".into(),
            Some(MergeMethod::Squash) => body["strategyId"] = "squash".into(),
            Some(MergeMethod::Rebase) => body["strategyId"] = "rebase-ff-only".into(),
            Some(MergeMethod::NoRebase) => {
                let path = "/settings/pull-requests";
                let settings: SettingsShape = call.get(path, &[], Missing::Pull).await?;
                match settings.without_rebase() {
                    Ok(Some(strategy)) => body["strategyId"] = strategy.into(),
                    Ok(None) => {}
                    Err(trouble) => return call.undone(trouble),
                }
            }
        }
        let path = format!("/pull-requests/{number}/merge?version={version}");
        let reply = call.send_in(&turn, Method::Post, &path, &body, may).await?;
        match reply.status {
            404 => Err(call.after_404(Trouble::Absent(Missing::Pull)).await),
            409 if CHANGED.iter().any(|class| is(&reply.body, class)) => {
                call.undone(Trouble::Changed)
            }
            409 if is_conflicted(&reply.body) => call.undone(Trouble::Conflict),
            409 => call.undone(Trouble::NotMergeable(call.words(&reply))),
            _ => call.done(&reply),
        }
    }

    pub(crate) async fn read_commit(&self, commit: &Sha) -> Result<Option<Seen>, ForgeError> {
        let call = self.0.call("read a commit");
        let found: Option<CommitShape> = call.find(&format!("/commits/{commit}"), &[]).await?;
        Ok(found.map(CommitShape::read))
    }

    pub(crate) async fn commits(&self, number: u64) -> Result<Vec<Seen>, ForgeError> {
        let call = self.0.call("read the commits of a pull request");
        let path = format!("/pull-requests/{number}/commits");
        let query = [("limit", MOST_COMMITS)];
        let found: Option<Page<CommitShape>> = call.find(&path, &query).await?;
        let found = found.into_iter().flat_map(|page| page.values);
        Ok(found.map(CommitShape::read).collect())
    }

    pub(crate) async fn contains(&self, base: &Sha, commit: &Sha) -> Result<bool, ForgeError> {
        let call = self.0.call("compare two commits");
        let query = [
            ("until", commit.as_str()),
            ("since", base.as_str()),
            ("limit", "1"),
        ];
        let ahead: Page<Commit> = call.get("/commits", &query, Missing::Commit).await?;
        Ok(ahead.values.is_empty())
    }
}

/// The first commit that leads to a branch.
async fn head(call: &Call<'_>, branch: &Branch) -> Result<Option<Sha>, ForgeError> {
    let reference = branch.reference();
    let query = [("until", reference.as_str()), ("limit", "1")];
    let found: Option<Page<Commit>> = call.find("/commits", &query).await?;
    let newest = found.and_then(|page| page.values.into_iter().next());
    Ok(newest.map(|commit| commit.id))
}

async fn pull(call: &Call<'_>, number: u64) -> Result<Option<PullShape>, ForgeError> {
    call.find(&format!("/pull-requests/{number}"), &[]).await
}

/// Whether an error is of this class.
fn is(body: &[u8], class: &str) -> bool {
    errors(body).iter().any(|error| {
        let name = error["exceptionName"].as_str().unwrap_or_default();
        name.rsplit('.').next() == Some(class)
    })
}

fn is_conflicted(body: &[u8]) -> bool {
    let conflicted = |error: &Value| error["conflicted"] == true;
    errors(body).iter().any(conflicted) || says(body, "has conflicts")
}

fn errors(body: &[u8]) -> Vec<Value> {
    let value: Option<Value> = serde_json::from_slice(body).ok();
    let errors = value.and_then(|mut value| match value["errors"].take() {
        Value::Array(errors) => Some(errors),
        _ => None,
    });
    errors.unwrap_or_default()
}
