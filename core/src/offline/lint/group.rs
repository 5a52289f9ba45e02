//! Objects whose kind is one of ours, and whose group is not.
//!
//! What comes in: an object whose group is none of ours. What goes out: what to write instead, if it was
//! meant for us; otherwise nothing, for others have kinds of these names, too.

use serde_json::Value;
use sluice_crds::GROUP;

use super::{KINDS, VERSION};
use crate::text::refusal::Refusal;

/// The group of the kinds in the drafts of Flux's gating RFC.
const RFC: &str = "gating.toolkit.fluxcd.io";

/// The kinds that probably only Sluice has.
pub const OURS: [&str; 7] = [
    "Gate",
    "Gatekeeper",
    "Approval",
    "GatePolicy",
    "GatedSource",
    "Pipeline",
    "GitRepositoryAccess",
];

/// The mistakes of an object that was meant for us. Empty: it was not.
pub(super) fn check(group: &str, kind: &str, value: &Value) -> Vec<Refusal> {
    if group == RFC {
        return of_rfc(kind, value);
    }
    // No kind of Kubernetes' own group, which has no name, is called as one of ours.
    if !OURS.contains(&kind) || !(group.is_empty() || is_near(group)) {
        return Vec::new();
    }
    let problem = match group {
        "" => format!("it names no group, and {kind} is a kind of {GROUP}"),
        other => format!("`{other}` is not the group of {kind}"),
    };
    vec![Refusal::new("apiVersion", problem, ours())]
}

/// What the drafts of the RFC have and what it is called here.
fn of_rfc(kind: &str, value: &Value) -> Vec<Refusal> {
    let problem = format!("`{RFC}` is the group of Flux's gating RFC, which is not read here");
    let mut mistakes = vec![Refusal::new("apiVersion", problem, ours())];
    let mut add = |field: &str, problem: &str, remedy: String| {
        mistakes.push(Refusal::new(field, problem, remedy));
    };
    let spec = |field: &str| value.pointer("/spec")?.get(field);
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    match kind {
        "GateKeeper" => add(
            "kind",
            "the kind has another name here",
            "write Gatekeeper".into(),
        ),
        kind if OURS.contains(&kind) => {}
        _ => add("kind", "there is no such kind here", KINDS.into()),
    }
    if spec("interval").is_some() {
        let problem = "a gate changes at its instants, and does not poll";
        add("spec.interval", problem, "remove it".into());
    }
    if let Some(default) = spec("default").filter(|default| *default == "opened") {
        let problem = format!("`{}` has another name here", text(default));
        add("spec.default", &problem, "write open".into());
    }
    if let Some(closed) = spec("closed").and_then(Value::as_bool) {
        let state = if closed { "closed" } else { "open" };
        add(
            "spec.closed",
            "the field is called default here",
            format!("write default: {state}"),
        );
    }
    if let Some(revision) = spec("openTo") {
        let problem = "a revision that may go out is on the list of a Gatekeeper here";
        add("spec.openTo", problem, allow(&text(revision)));
    }
    if let Some(gate) = spec("gate") {
        let remedy = format!("name it in spec.gatekeepers of the Gate {}", text(gate));
        add("spec.gate", "a gate names its gatekeepers here", remedy);
    }
    if spec("cronjob").is_some() {
        let remedy =
            "write schedule: {closed: [{name: …, cron: …}]}, one entry for each expression";
        add("spec.cronjob", "windows are a schedule here", remedy.into());
    }
    mistakes
}

/// What lets one revision out, as `openTo` and an annotation of the RFC do.
pub(super) fn allow(revision: &str) -> String {
    format!(
        "write a Gatekeeper with revisions: {{allow: [{revision}]}} and name it in spec.gatekeepers"
    )
}

fn ours() -> String {
    format!("write {GROUP}/{VERSION}")
}

/// `sluice.io`, `slucie.dev`, `gates.sluice.dev`.
fn is_near(group: &str) -> bool {
    group.contains("sluice") || strsim::levenshtein(group, GROUP) <= 3
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::super::read;

    fn mistakes(object: &serde_json::Value) -> Vec<String> {
        let read = read(object);
        read.mistakes.iter().map(ToString::to_string).collect()
    }

    #[rstest]
    #[case::near(
        "sluice.io/v1alpha1",
        "Gate",
        "apiVersion: `sluice.io` is not the group of Gate; write sluice.dev/v1alpha1"
    )]
    #[case::swapped(
        "slucie.dev/v1",
        "GatedSource",
        "apiVersion: `slucie.dev` is not the group of GatedSource; write sluice.dev/v1alpha1"
    )]
    #[case::none(
        "v1alpha1",
        "Gatekeeper",
        "apiVersion: it names no group, and Gatekeeper is a kind of sluice.dev; write sluice.dev/v1alpha1"
    )]
    fn a_group_that_was_meant_to_be_ours_is_refused(
        #[case] version: &str,
        #[case] kind: &str,
        #[case] said: &str,
    ) {
        let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}});
        assert_eq!(mistakes(&object), [said]);
    }

    #[rstest]
    #[case("operator.gatekeeper.sh/v1alpha1", "Gatekeeper")]
    #[case("apps/v1", "Deployment")]
    #[case("sluice.example.com/v1", "Pump")]
    fn kinds_of_others_are_theirs(#[case] version: &str, #[case] kind: &str) {
        let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}});
        assert_eq!(mistakes(&object), [""; 0]);
    }

    #[test]
    fn what_the_rfc_has_is_told_field_by_field() {
        let gate = json!({
            "apiVersion": "gating.toolkit.fluxcd.io/v1alpha1", "kind": "Gate",
            "metadata": {"name": "a"},
            "spec": {"interval": "30s", "default": "opened", "openTo": "4f08fc93e31d"},
        });
        let said = mistakes(&gate);
        assert_eq!(said.len(), 4, "{said:?}");
        assert!(said[2].ends_with("write open"), "{said:?}");
        assert!(
            said[3].contains("revisions: {allow: [4f08fc93e31d]}"),
            "{said:?}"
        );
        let keeper = json!({
            "apiVersion": "gating.toolkit.fluxcd.io/v1alpha1", "kind": "GateKeeper",
            "metadata": {"name": "a"},
            "spec": {"gate": "production", "type": "cronexpression", "cronjob": {"closed": []}},
        });
        let said = mistakes(&keeper).join("\n");
        for words in [
            "write Gatekeeper",
            "of the Gate production",
            "write schedule:",
        ] {
            assert!(said.contains(words), "{said}");
        }
    }
}
