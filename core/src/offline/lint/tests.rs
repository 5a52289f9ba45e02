use rstest::rstest;

use super::*;

mod rules;
mod world;

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

fn with_spec(kind: &str, spec: &str) -> Value {
    let head = format!("apiVersion: sluice.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: a}}\n");
    yaml(&format!("{head}spec: {spec}\n"))
}

fn told(value: &Value) -> Vec<String> {
    read(value)
        .mistakes
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[rstest]
#[case::gate(
    "Gate",
    "{gatekeepers: [{name: office-hours}, {name: office-hours, namespace: b}]}"
)]
#[case::defaults_for_null("Gate", "{window: null, gatekeepers: [{name: a, namespace: null}]}")]
#[case::manual(
    "Gatekeeper",
    "{manual: {state: open, until: '2026-11-20T18:00:00+01:00'}}"
)]
#[case::cron(
    "Gatekeeper",
    "{schedule: {open: [{cron: 0 9 * * 1-5, duration: 8h}]}}"
)]
fn what_is_right_is_let_through(#[case] kind: &str, #[case] spec: &str) {
    let read = read(&with_spec(kind, spec));
    assert!(read.mistakes.is_empty(), "{:?}", read.mistakes);
    assert!(read.object.is_some());
}

#[rstest]
#[case(
    "Gate",
    "{gatekeeper: []}",
    "spec.gatekeeper: there is no such field; write gatekeepers, or remove it"
)]
#[case(
    "Gate",
    "{frequency: 1}",
    "spec.frequency: there is no such field; remove it; the fields here are "
)]
#[case(
    "Gate",
    "{gatekeepers: {name: a}}",
    "spec.gatekeepers: it is an object, where a list belongs; write a list"
)]
#[case(
    "Gate",
    "{gatekeepers: [a]}",
    "spec.gatekeepers[0]: it is text, where an object of fields belongs; write an object of fields"
)]
#[case(
    "Gate",
    "{gatekeepers: [{}]}",
    "spec.gatekeepers[0].name: it is missing; write name: text"
)]
#[case(
    "Gate",
    "{gatekeepers: [{name: Office}]}",
    "spec.gatekeepers[0].name: `Office` is not of the form it should have; write lower-case letters"
)]
#[case(
    "Gate",
    "{require: any}",
    "spec.require: `any` is not one of its values; write all or oneOf"
)]
#[case(
    "Gate",
    "{default: true}",
    "spec.default: it is the boolean true, where text belongs; put it in quotes"
)]
#[case(
    "Gate",
    "{suspend: 'yes'}",
    "spec.suspend: it is text, where true or false belongs; write true or false"
)]
#[case(
    "Gate",
    "{suspend: null}",
    "spec.suspend: it is nothing (null), where true or false belongs"
)]
#[case(
    "Gate",
    "{window: 60}",
    "spec.window: it is the number 60, where text belongs; put it in quotes"
)]
#[case(
    "Rollout",
    "{targetRef: {kind: Deployment, name: a}, rolloutPlan: {rolloutBatches: [{replicas: true}]}}",
    "spec.rolloutPlan.rolloutBatches[0].replicas: it is the boolean true, where a whole number or a percentage belongs"
)]
#[case(
    "Rollout",
    "{targetRef: {kind: Deployment, name: a}, rolloutPlan: {rolloutBatches: [{replicas: 1.5}]}}",
    "spec.rolloutPlan.rolloutBatches[0].replicas: it is the number 1.5, where a whole number or a percentage belongs"
)]
#[case(
    "Rollout",
    "{targetRef: {kind: DaemonSet, name: a}, rolloutPlan: {}}",
    "spec.targetRef.kind: a DaemonSet has one pod a node, and no partition to hold at; use a CloneSet"
)]
#[case("Gate", "{window: 1 hour}", "spec.window: `1 hour`")]
#[case("Gatekeeper", "{manual: {}}", "spec.manual.state: it is missing")]
#[case(
    "Gatekeeper",
    "{manual: {state: open, until: '2026-11-20'}}",
    "spec.manual.until: `2026-11-20` is not an instant; write RFC 3339"
)]
#[case(
    "Gatekeeper",
    "{manual: {state: open, reason: ''}}",
    "spec.manual.reason: it is empty"
)]
#[case(
    "Gatekeeper",
    "{schedule: {open: [{cron: '* * *'}]}}",
    "spec.schedule.open[0].cron: `* * *` has 3 fields, not five; write five fields"
)]
#[case(
    "Gatekeeper",
    "{schedule: {timezone: Europe/London, open: [{cron: '* * * * *'}]}}",
    "spec.schedule.timezone: there is no such field; write timeZone, or remove it"
)]
#[case(
    "Gatekeeper",
    "{schedule: {open: [{from: 2026-12-19, until: '2026-12-20T00:00:00'}]}}",
    "spec.schedule.open[0].from: `2026-12-19` is not a local date and time; write it with a time: 2026-12-19T00:00:00"
)]
#[case::beside_what_cannot_be_read(
    "Gatekeeper",
    "{schedule: {open: [{from: 2026-12-19, until: '2026-12-20T00:00:00', duration: 5}]}}",
    "spec.schedule.open[0].from: `2026-12-19` is not a local date and time; write it with a time: 2026-12-19T00:00:00"
)]
#[case(
    "Gatekeeper",
    "{schedule: {timeZone: Mars, open: [{cron: '* * * * *'}]}}",
    "spec.schedule.timeZone: there is no time zone `Mars`"
)]
fn mistakes_are_told_with_field_and_remedy(
    #[case] kind: &str,
    #[case] spec: &str,
    #[case] expected: &str,
) {
    let told = told(&with_spec(kind, spec));
    assert!(
        told.iter().any(|told| told.starts_with(expected)),
        "{told:#?}"
    );
}

#[rstest]
#[case::spec(
    "apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {name: a}",
    "spec: it is missing"
)]
#[case::no_name(
    "apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {}\nspec: {}",
    "metadata.name: it is missing; write a name"
)]
#[case::bad_name(
    "apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {name: A_b}\nspec: {}",
    "metadata.name: `A_b` is not the name"
)]
#[case::name_is_a_word(
    "apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {name: true}\nspec: {}",
    "metadata.name: it is the boolean true, where text belongs; put it in quotes"
)]
#[case::long_name(
    "apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}\nspec: {}",
    "more than 63 characters"
)]
#[case::kind(
    "apiVersion: sluice.dev/v1alpha1\nkind: Gates\nmetadata: {name: a}",
    "kind: sluice.dev/v1alpha1 has no kind `Gates`; write Gate, Gatekeeper, Approval, GatePolicy, GatedSource, Pipeline, "
)]
#[case::version(
    "apiVersion: sluice.dev/v1\nkind: Gate\nmetadata: {name: a}",
    "apiVersion: sluice.dev has no version `v1`; write sluice.dev/v1alpha1"
)]
#[case::no_kind("apiVersion: v1", "kind: it is missing")]
#[case::annotation(
    "apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {name: a, annotations: {a/b: 1}}\nspec: {}",
    "metadata.annotations[a/b]: it is the number 1, where text belongs; put it in quotes"
)]
#[case::label(
    "apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {name: a, labels: {a: b c}}\nspec: {}",
    "metadata.labels[a]: `b c` is not a label"
)]
#[case::label_of_a_domain_in_capitals(
    "apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {name: a, labels: {Example.com/a: b}}\nspec: {}",
    "metadata.labels[Example.com/a]: its name is not allowed"
)]
#[case::metadata(
    "apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {name: a, lables: {}}\nspec: {}",
    "metadata.lables: there is no such field; write labels, or remove it"
)]
#[case::top_level(
    "apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {name: a}\nspec: {}\nspecs: {}",
    "specs: there is no such field; write spec, or remove it"
)]
#[case::data(
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: 1}",
    "data.a: it is the number 1, where text belongs; put it in quotes"
)]
fn objects_are_checked_beyond_their_spec(#[case] text: &str, #[case] expected: &str) {
    let told = told(&yaml(text));
    assert!(told.iter().any(|told| told.contains(expected)), "{told:#?}");
}

/// The API server reads the names of annotations, and of nothing else, as if in small letters.
#[test]
fn an_annotation_may_be_of_a_domain_in_capitals() {
    let annotated = "{apiVersion: sluice.dev/v1alpha1, kind: Gate, spec: {}, metadata: \
                     {name: a, annotations: {Example.com/A: b}}}";
    assert_eq!(told(&yaml(annotated)), [""; 0]);
}

#[test]
fn what_the_api_server_writes_is_let_through() {
    let served = yaml(
        "{apiVersion: sluice.dev/v1alpha1, kind: Gate, spec: {}, status: {anything: 1}, metadata: \
         {name: a, uid: b, resourceVersion: '1', generation: 3, managedFields: [{manager: c}], \
         creationTimestamp: '2026-11-20T18:00:00Z'}}",
    );
    let Read {
        object: Some(Object::Gate(gate)),
        mistakes,
    } = read(&served)
    else {
        panic!()
    };
    assert_eq!(mistakes, []);
    assert_eq!((gate.metadata.generation, gate.status), (Some(3), None));
}

#[test]
fn other_kinds_are_passed_over() {
    let other = read(&yaml(
        "{apiVersion: apps/v1, kind: Deployment, metadata: {}, spec: 1}",
    ));
    assert!(matches!(other, Read { object: Some(Object::Other), mistakes } if mistakes.is_empty()));
    let namesake = read(&yaml(
        "{apiVersion: gates.example.com/v1, kind: Gate, spec: 1}",
    ));
    assert!(matches!(namesake.object, Some(Object::Other)));
}

fn forced(annotations: &str) -> Vec<String> {
    let text = format!(
        "{{apiVersion: sluice.dev/v1alpha1, kind: Gate, spec: {{maxOverride: 24h}}, \
         metadata: {{name: a, annotations: {{{annotations}}}}}}}"
    );
    told(&yaml(&text))
}

#[rstest]
#[case::complete("sluice.dev/force: open, sluice.dev/force-by: a, sluice.dev/force-reason: b")]
#[case::with_an_end(
    "sluice.dev/force: open, sluice.dev/force-by: a, sluice.dev/force-reason: b, sluice.dev/force-until: '1999-01-01T00:00:00Z'"
)]
#[case::requested(
    "open.gate.fluxcd.io/requestedAt: '1999-01-01T00:00:00Z', close.gate.fluxcd.io/requestedAt: '2040-01-01T00:00:00Z'"
)]
fn a_force_may_be_long_past_or_far_ahead(#[case] annotations: &str) {
    assert_eq!(forced(annotations), [""; 0]);
}

#[rstest]
#[case(
    "sluice.dev/force: opened, sluice.dev/force-by: a, sluice.dev/force-reason: b",
    "force]: `opened` is not a state; write open or closed"
)]
#[case(
    "sluice.dev/force: open, sluice.dev/force-by: a",
    "force-reason]: it is missing"
)]
#[case(
    "sluice.dev/force: open, sluice.dev/force-reason: a",
    "force-by]: it is missing"
)]
#[case(
    "sluice.dev/force-until: '2026-11-20T18:00:00Z'",
    "force-until]: it does nothing without sluice.dev/force"
)]
#[case(
    "sluice.dev/force: open, sluice.dev/force-by: a, sluice.dev/force-reason: b, sluice.dev/force-until: tomorrow",
    "`tomorrow` is not an instant"
)]
#[case("open.gate.fluxcd.io/requestedAt: now", "`now` is not an instant")]
fn a_force_that_never_counts_is_refused(#[case] annotations: &str, #[case] expected: &str) {
    let told = forced(annotations);
    assert!(told.iter().any(|told| told.contains(expected)), "{told:#?}");
}
