//! What somebody runs, and what is admitted at once so that it goes on running.

use kube::ResourceExt;
use sluice_crds::flux::FluxObject;
use sluice_crds::gated_source::{Baseline, Consumer as Runs, ConsumerKind, SourceKind};

use super::used::Used;
use crate::cluster::Consumer;

/// What somebody runs.
pub(super) fn runs(consumer: &Consumer) -> Option<&str> {
    let status = &consumer.object.status;
    match consumer.kind {
        ConsumerKind::Kustomization => status.last_applied_revision.as_deref(),
        ConsumerKind::HelmRelease => {
            let deployed = |it: &&_| is_deployed(it);
            let release = status.history.iter().find(deployed)?;
            Some(&release.chart_version)
        }
    }
}

fn is_deployed(release: &sluice_crds::flux::Release) -> bool {
    release.status.as_deref() == Some("deployed")
}

/// Whether what somebody runs is told in the words of the source: a HelmRelease knows the version of
/// a chart alone.
pub(super) fn tells(consumer: &Consumer, kind: SourceKind) -> bool {
    consumer.kind == ConsumerKind::Kustomization || kind == SourceKind::HelmChart
}

/// What a GatedSource admits at once so that `consumer` goes on as it is, and what there is to say of
/// it.
pub(super) fn baseline(
    consumer: &Consumer,
    used: &Used,
    upstream: &FluxObject,
    kind: SourceKind,
) -> (Option<Baseline>, Vec<String>) {
    let who = consumer.called();
    let mut notes = Vec::new();
    if upstream.spec.get("type") == Some(&"oci".into()) {
        notes.push(format!(
            "the charts of {} can be moved under their versions; an OCIRepository with chartRef is \
             pinned by digest",
            used.called()
        ));
    }
    if runs(consumer).is_none() {
        notes.push(format!(
            "{who} has applied nothing yet, so the first revision has to pass the gates, too"
        ));
        return (None, notes);
    }
    if tells(consumer, kind) {
        let from = Runs {
            kind: consumer.kind,
            name: consumer.object.name_any(),
            namespace: None,
        };
        let baseline = Baseline {
            from: Some(from),
            revision: None,
        };
        return (Some(baseline), notes);
    }
    let revision = upstream.status.artifact.as_ref();
    let revision = revision.map(|artifact| artifact.revision.clone());
    notes.push(match &revision {
        Some(revision) => format!(
            "{who} does not say which revision it runs; {revision}, which {} serves now, is taken \
             for it",
            used.called()
        ),
        None => format!(
            "{} serves nothing, so nothing is admitted at once",
            used.called()
        ),
    });
    let baseline = revision.map(|revision| Baseline {
        from: None,
        revision: Some(revision),
    });
    (baseline, notes)
}
