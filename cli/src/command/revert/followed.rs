//! Until an environment is back.

use std::time::Duration;

use anyhow::Result;
use sluice_core::verdict::condition::{READY, find};
use sluice_crds::RevertCommit;
use sluice_crds::revert_commit::RevertPhase;

use crate::cluster::{self, Connection, Watched};
use crate::outcome::Outcome;
use crate::output::say;

/// Whether nothing more is done.
pub(super) fn is_over(phase: RevertPhase) -> bool {
    match phase {
        RevertPhase::Merged | RevertPhase::Done | RevertPhase::Superseded => true,
        RevertPhase::Pending | RevertPhase::Open | RevertPhase::Stalled => false,
    }
}

/// Waits until the environment is back, and says each time that something has changed.
pub(super) async fn until_back(
    connection: &Connection,
    name: &str,
    patience: Option<Duration>,
) -> Result<Outcome> {
    let Some(patience) = patience else {
        return follow(connection, name).await;
    };
    match tokio::time::timeout(patience, follow(connection, name)).await {
        Ok(outcome) => outcome,
        Err(_) => {
            say!("{name} is not done within {}s", patience.as_secs())?;
            Ok(Outcome::No)
        }
    }
}

async fn follow(connection: &Connection, name: &str) -> Result<Outcome> {
    let mut watched = Watched::default();
    watched.one::<RevertCommit>(connection, &connection.key(name));
    let mut said = None;
    loop {
        let looked = cluster::existing::<RevertCommit>(connection, name).await;
        let (line, wake) = match looked {
            Ok(object) => {
                let line = told(&object);
                let status = object.status.unwrap_or_default();
                if let Some(outcome) = status.phase.and_then(ends) {
                    say!("{line}")?;
                    return Ok(outcome);
                }
                (line, None)
            }
            Err(error) => (error.to_string(), cluster::again(error, true)?),
        };
        if said.as_ref() != Some(&line) {
            say!("waiting: {line}")?;
            said = Some(line);
        }
        watched.something(wake).await;
    }
}

/// What it comes to. None: it goes on.
fn ends(phase: RevertPhase) -> Option<Outcome> {
    match phase {
        RevertPhase::Merged | RevertPhase::Done => Some(Outcome::Yes),
        RevertPhase::Superseded | RevertPhase::Stalled => Some(Outcome::No),
        RevertPhase::Pending | RevertPhase::Open => None,
    }
}

/// How far it is, in one line.
fn told(object: &RevertCommit) -> String {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let Some(status) = &object.status else {
        return format!("{name}: no controller has looked at it yet");
    };
    let phase = status.phase.map_or("Unknown", RevertPhase::as_str);
    let ready = find(&status.conditions, READY);
    let message = ready.map(|it| format!(": {}", it.message));
    let url = status.url.as_ref().map(|url| format!(" ({url})"));
    format!(
        "{name} is {phase}{}{}",
        message.unwrap_or_default(),
        url.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_revert_tells_how_far_it_is_and_when_it_is_over() {
        let mut object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "RevertCommit", "metadata": {"name": "shop-1"},
            "spec": {"repoRef": {"name": "shop"}, "activeBranch": "env/prod", "from": "1", "drySHA": "2",
                "reason": "INC", "by": "alice"},
        });
        let told =
            |object: &serde_json::Value| told(&serde_json::from_value(object.clone()).unwrap());
        assert!(told(&object).contains("no controller"));
        object["status"] = json!({"phase": "Open", "url": "https://git/7", "conditions": [
            {"type": "Ready", "status": "False", "reason": "Open", "message": "a person merges it",
                "lastTransitionTime": "2026-11-20T19:00:00Z"}]});
        assert_eq!(
            told(&object),
            "shop-1 is Open: a person merges it (https://git/7)"
        );
        assert_eq!(ends(RevertPhase::Open), None);
        assert_eq!(ends(RevertPhase::Done), Some(Outcome::Yes));
        assert_eq!(ends(RevertPhase::Superseded), Some(Outcome::No));
        assert!(!is_over(RevertPhase::Stalled) && is_over(RevertPhase::Merged));
    }
}
