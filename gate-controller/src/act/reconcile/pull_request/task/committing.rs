//! The commit: the files of the target branch with the change, on a branch of its own.

use sluice_core::delivery::pull_request::files::{self, Changed};
use sluice_core::delivery::pull_request::{Outcome, Word, trailers};
use sluice_crds::PullRequestSpec;
use sluice_forges::{Blob, Change, ChangedFile, FilePath, PullState, Sha};

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::{Job, Stopped};

/// A file of the repository.
struct Read {
    path: FilePath,
    blob: Blob,
}

impl Job<'_> {
    /// Makes the commit, unless there was ever a pull request of its branch. No commit of ours is known yet, and
    /// none is opened before it is: an open one is somebody else's.
    pub(super) async fn commit(&self) -> Result<Outcome, Stopped> {
        if let Some(pull) = self.find().await? {
            let made = self.of_tree()?.map(|commit| commit.id());
            return match pull.state {
                // It follows from the spec: nobody can make another one with this id.
                PullState::Open { head, .. } if made.as_ref() == Some(&head) => {
                    Ok(Outcome::Committed(head.to_string()))
                }
                PullState::Open { .. } => self.close_foreign(pull).await,
                PullState::Merged { .. } | PullState::Closed => {
                    self.seen(pull, made.as_ref()).await
                }
            };
        }
        self.close_others().await?;
        let head = self.forge().head(&self.head).await?;
        self.commit_on(head).await
    }

    /// Makes the commit where the branch has this one now, which is not known to be ours. One that says that
    /// it is was made by a try that was forgotten, or by somebody else: it is not trusted, and made again.
    pub(super) async fn commit_on(&self, head: Option<Sha>) -> Result<Outcome, Stopped> {
        if let Some(commit) = self.of_tree()? {
            return self.push(&commit, head).await;
        }
        if let Some(head) = head {
            if !self.may_delete(&head, None).await? {
                return Err(self.touched());
            }
            let until = self.until()?;
            self.forge().delete_branch(&self.head, until).await?;
        }
        let Some(from) = self.forge().head(&self.base).await? else {
            let message = format!("there is no branch {}; write one that is there", self.base);
            return Err(Stopped::new(Word::NoTargetBranch, message));
        };
        let (read, bytes) = self.read(&from).await?;
        let changed = changed(self.object.spec.clone(), bytes).await?;
        if changed.is_empty() {
            return Ok(Outcome::InBase(None));
        }
        let files = changed.iter().filter_map(|(place, text)| {
            let Read { path, blob } = read.get(*place)?;
            let bytes = text.as_bytes();
            Some(ChangedFile { path, blob, bytes })
        });
        let files: Vec<_> = files.collect();
        self.make(&from, &files).await
    }

    /// All files, as they are at a commit.
    async fn read(&self, from: &Sha) -> Result<(Vec<Read>, Vec<Vec<u8>>), Stopped> {
        let (mut read, mut bytes) = (Vec::new(), Vec::new());
        for path in files::paths(&self.object.spec) {
            let path = FilePath::parse(path)?;
            let Some(file) = self.forge().file(from, &path).await? else {
                let message = format!(
                    "there is no file {path} in the branch {}; correct its path in `paths`",
                    self.base
                );
                return Err(Stopped::new(Word::FileNotEditable, message));
            };
            bytes.push(file.bytes);
            let blob = file.blob;
            read.push(Read { path, blob });
        }
        Ok((read, bytes))
    }

    /// The commit may go on from a newer one than the files were read at. That is as well: each of its files
    /// is still the one that was read, or the forge refuses it.
    async fn make(&self, from: &Sha, files: &[ChangedFile<'_>]) -> Result<Outcome, Stopped> {
        let message = trailers::message(&self.object.spec);
        let change = Change {
            branch: &self.head,
            base: &self.base,
            from,
            message: &message,
            files,
        };
        let made = self.forge().commit(&change, self.until()?).await?;
        Ok(Outcome::Committed(made.commit.to_string()))
    }
}

/// What becomes of the files. One after another, and where it holds nobody else up: a file may take a while.
async fn changed(spec: PullRequestSpec, files: Vec<Vec<u8>>) -> Result<Changed, Stopped> {
    static TURN: Semaphore = Semaphore::const_new(1);
    let _turn = TURN.acquire().await;
    let changed = spawn_blocking(move || files::changed(&spec, &files)).await;
    let defect = |_| Stopped::new(Word::Unanswered, "a defect; please report it");
    let changed = changed.map_err(defect)?;
    changed.map_err(|why| Stopped::new(Word::FileNotEditable, why))
}
