//! Whether the controller has accepted a force.
//!
//! The API server accepts annotations from every user who may write them; the controller decides whether
//! they count. What comes in: what was written, and how long to wait. What goes out: what the gate's
//! status says about it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::Api;
use sluice_core::gate;
use sluice_core::verdict::status::REQUESTED_AT;
use sluice_crds::gate::Override;
use sluice_crds::{Gate, Setting};

use sluice_crds::gate::annotations::{FORCE, FORCE_BY, FORCE_REASON, FORCE_UNTIL};

/// How soon the gate is looked at again. It is not watched: users who may force a gate may lack the
/// right to watch it.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// A force as it was written.
pub(super) struct Written {
    pub(super) state: Setting,
    pub(super) until: Timestamp,
    pub(super) reason: String,
    pub(super) by: String,
    /// Asks for a look: a status that answers it has seen the force.
    pub(super) asked: String,
}

/// What happened to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is in effect.
    Accepted,
    /// It does not count, and why.
    Refused(String),
    /// It is not known yet.
    None,
}

impl Written {
    /// The annotations that make it.
    pub(super) fn annotations(&self) -> BTreeMap<&'static str, String> {
        BTreeMap::from([
            (FORCE, self.state.to_string()),
            (FORCE_UNTIL, self.until.to_string()),
            (FORCE_REASON, self.reason.clone()),
            (FORCE_BY, self.by.clone()),
        ])
    }

    /// Waits until the status of the gate says what happened to it.
    pub(super) async fn confirmed(
        &self,
        api: &Api<Gate>,
        name: &str,
        patience: Duration,
    ) -> Answer {
        let answered = async {
            loop {
                // The error may be gone at the next attempt, and the force is already written.
                let answer = api.get(name).await.map(|gate| self.answer(&gate));
                match answer.unwrap_or(Answer::None) {
                    Answer::None => pause().await,
                    said => return said,
                }
            }
        };
        let answered = tokio::time::timeout(patience, answered);
        answered.await.unwrap_or(Answer::None)
    }

    /// What the status of the gate says of it.
    fn answer(&self, gate: &Gate) -> Answer {
        let present = gate.metadata.annotations.as_ref();
        let value = |name: &str| present.and_then(|all| all.get(name));
        let written = self.annotations();
        if !written.iter().all(|(name, it)| value(name) == Some(it)) {
            let changed = "somebody has changed or removed it meanwhile";
            return Answer::Refused(changed.to_owned());
        }
        let status = gate.status.as_ref();
        let Some(status) = status.filter(|status| {
            // Somebody may have asked for another look since.
            let answered = status.last_handled_reconcile_at.as_ref();
            answered.is_some() && answered == value(REQUESTED_AT)
        }) else {
            return Answer::None;
        };
        match (&status.r#override, &status.message) {
            (Some(force), _) if self.is(force) => Answer::Accepted,
            (_, Some(message)) => match gate::about_forces(message) {
                Some(complaint) => Answer::Refused(complaint.to_owned()),
                None => Answer::None,
            },
            (_, None) => Answer::None,
        }
    }

    /// Statuses have whole seconds, and texts that are fit to be shown.
    fn is(&self, force: &Override) -> bool {
        force.state == self.state && force.until.0.as_second() == self.until.as_second()
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "polls a condition, with a deadline"
)]
async fn pause() {
    tokio::time::sleep(LOOK_AGAIN).await;
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    const ASKED: &str = "2026-11-20T18:00:00.5Z";
    const UNTIL: &str = "2026-11-20T19:00:00.5Z";

    fn written() -> Written {
        Written {
            state: Setting::Open,
            until: UNTIL.parse().unwrap(),
            reason: "hotfix".to_owned(),
            by: "alice".to_owned(),
            asked: ASKED.to_owned(),
        }
    }

    fn gate(asked: &str, by: &str, status: &Value) -> Gate {
        let mut annotations = json!(written().annotations());
        annotations[FORCE_BY] = by.into();
        annotations[REQUESTED_AT] = asked.into();
        let gate = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
            "metadata": {"name": "a", "annotations": annotations},
            "spec": {},
            "status": status,
        });
        serde_json::from_value(gate).unwrap()
    }

    fn status(answered: &str, state: &str, until: &str, message: &str) -> Value {
        let instant = "2026-11-20T18:00:00Z";
        json!({
            "lastHandledReconcileAt": answered,
            "message": message,
            "override": {
                "state": state, "by": "alice", "reason": "hotfix", "since": instant, "until": until,
            },
        })
    }

    const ACCEPTED: &str = "2026-11-20T19:00:00Z";
    const OLDER: &str = "2026-11-20T18:30:00Z";
    const COMPLAINT: &str =
        "off: switched closed. metadata.annotations[sluice.dev/force-until]: no";

    #[rstest]
    #[case::no_status(ASKED, json!({}), Answer::None)]
    #[case::in_effect(ASKED, status(ASKED, "open", ACCEPTED, "forced"), Answer::Accepted)]
    #[case::an_older_look(ASKED, status("1", "open", ACCEPTED, "forced"), Answer::None)]
    #[case::a_later_look("2", status("2", "open", ACCEPTED, "forced"), Answer::Accepted)]
    #[case::not_noted_yet(ASKED, status(ASKED, "open", OLDER, "forced"), Answer::None)]
    #[case::another_state(ASKED, status(ASKED, "closed", ACCEPTED, "forced"), Answer::None)]
    #[case::an_older_complaint(ASKED, status("1", "open", OLDER, COMPLAINT), Answer::None)]
    #[case::a_complaint(
        ASKED,
        status(ASKED, "open", OLDER, COMPLAINT),
        Answer::Refused("metadata.annotations[sluice.dev/force-until]: no".to_owned())
    )]
    fn a_status_that_has_seen_the_force_tells(
        #[case] asked: &str,
        #[case] status: Value,
        #[case] expected: Answer,
    ) {
        assert_eq!(written().answer(&gate(asked, "alice", &status)), expected);
    }

    #[test]
    fn anyone_who_forces_the_gate_meanwhile_takes_it_over() {
        let theirs = gate(ASKED, "bob", &status(ASKED, "open", ACCEPTED, "forced"));
        let Answer::Refused(why) = written().answer(&theirs) else {
            panic!("it is not ours any more")
        };
        assert!(why.contains("somebody has changed or removed it"), "{why}");
    }
}
