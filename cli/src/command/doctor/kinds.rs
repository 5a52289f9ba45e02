//! Whether the API server knows our kinds, and as this version has them.

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Api;

use super::finding::Finding;
use crate::cluster::{self, Connection};

const PART: &str = "kinds";
const INSTALL: &str = "install the CustomResourceDefinitions: the chart does, and so does kubectl \
                       apply --server-side -f crds/yaml";

pub(super) async fn examine(connection: &Connection) -> Vec<Finding> {
    let wanted = sluice_crds::all();
    let version = "v1alpha1";
    let group = format!("{}/{version}", sluice_crds::GROUP);
    let served = match cluster::resources(connection, &group).await {
        Ok(served) => served,
        Err(error) => return vec![Finding::unknown(PART, &error)],
    };
    let plurals = wanted.iter().map(|kind| kind.spec.names.plural.clone());
    let missing: Vec<String> = plurals.filter(|plural| !served.contains(plural)).collect();
    if !missing.is_empty() {
        let found = format!("{} of {group} are not served", missing.join(", "));
        return vec![Finding::failed(PART, found, INSTALL)];
    }
    let all = format!("all {} kinds of {group} are served", wanted.len());
    vec![match other_schemas(connection, &wanted).await {
        Ok(others) if others.is_empty() => {
            Finding::ok(PART, format!("{all}, as this version has them"))
        }
        Ok(others) => {
            let found = format!("{} are those of another version", others.join(", "));
            let remedy = "install the CustomResourceDefinitions of the version that the controller \
                          has, and use the plugin of that version";
            Finding::failed(PART, found, remedy)
        }
        // Who may not read them knows that they are served.
        Err(_) => Finding::ok(PART, all),
    }]
}

/// Those whose schema is not what this version would install.
async fn other_schemas(
    connection: &Connection,
    wanted: &[CustomResourceDefinition],
) -> Result<Vec<String>> {
    let api: Api<CustomResourceDefinition> = connection.all();
    let mut others = Vec::new();
    for kind in wanted {
        let name = kind.metadata.name.as_deref().unwrap_or_default();
        let found = cluster::read(&api, name).await?;
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
