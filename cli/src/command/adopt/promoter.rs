//! `kubectl gate adopt promoter`

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use crate::arguments::Globals;
use crate::files;
use crate::outcome::Outcome;
use crate::output::{self, count, note};

mod access;
mod adopted;
mod commit_status;
mod guard;
mod names;
mod order;
mod others;
mod scheduled;
mod strategy;
mod theirs;
mod timed;
mod web_request;

use adopted::Adopted;
use theirs::{Found, GROUP};

/// Write the objects of GitOps Promoter as objects of Sluice
///
/// Prints a GitRepositoryAccess for each GitRepository with its ScmProvider, each PromotionStrategy as ours,
/// paused by spec.suspend, and a Gate with its Gatekeeper for what waits for time, for a calendar or for an
/// address. Branches, hydrator.metadata, notes and open pull requests stay as they are. Comments above each
/// object say what is left to do, and what is lost; what is lost is also listed on standard error. Nothing is
/// changed in a cluster.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 everything is printed; 1 there is an object in whose place nothing is printed; \
                  2 there is nothing to adopt, or it cannot be read."
)]
pub(crate) struct Promoter {
    /// YAML or JSON files, folders of them, or - for standard input
    #[arg(long = "filename", short = 'f', value_name = "FILES", num_args = 1.., required = true)]
    paths: Vec<PathBuf>,
}

impl Promoter {
    pub(super) fn run_offline(&self, globals: &Globals) -> Result<Outcome> {
        let objects = files::objects(&self.paths)?;
        let found = Found::of(objects, globals.namespace_of_files());
        if found.is_empty() {
            bail!("there is no object of {GROUP}; name files that hold some");
        }
        let adopted = Adopted::of(&found);
        for document in &adopted.documents {
            output::text(document.text()?)?;
        }
        if let Some(table) = adopted.table(output::width()) {
            note(table.trim_end());
        }
        if adopted.refused > 0 {
            note(format_args!(
                "{} in whose place nothing is printed",
                count(adopted.refused, "object")
            ));
        }
        Ok(Outcome::yes_if(adopted.refused == 0))
    }
}

#[cfg(test)]
mod tests;
