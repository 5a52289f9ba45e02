//! The revision that a vote is about: that of a gated source, or of an environment of a promotion strategy.

use anyhow::{Context, Result, bail};
use sluice_core::revision::Revision;
use sluice_crds::{GatedSource, PromotionStrategy};

use super::Vote;
use crate::arguments::{source_name, strategy_of};
use crate::cluster::{self, Connection};
use crate::view::{Strategy, Waits, waits};

impl Vote {
    /// What the vote is about.
    ///
    /// # Errors
    /// Nothing waits, or several do; it cannot be read.
    pub(super) async fn revision(&self, connection: &Connection) -> Result<Revision> {
        let Some(named) = &self.revision_of else {
            return self.revision.clone().context("there is no revision");
        };
        let environment = self.environment.as_deref();
        match (source_name(named), strategy_of(named)) {
            (Some(_), _) if environment.is_some() => {
                bail!("--environment: a gated source has no environments; leave it out")
            }
            (Some(name), _) => {
                let source: GatedSource = cluster::existing(connection, &name).await?;
                of_source(&source, &name)
            }
            (None, Some((name, None))) => {
                let object: PromotionStrategy = cluster::existing(connection, &name).await?;
                of_strategy(&Strategy::of(&object), environment)
            }
            (None, Some((name, Some(branch)))) => bail!(
                "--revision-of: an environment is named behind its option; write promotionstrategy/{name} \
                 --environment {branch}"
            ),
            (None, None) => bail!(
                "--revision-of: `{named}` names no gated source and no promotion strategy; write \
                 gatedsource/NAME or promotionstrategy/NAME"
            ),
        }
    }
}

fn of_source(source: &GatedSource, name: &str) -> Result<Revision> {
    let waiting = match waits(source) {
        Waits::For { asked, .. } => asked,
        Waits::Nothing => bail!("the gated source {name} waits with nothing; give --revision"),
        Waits::Settled(out) => bail!(
            "the gated source {name} waits with nothing: spec.revision asks for {out}, which is out; give \
             --revision"
        ),
    };
    match waiting.as_slice() {
        [one] => Revision::parse(one).with_context(|| {
            format!("the gated source {name} waits with `{one}`, which cannot be voted on")
        }),
        several => bail!(
            "the gated source {name} waits with several; give --revision, one after the other: {}",
            several.join(", ")
        ),
    }
}

/// The revision of this environment, or of the only one whose gates hold something back.
fn of_strategy(strategy: &Strategy, named: Option<&str>) -> Result<Revision> {
    let name = &strategy.name;
    let meant = match named {
        Some(named) => vec![strategy.environment(named).context("--environment")?],
        None => strategy.environments.iter().collect(),
    };
    let waiting = meant.iter().filter_map(|it| Some((it, it.held_back()?)));
    let waiting: Vec<_> = waiting.collect();
    match waiting.as_slice() {
        [(_, one)] => Revision::parse(one)
            .with_context(|| format!("{name} waits with `{one}`, which cannot be voted on")),
        [] => {
            let place = match (named, meant.as_slice()) {
                (Some(_), [one]) => one.branch.as_str(),
                _ => "any environment",
            };
            bail!(
                "no gates of {name} hold back a commit for {place}; look with `kubectl gate promotion \
                 {name}`, or give --revision"
            )
        }
        several => {
            let branches: Vec<_> = several.iter().map(|(it, _)| it.branch.as_str()).collect();
            bail!(
                "{name} waits with several; choose one with --environment: {}",
                branches.join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const BEFORE: &str = "2026-11-20T11:00:00Z";
    const NOW: &str = "2026-11-20T12:00:00Z";

    /// An environment whose gates were asked about the commit `asked`, while another one is proposed.
    fn environment(branch: &str, reason: &str, asked: &str, at: &str) -> Value {
        let tip = json!({"hydratedSHA": "2".repeat(40), "tree": "2".repeat(40), "since": NOW});
        json!({
            "branch": branch, "state": "Waiting", "proposed": tip,
            "waits": [{"reason": reason, "message": "the gate is closed"}],
            "lastDecision": {
                "allowed": false, "at": at, "require": "all", "checked": [], "decidedBy": [],
                "message": "the gate is closed",
                "subject": {
                    "kind": "PromotionStrategy", "namespace": "apps", "action": "promote",
                    "revision": format!("{branch}@sha1:{}", asked.repeat(40)),
                },
            },
        })
    }

    fn waits(branch: &str) -> Value {
        environment(branch, "GateClosed", "2", NOW)
    }

    fn shown(environments: &[Value]) -> Strategy {
        let named = environments
            .iter()
            .map(|it| json!({"branch": it["branch"]}));
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
            "metadata": {"name": "shop", "namespace": "apps"},
            "spec": {"repoRef": {"name": "shop"}, "environments": named.collect::<Vec<_>>()},
            "status": {"environments": environments},
        });
        Strategy::of(&serde_json::from_value(object).unwrap())
    }

    fn about(strategy: &Strategy, named: Option<&str>) -> String {
        match of_strategy(strategy, named) {
            Ok(revision) => revision.to_string(),
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn the_only_environment_that_waits_need_not_be_named() {
        let strategy = shown(&[
            environment("env/test", "CheckPending", "2", NOW),
            waits("env/prod"),
        ]);
        let expected = format!("env/prod@sha1:{}", "2".repeat(40));
        for named in [None, Some("env/prod"), Some("prod")] {
            assert_eq!(about(&strategy, named), expected);
        }
    }

    /// What is proposed may only join histories: then its gates are asked about the commit that it joins.
    #[test]
    fn what_was_asked_since_it_is_proposed_is_meant() {
        let strategy = shown(&[environment("env/prod", "GateClosed", "3", NOW)]);
        assert!(about(&strategy, None).ends_with(&"3".repeat(40)));
    }

    #[test]
    fn a_commit_that_is_not_proposed_any_more_is_not_voted_on() {
        let strategy = shown(&[environment("env/prod", "GateClosed", "3", BEFORE)]);
        assert!(about(&strategy, None).starts_with("no gates of shop hold back a commit"));
    }

    /// The gates of a revert are asked about what the branch goes back to.
    #[test]
    fn a_revert_that_waits_is_meant() {
        let mut reverting = environment("env/prod", "GateClosed", "3", BEFORE);
        reverting["lastDecision"]["subject"]["kind"] = "RevertCommit".into();
        let strategy = shown(&[reverting]);
        assert!(about(&strategy, None).ends_with(&"3".repeat(40)));
    }

    #[test]
    fn what_cannot_be_voted_on_is_told() {
        let mut allowed = waits("env/dev");
        allowed["lastDecision"]["allowed"] = true.into();
        let strategy = shown(&[allowed, waits("env/test"), waits("env/prod")]);
        for (named, expected) in [
            (
                None,
                "shop waits with several; choose one with --environment: env/test, env/prod",
            ),
            (
                Some("dev"),
                "no gates of shop hold back a commit for env/dev; look with `kubectl gate promotion shop`",
            ),
            (
                Some("live"),
                "--environment: shop has no environment `live`; write one of env/dev, env/test, env/prod",
            ),
        ] {
            let said = about(&strategy, named);
            assert!(said.starts_with(expected), "{said}");
        }
    }
}
