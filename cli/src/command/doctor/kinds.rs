//! Whether the API server knows our kinds, and as this version has them.

use anyhow::Error;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Api;

use super::Finding;
use crate::cluster::{Connection, explain, status};

const PART: &str = "kinds";
const INSTALL: &str = "install the CustomResourceDefinitions: the chart does, and so does kubectl \
                       apply --server-side -f crds/yaml";

pub(super) async fn examine(connection: &Connection) -> Vec<Finding> {
    let wanted = sluice_crds::all();
    let version = "v1alpha1";
    let group = format!("{}/{version}", sluice_crds::GROUP);
    let served = connection.client.list_api_group_resources(&group).await;
    let served: Vec<String> = match served {
        Ok(list) => list.resources.into_iter().map(|it| it.name).collect(),
        Err(error) if status(&error).is_some_and(|status| status.code == 404) => Vec::new(),
        Err(error) => {
            return vec![Finding::unknown(
                PART,
                &explain(error, "look for our kinds"),
            )];
        }
    };
    let missing: Vec<&str> = (wanted.iter())
        .map(|kind| kind.spec.names.plural.as_str())
        .filter(|plural| !served.iter().any(|it| it == plural))
        .collect();
    if !missing.is_empty() {
        let found = format!("{} of {group} are not served", missing.join(", "));
        return vec![Finding::failed(PART, found, INSTALL)];
    }
    match other_schemas(connection, &wanted).await {
        Ok(others) if others.is_empty() => {
            let all = format!(
                "all {} kinds of {group} are served, as this version has them",
                wanted.len()
            );
            vec![Finding::ok(PART, all)]
        }
        Ok(others) => {
            let found = format!("{} are those of another version", others.join(", "));
            let remedy = "install the CustomResourceDefinitions of the version that the controller \
                          has, and use the plugin of that version";
            vec![Finding::failed(PART, found, remedy)]
        }
        // Who may not read them knows that they are served.
        Err(_) => vec![Finding::ok(
            PART,
            format!("all {} kinds of {group} are served", wanted.len()),
        )],
    }
}

/// Those whose schema is not what this version would install.
async fn other_schemas(
    connection: &Connection,
    wanted: &[CustomResourceDefinition],
) -> Result<Vec<String>, Error> {
    let api: Api<CustomResourceDefinition> = Api::all(connection.client.clone());
    let mut others = Vec::new();
    for kind in wanted {
        let name = kind.metadata.name.as_deref().unwrap_or_default();
        let found = api.get(name).await;
        let found = found.map_err(|error| explain(error, &format!("read {name}")))?;
        let schema = |kind: &CustomResourceDefinition| {
            let version = kind.spec.versions.first();
            serde_json::to_value(version.and_then(|version| version.schema.as_ref()))
        };
        if schema(kind)? != schema(&found)? {
            others.push(name.to_owned());
        }
    }
    Ok(others)
}
