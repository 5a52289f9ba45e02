//! Texts near those of a corpus.
//!
//! What comes in: texts, words, and what to do to them at random. What goes out: a text.

use bolero::TypeGenerator;

/// The most bytes of a text: more than anything that is read may have, the calendars apart.
const LONGEST: usize = 4096;

/// One change of a text. Places count in characters, from the start again behind the end.
#[derive(Clone, Debug, TypeGenerator)]
pub enum Edit {
    /// A word of the language more.
    Insert { at: u16, word: u16 },
    /// A word of the language for some characters.
    Replace { at: u16, length: Few, word: u16 },
    /// A digit for a character: numbers matter everywhere.
    Digit { at: u16, digit: Digit },
    /// Any character more.
    Character { at: u16, character: char },
    /// Some characters less.
    Remove { at: u16, length: Few },
    /// Some characters again and again.
    Repeat { at: u16, length: Few, times: u8 },
    /// A line moved.
    Move { from: u16, to: u16 },
    /// From here on, the end of another text of the corpus.
    Splice { at: u16, other: u16, from: u16 },
    /// Nothing from here on.
    Cut { at: u16 },
}

/// How many characters.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub struct Few(#[generator(1..=12_usize)] usize);

/// `0` to `9`.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub struct Digit(#[generator(b'0'..=b'9')] u8);

/// A text of the corpus, changed.
pub fn edited(corpus: &[String], seed: usize, edits: &[Edit], words: &[&str]) -> String {
    let text = corpus[seed % corpus.len()].clone();
    let change = |text: String, edit: &Edit| apply(&text, edit, corpus, words);
    edits.iter().fold(text, change)
}

fn apply(text: &str, edit: &Edit, corpus: &[String], words: &[&str]) -> String {
    let word = |place: u16| words[usize::from(place) % words.len()];
    let (before, after) = match *edit {
        Edit::Insert { at, .. }
        | Edit::Replace { at, .. }
        | Edit::Digit { at, .. }
        | Edit::Character { at, .. }
        | Edit::Remove { at, .. }
        | Edit::Repeat { at, .. }
        | Edit::Splice { at, .. }
        | Edit::Cut { at } => split(text, at),
        Edit::Move { from, to } => return moved(text, from, to),
    };
    let mut new = match *edit {
        Edit::Insert { word: new, .. } => [before, word(new), after].concat(),
        Edit::Replace {
            length, word: new, ..
        } => [before, word(new), without(after, length.0)].concat(),
        Edit::Digit { digit, .. } => {
            let digit = char::from(digit.0).to_string();
            [before, &digit, without(after, 1)].concat()
        }
        Edit::Character { character, .. } => format!("{before}{character}{after}"),
        Edit::Remove { length, .. } => [before, without(after, length.0)].concat(),
        Edit::Repeat { length, times, .. } => {
            let part = &after[..after.len() - without(after, length.0).len()];
            [before, &part.repeat(usize::from(times)), after].concat()
        }
        Edit::Splice { other, from, .. } => {
            let other = &corpus[usize::from(other) % corpus.len()];
            [before, split(other, from).1].concat()
        }
        Edit::Cut { .. } | Edit::Move { .. } => before.to_owned(),
    };
    new.truncate(char_boundary(&new, LONGEST.max(text.len())));
    new
}

/// The last place up to `most` bytes at which a text can be cut.
fn char_boundary(text: &str, most: usize) -> usize {
    let mut places = (0..=most.min(text.len())).rev();
    places
        .find(|place| text.is_char_boundary(*place))
        .unwrap_or(0)
}

fn split(text: &str, at: u16) -> (&str, &str) {
    let places = text.chars().count() + 1;
    text.split_at(text.len() - without(text, usize::from(at) % places).len())
}

/// The text without its first characters.
fn without(text: &str, characters: usize) -> &str {
    let mut rest = text.chars();
    rest.by_ref().take(characters).for_each(drop);
    rest.as_str()
}

fn moved(text: &str, from: u16, to: u16) -> String {
    let mut lines: Vec<_> = text.split('\n').collect();
    let line = lines.remove(usize::from(from) % lines.len());
    lines.insert(usize::from(to) % (lines.len() + 1), line);
    lines.join("\n")
}
