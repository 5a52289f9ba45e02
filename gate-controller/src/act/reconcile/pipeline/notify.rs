//! Sends the notification of a promotion, as an errand.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use sluice_core::delivery::pipeline::{self, Notice, Outcome};
use sluice_crds::Pipeline;
use sluice_crds::pipeline::{AppReference, InvolvedObject};
use tokio::time::timeout_at;

use crate::act::errands::Term;
use crate::act::reconcile::Context;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::tell::events::notifications::api_of;
use crate::tell::events::promotions::{Promotion, Promotions};

/// Begins to send it, unless it has been begun. Its end wakes the pipeline. Without `--events-addr` the
/// pipeline is refused before anything is decided.
pub(super) fn begin(context: &Context, key: &ObjectKey, object: &Pipeline, notice: &Notice) {
    let Some(promotions) = context.promotions.clone() else {
        return;
    };
    let promotion = promotion(key, object, notice);
    let of = Work::own(Kind::Pipeline, key.clone());
    let host = promotions.host().to_owned();
    let errand = |term| send(promotions, promotion, term);
    context.errands.begin(&of, &notice.errand, &host, errand);
}

/// Sends it while this replica leads.
async fn send(promotions: Arc<Promotions>, promotion: Promotion, term: Term) -> Outcome {
    let failed = |why: &str| Outcome::Failed {
        why: why.to_owned(),
        not_before: None,
    };
    let Some(until) = term.may_act() else {
        return failed("there was no time left to send it");
    };
    match timeout_at(until, promotions.send(&promotion)).await {
        Ok(Ok(())) => Outcome::Done,
        Ok(Err(untaken)) => Outcome::Failed {
            why: untaken.why,
            not_before: untaken.not_before,
        },
        Err(_) => failed("there was no answer in time"),
    }
}

fn promotion(key: &ObjectKey, object: &Pipeline, notice: &Notice) -> Promotion {
    let Notice {
        errand: _,
        involved,
        app_namespace,
        environment,
        revision,
        token,
        message,
    } = notice;
    Promotion {
        about: match involved {
            InvolvedObject::Pipeline => ObjectReference {
                api_version: Some(Kind::Pipeline.api_version()),
                kind: Some(pipeline::KIND.to_owned()),
                namespace: Some(key.namespace.to_string()),
                name: Some(key.name.to_string()),
                uid: object.metadata.uid.clone(),
                ..ObjectReference::default()
            },
            InvolvedObject::Application => ObjectReference {
                api_version: api_of_app(&object.spec.app_ref),
                kind: Some(object.spec.app_ref.kind.clone()),
                namespace: Some(app_namespace.clone()),
                name: Some(object.spec.app_ref.name.clone()),
                ..ObjectReference::default()
            },
        },
        pipeline: format!("{}/{}", key.namespace, key.name),
        environment: environment.clone(),
        revision: revision.clone(),
        token: token.clone(),
        message: message.clone(),
    }
}

/// The API of the app. Of the kinds of Flux the spec may have a version that is not served any more.
fn api_of_app(app: &AppReference) -> Option<String> {
    let (group, kind) = pipeline::kind_of(app)?;
    let known = api_of(kind).filter(|api| api.split_once('/').is_some_and(|(its, _)| its == group));
    let written = || app.api_version.clone();
    // Alerts go by the group alone.
    known
        .or_else(written)
        .or_else(|| Some(format!("{group}/v1")))
}
