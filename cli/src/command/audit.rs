//! `kubectl gate audit`

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use sluice_core::revision::Revision;
use sluice_crds::State;
use sluice_crds::audit::{
    Change, Changed, Decided, Defined, Event, Forced, Lost, Promoted, Record, Step,
};

use crate::arguments::{self, Globals};
use crate::outcome::Outcome;
use crate::output;
use crate::{clock, instant};

/// Read the audit log of the controller: what was decided, what changed, who forced what
///
/// Lines that are not audit records are skipped, so you can pass the log of a pod as it is: `kubectl
/// logs deploy/gate-controller | kubectl gate audit -`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 records were found; 1 none were found; 2 the log cannot be read."
)]
pub(crate) struct Audit {
    /// The file of the log, or - for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,

    /// Only records about the gate, or any other object, of this name. With -n and no name: all records
    /// about that namespace
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    gate: Option<String>,

    /// Only records of this kind; may be given more than once
    #[arg(long = "type", value_name = "TYPE", value_enum)]
    types: Vec<Type>,

    /// Only decisions and promotions of this revision
    #[arg(long, short = 'r', value_name = "REVISION", value_parser = arguments::revision)]
    revision: Option<Revision>,

    /// Only from this instant on: RFC 3339, or a duration such as 24h, which means 24 hours ago
    #[arg(long, value_name = "INSTANT")]
    since: Option<String>,

    /// Only before this instant
    #[arg(long, value_name = "INSTANT")]
    until: Option<String>,

    /// The format to print in
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
    Promotion,
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
        let found = match self.file.as_os_str() == "-" {
            true => self.print(io::stdin().lock(), &wanted),
            false => match File::open(&self.file) {
                Ok(file) => self.print(BufReader::new(file), &wanted),
                Err(error) => Err(error.into()),
            },
        };
        let cannot = || format!("cannot read {}", self.file.display());
        let (found, others) = found.with_context(cannot)?;
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
        Ok(ago) => Ok(clock::now().saturating_sub(ago).unwrap_or(Timestamp::MIN)),
        Err(_) => instant::parse(text, None),
    }
}

impl Wanted<'_> {
    fn is(&self, record: &Record) -> bool {
        let (at, event) = (record.at.0, &record.event);
        let is_of_type = || type_of(event).is_some_and(|it| self.types.contains(&it));
        self.since.is_none_or(|since| at >= since)
            && self.until.is_none_or(|until| at < until)
            && (self.types.is_empty() || is_of_type())
            && (self.gate == (None, None) || concerns(event, self.gate))
            && self
                .revision
                .is_none_or(|revision| is_about(event, revision))
    }
}

fn type_of(event: &Event) -> Option<Type> {
    match event {
        Event::Decision(_) => Some(Type::Decision),
        Event::Transition(_) => Some(Type::Transition),
        Event::Override(_) => Some(Type::Override),
        Event::Definition(_) => Some(Type::Definition),
        Event::Promotion(_) => Some(Type::Promotion),
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
        Event::Promotion(promoted) => {
            let mut gates = promoted.decided_by.iter();
            is(&promoted.pipeline) || gates.any(|gate| is(gate))
        }
        Event::Lost(_) => true,
        Event::Unknown => false,
    }
}

fn is_about(event: &Event, revision: &Revision) -> bool {
    let asked = match event {
        Event::Decision(decided) => decided.decision.subject.revision.as_deref(),
        Event::Promotion(promoted) => Some(promoted.revision.as_str()),
        Event::Lost(_) => return true,
        Event::Transition(_) | Event::Override(_) | Event::Definition(_) | Event::Unknown => None,
    };
    let asked = asked.and_then(|text| Revision::parse(text).ok());
    asked.is_some_and(|asked| asked.is(revision))
}

/// One record in one line, for people: when, of what sort it is, whom it is about, what happened.
fn told(record: &Record) -> String {
    let at = record.at.0.strftime("%Y-%m-%d %H:%M:%S");
    let (sort, who, what) = match &record.event {
        Event::Decision(decided) => ("decision", asker(decided), of_decision(decided)),
        Event::Transition(changed) => ("transition", changed.gate.clone(), of_change(changed)),
        Event::Override(forced) => ("override", forced.gate.clone(), of_force(forced)),
        Event::Definition(defined) => ("definition", object(defined), of_definition(defined)),
        Event::Promotion(promoted) => {
            let who = format!("{} ({})", promoted.pipeline, promoted.environment);
            ("promotion", who, of_promotion(promoted))
        }
        Event::Lost(Lost { records, message }) => {
            let what = format!("{records} records: {message}");
            ("lost", "-".to_owned(), what)
        }
        Event::Unknown => ("unknown", "-".to_owned(), String::new()),
    };
    format!("{at}  {sort:<10}  {who}  {what}")
}

fn asker(decided: &Decided) -> String {
    let subject = &decided.decision.subject;
    let name = subject.name.as_ref().map(|name| format!("/{name}"));
    let name = name.unwrap_or_default();
    let environment = subject.environment.as_ref().map(|it| format!(" ({it})"));
    let environment = environment.unwrap_or_default();
    format!("{}/{}{name}{environment}", subject.namespace, subject.kind)
}

fn of_decision(decided: &Decided) -> String {
    let decision = &decided.decision;
    let (style, word) = match decision.allowed {
        true => (output::style(State::Open), "allowed"),
        false => (output::style(State::Closed), "held back"),
    };
    let step = decision.subject.step.as_ref().map(|it| format!(" {it}"));
    let revision = decision
        .subject
        .revision
        .as_ref()
        .map(|it| format!(" of {it}"));
    let by = decided
        .asked_by
        .as_ref()
        .map(|by| format!(", asked by {by}"));
    let again = match decided.repeated {
        0 => String::new(),
        more => format!(", {more} times more"),
    };
    format!(
        "{}{}{} {style}{word}{style:#}{}{again}: {}",
        decision.subject.action,
        step.unwrap_or_default(),
        revision.unwrap_or_default(),
        by.unwrap_or_default(),
        decision.message
    )
}

fn of_change(changed: &Changed) -> String {
    let from = changed.from.map_or("new".to_owned(), output::state);
    let to = output::state(changed.to);
    format!("{from} → {to} ({}): {}", changed.reason, changed.message)
}

fn of_force(forced: &Forced) -> String {
    let verb = match forced.step {
        Step::Began => "began",
        Step::Ended => "ended",
        Step::Refused => "refused",
    };
    let force = forced.force.as_ref().map(|force| {
        let (by, reason) = (&force.by, &force.reason);
        let state = output::state(State::from(force.state));
        format!(" {state} by {by} until {} ({reason})", force.until.0)
    });
    format!("{verb}{}: {}", force.unwrap_or_default(), forced.message)
}

fn object(defined: &Defined) -> String {
    let object = &defined.object;
    let place = object.namespace.as_ref().map(|it| format!("{it}/"));
    format!(
        "{}{}/{}",
        place.unwrap_or_default(),
        object.kind,
        object.name
    )
}

fn of_definition(defined: &Defined) -> String {
    let verb = match defined.change {
        Change::Created => "created",
        Change::Changed => "changed",
        Change::Deleted => "deleted",
    };
    let by = defined.changed_by.first();
    let by = by
        .map(|by| format!(" by {}", by.manager))
        .unwrap_or_default();
    let shown = |value: &Option<serde_json::Value>| match value {
        Some(value) => value.to_string(),
        None => "nothing".to_owned(),
    };
    let differences = defined.differences.iter();
    let differences = differences
        .map(|it| format!("{}: {} → {}", it.field, shown(&it.before), shown(&it.after)))
        .collect::<Vec<_>>();
    match differences.as_slice() {
        [] => format!("{verb}{by}: {}", defined.spec),
        some => format!("{verb}{by}: {}", some.join("; ")),
    }
}

fn of_promotion(promoted: &Promoted) -> String {
    let Promoted {
        pipeline: _,
        environment: _,
        revision,
        run,
        phase,
        reason,
        message,
        pull_request,
        decided_by,
    } = promoted;
    let reason = reason.as_ref().map(|reason| format!(" ({reason})"));
    let by = match decided_by.as_slice() {
        [] => String::new(),
        gates => format!(", decided by {}", gates.join(", ")),
    };
    let said = [message, pull_request].into_iter().flatten();
    let said: String = said.map(|said| format!(": {said}")).collect();
    let reason = reason.unwrap_or_default();
    format!("{revision} in run {run} {phase:?}{reason}{by}{said}")
}

#[cfg(test)]
mod tests;
