//! What Prometheus reads of gate policies: what their statuses say.

use std::fmt::Error;
use std::sync::Arc;

use prometheus_client::encoding::DescriptorEncoder;
use sluice_core::verdict::condition::{READY, find};
use sluice_crds::GatePolicy;

use super::sample::{Sample, family, truth};

/// Writes every gauge of these policies.
pub(super) fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    policies: &[Arc<GatePolicy>],
) -> Result<(), Error> {
    family(
        encoder,
        "sluice_gate_policy_ready",
        "1 while every gate that the policy names is there, 0 while one is not",
        policies.iter().filter_map(|policy| {
            let ready = is_ready(policy)?;
            Some(Sample::of(policy.as_ref(), truth(ready)))
        }),
    )
}

/// Whether its status says so. None: nobody has looked at it yet.
fn is_ready(policy: &GatePolicy) -> Option<bool> {
    let ready = find(&policy.status.as_ref()?.conditions, READY)?;
    Some(ready.status == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::sample::tests::page;
    use super::*;

    #[test]
    fn a_policy_is_ready_as_its_status_says_and_in_no_namespace() {
        let policy = |name: &str, ready: Option<&str>| {
            let condition = |status: &str| {
                json!([{
                    "type": "Ready", "status": status, "reason": "r", "message": "m",
                    "lastTransitionTime": "2026-11-20T12:00:00Z",
                }])
            };
            let status = ready.map_or(Value::Null, |is| json!({"conditions": condition(is)}));
            let policy = json!({
                "apiVersion": "sluice.dev/v1alpha1",
                "kind": "GatePolicy",
                "metadata": {"name": name},
                "spec": {"gates": {"refs": [{"name": "freeze", "namespace": "platform"}]}},
                "status": status,
            });
            Arc::new(serde_json::from_value(policy).unwrap())
        };
        let policies = [
            policy("freeze", Some("True")),
            policy("lost", Some("False")),
            policy("new", None),
        ];
        let lines = page("sluice_gate_policy_ready", move |encoder| {
            encode(encoder, &policies)
        });
        assert_eq!(lines, [r#"{name="freeze"} 1.0"#, r#"{name="lost"} 0.0"#]);
    }
}
