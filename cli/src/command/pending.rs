//! `kubectl gate pending`

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use sluice_core::Now;
use sluice_core::question::Question;
use sluice_core::revision::Revision;
use sluice_core::simulate::Key;
use sluice_core::verdict::Reason;
use sluice_crds::approval::Vote;
use sluice_crds::{Approval, Gate};

use crate::arguments::Globals;
use crate::cluster::{self, Scope, Seen, Use, Waiting};
use crate::instant::age;
use crate::outcome::Outcome;
use crate::output::{self, Data};

/// List what waits: which change, at which gate, since when and for what
///
/// Whoever asks over HTTP and is told no waits, until it is told yes or asks no more: the
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
    message: String,
}

impl Pending {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let connection = cluster::connect(globals, Use::Requests).await?;
        let scope = match self.all_namespaces {
            true => Scope::Everywhere,
            false => Scope::Namespace,
        };
        let seen = cluster::load(&connection, &scope, false).await?;
        let now = connection.present().await.now;
        let mut rows = voted_on(&seen, now);
        match cluster::waiting(&connection, &scope, now.at).await {
            Ok((asking, note)) => {
                rows.extend(asking.into_iter().map(Row::from));
                note.iter().for_each(output::note);
            }
            // Votes are seen all the same.
            Err(error) => output::note(format_args!("warning: {error}")),
        }
        rows.sort_by(|a, b| (a.since, &a.what).cmp(&(b.since, &b.what)));
        match self.output {
            Some(form) => output::data(form, &rows)?,
            None if rows.is_empty() => output::note("Nothing waits."),
            None => output::text(Self::table(&rows, now.at))?,
        }
        Ok(Outcome::Yes)
    }

    fn table(rows: &[Row], now: Timestamp) -> String {
        let head = ["NAMESPACE", "WAITS", "REVISION", "AT", "SINCE", "BECAUSE"];
        let cells = |row: &Row| {
            vec![
                row.namespace.clone(),
                row.what.clone(),
                row.revision.clone().unwrap_or_else(|| "any".to_owned()),
                row.gates.join(","),
                age(row.since, now),
                row.message.clone(),
            ]
        };
        let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
        output::table(&head, &rows)
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
            message,
        }
    }
}

/// The revisions that somebody has approved of, and that gates hold back all the same until more
/// people do.
fn voted_on(seen: &Seen, now: Now) -> Vec<Row> {
    let mut rows = Vec::new();
    for (keeper, votes) in votes(seen) {
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
                message,
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

/// For each gatekeeper the revisions that somebody has approved of, and since when.
fn votes(seen: &Seen) -> BTreeMap<Key, Vec<(Revision, Timestamp)>> {
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
        let known = all.entry(key).or_default();
        match known.iter_mut().find(|(other, _)| other.is(&revision)) {
            Some((_, since)) => *since = created.0.min(*since),
            None => known.push((revision, created.0)),
        }
    }
    all
}
