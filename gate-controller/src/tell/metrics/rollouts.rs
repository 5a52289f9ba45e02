//! What Prometheus reads of Rollouts: what their statuses say.

use std::fmt::Error;
use std::sync::Arc;

use prometheus_client::encoding::DescriptorEncoder;
use sluice_crds::Rollout;

use super::sample::{Sample, family, seconds};

/// Writes every gauge of these. Of states and reasons only the present ones.
pub(super) fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    rollouts: &[Arc<Rollout>],
) -> Result<(), Error> {
    family(
        encoder,
        "sluice_rollout_state",
        "1 for the state that a rollout is in",
        rollouts.iter().filter_map(|rollout| {
            let state = rollout.status.as_ref()?.rolling_state?;
            Some(Sample::of(rollout.as_ref(), 1.0).with("state", state.as_str()))
        }),
    )?;
    family(
        encoder,
        "sluice_rollout_held_since_timestamp_seconds",
        "Since when a rollout is held, and for which reason",
        rollouts.iter().filter_map(|rollout| {
            let held = rollout.status.as_ref()?.held.as_ref()?;
            let sample = Sample::of(rollout.as_ref(), seconds(held.since.0));
            Some(sample.with("reason", &held.reason))
        }),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::sample::tests::page;
    use super::*;

    /// Every line of a metric that three Rollouts lead to.
    fn lines(metric: &str) -> Vec<String> {
        let rollout = |name: &str, status: &Value| -> Arc<Rollout> {
            let rollout = json!({
                "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout",
                "metadata": {"namespace": "apps", "name": name},
                "spec": {"targetRef": {"kind": "Deployment", "name": name}, "rolloutPlan": {}},
                "status": status,
            });
            Arc::new(serde_json::from_value(rollout).unwrap())
        };
        let held = json!({"reason": "LastBatch", "message": "m", "since": "1970-01-01T00:01:00Z"});
        let rollouts = [
            rollout("new", &Value::Null),
            rollout("out", &json!({"rollingState": "rolloutSucceed"})),
            rollout(
                "web",
                &json!({"rollingState": "rollingInBatches", "held": held}),
            ),
        ];
        page(metric, move |encoder| encode(encoder, &rollouts))
    }

    #[test]
    fn statuses_are_told_as_they_are() {
        assert_eq!(
            lines("sluice_rollout_state"),
            [
                r#"{namespace="apps",name="out",state="rolloutSucceed"} 1.0"#,
                r#"{namespace="apps",name="web",state="rollingInBatches"} 1.0"#,
            ]
        );
        assert_eq!(
            lines("sluice_rollout_held_since_timestamp_seconds"),
            [r#"{namespace="apps",name="web",reason="LastBatch"} 60.0"#]
        );
    }
}
