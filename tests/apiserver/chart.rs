//! The chart on a real API server: that it is accepted whole, that its pod may run where pods are
//! restricted, and that its rights are enough and no more.
//!
//! Its policies and roles are cluster-wide and have fixed names, so these tests have control
//! planes of their own, whatever the shared server is.

mod alerts;
mod approvals;
mod controller;
mod dashboard;
mod gated_sources;
mod metrics;
mod options;
mod pipelines;
mod plain;
mod pod;
mod promql;
mod rights;
mod rollouts;
mod values;

pub use sluice_tests::installation::{CONTROLLER, installed};

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use gate_controller::cluster::kind::Kind;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;
use sluice_tests::apply::Document;
use sluice_tests::helm::{Helm, Release, chart};
use sluice_tests::progress::Stderr;
use sluice_tests::{DEADLINE, apply, poll};

use values::render;

/// All objects of this kind.
fn of_kind<K: DeserializeOwned>(documents: &[Document], kind: &str) -> Result<Vec<K>> {
    let is_it = |document: &&Document| {
        let types = document.object.types.as_ref();
        types.is_some_and(|types| types.kind == kind)
    };
    let found = documents.iter().filter(is_it);
    found
        .map(|document| Ok(serde_json::from_value(json!(document.object))?))
        .collect()
}

/// What an installation with default values consists of.
#[test]
fn the_default_values_render_what_is_needed() -> Result<()> {
    let helm = Helm::ensure(&Stderr::new())?;
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for document in helm.template(&Release::default())? {
        let types = document.object.types.context("an object without a kind")?;
        *kinds.entry(types.kind).or_default() += 1;
    }
    let expected = [
        ("ClusterRole", 13),
        ("ClusterRoleBinding", 2),
        ("CustomResourceDefinition", 12),
        ("Deployment", 1),
        ("NetworkPolicy", 1),
        ("Role", 2),
        ("RoleBinding", 2),
        ("Service", 1),
        ("ServiceAccount", 1),
        ("ValidatingAdmissionPolicy", 9),
        ("ValidatingAdmissionPolicyBinding", 9),
    ];
    let expected = expected.map(|(kind, count)| (kind.to_owned(), count));
    assert_eq!(kinds, BTreeMap::from(expected));
    Ok(())
}

/// `cargo xtask generate` writes them; this says that it has been run.
#[test]
fn the_chart_carries_the_api_of_this_version() -> Result<()> {
    let helm = Helm::ensure(&Stderr::new())?;
    let documents = helm.template(&Release::default())?;
    for expected in sluice_crds::all() {
        let name = expected.name_any();
        let found = documents
            .iter()
            .find(|document| document.object.name_any() == name)
            .with_context(|| format!("the chart has no {name}"))?;
        let found: CustomResourceDefinition = found.object.clone().try_parse()?;
        assert_eq!(
            found.spec, expected.spec,
            "{name}: run cargo xtask generate"
        );
        let kept = found.annotations().get("helm.sh/resource-policy");
        assert_eq!(kept.map(String::as_str), Some("keep"), "{name}");
    }
    // Helm would install what lies there besides, and never upgrade it.
    assert!(!chart().join("crds").exists());
    Ok(())
}

/// What no Deployment looks at is left alone for ever, and what two look at they write against each other.
#[test]
fn each_kind_is_looked_at_by_one_deployment_which_may_write_it() -> Result<()> {
    for separate in [false, true] {
        let documents = render(json!({"pipelines": {"forge": {"separate": separate}}}))?;
        let deployments: Vec<Deployment> = of_kind(&documents, "Deployment")?;
        let roles: Vec<ClusterRole> = of_kind(&documents, "ClusterRole")?;
        let mut all = Vec::new();
        for deployment in &deployments {
            let name = deployment.name_any();
            let role = roles.iter().find(|role| role.name_any() == name);
            let role = role.with_context(|| format!("no ClusterRole {name}"))?;
            for kind in looked_at(deployment)? {
                for resource in kind.writes().split(" and ") {
                    ensure!(may_patch(role, resource), "{name}: {resource}");
                }
                all.push(kind);
            }
        }
        all.sort_unstable();
        let mut expected = Kind::LOOKED_AT;
        expected.sort_unstable();
        assert_eq!(all, expected, "separate: {separate}");
    }
    Ok(())
}

/// The kinds that a Deployment names, or every kind.
fn looked_at(deployment: &Deployment) -> Result<Vec<Kind>> {
    let template = deployment.spec.template.spec.as_ref();
    let arguments = &template.context("no pod")?.containers[0].args;
    let mut arguments = arguments.iter().flatten();
    let Some(words) = arguments.find_map(|it| it.strip_prefix("--kinds=")) else {
        return Ok(Kind::LOOKED_AT.to_vec());
    };
    let kind = |word: &str| {
        let found = Kind::LOOKED_AT.into_iter().find(|it| it.as_str() == word);
        found.with_context(|| format!("no kind {word}"))
    };
    words.split(',').map(kind).collect()
}

fn may_patch(role: &ClusterRole, resource: &str) -> bool {
    let mut rules = role.rules.iter().flatten();
    rules.any(|rule| {
        rule.verbs.iter().any(|verb| verb == "patch")
            && rule.resources.iter().flatten().any(|it| it == resource)
            && rule
                .api_groups
                .iter()
                .flatten()
                .any(|it| it == sluice_crds::GROUP)
    })
}

#[test]
fn the_plain_policies_are_those_of_the_default_installation() -> Result<()> {
    let plain = apply::read(&chart().join("policies"))?;
    let rendered = Helm::ensure(&Stderr::new())?.template(&Release::default())?;
    assert_eq!(plain.len(), 18);
    for plain in plain {
        let same = rendered.iter().find(|rendered| {
            rendered.object.types == plain.object.types
                && rendered.object.metadata.name == plain.object.metadata.name
        });
        let same = same.with_context(|| format!("{} is not rendered", plain.object.name_any()))?;
        assert_eq!(
            normalized(&same.object.data),
            normalized(&plain.object.data)
        );
    }
    Ok(())
}

/// Without the quotes that tell a list in CEL from one in JSON.
fn normalized(data: &serde_json::Value) -> String {
    data.to_string().replace("\\\"", "'")
}

/// The API server checks the expressions against the schema of the kinds that they judge.
#[tokio::test]
async fn the_policies_have_no_warnings() -> Result<()> {
    let client = installed().await?.client().await?;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client);
    let children = gate_controller::observe::identity::CHILDREN;
    for name in (gate_controller::observe::identity::POLICIES.into_iter()).chain(children) {
        let warnings = poll(DEADLINE, "the policy to be checked", async || {
            let status = policies.get(name).await?.status;
            let checked = status.and_then(|status| status.type_checking);
            let checked = checked.context("not checked yet")?;
            Ok::<_, anyhow::Error>(checked.expression_warnings.unwrap_or_default())
        });
        assert_eq!(warnings.await?, [], "{name}");
    }
    Ok(())
}
