//! Whether Flux is there, for gated sources: gates work without it.

use std::collections::BTreeSet;

use anyhow::anyhow;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use kube::api::ListParams;
use sluice_crds::GatedSource;
use sluice_crds::flux::FluxKind;
use sluice_crds::gated_source::{ConsumerKind, Strategy};

use super::finding::Finding;
use crate::cluster::{self, Connection};
use crate::output::count;

const PART: &str = "Flux";
/// What Flux labels its own objects with.
const FLUX: &str = "app.kubernetes.io/part-of=flux";

pub(super) async fn examine(connection: &Connection) -> Vec<Finding> {
    let mut served = BTreeSet::new();
    let versions: BTreeSet<String> = FluxKind::ALL.iter().map(|kind| version(*kind)).collect();
    for version in versions {
        match cluster::resources(connection, &version).await {
            Ok(resources) => served.extend(resources),
            Err(error) => return vec![Finding::unknown(PART, &error)],
        }
    }
    if served.is_empty() {
        return vec![without(connection).await];
    }
    let all = FluxKind::ALL.into_iter();
    let missing: Vec<FluxKind> = all.filter(|kind| !served.contains(kind.plural())).collect();
    // That they cannot be read is said of the kinds.
    let sources = cluster::served::<GatedSource>(connection, true, ListParams::default()).await;
    let mut findings = kinds(&missing, &sources.unwrap_or_default());
    findings.extend(controllers(connection).await);
    findings
}

fn version(kind: FluxKind) -> String {
    format!("{}/{}", kind.group(), kind.version())
}

/// Gated sources need it.
async fn without(connection: &Connection) -> Finding {
    match cluster::served::<GatedSource>(connection, true, ListParams::default()).await {
        Ok(sources) if !sources.is_empty() => Finding::failed(
            PART,
            format!(
                "it is not installed, and without it nothing goes out of {}",
                count(sources.len(), "gated source")
            ),
            "install Flux, whose sources they hold back: flux install",
        ),
        Ok(_) | Err(_) => {
            let found = "it is not installed; gates work without it, gated sources do not";
            Finding::ok(PART, found)
        }
    }
}

/// What is not served, each with what it is needed for. Not every Flux has every controller.
fn kinds(missing: &[FluxKind], sources: &[GatedSource]) -> Vec<Finding> {
    if missing.is_empty() {
        let found = "all of its kinds are served that take part";
        return vec![Finding::ok(PART, found)];
    }
    let stores = |source: &&GatedSource| source.spec.strategy == Strategy::Artifact;
    let storing = sources.iter().filter(stores).count();
    let one = |kind: &FluxKind| {
        let is_missing = format!("{} ({}) is not served", kind.as_str(), version(*kind));
        let found = |what: &str| format!("{is_missing}: {what}");
        match kind {
            FluxKind::Source(_) => Finding::failed(
                PART,
                found("no gated source can hold one back"),
                "install a Flux that serves it (2.7 or newer), with its source-controller",
            ),
            FluxKind::ExternalArtifact if storing > 0 => Finding::failed(
                PART,
                found(&format!(
                    "nothing goes out of {} with strategy: artifact",
                    count(storing, "gated source")
                )),
                "install a Flux that serves it (2.7 or newer)",
            ),
            FluxKind::ExternalArtifact => {
                let needed = "gated sources with strategy: artifact need it, and none is seen";
                Finding::ok(PART, found(needed))
            }
            FluxKind::Consumer(ConsumerKind::Kustomization) => {
                Finding::ok(PART, found("only HelmReleases can use what is let out"))
            }
            FluxKind::Consumer(ConsumerKind::HelmRelease) => {
                Finding::ok(PART, found("only Kustomizations can use what is let out"))
            }
        }
    };
    let mut findings: Vec<Finding> = missing.iter().map(one).collect();
    let is_consumer = |kind: &&FluxKind| matches!(kind, FluxKind::Consumer(_));
    if missing.iter().filter(is_consumer).count() == 2 {
        findings.truncate(findings.len() - 2);
        findings.push(Finding::failed(
            PART,
            "neither Kustomization nor HelmRelease is served: nothing can use what is let out",
            "install Flux with its kustomize-controller or its helm-controller",
        ));
    }
    findings
}

/// Whether its controllers run.
async fn controllers(connection: &Connection) -> Vec<Finding> {
    let page = ListParams::default().labels(FLUX);
    match cluster::list(&connection.all(), page).await {
        Ok(found) => running(&found),
        Err(error) => vec![Finding::unknown(PART, &error)],
    }
}

fn running(found: &[Deployment]) -> Vec<Finding> {
    if found.is_empty() {
        let error = anyhow!("its kinds are served, and no Deployment is labelled {FLUX}");
        let mut finding = Finding::unknown(PART, &error);
        finding.remedy = Some("see flux check".to_owned());
        return vec![finding];
    }
    let is_wanted = |it: &&Deployment| it.spec.replicas != Some(0);
    let is_ready = |it: &Deployment| {
        let status = it.status.as_ref();
        status.and_then(|it| it.ready_replicas).unwrap_or_default() > 0
    };
    let names = |ready: bool| -> Vec<String> {
        let wanted = found.iter().filter(is_wanted);
        let such = wanted.filter(|it| is_ready(it) == ready);
        such.map(|it| format!("{}/{}", it.namespace().unwrap_or_default(), it.name_any()))
            .collect()
    };
    let (running, silent) = (names(true), names(false));
    let mut findings = Vec::new();
    if !silent.is_empty() {
        let found = format!("no pod is ready of {}", silent.join(", "));
        let remedy = "see flux check, and their logs";
        findings.push(Finding::failed(PART, found, remedy));
    }
    if !running.is_empty() {
        findings.push(Finding::ok(PART, format!("{} run", running.join(", "))));
    }
    if findings.is_empty() {
        let found = "each of its Deployments is scaled to 0: nothing is fetched or applied";
        findings.push(Finding::failed(PART, found, "scale them up again"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::finding::Health;
    use super::*;

    const HELM: FluxKind = FluxKind::Consumer(ConsumerKind::HelmRelease);
    const KUSTOMIZE: FluxKind = FluxKind::Consumer(ConsumerKind::Kustomization);

    fn source(strategy: &str) -> GatedSource {
        let source = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "GatedSource",
            "metadata": {"name": "app", "namespace": "apps"},
            "spec": {
                "sourceRef": {"kind": "GitRepository", "name": "app"},
                "strategy": strategy,
                "gates": {"refs": [{"name": "production"}]},
            },
        });
        serde_json::from_value(source).unwrap()
    }

    fn told(findings: &[Finding]) -> Vec<(Health, &str)> {
        let each = findings.iter();
        each.map(|it| (it.health, it.found.as_str())).collect()
    }

    #[test]
    fn each_kind_that_is_missing_is_told_with_what_needs_it() {
        let helm = "HelmRelease (helm.toolkit.fluxcd.io/v2) is not served: only Kustomizations can \
                    use what is let out";
        assert_eq!(told(&kinds(&[HELM], &[])), [(Health::Ok, helm)]);
        let external = [FluxKind::ExternalArtifact];
        let unused = "ExternalArtifact (source.toolkit.fluxcd.io/v1) is not served: gated sources \
                      with strategy: artifact need it, and none is seen";
        assert_eq!(
            told(&kinds(&external, &[source("pin")])),
            [(Health::Ok, unused)]
        );
        let used = "ExternalArtifact (source.toolkit.fluxcd.io/v1) is not served: nothing goes out \
                    of 1 gated source with strategy: artifact";
        let sources = [source("pin"), source("artifact")];
        assert_eq!(told(&kinds(&external, &sources)), [(Health::Failed, used)]);
        let neither = kinds(&[FluxKind::ExternalArtifact, KUSTOMIZE, HELM], &[]);
        let expected = "neither Kustomization nor HelmRelease is served: nothing can use what is let \
                        out";
        assert_eq!(
            told(&neither),
            [(Health::Ok, unused), (Health::Failed, expected)]
        );
    }

    fn deployment(name: &str, wanted: i32, ready: i32) -> Deployment {
        let deployment = json!({
            "metadata": {"name": name, "namespace": "flux-system"},
            "spec": {"selector": {}, "template": {}, "replicas": wanted},
            "status": {"readyReplicas": ready},
        });
        serde_json::from_value(deployment).unwrap()
    }

    #[test]
    fn a_controller_that_nobody_wants_to_run_is_not_missed() {
        let (off, on) = (deployment("off", 0, 0), deployment("on", 1, 1));
        let found = running(&[off.clone(), on]);
        assert_eq!(told(&found), [(Health::Ok, "flux-system/on run")]);
        assert_eq!(running(&[off])[0].health, Health::Failed);
        let dead = running(&[deployment("dead", 1, 0)]);
        let expected = "no pod is ready of flux-system/dead";
        assert_eq!(told(&dead), [(Health::Failed, expected)]);
    }

    #[test]
    fn a_flux_without_its_labels_is_not_known() {
        assert_eq!(running(&[])[0].health, Health::Unknown);
    }
}
