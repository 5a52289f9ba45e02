//! Why a file cannot be edited, where, and what to write.

/// Why a file is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// Nothing is marked for the promotion, which is named here as a marker names it.
    #[error(
        "no value is marked for this promotion; write # {{\"$promotion\": \"{0}\"}} behind the value, on its line"
    )]
    NoMarker(String),
    /// It is longer than is read.
    #[error("it is longer than {} KiB; move the marked values into a smaller file", .0 >> 10)]
    TooLong(usize),
    /// It has more in it than is read.
    #[error(
        "it has more than {0} values, keys, comments and collections; move the marked values into a smaller file"
    )]
    TooMuch(usize),
    /// Something on a line is not as it has to be.
    #[error("line {line}: {problem}")]
    At {
        /// Counted from 1.
        line: usize,
        /// What it is.
        problem: Problem,
    },
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file is no text.
    #[error("it is not UTF-8; save the file as UTF-8")]
    NotUtf8,
    /// The parser says why.
    #[error(
        "it is not YAML: {0}; correct it, or move the marked value into a file without templates"
    )]
    NotYaml(String),
    /// It looks like a marker and cannot be read as one. What is wrong with it.
    #[error(
        "a marker cannot be read: {0}; write it as # {{\"$promotion\": \"<namespace>:<pipeline>:<environment>\"}}"
    )]
    Marker(String),
    /// The fourth part of a marker is none.
    #[error("a marker asks for `{0}` of the revision; write commit, digest, ref or version there")]
    Part(String),
    /// Nothing on the line of a marker can be marked.
    #[error(
        "a marker has no value on its line; write the value before the marker, plain or in quotes and not as a block"
    )]
    NoValue,
    /// More than one value is on the line of a marker.
    #[error("a marker has several values on its line; write each on a line of its own")]
    SeveralValues,
    /// What is marked is an alias.
    #[error("a marker is behind an alias; move it behind the value that has the anchor")]
    Alias,
    /// What is marked is said to be something else than a text.
    #[error("a marked value has a tag; remove the tag, or write !!str")]
    Tag,
    /// The revision has no such part.
    #[error(
        "a marker asks for the {part} of the revision, and {revision} has none; write another fourth part, or none for the revision as a whole"
    )]
    Missing {
        /// What the marker asks for.
        part: &'static str,
        /// The revision, in short.
        revision: String,
    },
    /// The file with the revision in it would not be read as it should.
    #[error(
        "with the new value the file would change elsewhere, too; write the value on one line, in double quotes"
    )]
    NotReadBack,
}

impl Problem {
    pub(super) fn at(self, line: usize) -> Mistake {
        Mistake::At {
            line,
            problem: self,
        }
    }
}
