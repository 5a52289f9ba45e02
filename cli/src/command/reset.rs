//! `kubectl gate reset`

use anyhow::Result;
use clap::Args;
use kube::ResourceExt;
use kube::api::Api;
use serde_json::{Map, Value};
use sluice_crds::Gate;
use sluice_crds::gate::annotations;

use crate::arguments::{Globals, gate_names};
use crate::cluster::{self, Use};
use crate::outcome::Outcome;
use crate::output::say;

/// End the forces on gates, so that their gatekeepers decide again
///
/// Removes all annotations that force the gates, including those of the Flux gating RFC.
#[derive(Debug, Args)]
pub(crate) struct Reset {
    /// The gates
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

impl Reset {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let names = gate_names(&self.names)?;
        let connection = cluster::connect(globals, Use::Requests).await?;
        let api: Api<Gate> = connection.here();
        let nulls = annotations::ALL.map(|name| (name.to_owned(), Value::Null));
        let none = Value::Object(Map::from_iter(nulls));
        for name in names {
            let gate = cluster::read(&api, &name).await?;
            let mut all = annotations::ALL.iter();
            if all.any(|annotation| gate.annotations().contains_key(*annotation)) {
                let what = format!("end the force on the gate {name}");
                cluster::annotate(&api, &name, &none, &what).await?;
                say!("{name} is no longer forced")?;
            } else {
                say!("{name} is not forced")?;
            }
        }
        Ok(Outcome::Yes)
    }
}
