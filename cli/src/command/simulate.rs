//! `kubectl gate simulate`

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use sluice_core::Now;
use sluice_core::gate::Identity;
use sluice_core::offline::simulate::{Key, Scene, Stretch, Stretches, World};
use sluice_core::revision::Revision;
use sluice_core::time::span::Span;
use sluice_crds::{Setting, State};

use super::about::About;
use super::input::{self, Files};
use crate::arguments::Globals;
use crate::explain::{self, Decided, ignored};
use crate::instant::{self, Zone};
use crate::outcome::Outcome;
use crate::output::{self, Data};

/// Tell how a gate in files would stand at an instant, or how it changes over time, without a
/// cluster
///
/// Files with gatekeepers and no gate are simulated as if a gate of the gatekeeper's name were
/// kept by it alone. An annotation that forces a gate counts as if it had been written by whom it
/// names, at the instant that the simulation starts from; an Approval without a creationTimestamp
/// as if it had been created then. The status of objects is not looked at, no calendar is read from
/// an address, and nothing is measured: --evidence says what would be.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 it was told, and is as expected; 1 it is not as expected; 2 the input is refused: \
what lint refuses, no gate, several gates without --gate.")]
pub(crate) struct Simulate {
    #[command(flatten)]
    files: Files,

    /// What gatekeepers see that measure something: a YAML file with, for each [NAMESPACE/]NAME,
    /// `value` (metric), `status` and `body` (http), `objects` or `report` (external), or
    /// `unavailable` or `broken` and why; and `since` when
    #[arg(long, value_name = "FILE")]
    evidence: Option<PathBuf>,

    #[command(flatten)]
    about: About,

    /// The gate, where the files hold several
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    gate: Option<String>,

    /// The instant: RFC 3339, or a local time with --zone
    #[arg(long, value_name = "INSTANT", required_unless_present = "from", conflicts_with_all = ["from", "to"])]
    at: Option<String>,

    /// Say only whether the gate is in this state, at that instant or all of that time, and in the
    /// exit code
    #[arg(long, value_name = "STATE", value_parser = parse_setting)]
    expect: Option<Setting>,

    /// The first instant of a time whose changes are told
    #[arg(long, value_name = "INSTANT", requires = "to")]
    from: Option<String>,

    /// The end of that time
    #[arg(long, value_name = "INSTANT", requires = "from")]
    to: Option<String>,

    /// The IANA time zone of instants without an offset, and of those that are shown [default: the
    /// gate's own, to show]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,

    /// Leave annotations that force the gate out, as a controller does that cannot verify who
    /// wrote them
    #[arg(long)]
    unverified: bool,

    /// Print for programs
    #[arg(long, short = 'o', value_name = "FORMAT")]
    output: Option<Data>,
}

fn parse_setting(text: &str) -> Result<Setting, &'static str> {
    match text.to_ascii_lowercase().as_str() {
        "open" => Ok(Setting::Open),
        "closed" => Ok(Setting::Closed),
        _ => Err("write open or closed"),
    }
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
        let mut world = input::read(&self.files.paths, globals, start)?;
        if let Some(path) = &self.evidence {
            input::give(&mut world, path, globals, start)?;
        }
        let key = input::choose(&world, self.gate.as_deref(), globals)?;
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
        let identity = if self.unverified {
            Identity::Unverified
        } else {
            Identity::Trusted
        };
        match Scene::new(world, key, identity, from) {
            Some(scene) => Ok(scene),
            None => bail!("there is no gate {key}"),
        }
    }

    fn at(&self, scene: &mut Scene, at: Timestamp, zone: &Zone) -> Result<Outcome> {
        let decision = scene.decide(self.about.at(Now::given(at)));
        let revision = self.about.revision();
        let outcome = self.expect.map_or(Outcome::Yes, |expected| {
            Outcome::yes_if(State::from(expected) == decision.state)
        });
        match (self.output, self.expect) {
            (Some(form), _) => output::data(form, &Decided::about(&decision, revision))?,
            (None, Some(expected)) if outcome == Outcome::No => {
                let expected = State::from(expected);
                output::line(format_args!(
                    "expected {expected}, but {}",
                    explain::line(&decision)
                ))?;
            }
            (None, Some(_)) => output::line(explain::line(&decision))?,
            (None, None) => {
                output::line(format_args!("At {at}, {}:", zone.text(at)))?;
                output::text(explain::tree(scene, &decision, revision, zone, &[]))?;
            }
        }
        Ok(outcome)
    }

    fn through(&self, scene: &mut Scene, key: &Key, span: Span, zone: &Zone) -> Result<Outcome> {
        let course = Course {
            key,
            revision: self.about.revision(),
            stretches: scene.stretches_about(span, self.about.revision()),
            ignored: ignored(&scene.complaints(span.start)),
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
    let names = stretches
        .changes()
        .map(|it| it.answer.state.to_string().len());
    let width = names.max().unwrap_or_default();
    for change in stretches.changes() {
        let style = output::style(change.answer.state);
        let state = format!(
            "{style}{:<width$}{style:#}",
            change.answer.state.to_string()
        );
        let (utc, local) = (change.span.start.to_string(), local(change.span.start));
        text.push_str(&format!(
            "{utc:<20}  {local}  {state}  {}\n",
            change.causes.join("; ")
        ));
    }
    text
}

/// A change of state for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Change<'a> {
    at: String,
    state: State,
    reason: &'static str,
    causes: &'a [String],
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

/// The changes of state, the first of them where the time starts.
pub(super) fn changes(stretches: &Stretches) -> Vec<Change<'_>> {
    let change =
        |stretch: &sluice_core::offline::simulate::Stretch| (stretch.span.start, stretch.answer);
    stretches
        .changes()
        .map(|stretch| {
            let (at, answer) = change(stretch);
            Change {
                at: at.to_string(),
                state: answer.state,
                reason: answer.reason.as_str(),
                causes: &stretch.causes,
            }
        })
        .collect()
}
