//! One Pipeline of Weave as one of Sluice.
//!
//! What comes in: the object as it was written. What goes out: ours, paused, with what is left to do; or what
//! cannot be imported, with what to write instead.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sluice_core::offline::lint;

use super::promotion;
use super::work::Work;

/// What is imported, and what is left to do.
#[derive(Debug, PartialEq)]
pub(super) struct Imported {
    pub(super) object: Value,
    pub(super) notes: Vec<String>,
}

/// What somebody else wrote, which says nothing of what a pipeline is to do.
const LEFT_OUT: [&str; 1] = ["kubectl.kubernetes.io/last-applied-configuration"];

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
) -> Result<Imported, Vec<String>> {
    let metadata = &value["metadata"];
    let text = |field: &str| metadata[field].as_str().map(str::to_owned);
    let name = text("name").unwrap_or_default();
    let namespace = text("namespace").unwrap_or_else(|| namespace.to_owned());
    let mut work = Work {
        key: (namespace.clone(), name.clone()),
        written,
        notes: Vec::new(),
        mistakes: Vec::new(),
        tokens: BTreeSet::new(),
    };
    let mut own = json!({"name": name, "namespace": namespace});
    for field in ["labels", "annotations"] {
        let kept = metadata[field].as_object().cloned();
        let mut kept = kept.unwrap_or_default();
        kept.retain(|key, _| !LEFT_OUT.contains(&key.as_str()));
        if !kept.is_empty() {
            own[field] = Value::Object(kept);
        }
    }
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
        "metadata": own, "spec": spec(&value["spec"], &mut work),
    });
    finish(object, work)
}

/// Checks the result as admission would, and says what has to be done whatever it is.
fn finish(object: Value, mut work: Work<'_>) -> Result<Imported, Vec<String>> {
    if work.mistakes.is_empty() {
        let (namespace, name) = &work.key;
        let read = lint::read(&object).mistakes.into_iter();
        let told = read.map(|mistake| format!("Pipeline {namespace}/{name}: {mistake}"));
        work.mistakes.extend(told);
    }
    if !work.mistakes.is_empty() {
        return Err(work.mistakes);
    }
    let (namespace, name) = work.key.clone();
    for secret in std::mem::take(&mut work.tokens) {
        work.note(format!(
            "the Secret {namespace}/{secret} needs the key `token`, and the annotation \
             sluice.dev/allowed-hosts with the host of the forge; `username` and `password` are not read; \
             the value pipelines.secrets of the chart has to name it, for: forge"
        ));
    }
    work.note(format!(
        "the Providers and Alerts that called /promotion/{namespace}/{name}/..., their Secrets, and the \
         Ingress to pipeline-controller are no longer needed"
    ));
    work.note(format!(
        "it is paused: look at it with `kubectl gate pipeline {name} -n {namespace}`, delete Weave's \
         Pipeline, and then remove spec.suspend"
    ));
    Ok(Imported {
        object,
        notes: work.notes,
    })
}

fn spec(spec: &Value, work: &mut Work<'_>) -> Value {
    work.rest("spec", spec, &["appRef", "environments", "promotion"]);
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
    work.rest("spec.appRef", app, &["apiVersion", "kind", "name"]);
    let mut own = json!({"kind": app["kind"], "name": app["name"]});
    let Some(version) = app["apiVersion"].as_str().filter(|it| !it.is_empty()) else {
        return own;
    };
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let served = FLUX.iter().find(|(known, _)| *known == group);
    let raised = served.map(|(group, version)| format!("{group}/{version}"));
    if let Some(raised) = raised.as_ref().filter(|raised| *raised != version) {
        work.note(format!(
            "spec.appRef.apiVersion was {version}: Flux serves {raised} today"
        ));
    }
    own["apiVersion"] = raised.unwrap_or_else(|| version.to_owned()).into();
    own
}

fn environment(place: usize, value: &Value, default: &Value, work: &mut Work<'_>) -> Value {
    let path = format!("spec.environments[{place}]");
    work.rest(&path, value, &["name", "targets", "promotion"]);
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
            work.note(format!(
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
        work.note(format!(
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
    work.rest(path, value, &["namespace", "clusterRef"]);
    let mut own = json!({"namespace": value["namespace"]});
    let reference = &value["clusterRef"];
    if reference.is_null() {
        return own;
    }
    let path = format!("{path}.clusterRef");
    work.rest(
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
            work.note(format!(
                "the Secret with the kubeconfig of {elsewhere}/{cluster} needs the annotation \
                 sluice.dev/allowed-namespaces: {namespace}"
            ));
        }
    }
    own["clusterRef"] = named;
    own
}
