//! What Prometheus reads of gates: what their statuses say, and who asks to force them.

use std::fmt::Error;
use std::sync::Arc;

use jiff::Timestamp;
use prometheus_client::encoding::DescriptorEncoder;
use sluice_core::gate::{Identity, force};
use sluice_crds::gate::Override;
use sluice_crds::{Gate, Setting, State};

use super::sample::{Sample, family, seconds, truth};

/// Writes every gauge of these gates. `now` is the instant by which annotations ask for a force.
pub(super) fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    gates: &[Arc<Gate>],
    now: Timestamp,
) -> Result<(), Error> {
    family(
        encoder,
        "sluice_gate_state",
        "1 for the state of the gate, 0 for the others",
        gates.iter().flat_map(|gate| {
            let is = gate.status.as_ref().and_then(|status| status.state);
            let sample = move |state: State| {
                Sample::of(gate.as_ref(), truth(is == Some(state))).with("state", state.as_str())
            };
            State::ALL.into_iter().map(sample)
        }),
    )?;
    let instants: [InstantOf<Gate, Option<Timestamp>>; 2] = [
        (
            "sluice_gate_since_timestamp_seconds",
            "Since when the gate has been in its state",
            |gate| Some(gate.status.as_ref()?.since.as_ref()?.0),
        ),
        (
            "sluice_gate_next_transition_timestamp_seconds",
            "When the gate changes next, if that is known",
            |gate| Some(gate.status.as_ref()?.upcoming.first()?.at.0),
        ),
    ];
    for (name, help, instant) in instants {
        let sample = |gate| Some(Sample::of(gate, seconds(instant(gate)?)));
        let gates = gates.iter().map(AsRef::as_ref);
        family(encoder, name, help, gates.filter_map(sample))?;
    }
    encode_forces(encoder, gates, now)
}

/// A metric that is an instant: its name, what it says, and where that is found.
type InstantOf<T, R> = (&'static str, &'static str, fn(&T) -> R);

fn encode_forces(
    encoder: &mut DescriptorEncoder<'_>,
    gates: &[Arc<Gate>],
    now: Timestamp,
) -> Result<(), Error> {
    let instants: [InstantOf<Override, Timestamp>; 2] = [
        (
            "sluice_gate_override",
            "When the force on the gate ends, in seconds since the epoch",
            |force| force.until.0,
        ),
        (
            "sluice_gate_override_since_timestamp_seconds",
            "Since when the force on the gate has been in effect",
            |force| force.since.0,
        ),
    ];
    for (name, help, instant) in instants {
        let samples = gates.iter().filter_map(|gate| {
            let force = gate.status.as_ref()?.r#override.as_ref()?;
            let sample = Sample::of(gate.as_ref(), seconds(instant(force)));
            Some(sample.with("state", word(force.state)))
        });
        family(encoder, name, help, samples)?;
    }
    family(
        encoder,
        "sluice_gate_override_requested",
        "1 while annotations ask for a force, whether or not it is in effect",
        gates.iter().filter_map(|gate| {
            let asked = asked_for(gate, now)?;
            Some(Sample::of(gate.as_ref(), 1.0).with("state", word(asked)))
        }),
    )
}

/// The state that the annotations would force at `now`, were everybody trusted.
fn asked_for(gate: &Gate, now: Timestamp) -> Option<Setting> {
    let forces = force::read(gate, Identity::Trusted, now);
    forces.asked_for(now).map(|force| force.state)
}

fn word(state: Setting) -> &'static str {
    match state {
        Setting::Open => "open",
        Setting::Closed => "closed",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::sample::tests::page;
    use super::*;

    fn gate(name: &str, annotations: &Value, status: &Value) -> Arc<Gate> {
        let gate = json!({
            "apiVersion": "sluice.dev/v1alpha1",
            "kind": "Gate",
            "metadata": {"namespace": "apps", "name": name, "annotations": annotations},
            "spec": {},
            "status": status,
        });
        Arc::new(serde_json::from_value(gate).unwrap())
    }

    fn lines(gates: &[Arc<Gate>], metric: &str) -> Vec<String> {
        let now = "2026-11-20T12:00:00Z".parse().unwrap();
        let gates = gates.to_vec();
        page(metric, move |encoder| encode(encoder, &gates, now))
    }

    #[test]
    fn a_gate_is_what_its_status_says() {
        let status = json!({
            "state": "Closed",
            "since": "2026-11-20T11:00:00Z",
            "upcoming": [
                {"at": "2026-11-20T13:00:00Z", "state": "Open"},
                {"at": "2026-11-20T14:00:00Z", "state": "Closed"},
            ],
        });
        let gates = [
            gate("known", &json!({}), &status),
            gate("new", &json!({}), &json!(null)),
        ];
        assert_eq!(
            lines(&gates, "sluice_gate_state"),
            [
                r#"{namespace="apps",name="known",state="Open"} 0.0"#,
                r#"{namespace="apps",name="known",state="Closed"} 1.0"#,
                r#"{namespace="apps",name="known",state="Conditional"} 0.0"#,
                r#"{namespace="apps",name="new",state="Open"} 0.0"#,
                r#"{namespace="apps",name="new",state="Closed"} 0.0"#,
                r#"{namespace="apps",name="new",state="Conditional"} 0.0"#,
            ]
        );
        assert_eq!(
            lines(&gates, "sluice_gate_since_timestamp_seconds"),
            [r#"{namespace="apps",name="known"} 1795172400.0"#]
        );
        assert_eq!(
            lines(&gates, "sluice_gate_next_transition_timestamp_seconds"),
            [r#"{namespace="apps",name="known"} 1795179600.0"#]
        );
    }

    #[test]
    fn a_force_in_effect_has_a_beginning_and_an_end() {
        let status = json!({"override": {
            "state": "open",
            "by": "alice",
            "reason": "hotfix",
            "since": "2026-11-20T11:00:00Z",
            "until": "2026-11-20T13:00:00Z",
        }});
        let gates = [gate("forced", &json!({}), &status)];
        let of = r#"{namespace="apps",name="forced",state="open"}"#;
        assert_eq!(
            lines(&gates, "sluice_gate_override"),
            [format!("{of} 1795179600.0")]
        );
        assert_eq!(
            lines(&gates, "sluice_gate_override_since_timestamp_seconds"),
            [format!("{of} 1795172400.0")]
        );
        assert!(lines(&gates, "sluice_gate_override_requested").is_empty());
    }

    /// Not those that are over, which stay as a record, and not those that make no sense.
    #[test]
    fn a_force_is_requested_by_annotations_that_count_now() {
        let force = |until: &str| {
            json!({
                "sluice.dev/force": "closed",
                "sluice.dev/force-by": "alice",
                "sluice.dev/force-reason": "incident",
                "sluice.dev/force-until": until,
            })
        };
        let status = json!({"state": "Open"});
        let gates = [
            gate("asked", &force("2026-11-20T13:00:00Z"), &status),
            gate("over", &force("2026-11-20T11:00:00Z"), &status),
            gate("nonsense", &force("tomorrow"), &status),
        ];
        assert_eq!(
            lines(&gates, "sluice_gate_override_requested"),
            [r#"{namespace="apps",name="asked",state="closed"} 1.0"#]
        );
        assert!(lines(&gates, "sluice_gate_override").is_empty());
    }
}
