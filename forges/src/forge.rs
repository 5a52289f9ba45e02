//! A repository on any forge.
//!
//! What comes in: an [`Address`] with [`Access`]. What goes out: a [`Forge`], which does the same on each
//! of them as far as they can. Every other room is used.
//!
//! A question may reach the server twice. An act reaches it once, and not after the instant that comes with
//! it; its caller looks at what the forge has before it tries again ([`crate::Undone`]).

use tokio::time::Instant;

use crate::address::{Address, Provider};
use crate::bitbucket_server::BitbucketServer;
use crate::call::{Access, MOST_STATUSES, May};
use crate::git::{CommitObject, Git, Named, Reference, Update};
use crate::gitea::Gitea;
use crate::github::GitHub;
use crate::gitlab::GitLab;
use crate::names::{Branch, FilePath, Sha};
use crate::outcome::{Act, ForgeError, Trouble};
use crate::pulls::{
    Change, Commit, Committed, File, MOST_LABELS, Merge, NewPull, Pull, PullState, SeenStatus,
    Status, cut, plain, worst,
};

/// The most characters of a login, and of a label.
const LONGEST_LOGIN: usize = 128;
const LONGEST_LABEL: usize = 255;

/// A repository on a forge.
#[derive(Clone)]
pub struct Forge {
    kind: Kind,
    git: Git,
    address: Address,
}

#[derive(Clone)]
enum Kind {
    GitHub(GitHub),
    GitLab(GitLab),
    Gitea(Gitea),
    BitbucketServer(BitbucketServer),
}

/// The same on each. Boxed: what waits for it in several layers would have it once in each of them, and there
/// is no room for that on a stack.
macro_rules! on_each {
    ($forge:expr, $it:ident => $act:expr) => {
        match &$forge.kind {
            Kind::GitHub($it) => Box::pin($act).await,
            Kind::GitLab($it) => Box::pin($act).await,
            Kind::Gitea($it) => Box::pin($act).await,
            Kind::BitbucketServer($it) => Box::pin($act).await,
        }
    };
}

impl Forge {
    /// The repository at an address. Nothing is asked yet.
    pub fn new(address: Address, access: Access) -> Self {
        let at = address.clone();
        let git = Git::new(access.clone(), at.clone());
        let kind = match address.provider() {
            Provider::GitHub => Kind::GitHub(GitHub::new(access, at)),
            Provider::GitLab => Kind::GitLab(GitLab::new(access, at)),
            Provider::Gitea => Kind::Gitea(Gitea::new(access, at)),
            Provider::BitbucketServer => Kind::BitbucketServer(BitbucketServer::new(access, at)),
        };
        Self { kind, git, address }
    }

    fn error(&self, operation: &'static str, trouble: Trouble) -> ForgeError {
        ForgeError {
            host: self.address.host().to_owned(),
            operation,
            trouble,
        }
    }

    /// A pull request with nothing in it that may not be shown: the address of its page is one of this
    /// forge, and the login of who merged it has no characters that change what stands around it. It has no
    /// more labels than are to be read.
    fn checked(&self, mut pull: Pull) -> Pull {
        // Anybody may open one from a fork, with any labels. Nobody goes by them.
        if !pull.own {
            pull.labels.clear();
        }
        pull.labels_cut = pull.labels.len() > MOST_LABELS;
        pull.labels.truncate(MOST_LABELS);
        for label in &mut pull.labels {
            *label = plain(label, LONGEST_LABEL);
        }
        if !self.address.is_own(&pull.url) {
            pull.url = self.address.page(pull.number);
        }
        if let PullState::Merged { by: Some(by), .. } = &mut pull.state {
            *by = cut(&by.escape_debug().to_string(), LONGEST_LOGIN);
        }
        pull
    }

    /// All references whose full names begin with one of these texts, such as `refs/heads/env/prod`: one
    /// request of Git's own protocol, whatever there is. Without a text, nothing is asked.
    ///
    /// # Errors
    /// The forge does not say, there are more than 10,000 ([`crate::Trouble::TooManyReferences`]), or more
    /// than 1 MiB of them.
    pub async fn references(&self, prefixes: &[String]) -> Result<Vec<Reference>, ForgeError> {
        Box::pin(self.git.references(prefixes)).await
    }

    /// The references of exactly these full names: one request of Git's own protocol. A server sends all that begin
    /// so, which is read up to 8 MiB, and for four seconds. What was not read by then is left.
    ///
    /// # Errors
    /// The forge does not say.
    pub async fn named(&self, names: &[String]) -> Result<Named, ForgeError> {
        Box::pin(self.git.named(names)).await
    }

    /// A commit as Git has it, also one of no branch: with its tree, which no forge's API says reliably. Its
    /// bytes have the id that was asked for. None: there is no such object. From a server that sends trees
    /// and files along, because it cannot leave them out, as long as they are less than 1 MiB.
    ///
    /// # Errors
    /// The forge does not say, or what is there is no commit.
    pub async fn commit_object(&self, commit: &Sha) -> Result<Option<CommitObject>, ForgeError> {
        Box::pin(self.git.commit_object(commit)).await
    }

    /// Moves a branch, or makes it, by a push of at most one commit object. What that commit refers to is in
    /// the repository already. That the branch is at the new commit already is a success. `may` is asked when it is
    /// its turn.
    ///
    /// # Errors
    /// The branch is where it was; because it is not where it was seen ([`crate::Trouble::BranchMoved`]) or
    /// because the forge refuses. Or that is not known: then [`Forge::references`] says.
    pub async fn push(&self, update: &Update<'_>, may: May<'_>) -> Act<()> {
        Box::pin(self.git.push(update, may)).await
    }

    /// The newest commit of a branch. None: there is no such branch.
    ///
    /// # Errors
    /// The forge does not say.
    pub async fn head(&self, branch: &Branch) -> Result<Option<Sha>, ForgeError> {
        on_each!(self, it => it.head(branch))
    }

    /// A file as it is at a commit, byte for byte. None: there is no such file, or no such commit. A reply
    /// has at most 1 MiB, and all but Bitbucket encode the file: it has to be shorter than 750 KiB.
    ///
    /// # Errors
    /// The forge does not say, the file is too long, or what is there is no file.
    pub async fn file(&self, commit: &Sha, path: &FilePath) -> Result<Option<File>, ForgeError> {
        on_each!(self, it => it.file(commit, path))
    }

    /// Makes a commit on a new branch. If any of the files has changed since it was read, nothing is made.
    ///
    /// # Errors
    /// It is not made, or that is not known: then the head of the new branch says.
    pub async fn commit(&self, change: &Change<'_>, until: Instant) -> Act<Committed> {
        on_each!(self, it => it.commit(change, until))
    }

    /// Deletes a branch. That it is not there is a success.
    ///
    /// # Errors
    /// It is still there, or that is not known.
    pub async fn delete_branch(&self, branch: &Branch, until: Instant) -> Act<()> {
        on_each!(self, it => it.delete_branch(branch, until))
    }

    /// All open pull requests into `base`, also those of forks.
    ///
    /// # Errors
    /// The forge does not say, or there are more than 2,000, or more than 4 MiB of them
    /// ([`crate::Trouble::TooMany`]).
    pub async fn open_pulls(&self, base: &Branch) -> Result<Vec<Pull>, ForgeError> {
        let listed = on_each!(self, it => it.open_pulls(base))?.into_iter();
        Ok(listed.map(|pull| self.checked(pull)).collect())
    }

    /// The pull request of `head` into `base`, in any state; not of a fork. Of several the open one with the
    /// lowest number, else the newest; on Gitea the oldest of all, so that names of branches should never be
    /// used twice. None: there was never one.
    ///
    /// # Errors
    /// The forge does not say.
    pub async fn find(&self, head: &Branch, base: &Branch) -> Result<Option<Pull>, ForgeError> {
        let found = on_each!(self, it => it.find(head, base))?;
        Ok(found.map(|pull| self.checked(pull)))
    }

    /// The newest pull request into `base` in any state whose head is a branch of the repository with a name
    /// that begins with `prefix`. For a caller that has forgotten which one it has opened. The newest 500
    /// into `base` are looked through. None: there is none among them.
    ///
    /// # Errors
    /// The forge does not say.
    pub async fn newest(&self, prefix: &str, base: &Branch) -> Result<Option<Pull>, ForgeError> {
        let found = on_each!(self, it => it.newest(prefix, base))?;
        Ok(found.map(|pull| self.checked(pull)))
    }

    /// A pull request by its number. None: there is no such pull request.
    ///
    /// # Errors
    /// The forge does not say.
    pub async fn pull(&self, number: u64) -> Result<Option<Pull>, ForgeError> {
        let found = on_each!(self, it => it.pull(number))?;
        Ok(found.map(|pull| self.checked(pull)))
    }

    /// Opens a pull request. Two that are opened at once may both succeed, see [`crate::surplus`].
    ///
    /// # Errors
    /// It is not opened, or that is not known: then [`Forge::find`] says.
    pub async fn open(&self, new: &NewPull<'_>, until: Instant) -> Act<Pull> {
        let opened = on_each!(self, it => it.open(new, until))?;
        Ok(self.checked(opened))
    }

    /// Gives an open pull request another title and body, if `may` still says so when the turn has come.
    ///
    /// # Errors
    /// They are not changed, or that is not known: then [`Forge::pull`] says.
    pub async fn edit(&self, number: u64, title: &str, body: &str, may: May<'_>) -> Act<()> {
        on_each!(self, it => it.edit(number, (title, body), may))
    }

    /// Closes a pull request and writes the reason, in Markdown, below its body; on Bitbucket into a comment.
    /// That it is closed already is a success.
    ///
    /// # Errors
    /// It is not closed, perhaps because it is merged, or that is not known: then [`Forge::pull`] says.
    pub async fn close(&self, pull: &Pull, reason: &str, until: Instant) -> Act<()> {
        on_each!(self, it => it.close(pull, reason, until))
    }

    /// Merges a pull request if its head and its base are as they have to be. It waits for its turn, is looked at
    /// then, and `may` is asked after that.
    ///
    /// # Errors
    /// It is not merged, or that is not known: then [`Forge::pull`] says.
    pub async fn merge(&self, number: u64, merge: &Merge<'_>, may: May<'_>) -> Act<()> {
        let is_held = |pull: &Pull| (merge.is_held)(&self.checked(pull.clone()));
        let merge = Merge {
            is_held: &is_held,
            ..*merge
        };
        on_each!(self, it => it.merge(number, &merge, may))
    }

    /// Sets a commit status. The newest of a context counts. A forge may keep every one that was set: set
    /// it only where it changes. It is sent only if `may` still says so when its turn has come.
    ///
    /// # Errors
    /// It is not set, or that is not known: then it may be set again.
    pub async fn set_status(&self, commit: &Sha, status: &Status<'_>, may: May<'_>) -> Act<()> {
        on_each!(self, it => it.set_status(commit, status, may))
    }

    /// The newest status of each name that a commit has, sorted by name. On GitHub also what checks say of it;
    /// one that was skipped, or neither failed nor passed, passes, as it does there. On Bitbucket, where
    /// statuses do not belong to a repository, an unknown commit has none.
    ///
    /// # Errors
    /// The forge does not say, has no such commit, or has statuses of more than 100 names
    /// ([`crate::Trouble::TooManyStatuses`]).
    pub async fn statuses(&self, commit: &Sha) -> Result<Vec<SeenStatus>, ForgeError> {
        let statuses = worst(on_each!(self, it => it.statuses(commit))?);
        match statuses.len() {
            // Two lists may be of so many together.
            more if more > MOST_STATUSES => {
                let trouble = Trouble::TooManyStatuses(MOST_STATUSES);
                Err(self.error("read the statuses of a commit", trouble))
            }
            _ => Ok(statuses),
        }
    }

    /// A commit by its id, also one of no branch. None: there is no such commit.
    ///
    /// # Errors
    /// The forge does not say.
    pub async fn read_commit(&self, commit: &Sha) -> Result<Option<Commit>, ForgeError> {
        on_each!(self, it => it.read_commit(commit))
    }

    /// The commits of a pull request, in any order, at most ten: of one that was merged those that were
    /// merged, by whatever method, also after its branch was deleted or has moved. None at all: there is no
    /// such pull request.
    ///
    /// # Errors
    /// The forge does not say.
    pub async fn commits(&self, number: u64) -> Result<Vec<Commit>, ForgeError> {
        on_each!(self, it => it.commits(number))
    }

    /// Whether `commit` is `base` or an ancestor of it.
    ///
    /// # Errors
    /// The forge does not say, or has no such commits.
    pub async fn contains(&self, base: &Sha, commit: &Sha) -> Result<bool, ForgeError> {
        on_each!(self, it => it.contains(base, commit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forge() -> Forge {
        let address = Address::parse(Provider::Gitea, "https://git.example.com/a/b").unwrap();
        let egress = sluice_egress::Egress::new(sluice_egress::Rules::default()).unwrap();
        let way = crate::call::Way {
            egress,
            authorities: None,
            namespace: "apps".to_owned(),
            told: None,
            pacing: crate::call::Pacing::default(),
        };
        let token = sluice_egress::secrets::Token::new("token").unwrap();
        Forge::new(address, Access { way, token })
    }

    #[test]
    fn what_a_forge_says_is_shown_only_if_it_changes_nothing_around_it() {
        let forge = forge();
        let pull = |url: &str, by: &str| Pull {
            number: 7,
            url: url.to_owned(),
            title: String::new(),
            body: String::new(),
            head: "a".to_owned(),
            base: "main".to_owned(),
            own: true,
            draft: false,
            labels: Vec::new(),
            labels_cut: false,
            state: PullState::Merged {
                commit: None,
                by: Some(by.to_owned()),
            },
        };
        let right = pull("https://git.example.com/a/b/pulls/7", "alice");
        assert_eq!(forge.checked(right.clone()), right);
        let long = "x".repeat(200);
        let wrong = forge.checked(pull("https://evil.test/pulls/7", &long));
        assert_eq!(wrong.url, right.url);
        let PullState::Merged { by: Some(by), .. } = wrong.state else {
            panic!("{:?}", wrong.state);
        };
        assert_eq!(by.chars().count(), 128);
        let turned = forge.checked(pull(&right.url, "a\n\u{202e}b"));
        let expected = pull(&right.url, "a\\n\\u{202e}b");
        assert_eq!(turned, expected);

        // Among those that are not read might be the one that holds it.
        let labelled = |count: usize| Pull {
            labels: vec!["wait".to_owned(); count],
            ..right.clone()
        };
        assert_eq!(forge.checked(labelled(100)), labelled(100));
        let cut = Pull {
            labels_cut: true,
            ..labelled(100)
        };
        assert_eq!(forge.checked(labelled(101)), cut);
        // What somebody has opened from a fork has no labels that count.
        let foreign = |count| Pull {
            own: false,
            ..labelled(count)
        };
        assert_eq!(forge.checked(foreign(101)), foreign(0));
    }

    /// Those who wait for one keep it on their stack, several times over.
    #[test]
    fn what_is_waited_for_takes_little_room() {
        let forge = forge();
        let branch = Branch::parse("main").unwrap();
        let sha = Sha::parse(&"a".repeat(40)).unwrap();
        let merge = Merge {
            head: &sha,
            base: &branch,
            method: None,
            is_held: &|_| false,
        };
        let sizes = [
            size_of_val(&forge.find(&branch, &branch)),
            size_of_val(&forge.open_pulls(&branch)),
            size_of_val(&forge.newest("", &branch)),
            size_of_val(&forge.named(&[])),
            size_of_val(&forge.merge(1, &merge, &|_| None)),
        ];
        assert!(sizes.iter().all(|size| *size < 1_024), "{sizes:?}");
    }
}
