//! Values: what is refused, and what they turn into.

use std::process::Command;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{ClusterRole, Role};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use serde_json::{Value, json};
use sluice_tests::apply::Document;
use sluice_tests::helm::{Helm, Release};
use sluice_tests::programs::Program;
use sluice_tests::progress::Stderr;

use super::gated_sources::artifacts;
use super::options::every_option;

/// The chart with these values.
pub fn render(values: Value) -> Result<Vec<Document>> {
    let release = Release {
        values,
        ..Release::default()
    };
    Helm::ensure(&Stderr::new())?.template(&release)
}

/// The object of this kind that has the release's own name.
pub fn find<K: serde::de::DeserializeOwned>(documents: &[Document], kind: &str) -> Result<K> {
    let of_kind = |document: &&Document| {
        let types = document.object.types.as_ref();
        types.is_some_and(|types| types.kind == kind)
            && document.object.name_any() == "gate-controller"
    };
    let found = documents
        .iter()
        .find(of_kind)
        .with_context(|| format!("no {kind}"))?;
    Ok(serde_json::from_value(serde_json::to_value(
        &found.object,
    )?)?)
}

fn arguments(values: Value) -> Result<Vec<String>> {
    let deployment: Deployment = find(&render(values)?, "Deployment")?;
    let pod = deployment.spec.template.spec.context("no pod")?;
    Ok(pod.containers[0].args.clone().unwrap_or_default())
}

#[test]
fn mistakes_are_refused_with_the_path() -> Result<()> {
    for (values, expected) in [
        (json!({"replica": 2}), "'replica' not allowed"),
        (
            json!({"controller": {"logLevel": "loud"}}),
            "/controller/logLevel",
        ),
        (
            json!({"controller": {"egressAllow": ["10.0.0.1"]}}),
            "/controller/egressAllow/0",
        ),
        (
            json!({"controller": {"egressOnly": ["https://example.com"]}}),
            "/controller/egressOnly/0",
        ),
        (
            json!({"controller": {"minRetryDelay": "soon"}}),
            "/controller/minRetryDelay",
        ),
        (
            json!({"policies": {"extraStatusWriters": "me"}}),
            "/policies/extraStatusWriters",
        ),
        (
            json!({"pipelines": {"secrets": [{"namespace": "a", "names": ["b"], "for": "all"}]}}),
            "/pipelines/secrets/0/for",
        ),
        (
            json!({"pipelines": {"kinds": [{"apiGroups": ["*"], "resources": ["terraforms"]}]}}),
            "/pipelines/kinds/0/apiGroups/0",
        ),
        (
            json!({"pipelines": {"kinds": [{"apiGroups": [""], "resources": ["secrets"]}]}}),
            "/pipelines/kinds/0/resources/0",
        ),
        (
            json!({"evidence": {"secrets": [{"namespace": "a"}]}}),
            "/evidence/secrets/0",
        ),
        (
            json!({"objects": {"extraRules": [{"apiGroups": ["a", ""], "resources": ["nodes", "secrets"]}]}}),
            "/objects/extraRules/0/resources/1",
        ),
        (
            json!({"objects": {"rules": [{"apiGroups": ["apps"], "resources": ["*"]}]}}),
            "/objects/rules/0/resources/0",
        ),
        (
            json!({"objects": {"rules": [{"apiGroups": ["*"], "resources": ["deployments"]}]}}),
            "/objects/rules/0/apiGroups/0",
        ),
        (
            json!({"objects": {"rules": [{"apiGroups": ["apps"], "resources": ["jobs"], "verbs": ["delete"]}]}}),
            "'verbs' not allowed",
        ),
        (
            json!({"networkPolicy": {"evidence": {"ports": ["https"]}}}),
            "/networkPolicy/evidence/ports/0",
        ),
        (
            json!({"check": {"enabled": true}}),
            "check.tls: tokens would pass in plain text",
        ),
        (
            json!({"check": {"enabled": true, "tls": {"certManager": {"enabled": true}}}}),
            "check.tls.certManager.issuerRef: must name the issuer",
        ),
        (json!({"check": {"port": 8080}}), "/check/port"),
        (
            json!({"check": {"approvals": [{"namespace": "apps", "secrets": ["a"]}]}}),
            "check.approvals: nobody is answered; set check.enabled as well",
        ),
        (json!({"audit": {"path": "audit.log"}}), "/audit/path"),
        (json!({"audit": {"path": "/audit.log"}}), "/audit/path"),
        (
            json!({"audit": {"path": "/var/log/audit.log"}}),
            "audit.volume: the audit log is a file",
        ),
        (
            json!({"audit": {"path": "/var/$(POD_NAME)/audit.log"}}),
            "/audit/path",
        ),
        (
            json!({"audit": {"required": true}}),
            "audit.required: there is no audit log",
        ),
        (json!({"image": {"digest": "sha256:1"}}), "/image/digest"),
        (json!({"artifacts": {"port": 9440}}), "/artifacts/port"),
        (
            json!({"artifacts": {"enabled": true, "port": 8443}, "check": {"enabled": true, "insecure": true}}),
            "artifacts.port: the container listens at 8443 for checks already",
        ),
        (json!({"webhook": {"port": 80}}), "/webhook/port"),
        (
            json!({"webhook": {"enabled": true, "port": 9790}, "artifacts": {"enabled": true}}),
            "webhook.port: the container listens at 9790 already, by artifacts.port",
        ),
        (
            json!({"artifacts": {"persistence": {"size": "much"}}}),
            "/artifacts/persistence/size",
        ),
        (
            json!({"artifacts": {"enabled": true}, "replicas": 2}),
            "set replicas to 1, or artifacts.enabled to false",
        ),
        (
            json!({"replicas": 2, "controller": {"leaderElection": false}}),
            "set controller.leaderElection to true, or replicas to 1",
        ),
        (
            json!({"alerts": {"thresholds": {"forcedFor": "1d"}}}),
            "/alerts/thresholds/forcedFor",
        ),
        (
            json!({"alerts": {"enabled": true, "thresholds": {"forcedFor": null}}}),
            "alerts.thresholds: one is null",
        ),
        (
            json!({"alerts": {"enabled": true, "disabled": ["SluiceAsleep"]}}),
            "alerts.disabled: there is no alert SluiceAsleep",
        ),
        (
            json!({"serviceAccount": {"create": false}}),
            "serviceAccount.name: must name",
        ),
    ] {
        let error = render(values.clone())
            .err()
            .with_context(|| format!("{values} was let through"))?;
        assert!(error.to_string().contains(expected), "{values}: {error}");
    }
    Ok(())
}

#[test]
fn the_default_flags() -> Result<()> {
    let expected = [
        "--metrics-addr=:8080",
        "--health-addr=:9440",
        "--log-encoding=json",
        "--log-level=info",
        "--watch-all-namespaces=true",
        "--enable-leader-election",
    ];
    assert_eq!(arguments(json!({}))?, expected);
    Ok(())
}

/// The program itself reads them. `--help` comes last: it is reached if all else is understood.
#[test]
fn the_controller_understands_the_flags() -> Result<()> {
    let program = Program::GateController.path()?;
    let understood = |arguments: Vec<String>| {
        let output = Command::new(&program)
            .args(arguments)
            .arg("--help")
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok::<_, anyhow::Error>((output.status.success(), said))
    };
    for values in [json!({}), every_option(), artifacts(&json!({}))] {
        assert_eq!(understood(arguments(values)?)?, (true, String::new()));
    }
    let typo = json!({"controller": {"extraArgs": ["--concurent=8"]}});
    assert!(!understood(arguments(typo)?)?.0);
    Ok(())
}

#[test]
fn a_digest_beats_the_tag() -> Result<()> {
    let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
    let image = json!({"repository": "example.com/gate", "tag": "1", "digest": digest});
    let deployment: Deployment = find(&render(json!({ "image": image }))?, "Deployment")?;
    let pod = deployment.spec.template.spec.context("no pod")?;
    let expected = format!("example.com/gate@{digest}");
    assert_eq!(pod.containers[0].image, Some(expected));
    Ok(())
}

/// A controller that watches one namespace has rights in no other.
#[test]
fn one_namespace_watched_is_one_namespace_granted() -> Result<()> {
    let documents = render(json!({"controller": {"watchAllNamespaces": false}}))?;
    let everywhere: ClusterRole = find(&documents, "ClusterRole")?;
    let here: Role = find(&documents, "Role")?;
    let groups = |rules: Option<Vec<k8s_openapi::api::rbac::v1::PolicyRule>>| -> Vec<String> {
        let rules = rules.into_iter().flatten();
        rules.filter_map(|rule| rule.api_groups).flatten().collect()
    };
    // None of it is in a namespace: nor are gate policies, and the namespaces that they choose.
    assert_eq!(
        groups(everywhere.rules),
        [
            "admissionregistration.k8s.io",
            "authorization.k8s.io",
            "sluice.dev",
            ""
        ]
    );
    let here = groups(here.rules);
    for group in [
        "coordination.k8s.io",
        "sluice.dev",
        "",
        "events.k8s.io",
        "apps",
    ] {
        assert!(
            here.iter().any(|found| found == group),
            "{group:?} is missing in {here:?}"
        );
    }
    Ok(())
}

/// Kinds are added to those of the chart, or take their place.
#[test]
fn which_kinds_are_read_is_a_choice() -> Result<()> {
    let read = |objects: Value| -> Result<Vec<String>> {
        let role: ClusterRole = find(&render(json!({ "objects": objects }))?, "ClusterRole")?;
        let rules = role.rules.into_iter().flatten();
        Ok(rules.filter_map(|rule| rule.resources).flatten().collect())
    };
    let certificates = json!([{"apiGroups": ["cert-manager.io"], "resources": ["certificates"]}]);
    let has = |kinds: &[String], kind: &str| kinds.iter().any(|found| found == kind);
    let added = read(json!({ "extraRules": certificates }))?;
    assert!(
        has(&added, "certificates") && has(&added, "deployments"),
        "{added:?}"
    );
    let replaced = read(json!({ "rules": certificates }))?;
    assert!(
        has(&replaced, "certificates") && !has(&replaced, "deployments"),
        "{replaced:?}"
    );
    let none = read(json!({ "rules": [] }))?;
    assert!(!has(&none, "pods") && has(&none, "gates"), "{none:?}");
    Ok(())
}

/// Ports and peers at which evidence is asked for are opened, and no others.
#[test]
fn whom_evidence_is_asked_of_is_a_choice() -> Result<()> {
    let egress = |evidence: Value| -> Result<Vec<Value>> {
        let values = json!({"networkPolicy": {"evidence": evidence}});
        let policy: NetworkPolicy = find(&render(values)?, "NetworkPolicy")?;
        let rules = policy.spec.and_then(|spec| spec.egress);
        // Before it: names, and the API server.
        let rules = rules.into_iter().flatten().skip(2);
        Ok(rules.map(|rule| json!(rule)).collect())
    };
    let port = |port: u16| json!({"port": port, "protocol": "TCP"});
    let usual = json!({"ports": [port(443), port(9090)]});
    assert_eq!(egress(json!({}))?, [usual]);
    let peers = json!([{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]);
    let narrow = json!({"ports": [port(9090)], "to": peers});
    assert_eq!(egress(json!({"ports": [9090], "to": peers}))?, [narrow]);
    assert_eq!(egress(json!({"ports": []}))?, [Value::Null; 0]);
    Ok(())
}

/// Where events go, and that the way there is open: only if they go anywhere.
#[test]
fn events_are_told_to_flux_when_an_address_is_given() -> Result<()> {
    let address = "http://notification-controller.flux-system.svc.cluster.local./";
    let egress = |values: Value| -> Result<Vec<Value>> {
        let policy: NetworkPolicy = find(&render(values)?, "NetworkPolicy")?;
        let rules = policy.spec.and_then(|spec| spec.egress);
        // Before it: names, the API server, and evidence.
        let rules = rules.into_iter().flatten().skip(3);
        Ok(rules.map(|rule| json!(rule)).collect())
    };
    assert_eq!(egress(json!({}))?, [Value::Null; 0]);
    let peers = json!([{"namespaceSelector": {"matchLabels": {"name": "flux-system"}}}]);
    let told = json!({"events": {"addr": address}, "networkPolicy": {"events": {"to": peers}}});
    let port = json!({"port": 9090, "protocol": "TCP"});
    assert_eq!(
        egress(told.clone())?,
        [json!({"ports": [port], "to": peers})]
    );
    let flag = format!("--events-addr={address}");
    assert!(arguments(told)?.contains(&flag));
    Ok(())
}

/// Anyone who asks reaches a port that is served, and the certificate is where the flags say.
#[test]
fn those_who_ask_are_answered_when_it_is_switched_on() -> Result<()> {
    let check = json!({
        "check": {"enabled": true, "tls": {"secretName": "gates-tls"}, "from": [{"podSelector": {}}]},
        "audit": {
            "path": "/var/log/sluice/audit.log",
            "volume": {"persistentVolumeClaim": {"claimName": "audit"}},
        },
    });
    let documents = render(check)?;
    let service: Service = find(&documents, "Service")?;
    let port = &service.spec.context("no spec")?.ports.context("no ports")?[0];
    assert_eq!((port.name.as_deref(), port.port), (Some("https"), 443));
    assert_eq!(
        port.target_port,
        Some(IntOrString::String("check".to_owned()))
    );
    let deployment: Deployment = find(&documents, "Deployment")?;
    let pod = deployment.spec.template.spec.context("no pod")?;
    let container = &pod.containers[0];
    let served = container.ports.iter().flatten();
    let served = served.filter(|port| port.name.as_deref() == Some("check"));
    assert_eq!(
        served.map(|port| port.container_port).collect::<Vec<_>>(),
        [8443]
    );
    let mounts = container.volume_mounts.iter().flatten();
    let mounts: Vec<_> = mounts
        .map(|it| (it.name.as_str(), it.mount_path.as_str()))
        .collect();
    assert_eq!(
        mounts,
        [
            ("check-tls", "/etc/sluice/check"),
            ("audit", "/var/log/sluice")
        ]
    );
    let volumes: Vec<_> = pod.volumes.iter().flatten().collect();
    let secret = volumes[0]
        .secret
        .as_ref()
        .and_then(|secret| secret.secret_name.as_deref());
    assert_eq!(secret, Some("gates-tls"));
    assert!(volumes[1].persistent_volume_claim.is_some());
    let policy: NetworkPolicy = find(&documents, "NetworkPolicy")?;
    let ingress = policy.spec.context("no spec")?.ingress.unwrap_or_default();
    assert!(ingress[2].from.as_ref().is_some_and(|from| from.len() == 1));
    let delegates = |documents: &[Document]| {
        let mut all = documents
            .iter()
            .map(|document| &document.object.data["roleRef"]["name"]);
        all.any(|role| role == "system:auth-delegator")
    };
    assert!(delegates(&documents));
    assert!(!delegates(&render(json!({}))?));
    Ok(())
}

#[test]
fn what_is_switched_off_is_not_rendered() -> Result<()> {
    let off = json!({
        "policies": {"install": false},
        "crds": {"install": false},
        "rbac": {"create": false, "aggregate": false},
        "metrics": {"service": {"enabled": false}},
        "networkPolicy": {"enabled": false},
    });
    let kinds: Vec<_> = render(off)?
        .into_iter()
        .filter_map(|document| Some(document.object.types?.kind))
        .collect();
    assert_eq!(kinds, ["ServiceAccount", "Deployment"]);
    Ok(())
}

/// As the controller names it, so that its rights are on no other.
#[test]
fn rights_are_on_the_lease_of_the_shard_alone() -> Result<()> {
    let leases = |controller: Value| -> Result<Vec<(Vec<String>, Vec<String>)>> {
        let role: Role = find(&render(json!({"controller": controller}))?, "Role")?;
        let rules = role.rules.into_iter().flatten();
        let rules = rules.filter(|rule| rule.resources.iter().flatten().any(|it| it == "leases"));
        Ok(rules
            .map(|rule| (rule.resource_names.unwrap_or_default(), rule.verbs))
            .collect())
    };
    let shard = "sharding.fluxcd.io/key=shard1";
    for (controller, name) in [
        (json!({}), "gate-controller"),
        (
            json!({"watchLabelSelector": shard}),
            "gate-controller-73fdc1be",
        ),
    ] {
        let expected = [
            (vec![], vec!["create".to_owned()]),
            (
                vec![name.to_owned()],
                vec!["get".to_owned(), "update".to_owned()],
            ),
        ];
        assert_eq!(leases(controller)?, expected);
    }
    assert_eq!(leases(json!({"leaderElection": false}))?, []);
    Ok(())
}
