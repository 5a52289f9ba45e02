//! `kubectl gate calendar`

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;
use sluice_core::gate::Identity;
use sluice_core::simulate::{Key, Scene};
use sluice_core::span::Span;

use super::input;
use super::simulate::{Change, changes};
use crate::arguments::Globals;
use crate::clock;
use crate::cluster::{self, Scope, Use};
use crate::instant::{self, Zone};
use crate::outcome::Outcome;
use crate::output::{self, Data};
use crate::picture::{self, Look, Picture};

/// Show the coming days of gates as a picture
///
/// A row for each day, a cell for each half hour: when a gate is open, closed, or forced, and
/// what closes it.
#[derive(Debug, Args)]
pub(crate) struct Calendar {
    /// The gates [default: all of the namespace, or of the files]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// In all namespaces
    #[arg(long, short = 'A', conflicts_with_all = ["names", "paths"])]
    all_namespaces: bool,

    /// Gates in these files, without a cluster: YAML or JSON files, folders, or - for standard input
    #[arg(long = "filename", short = 'f', value_name = "FILES", num_args = 1..)]
    paths: Vec<PathBuf>,

    /// How many days
    #[arg(long, value_name = "NUMBER", default_value = "7", value_parser = clap::value_parser!(u16).range(1..=366))]
    days: u16,

    /// The first instant: RFC 3339, or a local time with --zone [default: now]
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,

    /// The IANA time zone of the days [default: the gate's own]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,

    /// Draw with ASCII alone [default: where the locale is not UTF-8]
    #[arg(long)]
    ascii: bool,

    /// Let forces count although nobody verified who they are from
    #[arg(long)]
    trust_unverified_identity: bool,

    /// How to print, if not as a picture for the terminal
    #[arg(long, short = 'o', value_name = "FORMAT")]
    output: Option<Form>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    Json,
    Yaml,
    /// A picture for a page.
    Svg,
}

/// A gate's changes for programs.
#[derive(Debug, Serialize)]
struct Told<'a> {
    gate: &'a str,
    namespace: &'a str,
    zone: &'a str,
    from: String,
    to: String,
    changes: Vec<Change<'a>>,
}

impl Calendar {
    /// Whether it is about files.
    pub(super) fn is_offline(&self) -> bool {
        !self.paths.is_empty()
    }

    pub(super) fn run_offline(&self, globals: &Globals) -> Result<Outcome> {
        let (zone, now) = (self.zone()?, clock::now());
        let from = self.from(zone.as_ref(), now)?;
        let world = input::read(&self.paths, globals, from)?;
        let keys: Vec<Key> = if self.names.is_empty() {
            world.gate_names().into_iter().cloned().collect()
        } else {
            let chosen = self
                .names
                .iter()
                .map(|name| input::choose(&world, Some(name), globals));
            chosen.collect::<Result<_>>()?
        };
        if keys.is_empty() {
            bail!("there is no Gate in these files; write one, or name files that hold one");
        }
        let scene = |key| Some((key, Scene::new(&world, key, Identity::Trusted, from)?));
        self.show(
            keys.iter().filter_map(scene).collect(),
            zone.as_ref(),
            from,
            now,
        )
    }

    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let zone = self.zone()?;
        let names = self.names.iter().map(|name| cluster::gate_name(name));
        let names = names.collect::<Result<Vec<_>>>()?;
        let connection = cluster::connect(globals, Use::Requests).await?;
        let scope = match (names.is_empty(), self.all_namespaces) {
            (false, _) => Scope::Named(names),
            (true, true) => Scope::Everywhere,
            (true, false) => Scope::Namespace,
        };
        let seen = cluster::load(&connection, &scope, self.trust_unverified_identity).await?;
        let now = connection.present().await.now.at;
        let from = self.from(zone.as_ref(), now)?;
        if seen.world.gates.is_empty() {
            output::note("There are no gates.");
            return Ok(Outcome::Yes);
        }
        let scene = |key| Some((key, seen.scene(key, now)?));
        self.show(
            seen.world.gates.keys().filter_map(scene).collect(),
            zone.as_ref(),
            from,
            now,
        )
    }

    fn zone(&self) -> Result<Option<Zone>> {
        self.zone.as_deref().map(Zone::named).transpose()
    }

    fn from(&self, zone: Option<&Zone>, now: Timestamp) -> Result<Timestamp> {
        self.from
            .as_ref()
            .map_or(Ok(now), |from| instant::parse(from, zone))
    }

    fn show(
        &self,
        scenes: Vec<(&Key, Scene)>,
        zone: Option<&Zone>,
        from: Timestamp,
        now: Timestamp,
    ) -> Result<Outcome> {
        let several = scenes
            .iter()
            .any(|(key, _)| key.namespace != scenes[0].0.namespace);
        let pictures: Vec<(&Key, Picture)> = scenes
            .into_iter()
            .map(|(key, mut scene)| {
                let zone = zone.cloned().unwrap_or_else(|| Zone::of(&scene));
                let span = Span {
                    start: from,
                    end: Picture::end(from, self.days, &zone),
                };
                let name = if several {
                    key.to_string()
                } else {
                    key.name.clone()
                };
                let stretches = scene.stretches(span);
                (
                    key,
                    Picture {
                        name,
                        zone,
                        now,
                        span,
                        stretches,
                    },
                )
            })
            .collect();
        self.print(&pictures)
    }

    fn print(&self, pictures: &[(&Key, Picture)]) -> Result<Outcome> {
        let drawn = || {
            pictures
                .iter()
                .map(|(_, picture)| picture.clone())
                .collect::<Vec<_>>()
        };
        match self.output {
            None => {
                let unicode = !self.ascii && output::is_unicode();
                let look = Look {
                    width: output::columns(),
                    unicode,
                };
                output::text(picture::terminal(&drawn(), look))?;
            }
            Some(Form::Svg) => output::text(picture::svg(&drawn()))?,
            Some(Form::Json) => output::data(Data::Json, &told(pictures))?,
            Some(Form::Yaml) => output::data(Data::Yaml, &told(pictures))?,
        }
        Ok(Outcome::Yes)
    }
}

fn told<'a>(pictures: &'a [(&'a Key, Picture)]) -> Vec<Told<'a>> {
    pictures
        .iter()
        .map(|(key, picture)| Told {
            gate: &key.name,
            namespace: &key.namespace,
            zone: &picture.zone.name,
            from: picture.span.start.to_string(),
            to: picture.span.end.to_string(),
            changes: changes(&picture.stretches),
        })
        .collect()
}
