//! What is wrong in a file, and where.

use std::fmt;

use sluice_core::Refusal;

/// Where something is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The place of the file among all.
    pub(super) file: usize,
    pub(super) origin: String,
    pub(super) line: usize,
    /// From 1, within the file.
    pub(super) document: usize,
}

/// One thing that is wrong, or looks wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Whether admission or the controller would refuse it.
    pub(crate) refused: bool,
    pub(super) place: Place,
    /// The object, as `Gate default/production`.
    pub(super) object: Option<String>,
    pub(super) what: Refusal,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place {
            file: _,
            origin,
            line,
            document,
        } = &self.place;
        write!(f, "{origin}:{line}: ")?;
        if !self.refused {
            f.write_str("warning: ")?;
        }
        write!(f, "document {document}")?;
        if let Some(object) = &self.object {
            write!(f, ", {object}")?;
        }
        let Refusal {
            field,
            problem,
            remedy,
        } = &self.what;
        match (field.as_str(), remedy.as_str()) {
            ("", "") => write!(f, ": {problem}"),
            ("", _) => write!(f, ": {problem}; {remedy}"),
            _ => write!(f, ": {}", self.what),
        }
    }
}
