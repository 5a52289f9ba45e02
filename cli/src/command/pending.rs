//! `kubectl gate pending`

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use sluice_core::Now;
use sluice_core::delivery::gated_source::KIND;
use sluice_core::gatekeeper::approval::Approvals;
use sluice_core::offline::simulate::Key;
use sluice_core::revision::{self, Revision};
use sluice_core::verdict::Reason;
use sluice_core::verdict::question::Question;
use sluice_crds::approval::Vote;
use sluice_crds::gatekeeper::Kind;
use sluice_crds::{Approval, Gate, GatedSource};

use super::source;
use crate::arguments::Globals;
use crate::cluster::{self, Scope, Seen, Use, Waiting};
use crate::instant::{Zone, age};
use crate::outcome::Outcome;
use crate::output::{self, Data};

/// The condition of one whose gates hold something back.
const BLOCKED: &str = "Blocked";
/// Before a cause that is written below what waits.
const INDENT: &str = "    ";

/// List what waits: which change, at which gate, since when and for what
///
/// A gated source waits with the newest revision that has not gone out, for as long as its gates hold
/// that back. Whoever asks over HTTP and is told no waits, until it is told yes or asks no more: the
/// controller tells so by Events, which the API server keeps for an hour. And so does a revision
/// that people have begun to approve of, until enough have. Whoever runs `kubectl gate wait` asks
/// no controller, and is not listed.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 it is listed, whether or not anything waits; 2 it cannot be told."
)]
pub(crate) struct Pending {
    /// In all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,

    /// Print for programs
    #[arg(long, short = 'o', value_name = "FORMAT")]
    output: Option<Data>,
}

/// Something that waits.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    namespace: String,
    /// What waits: `Kind/name`, or a vote.
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    gates: Vec<String>,
    since: Timestamp,
    /// When the answer may be another one by time alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
    message: String,
    /// What else is wrong with whoever waits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Pending {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let connection = cluster::connect(globals, Use::Requests).await?;
        let scope = match self.all_namespaces {
            true => Scope::everywhere(),
            false => Scope::namespace(),
        };
        let seen = cluster::load(&connection, &scope, false).await?;
        let now = connection.present().await.now;
        let mut rows = voted_on(&seen, now);
        let sources = cluster::sources(&connection, &scope).await;
        // What else waits is listed all the same.
        let (sources, untold) = match sources {
            Ok(sources) => (sources, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        rows.extend(sources.iter().filter_map(held));
        match cluster::waiting(&connection, &scope, now.at).await {
            Ok((asking, note)) => {
                // Gated sources say themselves what they wait with.
                let others = asking
                    .into_iter()
                    .filter(|it| untold.is_some() || it.kind != KIND);
                rows.extend(others.map(Row::from));
                note.iter().for_each(output::note);
            }
            // Votes are seen all the same.
            Err(error) => output::note(format_args!("warning: {error}")),
        }
        rows.sort_by(|a, b| (a.since, &a.what).cmp(&(b.since, &b.what)));
        match self.output {
            Some(form) => output::data(form, &rows)?,
            None if rows.is_empty() && untold.is_none() => output::note("Nothing waits."),
            None if rows.is_empty() => {}
            None => {
                let here = (!self.all_namespaces).then_some(&*connection.namespace);
                let zone = zone(&seen);
                output::text(table(&rows, now.at, here, &zone, output::width()))?;
            }
        }
        for source in &sources {
            let name = Key::of(&source.metadata);
            for warning in source::warnings(source) {
                output::note(format_args!("warning: {KIND} {name} is {warning}"));
            }
        }
        match untold {
            Some(error) => Err(error.context("what gated sources wait with cannot be told")),
            None => Ok(Outcome::Yes),
        }
    }
}

/// The zone in which the windows are written of the gates that were looked at; see
/// [`Zone::shared`].
fn zone(seen: &Seen) -> Zone {
    let gatekeepers = seen.world.gatekeepers.values();
    let schedules = gatekeepers.filter_map(|it| it.spec.schedule.as_ref());
    Zone::shared(schedules.map(|schedule| schedule.time_zone.as_str()))
}

/// The rows, where the namespace of all of them is known: `here`. Where the cause does not fit
/// beside what waits, it is written below it.
fn table(
    rows: &[Row],
    now: Timestamp,
    here: Option<&str>,
    zone: &Zone,
    columns: Option<usize>,
) -> String {
    let until = format!("UNTIL ({})", zone.name);
    let elsewhere = |row: &Row| here != Some(&row.namespace);
    let from = usize::from(!rows.iter().any(elsewhere));
    let head = [
        "NAMESPACE",
        "WAITS",
        "REVISION",
        "AT",
        "SINCE",
        &until,
        "BECAUSE",
    ];
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.cells(now, zone)[from..].to_vec())
        .collect();
    let head = &head[from..];
    let beside = output::table(head, &rows);
    let fits = |columns| beside.lines().all(|line| line.chars().count() <= columns);
    let Some(columns) = columns.filter(|columns| !fits(*columns)) else {
        return beside;
    };
    let short: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row[..row.len() - 1].to_vec())
        .collect();
    let table = output::table(&head[..head.len() - 1], &short);
    let mut lines = table.lines();
    let mut text = lines
        .next()
        .map(|head| format!("{head}\n"))
        .unwrap_or_default();
    for (line, row) in lines.zip(&rows) {
        text += &format!("{line}\n");
        let because = row.last().map_or("", String::as_str);
        for line in output::wrapped(because, columns.saturating_sub(INDENT.len())) {
            text += &format!("{INDENT}{line}\n");
        }
    }
    text
}

impl Row {
    /// One for each column. A gate in its own namespace is named without it.
    fn cells(&self, now: Timestamp, zone: &Zone) -> Vec<String> {
        let own = format!("{}/", self.namespace);
        let gates = self.gates.iter();
        let gates = gates.map(|gate| gate.strip_prefix(&own).unwrap_or(gate));
        let revision = self.revision.as_deref();
        vec![
            self.namespace.clone(),
            self.what.clone(),
            revision.map_or_else(|| "any".to_owned(), revision::short),
            gates.collect::<Vec<_>>().join(","),
            age(self.since, now),
            self.until.map(|at| zone.wall(at)).unwrap_or_default(),
            self.because().to_owned(),
        ]
    }

    /// The cause, without what stands beside it: who waits, that a gate holds it back, and which.
    fn because(&self) -> &str {
        let said = &self.message;
        let because = match said.split_once("held back by ") {
            // Events begin with who asks.
            Some((who, because)) if who.is_empty() || who.ends_with(": ") => because,
            Some(_) | None => said,
        };
        match self.gates.as_slice() {
            [gate] => (because.strip_prefix(gate.as_str()))
                .and_then(|because| because.strip_prefix(": "))
                .unwrap_or(because),
            _ => because,
        }
    }
}

impl From<Waiting> for Row {
    fn from(waiting: Waiting) -> Self {
        let Waiting {
            namespace,
            kind,
            name,
            revision,
            gates,
            since,
            next,
            message,
        } = waiting;
        Self {
            namespace,
            what: match name {
                Some(name) => format!("{kind}/{name}"),
                None => kind,
            },
            revision,
            gates,
            since,
            until: next,
            message,
            warnings: Vec::new(),
        }
    }
}

/// What a gated source waits with, as its status has it. None: it waits with nothing.
fn held(source: &GatedSource) -> Option<Row> {
    let status = source.status.as_ref()?;
    let blocked = status.conditions.iter().find(|it| it.type_ == BLOCKED);
    let blocked = blocked.filter(|it| it.status == "True");
    let pending = status.pending.as_ref();
    let since = match (pending, blocked) {
        (Some(pending), _) => pending.since.0,
        // It suspends its sources, and nobody knows what they would bring.
        (None, Some(blocked)) => blocked.last_transition_time.0,
        (None, None) => return None,
    };
    let decision = cluster::last_decision(source).filter(|decision| !decision.allowed);
    let turn = pending.and_then(|pending| pending.admit_at.as_ref());
    let decided = decision.filter(|_| turn.is_none());
    let next = decided.and_then(|decision| decision.next.as_ref());
    let message = match (turn, decided, blocked) {
        _ if source.spec.suspend => "the gated source is suspended".to_owned(),
        (Some(_), ..) => "its gates admit it, and spread has it wait for its turn".to_owned(),
        (None, Some(decision), _) => decision.message.clone(),
        (None, None, Some(blocked)) => blocked.message.clone(),
        (None, None, None) => "no controller has said why".to_owned(),
    };
    let key = Key::of(&source.metadata);
    Some(Row {
        namespace: key.namespace,
        what: format!("{KIND}/{}", key.name),
        revision: pending.map(|pending| pending.revision.clone()),
        gates: decided.map(|it| it.decided_by.clone()).unwrap_or_default(),
        since,
        until: turn.or(next).map(|at| at.0),
        message,
        warnings: source::warnings(source),
    })
}

/// The revisions that somebody has approved of, and that gates hold back all the same until more
/// people do.
fn voted_on(seen: &Seen, now: Now) -> Vec<Row> {
    let mut rows = Vec::new();
    for (keeper, votes) in votes(seen, now.at) {
        for (revision, since) in votes {
            let question = Question::new(now, Some(&revision));
            let held: Vec<(String, String)> = (seen.world.gates.iter())
                .filter_map(|(key, gate)| {
                    Some((key.to_string(), awaited(seen, gate, &keeper, question)?))
                })
                .collect();
            let Some((_, message)) = held.last().cloned() else {
                continue;
            };
            rows.push(Row {
                namespace: keeper.namespace.clone(),
                what: format!("gatekeeper/{}", keeper.name),
                revision: Some(revision.to_string()),
                gates: held.into_iter().map(|(gate, _)| gate).collect(),
                since,
                until: None,
                message,
                warnings: Vec::new(),
            });
        }
    }
    rows
}

/// What `keeper` says to a gate that it holds back until more people approve. None: it does not.
fn awaited(seen: &Seen, gate: &Gate, keeper: &Key, question: Question<'_>) -> Option<String> {
    let mut named = gate.spec.gatekeepers.iter();
    let place = named.position(|reference| Key::named_by(gate, reference) == *keeper)?;
    let mut scene = seen.scene(&Key::of(&gate.metadata), question.now.at)?;
    let told = seen
        .decide(&mut scene, question)
        .verdicts
        .into_iter()
        .nth(place)?;
    let waits = told.verdict.reason == Reason::AwaitingApproval.as_str();
    waits.then_some(told.verdict.message)
}

/// For each gatekeeper the revisions that somebody approves of, and since when. Of approvals that have
/// run out nothing waits.
fn votes(seen: &Seen, now: Timestamp) -> BTreeMap<Key, Vec<(Revision, Timestamp)>> {
    let mut all: BTreeMap<Key, Vec<(Revision, Timestamp)>> = BTreeMap::new();
    let approves = |approval: &&Arc<Approval>| {
        approval.spec.decision == Vote::Approve && approval.metadata.deletion_timestamp.is_none()
    };
    for approval in seen.world.approvals.values().filter(approves) {
        let created = approval.metadata.creation_timestamp.as_ref();
        let (Ok(revision), Some(created)) = (Revision::parse(&approval.spec.revision), created)
        else {
            continue;
        };
        let key = Key {
            namespace: Key::of(&approval.metadata).namespace,
            name: approval.spec.gatekeeper_ref.name.clone(),
        };
        if rule(seen, &key).is_some_and(|rule| !rule.is_in_force(approval, now)) {
            continue;
        }
        let known = all.entry(key).or_default();
        match known.iter_mut().find(|(other, _)| other.is(&revision)) {
            Some((_, since)) => *since = created.0.min(*since),
            None => known.push((revision, created.0)),
        }
    }
    all
}

/// How a gatekeeper counts approvals. None: it is no such gatekeeper, or its spec is refused.
fn rule(seen: &Seen, keeper: &Key) -> Option<Approvals> {
    match seen.world.gatekeepers.get(keeper)?.spec.kind() {
        Ok(Kind::Approval(spec)) => Approvals::read(spec, "spec.approval").ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
