//! Reading: what a server is asked, and one commit. Version 2 of the protocol, nothing asked before.

use sluice_egress::{Content, Repeatable, Reply, Sieve};

use super::object::CommitObject;
use super::packet::{Packet, Packets, Writing};
use super::{AGENT, Git, Wrong, body, pack, trouble};
use crate::call::Call;
use crate::names::Sha;
use crate::outcome::{ForgeError, Trouble};

/// The kinds of packets in a section with a pack.
const DATA: u8 = 1;
const PROGRESS: u8 = 2;
const FAILURE: u8 = 3;

impl Git {
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
        .await?
        .body;
        if said.is_empty() {
            said = asked(&call, &wanting(commit, &["deepen 1"]), None)
                .await?
                .body;
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

/// What a server says to a request, with success. One that fails before it has said a word says nothing.
pub(super) async fn asked(
    call: &Call<'_>,
    request: &[u8],
    sieve: Option<Sieve<'_>>,
) -> Result<Reply, ForgeError> {
    let content = Content {
        media_type: "application/x-git-upload-pack-request",
        body: request,
    };
    let ask = Repeatable::Query(content);
    let reply = call.sifted(ask, "/git-upload-pack", &[], sieve).await?;
    body(call, &reply)?;
    Ok(reply)
}

/// Why a server says nothing: what it can do tells.
pub(super) async fn silence(call: &Call<'_>) -> Result<Trouble, ForgeError> {
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

    fn said(lines: &[&[u8]]) -> Vec<u8> {
        let lines = lines.iter();
        lines
            .fold(Writing::default(), |all, line| all.line(line))
            .flushed()
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
        fn any_bytes_are_read_to_an_end(bytes: Vec<u8>, lines: Vec<Vec<u8>>) {
            let lines: Vec<_> = lines.iter().map(Vec::as_slice).collect();
            let packs = said(&[&[b"packfile\n".as_slice()], lines.as_slice()].concat());
            for text in [&bytes, &packs] {
                let _ = pack_in(text);
            }
        }
    }
}
