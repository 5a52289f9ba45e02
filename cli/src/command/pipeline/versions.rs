//! `kubectl gate pipeline versions`

use std::collections::BTreeSet;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use sluice_core::delivery::pipeline::{View, target_name};
use sluice_core::revision::short;
use sluice_crds::pipeline::TargetStatus;

use crate::arguments::{Globals, pipeline_name};
use crate::cluster::{self, Use};
use crate::outcome::Outcome;
use crate::output::{self, Data};
use crate::picture::revisions;
use crate::view::promoting;

/// Show which versions run where: the revision and spec.versions of each app in each environment
///
/// An app has one line for its revision, and one for each of spec.versions. Where the targets of an
/// environment run different versions, all of them are shown.
#[derive(Debug, Args)]
pub(crate) struct Versions {
    /// The pipelines [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Show all namespaces
    #[arg(long, short = 'A', conflicts_with = "names")]
    all_namespaces: bool,

    /// Print in a form for programs: one entry for each target
    #[arg(long, short = 'o', value_name = "FORMAT")]
    output: Option<Data>,
}

/// What one target runs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Running<'v> {
    namespace: &'v str,
    pipeline: &'v str,
    environment: &'v str,
    target: String,
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<&'v str>,
    versions: &'v std::collections::BTreeMap<String, String>,
}

impl Versions {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let names = self.names.iter().map(|name| pipeline_name(name));
        let names: Vec<String> = names.collect::<Result<_>>()?;
        let connection = cluster::connect(globals, Use::Requests).await?;
        let mut views = Vec::new();
        for name in &names {
            views.extend(promoting(&connection, Some(name), false).await?.views);
        }
        if names.is_empty() {
            views = promoting(&connection, None, self.all_namespaces)
                .await?
                .views;
        }
        match self.output {
            Some(form) => output::data(form, &running(&views))?,
            None if views.is_empty() => output::note("There are no pipelines."),
            None => output::text(output::table(&table(&views, self.all_namespaces)))?,
        }
        Ok(Outcome::Yes)
    }
}

/// One entry for each target.
fn running(views: &[View]) -> Vec<Running<'_>> {
    let environments = views
        .iter()
        .flat_map(|view| view.environments.iter().map(move |it| (view, it)));
    let targets = environments.flat_map(|(view, environment)| {
        environment.targets.iter().map(move |target| Running {
            namespace: &view.namespace,
            pipeline: &view.name,
            environment: &environment.name,
            target: target_name(target),
            ready: target.ready,
            revision: target.revision.as_deref(),
            versions: &target.versions,
        })
    });
    targets.collect()
}

/// A column for each environment of any pipeline, in the order in which they come first.
fn table(views: &[View], with_namespace: bool) -> Vec<Vec<String>> {
    let mut environments: Vec<&str> = Vec::new();
    for environment in views.iter().flat_map(|view| &view.environments) {
        if !environments.contains(&environment.name.as_str()) {
            environments.push(&environment.name);
        }
    }
    let titles = ["NAMESPACE", "PIPELINE", "VERSION"].map(str::to_owned);
    let head = titles.into_iter();
    let head = head.chain(environments.iter().map(|name| (*name).to_owned()));
    let mut rows: Vec<Vec<String>> = vec![head.collect()];
    for view in views {
        let targets = view.environments.iter().flat_map(|it| &it.targets);
        let named: BTreeSet<&String> = targets.flat_map(|it| it.versions.keys()).collect();
        let lines = [None].into_iter().chain(named.into_iter().map(Some));
        for line in lines {
            let what = line.map_or("revision", String::as_str);
            let mut row = vec![view.namespace.clone(), view.name.clone(), what.to_owned()];
            row.extend(environments.iter().map(|name| {
                let mut all = view.environments.iter();
                let environment = all.find(|it| it.name == **name);
                let targets = environment.map(|it| it.targets.as_slice());
                cell(targets.unwrap_or_default(), line)
            }));
            rows.push(row);
        }
    }
    if !with_namespace {
        rows.iter_mut().for_each(|row| drop(row.remove(0)));
    }
    rows
}

/// What the targets of an environment run, each once: their revisions, or one of their versions.
fn cell(targets: &[TargetStatus], version: Option<&String>) -> String {
    let Some(name) = version else {
        return revisions(targets);
    };
    let mut known: Vec<String> = Vec::new();
    for text in targets.iter().filter_map(|it| it.versions.get(name)) {
        let text = short(text);
        if !known.contains(&text) {
            known.push(text);
        }
    }
    known.join(", ")
}

#[cfg(test)]
mod tests;
