//! `kubectl gate pipeline objects`

use std::collections::BTreeSet;

use anyhow::Result;
use clap::Args;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;
use sluice_core::offline::simulate::Key;
use sluice_core::revision::short;
use sluice_crds::Pipeline;
use sluice_crds::pipeline::{Environment, marks};

use crate::arguments::{Globals, pipeline_name};
use crate::cluster::{self, Apps, Connection, Use};
use crate::explain::{self, Branch};
use crate::outcome::Outcome;
use crate::output::{self, warn};

mod words;

use words::{source_of, told_source, triggers};

/// Show the objects of Flux behind a pipeline: the apps, their sources, and what makes the first
/// environment change
///
/// The first environment starts a run, so it is shown what makes its sources look again: Receivers,
/// ImageUpdateAutomations, and the interval. Apps in the namespaces of the pipeline may say by the
/// annotations pipelines.weave.works/pipeline and pipelines.weave.works/environment where they belong:
/// what is wrong there is told. Objects on other clusters are not looked at.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 nothing is wrong with annotations; 1 something is; 2 it is not known."
)]
pub(crate) struct Objects {
    /// The pipeline
    #[arg(value_name = "NAME")]
    name: String,
}

/// What is shown, and what is wrong.
#[derive(Default)]
struct Shown {
    branches: Vec<Branch>,
    mistakes: Vec<String>,
    notes: Vec<String>,
}

impl Objects {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let name = pipeline_name(&self.name)?;
        let connection = cluster::connect(globals, Use::Requests).await?;
        let object: Pipeline = cluster::existing(&connection, &name).await?;
        let mut apps = Apps::new(&connection);
        let mut shown = Shown::default();
        for (place, environment) in object.spec.environments.iter().enumerate() {
            let branch = shown
                .environment(&mut apps, &object, environment, place == 0)
                .await?;
            shown.branches.push(branch);
        }
        shown.dangling(&connection, &mut apps, &object).await?;
        let app = &object.spec.app_ref;
        let head = format!(
            "Pipeline {}: {} {}\n",
            Key::of(&object.metadata),
            app.kind,
            app.name
        );
        output::text(head + &explain::branches(&shown.branches))?;
        for mistake in &shown.mistakes {
            output::line(format_args!("error: {mistake}"))?;
        }
        shown.notes.iter().for_each(warn);
        Ok(Outcome::yes_if(shown.mistakes.is_empty()))
    }
}

impl Shown {
    async fn environment(
        &mut self,
        apps: &mut Apps<'_>,
        object: &Pipeline,
        environment: &Environment,
        is_first: bool,
    ) -> Result<Branch> {
        let mut inside = Vec::new();
        for target in &environment.targets {
            let namespace = &target.namespace;
            let (kind, name) = (&object.spec.app_ref.kind, &object.spec.app_ref.name);
            if let Some(cluster) = &target.cluster_ref {
                let line = format!(
                    "{kind} {namespace}/{name} is on the cluster {}",
                    cluster.name
                );
                inside.push(Branch::of(line));
                continue;
            }
            let found = apps.of(object, namespace).await?;
            match found.into_iter().find(|it| it.name_any() == *name) {
                None => inside.push(Branch::of(format!("there is no {kind} {namespace}/{name}"))),
                Some(app) => {
                    self.marks(object, environment, &app);
                    inside.push(self.app(apps, kind, &app, is_first).await?);
                }
            }
        }
        Ok(Branch {
            lines: vec![environment.name.clone()],
            inside,
        })
    }

    /// An app with its source; of the first environment also what makes that look again.
    async fn app(
        &mut self,
        apps: &mut Apps<'_>,
        kind: &str,
        app: &DynamicObject,
        is_first: bool,
    ) -> Result<Branch> {
        let line = format!("{kind} {}{}", Key::of(&app.metadata), runs(&app.data));
        let Some(named) = source_of(app) else {
            return Ok(Branch::of(line));
        };
        let source = apps.source(&named).await?;
        let mut behind = Branch::of(told_source(&named, source.as_ref()));
        if is_first {
            let namespace = named.key.namespace.clone();
            let receivers = self.seen(apps.receivers(&namespace).await);
            let automations = self.seen(apps.automations(&namespace).await);
            let lines = triggers(&named, source.as_ref(), app, &receivers, &automations);
            behind.inside = lines.into_iter().map(Branch::of).collect();
        }
        Ok(Branch {
            lines: vec![line],
            inside: vec![behind],
        })
    }

    /// What may not be seen is told, and shown as if there were none.
    fn seen(&mut self, found: Result<Vec<DynamicObject>>) -> Vec<DynamicObject> {
        found.unwrap_or_else(|error| {
            self.notes.push(format!("{error:#}"));
            Vec::new()
        })
    }

    /// Whether the annotations of a target's app say that it belongs here.
    fn marks(&mut self, object: &Pipeline, environment: &Environment, app: &DynamicObject) {
        let own = Key::of(&object.metadata);
        let at = Key::of(&app.metadata);
        let says = |mark: &str| app.annotations().get(mark);
        if let Some(named) = says(marks::PIPELINE)
            && Key::from_text(&at.namespace, named) != own
        {
            self.mistakes.push(format!(
                "{at} is a target of {own}, and its annotation {} names {named}; write {own}",
                marks::PIPELINE
            ));
        }
        if let Some(named) = says(marks::ENVIRONMENT)
            && *named != environment.name
        {
            self.mistakes.push(format!(
                "{at} is a target of {}, and its annotation {} names {named}; write {}",
                environment.name,
                marks::ENVIRONMENT,
                environment.name
            ));
        }
    }

    /// Apps beside the targets whose annotation names a pipeline that is not there.
    async fn dangling(
        &mut self,
        connection: &Connection,
        apps: &mut Apps<'_>,
        object: &Pipeline,
    ) -> Result<()> {
        let targets = object.spec.environments.iter().flat_map(|it| &it.targets);
        let here = targets.filter(|it| it.cluster_ref.is_none());
        let namespaces: BTreeSet<&str> = here.map(|it| it.namespace.as_str()).collect();
        for namespace in namespaces {
            for app in apps.of(object, namespace).await? {
                let Some(named) = app.annotations().get(marks::PIPELINE) else {
                    continue;
                };
                let key = Key::from_text(namespace, named);
                let found: Option<Pipeline> = cluster::find(connection, &key).await?;
                if found.is_none() {
                    let at = Key::of(&app.metadata);
                    self.mistakes.push(format!(
                        "{at}: its annotation {} names the Pipeline {key}, which does not exist; \
                         correct it, or create that Pipeline",
                        marks::PIPELINE
                    ));
                }
            }
        }
        Ok(())
    }
}

/// What an app runs, as its status says.
fn runs(app: &Value) -> String {
    let status = &app["status"];
    let newest = &status["history"][0]["chartVersion"];
    let revision = status["lastAppliedRevision"].as_str().or(newest.as_str());
    let runs = revision.map(|revision| format!(" runs {}", short(revision)));
    runs.unwrap_or_default()
}
