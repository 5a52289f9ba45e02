//! `kubectl gate audit`

use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use sluice_core::revision::Revision;
use sluice_crds::audit::{Change, Event, Forced, Record, Step};
use sluice_crds::{Setting, State};

use super::about;
use crate::arguments::Globals;
use crate::instant;
use crate::outcome::Outcome;
use crate::output;

/// Read the controller's audit log: what was decided, what changed, who forced what
///
/// Lines that are no records are skipped, so that the log of a pod can be read as it is:
/// `kubectl logs deploy/gate-controller | kubectl gate audit -`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 something was found; 1 nothing was; 2 the log cannot be read."
)]
pub(crate) struct Audit {
    /// The log, or - for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,

    /// Only what concerns this gate, or the object of this name; without it, with -n, whatever
    /// concerns the namespace
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    gate: Option<String>,

    /// Only records of this kind; may be given more than once
    #[arg(long = "type", value_name = "TYPE", value_enum)]
    types: Vec<Type>,

    /// Only decisions about this revision
    #[arg(long, short = 'r', value_name = "REVISION", value_parser = about::parse)]
    revision: Option<Revision>,

    /// Only from this instant on: RFC 3339, or a duration such as 24h for so long ago
    #[arg(long, value_name = "INSTANT")]
    since: Option<String>,

    /// Only before this instant
    #[arg(long, value_name = "INSTANT")]
    until: Option<String>,

    /// How to print
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "table")]
    output: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Table,
    /// The lines as they are.
    Json,
}

/// The kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Type {
    Decision,
    Transition,
    Override,
    Definition,
    Lost,
}

/// Which records are wanted.
struct Wanted<'a> {
    /// A namespace and a name, where they matter.
    gate: (Option<&'a str>, Option<&'a str>),
    types: &'a [Type],
    revision: Option<&'a Revision>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl Audit {
    pub(super) fn run(&self, globals: &Globals) -> Result<Outcome> {
        let since = self.since.as_deref().map(since).transpose()?;
        let until = self.until.as_deref();
        let until = until.map(|text| instant::parse(text, None)).transpose()?;
        let gate = self.gate.as_deref();
        let wanted = Wanted {
            gate: match gate.and_then(|gate| gate.split_once('/')) {
                Some((namespace, name)) => (Some(namespace), Some(name)),
                None => (globals.namespace.as_deref(), gate),
            },
            types: &self.types,
            revision: self.revision.as_ref(),
            since,
            until,
        };
        let file = self.file.display();
        let from: Box<dyn BufRead> = match self.file.as_os_str() == "-" {
            true => Box::new(io::stdin().lock()),
            false => {
                let opened = std::fs::File::open(&self.file);
                Box::new(BufReader::new(
                    opened.with_context(|| format!("cannot read {file}"))?,
                ))
            }
        };
        let found = self.print(from, &wanted);
        let (found, others) = found.with_context(|| format!("cannot read {file}"))?;
        if others > 0 {
            output::note(format_args!("skipped: {others} lines that are no records"));
        }
        if found == 0 {
            output::note("No record is so.");
        }
        Ok(Outcome::yes_if(found > 0))
    }

    /// Prints the records that are wanted. How many they are, and how many lines are no records.
    fn print(&self, from: impl BufRead, wanted: &Wanted<'_>) -> Result<(usize, usize)> {
        let (mut found, mut others) = (0, 0);
        for line in from.split(b'\n') {
            let line = line?;
            match serde_json::from_slice::<Record>(&line) {
                Ok(record) if wanted.is(&record) => {
                    found += 1;
                    match self.output {
                        Form::Json => output::line(String::from_utf8_lossy(&line))?,
                        Form::Table => output::line(told(&record))?,
                    }
                }
                Ok(_) => {}
                Err(_) => others += usize::from(!line.trim_ascii().is_empty()),
            }
        }
        Ok((found, others))
    }
}

/// An instant, or how long ago.
fn since(text: &str) -> Result<Timestamp> {
    match instant::parse_duration(text) {
        Ok(ago) => Ok(crate::clock::now()
            .saturating_sub(ago)
            .unwrap_or(Timestamp::MIN)),
        Err(_) => instant::parse(text, None),
    }
}

impl Wanted<'_> {
    fn is(&self, record: &Record) -> bool {
        let at = record.at.0;
        self.since.is_none_or(|since| at >= since)
            && self.until.is_none_or(|until| at < until)
            && (self.types.is_empty()
                || type_of(&record.event).is_some_and(|it| self.types.contains(&it)))
            && (self.gate == (None, None) || concerns(&record.event, self.gate))
            && self
                .revision
                .is_none_or(|revision| is_about(&record.event, revision))
    }
}

fn type_of(event: &Event) -> Option<Type> {
    match event {
        Event::Decision(_) => Some(Type::Decision),
        Event::Transition(_) => Some(Type::Transition),
        Event::Override(_) => Some(Type::Override),
        Event::Definition(_) => Some(Type::Definition),
        Event::Lost(_) => Some(Type::Lost),
        Event::Unknown => None,
    }
}

/// Whether an event is about an object of that name, in that namespace. That lines were lost
/// concerns everybody, and what is in no namespace those in all of them.
fn concerns(event: &Event, (namespace, name): (Option<&str>, Option<&str>)) -> bool {
    let is_so = |in_: Option<&str>, its: Option<&str>| {
        name.is_none_or(|name| its == Some(name))
            && namespace.is_none_or(|namespace| in_.is_none_or(|in_| in_ == namespace))
    };
    let is = |full: &str| match full.split_once('/') {
        Some((in_, its)) => is_so(Some(in_), Some(its)),
        None => is_so(None, Some(full)),
    };
    match event {
        Event::Decision(decided) => {
            let subject = &decided.decision.subject;
            let mut checked = decided.decision.checked.iter();
            is_so(Some(&subject.namespace), subject.name.as_deref())
                || checked.any(|gate| is(&gate.gate))
        }
        Event::Transition(changed) => is(&changed.gate),
        Event::Override(forced) => is(&forced.gate),
        Event::Definition(defined) => {
            let object = &defined.object;
            is_so(object.namespace.as_deref(), Some(&object.name))
        }
        Event::Lost(_) => true,
        Event::Unknown => false,
    }
}

fn is_about(event: &Event, revision: &Revision) -> bool {
    let Event::Decision(decided) = event else {
        return matches!(event, Event::Lost(_));
    };
    let asked = decided.decision.subject.revision.as_deref();
    let asked = asked.and_then(|text| Revision::parse(text).ok());
    asked.is_some_and(|asked| asked.is(revision))
}

/// One record in one line, for people.
fn told(record: &Record) -> String {
    let at = record.at.0.strftime("%Y-%m-%d %H:%M:%S");
    let (what, who, message) = words(&record.event);
    format!("{at}  {what:<10}  {who}  {message}")
}

/// What sort of record it is, whom it is about, and what happened.
fn words(event: &Event) -> (&'static str, String, String) {
    match event {
        Event::Decision(decided) => {
            let decision = &decided.decision;
            let state = match decision.allowed {
                true => State::Open,
                false => State::Closed,
            };
            let (style, word) = match decision.allowed {
                true => (output::style(state), "allowed"),
                false => (output::style(state), "held back"),
            };
            let subject = &decision.subject;
            let name = subject.name.as_ref().map(|name| format!("/{name}"));
            let who = format!(
                "{}/{}{}",
                subject.namespace,
                subject.kind,
                name.unwrap_or_default()
            );
            let revision = subject.revision.as_ref();
            let revision = revision.map(|it| format!(" of {it}")).unwrap_or_default();
            let by = decided.asked_by.as_ref();
            let by = by.map(|by| format!(", asked by {by}")).unwrap_or_default();
            let again = match decided.repeated {
                0 => String::new(),
                more => format!(", {more} times more"),
            };
            let action = &subject.action;
            let message = &decision.message;
            (
                "decision",
                who,
                format!("{action}{revision} {style}{word}{style:#}{by}{again}: {message}"),
            )
        }
        Event::Transition(changed) => {
            let from = changed.from.map_or("new".to_owned(), output::state);
            let to = output::state(changed.to);
            let (reason, message) = (&changed.reason, &changed.message);
            (
                "transition",
                changed.gate.clone(),
                format!("{from} → {to} ({reason}): {message}"),
            )
        }
        Event::Override(forced) => ("override", forced.gate.clone(), of_force(forced)),
        Event::Definition(defined) => {
            let object = &defined.object;
            let place = object.namespace.as_ref().map(|it| format!("{it}/"));
            let who = format!(
                "{}{}/{}",
                place.unwrap_or_default(),
                object.kind,
                object.name
            );
            let verb = match defined.change {
                Change::Created => "created",
                Change::Changed => "changed",
                Change::Deleted => "deleted",
            };
            let mut by = defined.changed_by.iter().map(|it| it.manager.as_str());
            let by = by.next().map(|by| format!(" by {by}")).unwrap_or_default();
            let shown = |value: &Option<serde_json::Value>| match value {
                Some(value) => value.to_string(),
                None => "nothing".to_owned(),
            };
            let differences = defined
                .differences
                .iter()
                .map(|it| format!("{}: {} → {}", it.field, shown(&it.before), shown(&it.after)));
            let differences: Vec<String> = differences.collect();
            let what = match differences.as_slice() {
                [] => format!(": {}", defined.spec),
                some => format!(": {}", some.join("; ")),
            };
            ("definition", who, format!("{verb}{by}{what}"))
        }
        Event::Lost(lost) => (
            "lost",
            "-".to_owned(),
            format!("{} records: {}", lost.records, lost.message),
        ),
        Event::Unknown => ("unknown", "-".to_owned(), String::new()),
    }
}

fn of_force(forced: &Forced) -> String {
    let verb = match forced.step {
        Step::Began => "began",
        Step::Ended => "ended",
        Step::Refused => "refused",
    };
    let force = forced.force.as_ref().map(|force| {
        let state = match force.state {
            Setting::Open => State::Open,
            Setting::Closed => State::Closed,
        };
        let (state, by, reason) = (output::state(state), &force.by, &force.reason);
        format!(" {state} by {by} until {} ({reason})", force.until.0)
    });
    format!("{verb}{}: {}", force.unwrap_or_default(), forced.message)
}

#[cfg(test)]
mod tests;
