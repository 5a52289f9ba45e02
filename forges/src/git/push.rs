//! A push of one commit, or of nothing, to one branch.

use sluice_egress::{Content, Method};

use super::object::NewCommit;
use super::packet::{Packet, Packets, Writing};
use super::read::demultiplexed;
use super::{AGENT, Git, Wrong, body, pack, trouble};
use crate::call::{Call, May, Sending};
use crate::names::{Branch, Sha};
use crate::outcome::{Act, Missing, Trouble, Undone, Words};

/// What stands for no commit.
const NOTHING: &str = "0000000000000000000000000000000000000000";

/// The most bytes of a server's words about a push that are looked at.
const LONGEST_ASIDE: usize = 4_096;

/// Where a branch is to be moved to.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    /// The branch.
    pub branch: &'a Branch,
    /// Where it is now. None: it is not there, and is made.
    pub from: Option<&'a Sha>,
    /// Where it is to be.
    pub to: Target<'a>,
}

/// A commit that a branch is moved to.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// One that is made here.
    New(&'a NewCommit),
    /// One that the repository has.
    Known(&'a Sha),
}

impl Target<'_> {
    /// The id of the commit.
    pub fn id(&self) -> Sha {
        match self {
            Self::New(commit) => commit.id(),
            Self::Known(id) => (*id).clone(),
        }
    }
}

/// What a server has done with a push.
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    Yes,
    /// It says why not, and something aside for people.
    No {
        why: String,
        aside: String,
    },
}

impl Git {
    pub(crate) async fn push(&self, update: &Update<'_>, may: May<'_>) -> Act<()> {
        let call = self.call("push to a branch")?;
        let to = update.to.id();
        if !to.is_sha1() || update.from.is_some_and(|from| !from.is_sha1()) {
            return call.undone(Trouble::Sha256);
        }
        let reference = update.branch.reference();
        let request = request(update, &reference, &to);
        let content = Sending::Other(Content {
            media_type: "application/x-git-receive-pack-request",
            body: &request,
        });
        let path = "/git-receive-pack";
        let reply = call.send_while(Method::Post, path, content, may).await?;
        let said = body(&call, &reply).map_err(Undone::after)?;
        match taken(said, &reference) {
            Ok(Taken::Yes) => Ok(()),
            Ok(Taken::No { why, aside }) => match refusal(&call, update.to, &why, &aside) {
                Trouble::BranchMoved if self.is_at(&reference, &to).await => Ok(()),
                trouble => call.undone(trouble),
            },
            // Whether it was done before the server failed is not known.
            Err(Wrong::Says(_)) => call.undone(Trouble::NotUnderstood("a push".to_owned())),
            Err(wrong) => call.undone(trouble(&call, wrong)),
        }
    }

    /// Whether a branch is where it was to be moved: then somebody has done the same before.
    async fn is_at(&self, reference: &str, to: &Sha) -> bool {
        let seen = self.named(&[reference.to_owned()]).await;
        let mut found = seen.unwrap_or_default().found.into_iter();
        found.any(|it| it.id == *to)
    }
}

fn request(update: &Update<'_>, reference: &str, to: &Sha) -> Vec<u8> {
    let from = update.from.map_or(NOTHING, Sha::as_str);
    let agent = String::from_utf8_lossy(AGENT);
    let line = format!("{from} {to} {reference}\0 report-status side-band-64k {agent}");
    let mut request = Writing::default().line(line.as_bytes()).flushed();
    request.extend(match update.to {
        Target::New(commit) => pack::packed(Some(&commit.bytes())),
        Target::Known(_) => pack::packed(None),
    });
    request
}

/// What the report in a reply says of this reference. Without a report nothing is known.
fn taken(said: &[u8], reference: &str) -> Result<Taken, Wrong> {
    let (report, mut aside) = demultiplexed(&mut Packets::of(said))?;
    aside.truncate(LONGEST_ASIDE);
    let aside = String::from_utf8_lossy(&aside).into_owned();
    let mut lines = Vec::new();
    for packet in Packets::of(&report) {
        match packet? {
            Packet::Line(line) => lines.push(String::from_utf8_lossy(line).trim_end().to_owned()),
            Packet::Flush => return outcome(&lines, reference, aside),
            Packet::Delimiter | Packet::End => break,
        }
    }
    Err(Wrong::Broken("the report of a push"))
}

fn outcome(lines: &[String], reference: &str, aside: String) -> Result<Taken, Wrong> {
    let after = |word: &str| lines.iter().find_map(|line| line.strip_prefix(word));
    let refused = |why: &str| {
        Ok(Taken::No {
            why: why.to_owned(),
            aside,
        })
    };
    match (after("unpack "), after("ok "), after("ng ")) {
        (Some("ok"), Some(name), None) if name == reference => Ok(Taken::Yes),
        (Some(_), None, Some(told)) => match told.split_once(' ') {
            Some((name, why)) if name == reference => refused(why),
            _ => Err(Wrong::Broken("the report of a push")),
        },
        (Some(why), None, None) if why != "ok" => refused(why),
        _ => Err(Wrong::Broken("the report of a push")),
    }
}

/// Why a push was refused. Servers say it in few words, which Git has had for long; only those of rules and
/// hooks are the forge's own, and stand aside.
fn refusal(call: &Call<'_>, to: Target<'_>, why: &str, aside: &str) -> Trouble {
    let says = |words: &str| why.contains(words);
    let stale = [
        "failed to update ref",
        "cannot lock ref",
        "reference already exists",
        "reference does not exist",
        "incorrect old value",
        "stale info",
    ];
    // `a` and `a/b` cannot both be branches.
    let in_the_way = [why, aside]
        .iter()
        .any(|text| text.contains("; cannot create"));
    match to {
        Target::New(_) if says("missing necessary objects") => Trouble::Absent(Missing::Object),
        Target::Known(_) if says("missing necessary objects") => Trouble::Absent(Missing::Commit),
        Target::New(_) | Target::Known(_) if stale.into_iter().any(says) && !in_the_way => {
            Trouble::BranchMoved
        }
        Target::New(_) | Target::Known(_) => {
            let lines = aside.lines().map(str::trim).filter(|line| !line.is_empty());
            let all: Vec<_> = [why].into_iter().chain(lines).collect();
            let words = match call.quoted(&all.join(": ")) {
                Words(None) => call.quoted(why),
                words => words,
            };
            Trouble::PushRefused(words)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::git::object::Signature;

    const REFERENCE: &str = "refs/heads/env/prod";

    fn sha(digit: &str) -> Sha {
        Sha::parse(&digit.repeat(40)).unwrap()
    }

    /// A reply with this report, and something aside.
    fn reply(report: &[&str], aside: &str) -> Vec<u8> {
        let lines = report.iter().map(|line| format!("{line}\n"));
        let report = Writing::default().lines(lines).flushed();
        let aside = ["\x02", aside].concat();
        let report = [b"\x01".as_slice(), &report].concat();
        Writing::default()
            .line(aside.as_bytes())
            .line(&report)
            .flushed()
    }

    fn no(why: &str, aside: &str) -> Result<Taken, Wrong> {
        Ok(Taken::No {
            why: why.to_owned(),
            aside: aside.to_owned(),
        })
    }

    #[test]
    fn a_push_is_one_command_with_its_pack() {
        let branch = Branch::parse("env/prod").unwrap();
        let (from, to) = (sha("a"), sha("b"));
        let update = Update {
            branch: &branch,
            from: Some(&from),
            to: Target::Known(&to),
        };
        let sent = request(&update, REFERENCE, &to);
        let line = format!("{from} {to} {REFERENCE}\0 report-status side-band-64k agent=sluice");
        let expected = Writing::default().line(line.as_bytes()).flushed();
        assert_eq!(sent, [expected, pack::packed(None)].concat());

        let commit = NewCommit {
            tree: sha("c"),
            parents: vec![sha("a")],
            author: Signature {
                name: "Sluice".to_owned(),
                email: "sluice@example.com".to_owned(),
            },
            at: "2026-11-20T12:00:00Z".parse().unwrap(),
            message: "Keep".to_owned(),
        };
        let to = Target::New(&commit);
        let made = Update {
            from: None,
            to,
            ..update
        };
        let sent = request(&made, REFERENCE, &to.id());
        assert!(sent[4..].starts_with(NOTHING.as_bytes()));
        assert!(sent.ends_with(&pack::packed(Some(&commit.bytes()))));
    }

    #[test]
    fn only_a_report_says_what_was_done() {
        let told = |report: &[&str]| taken(&reply(report, "hello"), REFERENCE);
        let broken = Err(Wrong::Broken("the report of a push"));
        assert_eq!(
            told(&["unpack ok", "ok refs/heads/env/prod"]),
            Ok(Taken::Yes)
        );
        assert_eq!(told(&["unpack ok", "ok refs/heads/env"]), broken);
        assert_eq!(told(&["unpack ok"]), broken);
        assert_eq!(told(&["ok refs/heads/env/prod"]), broken);
        assert_eq!(told(&["unpack ok", "ng refs/heads/env why"]), broken);
        let hook = [
            "unpack ok",
            "ng refs/heads/env/prod pre-receive hook declined",
        ];
        assert_eq!(told(&hook), no("pre-receive hook declined", "hello"));
        let failed = [
            "unpack index-pack failed",
            "ng refs/heads/env/prod unpacker error",
        ];
        assert_eq!(told(&failed), no("unpacker error", "hello"));
        assert_eq!(
            told(&["unpack index-pack failed"]),
            no("index-pack failed", "hello")
        );
        let whole = reply(&["unpack ok", "ok refs/heads/env/prod"], "");
        for end in 0..whole.len() {
            assert!(taken(&whole[..end], REFERENCE).is_err(), "{end}");
        }
        let failed = Writing::default().line(b"\x03out of memory").flushed();
        assert!(matches!(taken(&failed, REFERENCE), Err(Wrong::Says(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes: Vec<u8>, lines: Vec<String>, aside: String) {
            let lines: Vec<_> = lines.iter().map(String::as_str).collect();
            let _ = taken(&bytes, REFERENCE);
            let _ = taken(&reply(&lines, &aside), REFERENCE);
        }
    }
}
