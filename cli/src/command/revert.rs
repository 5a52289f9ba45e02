//! `kubectl gate revert`

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use kube::api::Api;
use sluice_core::delivery::revert_commit::check;
use sluice_core::offline::simulate::Key;
use sluice_crds::revert_commit::{RevertCommitSpec, RevertMerge};
use sluice_crds::{PromotionStrategy, RevertCommit};

use crate::arguments::{Commit, Globals, commit, strategy_name};
use crate::cluster::{self, Cannot, Connection, Use};
use crate::outcome::Outcome;
use crate::output::{say, warn};
use crate::view::Strategy;
use crate::view::strategy::Environment;
use crate::{clock, instant};

mod destination;
mod followed;
mod name;

use destination::Destination;

/// How many names are tried where there are RevertCommits with them.
const TRIES: i64 = 10;

/// Bring the branch of one environment back to what it had before
///
/// The command creates a RevertCommit in your name: the controller opens a pull request with the files
/// that the branch had, also while gates are closed. What is taken back does not return to this
/// environment until `kubectl gate fixed` names the commit that fixes it, or the RevertCommit is deleted.
/// Without --to, the branch goes back to the newest commit with which all its checks have passed, other
/// than the one that it has.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 the RevertCommit is created, and with --wait the environment is back; \
                  1 it is created, but the environment is not back; 2 it cannot be created."
)]
pub(crate) struct Revert {
    /// The promotion strategy
    #[arg(value_name = "STRATEGY")]
    strategy: String,

    /// The branch of the environment, or the end of it: prod for env/prod
    #[arg(value_name = "ENVIRONMENT")]
    environment: String,

    /// The dry commit to go back to, in at least 7 digits [default: the newest with which all checks have
    /// passed]
    #[arg(long, value_name = "SHA", value_parser = commit)]
    to: Option<Commit>,

    /// The commit of the branch that was made from --to, in all 40 digits: for a dry commit that is not
    /// known to have been healthy
    #[arg(long, value_name = "SHA", value_parser = commit, requires = "to")]
    hydrated: Option<Commit>,

    /// Why you take it back: everybody who looks at the revert sees it
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// When it is merged [default: auto where the environment is merged by the controller, else manual]
    #[arg(long, value_name = "WHEN")]
    merge: Option<Merge>,

    /// The dry commit that fixes what was wrong, if it is known already: it may be promoted again
    #[arg(long, value_name = "SHA", value_parser = commit)]
    fixed_by: Option<Commit>,

    /// Wait until the environment is back
    #[arg(long)]
    wait: bool,

    /// How long to wait, such as 10m
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10m",
        requires = "wait"
    )]
    timeout: String,
}

/// When a revert is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Merge {
    /// At once
    Auto,
    /// When the checks of what is proposed pass on it
    AfterChecks,
    /// By a person
    Manual,
}

impl From<Merge> for RevertMerge {
    fn from(merge: Merge) -> Self {
        match merge {
            Merge::Auto => Self::Auto,
            Merge::AfterChecks => Self::AfterChecks,
            Merge::Manual => Self::Manual,
        }
    }
}

impl Revert {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let name = strategy_name(&self.strategy)?;
        if self.reason.trim().is_empty() {
            bail!("--reason: it is empty; say why, such as a ticket's number");
        }
        let patience = instant::parse_timeout(&self.timeout).context("--timeout")?;
        let connection = cluster::connect(globals, Use::Watches).await?;
        let object: PromotionStrategy = cluster::existing(&connection, &name).await?;
        let strategy = Strategy::of(&object);
        let environment = strategy.environment(&self.environment)?;
        let by = connection.who().await?.name;
        let spec = self.spec(&object, &strategy, environment, by)?;
        let created = create(&connection, &name, spec).await?;
        self.tell(environment, &created)?;
        if !self.wait {
            return Ok(Outcome::Yes);
        }
        let key = Key::of(&created.metadata);
        followed::until_back(&connection, &key.name, patience).await
    }

    fn spec(
        &self,
        object: &PromotionStrategy,
        strategy: &Strategy,
        environment: &Environment,
        by: String,
    ) -> Result<RevertCommitSpec> {
        let (status, active) = environment.active()?;
        let hydrated = self.hydrated.as_ref();
        let Destination {
            dry_sha,
            hydrated_sha,
        } = destination::choose(status, active, self.to.as_ref(), hydrated)?;
        let fixed_by = self.fixed_by.as_ref();
        let fixed_by = fixed_by.map(|it| it.completed(strategy.dry_commits()));
        Ok(RevertCommitSpec {
            repo_ref: object.spec.repo_ref.clone(),
            active_branch: environment.branch.clone(),
            from: active.hydrated_sha.clone(),
            dry_sha,
            hydrated_sha,
            fixed_by: fixed_by.transpose().context("--fixed-by")?,
            merge: self.merge.map(RevertMerge::from),
            reason: self.reason.trim().to_owned(),
            by,
        })
    }

    /// What follows.
    fn tell(&self, environment: &Environment, created: &RevertCommit) -> Result<()> {
        let (status, active) = environment.active()?;
        let (spec, name) = (&created.spec, Key::of(&created.metadata).name);
        let branch = &spec.active_branch;
        let dry = active.dry_sha.as_deref();
        let from = dry.map_or("an unknown dry commit", Commit::short);
        let to = Commit::short(&spec.dry_sha);
        say!("revertcommit.sluice.dev/{name} created: {branch} goes back from {from} to {to}")?;
        let usual = match environment.auto_merge {
            true => RevertMerge::Auto,
            false => RevertMerge::Manual,
        };
        let when = match spec.merge.unwrap_or(usual) {
            RevertMerge::Auto => "as soon as it is open".to_owned(),
            RevertMerge::AfterChecks => format!("when the proposed checks of {branch} pass on it"),
            RevertMerge::Manual => "by a person".to_owned(),
        };
        say!("its pull request is merged {when}")?;
        match &spec.fixed_by {
            Some(fix) => say!(
                "{from} does not return to {branch}; {}, and what descends from it, may",
                Commit::short(fix)
            )?,
            None => say!(
                "{from}, and what descends from it, does not return to {branch} until `kubectl gate fixed {name} \
                 COMMIT` names its fix, or the RevertCommit is deleted"
            )?,
        }
        let others = status
            .reverts
            .iter()
            .filter(|it| !followed::is_over(it.phase));
        for other in others {
            warn(format_args!(
                "the RevertCommit {} of {branch} is under way, and comes first",
                other.name
            ));
        }
        Ok(())
    }
}

/// Creates it with a name that is free.
async fn create(
    connection: &Connection,
    strategy: &str,
    spec: RevertCommitSpec,
) -> Result<RevertCommit> {
    let api: Api<RevertCommit> = connection.here();
    let number = clock::now().as_millisecond();
    let mut tries = 0;
    loop {
        let name = name::of(strategy, &spec.active_branch, number + tries);
        let revert = RevertCommit::new(&name, spec.clone());
        if let Err(mistakes) = check(&revert) {
            bail!("{mistakes}");
        }
        tries += 1;
        match api.create(&cluster::post(), &revert).await {
            Err(error) if cluster::code(&error) == Some(409) && tries < TRIES => {}
            created => {
                return created.cannot(format_args!("bring {} back", spec.active_branch));
            }
        }
    }
}
