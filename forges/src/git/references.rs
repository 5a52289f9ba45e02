//! Reading references: those that begin in some way, and those of some names, of lists that may be too long.

use std::collections::BTreeSet;
use std::time::Duration;

use parking_lot::Mutex;
use sluice_egress::{Reply, Sieve};

use super::packet::{self, Packet, Packets, Writing};
use super::read::{asked, silence};
use super::{AGENT, Git, Wrong, trouble};
use crate::names::Sha;
use crate::outcome::ForgeError;

/// The most references that are listed.
const MOST_REFERENCES: usize = 10_000;
/// The most bytes of a list of which only some references are kept: some 100,000 of them.
const MOST_SIFTED: usize = 8 << 20;
/// For how long such a list is read: less than a request may take.
const SIFTED: Duration = Duration::from_secs(4);
/// The most bytes of a reference's name that anybody asks for.
const LONGEST_NAME: usize = 1_024;

/// A reference, and what it refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its name in full: `refs/heads/…`.
    pub name: String,
    /// The object, usually a commit.
    pub id: Sha,
}

/// What a list of references says of some names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Those that are there.
    pub found: Vec<Reference>,
    /// Those of which it does not say whether they are there, because it was cut before.
    pub left: Vec<String>,
    /// Those among which it was cut: very much begins so.
    pub wide: Vec<String>,
}

/// The references of a list that nobody has asked for.
#[derive(Default)]
struct Others {
    /// The name of the last one.
    last: Vec<u8>,
    /// Whether one came before another that it belongs behind. Servers send them in order.
    are_mixed: bool,
}

impl Others {
    fn note(&mut self, name: &[u8]) {
        self.are_mixed |= name <= self.last.as_slice();
        self.last.clear();
        self.last.extend_from_slice(name);
    }

    /// What a list says that was cut after these. In order, what was not found before them is not there.
    fn cut(&self, found: Vec<Reference>, names: &BTreeSet<&str>) -> Named {
        let wide = names
            .iter()
            .filter(|name| self.last.starts_with(name.as_bytes()));
        let wide = wide.map(|name| (*name).to_owned()).collect();
        let is_passed = |name: &str| !self.are_mixed && name.as_bytes() < self.last.as_slice();
        let there: BTreeSet<_> = found.iter().map(|it| it.name.as_str()).collect();
        let left = names.difference(&there).filter(|name| !is_passed(name));
        let left = left.map(|name| (*name).to_owned()).collect();
        Named { found, left, wide }
    }
}

impl Git {
    /// Those that begin so.
    pub(crate) async fn references(
        &self,
        prefixes: &[String],
    ) -> Result<Vec<Reference>, ForgeError> {
        let (listed, _) = self.references_in(prefixes, None).await?;
        Ok(listed)
    }

    /// Those that are called so. A server is asked for all that begin so, of which there may be very many:
    /// anyone who pushes can make them. Others are dropped while they come, and where there are too many the list is
    /// cut. What it has brought is right all the same.
    pub(crate) async fn named(&self, names: &[String]) -> Result<Named, ForgeError> {
        let all: BTreeSet<_> = names.iter().map(String::as_str).collect();
        let others = Mutex::<Others>::default();
        let keep = |text: &mut Vec<u8>| sift(text, &all, &mut others.lock());
        let sieve = Sieve {
            most: MOST_SIFTED,
            time: SIFTED,
            keep: &keep,
        };
        let (mut found, is_cut) = self.references_in(names, Some(sieve)).await?;
        found.retain(|it| all.contains(it.name.as_str()));
        Ok(match is_cut {
            true => others.into_inner().cut(found, &all),
            false => Named {
                found,
                ..Named::default()
            },
        })
    }

    /// Returns also whether the list was cut.
    async fn references_in(
        &self,
        prefixes: &[String],
        sieve: Option<Sieve<'_>>,
    ) -> Result<(Vec<Reference>, bool), ForgeError> {
        let call = self.call("list branches and other references")?;
        let prefixes = fewest(prefixes);
        if prefixes.is_empty() {
            return Ok((Vec::new(), false));
        }
        let lines = prefixes
            .iter()
            .map(|prefix| format!("ref-prefix {prefix}\n"));
        let request = Writing::default()
            .line(b"command=ls-refs\n")
            .line(AGENT)
            .delimiter();
        let Reply { body, is_cut, .. } =
            asked(&call, &request.lines(lines).flushed(), sieve).await?;
        if body.is_empty() && !is_cut {
            return Err(call.error(silence(&call).await?));
        }
        let listed = listed(&body, &prefixes, is_cut);
        let listed = listed.map_err(|wrong| call.error(trouble(&call, wrong)))?;
        Ok((listed, is_cut))
    }
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

/// The references in a reply that begin with one of these prefixes: a server may send others. One that was cut has
/// no end.
fn listed(said: &[u8], prefixes: &[&str], is_cut: bool) -> Result<Vec<Reference>, Wrong> {
    let is_wanted = |name: &str| {
        let after = prefixes.partition_point(|prefix| *prefix <= name);
        let before = after.checked_sub(1).and_then(|at| prefixes.get(at));
        before.is_some_and(|prefix| name.starts_with(prefix))
    };
    let mut listed = Vec::new();
    for packet in Packets::of(said) {
        let packet = match packet {
            Err(Wrong::Broken(_)) if is_cut => break,
            packet => packet?,
        };
        match packet {
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
    match is_cut {
        true => Ok(listed),
        false => Err(Wrong::Broken("references")),
    }
}

/// Drops the references that are called otherwise from as much of a reply as has come, and notes them.
fn sift(text: &mut Vec<u8>, names: &BTreeSet<&str>, others: &mut Others) {
    let (mut kept, mut at) = (0, 0);
    while let Some(length) = packet::length(&text[at..]) {
        let packet = at..at + length;
        let line = text
            .get(packet.clone())
            .and_then(|it| it.get(packet::LENGTH..));
        let Some(line) = line else {
            break;
        };
        match other(line, names) {
            Some(name) => others.note(name),
            None => {
                text.copy_within(packet.clone(), kept);
                kept += length;
            }
        }
        at = packet.end;
    }
    text.drain(kept..at);
}

/// The name in a line with a reference that is called otherwise. Ids of another kind are an error, and kept for that.
fn other<'l>(line: &'l [u8], names: &BTreeSet<&str>) -> Option<&'l [u8]> {
    let mut parts = line.splitn(3, |byte| matches!(byte, b' ' | b'\n'));
    let id = parts.next().and_then(|id| std::str::from_utf8(id).ok());
    id.and_then(Sha::parse).filter(Sha::is_sha1)?;
    let name = parts.next()?;
    let is_named = std::str::from_utf8(name).is_ok_and(|name| names.contains(name));
    (!is_named).then_some(name)
}

/// `id name`, perhaps with more behind it.
fn reference(line: &str) -> Option<(Sha, &str)> {
    let mut parts = line.trim_end_matches('\n').split(' ');
    Some((Sha::parse(parts.next()?)?, parts.next()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        let listed = listed(&text, &prefixes, false).unwrap();
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
            sift(&mut text, &names, &mut Others::default());
            most = most.max(text.len());
        }
        assert!(most < 300, "{most}");
        let prefixes = ["refs/heads/r", "refs/notes/x"];
        let listed = listed(&text, &prefixes, false).unwrap();
        let found: Vec<_> = listed.iter().map(|it| (it.name.as_str(), &it.id)).collect();
        assert_eq!(found, [("refs/heads/r", &a), ("refs/notes/x", &b)]);
        // What is no reference is left to the one who reads the rest.
        let other = "a".repeat(64) + " refs/heads/r0\n";
        for line in [b"ERR no".as_slice(), b"x", other.as_bytes()] {
            let whole = said(&[line]);
            let mut text = whole.clone();
            sift(&mut text, &names, &mut Others::default());
            assert_eq!(text, whole);
        }
    }

    #[test]
    fn a_list_that_is_not_whole_is_none() {
        let prefixes = [""];
        let line = format!("{} refs/heads/main\n", sha("a"));
        let whole = said(&[line.as_bytes()]);
        assert_eq!(listed(&whole, &prefixes, false).unwrap().len(), 1);
        for end in 0..whole.len() {
            assert!(listed(&whole[..end], &prefixes, false).is_err(), "{end}");
        }
        let long = format!("{} refs/heads/main\n", "a".repeat(64));
        assert_eq!(
            listed(&said(&[long.as_bytes()]), &prefixes, false),
            Err(Wrong::Sha256)
        );
        let says = listed(&said(&[b"ERR no"]), &prefixes, false);
        assert_eq!(says, Err(Wrong::Says("no".to_owned())));
        let lines = vec![line.as_bytes(); MOST_REFERENCES + 1];
        assert_eq!(
            listed(&said(&lines), &prefixes, false),
            Err(Wrong::TooMany(MOST_REFERENCES))
        );
    }

    /// What was found stays found. What is not there is known by the order, if there is one.
    #[test]
    fn a_list_that_was_cut_says_what_it_says() {
        let line = |name: &str| format!("{} {name}\n", sha("b")).into_bytes();
        let names = ["a", "a/b", "a/c", "b", "n"];
        let cut = |sent: &[&str]| {
            let lines: Vec<_> = sent.iter().map(|name| line(name)).collect();
            let lines: Vec<_> = lines.iter().map(Vec::as_slice).collect();
            let whole = said(&lines);
            // Somewhere in the next line.
            let mut text = [&whole[..whole.len() - 4], b"003cbbbb"].concat();
            let all = BTreeSet::from(names);
            let mut others = Others::default();
            sift(&mut text, &all, &mut others);
            let found = listed(&text, &["a", "b", "n"], true).unwrap();
            let Named { found, left, wide } = others.cut(found, &all);
            let found: Vec<_> = found.into_iter().map(|it| it.name).collect();
            [found.join(" "), left.join(" "), wide.join(" ")]
        };
        assert_eq!(
            cut(&["a", "a/b", "a/b1", "a/b2"]),
            ["a a/b", "a/c b n", "a a/b"]
        );
        assert_eq!(cut(&["a/b1", "a/b2"]), ["", "a/c b n", "a a/b"]);
        assert_eq!(cut(&["a/d", "n", "n1"]), ["n", "", "n"]);
        assert_eq!(cut(&[]), ["", "a a/b a/c b n", ""]);
        // Of a server that knows no order, nothing is said that it has not said.
        assert_eq!(cut(&["n1", "a/b", "a/d"]), ["a/b", "a a/c b n", "a"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes: Vec<u8>, lines: Vec<Vec<u8>>, prefixes: Vec<String>) {
            let lines: Vec<_> = lines.iter().map(Vec::as_slice).collect();
            let text = said(&lines);
            let names: BTreeSet<_> = prefixes.iter().map(String::as_str).collect();
            let prefixes = fewest(&prefixes);
            for text in [&bytes, &text] {
                sift(&mut text.clone(), &names, &mut Others::default());
                let _ = listed(text, &prefixes, false);
                let _ = listed(text, &prefixes, true);
            }
        }
    }
}
