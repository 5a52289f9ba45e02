//! What is wrong in a file, and where.

use std::fmt;

use sluice_core::Refusal;

/// Where something is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The place of the file among all.
    pub(super) file: usize,
    pub(crate) origin: String,
    /// From 1.
    pub(crate) line: usize,
    /// From 1, within the file.
    pub(crate) document: usize,
}

impl Place {
    /// Another line of the same document.
    pub(super) fn at(&self, line: usize) -> Self {
        Self {
            line,
            ..self.clone()
        }
    }
}

/// One thing that is wrong, or looks wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Whether admission or the controller would refuse it.
    pub(crate) refused: bool,
    pub(crate) place: Place,
    /// The object, as `Gate default/production`.
    pub(crate) object: Option<String>,
    pub(crate) what: Refusal,
}

impl Finding {
    /// What is wrong and where in the object, without the place in the file.
    pub(crate) fn message(&self) -> String {
        let object = self.object.as_deref();
        let Refusal {
            field,
            problem,
            remedy,
        } = &self.what;
        let said = match (field.as_str(), remedy.as_str()) {
            ("", "") => problem.clone(),
            ("", _) => format!("{problem}; {remedy}"),
            _ => self.what.to_string(),
        };
        match object {
            Some(object) => format!("{object}: {said}"),
            None => said,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place {
            file: _,
            origin,
            line,
            document,
        } = &self.place;
        write!(f, "{}:{line}: ", in_one_line(origin))?;
        if !self.refused {
            f.write_str("warning: ")?;
        }
        let between = if self.object.is_some() { ", " } else { ": " };
        let message = self.message();
        write!(f, "document {document}{between}{}", in_one_line(&message))
    }
}

/// A text of somebody else's file as it can be shown: without line breaks, which could pretend to be a
/// line of ours, and without what a terminal would obey.
pub(super) fn in_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() {
            line.extend(letter.escape_default());
        } else {
            line.push(letter);
        }
    }
    line
}
