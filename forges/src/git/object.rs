//! Commits, as Git has them byte for byte (gitformat-commit is what `git cat-file -p` shows).

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use jiff::Timestamp;

use super::Wrong;
use crate::names::Sha;

/// The most parents of a commit that is read: Git makes more, and nobody does.
pub(super) const MOST_PARENTS: usize = 16;

/// A commit object as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitObject {
    /// Its id.
    pub id: Sha,
    /// What is in it: two commits with the same tree have the same files.
    pub tree: Sha,
    /// What it goes on from, in order.
    pub parents: Vec<Sha>,
    /// Who wrote it, in their own words. None: that is not written as Git writes it.
    pub author: Option<Signature>,
    /// When it was committed, by the clock of the one who did.
    pub committed_at: Timestamp,
    /// What was written about it, with its trailers.
    pub message: String,
}

/// Who wrote a commit, by their own account.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they say what they are")]
pub struct Signature {
    pub name: String,
    pub email: String,
}

/// A commit to push. Its id follows from what is here: made again from the same, it is the same commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCommit {
    /// What is in it. The repository has it.
    pub tree: Sha,
    /// What it goes on from, in order. The repository has them.
    pub parents: Vec<Sha>,
    /// Who makes it. What Git has no room for in a name is left out.
    pub author: Signature,
    /// When it is made, to the second.
    pub at: Timestamp,
    /// What it is about. A line break at its end is added where it is missing.
    pub message: String,
}

impl NewCommit {
    /// Its id.
    pub fn id(&self) -> Sha {
        id("commit", &self.bytes())
    }

    /// It, as Git keeps it.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let parents = self.parents.iter();
        let parents: String = parents.map(|parent| format!("parent {parent}\n")).collect();
        let author = &self.author;
        // Git knows no instant before 1970.
        let seconds = self.at.as_second().max(0);
        let (name, email) = (clean(&author.name), clean(&author.email));
        let by = format!("{name} <{email}> {seconds} +0000");
        let message = self.message.replace('\0', "");
        let end = if message.ends_with('\n') { "" } else { "\n" };
        let tree = &self.tree;
        format!("tree {tree}\n{parents}author {by}\ncommitter {by}\n\n{message}{end}").into_bytes()
    }
}

impl CommitObject {
    /// The commit with this id, which these bytes have.
    pub(super) fn read(id: &Sha, bytes: &[u8]) -> Result<Self, Wrong> {
        let text = String::from_utf8_lossy(bytes);
        let (head, message) = match text.split_once("\n\n") {
            Some(parts) => parts,
            None => (text.trim_end_matches('\n'), ""),
        };
        let mut lines = head.split('\n').peekable();
        let tree = lines.next().and_then(|line| line.strip_prefix("tree "));
        let tree = tree.and_then(sha1).ok_or(Wrong::Broken("tree"))?;
        let mut parents = Vec::new();
        while let Some(parent) = lines.peek().and_then(|line| line.strip_prefix("parent ")) {
            if parents.len() == MOST_PARENTS {
                return Err(Wrong::TooManyParents);
            }
            parents.push(sha1(parent).ok_or(Wrong::Broken("parent"))?);
            lines.next();
        }
        let find = |name: &str| lines.clone().find_map(|line| line.strip_prefix(name));
        let author = find("author ").and_then(Signature::read);
        let committer = find("committer ").and_then(instant);
        Ok(Self {
            id: id.clone(),
            tree,
            parents,
            author,
            committed_at: committer.ok_or(Wrong::Broken("committer"))?,
            message: message.to_owned(),
        })
    }
}

impl Signature {
    /// `Name <email> seconds zone`.
    fn read(line: &str) -> Option<Self> {
        let (name, rest) = line.split_once('<')?;
        let (email, _) = rest.split_once('>')?;
        Some(Self {
            name: name.trim().to_owned(),
            email: email.trim().to_owned(),
        })
    }
}

/// The instant in a line of the same form.
fn instant(line: &str) -> Option<Timestamp> {
    let (_, times) = line.rsplit_once('>')?;
    let seconds = times.split_ascii_whitespace().next()?;
    Timestamp::from_second(seconds.parse().ok()?).ok()
}

fn sha1(text: &str) -> Option<Sha> {
    Sha::parse(text).filter(Sha::is_sha1)
}

/// The id of an object.
pub(super) fn id(kind: &str, bytes: &[u8]) -> Sha {
    let head = format!("{kind} {}\0", bytes.len());
    let whole = [head.as_bytes(), bytes].concat();
    Sha::of(digest(&SHA1_FOR_LEGACY_USE_ONLY, &whole).as_ref())
}

/// A name without what would end it.
fn clean(name: &str) -> String {
    let kept = name.chars().filter(|c| !c.is_control());
    let kept: String = kept.filter(|c| !matches!(c, '<' | '>')).collect();
    kept.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sha(digit: &str) -> Sha {
        Sha::parse(&digit.repeat(40)).unwrap()
    }

    fn commit(author: (&str, &str), message: &str) -> NewCommit {
        NewCommit {
            tree: Sha::parse("4b825dc642cb6eb9a060e54bf8d69288fbee4904").unwrap(),
            parents: vec![sha("a"), sha("b")],
            author: Signature {
                name: author.0.to_owned(),
                email: author.1.to_owned(),
            },
            at: "2026-11-20T12:00:00Z".parse().unwrap(),
            message: message.to_owned(),
        }
    }

    fn read(new: &NewCommit) -> CommitObject {
        CommitObject::read(&new.id(), &new.bytes()).unwrap()
    }

    /// By `git hash-object -t commit --stdin`.
    #[test]
    fn a_commit_has_the_id_that_git_gives_it() {
        let new = commit(
            ("Sluice", "sluice@example.com"),
            "Keep what is active\n\nGrün.\n",
        );
        let text = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\
                    parent aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n\
                    parent bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n\
                    author Sluice <sluice@example.com> 1795176000 +0000\n\
                    committer Sluice <sluice@example.com> 1795176000 +0000\n\n\
                    Keep what is active\n\nGrün.\n";
        assert_eq!(String::from_utf8(new.bytes()).unwrap(), text);
        assert_eq!(
            new.id().as_str(),
            "1a30df2a1e466b6369da990c9e860f5f16010b2d"
        );
    }

    #[test]
    fn names_stay_within_their_line() {
        let new = commit(("A\nparent <x>", "a@b>\n"), "x");
        let seen = read(&new);
        let author = seen.author.unwrap();
        assert_eq!(
            (author.name.as_str(), author.email.as_str()),
            ("Aparent x", "a@b")
        );
        assert_eq!((seen.parents.len(), seen.message.as_str()), (2, "x\n"));
    }

    #[test]
    fn a_signature_is_no_message() {
        let text = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\
                    author nobody\n\
                    committer A <a@b> 1795176000 +0100\n\
                    gpgsig -----BEGIN SSH SIGNATURE-----\n \n author x\n -----END\n\n\
                    Subject\n\nauthor Mallory <m@b> 1 +0000\n";
        let seen = CommitObject::read(&sha("c"), text.as_bytes()).unwrap();
        assert_eq!(seen.author, None);
        assert_eq!(seen.committed_at.as_second(), 1_795_176_000);
        assert_eq!(seen.message, "Subject\n\nauthor Mallory <m@b> 1 +0000\n");
        assert_eq!(seen.parents, []);
    }

    #[test]
    fn what_is_no_commit_is_told() {
        let wrong = |text: &str| CommitObject::read(&sha("c"), text.as_bytes()).unwrap_err();
        assert_eq!(wrong(""), Wrong::Broken("tree"));
        assert_eq!(
            wrong(&format!("tree {}", "a".repeat(64))),
            Wrong::Broken("tree")
        );
        let tree = format!("tree {}\n", sha("a"));
        assert_eq!(wrong(&format!("{tree}parent x\n")), Wrong::Broken("parent"));
        assert_eq!(wrong(&tree), Wrong::Broken("committer"));
        let late = format!("{tree}committer A <a> 99999999999999 +0000\n\n");
        assert_eq!(wrong(&late), Wrong::Broken("committer"));
    }

    #[test]
    fn of_a_commit_with_too_many_parents_nothing_is_read() {
        let of = |count| NewCommit {
            parents: vec![sha("b"); count],
            ..commit(("Alice", "alice@example.com"), "Join")
        };
        assert_eq!(read(&of(MOST_PARENTS)).parents.len(), MOST_PARENTS);
        let bytes = of(MOST_PARENTS + 1).bytes();
        let read = CommitObject::read(&sha("a"), &bytes);
        assert_eq!(read, Err(Wrong::TooManyParents));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            parents in prop::collection::vec("[0-9a-f]{40}", 0..4),
            name in "[a-zA-Z ü]{0,20}", email in "[a-z@.]{0,20}",
            seconds in 0_i64..9_999_999_999, message in "[^\0]*",
        ) {
            let parents = parents.iter().map(|id| Sha::parse(id).unwrap()).collect();
            let at = Timestamp::from_second(seconds).unwrap();
            let author = Signature { name: name.trim().to_owned(), email };
            let new = NewCommit { parents, author, at, message, ..commit(("", ""), "") };
            let seen = read(&new);
            prop_assert_eq!((&seen.id, &seen.tree), (&new.id(), &new.tree));
            prop_assert_eq!((&seen.parents, &seen.author), (&new.parents, &Some(new.author.clone())));
            prop_assert_eq!(seen.committed_at, new.at);
            prop_assert_eq!(seen.message.trim_end_matches('\n'), new.message.trim_end_matches('\n'));
        }

        #[test]
        fn any_bytes_are_read_to_an_end(bytes: Vec<u8>, text in ".*") {
            let tree = format!("tree {}\n{text}", sha("a"));
            let _ = CommitObject::read(&sha("a"), &bytes);
            let _ = CommitObject::read(&sha("a"), tree.as_bytes());
        }
    }
}
