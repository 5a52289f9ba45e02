//! What is reported of a gated source when its status has changed: in the log, and by events.
//!
//! News is what has gone out, that something waits or no longer waits, and problems.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sluice_core::delivery::gated_source::{
    BLOCKED, BYPASSED, KIND, RECOVERABLE, SELF_GATED, wanted,
};
use sluice_core::verdict::condition::{READY, find};
use sluice_crds::gated_source::{Admitted, Origin};
use sluice_crds::{GatedSource, GatedSourceStatus};

use crate::act::reconcile::Context;
use crate::act::reconcile::news::{self, Item};
use crate::cluster::key::ObjectKey;

/// The reason of `Ready` while children fetch what has gone out.
const PROGRESSING: &str = "Progressing";

/// Reports what is new.
pub(super) fn tell(
    context: &Context,
    key: &ObjectKey,
    object: &GatedSource,
    before: &GatedSourceStatus,
    now: &GatedSourceStatus,
) {
    for item in news(before, now) {
        tracing::info!(
            target: "decision",
            kind = KIND,
            namespace = %key.namespace,
            name = %key.name,
            reason = item.reason,
            "{}",
            item.message
        );
        news::send(context, key, object, used(object), item);
    }
}

/// What consumers name, or the first if there are several sources: people who use Flux know that object,
/// and an Alert of Flux can be about it.
fn used(object: &GatedSource) -> Option<ObjectReference> {
    let wanted = wanted(object);
    let (kind, name) = wanted.first()?.used(object.spec.strategy);
    Some(ObjectReference {
        api_version: Some(format!("{}/{}", kind.group(), kind.version())),
        kind: Some(kind.as_str().to_owned()),
        namespace: object.metadata.namespace.clone(),
        name: Some(name.to_owned()),
        ..ObjectReference::default()
    })
}

fn news(before: &GatedSourceStatus, now: &GatedSourceStatus) -> Vec<Item> {
    let released = now.admitted.as_ref().filter(|is| {
        let was = before.admitted.as_ref();
        was.is_none_or(|was| (&was.at, &was.revision) != (&is.at, &is.revision))
    });
    let mut news = Vec::from_iter(released.map(|admitted| goes_out(before, admitted)));
    for condition in &now.conditions {
        let was = find(&before.conditions, &condition.type_);
        let item = of_condition(was, condition, released.is_some());
        news.extend(item.map(|(warning, reason)| Item {
            warning,
            reason: reason.to_owned(),
            message: condition.message.clone(),
            environment: None,
            revision: revision(now, &condition.type_),
        }));
    }
    news
}

fn goes_out(before: &GatedSourceStatus, admitted: &Admitted) -> Item {
    let revision = &admitted.revision;
    let former = before.admitted.as_ref();
    let after = former
        .map(|former| format!(", after {}", former.revision))
        .unwrap_or_default();
    let message = match admitted.origin {
        Origin::Gates => format!("{revision} goes out{after}"),
        Origin::Baseline => {
            format!("{revision} is admitted as the baseline: the spec says that it runs already")
        }
        Origin::Adopted => format!("{revision} was admitted before: the children say so"),
    };
    Item {
        warning: false,
        reason: "Admitted".to_owned(),
        message,
        environment: None,
        revision: Some(revision.clone()),
    }
}

/// Which revision a condition is about.
fn revision(status: &GatedSourceStatus, condition: &str) -> Option<String> {
    let admitted = || status.admitted.as_ref().map(|it| it.revision.clone());
    match condition {
        BLOCKED => status.pending.as_ref().map(|it| it.revision.clone()),
        READY | RECOVERABLE => admitted(),
        _ => None,
    }
}

/// Whether it is a warning, and one word. `released`: the same status says that something has gone out.
fn of_condition<'c>(
    was: Option<&Condition>,
    is: &'c Condition,
    released: bool,
) -> Option<(bool, &'c str)> {
    let holds = is.status == "True";
    let held = was.is_some_and(|was| was.status == "True");
    let is_under_way = |it: &Condition| it.reason == PROGRESSING;
    match is.type_.as_str() {
        READY if is_under_way(is) => None,
        BLOCKED if released && !holds => None,
        RECOVERABLE if held && !holds => Some((true, "NotRecoverable")),
        BYPASSED | SELF_GATED if holds && !held => Some((true, &is.type_)),
        _ => news::of_condition(was.filter(|was| !is_under_way(was)), is),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn status(admitted: Option<&str>, conditions: &[(&str, &str, &str)]) -> GatedSourceStatus {
        let conditions: Vec<Value> = (conditions.iter())
            .map(|(type_, status, reason)| {
                json!({
                    "type": type_, "status": status, "reason": reason, "message": reason,
                    "lastTransitionTime": "2026-11-20T12:00:00Z",
                })
            })
            .collect();
        let admitted = admitted.map(|revision| {
            let at = "2026-11-20T12:00:00Z";
            json!({"revision": revision, "at": at, "origin": "Gates", "parts": []})
        });
        let status = json!({"admitted": admitted, "conditions": conditions});
        serde_json::from_value(status).unwrap()
    }

    /// The reasons that are reported, with warnings in capitals.
    fn told(before: &GatedSourceStatus, now: &GatedSourceStatus) -> Vec<String> {
        let told = |item: Item| match item.warning {
            true => item.reason.to_uppercase(),
            false => item.reason,
        };
        news(before, now).into_iter().map(told).collect()
    }

    #[test]
    fn what_goes_out_and_what_waits_is_told_once() {
        let new = GatedSourceStatus::default();
        let closed = [
            ("Ready", "True", "NothingAdmitted"),
            ("Blocked", "True", "GatesClosed"),
        ];
        let waits = status(None, &closed);
        assert_eq!(told(&new, &waits), ["Blocked"]);
        assert_eq!(told(&waits, &waits), [""; 0]);
        let open = [
            ("Ready", "False", "Progressing"),
            ("Blocked", "False", "NothingPending"),
        ];
        let out = status(Some("main@sha1:a"), &open);
        assert_eq!(told(&waits, &out), ["Admitted"]);
        let done = [
            ("Ready", "True", "Serving"),
            ("Blocked", "False", "NothingPending"),
        ];
        let done = status(Some("main@sha1:a"), &done);
        assert_eq!(told(&out, &done), [""; 0]);
        // The source has gone back to what is out.
        let waits = [
            ("Ready", "True", "Serving"),
            ("Blocked", "True", "GatesClosed"),
        ];
        let waits = status(Some("main@sha1:a"), &waits);
        assert_eq!(told(&waits, &done), ["Unblocked"]);
    }

    #[test]
    fn news_is_about_what_consumers_name_and_about_a_revision() {
        let used = |spec: Value| {
            let metadata = json!({"name": "app", "namespace": "apps"});
            let object = json!({"metadata": metadata, "spec": spec});
            let object: GatedSource = serde_json::from_value(object).unwrap();
            used(&object).map(|used| {
                let [api, kind, name] = [used.api_version, used.kind, used.name];
                [api, kind, name].map(Option::unwrap_or_default).join(" ")
            })
        };
        let source = json!({"kind": "Bucket", "name": "upstream"});
        let gates = json!({"refs": [{"name": "production"}]});
        let spec = |with: Value| {
            let mut spec = json!({"gates": gates});
            let fields = with.as_object().unwrap().clone();
            spec.as_object_mut().unwrap().extend(fields);
            spec
        };
        let git = json!({"kind": "GitRepository", "name": "upstream"});
        let table = [
            (
                json!({"sourceRef": git}),
                Some("source.toolkit.fluxcd.io/v1 GitRepository app"),
            ),
            (
                json!({"sourceRef": source, "strategy": "artifact", "target": {"name": "files"}}),
                Some("source.toolkit.fluxcd.io/v1 ExternalArtifact files"),
            ),
            (
                json!({"sourceRef": source, "strategy": "suspend"}),
                Some("source.toolkit.fluxcd.io/v1 Bucket upstream"),
            ),
            (
                json!({"sourceRefs": [git, source]}),
                Some("source.toolkit.fluxcd.io/v1 GitRepository app-upstream"),
            ),
            (
                json!({"selector": {"kind": "Bucket", "matchLabels": {}}, "strategy": "suspend"}),
                None,
            ),
        ];
        for (with, expected) in table {
            assert_eq!(used(spec(with.clone())).as_deref(), expected, "{with}");
        }

        let mut waits = status(Some("main@sha1:a"), &[("Blocked", "True", "GatesClosed")]);
        let pending = json!({"revision": "main@sha1:b", "since": "2026-11-20T12:00:00Z"});
        waits.pending = serde_json::from_value(pending).unwrap();
        let revisions = news(&GatedSourceStatus::default(), &waits).into_iter();
        let revisions: Vec<_> = revisions.filter_map(|item| item.revision).collect();
        assert_eq!(revisions, ["main@sha1:a", "main@sha1:b"]);
    }

    #[test]
    fn trouble_is_told_and_that_it_is_over() {
        let fine = status(
            None,
            &[
                ("Ready", "True", "Serving"),
                ("Recoverable", "True", "Pinned"),
            ],
        );
        let trouble = status(
            None,
            &[
                ("Ready", "False", "TargetTaken"),
                ("Recoverable", "False", "CannotBeFetched"),
                ("Bypassed", "True", "UpstreamUsed"),
            ],
        );
        let expected = ["TARGETTAKEN", "NOTRECOVERABLE", "BYPASSED"];
        assert_eq!(told(&fine, &trouble), expected);
        assert_eq!(told(&trouble, &fine), ["Serving"]);
    }
}
