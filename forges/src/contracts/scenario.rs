//! A scenario as its file has it, and what comes of its call.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

use super::shown::{done, found, shown, shown_commit, shown_status};
use crate::call::Wants;
use crate::forge::Forge;
use crate::git::{Target, Update};
use crate::names::{Branch, FilePath, Sha};
use crate::pulls::{
    Blob, Change, ChangedFile, Merge, MergeMethod, NewPull, Pull, PullState, Status, StatusState,
};

/// A call, and the exchanges that have to follow from it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    /// What it shows.
    pub(super) says: String,
    /// Where the documentation is.
    pub(super) source: String,
    pub(super) call: Call,
    pub(super) exchanges: Vec<Exchange>,
    /// What comes of the call.
    pub(super) outcome: String,
}

/// A request with its reply.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exchange {
    /// Method and path with query, as they are on the wire.
    pub(super) request: String,
    /// The body that has to come: JSON.
    pub(super) body: Option<String>,
    /// The body that has to come: another text.
    pub(super) form: Option<String>,
    /// What the body that comes has to begin with, of a request of Git.
    pub(super) git: Option<String>,
    pub(super) status: u16,
    /// Lines of the head.
    #[serde(default)]
    pub(super) headers: Vec<String>,
    #[serde(default)]
    pub(super) reply: String,
    /// The reply breaks off.
    #[serde(default)]
    pub(super) cut_off: bool,
    /// The reply is so many bytes longer.
    #[serde(default)]
    pub(super) padding: usize,
}

/// How many operations there are.
pub(super) const OPERATIONS: usize = 20;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Call {
    Head {
        branch: String,
    },
    File {
        commit: Sha,
        path: String,
    },
    Commit {
        branch: String,
        base: String,
        from: Sha,
        files: Vec<Changed>,
    },
    DeleteBranch {
        branch: String,
    },
    OpenPulls {
        base: String,
    },
    Find {
        head: String,
        base: String,
    },
    Newest {
        prefix: String,
        base: String,
    },
    Pull {
        number: u64,
    },
    Open {
        head: String,
        base: String,
    },
    Close {
        number: u64,
        reason: String,
    },
    Merge {
        number: u64,
        head: Sha,
        base: String,
        method: Option<Method>,
        /// What it waits for when it is not wanted any more.
        overtaken: Option<At>,
        /// What is seen of the pull request holds it back.
        #[serde(default)]
        held: bool,
    },
    SetStatus {
        commit: Sha,
        state: State,
        description: String,
    },
    Contains {
        base: Sha,
        commit: Sha,
    },
    ReadCommit {
        commit: Sha,
    },
    Commits {
        number: u64,
    },
    Edit {
        number: u64,
    },
    Statuses {
        commit: Sha,
    },
    References {
        prefixes: Vec<String>,
    },
    CommitObject {
        commit: Sha,
    },
    /// To a commit that the repository has.
    Push {
        branch: String,
        from: Option<Sha>,
        to: Sha,
    },
}

#[derive(Deserialize)]
pub(super) struct Changed {
    path: String,
    blob: Sha,
    text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Method {
    Merge,
    Squash,
    Rebase,
    NoRebase,
}

/// What a change waits for.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum At {
    Turn,
    Sending,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    Pending,
    Success,
    Failure,
}

impl Call {
    pub(super) fn operation(&self) -> &'static str {
        match self {
            Self::Head { .. } => "head",
            Self::File { .. } => "file",
            Self::Commit { .. } => "commit",
            Self::DeleteBranch { .. } => "delete_branch",
            Self::OpenPulls { .. } => "open_pulls",
            Self::Find { .. } => "find",
            Self::Newest { .. } => "newest",
            Self::Pull { .. } => "pull",
            Self::Open { .. } => "open",
            Self::Close { .. } => "close",
            Self::Merge { .. } => "merge",
            Self::SetStatus { .. } => "set_status",
            Self::Contains { .. } => "contains",
            Self::ReadCommit { .. } => "read_commit",
            Self::Commits { .. } => "commits",
            Self::Edit { .. } => "edit",
            Self::Statuses { .. } => "statuses",
            Self::References { .. } => "references",
            Self::CommitObject { .. } => "commit_object",
            Self::Push { .. } => "push",
        }
    }

    /// What comes of it.
    pub(super) async fn on(&self, forge: &Forge) -> String {
        let until = Instant::now() + Duration::from_secs(60);
        match self {
            Self::Head { branch } => found(forge.head(&named(branch)).await, Sha::to_string),
            Self::File { commit, path } => {
                let read = forge.file(commit, &FilePath::parse(path).unwrap()).await;
                found(read, |file| {
                    format!(
                        "{:?} of {}",
                        String::from_utf8_lossy(&file.bytes),
                        file.blob.0
                    )
                })
            }
            Self::Commit {
                branch,
                base,
                from,
                files,
            } => commit(forge, (branch, base, from), files, until).await,
            Self::DeleteBranch { branch } => {
                done(forge.delete_branch(&named(branch), until).await, |()| {
                    "done".to_owned()
                })
            }
            Self::OpenPulls { base } => match forge.open_pulls(&named(base)).await {
                Ok(pulls) => pulls.iter().map(shown).collect::<Vec<_>>().join("; "),
                Err(error) => format!("error: {error}"),
            },
            Self::Find { head, base } => found(forge.find(&named(head), &named(base)).await, shown),
            Self::Newest { prefix, base } => found(forge.newest(prefix, &named(base)).await, shown),
            Self::Pull { number } => found(forge.pull(*number).await, shown),
            Self::Open { head, base } => {
                let (head, base) = (named(head), named(base));
                let (title, body) = ("Promote", "To 2.0.");
                let new = NewPull {
                    title,
                    body,
                    head: &head,
                    base: &base,
                };
                done(forge.open(&new, until).await, |pull| shown(&pull))
            }
            Self::Close { number, reason } => {
                let act = forge.close(&closing(*number), reason, until).await;
                done(act, |()| "done".to_owned())
            }
            Self::Merge {
                number,
                head,
                base,
                method,
                overtaken,
                held,
            } => {
                let method = method.as_ref().map(|method| match method {
                    Method::Merge => MergeMethod::Merge,
                    Method::Squash => MergeMethod::Squash,
                    Method::Rebase => MergeMethod::Rebase,
                    Method::NoRebase => MergeMethod::NoRebase,
                });
                let base = named(base);
                let merge = Merge {
                    head,
                    base: &base,
                    method,
                    is_held: &|_| *held,
                };
                let overtaken = overtaken.as_ref().map(|at| match at {
                    At::Turn => Wants::Turn,
                    At::Sending => Wants::Sending,
                });
                let may = |wants| (overtaken != Some(wants)).then_some(until);
                let act = forge.merge(*number, &merge, &may).await;
                done(act, |()| "done".to_owned())
            }
            Self::SetStatus {
                commit,
                state,
                description,
            } => {
                let status = Status {
                    context: "sluice/gate/prod",
                    state: match state {
                        State::Pending => StatusState::Pending,
                        State::Success => StatusState::Success,
                        State::Failure => StatusState::Failure,
                    },
                    description,
                    url: "https://sluice.example.com/prod",
                };
                done(
                    forge.set_status(commit, &status, &|_| Some(until)).await,
                    |()| "done".to_owned(),
                )
            }
            Self::Contains { base, commit } => match forge.contains(base, commit).await {
                Ok(contains) => contains.to_string(),
                Err(error) => format!("error: {error}"),
            },
            Self::ReadCommit { commit } => found(forge.read_commit(commit).await, shown_commit),
            Self::Commits { number } => match forge.commits(*number).await {
                Ok(all) => all.iter().map(shown_commit).collect::<Vec<_>>().join("; "),
                Err(error) => format!("error: {error}"),
            },
            Self::Edit { number } => {
                let act = forge
                    .edit(*number, "Promote 3.0", "To 3.0.", &|_| Some(until))
                    .await;
                done(act, |()| "done".to_owned())
            }
            Self::Statuses { commit } => match forge.statuses(commit).await {
                Ok(all) => all.iter().map(shown_status).collect::<Vec<_>>().join("; "),
                Err(error) => format!("error: {error}"),
            },
            Self::References { prefixes } => match forge.references(prefixes).await {
                Ok(all) => {
                    let shown = all.iter().map(|one| format!("{} at {}", one.name, one.id));
                    shown.collect::<Vec<_>>().join("; ")
                }
                Err(error) => format!("error: {error}"),
            },
            Self::CommitObject { commit } => found(forge.commit_object(commit).await, |commit| {
                format!("{} with {}", commit.id, commit.tree)
            }),
            Self::Push { branch, from, to } => {
                let branch = named(branch);
                let update = Update {
                    branch: &branch,
                    from: from.as_ref(),
                    to: Target::Known(to),
                };
                done(forge.push(&update, &|_| Some(until)).await, |()| {
                    "done".to_owned()
                })
            }
        }
    }
}

async fn commit(
    forge: &Forge,
    (branch, base, from): (&str, &str, &Sha),
    files: &[Changed],
    until: Instant,
) -> String {
    let names: Vec<_> = files
        .iter()
        .map(|file| {
            (
                FilePath::parse(&file.path).unwrap(),
                Blob(file.blob.clone()),
            )
        })
        .collect();
    let pairs = names.iter().zip(files);
    let files: Vec<_> = pairs
        .map(|((path, blob), file)| ChangedFile {
            path,
            blob,
            bytes: file.text.as_bytes(),
        })
        .collect();
    let (branch, base) = (named(branch), named(base));
    let message = "Promote 2.0";
    let change = Change {
        branch: &branch,
        base: &base,
        from,
        message,
        files: &files,
    };
    let made = forge.commit(&change, until).await;
    done(made, |made| format!("{} on {}", made.commit, made.parent))
}

/// The pull request that a caller has seen and wants closed.
fn closing(number: u64) -> Pull {
    Pull {
        number,
        url: String::new(),
        title: "Promote".to_owned(),
        body: "To 2.0.".to_owned(),
        head: "next".to_owned(),
        base: "main".to_owned(),
        own: true,
        draft: false,
        labels: Vec::new(),
        labels_cut: false,
        state: PullState::Closed,
    }
}

fn named(branch: &str) -> Branch {
    Branch::parse(branch).unwrap()
}
