//! Lines with their lengths in front: what requests and replies of Git are made of (gitprotocol-common).

use super::Wrong;

/// The most bytes of a line: its length is four hexadecimal digits, and Git takes no more.
const LONGEST: usize = 65_516;
/// How many bytes the length itself takes.
pub(super) const LENGTH: usize = 4;

/// One of the things that a text of the protocol is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packet<'a> {
    Line(&'a [u8]),
    /// The end of what is said.
    Flush,
    /// The end of a section.
    Delimiter,
    /// The end of a reply.
    End,
}

/// The packets of a text, one after another. A line that says that the server failed is an error, and so is
/// whatever is no packet; nothing follows it.
pub(super) struct Packets<'a>(&'a [u8]);

/// How many bytes the first packet of a text takes, whether or not all of it is there. None: that is not known.
pub(super) fn length(text: &[u8]) -> Option<usize> {
    let digits = std::str::from_utf8(text.get(..LENGTH)?).ok()?;
    let all = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let length = usize::from_str_radix(digits, 16).ok().filter(|_| all)?;
    match length {
        0..=2 => Some(LENGTH),
        length => (length >= LENGTH).then_some(length),
    }
}

impl<'a> Packets<'a> {
    pub(super) fn of(text: &'a [u8]) -> Self {
        Self(text)
    }

    fn take(&mut self) -> Option<Packet<'a>> {
        let (digits, rest) = self.0.split_at_checked(LENGTH)?;
        let digits = std::str::from_utf8(digits).ok()?;
        let all = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let length = usize::from_str_radix(digits, 16).ok().filter(|_| all)?;
        let (packet, rest) = match length {
            0 => (Packet::Flush, rest),
            1 => (Packet::Delimiter, rest),
            2 => (Packet::End, rest),
            _ => {
                let (line, rest) = rest.split_at_checked(length.checked_sub(LENGTH)?)?;
                (Packet::Line(line), rest)
            }
        };
        self.0 = rest;
        Some(packet)
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Packet<'a>, Wrong>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let packet = match self.take() {
            Some(Packet::Line(line)) => match line.strip_prefix(b"ERR ") {
                Some(words) => Err(Wrong::Says(String::from_utf8_lossy(words).into_owned())),
                None => Ok(Packet::Line(line)),
            },
            Some(packet) => Ok(packet),
            None => Err(Wrong::Broken("a packet")),
        };
        if packet.is_err() {
            self.0 = &[];
        }
        Some(packet)
    }
}

/// A request, packet by packet.
#[derive(Default)]
pub(super) struct Writing(Vec<u8>);

impl Writing {
    /// One line. What is too long for a line is left out: no name that Git takes is.
    pub(super) fn line(mut self, text: &[u8]) -> Self {
        if text.len() <= LONGEST {
            let length = format!("{:04x}", text.len() + LENGTH);
            self.0.extend_from_slice(length.as_bytes());
            self.0.extend_from_slice(text);
        }
        self
    }

    pub(super) fn lines(self, texts: impl IntoIterator<Item = String>) -> Self {
        let texts = texts.into_iter();
        texts.fold(self, |writing, text| writing.line(text.as_bytes()))
    }

    /// What stands before it is said.
    pub(super) fn delimiter(mut self) -> Self {
        self.0.extend_from_slice(b"0001");
        self
    }

    /// The bytes, with a flush at their end.
    pub(super) fn flushed(mut self) -> Vec<u8> {
        self.0.extend_from_slice(b"0000");
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[test]
    fn a_request_is_what_git_has_in_its_documentation() {
        let lines = ["ref-prefix main".to_owned()];
        let request = Writing::default().line(b"command=ls-refs\n").delimiter();
        assert_eq!(
            request.lines(lines).flushed(),
            b"0014command=ls-refs\n00010013ref-prefix main0000"
        );
        let long = Writing::default().line(&vec![b'x'; LONGEST + 1]);
        assert_eq!(long.flushed(), b"0000");
    }

    #[rstest]
    #[case(b"")]
    #[case(b"000")]
    #[case(b"0003")]
    #[case(b"0009abc")]
    #[case(b"zzzz")]
    #[case(b"+007abc")]
    #[case(b"\xff\xff\xff\xff")]
    fn what_is_no_packet_is_the_end(#[case] text: &[u8]) {
        let read: Vec<_> = Packets::of(text).collect();
        let expected = match text {
            b"" => vec![],
            _ => vec![Err(Wrong::Broken("a packet"))],
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn what_a_server_says_of_its_failure_is_the_end() {
        let read: Vec<_> = Packets::of(b"0006ok000eERR no way0000").collect();
        let expected = vec![
            Ok(Packet::Line(b"ok".as_slice())),
            Err(Wrong::Says("no way".to_owned())),
        ];
        assert_eq!(read, expected);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(lines: Vec<Vec<u8>>) {
            let lines: Vec<_> = lines.into_iter().filter(|it| !it.starts_with(b"ERR ")).collect();
            let written = lines.iter().fold(Writing::default(), |all, line| all.line(line));
            let text = written.delimiter().flushed();
            let read: Result<Vec<_>, _> = Packets::of(&text).collect();
            let lines = lines.iter().map(|line| Packet::Line(line));
            let expected: Vec<_> = lines.chain([Packet::Delimiter, Packet::Flush]).collect();
            prop_assert_eq!(read, Ok(expected));
        }

        #[test]
        fn any_bytes_are_read_to_an_end(bytes: Vec<u8>) {
            prop_assert!(Packets::of(&bytes).count() <= bytes.len());
        }
    }
}
