//! Values of gated sources: what they grant, and where artifacts are kept and served.

use anyhow::{Context, Result};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::values::{find, render};

/// Values that have artifacts kept and served.
pub fn artifacts(persistence: &Value) -> Value {
    json!({"artifacts": {
        "enabled": true, "persistence": persistence, "service": {"port": 8080},
        "from": [{"namespaceSelector": {"matchLabels": {"name": "flux-system"}}}],
    }})
}

/// Artifacts are kept where the flags say, by one pod at a time, and others are told an address that
/// leads to it.
#[test]
fn artifacts_are_kept_and_served_when_it_is_switched_on() -> Result<()> {
    let documents = render(artifacts(&json!({"size": "1Gi"})))?;
    let named = |kind: &str| {
        let found = documents.iter().find(|document| {
            document
                .object
                .types
                .as_ref()
                .is_some_and(|it| it.kind == kind)
                && document.object.name_any() == "gate-controller-artifacts"
        });
        Ok::<_, anyhow::Error>(found.context(kind.to_owned())?.object.data["spec"].clone())
    };
    let service = named("Service")?;
    assert_eq!(
        service["ports"],
        json!([{"name": "http", "port": 8080, "targetPort": "artifacts", "protocol": "TCP"}])
    );
    // An audit log that cannot be written makes the pod unready, and must not cut off artifacts.
    assert_eq!(service["publishNotReadyAddresses"], true);
    let claim = named("PersistentVolumeClaim")?;
    assert_eq!(claim["resources"], json!({"requests": {"storage": "1Gi"}}));

    let deployment: Deployment = find(&documents, "Deployment")?;
    let strategy = deployment.spec.strategy.context("no strategy")?;
    assert_eq!(strategy.type_.as_deref(), Some("Recreate"));
    let pod = json!(deployment.spec.template.spec);
    let container = &pod["containers"][0];
    for flag in [
        "--storage-path=/data",
        "--storage-addr=:9790",
        "--storage-adv-addr=gate-controller-artifacts.sluice-system.svc:8080",
    ] {
        let args = container["args"].as_array().context("no flags")?;
        assert!(args.iter().any(|arg| arg == flag), "{flag}: {args:?}");
    }
    assert_eq!(
        container["volumeMounts"],
        json!([{"name": "artifacts", "mountPath": "/data"}])
    );
    let volume = |pod: &Value| pod["volumes"][0].clone();
    let claimed =
        |name: &str| json!({"name": "artifacts", "persistentVolumeClaim": {"claimName": name}});
    assert_eq!(volume(&pod), claimed("gate-controller-artifacts"));

    let policy: NetworkPolicy = find(&documents, "NetworkPolicy")?;
    let policy = json!(policy.spec);
    assert_eq!(policy["ingress"][2]["ports"][0]["port"], "artifacts");
    assert_eq!(
        policy["ingress"][2]["from"].as_array().map(Vec::len),
        Some(1)
    );
    let egress = policy["egress"].as_array().context("no egress")?;
    assert_eq!(
        egress.last(),
        Some(&json!({"ports": [{"port": 9090, "protocol": "TCP"}]}))
    );
    Ok(())
}

#[test]
fn where_artifacts_are_kept_is_a_choice() -> Result<()> {
    let volume = |persistence: &Value| -> Result<(Value, bool)> {
        let documents = render(artifacts(persistence))?;
        let deployment: Deployment = find(&documents, "Deployment")?;
        let claims = documents.iter().any(|document| {
            let types = document.object.types.as_ref();
            types.is_some_and(|types| types.kind == "PersistentVolumeClaim")
        });
        Ok((
            json!(deployment.spec.template.spec)["volumes"][0].clone(),
            claims,
        ))
    };
    let (passing, claims) = volume(&json!({"enabled": false, "size": "1Gi"}))?;
    assert_eq!(
        passing,
        json!({"name": "artifacts", "emptyDir": {"sizeLimit": "1Gi"}})
    );
    assert!(!claims);
    let (existing, claims) = volume(&json!({"existingClaim": "shared"}))?;
    assert_eq!(existing["persistentVolumeClaim"]["claimName"], "shared");
    assert!(!claims);
    let (_, claims) = volume(&json!({"accessModes": ["ReadWriteOncePod"]}))?;
    assert!(claims);
    Ok(())
}

/// What others point at outlives the release, unless somebody says otherwise.
#[test]
fn copies_of_artifacts_are_kept() -> Result<()> {
    let annotations = |persistence: &Value| -> Result<Value> {
        let documents = render(artifacts(persistence))?;
        let claim = documents.iter().find(|document| {
            let types = document.object.types.as_ref();
            types.is_some_and(|types| types.kind == "PersistentVolumeClaim")
        });
        let claim = &claim.context("no claim")?.object;
        Ok(json!(claim.metadata.annotations))
    };
    let keep = json!({"helm.sh/resource-policy": "keep"});
    assert_eq!(annotations(&json!({}))?, keep);
    let with = annotations(&json!({"annotations": {"example.com/a": "b"}}))?;
    let both = json!({"helm.sh/resource-policy": "keep", "example.com/a": "b"});
    assert_eq!(with, both);
    assert_eq!(annotations(&json!({"keep": false}))?, Value::Null);
    Ok(())
}

/// Without rights on Flux's sources it still sees gated sources, and may say that it can do nothing
/// for them: what it may not list, it asks for again and again.
#[test]
fn gated_sources_are_seen_whether_or_not_sources_may_be_written() -> Result<()> {
    let verbs = |enabled: bool, resource: &str| -> Result<Vec<String>> {
        let values = json!({"gatedSources": {"enabled": enabled}, "objects": {"rules": []}});
        let role: ClusterRole = find(&render(values)?, "ClusterRole")?;
        let rules = role.rules.into_iter().flatten();
        let rules = rules.filter(|rule| {
            let mut resources = rule.resources.iter().flatten();
            resources.any(|found| found == resource)
        });
        Ok(rules.flat_map(|rule| rule.verbs).collect())
    };
    for enabled in [true, false] {
        let seen = ["get", "list", "watch", "patch"];
        assert_eq!(verbs(enabled, "gatedsources")?, seen);
        assert_eq!(verbs(enabled, "gatedsources/status")?, ["patch"]);
    }
    assert!(verbs(true, "gitrepositories")?.contains(&"delete".to_owned()));
    assert_eq!(verbs(false, "gitrepositories")?, [""; 0]);
    assert_eq!(verbs(false, "externalartifacts/status")?, [""; 0]);
    Ok(())
}

/// Who allows no deletion grants no right to it; all else stays. PullRequests are no sources.
#[test]
fn sources_are_deleted_only_where_that_is_allowed() -> Result<()> {
    let all = |deletion: bool| -> Result<Vec<Vec<String>>> {
        let values = json!({"gatedSources": {"deletion": deletion}});
        let role: ClusterRole = find(&render(values)?, "ClusterRole")?;
        let rules = role.rules.into_iter().flatten();
        let is_no_source = |rule: &PolicyRule| {
            let mut resources = rule.resources.iter().flatten();
            resources.all(|it| it == "pullrequests")
        };
        let rules = rules.filter(|rule| !is_no_source(rule));
        Ok(rules.map(|rule| rule.verbs).collect())
    };
    let without = |verbs: Vec<String>| -> Vec<String> {
        verbs.into_iter().filter(|verb| verb != "delete").collect()
    };
    let (with, less) = (all(true)?, all(false)?);
    assert_ne!(with, less);
    assert_eq!(with.into_iter().map(without).collect::<Vec<_>>(), less);
    Ok(())
}

/// Flux may run elsewhere: then other accounts write the status of children.
#[test]
fn the_accounts_of_flux_are_a_value() -> Result<()> {
    let fluxes = |values: Value| -> Result<String> {
        let documents = render(values)?;
        let policy = documents.iter().find(|document| {
            let types = document.object.types.as_ref();
            let is_policy = types.is_some_and(|types| types.kind == "ValidatingAdmissionPolicy");
            is_policy && document.object.name_any() == "sluice-children"
        });
        let policy = policy.context("no policy")?.object.clone();
        let policy: ValidatingAdmissionPolicy = policy.try_parse()?;
        let variables = policy.spec.and_then(|spec| spec.variables);
        let mut variables = variables.into_iter().flatten();
        let found = variables.find(|variable| variable.name == "fluxControllers");
        Ok(found.context("no variable")?.expression)
    };
    let usual = r#"["system:serviceaccount:flux-system:source-controller"]"#;
    assert_eq!(fluxes(json!({}))?, usual);
    let other = json!({"policies": {"fluxControllers": ["system:serviceaccount:flux:sources"]}});
    assert_eq!(fluxes(other)?, r#"["system:serviceaccount:flux:sources"]"#);
    Ok(())
}
