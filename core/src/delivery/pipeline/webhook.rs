//! The Approval that a signed request asks for: of the promotion that waits for a person now.
//!
//! The request names the Pipeline, the environment and the revision, and says when it was signed. The
//! Approval names the run and the key of the promotion as well. What was signed before the environment
//! began to wait was signed for an earlier run, or for an Approval that was deleted since, and approves
//! nothing.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use sluice_crds::approval::{PipelineReference, Vote};
use sluice_crds::pipeline::{EnvironmentState, EnvironmentStatus, PromotionRecord};
use sluice_crds::{Approval, ApprovalSpec, Pipeline};

use super::whose::Whose;
use super::{child, words};
use crate::text::words::{clean, instant_utc};

/// A request to approve a promotion. Its signature is that of the environment's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signed<'a> {
    /// The environment.
    pub environment: &'a str,
    /// The revision.
    pub revision: &'a str,
    /// When it was signed.
    pub at: Timestamp,
    /// Why, as the request says.
    pub reason: Option<&'a str>,
}

/// The name of the Approval that a request for this revision has made, or would make: each promotion has
/// one. None: the newest promotion to that environment is of another revision.
pub fn name_by_webhook(object: &Pipeline, environment: &str, revision: &str) -> Option<String> {
    let (_, record) = promotion(object, environment)?;
    (record.revision == revision).then(|| name(object, record))
}

/// Whether an Approval that has this name approves this promotion. Everybody who may create Approvals could
/// have taken the name for another one.
pub fn is_by_webhook(approval: &Approval, object: &Pipeline, environment: &str) -> bool {
    let spec = &approval.spec;
    let record = promotion(object, environment).map(|(_, record)| record);
    let of = spec.pipeline_ref.as_ref();
    of.zip(record).is_some_and(|(of, record)| {
        Some(&of.name) == object.metadata.name.as_ref()
            && of.environment == environment
            && of.run == record.run
            && of.key.as_ref() == Some(&record.key)
            && spec.revision == record.revision
            && spec.decision == Vote::Approve
    })
}

/// The Approval that a request asks for, in the name of `by`: the user as whom the API server knows the
/// controller.
///
/// # Errors
/// The environment does not wait for it: what it waits for, in a sentence, and what to do.
pub fn approve_by_webhook(
    object: &Pipeline,
    signed: Signed<'_>,
    by: &str,
) -> Result<Approval, (String, &'static str)> {
    let Signed {
        environment,
        revision,
        at,
        reason,
    } = signed;
    let Some((status, record)) = promotion(object, environment) else {
        let why = format!("nothing is being promoted to {environment}");
        return Err((why, LATER));
    };
    let said = || words::of(status, environment);
    let Some(waits) = &status.waiting_approval else {
        return Err((format!("no approval is waited for: {}", said()), LATER));
    };
    if status.state == EnvironmentState::Rejected {
        return Err((said(), "have that rejection deleted by its author first"));
    }
    if waits.revision != revision {
        let (wanted, asked) = (clean(&waits.revision, MOST), clean(revision, MOST));
        let why = format!("{environment} waits for the approval of {wanted}, and not of {asked}");
        return Err((why, "name the revision that it waits for in the path"));
    }
    if at < waits.since.0 {
        let (at, since) = (instant_utc(at), instant_utc(waits.since.0));
        let why = format!(
            "it was signed at {at}, before {environment} began to wait for this approval at {since}"
        );
        return Err((why, "sign another request"));
    }
    Ok(approval(object, environment, record, by, reason))
}

/// What to do where nothing is waited for.
const LATER: &str =
    "send it while status.environments.<environment>.waitingApproval names the revision";
/// The most characters of a revision in a message.
const MOST: usize = 256;

fn promotion<'p>(
    object: &'p Pipeline,
    environment: &str,
) -> Option<(&'p EnvironmentStatus, &'p PromotionRecord)> {
    let status = object.status.as_ref()?.environments.get(environment)?;
    Some((status, status.promotion.as_ref()?))
}

fn name(object: &Pipeline, record: &PromotionRecord) -> String {
    format!("{}-{}-webhook", Whose::of(object).name, record.key)
}

fn approval(
    object: &Pipeline,
    environment: &str,
    record: &PromotionRecord,
    by: &str,
    reason: Option<&str>,
) -> Approval {
    let spec = ApprovalSpec {
        gatekeeper_ref: None,
        pipeline_ref: Some(PipelineReference {
            name: Whose::of(object).name.to_owned(),
            environment: environment.to_owned(),
            run: record.run,
            key: Some(record.key.clone()),
        }),
        revision: record.revision.clone(),
        decision: Vote::Approve,
        by: by.to_owned(),
        groups: Vec::new(),
        reason: Some(reason.unwrap_or("approved by webhook").to_owned()),
    };
    let mut made = Approval::new(&name(object, record), spec);
    // It goes with its Pipeline, and is of no use without it.
    let owner = child::owner(object).map(|owner| OwnerReference {
        controller: None,
        ..owner
    });
    made.metadata = ObjectMeta {
        namespace: object.metadata.namespace.clone(),
        owner_references: owner.map(|owner| vec![owner]),
        ..made.metadata
    };
    made
}
