//! Objects of Flux in words: what an app names as its source, and what makes that look again.

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;
use sluice_core::offline::simulate::Key;
use sluice_core::revision::short;

use crate::cluster::SourceName;

/// What an app names as its source. None: nothing that is known.
pub(super) fn source_of(app: &DynamicObject) -> Option<SourceName> {
    let spec = &app.data["spec"];
    let ways = [
        &spec["chartRef"],
        &spec["sourceRef"],
        &spec["chart"]["spec"]["sourceRef"],
    ];
    let named = ways.into_iter().find(|it| it.is_object())?;
    let own = Key::of(&app.metadata).namespace;
    let namespace = named["namespace"].as_str().unwrap_or(&own);
    Some(SourceName {
        kind: named["kind"].as_str()?.to_owned(),
        key: Key::from_reference(namespace, None, named["name"].as_str()?),
    })
}

/// A source in a line.
pub(super) fn told_source(named: &SourceName, source: Option<&DynamicObject>) -> String {
    let SourceName { kind, key } = named;
    let Some(source) = source else {
        return format!("{kind} {key} is not there");
    };
    let (spec, status) = (&source.data["spec"], &source.data["status"]);
    let mut line = format!("{kind} {key}");
    if let Some(url) = spec["url"].as_str() {
        line += &format!(" of {url}");
    }
    for (name, value) in spec["ref"].as_object().into_iter().flatten() {
        if let Some(value) = value.as_str() {
            line += &format!(", {name} {value}");
        }
    }
    if let Some(revision) = status["artifact"]["revision"].as_str() {
        line += &format!(", serves {}", short(revision));
    }
    line
}

/// What makes a source look again, each in a line; and for a chart, which versions are taken.
pub(super) fn triggers(
    named: &SourceName,
    source: Option<&DynamicObject>,
    app: &DynamicObject,
    receivers: &[DynamicObject],
    automations: &[DynamicObject],
) -> Vec<String> {
    let receivers = receivers.iter().filter(|it| calls(it, named));
    let receivers = receivers.map(|it| {
        let path = it.data["status"]["webhookPath"].as_str();
        let path = path.map(|path| format!(" at {path}")).unwrap_or_default();
        format!(
            "is looked at when Receiver {} is called{path}",
            Key::of(&it.metadata)
        )
    });
    let automations = automations.iter().filter(|it| writes(it, named));
    let automations = automations.map(|it| {
        let name = Key::of(&it.metadata);
        format!("ImageUpdateAutomation {name} writes new images into it")
    });
    let interval = source.and_then(|it| it.data["spec"]["interval"].as_str());
    let interval = interval.map(|every| format!("is looked at every {every}"));
    let chart = app.data["spec"]["chart"]["spec"]["version"].as_str();
    let chart = chart.map(|range| format!("charts of the version {range} are taken"));
    receivers
        .chain(automations)
        .chain(interval)
        .chain(chart)
        .collect()
}

/// Whether a Receiver makes this source look again.
fn calls(receiver: &DynamicObject, named: &SourceName) -> bool {
    let own = receiver.namespace().unwrap_or_default();
    let resources = receiver.data["spec"]["resources"].as_array();
    let is_it = |it: &Value| {
        let text = |field: &str| it[field].as_str();
        text("kind") == Some(&named.kind)
            && text("namespace").unwrap_or(&own) == named.key.namespace
            && text("name").is_some_and(|name| name == "*" || name == named.key.name)
    };
    resources.into_iter().flatten().any(is_it)
}

/// Whether an ImageUpdateAutomation commits to the repository of this source.
fn writes(automation: &DynamicObject, named: &SourceName) -> bool {
    let own = automation.namespace().unwrap_or_default();
    let source = &automation.data["spec"]["sourceRef"];
    source["kind"].as_str() == Some(&named.kind)
        && source["name"].as_str() == Some(&named.key.name)
        && source["namespace"].as_str().unwrap_or(&own) == named.key.namespace
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, name: &str, rest: &Value) -> DynamicObject {
        let mut object = json!({
            "apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "dev"},
        });
        object
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn the_source_of_every_kind_of_app_is_found() {
        let named = json!({"kind": "OCIRepository", "name": "a"});
        for spec in [
            json!({"chartRef": named}),
            json!({"sourceRef": named}),
            json!({"chart": {"spec": {"sourceRef": named}}}),
        ] {
            let found = source_of(&object("App", "app", &json!({"spec": spec}))).unwrap();
            assert_eq!(
                (found.kind.as_str(), found.key.to_string().as_str()),
                ("OCIRepository", "dev/a")
            );
        }
        assert_eq!(source_of(&object("App", "app", &json!({"spec": {}}))), None);
    }

    #[test]
    fn only_what_names_the_source_makes_it_look_again() {
        let app = object(
            "Kustomization",
            "app",
            &json!({"spec": {"sourceRef": {"kind": "GitRepository", "name": "app"}}}),
        );
        let named = source_of(&app).unwrap();
        let source = object(
            "GitRepository",
            "app",
            &json!({
                "spec": {"url": "https://git.example.com/app.git", "ref": {"branch": "main"}, "interval": "5m"},
                "status": {"artifact": {"revision": "main@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3"}},
            }),
        );
        let receiver = |name: &str, about: &str| {
            object(
                "Receiver",
                name,
                &json!({
                    "spec": {"resources": [{"kind": "GitRepository", "name": about}]},
                    "status": {"webhookPath": "/hook/1"},
                }),
            )
        };
        let receivers = [receiver("push", "app"), receiver("other", "web")];
        let automation = object(
            "ImageUpdateAutomation",
            "images",
            &json!({
                "spec": {"sourceRef": {"kind": "GitRepository", "name": "app"}},
            }),
        );
        let lines = triggers(&named, Some(&source), &app, &receivers, &[automation]);
        assert_eq!(
            lines,
            [
                "is looked at when Receiver dev/push is called at /hook/1",
                "ImageUpdateAutomation dev/images writes new images into it",
                "is looked at every 5m",
            ]
        );
        assert_eq!(
            told_source(&named, Some(&source)),
            "GitRepository dev/app of https://git.example.com/app.git, branch main, serves main@4f2a9c1e0b7d"
        );
        assert_eq!(
            told_source(&named, None),
            "GitRepository dev/app is not there"
        );
    }
}
