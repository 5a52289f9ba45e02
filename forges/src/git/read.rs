//! Reading: references, and one commit. Version 2 of the protocol, nothing asked before.

use std::collections::BTreeSet;

use sluice_egress::{Content, Repeatable, Sieve};

use super::object::CommitObject;
use super::packet::{self, Packet, Packets, Writing};
use super::{AGENT, Git, Wrong, body, pack, trouble};
use crate::call::Call;
use crate::names::Sha;
use crate::outcome::{ForgeError, Trouble};

/// The most references that are listed.
const MOST_REFERENCES: usize = 10_000;
/// The most bytes of a list of which only some references are kept: some 100,000 of them.
const MOST_SIFTED: usize = 8 << 20;
/// The most bytes of a reference's name that anybody asks for.
const LONGEST_NAME: usize = 1_024;

/// The kinds of packets in a section with a pack.
const DATA: u8 = 1;
const PROGRESS: u8 = 2;
const FAILURE: u8 = 3;

/// A reference, and what it refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its name in full: `refs/heads/…`.
    pub name: String,
    /// The object, usually a commit.
    pub id: Sha,
}

impl Git {
    /// Those that begin so.
    pub(crate) async fn references(
        &self,
        prefixes: &[String],
    ) -> Result<Vec<Reference>, ForgeError> {
        self.references_in(prefixes, None).await
    }

    /// Those that are called so. A server is asked for all that begin so, of which there may be very many:
    /// whoever pushes can make them. Others are dropped while they come.
    pub(crate) async fn named(&self, names: &[String]) -> Result<Vec<Reference>, ForgeError> {
        let all: BTreeSet<_> = names.iter().map(String::as_str).collect();
        let keep = |text: &mut Vec<u8>| sift(text, &all);
        let sieve = Sieve {
            most: MOST_SIFTED,
            keep: &keep,
        };
        let mut found = self.references_in(names, Some(sieve)).await?;
        found.retain(|it| all.contains(it.name.as_str()));
        Ok(found)
    }

    async fn references_in(
        &self,
        prefixes: &[String],
        sieve: Option<Sieve<'_>>,
    ) -> Result<Vec<Reference>, ForgeError> {
        let call = self.call("list branches and other references")?;
        let prefixes = fewest(prefixes);
        if prefixes.is_empty() {
            return Ok(Vec::new());
        }
        let lines = prefixes
            .iter()
            .map(|prefix| format!("ref-prefix {prefix}\n"));
        let request = Writing::default()
            .line(b"command=ls-refs\n")
            .line(AGENT)
            .delimiter();
        let said = asked(&call, &request.lines(lines).flushed(), sieve).await?;
        if said.is_empty() {
            return Err(call.error(silence(&call).await?));
        }
        let listed = listed(&said, &prefixes);
        listed.map_err(|wrong| call.error(trouble(&call, wrong)))
    }

    /// Its tree is left out. A server that cannot do so says nothing, and is asked for everything.
    pub(crate) async fn commit_object(
        &self,
        commit: &Sha,
    ) -> Result<Option<CommitObject>, ForgeError> {
        let call = self.call("read a commit with its tree")?;
        if !commit.is_sha1() {
            return Err(call.error(Trouble::Sha256));
        }
        let mut said = asked(
            &call,
            &wanting(commit, &["deepen 1", "filter tree:0"]),
            None,
        )
        .await?;
        if said.is_empty() {
            said = asked(&call, &wanting(commit, &["deepen 1"]), None).await?;
        }
        if said.is_empty() {
            return Err(call.error(silence(&call).await?));
        }
        let found = match pack_in(&said) {
            Err(Wrong::Says(words)) if words.contains("not our ref") => return Ok(None),
            found => found.and_then(|pack| pack::commit(&pack, commit)),
        };
        let read = found.and_then(|bytes| CommitObject::read(commit, &bytes));
        read.map(Some)
            .map_err(|wrong| call.error(trouble(&call, wrong)))
    }
}

fn wanting(commit: &Sha, how: &[&str]) -> Vec<u8> {
    let request = Writing::default()
        .line(b"command=fetch\n")
        .line(AGENT)
        .delimiter();
    let how = how.iter().map(|line| format!("{line}\n"));
    let request = request.line(b"no-progress\n").lines(how);
    let want = format!("want {commit}\n");
    request.line(want.as_bytes()).line(b"done\n").flushed()
}

/// What a server says to a request. A server that fails before it has said a word says nothing, with success.
async fn asked(
    call: &Call<'_>,
    request: &[u8],
    sieve: Option<Sieve<'_>>,
) -> Result<Vec<u8>, ForgeError> {
    let content = Content {
        media_type: "application/x-git-upload-pack-request",
        body: request,
    };
    let ask = Repeatable::Query(content);
    let reply = call.sifted(ask, "/git-upload-pack", &[], sieve).await?;
    body(call, &reply).map(<[u8]>::to_vec)
}

/// Why a server says nothing: what it can do tells.
async fn silence(call: &Call<'_>) -> Result<Trouble, ForgeError> {
    let query = [("service", "git-upload-pack")];
    let reply = call.question(Repeatable::Get, "/info/refs", &query).await?;
    let mut can = Vec::new();
    for packet in Packets::of(body(call, &reply)?).flatten() {
        if let Packet::Line(line) = packet {
            can.push(line.strip_suffix(b"\n").unwrap_or(line));
        }
    }
    Ok(match can.contains(&b"version 2".as_slice()) {
        true if can.contains(&b"object-format=sha256".as_slice()) => Trouble::Sha256,
        true => Trouble::NotUnderstood("an empty reply".to_owned()),
        false => Trouble::OldGit,
    })
}

/// The prefixes, sorted, without those that another one covers, and without what no name begins with.
fn fewest(prefixes: &[String]) -> Vec<&str> {
    let possible =
        |prefix: &&str| prefix.len() <= LONGEST_NAME && !prefix.contains(char::is_control);
    let mut prefixes: Vec<_> = prefixes
        .iter()
        .map(String::as_str)
        .filter(possible)
        .collect();
    prefixes.sort_unstable();
    prefixes.dedup_by(|next, before| next.starts_with(*before));
    prefixes
}

/// The references in a reply that begin with one of these prefixes: a server may send others.
fn listed(said: &[u8], prefixes: &[&str]) -> Result<Vec<Reference>, Wrong> {
    let is_wanted = |name: &str| {
        let after = prefixes.partition_point(|prefix| *prefix <= name);
        let before = after.checked_sub(1).and_then(|at| prefixes.get(at));
        before.is_some_and(|prefix| name.starts_with(prefix))
    };
    let mut listed = Vec::new();
    for packet in Packets::of(said) {
        match packet? {
            Packet::Flush => return Ok(listed),
            Packet::Delimiter | Packet::End => break,
            Packet::Line(line) => {
                // A name that is no text is none that anybody asked for.
                let Ok(line) = std::str::from_utf8(line) else {
                    continue;
                };
                let (id, name) = reference(line).ok_or(Wrong::Broken("a reference"))?;
                if !id.is_sha1() {
                    return Err(Wrong::Sha256);
                }
                // Git gives nothing a name with a control character.
                if is_wanted(name) && !name.contains(char::is_control) {
                    let name = name.to_owned();
                    listed.push(Reference { name, id });
                }
                if listed.len() > MOST_REFERENCES {
                    return Err(Wrong::TooMany(MOST_REFERENCES));
                }
            }
        }
    }
    Err(Wrong::Broken("references"))
}

/// Drops the references that are called otherwise from as much of a reply as has come.
fn sift(text: &mut Vec<u8>, names: &BTreeSet<&str>) {
    let (mut kept, mut at) = (0, 0);
    while let Some(length) = packet::length(&text[at..]) {
        let packet = at..at + length;
        let line = text
            .get(packet.clone())
            .and_then(|it| it.get(packet::LENGTH..));
        let Some(line) = line else {
            break;
        };
        if !is_other(line, names) {
            text.copy_within(packet.clone(), kept);
            kept += length;
        }
        at = packet.end;
    }
    text.drain(kept..at);
}

/// Whether a line has a reference that is called otherwise. Ids of another kind are an error, and kept for that.
fn is_other(line: &[u8], names: &BTreeSet<&str>) -> bool {
    let mut parts = line.splitn(3, |byte| matches!(byte, b' ' | b'\n'));
    let id = parts.next().and_then(|id| std::str::from_utf8(id).ok());
    let is_sha1 = id.and_then(Sha::parse).is_some_and(|id| id.is_sha1());
    let name = parts.next().map(std::str::from_utf8);
    is_sha1 && name.is_some_and(|name| name.map_or(true, |name| !names.contains(name)))
}

/// `id name`, perhaps with more behind it.
fn reference(line: &str) -> Option<(Sha, &str)> {
    let mut parts = line.trim_end_matches('\n').split(' ');
    Some((Sha::parse(parts.next()?)?, parts.next()?))
}

/// The pack in a reply.
fn pack_in(said: &[u8]) -> Result<Vec<u8>, Wrong> {
    let mut packets = Packets::of(said);
    while let Some(packet) = packets.next() {
        match packet? {
            Packet::Line(b"packfile\n" | b"packfile") => {
                return demultiplexed(&mut packets).map(|(pack, _)| pack);
            }
            Packet::Line(_) | Packet::Delimiter => {}
            Packet::Flush | Packet::End => break,
        }
    }
    Err(Wrong::Broken("packfile"))
}

/// What packets hold up to the next flush: data, and what is said aside for people.
pub(super) fn demultiplexed(packets: &mut Packets<'_>) -> Result<(Vec<u8>, Vec<u8>), Wrong> {
    let (mut data, mut aside) = (Vec::new(), Vec::new());
    for packet in packets {
        match packet? {
            Packet::Line([DATA, more @ ..]) => data.extend_from_slice(more),
            Packet::Line([PROGRESS, words @ ..]) => aside.extend_from_slice(words),
            Packet::Line([FAILURE, words @ ..]) => {
                return Err(Wrong::Says(String::from_utf8_lossy(words).into_owned()));
            }
            Packet::Flush => return Ok((data, aside)),
            Packet::Line(_) | Packet::Delimiter | Packet::End => break,
        }
    }
    Err(Wrong::Broken("a section"))
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use proptest::prelude::*;

    use super::*;
    use crate::git::object;

    fn sha(digit: &str) -> Sha {
        Sha::parse(&digit.repeat(40)).unwrap()
    }

    fn said(lines: &[&[u8]]) -> Vec<u8> {
        let lines = lines.iter();
        lines
            .fold(Writing::default(), |all, line| all.line(line))
            .flushed()
    }

    #[test]
    fn prefixes_are_asked_for_once() {
        let all = [
            "refs/notes/x",
            "refs/heads/env/dev",
            "refs/heads/env",
            "refs/heads/env/dev-next",
            "a\nb",
            "refs/heads/env",
        ];
        let all = all.map(str::to_owned);
        assert_eq!(fewest(&all), ["refs/heads/env", "refs/notes/x"]);
        assert_eq!(fewest(&["x".repeat(2_000)]), [""; 0]);
    }

    #[test]
    fn references_are_those_that_were_asked_for() {
        let (a, b) = (sha("a"), sha("b"));
        let line = |id: &Sha, name: &str| format!("{id} {name}\n").into_bytes();
        let text = said(&[
            &line(&a, "refs/heads/env/dev"),
            &line(&b, "refs/heads/env/dev-next"),
            &line(&b, "refs/heads/main peeled:x"),
            &line(&b, "refs/heads/zz"),
            &line(&b, "refs/heads/main\u{1b}[31m"),
            &[a.as_str().as_bytes(), b" refs/heads/\xff\n"].concat(),
        ]);
        let prefixes = ["refs/heads/env/dev", "refs/heads/main"];
        let listed = listed(&text, &prefixes).unwrap();
        let names: Vec<_> = listed.iter().map(|it| (it.name.as_str(), &it.id)).collect();
        let expected = [
            ("refs/heads/env/dev", &a),
            ("refs/heads/env/dev-next", &b),
            ("refs/heads/main", &b),
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn other_references_are_dropped_while_they_come() {
        let (a, b) = (sha("a"), sha("b"));
        let line = |id: &Sha, name: &str| format!("{id} {name}\n").into_bytes();
        let mut lines = vec![line(&a, "refs/heads/r")];
        lines.extend((0..20_000).map(|n| line(&b, &format!("refs/heads/r{n}"))));
        lines.push([b.as_str().as_bytes(), b" refs/heads/\xff\n"].concat());
        lines.push(line(&b, "refs/notes/x peeled:y"));
        let lines: Vec<_> = lines.iter().map(Vec::as_slice).collect();
        let whole = said(&lines);
        let names = BTreeSet::from(["refs/heads/r", "refs/notes/x"]);
        let (mut text, mut most) = (Vec::new(), 0);
        for chunk in whole.chunks(1_000) {
            text.extend_from_slice(chunk);
            sift(&mut text, &names);
            most = most.max(text.len());
        }
        assert!(most < 300, "{most}");
        let prefixes = ["refs/heads/r", "refs/notes/x"];
        let listed = listed(&text, &prefixes).unwrap();
        let found: Vec<_> = listed.iter().map(|it| (it.name.as_str(), &it.id)).collect();
        assert_eq!(found, [("refs/heads/r", &a), ("refs/notes/x", &b)]);
        // What is no reference is left to whoever reads the rest.
        let other = "a".repeat(64) + " refs/heads/r0\n";
        for line in [b"ERR no".as_slice(), b"x", other.as_bytes()] {
            let whole = said(&[line]);
            let mut text = whole.clone();
            sift(&mut text, &names);
            assert_eq!(text, whole);
        }
    }

    #[test]
    fn a_list_that_is_not_whole_is_none() {
        let prefixes = [""];
        let line = format!("{} refs/heads/main\n", sha("a"));
        let whole = said(&[line.as_bytes()]);
        assert_eq!(listed(&whole, &prefixes).unwrap().len(), 1);
        for end in 0..whole.len() {
            assert!(listed(&whole[..end], &prefixes).is_err(), "{end}");
        }
        let long = format!("{} refs/heads/main\n", "a".repeat(64));
        assert_eq!(
            listed(&said(&[long.as_bytes()]), &prefixes),
            Err(Wrong::Sha256)
        );
        let says = listed(&said(&[b"ERR no"]), &prefixes);
        assert_eq!(says, Err(Wrong::Says("no".to_owned())));
        let lines = vec![line.as_bytes(); MOST_REFERENCES + 1];
        assert_eq!(
            listed(&said(&lines), &prefixes),
            Err(Wrong::TooMany(MOST_REFERENCES))
        );
    }

    #[test]
    fn a_pack_may_come_in_pieces() {
        let pack = pack::packed(Some(b"it"));
        let mut text = Writing::default()
            .line(b"shallow-info\n")
            .line(b"shallow x\n")
            .delimiter()
            .line(b"packfile\n")
            .line(b"\x02Counting\n");
        for byte in &pack {
            text = text.line(&[DATA, *byte]);
        }
        let text = text.flushed();
        assert_eq!(pack_in(&text), Ok(pack.clone()));
        let found =
            pack_in(&text).and_then(|pack| pack::commit(&pack, &object::id("commit", b"it")));
        assert_eq!(found, Ok(b"it".to_vec()));
        for end in 0..text.len() {
            assert!(pack_in(&text[..end]).is_err(), "{end}");
        }
        let failed = said(&[b"packfile\n", b"\x03out of memory"]);
        assert_eq!(
            pack_in(&failed),
            Err(Wrong::Says("out of memory".to_owned()))
        );
        assert_eq!(
            pack_in(&said(&[b"packfile\n", b"\x07?"])),
            Err(Wrong::Broken("a section"))
        );
    }

    /// What `git upload-pack` of 2.39 sends of a commit with one file, with trees and file.
    #[test]
    fn a_commit_is_found_among_what_comes_along() {
        let said = concat!(
            "MDAxMXNoYWxsb3ctaW5mbwowMDM0c2hhbGxvdyBjNDg2MWNhZTNmM2UyMTQ1ZTI0NWZmYmQwNjg4MGZkNGJkOWVlOGZj",
            "MDAwMTAwMGRwYWNrZmlsZQowMGY0AVBBQ0sAAAACAAAABJIKeJyVi0EKwjAQAO95xd4F2aTdzQZEfILgC9J0i4WGSNyC",
            "z7f4Ay8zMDDWVYEnGVOZMRKLlInC7CkMvASlQbIuGccgHJPLuz1bh8e2r0Xh8v75pp9cX5ueS6tX8DGRj4yIcDqA7qh1",
            "NdM/N3fvrTZT9wWLHDCdrwF4nDMxAAKFxIKCYobP0/LsXjZJzHm8ataF8om7ft4o/3oWAMgCD+ClAnicMzQwMDMxUSgo",
            "yk/Rq0zMzWHYoRrY0pPin7wjsKr6fvfLlZOefbkFAPIsEHo7eJwrSy0qzszPs1Iw5AIAGfwDMDAxOQGcL8CfQbqMMPre",
            "59YK0nMv2VFFPTAwMDYB1TAwMDA=",
        );
        let said = BASE64_STANDARD.decode(said).unwrap();
        let id = Sha::parse("c4861cae3f3e2145e245ffbd06880fd4bd9ee8fc").unwrap();
        let pack = pack_in(&said).unwrap();
        let commit = CommitObject::read(&id, &pack::commit(&pack, &id).unwrap()).unwrap();
        assert_eq!(
            commit.tree.as_str(),
            "6b849cd075688cb52d15236f2e538aefa0428679"
        );
        assert_eq!(
            (commit.parents.len(), commit.message.as_str()),
            (0, "Promote\n")
        );
        assert_eq!(
            pack::commit(&pack, &commit.tree),
            Err(Wrong::Broken("pack"))
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes: Vec<u8>, lines: Vec<Vec<u8>>, prefixes: Vec<String>) {
            let lines: Vec<_> = lines.iter().map(Vec::as_slice).collect();
            let text = said(&lines);
            let packs = said(&[&[b"packfile\n".as_slice()], lines.as_slice()].concat());
            let names: BTreeSet<_> = prefixes.iter().map(String::as_str).collect();
            let prefixes = fewest(&prefixes);
            for text in [&bytes, &text, &packs] {
                sift(&mut text.clone(), &names);
                let _ = listed(text, &prefixes);
                let _ = pack_in(text);
            }
        }
    }
}
