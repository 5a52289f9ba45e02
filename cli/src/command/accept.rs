//! `kubectl gate accept`

use anyhow::{Context, Result, bail};
use clap::Args;
use kube::api::{Api, Patch};
use serde_json::json;
use sluice_core::verdict::status::REQUESTED_AT;
use sluice_crds::PromotionStrategy;
use sluice_crds::promotion_strategy::{Arrival, Tip, marks};

use crate::arguments::{Commit, Globals, commit, strategy_name};
use crate::cluster::{self, Cannot, Connection, Use, Watched};
use crate::outcome::Outcome;
use crate::output::{say, warn};
use crate::view::Strategy;
use crate::{clock, instant};

/// How often the annotation is written again where the strategy has changed meanwhile.
const TRIES: usize = 5;

/// Accept a commit that somebody else has pushed to an environment branch, so that promotions go on
///
/// What is on an environment branch and is no promotion holds everything back until a person accepts it.
/// The command names that commit in an annotation of the strategy, with your name and your reason, and
/// waits until the controller has accepted it.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 the commit is accepted, or the controller has not answered yet; \
                  1 the branch has another commit by now; 2 it cannot be accepted."
)]
pub(crate) struct Accept {
    /// The promotion strategy
    #[arg(value_name = "STRATEGY")]
    strategy: String,

    /// The branch of the environment, or the end of it: prod for env/prod
    #[arg(value_name = "ENVIRONMENT")]
    environment: String,

    /// The commit that you mean, in at least 7 digits: if the branch has another one, nothing is accepted
    #[arg(long, value_name = "SHA", value_parser = commit)]
    sha: Option<Commit>,

    /// Why you accept it: everybody who looks at the strategy sees it
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// How long to wait until the controller accepts it, such as 30s; 0 does not wait
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    timeout: String,
}

/// A commit of a branch.
struct Accepted {
    branch: String,
    sha: String,
}

impl Accept {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let name = strategy_name(&self.strategy)?;
        let reason = self.reason.trim();
        if reason.is_empty() {
            bail!("--reason: it is empty; say why, such as a ticket's number");
        }
        let patience = instant::parse_timeout(&self.timeout).context("--timeout")?;
        let connection = cluster::connect(globals, Use::Watches).await?;
        let by = connection.who().await?.name;
        let accepted = self.write(&connection, &name, &by).await?;
        let Accepted { branch, sha } = &accepted;
        let short = Commit::short(sha);
        let Some(patience) = patience else {
            say!(
                "{branch}: {short} is written to be accepted, not yet confirmed by the controller"
            )?;
            return Ok(Outcome::Yes);
        };
        let answer = accepted.confirmed(&connection, &name);
        match tokio::time::timeout(patience, answer).await {
            Ok(Ok(None)) => say!("{branch}: {short} is accepted by {by}: {reason}")?,
            Ok(Ok(Some(other))) => {
                let other = Commit::short(&other);
                say!("{branch}: written, but the branch has {other} by now: look at that first")?;
                return Ok(Outcome::No);
            }
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                say!(
                    "{branch}: {short} is written to be accepted, not yet confirmed by the controller"
                )?;
                warn(format_args!(
                    "no controller has answered within {}, and none may be running; look again with kubectl \
                     gate why promotionstrategy/{name} {branch}",
                    self.timeout
                ));
            }
        }
        Ok(Outcome::Yes)
    }

    /// Names the commit in the annotation, onto the version of the strategy that it was read from.
    async fn write(&self, connection: &Connection, name: &str, by: &str) -> Result<Accepted> {
        let api: Api<PromotionStrategy> = connection.here();
        let mut tries = 0;
        loop {
            tries += 1;
            let object: PromotionStrategy = cluster::existing(connection, name).await?;
            let strategy = Strategy::of(&object);
            let environment = strategy.environment(&self.environment)?;
            let branch = environment.branch.clone();
            let (_, tip) = environment.active()?;
            self.check(&branch, tip)?;
            if tries == 1 {
                say!(
                    "{branch} of {name} has {}, pushed by somebody else: it becomes what promotions go on from",
                    Commit::short(&tip.hydrated_sha)
                )?;
            }
            let sha = tip.hydrated_sha.clone();
            let marked = |mark: &str| {
                let all = object.metadata.annotations.as_ref();
                all.and_then(|all| all.get(mark))
                    .cloned()
                    .unwrap_or_default()
            };
            let entry = format!("{branch}={sha}");
            let told = format!("{entry} by {by}: {}", self.reason.trim().replace('\n', " "));
            let merged = json!({"metadata": {
                "resourceVersion": object.metadata.resource_version,
                "annotations": {
                    marks::ACCEPT: with(&marked(marks::ACCEPT), ',', &entry),
                    marks::ACCEPT_REASON: with(&marked(marks::ACCEPT_REASON), '\n', &told),
                    REQUESTED_AT: clock::now().to_string(),
                },
            }});
            let patched = api
                .patch(name, &cluster::patch(), &Patch::Merge(merged))
                .await;
            match patched {
                // The controller has written its status meanwhile.
                Err(error) if cluster::code(&error) == Some(409) && tries < TRIES => {}
                patched => {
                    patched.cannot(format_args!("accept {sha} in {branch} of {name}"))?;
                    return Ok(Accepted { branch, sha });
                }
            }
        }
    }

    /// Whether there is something to accept, and whether it is what is meant.
    fn check(&self, branch: &str, tip: &Tip) -> Result<()> {
        let has = Commit::short(&tip.hydrated_sha);
        if tip.arrived_by != Some(Arrival::Foreign) {
            let how = match tip.arrived_by {
                Some(Arrival::Promotion) => "the controller has merged it",
                Some(Arrival::Person) => "a person has merged what was proposed",
                Some(Arrival::Revert) => "a RevertCommit has brought it back",
                Some(Arrival::Baseline) => "it is accepted already",
                Some(Arrival::Foreign) | None => "it is not known how it came there",
            };
            bail!("{branch} has {has}, which nobody has to accept: {how}");
        }
        match &self.sha {
            Some(meant) if !meant.is(&tip.hydrated_sha) => {
                bail!("--sha: {branch} has {has}, and not {meant}; look at it before you accept it")
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Accepted {
    /// Waits until the status says what became of it. Some: the branch has another commit.
    async fn confirmed(&self, connection: &Connection, name: &str) -> Result<Option<String>> {
        let mut watched = Watched::default();
        watched.one::<PromotionStrategy>(connection, &connection.key(name));
        loop {
            let looked = cluster::existing::<PromotionStrategy>(connection, name).await;
            let mut wake = None;
            match looked {
                Ok(object) => {
                    let strategy = Strategy::of(&object);
                    let known = strategy.environment(&self.branch)?.active();
                    match known {
                        Ok((_, tip)) if tip.hydrated_sha != self.sha => {
                            return Ok(Some(tip.hydrated_sha.clone()));
                        }
                        Ok((_, tip)) if tip.arrived_by == Some(Arrival::Baseline) => {
                            return Ok(None);
                        }
                        Ok(_) | Err(_) => {}
                    }
                }
                Err(error) => wake = cluster::again(error, true)?,
            }
            watched.something(wake).await;
        }
    }
}

/// A list with another entry `branch=…`, in place of the one that this branch has.
fn with(list: &str, between: char, entry: &str) -> String {
    let branch = |it: &str| {
        it.trim()
            .split_once('=')
            .map(|(branch, _)| branch.to_owned())
    };
    let mine = branch(entry);
    let others = list.split(between).map(str::trim);
    let others = others.filter(|it| !it.is_empty() && branch(it) != mine);
    let all: Vec<&str> = others.chain([entry]).collect();
    all.join(between.to_string().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_elsewhere_stays() {
        assert_eq!(with("", ',', "env/dev=1"), "env/dev=1");
        assert_eq!(
            with("env/dev=1, env/test=2", ',', "env/dev=3"),
            "env/test=2,env/dev=3"
        );
        assert_eq!(
            with(
                "env/dev=1 by a: b, c\nenv/test=2 by a: d",
                '\n',
                "env/test=3 by e: f"
            ),
            "env/dev=1 by a: b, c\nenv/test=3 by e: f"
        );
    }
}
