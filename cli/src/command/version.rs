//! `kubectl gate version`

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::arguments::Globals;
use crate::cluster::{self, Controller, Use};
use crate::outcome::Outcome;
use crate::output::{self, Data};

/// Print the version of the plugin, and of the controllers that are installed
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 the version of the plugin is printed, whether or not a cluster answers."
)]
pub(crate) struct Version {
    /// Print the version of the plugin alone, and ask no cluster
    #[arg(long)]
    client: bool,

    /// Print in a form for programs
    #[arg(long, short = 'o', value_name = "FORMAT")]
    output: Option<Data>,
}

/// What is printed.
#[derive(Serialize)]
struct Versions {
    client: Client,
    #[serde(skip_serializing_if = "Option::is_none")]
    controllers: Option<Vec<Controller>>,
}

/// The plugin.
#[derive(Serialize)]
struct Client {
    version: &'static str,
    /// None: it was not set when the plugin was built.
    commit: Option<&'static str>,
}

impl Client {
    fn own() -> Self {
        let commit = env!("SLUICE_BUILT_FROM");
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: (!commit.is_empty()).then_some(commit),
        }
    }

    fn line(&self) -> String {
        let Self { version, commit } = self;
        let commit = commit.map(|commit| format!(" (commit {commit})"));
        format!("kubectl-gate {version}{}", commit.unwrap_or_default())
    }
}

impl Version {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let client = Client::own();
        if self.output.is_none() {
            output::line(client.line())?;
        }
        let controllers = match self.client {
            true => Ok(None),
            false => installed(globals).await.map(Some),
        };
        let controllers = controllers.unwrap_or_else(|error| {
            output::note(format_args!(
                "which controller runs is not known: {error:#}"
            ));
            None
        });
        match (self.output, controllers) {
            (Some(form), controllers) => {
                let versions = Versions {
                    client,
                    controllers,
                };
                output::data(form, &versions)?;
            }
            (None, Some(controllers)) if controllers.is_empty() => {
                output::note("no controller is installed in the cluster");
            }
            (None, controllers) => {
                for controller in controllers.iter().flatten() {
                    output::line(controller.line())?;
                }
            }
        }
        Ok(Outcome::Yes)
    }
}

async fn installed(globals: &Globals) -> Result<Vec<Controller>> {
    let connection = cluster::connect(globals, Use::Requests).await?;
    cluster::controllers(&connection).await
}
