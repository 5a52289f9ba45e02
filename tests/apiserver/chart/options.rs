//! The chart with every option on, on a server of its own.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};
use sluice_crds::{Gate, GateSpec};
use sluice_tests::helm::Release;
use sluice_tests::installation::start;
use sluice_tests::{Cluster, DEADLINE, Writes, poll};

/// Kinds of the Prometheus operator and of cert-manager, as much of them as is needed to store one.
const KINDS: [(&str, &str); 3] = [
    ("monitoring.coreos.com", "PodMonitor"),
    ("monitoring.coreos.com", "PrometheusRule"),
    ("cert-manager.io", "Certificate"),
];

/// The namespace that has what evidence is asked for with.
const TEAM: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: Secret
metadata: {name: calendar-ca, namespace: team}
stringData: {ca.crt: nobody}
---
apiVersion: v1
kind: Secret
metadata: {name: prometheus, namespace: team}
stringData: {token: t0ken}
---
apiVersion: v1
kind: Secret
metadata: {name: git-token, namespace: team}
stringData: {token: t0ken}
---
apiVersion: v1
kind: Secret
metadata: {name: prod-kubeconfig, namespace: team}
stringData: {value: nothing}
---
apiVersion: v1
kind: Secret
metadata: {name: other, namespace: team}
stringData: {password: secret}
";

/// What has to be there before.
fn before() -> String {
    let definition = |(group, kind): (&str, &str)| {
        let singular = kind.to_lowercase();
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{singular}s.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"kind": kind, "plural": format!("{singular}s"), "singular": singular},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema},
                }],
            },
        });
        format!("{definition}\n---\n")
    };
    KINDS.map(definition).concat() + TEAM
}

/// A name that would break a template that pastes it into an expression.
const ODD_NAME: &str = "o'hara \"<\\>\"";

/// Every value that differs from its default.
pub fn every_option() -> Value {
    json!({
        "replicas": 2,
        "image": {"repository": "example.com/gate-controller", "tag": "1.2.3",
            "pullPolicy": "Always", "pullSecrets": [{"name": "pull"}]},
        "controller": {
            "logEncoding": "console", "logLevel": "debug", "concurrent": 8,
            "watchLabelSelector": "sharding.fluxcd.io/key in (a, b)", "crossNamespaceRefs": false,
            "minRetryDelay": "1s", "maxRetryDelay": "1h30m",
            "egressAllow": ["10.0.0.0/8", "fd00::/8"], "trustUnverifiedIdentity": true,
            "egressOnly": ["prometheus.monitoring.svc", "*.example.com", "10.0.0.0/8", "10.1.2.3"],
        },
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        "controllerUsernames": ["demo", ODD_NAME],
        "policies": {"extraStatusWriters": ["backup"], "fluxControllers": ["flux", ODD_NAME]},
        "serviceAccount": {"name": "sluice", "annotations": {"example.com/a": "b"}},
        "check": {
            "enabled": true, "port": 8444, "audiences": ["sluice", "ci"], "rate": 50, "burst": 200,
            "tls": {"certManager": {"enabled": true, "dnsNames": ["gates.example.com"],
                "issuerRef": {"kind": "ClusterIssuer", "name": "cluster-ca"}}},
            "flaggerWithoutToken": true,
            "service": {"port": 8443, "annotations": {"example.com/a": "b"}},
            "from": [{"namespaceSelector": {"matchLabels": {"name": "ci"}}}],
        },
        "webhook": {"enabled": true, "port": 9393,
            "service": {"port": 8080, "annotations": {"example.com/a": "b"}},
            "from": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}]},
        "audit": {"path": "/var/log/sluice/$(POD_NAME).log", "required": true,
            "volume": {"persistentVolumeClaim": {"claimName": "audit"}}},
        "events": {"addr": "http://notification-controller.flux-system.svc.cluster.local./"},
        "objects": {"extraRules": [
            {"apiGroups": ["cert-manager.io"], "resources": ["certificates"]}]},
        "evidence": {"secrets": [{"namespace": "team", "names": ["calendar-ca", "prometheus"]}]},
        "pipelines": {
            "kinds": [{"apiGroups": ["infra.contrib.fluxcd.io"], "resources": ["terraforms"]}],
            "secrets": [
                {"namespace": "team", "names": ["git-token"], "for": "forge"},
                {"namespace": "team", "names": ["prod-kubeconfig"], "for": "kubeconfig"},
            ],
        },
        "rollouts": {"enabled": true, "serviceAccountNames": ["deployer"]},
        "forges": {"secrets": [{"namespace": "team", "names": ["shop-push"]}]},
        "metrics": {"service": {"port": 9090},
            "podMonitor": {"enabled": true, "scrapeTimeout": "5s", "labels": {"release": "prometheus"}}},
        "alerts": {"enabled": true, "labels": {"release": "prometheus"},
            "alertLabels": {"team": "platform"}, "disabled": ["SluiceBlocked"],
            "runbooks": "https://example.com/alerts", "thresholds": {"forcedFor": "8h"}},
        "dashboard": {"enabled": true, "namespace": "team",
            "annotations": {"grafana_folder": "GitOps"}},
        "networkPolicy": {
            "metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
            "apiServer": {"ports": [6443], "cidrs": ["10.0.0.1/32"]},
            "evidence": {"ports": [9090], "to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]},
            "pipelines": {"ports": [8443], "to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]},
            "events": {"ports": [9091], "to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]},
            "extraEgress": [{"ports": [{"port": 3128, "protocol": "TCP"}]}],
        },
        "podDisruptionBudget": {"enabled": true},
        "topologySpread": {"whenUnsatisfiable": "DoNotSchedule"},
        "priorityClassName": "system-cluster-critical",
        "podLabels": {"team": "platform"},
        "podAnnotations": {"example.com/a": "b"},
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
    })
}

#[tokio::test]
async fn every_option_is_accepted_and_means_what_it_says() -> Result<()> {
    let release = Release {
        name: "second".to_owned(),
        namespace: "sluice-two".to_owned(),
        values: every_option(),
    };
    let (plane, applied) = start(&release, &before()).await?;
    let cluster = plane.cluster();
    the_flags_are_given(&applied)?;
    only_named_secrets_can_be_read(cluster).await?;
    named_users_count_as_the_controller(cluster).await
}

fn the_flags_are_given(applied: &[DynamicObject]) -> Result<()> {
    let has_kind = |object: &&DynamicObject, kind| {
        object
            .types
            .as_ref()
            .is_some_and(|types| types.kind == kind)
    };
    for kind in [
        "PodMonitor",
        "PrometheusRule",
        "ConfigMap",
        "PodDisruptionBudget",
        "NetworkPolicy",
        "Certificate",
    ] {
        applied
            .iter()
            .find(|object| has_kind(object, kind))
            .context(kind)?;
    }
    let found = applied.iter().find(|object| has_kind(object, "Deployment"));
    let deployment: Deployment = found.context("no Deployment")?.clone().try_parse()?;
    let pod = deployment.spec.template.spec.context("no pod")?;
    let expected = [
        "--metrics-addr=:8080",
        "--health-addr=:9440",
        "--log-encoding=console",
        "--log-level=debug",
        "--watch-all-namespaces=true",
        "--watch-label-selector=sharding.fluxcd.io/key in (a, b)",
        "--no-cross-namespace-refs",
        "--enable-leader-election",
        "--concurrent=8",
        "--min-retry-delay=1s",
        "--max-retry-delay=1h30m",
        "--egress-allow=10.0.0.0/8",
        "--egress-allow=fd00::/8",
        "--egress-only=prometheus.monitoring.svc",
        "--egress-only=*.example.com",
        "--egress-only=10.0.0.0/8",
        "--egress-only=10.1.2.3",
        "--trust-unverified-identity",
        "--events-addr=http://notification-controller.flux-system.svc.cluster.local./",
        "--check-addr=:8444",
        "--tls-cert-file=/etc/sluice/check/tls.crt",
        "--tls-key-file=/etc/sluice/check/tls.key",
        "--check-audience=sluice",
        "--check-audience=ci",
        "--check-rate=50",
        "--check-burst=200",
        "--flagger-without-token",
        "--webhook-addr=:9393",
        "--audit-log=/var/log/sluice/$(POD_NAME).log",
        "--audit-required",
    ];
    assert_eq!(
        pod.containers[0].args.as_deref(),
        Some(&expected.map(str::to_owned)[..])
    );
    Ok(())
}

async fn only_named_secrets_can_be_read(cluster: &Cluster) -> Result<()> {
    let client = cluster
        .client_for("system:serviceaccount:sluice-two:sluice")
        .await?;
    let secrets: Api<Secret> = Api::namespaced(client, "team");
    secrets.get("calendar-ca").await?;
    secrets.get("prometheus").await?;
    assert!(secrets.get("other").await.is_err());
    // A token is read when it is needed; a kubeconfig is followed by its name.
    let named = |name: &str| ListParams::default().fields(&format!("metadata.name={name}"));
    secrets.get("git-token").await?;
    secrets.list(&named("prod-kubeconfig")).await?;
    for name in ["git-token", "prometheus", "other"] {
        assert!(secrets.list(&named(name)).await.is_err(), "{name}");
    }
    assert!(secrets.list(&ListParams::default()).await.is_err());
    Ok(())
}

async fn named_users_count_as_the_controller(cluster: &Cluster) -> Result<()> {
    let admin: Api<Gate> = Api::namespaced(cluster.client().await?, "team");
    let gate = Gate::new("production", GateSpec::default());
    admin.add(&gate).await?;
    let seen = |at: &str| json!({"metadata": {"annotations": {"sluice.dev/force-seen": at}}});
    let report = json!({"status": {"state": "Closed"}});
    for user in ["demo", ODD_NAME] {
        let gates: Api<Gate> = Api::namespaced(cluster.client_for(user).await?, "team");
        gates.merge("production", seen(user)).await?;
        gates.merge_status("production", &report).await?;
    }
    // A writer of status has no rights from the chart, and is not the controller.
    let mut backup = cluster.client_for("backup").await?;
    let gates: Api<Gate> = Api::namespaced(backup.clone(), "team");
    assert!(gates.merge_status("production", &report).await.is_err());
    grant_everything(cluster, "backup").await?;
    backup = cluster.client_for("backup").await?;
    let gates: Api<Gate> = Api::namespaced(backup, "team");
    poll(DEADLINE, "the binding to be in effect", async || {
        gates.merge_status("production", &report).await
    })
    .await?;
    let refused = gates.merge("production", seen("backup")).await;
    assert!(refused.is_err());
    Ok(())
}

async fn grant_everything(cluster: &Cluster, user: &str) -> Result<()> {
    let yaml = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\n\
         metadata: {{name: {user}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}\n\
         subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {user}}}]\n"
    );
    sluice_tests::Applier::new(cluster.client().await?)
        .text(&yaml)
        .await?;
    Ok(())
}
