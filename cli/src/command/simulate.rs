//! `kubectl gate simulate`

use std::num::NonZeroU32;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use sluice_core::Now;
use sluice_core::gate::Identity;
use sluice_core::offline::simulate::{Key, Scene, Stretch, Stretches, World};
use sluice_core::revision::Revision;
use sluice_core::time::span::Span;
use sluice_crds::{Setting, State};

use crate::arguments::{About, Files, Globals, setting};
use crate::instant::{self, Zone};
use crate::outcome::Outcome;
use crate::output::{self, Data, say};
use crate::view::{Change, Decided, changes};
use crate::{explain, files};

mod promotions;
mod rollouts;

/// Show the state of a gate in files at an instant, or how it changes over time, without a cluster; or
/// what a pipeline in files would promote, or which batches of a rollout would go out
///
/// If the files have gatekeepers but no gate, each gatekeeper is simulated with a gate of the same name
/// that lists it alone. An annotation that forces a gate counts as if the person whom it names had
/// written it at the first instant of the simulation. An Approval without a creationTimestamp counts as
/// if it had been created at that instant. No calendar is read from an address, and nothing is measured:
/// write into --evidence what would be measured. The status of objects is ignored, except for that of
/// pipelines and of the apps that they promote.
///
/// With --pipeline, the files need the apps of its targets with their statuses, as `kubectl get -o yaml`
/// prints them. For targets on other clusters, the status of the pipeline says what runs there. Each
/// promotion is shown with the decision of its gates. Pull requests count as merged, and promoted revisions
/// as running, as soon as the gates admit it.
///
/// With --rollout, each batch is shown with its pods and the instant at which the gates let it out. The files
/// need the workloads of the rollout, or --replicas says how many pods they have. Pods count as available,
/// hooks as passed and metrics as good as soon as they are wanted.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 the answer is printed, and is as expected; 1 it is not as expected; 2 the input is \
refused: what lint refuses, no gate, several gates without --gate.")]
pub(crate) struct Simulate {
    #[command(flatten)]
    files: Files,

    /// What the gatekeepers observe. A YAML file that has, for each [NAMESPACE/]NAME, `value` (metric),
    /// `status` and `body` (http), `objects` or `report` (external); or `unavailable` or `broken`, with
    /// the cause; and `since`, with an instant
    #[arg(long, value_name = "FILE")]
    evidence: Option<PathBuf>,

    #[command(flatten)]
    about: About,

    /// The gate, if the files have several
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    gate: Option<String>,

    /// Show what this pipeline would promote
    #[arg(long, value_name = "[NAMESPACE/]NAME", conflicts_with_all = ["gate", "expect", "revision"])]
    pipeline: Option<String>,

    /// Show which batches of this rollout would go out, and when
    #[arg(long, value_name = "[NAMESPACE/]NAME", conflicts_with_all = ["gate", "pipeline", "expect", "revision"])]
    rollout: Option<String>,

    /// How many pods a workload of the rollout has, in place of what the files say; may be given more than
    /// once
    #[arg(long, value_name = "WORKLOAD=NUMBER", requires = "rollout", value_parser = rollouts::replicas)]
    replicas: Vec<(String, NonZeroU32)>,

    /// The instant: RFC 3339, or a local time with --zone
    #[arg(long, value_name = "INSTANT", required_unless_present = "from", conflicts_with_all = ["from", "to"])]
    at: Option<String>,

    /// Only check whether the gate is in this state, at the instant or all the time. The exit code is
    /// the answer
    #[arg(long, value_name = "STATE", value_parser = setting)]
    expect: Option<Setting>,

    /// The start of the time whose changes are shown
    #[arg(long, value_name = "INSTANT", requires = "to")]
    from: Option<String>,

    /// The end of the time whose changes are shown
    #[arg(long, value_name = "INSTANT", requires = "from")]
    to: Option<String>,

    /// The IANA time zone of instants that you write without an offset, and of those that are shown
    /// [default: instants are shown in the time zone of the gate]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,

    /// Ignore annotations that force the gate, as a controller does if it cannot verify who wrote them
    #[arg(long)]
    unverified: bool,

    /// Print in a form for programs
    #[arg(long, short = 'o', value_name = "FORMAT")]
    output: Option<Data>,
}

impl Simulate {
    pub(super) fn run(&self, globals: &Globals) -> Result<Outcome> {
        let zone = self.zone.as_deref().map(Zone::named).transpose()?;
        let instant = |text: &String| instant::parse(text, zone.as_ref());
        let at = self.at.as_ref().map(instant).transpose()?;
        let from = self.from.as_ref().map(instant).transpose()?;
        let to = self.to.as_ref().map(instant).transpose()?;
        let Some(start) = at.or(from) else {
            bail!("say when: --at INSTANT, or --from INSTANT --to INSTANT")
        };
        let namespace = globals.namespace_of_files();
        let mut world = files::world(&self.files.paths, namespace, start)?;
        if let Some(path) = &self.evidence {
            files::give(&mut world, path, namespace, start)?;
        }
        let named = globals.namespace.as_deref();
        let end = to.unwrap_or(start);
        if (self.pipeline.is_some() || self.rollout.is_some()) && end < start {
            bail!("--to: {end} is earlier than --from {start}; write a later instant");
        }
        let span = Span { start, end };
        if let Some(name) = &self.pipeline {
            let asked = promotions::Asked {
                world: &world,
                name,
                namespace: named,
                span,
                identity: self.identity(),
                zone,
            };
            return asked.run(self.output);
        }
        if let Some(name) = &self.rollout {
            let asked = rollouts::Asked {
                world: &world,
                name,
                namespace: named,
                sizes: self.replicas.iter().cloned().collect(),
                span,
                identity: self.identity(),
                zone,
            };
            return asked.run(self.output);
        }
        let key = files::choose(&world, self.gate.as_deref(), named)?;
        let mut scene = self.scene(&world, &key, start)?;
        let shown = zone.unwrap_or_else(|| Zone::of(&scene));
        match to {
            None => self.at(&mut scene, start, &shown),
            Some(end) if end <= start => {
                bail!("--to: {end} is not later than --from {start}; write a later instant")
            }
            Some(end) => self.through(&mut scene, &key, Span { start, end }, &shown),
        }
    }

    fn scene(&self, world: &World, key: &Key, from: Timestamp) -> Result<Scene> {
        let scene = Scene::new(world, key, self.identity(), from);
        scene.with_context(|| format!("there is no gate {key}"))
    }

    fn identity(&self) -> Identity {
        match self.unverified {
            true => Identity::Unverified,
            false => Identity::Trusted,
        }
    }

    fn at(&self, scene: &mut Scene, at: Timestamp, zone: &Zone) -> Result<Outcome> {
        let decision = scene.decide(self.about.at(Now::given(at)));
        let line = explain::line(&decision);
        let expected = self.expect.map(State::from);
        let is_so = expected.is_none_or(|expected| expected == decision.state);
        let decided = Decided::new(scene, decision, self.about.revision.as_ref());
        match (self.output, expected) {
            (Some(form), _) => output::data(form, &decided.data())?,
            (None, Some(expected)) if !is_so => say!("expected {expected}, but {line}")?,
            (None, Some(_)) => output::line(line)?,
            (None, None) => {
                say!("At {at}, {}:", zone.text(at))?;
                output::text(explain::tree(&decided, zone))?;
            }
        }
        Ok(Outcome::yes_if(is_so))
    }

    fn through(&self, scene: &mut Scene, key: &Key, span: Span, zone: &Zone) -> Result<Outcome> {
        let complaints = scene.complaints(span.start);
        let course = Course {
            key,
            revision: self.about.revision.as_ref(),
            stretches: scene.stretches_about(span, self.about.revision.as_ref()),
            ignored: complaints.iter().map(ToString::to_string).collect(),
        };
        let expected = self.expect.map(State::from);
        match (self.output, expected) {
            (Some(form), _) => output::data(form, &course.told())?,
            (None, Some(expected)) => output::line(course.compared(expected, zone))?,
            (None, None) => output::text(course.table(zone))?,
        }
        let other = expected.and_then(|expected| course.first_other_than(expected));
        match course.stretches.cut_off {
            _ if other.is_some() => Ok(Outcome::No),
            None => Ok(Outcome::Yes),
            Some(known) => {
                bail!("it changes too often to be told beyond {known}; choose an earlier --to")
            }
        }
    }
}

/// How a gate changes over time.
struct Course<'a> {
    key: &'a Key,
    revision: Option<&'a Revision>,
    stretches: Stretches,
    /// What is wrong with the annotations that force it.
    ignored: Vec<String>,
}

impl Course<'_> {
    /// Where the gate is first in another state.
    fn first_other_than(&self, expected: State) -> Option<&Stretch> {
        let mut stretches = self.stretches.list.iter();
        stretches.find(|stretch| stretch.answer.state != expected)
    }

    /// Whether it is in the expected state all the time, in a line.
    fn compared(&self, expected: State, zone: &Zone) -> String {
        let name = &self.key.name;
        match self.first_other_than(expected) {
            None => format!("{name} is {} all of that time", output::state(expected)),
            Some(Stretch {
                span,
                answer,
                causes,
                ..
            }) => format!(
                "expected {expected}, but {name} is {} from {} ({}): {}",
                output::state(answer.state),
                zone.text(span.start),
                answer.reason,
                causes.join("; ")
            ),
        }
    }

    fn table(&self, zone: &Zone) -> String {
        let about = self.revision.map(|revision| format!(" for {revision}"));
        let about = about.unwrap_or_default();
        let mut text = format!("Gate {}{about}, times in {}\n", self.key, zone.name);
        text.push_str(&table(&self.stretches, zone));
        for ignored in &self.ignored {
            text.push_str(&format!("ignored: {ignored}\n"));
        }
        text
    }

    fn told(&self) -> Told<'_> {
        Told {
            gate: &self.key.name,
            namespace: &self.key.namespace,
            revision: self.revision.map(ToString::to_string),
            changes: changes(&self.stretches),
            ignored: &self.ignored,
        }
    }
}

fn table(stretches: &Stretches, zone: &Zone) -> String {
    let mut text = String::new();
    let local = |at: Timestamp| {
        let zoned = at.to_zoned(zone.zone.clone());
        // Tells apart the two readings of an hour that clocks show twice.
        zoned.strftime("%a %Y-%m-%d %H:%M:%S %:z").to_string()
    };
    let state = |stretch: &Stretch| stretch.answer.state.to_string();
    let width = stretches.changes().map(|it| state(it).len()).max();
    let width = width.unwrap_or_default();
    for change in stretches.changes() {
        let style = output::style(change.answer.state);
        let state = format!("{style}{:<width$}{style:#}", state(change));
        let (at, causes) = (change.span.start, change.causes.join("; "));
        let (utc, local) = (at.to_string(), local(at));
        text += &format!("{utc:<20}  {local}  {state}  {causes}\n");
    }
    text
}

#[derive(Debug, Serialize)]
struct Told<'a> {
    gate: &'a str,
    namespace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    changes: Vec<Change<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    ignored: &'a [String],
}
