//! Pull requests, commits and commit statuses, as all forges have them.
//!
//! What comes in: what a forge says, and what a caller wants of it. What goes out: the same words for all
//! forges, and the choice of which duplicates to close. GitLab calls a pull request a merge request; here
//! it is a pull request. Only the rooms `names` and `outcome` are used.

use crate::names::{Branch, FilePath, Sha};
use crate::outcome::Trouble;

pub(crate) use statuses::{Said, worst};
pub use statuses::{SeenStatus, Status, StatusState};

mod statuses;

/// A pull request as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// Its number in the repository.
    pub number: u64,
    /// Where people see it.
    pub url: String,
    /// Its title.
    pub title: String,
    /// Its body, in Markdown.
    pub body: String,
    /// The branch that it merges, also after that branch was deleted.
    pub head: String,
    /// The branch that it merges into.
    pub base: String,
    /// Whether its head is a branch of the same repository. That of a fork may have any name.
    pub own: bool,
    /// Whether it is not meant to be merged yet.
    pub draft: bool,
    /// Its labels, at most [`MOST_LABELS`]. Bitbucket has none. Of one of a fork they are not read.
    pub labels: Vec<String>,
    /// Whether it has more labels: one of those that are left out may say that it is not to be merged.
    pub labels_cut: bool,
    /// What became of it.
    pub state: PullState,
}

/// The most labels of a pull request that are read.
pub const MOST_LABELS: usize = 100;

impl Pull {
    /// Whether its head goes together with its base, if it is open with the head and the base that are to be
    /// merged, and nothing holds it back.
    ///
    /// # Errors
    /// Why it is not to be merged.
    pub(crate) fn mergeable(&self, merge: &Merge<'_>) -> Result<Mergeable, Trouble> {
        let is_moved = |head| head != merge.head || self.base != merge.base.as_str();
        match &self.state {
            PullState::Merged { .. } => Err(Trouble::AlreadyMerged),
            PullState::Closed => Err(Trouble::Closed),
            PullState::Open { head, .. } if is_moved(head) => Err(Trouble::HeadMoved),
            PullState::Open { .. } if (merge.is_held)(self) => Err(Trouble::HeldBack),
            PullState::Open { mergeable, .. } => Ok(*mergeable),
        }
    }

    /// Whether it is closed, as the reply to a request to close it has it.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn closed(&self) -> Result<(), Trouble> {
        match self.state {
            PullState::Closed => Ok(()),
            PullState::Merged { .. } => Err(Trouble::AlreadyMerged),
            PullState::Open { .. } => Err(Trouble::NotUnderstood("state".to_owned())),
        }
    }
}

/// What became of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullState {
    /// It is open.
    Open {
        /// The newest commit of its head. Only an open one has it: that of others follows a branch that
        /// somebody may still push to.
        head: Sha,
        /// Whether it can be merged, as far as files are concerned.
        mergeable: Mergeable,
    },
    /// It was merged.
    Merged {
        /// The commit that it became in its base, where the forge names it.
        commit: Option<Sha>,
        /// The login of the user who merged it. A list of Gitea, GitHub and Bitbucket does not have it.
        by: Option<String>,
    },
    /// It was closed without being merged.
    Closed,
}

/// Whether head and base go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mergeable {
    /// They do.
    Yes,
    /// Both change the same lines.
    Conflict,
    /// The forge has not found out yet. Gitea has one word for this and for a conflict.
    Unknown,
    /// The forge does not say: a merge shows it.
    Unsaid,
}

/// A pull request to open. Both branches are in the repository.
#[derive(Clone, Copy, Debug)]
pub struct NewPull<'a> {
    /// Its title, in one line.
    pub title: &'a str,
    /// Its body, in Markdown.
    pub body: &'a str,
    /// The branch that it merges.
    pub head: &'a Branch,
    /// The branch that it merges into.
    pub base: &'a Branch,
}

/// What is merged, and how.
#[derive(Clone, Copy)]
pub struct Merge<'a> {
    /// The commit that the head of the pull request has to be.
    pub head: &'a Sha,
    /// The branch that it has to be merged into.
    pub base: &'a Branch,
    /// The method. None: that which the repository is set to, or its first that is allowed.
    pub method: Option<MergeMethod>,
    /// Whether something that is seen just before holds it back, such as a label.
    pub is_held: &'a (dyn Fn(&Pull) -> bool + Send + Sync),
}

/// How the commits of a pull request get into its base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeMethod {
    /// A commit with two parents.
    Merge,
    /// One commit with all changes.
    Squash,
    /// Its commits again, on top of the base.
    Rebase,
    /// As the repository prefers, but never [`MergeMethod::Rebase`]: that loses which commits were joined.
    NoRebase,
}

/// A file as it is at a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its bytes, unchanged.
    pub bytes: Vec<u8>,
    /// What guards it.
    pub blob: Blob,
}

/// By what a forge sees that a file is still the one that was read: the id of its blob; on Bitbucket,
/// which does not give it, the id of the commit that it was read at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob(pub(crate) Sha);

/// One commit with changed files, on a branch that is made for it.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The branch to make.
    pub branch: &'a Branch,
    /// The branch that it goes on from.
    pub base: &'a Branch,
    /// The commit of `base` that the files were read at.
    pub from: &'a Sha,
    /// The message of the commit.
    pub message: &'a str,
    /// The files, which are all there already.
    pub files: &'a [ChangedFile<'a>],
}

/// A file with its new bytes.
#[derive(Clone, Copy, Debug)]
pub struct ChangedFile<'a> {
    /// Where it is.
    pub path: &'a FilePath,
    /// What guards the file that was read.
    pub blob: &'a Blob,
    /// The new bytes.
    pub bytes: &'a [u8],
}

/// A commit that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its id.
    pub commit: Sha,
    /// What it goes on from. Gitea takes the newest commit of the base: it is another one than
    /// [`Change::from`] if other files have changed since.
    pub parent: Sha,
}

/// How many commits of a pull request are read: more than one is more than was made here.
pub(crate) const MOST_COMMITS: &str = "10";

/// A commit as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub sha: Sha,
    /// What it goes on from, in order. A list of GitLab does not have them.
    pub parents: Vec<Sha>,
    /// What was written about it.
    pub message: String,
}

/// Which open pull requests of `head` into `base` to close, because there is an older one. Gitea opens one
/// for each of several requests that come at once; so the numbers are compared after opening, and all who
/// compare keep the same one: the lowest.
///
/// ```
/// # use sluice_forges::{Branch, surplus};
/// # fn example(listed: &[sluice_forges::Pull]) -> Result<(), sluice_forges::NameError> {
/// let (head, base) = (Branch::parse("sluice/3f9a/77aa")?, Branch::parse("main")?);
/// for pull in surplus(listed, &head, &base) {
///     // close it
/// }
/// # Ok(()) }
/// ```
pub fn surplus<'a>(listed: &'a [Pull], head: &Branch, base: &Branch) -> Vec<&'a Pull> {
    let same = |pull: &&Pull| {
        pull.own
            && pull.head == head.as_str()
            && pull.base == base.as_str()
            && matches!(pull.state, PullState::Open { .. })
    };
    let mut open: Vec<_> = listed.iter().filter(same).collect();
    open.sort_by_key(|pull| pull.number);
    open.dedup_by_key(|pull| pull.number);
    open.split_off(open.len().min(1))
}

/// Of several pull requests of one head and base, the one to go by: an open one, the lowest number of
/// them; else the newest.
pub(crate) fn foremost(pulls: Vec<Pull>) -> Option<Pull> {
    let open = |pull: &Pull| matches!(pull.state, PullState::Open { .. });
    pulls.into_iter().min_by_key(|pull| match open(pull) {
        true => (0, pull.number),
        false => (1, u64::MAX - pull.number),
    })
}

/// `text`, cut to so many characters.
pub(crate) fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some(_) => {
            let kept = text.chars().take(longest.saturating_sub(1));
            kept.chain(['…']).collect()
        }
    }
}

/// `text` without what changes how the text around it is shown, cut to so many characters.
pub(crate) fn plain(text: &str, longest: usize) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        match c {
            '\'' | '"' | '\\' => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
    }
    cut(&shown, longest)
}

/// The body of a pull request that is closed: with the reason below it, once.
pub(crate) fn closed_body(body: &str, reason: &str) -> String {
    let reason = format!("**Closed**: {reason}");
    match body.trim_end() {
        "" => reason,
        body if body.ends_with(&reason) => body.to_owned(),
        body => format!("{body}\n\n{reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pull(number: u64, state: PullState) -> Pull {
        Pull {
            number,
            url: String::new(),
            title: String::new(),
            body: String::new(),
            head: "next".to_owned(),
            base: "main".to_owned(),
            own: true,
            draft: false,
            labels: Vec::new(),
            labels_cut: false,
            state,
        }
    }

    fn open(number: u64) -> Pull {
        let head = Sha::parse(&"a".repeat(40)).unwrap();
        let mergeable = Mergeable::Unknown;
        pull(number, PullState::Open { head, mergeable })
    }

    fn to_close(listed: &[Pull]) -> Vec<u64> {
        let (head, base) = (
            Branch::parse("next").unwrap(),
            Branch::parse("main").unwrap(),
        );
        let surplus = surplus(listed, &head, &base);
        surplus.iter().map(|pull| pull.number).collect()
    }

    #[test]
    fn the_lowest_number_stays() {
        assert_eq!(to_close(&[]), [0; 0]);
        assert_eq!(to_close(&[open(7)]), [0; 0]);
        assert_eq!(to_close(&[open(9), open(7), open(8)]), [8, 9]);
    }

    #[test]
    fn others_are_no_duplicates() {
        let fork = Pull {
            own: false,
            ..open(1)
        };
        let elsewhere = Pull {
            base: "env/prod".to_owned(),
            ..open(2)
        };
        let another = Pull {
            head: "next-2".to_owned(),
            ..open(3)
        };
        let closed = pull(4, PullState::Closed);
        let all = [fork, elsewhere, another, closed, open(5), open(6)];
        assert_eq!(to_close(&all), [6]);
    }

    #[test]
    fn two_pages_may_list_the_same_one() {
        assert_eq!(to_close(&[open(7), open(7)]), [0; 0]);
    }

    #[test]
    fn an_open_one_comes_before_the_newest() {
        let closed = |number| pull(number, PullState::Closed);
        let number = |pulls| foremost(pulls).map(|pull| pull.number);
        assert_eq!(number(vec![]), None);
        assert_eq!(number(vec![closed(1), closed(3), closed(2)]), Some(3));
        assert_eq!(number(vec![closed(9), open(3), open(2)]), Some(2));
    }

    #[test]
    fn a_reason_is_written_once() {
        let once = closed_body("A change.\n", "superseded by 2.0");
        assert_eq!(once, "A change.\n\n**Closed**: superseded by 2.0");
        assert_eq!(closed_body(&once, "superseded by 2.0"), once);
        assert_eq!(closed_body(" \n", "gone"), "**Closed**: gone");
    }

    #[test]
    fn texts_are_cut_by_characters() {
        assert_eq!(cut("grün", 4), "grün");
        assert_eq!(cut("grüner", 4), "grü…");
        assert_eq!(plain("it's \"grün\"\u{202e}", 40), "it's \"grün\"\\u{202e}");
    }
}
