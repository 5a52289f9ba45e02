//! Globs, evaluated from their text. A compiled glob would take kilobytes, and a list may have ten
//! thousand of them.
//!
//! What comes in: a glob that globset reads, at most [`LONGEST`] bytes, and a text. What goes out: whether
//! the text matches. The places in the glob are the states of a machine, and all those that it may be in
//! are followed at once: it takes at most as many steps as the glob has bytes for each sign of the text.

use std::ops::Range;

use super::LONGEST;

/// Whether a text matches a glob as globset defines it, where `\` makes the next character literal. A `?`
/// and a class match one character each, in every alphabet.
pub(super) fn is_match(glob: &str, text: &str) -> bool {
    // Any folders, with nothing behind them, are anything.
    if glob.trim_start_matches("**/").is_empty() {
        return true;
    }
    let machine = Machine::new(glob);
    let mut states = States::default();
    machine.enter(0, &mut states);
    for sign in text.chars() {
        let mut next = States::default();
        for at in states.iter(glob.len()) {
            machine.step(at, sign, &mut next);
        }
        if next.is_empty() {
            return false;
        }
        states = next;
    }
    states.contains(glob.len())
}

/// Places in a glob, its end among them.
#[derive(Clone, Copy, Default, PartialEq)]
struct States([u64; LONGEST / 64 + 1]);

impl States {
    fn contains(&self, at: usize) -> bool {
        self.0[at / 64] & (1 << (at % 64)) != 0
    }

    fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Those before the end of a glob.
    fn iter(&self, end: usize) -> impl Iterator<Item = usize> {
        (0..end).filter(|at| self.contains(*at))
    }
}

/// A glob, and how the parts between its braces belong together.
struct Machine<'a> {
    glob: &'a str,
    /// For each place; empty where there are no braces.
    parts: Vec<Part>,
}

/// What is known of a place.
#[derive(Clone, Copy, Default)]
struct Part {
    /// Of a brace that opens, and of a comma between braces: where the part behind it ends. Else 0.
    end: usize,
    /// Of those, where the brace closes.
    close: usize,
    /// How many signs there are before it that are neither braces nor commas.
    signs: usize,
}

impl<'a> Machine<'a> {
    fn new(glob: &'a str) -> Self {
        let mut machine = Self {
            glob,
            parts: Vec::new(),
        };
        if glob.contains('{') {
            machine.match_braces();
        }
        machine
    }

    fn match_braces(&mut self) {
        self.parts = vec![Part::default(); self.glob.len() + 1];
        // The beginnings of all parts of each pair of braces that is open.
        let mut open: Vec<Vec<usize>> = Vec::new();
        let (mut at, mut signs) = (0, 0);
        while let Some(sign) = self.sign(at) {
            self.parts[at].signs = signs;
            let ends = match (sign, open.last_mut()) {
                ('{', _) => {
                    open.push(vec![at]);
                    None
                }
                (',', Some(parts)) => {
                    parts.push(at);
                    parts.iter().rev().nth(1).copied()
                }
                ('}', Some(parts)) => parts.last().copied(),
                _ => {
                    signs += 1;
                    None
                }
            };
            if let Some(part) = ends {
                self.parts[part].end = at;
            }
            if sign == '}' {
                for part in open.pop().unwrap_or_default() {
                    self.parts[part].close = at;
                }
            }
            at = self.behind(at, sign);
        }
    }

    fn sign(&self, at: usize) -> Option<char> {
        self.glob.get(at..)?.chars().next()
    }

    /// The place behind what stands at a place: a sign, one with its `\`, or a class.
    fn behind(&self, at: usize, sign: char) -> usize {
        match sign {
            '\\' => at + 1 + self.sign(at + 1).map_or(0, char::len_utf8),
            '[' => self.class(at, '\0').0,
            _ => at + sign.len_utf8(),
        }
    }

    /// Whether a part begins right before a place.
    fn begins(&self, at: usize) -> bool {
        at == 0 || self.parts.get(at - 1).is_some_and(|part| part.end > 0)
    }

    /// Whether `**/` stands at a place, for any folders, or none.
    fn is_folders(&self, at: usize) -> bool {
        let glob = self.glob.as_bytes();
        glob[at..].starts_with(b"**/") && (self.begins(at) || glob[at - 1] == b'/')
    }

    /// Goes to a place, and on to all that can be reached from there without a sign.
    fn enter(&self, at: usize, states: &mut States) {
        if states.contains(at) {
            return;
        }
        states.insert(at);
        let part = self.parts.get(at).copied().unwrap_or_default();
        match self.sign(at) {
            Some('*') => {
                self.enter(at + 1, states);
                if self.is_folders(at) {
                    self.enter(at + 3, states);
                }
            }
            Some('{') => {
                let mut is_any = false;
                for part in self.parts_of(at) {
                    // One with nothing in it counts for nothing.
                    if self.parts[part.end].signs > self.parts[part.start].signs {
                        is_any = true;
                        self.enter(part.start, states);
                    }
                }
                if !is_any {
                    self.enter(part.close + 1, states);
                }
            }
            Some(',') if part.end > 0 => self.enter(part.close + 1, states),
            Some('}') => self.enter(at + 1, states),
            _ => {}
        }
    }

    /// The parts of the braces that open at a place.
    fn parts_of(&self, open: usize) -> impl Iterator<Item = Range<usize>> {
        let close = self.parts[open].close;
        let begins = std::iter::successors(Some(open), move |at| {
            let end = self.parts[*at].end;
            (end < close).then_some(end)
        });
        begins.map(|at| at + 1..self.parts[at].end)
    }

    /// Goes on from a place with a sign of the text.
    fn step(&self, at: usize, sign: char, states: &mut States) {
        let Some(own) = self.sign(at) else { return };
        let (behind, is_it) = match own {
            // With a sign they are some folders: the second star takes the rest.
            '*' if self.is_folders(at) => (at + 1, true),
            '*' => (at, true),
            '?' => (at + 1, true),
            '[' => self.class(at, sign),
            '\\' => (self.behind(at, own), self.sign(at + 1) == Some(sign)),
            '{' | '}' => return,
            ',' if self.parts.get(at).is_some_and(|part| part.end > 0) => return,
            own => (self.behind(at, own), own == sign),
        };
        if is_it {
            self.enter(behind, states);
        }
    }

    /// The place behind the class that begins at a place, and whether a sign is in it.
    fn class(&self, at: usize, sign: char) -> (usize, bool) {
        let from = at + 1;
        let negated = matches!(self.sign(from), Some('!' | '^'));
        let from = from + usize::from(negated);
        let mut range: Option<(char, char)> = None;
        let (mut is_in, mut to) = (false, false);
        let is_of = |range: Option<(char, char)>| {
            range.is_some_and(|(first, last)| (first..=last).contains(&sign))
        };
        for (place, own) in self.glob[from..].char_indices() {
            match own {
                ']' if place > 0 => {
                    let is_in = is_in || is_of(range) || to && sign == '-';
                    return (from + place + 1, is_in != negated);
                }
                '-' if place > 0 && !to => to = true,
                own if to => {
                    range = range.map(|(first, _)| (first, own));
                    to = false;
                }
                own => {
                    is_in |= is_of(range);
                    range = Some((own, own));
                }
            }
        }
        (self.glob.len(), false)
    }
}

#[cfg(test)]
mod tests {
    use globset::GlobBuilder;
    use proptest::prelude::*;
    use proptest::sample::select;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("*", "", true)]
    #[case("release-*", "release-7", true)]
    #[case("release/*", "release/2026/11", true)]
    #[case("v1.?", "v1.é", true)]
    #[case("[é-ö]", "ö", true)]
    #[case("v{1,2{a,b}}.*", "v2b.0", true)]
    #[case("v{1,2{a,b}}.*", "v2.0", false)]
    #[case("{}a{,}", "a", true)]
    #[case("\\*", "*", true)]
    #[case("\\*", "a", false)]
    #[case("a/**/b", "a/b", true)]
    fn signs(#[case] glob: &str, #[case] text: &str, #[case] matches: bool) {
        assert_eq!(is_match(glob, text), matches);
    }

    /// However it is made, it takes steps by its length alone.
    #[test]
    fn the_longest_are_followed_in_time() {
        let text = "a".repeat(256);
        for glob in [
            "*a".repeat(127) + "b",
            format!("*{}a{}b", "{".repeat(126), "}".repeat(126)),
            format!("*{{{}b}}b", "a*,".repeat(83)),
        ] {
            assert!(glob.len() <= LONGEST);
            let before = std::time::Instant::now();
            assert!(!is_match(&glob, &text));
            assert!(before.elapsed().as_secs() < 10, "{glob}");
        }
    }

    const PIECES: [&str; 27] = [
        "a", "b", "c", "-", "/", ",", ",", "*", "*", "**", "**/", "/**/", "/**", "?", "[ab]",
        "[!a]", "[^b-]", "[]a]", "[!]]", "[a-c]", "[a-c-b]", "[-a]", "{", "{", "}", "}", "\\*",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// What globset says of it, from which the words of the spec are.
        #[test]
        fn a_glob_is_what_globset_takes_it_for(
            glob in prop::collection::vec(select(&PIECES[..]), 1..10),
            texts in prop::collection::vec("[abc,/*-]{0,7}", 8),
        ) {
            let glob = glob.concat();
            // Between braces globset takes the second of these for nothing.
            let is_right = !glob.contains("**/**");
            let read = GlobBuilder::new(&glob).backslash_escape(true).build();
            if let Some(read) = read.ok().filter(|_| is_right) {
                let matcher = read.compile_matcher();
                for text in texts {
                    prop_assert_eq!(is_match(&glob, &text), matcher.is_match(&text), "{} {}", &glob, &text);
                }
            }
        }
    }
}
