//! What Prometheus reads of gatekeepers.

use std::fmt::Error;
use std::sync::Arc;

use prometheus_client::encoding::DescriptorEncoder;
use sluice_core::Reason;
use sluice_crds::Gatekeeper;

use super::sample::{Sample, family, truth};

/// Writes every gauge of these gatekeepers: a family a kind of value. What was `measured` is not read
/// from statuses, which are not written for it.
pub(super) fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    gatekeepers: &[Arc<Gatekeeper>],
    measured: impl Fn(&Gatekeeper) -> Option<f64>,
) -> Result<(), Error> {
    family(
        encoder,
        "sluice_gatekeeper_evidence",
        "1 while the gatekeeper is judged by evidence, 0 while that is unavailable",
        gatekeepers.iter().filter_map(|gatekeeper| {
            let has = has_evidence(gatekeeper)?;
            Some(Sample::of(gatekeeper.as_ref(), truth(has)))
        }),
    )?;
    family(
        encoder,
        "sluice_gatekeeper_value",
        "The value that a metric gatekeeper last measured, in the unit of its query",
        gatekeepers
            .iter()
            .filter_map(|gatekeeper| Some(Sample::of(gatekeeper.as_ref(), measured(gatekeeper)?))),
    )
}

/// Whether its status speaks of evidence that is had. None: it has not been judged yet.
fn has_evidence(gatekeeper: &Gatekeeper) -> Option<bool> {
    let verdict = gatekeeper.status.as_ref()?.verdict.as_ref()?;
    Some(!Reason::of(&verdict.reason).is_some_and(Reason::is_without_evidence))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::sample::tests::page;
    use super::*;

    #[test]
    fn evidence_is_had_unless_the_status_says_otherwise() {
        let gatekeeper = |reason: Option<&str>| {
            let status =
                reason.map(|reason| json!({"state": "Closed", "reason": reason, "message": "m"}));
            let gatekeeper = json!({
                "apiVersion": "sluice.dev/v1alpha1",
                "kind": "Gatekeeper",
                "metadata": {"namespace": "apps", "name": reason.unwrap_or("unjudged")},
                "spec": {},
                "status": status,
            });
            Arc::new(serde_json::from_value(gatekeeper).unwrap())
        };
        let gatekeepers = [
            Some("ClosedWindow"),
            Some("EvidenceBroken"),
            Some("EvidenceUnavailable"),
            Some("Expired"),
            Some("InvalidSpec"),
            Some("NotObserved"),
            None,
        ]
        .map(gatekeeper);
        let lines = page("sluice_gatekeeper_evidence", move |encoder| {
            encode(encoder, &gatekeepers, |_| None)
        });
        assert_eq!(
            lines,
            [
                r#"{namespace="apps",name="ClosedWindow"} 1.0"#,
                r#"{namespace="apps",name="EvidenceBroken"} 0.0"#,
                r#"{namespace="apps",name="EvidenceUnavailable"} 0.0"#,
                r#"{namespace="apps",name="Expired"} 0.0"#,
                r#"{namespace="apps",name="InvalidSpec"} 1.0"#,
                r#"{namespace="apps",name="NotObserved"} 0.0"#,
            ]
        );
    }
    #[test]
    fn what_was_measured_is_told_as_it_is() {
        let gatekeepers = ["errors", "latency", "unknown"].map(|name| {
            let gatekeeper = json!({
                "apiVersion": "sluice.dev/v1alpha1",
                "kind": "Gatekeeper",
                "metadata": {"namespace": "apps", "name": name},
                "spec": {},
            });
            Arc::new(serde_json::from_value(gatekeeper).unwrap())
        });
        let measured = |gatekeeper: &Gatekeeper| match gatekeeper.metadata.name.as_deref() {
            Some("errors") => Some(0.02),
            Some("latency") => Some(1.5e3),
            _ => None,
        };
        let lines = page("sluice_gatekeeper_value", move |encoder| {
            encode(encoder, &gatekeepers, measured)
        });
        assert_eq!(
            lines,
            [
                r#"{namespace="apps",name="errors"} 0.02"#,
                r#"{namespace="apps",name="latency"} 1500.0"#,
            ]
        );
    }
}
