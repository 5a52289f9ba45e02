//! `kubectl gate pipeline`

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::arguments::{Globals, Kind, pipeline_name};
use crate::cluster::{self, Use};
use crate::outcome::Outcome;
use crate::output::{self, Data, warn};
use crate::picture::{self, Look};
use crate::view::listing::Wanted;
use crate::view::{Promoting, promoting};

mod import;
mod new;
mod objects;
mod steer;
mod versions;

/// Show pipelines: which revision is on its way, how far it is, and what it waits for
///
/// Without a name all pipelines are listed; those that need somebody come first. With a name, the
/// environments of the pipeline are drawn, with what each target runs, who has approved what, the pull
/// requests, and what is waited for. What is shown is what the status of the pipeline says.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Pipeline {
    /// The pipeline [default: list all]
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// List all namespaces
    #[arg(long, short = 'A', conflicts_with = "name")]
    all_namespaces: bool,

    /// Use only ASCII characters [default: if the locale is not UTF-8]
    #[arg(long)]
    ascii: bool,

    /// Print in a form for programs
    #[arg(long, short = 'o', value_name = "FORMAT")]
    output: Option<Data>,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Versions(versions::Versions),
    /// Pause a pipeline: it promotes, merges and closes nothing until it is resumed
    ///
    /// Sets spec.suspend. What is written in Git wins, if it says otherwise: then change it there. If the
    /// admission policies are installed, you need the verbs `patch` and `pause` on the pipeline.
    Pause(steer::Steer),
    /// Resume a pipeline that is paused
    ///
    /// Removes spec.suspend. What is written in Git wins, if it says otherwise: then change it there. If
    /// the admission policies are installed, you need the verbs `patch` and `pause` on the pipeline.
    Resume(steer::Steer),
    /// Promote the revision of the first environment again, in another run
    ///
    /// Use it after a pull request was closed without a merge, or after a promotion had no effect. The
    /// other run needs approvals of its own. If the admission policies are installed, you need the verbs
    /// `patch` and `retry` on the pipeline.
    Retry(steer::Steer),
    Objects(objects::Objects),
    New(Box<new::New>),
    Import(import::Import),
}

impl Pipeline {
    /// What it does without a cluster. None: it needs one.
    pub(super) fn run_offline(&self, globals: &Globals) -> Option<Result<Outcome>> {
        match &self.command {
            Some(Command::Import(import)) if import.is_offline() => {
                Some(import.run_offline(globals))
            }
            Some(Command::New(new)) => Some(new.run_offline(globals)),
            Some(_) | None => None,
        }
    }

    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        match &self.command {
            None => self.show(globals).await,
            Some(Command::Versions(versions)) => versions.run(globals).await,
            Some(Command::Pause(steer)) => steer.run(globals, steer::Way::Pause).await,
            Some(Command::Resume(steer)) => steer.run(globals, steer::Way::Resume).await,
            Some(Command::Retry(steer)) => steer.run(globals, steer::Way::Retry).await,
            Some(Command::Objects(objects)) => objects.run(globals).await,
            Some(Command::New(new)) => new.run_offline(globals),
            Some(Command::Import(import)) => import.run(globals).await,
        }
    }

    async fn show(&self, globals: &Globals) -> Result<Outcome> {
        let name = self.name.as_deref().map(pipeline_name).transpose()?;
        let connection = cluster::connect(globals, Use::Requests).await?;
        if name.is_none() && self.output.is_none() {
            return self.list(&connection).await;
        }
        let found = promoting(&connection, name.as_deref(), self.all_namespaces).await?;
        found.notes.iter().for_each(warn);
        let Promoting {
            views, zone, now, ..
        } = &found;
        let look = Look::here(self.ascii);
        match (self.output, views.as_slice(), &name) {
            (Some(form), [one], Some(_)) => output::data(form, one)?,
            (Some(form), ..) => output::data(form, views)?,
            (None, ..) => {
                let drawn = views.iter();
                let drawn = drawn.map(|view| picture::pipeline(view, look, zone, *now));
                output::text(drawn.collect::<String>())?;
            }
        }
        Ok(Outcome::Yes)
    }

    async fn list(&self, connection: &cluster::Connection) -> Result<Outcome> {
        let wanted = Wanted::all(Kind::Pipeline, self.all_namespaces);
        let listing = wanted.list(connection, None).await?;
        match listing.rows.as_slice() {
            [] => output::note(wanted.nothing("no pipelines", connection)),
            _ => output::text(output::table(&listing.brief(self.all_namespaces)))?,
        }
        Ok(Outcome::Yes)
    }
}
