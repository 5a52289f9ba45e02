//! What the audit log records of a pipeline beside the decisions of its gates: how its promotions go on.
//!
//! What comes in: what the status said, and what it says now that the API server has accepted it. What goes
//! out: a record for each promotion that is in another phase, or in the same one for another reason.

use sluice_crds::audit::{Event, Promoted};
use sluice_crds::pipeline::{EnvironmentStatus, Phase, PipelineStatus, PromotionRecord};

use crate::cluster::key::ObjectKey;
use crate::tell::audit::Audit;

/// Records how promotions went on between two statuses.
pub(super) fn promotions(
    audit: &Audit,
    key: &ObjectKey,
    before: &PipelineStatus,
    now: &PipelineStatus,
) {
    if !audit.is_kept() {
        return;
    }
    for (name, environment) in &now.environments {
        let was = before.environments.get(name);
        if let Some(promoted) = promoted(key, name, was, environment) {
            audit.tell(|| Event::Promotion(Box::new(promoted)));
        }
    }
}

/// How the promotion of an environment has gone on. None: it is as it was.
fn promoted(
    key: &ObjectKey,
    environment: &str,
    before: Option<&EnvironmentStatus>,
    now: &EnvironmentStatus,
) -> Option<Promoted> {
    let record = now.promotion.as_ref()?;
    let was = before.and_then(|before| before.promotion.as_ref());
    if was.map(step) == Some(step(record)) {
        return None;
    }
    let decision = now.last_decision.as_ref();
    let decision = decision.filter(|it| it.subject.revision.as_ref() == Some(&record.revision));
    Some(Promoted {
        pipeline: key.to_string(),
        environment: environment.to_owned(),
        revision: record.revision.clone(),
        run: record.run,
        phase: record.phase,
        reason: record.reason.clone(),
        message: record.message.clone(),
        pull_request: record.pull_request.as_ref().and_then(|it| it.url.clone()),
        decided_by: decision.map_or_else(Vec::new, |it| it.decided_by.clone()),
    })
}

/// What makes a record another one.
fn step(record: &PromotionRecord) -> (&str, Phase, Option<&str>) {
    (&record.key, record.phase, record.reason.as_deref())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn status(promotion: &Value) -> EnvironmentStatus {
        let decision = json!({
            "allowed": false, "at": "2026-11-20T12:00:00Z", "require": "all", "checked": [],
            "subject": {
                "kind": "Pipeline", "namespace": "apps", "name": "shop", "environment": "prod",
                "action": "promote", "revision": "6.1.6",
            },
            "decidedBy": ["apps/production"], "message": "m",
        });
        serde_json::from_value(json!({
            "state": "GatesClosed", "promotion": promotion, "lastDecision": decision,
        }))
        .unwrap()
    }

    fn record(revision: &str, key: &str, more: &Value) -> EnvironmentStatus {
        let mut record = json!({
            "run": 7, "revision": revision, "key": key, "phase": "Unattempted",
            "at": "2026-11-20T12:00:00Z",
        });
        let map = record.as_object_mut().unwrap();
        map.extend(more.as_object().unwrap().clone());
        status(&record)
    }

    fn told(before: Option<&EnvironmentStatus>, now: &EnvironmentStatus) -> Option<Value> {
        let key = ObjectKey {
            namespace: "apps".into(),
            name: "shop".into(),
        };
        promoted(&key, "prod", before, now).map(|promoted| json!(promoted))
    }

    #[test]
    fn each_phase_and_each_reason_is_recorded_once() {
        let held = record("6.1.6", "a", &json!({}));
        let expected = json!({
            "pipeline": "apps/shop", "environment": "prod", "revision": "6.1.6", "run": 7,
            "phase": "Unattempted", "decidedBy": ["apps/production"],
        });
        assert_eq!(told(None, &held), Some(expected));
        assert_eq!(told(Some(&held), &held), None);
        // Nothing but its pull request is another one.
        let open = json!({"name": "shop-a", "url": "https://git.example.com/a/b/pulls/7"});
        let shown = record("6.1.6", "a", &json!({"pullRequest": open}));
        assert_eq!(told(Some(&held), &shown), None);

        let more = json!({"phase": "Succeeded", "reason": "Merged", "pullRequest": open});
        let merged = record("6.1.6", "a", &more);
        let said = told(Some(&shown), &merged).unwrap();
        assert_eq!(
            (&said["phase"], &said["reason"]),
            (&json!("Succeeded"), &json!("Merged"))
        );
        assert_eq!(said["pullRequest"], "https://git.example.com/a/b/pulls/7");
        let past = json!({"phase": "Succeeded", "reason": "MergedPastGate"});
        let past = record("6.1.6", "a", &past);
        assert_eq!(
            told(Some(&merged), &past).unwrap()["reason"],
            "MergedPastGate"
        );
    }

    #[test]
    fn what_gates_said_of_another_revision_is_left_out() {
        let next = record("6.1.7", "b", &json!({"phase": "Unapproved"}));
        let said = told(Some(&record("6.1.6", "a", &json!({}))), &next).unwrap();
        assert_eq!(
            (&said["revision"], &said["phase"]),
            (&json!("6.1.7"), &json!("Unapproved"))
        );
        assert_eq!(said.get("decidedBy"), None);
        let nothing = EnvironmentStatus {
            promotion: None,
            ..next.clone()
        };
        assert_eq!(told(Some(&next), &nothing), None);
    }
}
