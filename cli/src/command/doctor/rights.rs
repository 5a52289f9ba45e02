//! Rights: yours to see what gates are decided from, and the controller's to do its work.

use anyhow::Result;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
    SubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};
use sluice_crds::GROUP;

use super::finding::Finding;
use crate::cluster::{Cannot, Connection, Controller};

const OWN: &str = "your rights";
const CONTROLLERS: &str = "its rights";

/// Something that somebody may do or not: a verb, a group, a resource with its part.
type Right = (&'static str, &'static str, &'static str);

/// What somebody who asks gates has to see.
const TO_SEE: [Right; 4] = [
    ("list", GROUP, "gates"),
    ("list", GROUP, "gatekeepers"),
    ("list", GROUP, "approvals"),
    ("list", GROUP, "gatedsources"),
];
/// What is a right of its own, and what it is for.
const MORE: [(Right, &str); 2] = [
    (("override", GROUP, "gates"), "force gates"),
    (("create", GROUP, "approvals"), "approve and reject"),
];
/// What the controller cannot do without.
const TO_WORK: [Right; 12] = [
    ("list", GROUP, "gates"),
    ("watch", GROUP, "gatekeepers"),
    ("list", GROUP, "pipelines"),
    ("patch", GROUP, "gates"),
    ("override", GROUP, "gates"),
    ("patch", GROUP, "gates/status"),
    ("patch", GROUP, "gatekeepers/status"),
    ("patch", GROUP, "gatedsources/status"),
    ("patch", GROUP, "pipelines/status"),
    ("list", GROUP, "promotionstrategies"),
    ("list", "", "configmaps"),
    ("create", "events.k8s.io", "events"),
];

fn attributes((verb, group, resource): Right, namespace: Option<&str>) -> ResourceAttributes {
    let (resource, part) = match resource.split_once('/') {
        Some((resource, part)) => (resource, Some(part.to_owned())),
        None => (resource, None),
    };
    ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        subresource: part,
        namespace: namespace.map(str::to_owned),
        ..ResourceAttributes::default()
    }
}

/// Yours, in the connection's namespace.
pub(super) async fn own(connection: &Connection) -> Vec<Finding> {
    vec![match yours(connection).await {
        Ok(finding) => finding,
        Err(error) => Finding::unknown(OWN, &error),
    }]
}

async fn yours(connection: &Connection) -> Result<Finding> {
    let here = &connection.namespace;
    let missing = missing(&TO_SEE, async |right| may(connection, right).await).await?;
    if !missing.is_empty() {
        let found = format!("in {here} you may not {}", missing.join(", "));
        let remedy = format!(
            "ask for the ClusterRole sluice-view in {here}, which view, edit and admin hold"
        );
        return Ok(Finding::failed(OWN, found, remedy));
    }
    let (mut can, mut cannot) = (vec!["see all gates"], Vec::new());
    for (right, what) in MORE {
        match may(connection, right).await? {
            true => can.push(what),
            false => cannot.push(what),
        }
    }
    let but = match cannot.is_empty() {
        true => String::new(),
        false => format!(", and not {}", cannot.join(", ")),
    };
    let found = format!("in {here} you may {}{but}", can.join(", "));
    Ok(Finding::ok(OWN, found))
}

/// Those of `rights` that somebody does not have, in words.
async fn missing(
    rights: &[Right],
    may: impl AsyncFn(Right) -> Result<bool>,
) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for right @ (verb, _, resource) in rights.iter().copied() {
        if !may(right).await? {
            missing.push(format!("{verb} {resource}"));
        }
    }
    Ok(missing)
}

async fn may(connection: &Connection, right: Right) -> Result<bool> {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes(right, Some(&connection.namespace))),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let api: Api<SelfSubjectAccessReview> = connection.all();
    let review = api.create(&PostParams::default(), &review).await;
    let review = review.cannot("ask what you may do")?;
    Ok(review.status.is_some_and(|status| status.allowed))
}

/// Those of the controllers, where they work.
pub(super) async fn of_controllers(
    connection: &Connection,
    controllers: &[Controller],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for controller in controllers {
        let name = format!("{}/{}", controller.namespace, controller.name);
        let may = async |right| may_work(connection, controller, right).await;
        let missing = match missing(&TO_WORK, may).await {
            Ok(missing) => missing,
            Err(error) => return vec![Finding::unknown(CONTROLLERS, &error)],
        };
        findings.push(match missing.is_empty() {
            true => Finding::ok(CONTROLLERS, format!("{name} may do its work")),
            false => Finding::failed(
                CONTROLLERS,
                format!("{name} may not {}", missing.join(", ")),
                format!(
                    "install the chart with rbac.create=true, or grant this to {}",
                    controller.user
                ),
            ),
        });
    }
    findings
}

async fn may_work(connection: &Connection, controller: &Controller, right: Right) -> Result<bool> {
    let groups = [
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{}", controller.namespace),
        "system:authenticated".to_owned(),
    ];
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(controller.user.clone()),
            groups: Some(groups.into()),
            resource_attributes: Some(attributes(right, controller.watches())),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let api: Api<SubjectAccessReview> = connection.all();
    let review = api.create(&PostParams::default(), &review).await;
    let review = review.cannot("ask what the controller may do")?;
    Ok(review.status.is_some_and(|status| status.allowed))
}
