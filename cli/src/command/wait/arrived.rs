//! Until an environment of a promotion strategy has a commit.

use anyhow::Result;
use sluice_crds::PromotionStrategy;
use sluice_crds::promotion_strategy::Arrival;

use crate::arguments::Commit;
use crate::cluster::{self, Connection, Watched};
use crate::outcome::Outcome;
use crate::output::say;
use crate::view::Strategy;
use crate::view::strategy::Environment;

/// Waits until it has, and says each time that the reason changes why it has not.
pub(super) async fn until_there(
    connection: &Connection,
    name: &str,
    (environment, dry): (&str, &Commit),
) -> Result<Outcome> {
    let mut said = None;
    let mut watched = Watched::default();
    watched.one::<PromotionStrategy>(connection, &connection.key(name));
    loop {
        let looked = cluster::existing::<PromotionStrategy>(connection, name).await;
        let (line, wake) = match looked {
            Ok(object) => {
                let strategy = Strategy::of(&object);
                let environment = strategy.environment(environment)?;
                match there(environment, dry) {
                    Ok(line) => {
                        say!("{line}")?;
                        return Ok(Outcome::Yes);
                    }
                    Err(line) => (line, None),
                }
            }
            Err(error) => (error.to_string(), cluster::again(error, said.is_some())?),
        };
        if said.as_ref() != Some(&line) {
            say!("waiting: {line}")?;
            said = Some(line);
        }
        watched.something(wake).await;
    }
}

/// Whether it has the commit, in one line. What somebody has pushed is none.
fn there(environment: &Environment, dry: &Commit) -> Result<String, String> {
    let branch = &environment.branch;
    let (status, tip) = environment.active().map_err(|why| why.to_string())?;
    let has = tip.dry_sha.as_deref();
    let short = has.map_or("an unknown dry commit", Commit::short);
    let is_foreign = tip.arrived_by == Some(Arrival::Foreign);
    if !is_foreign && has.is_some_and(|has| dry.is(has)) {
        return Ok(format!("{branch} has {short}"));
    }
    let message = status.message.as_ref();
    let why = message.map(|it| format!(": {it}")).unwrap_or_default();
    Err(format!("{branch} has {short}{why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::arguments::commit;

    #[test]
    fn a_commit_has_come_where_a_promotion_has_brought_it() {
        let environment = |by: &str| {
            Environment {
            branch: "env/prod".to_owned(),
            auto_merge: true,
            status: serde_json::from_value(json!({
                "branch": "env/prod", "state": "Waiting", "message": "the gate is closed",
                "active": {"drySHA": "a".repeat(40), "hydratedSHA": "1", "tree": "2", "arrivedBy": by,
                    "since": "2026-11-20T19:00:00Z"},
            }))
            .unwrap(),
        }
        };
        let named = |text: &str| commit(text).unwrap();
        let there = |by: &str, dry: &str| there(&environment(by), &named(dry));
        assert_eq!(
            there("Promotion", "aaaaaaa").unwrap(),
            "env/prod has aaaaaaaaaaaa"
        );
        assert_eq!(
            there("Promotion", "bbbbbbb").unwrap_err(),
            "env/prod has aaaaaaaaaaaa: the gate is closed"
        );
        assert!(there("Foreign", "aaaaaaa").is_err());
    }
}
