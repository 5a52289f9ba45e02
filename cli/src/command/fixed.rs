//! `kubectl gate fixed`

use anyhow::{Result, bail};
use clap::Args;
use kube::api::{Api, ListParams, Patch};
use serde_json::json;
use sluice_core::delivery::revert_commit::check;
use sluice_crds::{PromotionStrategy, RevertCommit};

use crate::arguments::{Commit, Globals, commit, revert_name};
use crate::cluster::{self, Cannot, Use};
use crate::outcome::Outcome;
use crate::output::say;
use crate::view::Strategy;

/// Name the commit that fixes what a RevertCommit has taken back, so that it may be promoted again
///
/// The dry commit, and what descends from it, may return to the environment. Everything else that descends
/// from what was taken back goes on waiting.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 the fix is named; 2 it cannot be named.")]
pub(crate) struct Fixed {
    /// The RevertCommit
    #[arg(value_name = "REVERTCOMMIT")]
    revert: String,

    /// The dry commit, in all 40 digits, or in at least 7 if an environment has it, or it is proposed
    #[arg(value_name = "SHA", value_parser = commit)]
    fix: Commit,
}

impl Fixed {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let name = revert_name(&self.revert)?;
        let connection = cluster::connect(globals, Use::Requests).await?;
        let mut revert: RevertCommit = cluster::existing(&connection, &name).await?;
        let branch = revert.spec.active_branch.clone();
        let fix = match self.fix.whole() {
            Some(whole) => whole.to_owned(),
            None => {
                let page = ListParams::default();
                let strategies: Vec<PromotionStrategy> =
                    cluster::served(&connection, false, page).await?;
                let same = strategies.iter();
                let same = same.filter(|it| it.spec.repo_ref == revert.spec.repo_ref);
                let shown: Vec<Strategy> = same.map(Strategy::of).collect();
                (self.fix).completed(shown.iter().flat_map(Strategy::dry_commits))?
            }
        };
        let short = Commit::short(&fix);
        if revert.spec.fixed_by.as_ref() == Some(&fix) {
            say!("{name}: {short} is named already")?;
            return Ok(Outcome::Yes);
        }
        let before = revert.spec.fixed_by.replace(fix.clone());
        if let Err(mistakes) = check(&revert) {
            bail!("{mistakes}");
        }
        let api: Api<RevertCommit> = connection.here();
        let merged = json!({"spec": {"fixedBy": fix}});
        let patched = api
            .patch(&name, &cluster::patch(), &Patch::Merge(merged))
            .await;
        patched.cannot(format_args!("name the fix of {name}"))?;
        say!("{short}, and what descends from it, may be promoted to {branch} again")?;
        if let Some(before) = before {
            say!("in place of: {}", Commit::short(&before))?;
        }
        Ok(Outcome::Yes)
    }
}
