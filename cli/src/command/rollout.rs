//! `kubectl gate rollout`

use std::io::{IsTerminal, stdout};

use anyhow::Result;
use clap::Args;
use kube::api::ListParams;
use sluice_core::delivery::rollout::view;
use sluice_crds::Rollout as Object;

use crate::arguments::{Globals, Kind, rollout_name};
use crate::cluster::{self, Connection, Use, Watched};
use crate::outcome::Outcome;
use crate::output::{self, Data};
use crate::picture::{self, Look};
use crate::view::listing::Wanted;
use crate::view::{Rolling, rolling};

/// Takes away what is on a terminal, so that the next picture takes its place.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Show rollouts: how many pods have the new version, which batch is out, and what the next one waits for
///
/// Without a name all rollouts are listed, one line each. With a name, the pods of the new and of the old
/// version are drawn, and each batch is listed: how many pods it moves, how far it is, which gates have let
/// it out, and how long it has waited and worked. Below them stands what holds the rollout, until when, and
/// its deadline. What is shown is what the status of the rollout says, and how many pods its workloads have,
/// if you may see them.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 the answer is printed; with --watch, the rollout has succeeded; 1 with --watch, it has failed; \
2 the answer is unknown.")]
pub(crate) struct Rollout {
    /// The rollout [default: list all]
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// List all namespaces
    #[arg(long, short = 'A', conflicts_with = "name")]
    all_namespaces: bool,

    /// Draw it again after each change, until the rollout has succeeded or failed
    #[arg(long, short = 'w', requires = "name", conflicts_with = "output")]
    watch: bool,

    /// Use only ASCII characters [default: if the locale is not UTF-8]
    #[arg(long)]
    ascii: bool,

    /// Print in a form for programs
    #[arg(long, short = 'o', value_name = "FORMAT")]
    output: Option<Data>,
}

impl Rollout {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let name = self.name.as_deref().map(rollout_name).transpose()?;
        let r#use = match self.watch {
            true => Use::Watches,
            false => Use::Requests,
        };
        let connection = cluster::connect(globals, r#use).await?;
        match name {
            Some(name) if self.watch => self.follow(&connection, &name).await,
            Some(name) => self.show(&connection, &name).await,
            None => self.list(&connection).await,
        }
    }

    async fn show(&self, connection: &Connection, name: &str) -> Result<Outcome> {
        let found = rolling(connection, name, None).await?;
        match self.output {
            Some(form) => output::data(form, &found.view)?,
            None => output::text(self.drawn(&found))?,
        }
        Ok(Outcome::Yes)
    }

    fn drawn(&self, found: &Rolling) -> String {
        let Rolling { view, zone, now } = found;
        picture::rollout(view, Look::here(self.ascii), zone, *now)
    }

    /// Draws it, and again each time that it has changed, until the run is over.
    async fn follow(&self, connection: &Connection, name: &str) -> Result<Outcome> {
        let mut watched = Watched::default();
        watched.one::<Object>(connection, &connection.key(name));
        let is_terminal = stdout().is_terminal();
        let mut shown = None;
        loop {
            let wake = match rolling(connection, name, Some(&mut watched)).await {
                Ok(found) => {
                    let is_new = shown.as_ref() != Some(&found.view);
                    let drawn = self.drawn(&found);
                    match (is_terminal, &shown) {
                        // What was waited for and how long is not the same any more.
                        (true, _) => output::text(format!("{CLEAR}{drawn}"))?,
                        (false, None) => output::text(drawn)?,
                        (false, Some(_)) if is_new => output::text(format!("\n{drawn}"))?,
                        (false, Some(_)) => {}
                    }
                    if let Some(succeeded) = found.view.ended() {
                        return Ok(Outcome::yes_if(succeeded));
                    }
                    shown = Some(found.view);
                    None
                }
                Err(error) => cluster::again(error, shown.is_some())?,
            };
            watched.settled(wake).await;
        }
    }

    async fn list(&self, connection: &Connection) -> Result<Outcome> {
        if let Some(form) = self.output {
            let area = connection.area(self.all_namespaces);
            let objects: Vec<Object> =
                cluster::list(&connection.api(area), ListParams::default()).await?;
            let none = Default::default();
            let all: Vec<_> = objects.iter().map(|it| view(it, &none)).collect();
            output::data(form, &all)?;
            return Ok(Outcome::Yes);
        }
        let wanted = Wanted::all(Kind::Rollout, self.all_namespaces);
        let listing = wanted.list(connection, None).await?;
        match listing.rows.as_slice() {
            [] => output::note(wanted.nothing("no rollouts", connection)),
            _ => output::text(output::table(&listing.brief(self.all_namespaces)))?,
        }
        Ok(Outcome::Yes)
    }
}
