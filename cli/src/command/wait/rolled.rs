//! Until a rollout has succeeded or failed.

use std::collections::BTreeMap;

use anyhow::Result;
use sluice_core::delivery::rollout::{View, view};
use sluice_crds::Rollout;

use crate::cluster::{self, Connection, Watched};
use crate::outcome::Outcome;
use crate::output::say;

/// Waits until it has, and says each time that the reason changes what it waits for.
pub(super) async fn until_over(connection: &Connection, name: &str) -> Result<Outcome> {
    let mut said = None;
    let mut watched = Watched::default();
    watched.one::<Rollout>(connection, &connection.key(name));
    loop {
        let looked = cluster::existing::<Rollout>(connection, name).await;
        let (line, wake) = match looked {
            Ok(object) => {
                let view = view(&object, &BTreeMap::new());
                if let Some(succeeded) = view.ended() {
                    say!("{}", over(&view, succeeded))?;
                    return Ok(Outcome::yes_if(succeeded));
                }
                (going(&view), None)
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

fn over(view: &View, succeeded: bool) -> String {
    let newest = view.history.first().map(|run| run.message.as_str());
    let outcome = view.outcome.as_ref().map(|it| it.message.as_str());
    let said = newest.or(outcome).unwrap_or("nothing more is known");
    let word = if succeeded { "succeeded" } else { "failed" };
    format!("{} has {word}: {said}", view.name)
}

/// How far it is, and what holds it. Pods that come are no news.
fn going(view: &View) -> String {
    let name = &view.name;
    let progress = view.progress.as_ref();
    let progress = progress.map(|it| format!(", {it} batches done"));
    let progress = progress.unwrap_or_default();
    match (view.state, &view.held) {
        (None, _) => format!("no controller has looked at {name} yet"),
        _ if view.outdated => format!("{name} is asked for another run"),
        (Some(_), Some(held)) => format!("{name} is held{progress}: {}", held.message),
        (Some(state), None) => format!("{name} is {}{progress}", state.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(status: &serde_json::Value, generation: i64) -> View {
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout",
            "metadata": {"name": "web", "namespace": "shop", "generation": generation},
            "spec": {"targetRef": {"kind": "Deployment", "name": "web"}, "rolloutPlan": {"targetSize": 4}},
            "status": status,
        });
        view(&serde_json::from_value(object).unwrap(), &BTreeMap::new())
    }

    #[test]
    fn a_rollout_is_over_only_with_the_spec_of_now() {
        let failed = json!({
            "observedGeneration": 1, "rollingState": "rolloutFailed",
            "outcome": {"reason": "HookVetoed", "message": "the hook smoke says 403"},
        });
        let over_ = shown(&failed, 1);
        assert_eq!(over_.ended(), Some(false));
        assert_eq!(
            over(&over_, false),
            "web has failed: the hook smoke says 403"
        );
        assert_eq!(shown(&failed, 2).ended(), None);
    }

    #[test]
    fn what_holds_it_is_said() {
        let held = json!({
            "observedGeneration": 1, "rollingState": "rollingInBatches", "progress": "1/2",
            "batchRollingState": "batchReady", "currentBatch": 0,
            "held": {"reason": "Paused", "message": "it is paused", "since": "2026-11-20T12:00:00Z"},
        });
        assert_eq!(
            going(&shown(&held, 1)),
            "web is held, 1/2 batches done: it is paused"
        );
        assert_eq!(
            going(&shown(&json!({}), 1)),
            "no controller has looked at web yet"
        );
    }
}
