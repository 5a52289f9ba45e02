//! `kubectl gate calendar`

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;
use sluice_core::gate::Identity;
use sluice_core::offline::simulate::{Key, Scene, World};
use sluice_core::revision::Revision;

use crate::arguments::{self, Globals, gate_names, promotion_name, source_name};
use crate::cluster::{self, Connection, Scope, Seen, Use};
use crate::instant::{self, Zone};
use crate::outcome::Outcome;
use crate::output::{self, Data, warn};
use crate::picture::{self, Look, Picture};
use crate::view::{Change, changes};
use crate::{clock, files};

mod shown;

use shown::{Frame, Shown, What};

/// Show the coming days of gates as a picture
///
/// Each row is a day, and each cell is half an hour: it shows when a gate is open, closed or forced,
/// and what closes it. Times at which the answer depends on the revision are marked; with --revision,
/// the answer for that revision is shown. For a gated source, named as gatedsource/app, the first
/// picture shows when all its gates and those of gate policies let something out. Then follows each
/// gate alone. The same is shown for an environment of a pipeline, named as pipeline/podinfo/prod.
#[derive(Debug, Args)]
pub(crate) struct Calendar {
    /// The gates, gated sources as gatedsource/NAME, and environments of pipelines as
    /// pipeline/NAME/ENVIRONMENT [default: all gates of the namespace, or of the files]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Show all namespaces
    #[arg(long, short = 'A', conflicts_with_all = ["names", "paths"])]
    all_namespaces: bool,

    /// Read gates from this file, without a cluster: a YAML or JSON file, a folder, or - for standard
    /// input; may be given more than once
    #[arg(long = "filename", short = 'f', value_name = "FILE")]
    paths: Vec<PathBuf>,

    /// The revision that is to go out, as Flux writes it
    #[arg(long, short = 'r', value_name = "REVISION", value_parser = arguments::revision)]
    revision: Option<Revision>,

    /// How many days to show
    #[arg(long, value_name = "NUMBER", default_value = "7", value_parser = clap::value_parser!(u16).range(1..=366))]
    days: u16,

    /// The first instant: RFC 3339, or a local time with --zone [default: now]
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,

    /// The IANA time zone of the days [default: the time zone of the gate]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,

    /// Use only ASCII characters [default: if the locale is not UTF-8]
    #[arg(long)]
    ascii: bool,

    /// Let forces count even if nobody has verified who wrote them
    #[arg(long)]
    trust_unverified_identity: bool,

    /// The format to print in, instead of a picture for the terminal
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

/// The changes of a gate, of a gated source, or of an environment of a pipeline, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gated_source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pipeline: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<&'a str>,
    namespace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    zone: &'a str,
    from: Timestamp,
    to: Timestamp,
    /// Where it changes too often to be looked at up to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    known_until: Option<Timestamp>,
    changes: Vec<Change<'a>>,
}

impl Calendar {
    /// Whether it is about files.
    pub(super) fn is_offline(&self) -> bool {
        !self.paths.is_empty()
    }

    pub(super) fn run_offline(&self, globals: &Globals) -> Result<Outcome> {
        let mut names = self.names.iter();
        let is_of_cluster =
            |name: &&String| source_name(name).is_some() || promotion_name(name).is_some();
        if let Some(name) = names.find(is_of_cluster) {
            bail!("`{name}`: what holds it back is known in a cluster alone; name its gates");
        }
        let frame = self.frame(clock::now())?;
        let from = frame.from;
        let world = files::world(&self.paths, globals.namespace_of_files(), from)?;
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
        self.print(&shown::gates(
            keys.iter().filter_map(scene).collect(),
            &frame,
        ))
    }

    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let (sources, names): (Vec<_>, Vec<_>) =
            (self.names.iter()).partition(|name| source_name(name).is_some());
        let (pipelines, names): (Vec<_>, Vec<_>) =
            (names.into_iter()).partition(|name| promotion_name(name).is_some());
        let names = gate_names(names)?;
        // What is wrong with them is said before anybody is asked.
        self.frame(clock::now())?;
        let connection = cluster::connect(globals, Use::Requests).await?;
        let mut shown = Vec::new();
        let are_meant = sources.is_empty() && pipelines.is_empty();
        if are_meant || !names.is_empty() {
            let scope = match names.is_empty() {
                false => Scope::Named(&names, None),
                true => Scope::all(self.all_namespaces),
            };
            let (seen, frame) = self.load(&connection, &scope).await?;
            let scene = |key| Some((key, seen.scene(key, frame.now)?));
            let scenes = seen.world.gates.keys().filter_map(scene).collect();
            shown.extend(shown::gates(scenes, &frame));
        }
        for name in sources.iter().filter_map(|name| source_name(name)) {
            let source = cluster::existing(&connection, &name).await?;
            let (seen, frame) = self.load(&connection, &Scope::Of(&source)).await?;
            shown.extend(shown::source(&seen, &source, &frame));
            seen.notes.iter().for_each(warn);
        }
        for (name, environment) in pipelines.iter().filter_map(|name| promotion_name(name)) {
            let object = cluster::existing(&connection, &name).await?;
            let (seen, frame) = self.load(&connection, &Scope::Promoting(&object)).await?;
            let environment = environment.as_deref();
            shown.extend(shown::pipeline(&seen, &object, environment, &frame)?);
            seen.notes.iter().for_each(warn);
        }
        if shown.is_empty() {
            output::note("There are no gates.");
            return Ok(Outcome::Yes);
        }
        self.print(&shown)
    }

    async fn load(&self, connection: &Connection, scope: &Scope<'_>) -> Result<(Seen, Frame<'_>)> {
        let seen = cluster::load(connection, scope, self.trust_unverified_identity).await?;
        let frame = self.frame(connection.present().await.now.at)?;
        Ok((seen, frame))
    }

    /// Which days, with `now` as the instant to mark.
    fn frame(&self, now: Timestamp) -> Result<Frame<'_>> {
        let zone = self.zone.as_deref().map(Zone::named).transpose()?;
        let from = self.from.as_ref();
        let from = from
            .map(|from| instant::parse(from, zone.as_ref()))
            .transpose()?;
        Ok(Frame {
            zone,
            from: from.unwrap_or(now),
            now,
            days: self.days,
            revision: self.revision.as_ref(),
        })
    }

    fn print(&self, shown: &[Shown]) -> Result<Outcome> {
        let drawn = || -> Vec<Picture> { shown.iter().map(|it| it.picture.clone()).collect() };
        match self.output {
            None => output::text(picture::terminal(&drawn(), Look::here(self.ascii)))?,
            Some(Form::Svg) => output::text(picture::svg(&drawn()))?,
            Some(Form::Json) => output::data(Data::Json, &self.told(shown))?,
            Some(Form::Yaml) => output::data(Data::Yaml, &self.told(shown))?,
        }
        Ok(Outcome::Yes)
    }

    fn told<'a>(&self, shown: &'a [Shown]) -> Vec<Told<'a>> {
        let revision = self.revision.as_ref().map(ToString::to_string);
        let told = shown.iter().map(|shown| Told {
            gate: (shown.what == What::Gate).then_some(&shown.key.name),
            gated_source: (shown.what == What::Source).then_some(&shown.key.name),
            pipeline: shown.what.is_promotion().then_some(&shown.key.name),
            environment: shown.what.environment(),
            namespace: &shown.key.namespace,
            revision: revision.clone(),
            zone: &shown.picture.zone.name,
            from: shown.picture.span.start,
            to: shown.picture.span.end,
            known_until: shown.picture.stretches.cut_off,
            changes: changes(&shown.picture.stretches),
        });
        told.collect()
    }
}

/// The gate of that name in files, unless the name is that of another file.
fn chosen(world: &World, name: &str, globals: &Globals) -> Result<Key> {
    let namespace = globals.namespace.as_deref();
    files::choose(world, Some(name), namespace).map_err(|error| match Path::new(name).exists() {
        true => anyhow!("`{name}` is taken for the name of a gate; write -f before each file"),
        false => error,
    })
}
