//! `kubectl gate pipeline pause`, `resume` and `retry`

use anyhow::Result;
use clap::Args;
use kube::ResourceExt;
use kube::api::{Api, Patch};
use serde_json::{Value, json};
use sluice_crds::Pipeline;
use sluice_crds::pipeline::marks;

use crate::arguments::{Globals, pipeline_name};
use crate::clock;
use crate::cluster::{self, Cannot, Use};
use crate::outcome::Outcome;
use crate::output::{say, warn};

#[derive(Debug, Args)]
pub(crate) struct Steer {
    /// The pipelines
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

/// What is done to a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Pause,
    Resume,
    Retry,
}

impl Steer {
    pub(super) async fn run(&self, globals: &Globals, way: Way) -> Result<Outcome> {
        let names = self.names.iter().map(|name| pipeline_name(name));
        let names: Vec<String> = names.collect::<Result<_>>()?;
        let connection = cluster::connect(globals, Use::Requests).await?;
        let api: Api<Pipeline> = connection.here();
        for name in names {
            let before: Pipeline = cluster::existing(&connection, &name).await?;
            way.carry_out(&api, &name, &before).await?;
        }
        Ok(Outcome::Yes)
    }
}

impl Way {
    async fn carry_out(self, api: &Api<Pipeline>, name: &str, before: &Pipeline) -> Result<()> {
        match (self, before.spec.suspend) {
            (Way::Pause, true) => return say!("{name} is paused already"),
            (Way::Resume, false) => return say!("{name} is not paused"),
            (Way::Pause, false) => change(api, name, true, "pause").await?,
            (Way::Resume, true) => change(api, name, false, "resume").await?,
            (Way::Retry, is_paused) => {
                let text = clock::now().to_string();
                let what = format!("start another run of the pipeline {name}");
                cluster::annotate(api, name, &json!({marks::RETRY: text}), &what).await?;
                if is_paused {
                    warn(format_args!(
                        "{name} is paused: the run begins when it is resumed"
                    ));
                }
            }
        }
        let done = match self {
            Way::Pause => "is paused: nothing is promoted, merged or closed until it is resumed",
            Way::Resume => "is resumed",
            Way::Retry => "promotes the revision of its first environment again",
        };
        say!("{name} {done}")?;
        if self != Way::Retry && is_of_git(before) {
            warn(format_args!(
                "Flux applies {name} from Git: if spec.suspend is written there, that wins"
            ));
        }
        Ok(())
    }
}

/// Sets `spec.suspend`, or takes it away.
async fn change(api: &Api<Pipeline>, name: &str, suspend: bool, verb: &str) -> Result<()> {
    let value = if suspend {
        Value::Bool(true)
    } else {
        Value::Null
    };
    let merged = json!({"spec": {"suspend": value}});
    let patched = api
        .patch(name, &cluster::patch(), &Patch::Merge(merged))
        .await;
    patched
        .map(drop)
        .cannot(format_args!("{verb} the pipeline {name}"))
}

/// Whether kustomize-controller applies it.
fn is_of_git(object: &Pipeline) -> bool {
    let labels = object.labels();
    labels.contains_key("kustomize.toolkit.fluxcd.io/name")
}
