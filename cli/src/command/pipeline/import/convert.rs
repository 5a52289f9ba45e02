//! One Pipeline of Weave as one of Sluice.
//!
//! What comes in: the object as it was written. What goes out: ours, paused, with what is left to do; or what
//! cannot be imported, with what to write instead.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::promotion;
use super::work::Work;
use crate::converted::{self, Converted, Notes};

/// The groups of Flux whose versions are no longer served, each with the version that is.
const FLUX: [(&str, &str); 3] = [
    ("helm.toolkit.fluxcd.io", "v2"),
    ("kustomize.toolkit.fluxcd.io", "v1"),
    ("infra.contrib.fluxcd.io", "v1alpha2"),
];

/// Imports one. What names no namespace is in `namespace`.
///
/// # Errors
/// What is wrong, a line for each mistake.
pub(super) fn import(
    value: &Value,
    namespace: &str,
    written: &[String],
) -> Result<Converted, Vec<String>> {
    let metadata = &value["metadata"];
    let text = |field: &str| metadata[field].as_str().map(str::to_owned);
    let name = text("name").unwrap_or_default();
    let namespace = text("namespace").unwrap_or_else(|| namespace.to_owned());
    let mut work = Work {
        notes: Notes::new("Pipeline", &namespace, &name),
        key: (namespace.clone(), name.clone()),
        written,
        tokens: BTreeSet::new(),
    };
    let spec = spec(&value["spec"], &mut work);
    let object = converted::ours("Pipeline", (&namespace, &name), metadata, &spec);
    left_to_do(&mut work);
    work.notes.finish(object)
}

/// Says what has to be done whatever it is.
fn left_to_do(work: &mut Work<'_>) {
    let (namespace, name) = work.key.clone();
    for secret in std::mem::take(&mut work.tokens) {
        work.notes.note(format!(
            "the Secret {namespace}/{secret} needs the key `token`, and the annotation \
             sluice.dev/allowed-hosts with the host of the forge; `username` and `password` are not read; \
             the value pipelines.secrets of the chart has to name it, for: forge"
        ));
    }
    work.notes.note(format!(
        "the Providers and Alerts that called /promotion/{namespace}/{name}/..., their Secrets, and the \
         Ingress to pipeline-controller are no longer needed"
    ));
    work.notes.note(format!(
        "it is paused: look at it with `kubectl gate pipeline {name} -n {namespace}`, delete Weave's \
         Pipeline, and then remove spec.suspend"
    ));
}

fn spec(spec: &Value, work: &mut Work<'_>) -> Value {
    work.notes
        .rest("spec", spec, &["appRef", "environments", "promotion"]);
    let environments = spec["environments"].as_array();
    let environments = environments.map(Vec::as_slice).unwrap_or_default();
    let default = &spec["promotion"];
    let converted: Vec<Value> = environments
        .iter()
        .enumerate()
        .map(|(place, it)| environment(place, it, default, work))
        .collect();
    let mut own = json!({
        "suspend": true, "appRef": app(&spec["appRef"], work), "environments": converted,
    });
    if !default.is_null() {
        let promotion = promotion::promotion("spec.promotion", default, work);
        own["promotion"] = promotion;
    }
    own
}

/// The app, with a version that Flux serves today.
fn app(app: &Value, work: &mut Work<'_>) -> Value {
    work.notes
        .rest("spec.appRef", app, &["apiVersion", "kind", "name"]);
    let mut own = json!({"kind": app["kind"], "name": app["name"]});
    let Some(version) = app["apiVersion"].as_str().filter(|it| !it.is_empty()) else {
        return own;
    };
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let served = FLUX.iter().find(|(known, _)| *known == group);
    let raised = served.map(|(group, version)| format!("{group}/{version}"));
    if let Some(raised) = raised.as_ref().filter(|raised| *raised != version) {
        work.notes.note(format!(
            "spec.appRef.apiVersion was {version}: Flux serves {raised} today"
        ));
    }
    own["apiVersion"] = raised.unwrap_or_else(|| version.to_owned()).into();
    own
}

fn environment(place: usize, value: &Value, default: &Value, work: &mut Work<'_>) -> Value {
    let path = format!("spec.environments[{place}]");
    work.notes
        .rest(&path, value, &["name", "targets", "promotion"]);
    let targets = value["targets"].as_array();
    let targets = targets.map(Vec::as_slice).unwrap_or_default();
    let converted: Vec<Value> = targets
        .iter()
        .enumerate()
        .map(|(n, it)| target(&format!("{path}.targets[{n}]"), it, work))
        .collect();
    let mut own = json!({"name": value["name"], "targets": converted});
    let name = value["name"].as_str().unwrap_or_default();
    let promotion = &value["promotion"];
    if place == 0 {
        if !promotion.is_null() {
            work.notes.note(format!(
                "{path}.promotion is left out: nothing is promoted to {name}"
            ));
        }
        return own;
    }
    let effective = if promotion.is_null() {
        default
    } else {
        promotion
    };
    if !effective["strategy"]["pull-request"].is_null() {
        let (namespace, pipeline) = &work.key;
        let branch = format!("promotion-{namespace}-{pipeline}-{name}");
        work.notes.note(format!(
            "if the branch {branch} is left, close its pull request and delete it; our branches begin \
             with sluice/"
        ));
    }
    if !promotion.is_null() {
        own["promotion"] = promotion::promotion(&format!("{path}.promotion"), promotion, work);
    }
    own
}

fn target(path: &str, value: &Value, work: &mut Work<'_>) -> Value {
    work.notes.rest(path, value, &["namespace", "clusterRef"]);
    let mut own = json!({"namespace": value["namespace"]});
    let reference = &value["clusterRef"];
    if reference.is_null() {
        return own;
    }
    let path = format!("{path}.clusterRef");
    work.notes.rest(
        &path,
        reference,
        &["apiVersion", "kind", "name", "namespace"],
    );
    let mut named = json!({"kind": reference["kind"], "name": reference["name"]});
    if let Some(elsewhere) = reference["namespace"].as_str().filter(|it| !it.is_empty()) {
        named["namespace"] = elsewhere.into();
        let namespace = work.key.0.clone();
        if elsewhere != namespace {
            let cluster = reference["name"].as_str().unwrap_or_default().to_owned();
            work.notes.note(format!(
                "the Secret with the kubeconfig of {elsewhere}/{cluster} needs the annotation \
                 sluice.dev/allowed-namespaces: {namespace}"
            ));
        }
    }
    own["clusterRef"] = named;
    own
}
