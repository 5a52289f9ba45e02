//! The revision that a question is about.

use clap::Args;
use sluice_core::Now;
use sluice_core::question::Question;
use sluice_core::revision::{REMEDY, Revision};

#[derive(Debug, Args)]
pub(super) struct About {
    /// The revision that is to go out, as Flux writes it: main@sha1:… with the commit in full.
    /// Without one, a gate that depends on the revision counts as closed
    #[arg(long, short = 'r', value_name = "REVISION", value_parser = parse)]
    revision: Option<Revision>,
}

/// Reads a revision.
pub(super) fn parse(text: &str) -> Result<Revision, String> {
    Revision::parse(text).map_err(|mistake| format!("{mistake}; {REMEDY}"))
}

impl About {
    pub(super) fn revision(&self) -> Option<&Revision> {
        self.revision.as_ref()
    }

    /// What is asked at an instant.
    pub(super) fn at(&self, now: Now) -> Question<'_> {
        question(now, self.revision())
    }
}

/// What is asked about a revision, or about any, at an instant.
pub(super) fn question(now: Now, revision: Option<&Revision>) -> Question<'_> {
    Question::new(now, revision)
}
