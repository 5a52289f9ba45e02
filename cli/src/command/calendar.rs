//! `kubectl gate calendar`

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;
use sluice_core::delivery::gated_source;
use sluice_core::gate::Identity;
use sluice_core::offline::simulate::{Key, Scene, World};
use sluice_core::revision::{self, Revision};
use sluice_core::time::span::Span;

use super::simulate::{Change, changes};
use super::{about, input};
use crate::arguments::Globals;
use crate::clock;
use crate::cluster::{self, Connection, Scope, Use};
use crate::instant::{self, Zone};
use crate::outcome::Outcome;
use crate::output::{self, Data};
use crate::picture::{self, Look, Picture};

mod of_source;

/// Show the coming days of gates as a picture
///
/// A row for each day, a cell for each half hour: when a gate is open, closed, or forced, and
/// what closes it. Where the revision decides, that is drawn; with --revision it is asked. Of a gated
/// source, named as gatedsource/app: when all its gates and those of gate policies let something out,
/// then each gate by itself.
#[derive(Debug, Args)]
pub(crate) struct Calendar {
    /// The gates, and gated sources as gatedsource/NAME [default: all gates of the namespace, or of
    /// the files]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// In all namespaces
    #[arg(long, short = 'A', conflicts_with_all = ["names", "paths"])]
    all_namespaces: bool,

    /// Gates in this file, without a cluster: a YAML or JSON file, a folder, or - for standard
    /// input; may be given more than once
    #[arg(long = "filename", short = 'f', value_name = "FILE")]
    paths: Vec<PathBuf>,

    /// The revision that is to go out, as Flux writes it
    #[arg(long, short = 'r', value_name = "REVISION", value_parser = about::parse)]
    revision: Option<Revision>,

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

/// What a picture is about.
#[derive(Clone, Debug)]
pub(super) enum Of {
    Gate(Key),
    /// All the gates that a gated source has to pass.
    Source(Key),
}

/// A picture, and what it is about.
pub(super) type Shown = (Of, Picture);

/// The changes of a gate, or of a gated source, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gated_source: Option<&'a str>,
    namespace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    zone: &'a str,
    from: String,
    to: String,
    /// Where it changes too often to be looked at up to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    known_until: Option<String>,
    changes: Vec<Change<'a>>,
}

impl Calendar {
    /// Whether it is about files.
    pub(super) fn is_offline(&self) -> bool {
        !self.paths.is_empty()
    }

    pub(super) fn run_offline(&self, globals: &Globals) -> Result<Outcome> {
        if let Some(name) = self
            .names
            .iter()
            .find(|name| cluster::source_name(name).is_some())
        {
            bail!(
                "`{name}`: what holds a gated source back is known in a cluster alone; name its gates"
            );
        }
        let (zone, now) = (self.zone()?, clock::now());
        let from = self.from(zone.as_ref(), now)?;
        let world = input::read(&self.paths, globals, from)?;
        let keys: Vec<Key> = if self.names.is_empty() {
            world.gate_names().into_iter().cloned().collect()
        } else {
            let chosen = self.names.iter().map(|name| chosen(&world, name, globals));
            chosen.collect::<Result<_>>()?
        };
        if keys.is_empty() {
            bail!("there is no Gate in these files; write one, or name files that hold one");
        }
        let scene = |key| Some((key, Scene::new(&world, key, Identity::Trusted, from)?));
        let scenes = keys.iter().filter_map(scene).collect();
        self.print(&self.gates(scenes, &Frame { zone, from, now }))
    }

    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let zone = self.zone()?;
        let (sources, names): (Vec<_>, Vec<_>) =
            (self.names.iter()).partition(|name| cluster::source_name(name).is_some());
        let names = names.into_iter().map(|name| cluster::gate_name(name));
        let names = names.collect::<Result<Vec<_>>>()?;
        let connection = cluster::connect(globals, Use::Requests).await?;
        let mut shown = Vec::new();
        if sources.is_empty() || !names.is_empty() {
            let scope = match (names.is_empty(), self.all_namespaces) {
                (false, _) => Scope::Named(names),
                (true, true) => Scope::everywhere(),
                (true, false) => Scope::namespace(),
            };
            let seen = cluster::load(&connection, &scope, self.trust_unverified_identity).await?;
            let frame = self.frame(&connection, zone.as_ref()).await?;
            let scene = |key| Some((key, seen.scene(key, frame.now)?));
            let scenes = seen.world.gates.keys().filter_map(scene).collect();
            shown.extend(self.gates(scenes, &frame));
        }
        for name in sources.iter().filter_map(|name| cluster::source_name(name)) {
            let source = cluster::source(&connection, &name).await?;
            let subject = gated_source::subject(&source, None);
            let scope = Scope::Of(Box::new(source.clone()), Box::new(subject));
            let seen = cluster::load(&connection, &scope, self.trust_unverified_identity).await?;
            let frame = self.frame(&connection, zone.as_ref()).await?;
            shown.extend(of_source::pictures(&seen, &source, &frame, self));
            for note in &seen.notes {
                output::note(format_args!("warning: {note}"));
            }
        }
        if shown.is_empty() {
            output::note("There are no gates.");
            return Ok(Outcome::Yes);
        }
        self.print(&shown)
    }

    async fn frame(&self, connection: &Connection, zone: Option<&Zone>) -> Result<Frame> {
        let now = connection.present().await.now.at;
        Ok(Frame {
            zone: zone.cloned(),
            from: self.from(zone, now)?,
            now,
        })
    }

    fn zone(&self) -> Result<Option<Zone>> {
        self.zone.as_deref().map(Zone::named).transpose()
    }

    fn from(&self, zone: Option<&Zone>, now: Timestamp) -> Result<Timestamp> {
        self.from
            .as_ref()
            .map_or(Ok(now), |from| instant::parse(from, zone))
    }

    /// A picture of each gate.
    fn gates(&self, scenes: Vec<(&Key, Scene)>, frame: &Frame) -> Vec<Shown> {
        let several = scenes
            .iter()
            .any(|(key, _)| key.namespace != scenes[0].0.namespace);
        let shown = scenes.into_iter().map(|(key, mut scene)| {
            let name = self.about(match several {
                true => key.to_string(),
                false => key.name.clone(),
            });
            let own = || Zone::of(&scene);
            let (zone, span) = frame.of(own, self.days);
            let stretches = scene.stretches_about(span, self.revision.as_ref());
            let picture = Picture {
                name,
                zone,
                now: frame.now,
                span,
                stretches,
            };
            (Of::Gate(key.clone()), picture)
        });
        shown.collect()
    }

    /// What the picture of something is called.
    fn about(&self, name: String) -> String {
        match &self.revision {
            Some(revision) => format!("{name} for {}", revision::short(&revision.to_string())),
            None => name,
        }
    }

    fn print(&self, pictures: &[Shown]) -> Result<Outcome> {
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
            Some(Form::Json) => output::data(Data::Json, &self.told(pictures))?,
            Some(Form::Yaml) => output::data(Data::Yaml, &self.told(pictures))?,
        }
        Ok(Outcome::Yes)
    }

    fn told<'a>(&self, pictures: &'a [Shown]) -> Vec<Told<'a>> {
        let revision = self.revision.as_ref().map(ToString::to_string);
        let told = pictures.iter().map(|(of, picture)| {
            let (key, is_gate) = match of {
                Of::Gate(key) => (key, true),
                Of::Source(key) => (key, false),
            };
            let name = Some(key.name.as_str());
            Told {
                gate: name.filter(|_| is_gate),
                gated_source: name.filter(|_| !is_gate),
                namespace: &key.namespace,
                revision: revision.clone(),
                zone: &picture.zone.name,
                from: picture.span.start.to_string(),
                to: picture.span.end.to_string(),
                known_until: picture.stretches.cut_off.map(|known| known.to_string()),
                changes: changes(&picture.stretches),
            }
        });
        told.collect()
    }
}

/// Which days, and the instant to mark.
pub(super) struct Frame {
    /// None: that of each gate.
    zone: Option<Zone>,
    from: Timestamp,
    pub(super) now: Timestamp,
}

impl Frame {
    /// The zone, which is `own` unless another is asked for, and the time of so many days there.
    pub(super) fn of(&self, own: impl FnOnce() -> Zone, days: u16) -> (Zone, Span) {
        let zone = self.zone.clone().unwrap_or_else(own);
        let span = Span {
            start: self.from,
            end: Picture::end(self.from, days, &zone),
        };
        (zone, span)
    }
}

/// The gate of that name in files, unless the name is that of another file.
fn chosen(world: &World, name: &str, globals: &Globals) -> Result<Key> {
    input::choose(world, Some(name), globals).map_err(|error| match Path::new(name).exists() {
        true => anyhow!("`{name}` is taken for the name of a gate; write -f before each file"),
        false => error,
    })
}
