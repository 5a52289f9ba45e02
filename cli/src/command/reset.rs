//! `kubectl gate reset`

use anyhow::Result;
use clap::Args;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Map, Value, json};
use sluice_crds::Gate;
use sluice_crds::gate::annotations;

use super::force::FIELD_MANAGER;
use crate::arguments::Globals;
use crate::cluster::{self, Use, explain};
use crate::outcome::Outcome;
use crate::output;

/// End the force on gates: their gatekeepers decide again
///
/// Removes every annotation that forces a gate, those of the Flux gating RFC included.
#[derive(Debug, Args)]
pub(crate) struct Reset {
    /// The gates
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

impl Reset {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let names = self.names.iter().map(|name| cluster::gate_name(name));
        let names = names.collect::<Result<Vec<_>>>()?;
        let connection = cluster::connect(globals, Use::Requests).await?;
        let api: Api<Gate> = Api::namespaced(connection.client.clone(), &connection.namespace);
        for name in names {
            let gate = api.get(&name).await;
            let gate = gate.map_err(|error| explain(error, &format!("read the gate {name}")))?;
            let present = gate.metadata.annotations.unwrap_or_default();
            if !annotations::ALL
                .iter()
                .any(|annotation| present.contains_key(*annotation))
            {
                output::line(format_args!("{name} is not forced"))?;
                continue;
            }
            let none: Map<String, Value> = annotations::ALL
                .iter()
                .map(|name| ((*name).to_owned(), Value::Null))
                .collect();
            let patch = Patch::Merge(json!({ "metadata": { "annotations": none } }));
            let parameters = PatchParams {
                field_manager: Some(FIELD_MANAGER.to_owned()),
                ..PatchParams::default()
            };
            let patched = api.patch(&name, &parameters, &patch).await;
            patched
                .map_err(|error| explain(error, &format!("end the force on the gate {name}")))?;
            output::line(format_args!("{name} is no longer forced"))?;
        }
        Ok(Outcome::Yes)
    }
}
