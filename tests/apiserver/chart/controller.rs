//! The controller itself, under the account, with the rights and with the flags that the chart
//! gives it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use sluice_crds::{Gate, State};
use sluice_tests::helm::Release;
use sluice_tests::installation::start;
use sluice_tests::programs::Program;
use sluice_tests::{Applier, Cluster, DEADLINE, Writes, poll};

use super::CONTROLLER;
use crate::answers::Server;
use crate::kinds::{kept, secret};

/// A flag's end, instead of the pod's own ports.
const NOWHERE: &str = "-addr=127.0.0.1:0";

/// A gate that is decided from all that the controller reads: gatekeepers, a calendar whose one
/// event is long over, and a workload that a service account may read.
const OBJECTS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: holidays}
data:
  uk.ics: \"BEGIN:VCALENDAR\\r\\nVERSION:2.0\\r\\nPRODID:test\\r\\nBEGIN:VEVENT\\r\\nUID:1\\r\\n\\
    DTSTAMP:20200101T000000Z\\r\\nDTSTART;VALUE=DATE:20200101\\r\\nSUMMARY:New Year\\r\\n\\
    END:VEVENT\\r\\nEND:VCALENDAR\\r\\n\"
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: holidays}
spec:
  schedule: {closed: [{name: holidays, calendar: {configMapRef: {name: holidays, key: uk.ics}}}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [batch], resources: [cronjobs], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: 0 0 1 1 *
  suspend: true
  jobTemplate:
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: report, image: example.com/report}]}}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: health}
spec:
  objects:
    serviceAccountName: reader
    of: [{apiVersion: batch/v1, kind: CronJob, name: report, expression: object.spec.suspend}]
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: production}
spec: {gatekeepers: [{name: holidays}, {name: health}]}
";

#[tokio::test]
async fn it_can_do_all_it_has_to() -> Result<()> {
    let release = Release {
        values: json!({
            "controller": {"egressAllow": ["127.0.0.0/8"]},
            "evidence": {"secrets": [{"namespace": "default", "names": ["prometheus"]}]},
        }),
        ..Release::default()
    };
    let (plane, applied) = start(&release, "").await?;
    let cluster = plane.cluster();
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("log");
    let kubeconfig = cluster.kubeconfig_for(CONTROLLER)?;
    let _controller = run(&applied, &kubeconfig, &log)?;
    it_decides_and_completes(cluster)
        .await
        .with_context(|| fs::read_to_string(&log).unwrap_or_default())?;
    it_asks_with_a_secret(cluster)
        .await
        .with_context(|| fs::read_to_string(&log).unwrap_or_default())?;
    it_told_and_led(cluster).await?;
    let log = fs::read_to_string(&log)?;
    assert!(!log.contains("\"level\":\"ERROR\""), "{log}");
    assert!(log.contains("\"identity\":\"Verified\""), "{log}");
    Ok(())
}

/// Starts the controller with the flags of the Deployment, but for the ports.
fn run(applied: &[DynamicObject], kubeconfig: &Path, log: &Path) -> Result<Child> {
    let is_deployment = |object: &&DynamicObject| {
        object
            .types
            .as_ref()
            .is_some_and(|types| types.kind == "Deployment")
    };
    let found = applied
        .iter()
        .find(is_deployment)
        .context("no Deployment")?;
    let deployment: Deployment = found.clone().try_parse()?;
    let pod = deployment.spec.template.spec.context("no pod")?;
    let flags = pod.containers[0].args.iter().flatten();
    let here = |flag: &String| {
        flag.replace("-addr=:8080", NOWHERE)
            .replace("-addr=:9440", NOWHERE)
    };
    // Its standard input is held open for as long as the child is: see the script.
    let child = Command::new("sh")
        .args([
            "-c",
            include_str!("../../support/control_plane/supervise.sh"),
            "sh",
        ])
        .arg(log)
        .arg(Program::GateController.path()?)
        .args(flags.map(here))
        .env("KUBECONFIG", kubeconfig)
        .env("RUNTIME_NAMESPACE", "sluice-system")
        .env("POD_NAME", "gate-controller-0")
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(child)
}

/// With the one that the release lists, of what answers as Prometheus does.
async fn it_asks_with_a_secret(cluster: &Cluster) -> Result<()> {
    let one = r#"{"status": "success", "data": {"resultType": "scalar", "result": [1, "1"]}}"#;
    let server = Server::start(one).await?;
    let keys = json!({"ca.crt": server.authority, "token": "t0ken"});
    let metric = json!({"metric": {
        "address": server.url(""), "query": "up", "range": {"min": 1},
        "secretRef": {"name": "prometheus"}, "certSecretRef": {"name": "prometheus"},
    }});
    let client = cluster.client().await?;
    let objects = secret("prometheus", &keys) + &kept("measured", &metric);
    Applier::new(client.clone()).text(&objects).await?;
    let gates: Api<Gate> = Api::default_namespaced(client);
    poll(DEADLINE, "the gate to be open", async || {
        let status = gates.get("measured").await?.status.context("no status")?;
        ensure!(status.state == Some(State::Open), "{status:?}");
        Ok(())
    })
    .await?;
    assert_eq!(server.authorization().as_deref(), Some("Bearer t0ken"));
    Ok(())
}

async fn it_decides_and_completes(cluster: &Cluster) -> Result<()> {
    let client = cluster.client().await?;
    Applier::new(client.clone()).text(OBJECTS).await?;
    let gates: Api<Gate> = Api::default_namespaced(client);
    poll(DEADLINE, "the gate to be open", async || {
        let status = gates.get("production").await?.status.context("no status")?;
        ensure!(status.state == Some(State::Open), "{status:?}");
        Ok(())
    })
    .await?;
    let force = json!({"metadata": {"annotations": {
        "sluice.dev/force": "closed",
        "sluice.dev/force-by": "admin",
        "sluice.dev/force-reason": "incident 4711",
    }}});
    gates.merge("production", force).await?;
    poll(
        DEADLINE,
        "the force to be in effect and complete",
        async || {
            let gate = gates.get("production").await?;
            let annotations = gate.annotations();
            ensure!(
                annotations.contains_key("sluice.dev/force-until"),
                "{annotations:?}"
            );
            let status = gate.status.context("no status")?;
            let by = status.r#override.as_ref().map(|force| force.by.as_str());
            ensure!(
                status.state == Some(State::Closed) && by == Some("admin"),
                "{status:?}"
            );
            Ok(())
        },
    )
    .await
}

async fn it_told_and_led(cluster: &Cluster) -> Result<()> {
    let client = cluster.client().await?;
    let events: Api<Event> = Api::default_namespaced(client.clone());
    poll(DEADLINE, "an event about the gate", async || {
        let events = events.list(&ListParams::default()).await?.items;
        let about: Vec<_> = events
            .iter()
            .filter_map(|event| event.regarding.as_ref()?.kind.clone())
            .collect();
        ensure!(about.iter().any(|kind| kind == "Gate"), "{about:?}");
        Ok(())
    })
    .await?;
    let leases: Api<Lease> = Api::namespaced(client, "sluice-system");
    let leases = leases.list(&ListParams::default()).await?.items;
    let holders: Vec<_> = leases
        .into_iter()
        .filter_map(|lease| lease.spec?.holder_identity)
        .collect();
    assert!(
        holders
            .iter()
            .any(|holder| holder.starts_with("gate-controller-0")),
        "{holders:?}"
    );
    Ok(())
}
