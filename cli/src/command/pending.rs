//! `kubectl gate pending`

use std::fmt::Debug;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use kube::Resource;
use kube::api::ListParams;
use kube::core::NamespaceResourceScope;
use serde::de::DeserializeOwned;
use sluice_core::delivery::gated_source::KIND;
use sluice_core::delivery::{pipeline, promotion_strategy, rollout};
use sluice_core::offline::simulate::Key;
use sluice_core::revision;
use sluice_crds::{GatedSource, Pipeline, PromotionStrategy, RevertCommit, Rollout};

use crate::arguments::Globals;
use crate::cluster::{self, Connection, Scope, Use};
use crate::instant::{Zone, age};
use crate::outcome::Outcome;
use crate::output::{self, Data, warn};
use crate::view;
use crate::view::pending::{self, Row};

/// List the changes that wait: which change, at which gate, since when and why
///
/// A gated source is listed while its gates hold back its newest revision that is not out. A program
/// that asks over HTTP is listed after the answer was no, until the answer is yes or it stops asking.
/// A pipeline is listed once for each promotion that waits for gates, for a person or for a merge, and a
/// promotion strategy once for each environment that waits, but for those that wait for another environment.
/// A revert is listed while its pull request waits, and a rollout while a batch waits for gates or people.
/// The controller reports programs by Kubernetes events, which the API server keeps for an hour. A
/// revision is also listed when some people have approved it, until enough have. `kubectl gate wait`
/// does not ask the controller, so a change that waits in it is not listed.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 the list is printed, even if it is empty; 2 the answer is unknown."
)]
pub(crate) struct Pending {
    /// List all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,

    /// Print in a form for programs
    #[arg(long, short = 'o', value_name = "FORMAT")]
    output: Option<Data>,
}

impl Pending {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let connection = cluster::connect(globals, Use::Requests).await?;
        let everywhere = self.all_namespaces;
        let seen = cluster::load(&connection, &Scope::all(everywhere), false).await?;
        let now = connection.present().await.now;
        let mut rows = pending::voted_on(&seen, now);
        let sources = cluster::served(&connection, everywhere, ListParams::default()).await;
        // What else waits is listed all the same.
        let (sources, unknown): (Vec<GatedSource>, _) = match sources {
            Ok(sources) => (sources, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        rows.extend(sources.iter().filter_map(pending::held));
        let consumers = Consumers::list(&connection, everywhere).await;
        rows.extend(consumers.rows());
        match cluster::waiting(&connection, everywhere, now.at).await {
            Ok((asking, note)) => {
                // Gated sources and other consumers say themselves what they wait with.
                let is_other = |kind: &str| match kind {
                    KIND => unknown.is_some(),
                    kind => !consumers.say_of(kind),
                };
                let others = asking.into_iter().filter(|it| is_other(&it.kind));
                rows.extend(others.map(Row::from));
                note.iter().for_each(output::note);
            }
            // Votes are seen all the same.
            Err(error) => warn(error),
        }
        rows.sort_by(|a, b| (a.since, &a.what).cmp(&(b.since, &b.what)));
        match self.output {
            Some(form) => output::data(form, &rows)?,
            None if rows.is_empty() && unknown.is_none() => output::note("Nothing waits."),
            None if rows.is_empty() => {}
            None => {
                let here = connection.area(everywhere);
                let zone = Zone::of_gatekeepers(seen.world.gatekeepers.values().map(|it| &**it));
                output::text(table(&rows, now.at, here, &zone, output::width()))?;
            }
        }
        for source in &sources {
            let name = Key::of(&source.metadata);
            for warning in view::warnings(source) {
                warn(format_args!("{KIND} {name} is {warning}"));
            }
        }
        match unknown {
            Some(error) => {
                Err(error.context("cannot list which revisions gated sources hold back"))
            }
            None => Ok(Outcome::Yes),
        }
    }
}

/// What asks gates by itself, apart from gated sources. None: it cannot be listed.
struct Consumers {
    pipelines: Option<Vec<Pipeline>>,
    strategies: Option<Vec<PromotionStrategy>>,
    reverts: Option<Vec<RevertCommit>>,
    rollouts: Option<Vec<Rollout>>,
}

impl Consumers {
    async fn list(connection: &Connection, everywhere: bool) -> Self {
        Self {
            pipelines: listed(connection, everywhere).await,
            strategies: listed(connection, everywhere).await,
            reverts: listed(connection, everywhere).await,
            rollouts: listed(connection, everywhere).await,
        }
    }

    /// What they wait with, as their statuses have it.
    fn rows(&self) -> Vec<Row> {
        let views = self.pipelines.iter().flatten();
        let views = views.map(|it| pipeline::view(it, &[]));
        let mut rows: Vec<Row> = views.flat_map(|view| pending::promotions(&view)).collect();
        let strategies = self.strategies.as_deref().unwrap_or_default();
        rows.extend(strategies.iter().flat_map(pending::environments));
        let reverts = self.reverts.iter().flatten();
        rows.extend(reverts.filter_map(|it| pending::reverting(it, strategies)));
        let rollouts = self.rollouts.iter().flatten();
        rows.extend(rollouts.filter_map(pending::batch));
        rows
    }

    /// Whether it is known of all of a kind what they wait with.
    fn say_of(&self, kind: &str) -> bool {
        match kind {
            pipeline::KIND => self.pipelines.is_some(),
            promotion_strategy::KIND => self.strategies.is_some(),
            promotion_strategy::REVERT => self.strategies.is_some() && self.reverts.is_some(),
            rollout::KIND => self.rollouts.is_some(),
            _ => false,
        }
    }
}

/// All of a kind. What else waits is listed all the same.
async fn listed<K>(connection: &Connection, everywhere: bool) -> Option<Vec<K>>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let found = cluster::served(connection, everywhere, ListParams::default()).await;
    found.map_err(warn).ok()
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
    let cells = rows
        .iter()
        .map(|row| cells(row, now, zone)[from..].to_vec());
    let head = head[from..]
        .iter()
        .map(|title| (*title).to_owned())
        .collect();
    let rows = std::iter::once(head).chain(cells).collect();
    output::table_with_causes(rows, columns)
}

/// One for each column. A gate in its own namespace is named without it.
fn cells(row: &Row, now: Timestamp, zone: &Zone) -> Vec<String> {
    let own = format!("{}/", row.namespace);
    let gates = row.gates.iter();
    let gates = gates.map(|gate| gate.strip_prefix(&own).unwrap_or(gate));
    let revision = row.revision.as_deref();
    vec![
        row.namespace.clone(),
        row.what.clone(),
        revision.map_or_else(|| "any".to_owned(), revision::short),
        gates.collect::<Vec<_>>().join(","),
        age(row.since, now),
        row.until.map(|at| zone.wall(at)).unwrap_or_default(),
        because(row).to_owned(),
    ]
}

/// The cause, without what stands beside it: who waits, that a gate holds it back, and which.
fn because(row: &Row) -> &str {
    let said = &row.message;
    let because = match said.split_once("held back by ") {
        // Events begin with who asks.
        Some((who, because)) if who.is_empty() || who.ends_with(": ") => because,
        Some(_) | None => said,
    };
    match row.gates.as_slice() {
        [gate] => (because.strip_prefix(gate.as_str()))
            .and_then(|because| because.strip_prefix(": "))
            .unwrap_or(because),
        _ => because,
    }
}

#[cfg(test)]
mod tests;
