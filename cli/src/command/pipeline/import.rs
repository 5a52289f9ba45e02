//! `kubectl gate pipeline import`

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

use crate::arguments::Globals;
use crate::cluster::{self, Use};
use crate::converted;
use crate::files;
use crate::outcome::Outcome;
use crate::output::{self, count, note};

mod convert;
mod promotion;
mod work;

use convert::import;

/// What is imported.
const GROUP: &str = "pipelines.weave.works";
const VERSION: &str = "v1alpha1";

/// Write Pipelines of Weave GitOps as Pipelines of Sluice
///
/// Prints one Pipeline for each, paused by spec.suspend. Comments above each of them say what is left to
/// do: files to name, Secrets to complete, branches to close, objects that nobody needs any more. Nothing
/// is changed in a cluster. Look at what is printed, commit it, look at the picture of the pipeline, and
/// then resume it.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 everything is printed; 1 a Pipeline could not be imported, and is not \
                  printed; 2 there is nothing to import, or it cannot be read."
)]
pub(crate) struct Import {
    /// YAML or JSON files, folders of them, or - for standard input
    #[arg(long = "filename", short = 'f', value_name = "FILES", num_args = 1..)]
    paths: Vec<PathBuf>,

    /// Read them from the cluster
    #[arg(long, conflicts_with = "paths", required_unless_present = "paths")]
    from_cluster: bool,

    /// From all namespaces of the cluster
    #[arg(long, short = 'A', requires = "from_cluster")]
    all_namespaces: bool,

    /// A file in which pull requests write the revision; may be given more than once. All files with
    /// markers have to be named: those that you do not name are not changed
    #[arg(long = "path", value_name = "FILE-IN-GIT")]
    written: Vec<String>,
}

impl Import {
    /// Whether it is about files.
    pub(super) fn is_offline(&self) -> bool {
        !self.from_cluster
    }

    /// Imports what files hold.
    pub(super) fn run_offline(&self, globals: &Globals) -> Result<Outcome> {
        let mut found = Vec::new();
        for (origin, value) in files::objects(&self.paths)? {
            if is_of_weave(&value) {
                found.push((origin, value));
            }
        }
        self.print(&found, globals.namespace_of_files())
    }

    /// Imports what a cluster has.
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let connection = cluster::connect(globals, Use::Requests).await?;
        let kind = GroupVersionKind::gvk(GROUP, VERSION, "Pipeline");
        let resource = ApiResource::from_gvk(&kind);
        let client = connection.client.clone();
        let api: Api<DynamicObject> = match connection.area(self.all_namespaces) {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        };
        let listed = api.list(&ListParams::default()).await.map_err(|error| {
            anyhow!(
                "cannot list the Pipelines of {GROUP}: {error}; read them from files with -f, if the \
                 cluster has none"
            )
        })?;
        let found = listed.items.into_iter().map(|object| {
            let value = serde_json::to_value(object)?;
            Ok(("the cluster".to_owned(), value))
        });
        let found: Vec<_> = found.collect::<Result<_>>()?;
        self.print(&found, &connection.namespace)
    }

    fn print(&self, found: &[(String, Value)], namespace: &str) -> Result<Outcome> {
        if found.is_empty() {
            bail!("there is no Pipeline of {GROUP}/{VERSION}; name files that hold one");
        }
        let mut refused = 0;
        for (origin, value) in found {
            match import(value, namespace, &self.written) {
                Ok(imported) => output::text(imported.text()?)?,
                Err(mistakes) => {
                    refused += 1;
                    for mistake in mistakes {
                        note(format_args!("{origin}: {mistake}"));
                    }
                }
            }
        }
        if refused > 0 {
            note(format_args!("{} not imported", count(refused, "Pipeline")));
        }
        Ok(Outcome::yes_if(refused == 0))
    }
}

/// Whether it is a Pipeline of Weave.
fn is_of_weave(value: &Value) -> bool {
    converted::is_of(value, GROUP) && value["kind"] == "Pipeline"
}

#[cfg(test)]
mod tests;
