//! `kubectl gate get`

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use kube::api::{Api, ListParams};
use serde::Serialize;
use serde_json::{Value, json};
use sluice_core::Now;
use sluice_core::simulate::Key;
use sluice_crds::{Gate, GatedSource, Gatekeeper, State};

use super::source;
use crate::arguments::Globals;
use crate::cluster::{self, Connection, Scope, Use, explain};
use crate::instant::age;
use crate::outcome::Outcome;
use crate::output::{self, Data};

/// List gates, gatekeepers, or gated sources: their state, why, and until when
///
/// The state of a gate is decided here and now, as `check` decides it; that of a gatekeeper, and of
/// a gated source, is what its status reports.
#[derive(Debug, Args)]
pub(crate) struct Get {
    /// What to list, `gates`, `gatekeepers` or `sources`, and which of them by name [default: all
    /// gates]
    #[arg(value_name = "[KIND] NAME")]
    what: Vec<String>,

    /// In all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,

    /// Let forces count although nobody verified who they are from
    #[arg(long)]
    trust_unverified_identity: bool,

    /// How to print
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "table")]
    output: Form,
}

/// The column of the state.
const STATE: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Table,
    /// With the messages.
    Wide,
    Json,
    Yaml,
    Name,
}

/// What is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed {
    Gates,
    Gatekeepers,
    Sources,
}

/// One row of the table: namespace, name, state, whatever else there is, message.
struct Row {
    cells: Vec<String>,
    state: Option<State>,
}

impl Get {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let (listed, names) = split(&self.what)?;
        if self.all_namespaces && !names.is_empty() {
            bail!("a name belongs to one namespace; leave out --all-namespaces, or the names");
        }
        let connection = cluster::connect(globals, Use::Requests).await?;
        match listed {
            Listed::Gates => self.gates(&connection, names).await,
            Listed::Gatekeepers => self.gatekeepers(&connection, &names).await,
            Listed::Sources => self.sources(&connection, &names).await,
        }
    }

    async fn gates(&self, connection: &Connection, names: Vec<String>) -> Result<Outcome> {
        let scope = match (names.is_empty(), self.all_namespaces) {
            (false, _) => Scope::Named(names),
            (true, true) => Scope::Everywhere,
            (true, false) => Scope::Namespace,
        };
        let seen = cluster::load(connection, &scope, self.trust_unverified_identity).await?;
        if let Some(form) = self.data_form() {
            let gates: Vec<Gate> = seen.world.gates.into_values().collect();
            return self.objects(form, "gate", &gates);
        }
        let now = connection.present().await.now;
        let rows: Vec<Row> = (seen.world.gates.iter())
            .filter_map(|(key, gate)| {
                let decision = seen.decide(&mut seen.scene(key, now.at)?, now.into());
                Some(gate_row(key, gate, &decision, now))
            })
            .collect();
        self.table(
            connection,
            &["REASON", "UNTIL", "FORCED-BY", "SINCE", "AGE"],
            &rows,
        )
    }

    async fn gatekeepers(&self, connection: &Connection, names: &[String]) -> Result<Outcome> {
        let api: Api<Gatekeeper> = match self.all_namespaces {
            true => Api::all(connection.client.clone()),
            false => Api::namespaced(connection.client.clone(), &connection.namespace),
        };
        let mut found = Vec::new();
        if names.is_empty() {
            let list = api.list(&ListParams::default()).await;
            found = list
                .map_err(|error| explain(error, "list gatekeepers"))?
                .items;
        }
        for name in names {
            let one = api.get(name).await;
            found
                .push(one.map_err(|error| explain(error, &format!("read the gatekeeper {name}")))?);
        }
        if let Some(form) = self.data_form() {
            return self.objects(form, "gatekeeper", &found);
        }
        let now = connection.present().await.now.at;
        let rows: Vec<Row> = found
            .iter()
            .map(|gatekeeper| gatekeeper_row(gatekeeper, now))
            .collect();
        self.table(connection, &["KIND", "REASON", "UNTIL", "AGE"], &rows)
    }

    async fn sources(&self, connection: &Connection, names: &[String]) -> Result<Outcome> {
        let scope = match self.all_namespaces {
            true => Scope::Everywhere,
            false => Scope::Namespace,
        };
        let mut found = Vec::new();
        if names.is_empty() {
            found = cluster::sources(connection, &scope).await?;
        }
        for name in names {
            found.push(cluster::source(connection, name).await?);
        }
        if let Some(form) = self.data_form() {
            return self.objects(form, "gatedsource", &found);
        }
        let now = connection.present().await.now.at;
        let rows: Vec<Row> = found.iter().map(|source| source_row(source, now)).collect();
        let titles = ["ADMITTED", "PENDING", "DECIDED-BY", "UNTIL", "AGE"];
        self.table(connection, &titles, &rows)
    }

    fn data_form(&self) -> Option<Form> {
        (!matches!(self.output, Form::Table | Form::Wide)).then_some(self.output)
    }

    /// The objects themselves, as kubectl prints them.
    fn objects<K>(&self, form: Form, kind: &str, objects: &[K]) -> Result<Outcome>
    where
        K: Serialize + kube::ResourceExt,
    {
        let form = match form {
            Form::Yaml => Data::Yaml,
            Form::Name | Form::Table | Form::Wide => {
                for object in objects {
                    output::line(format_args!("{kind}.sluice.dev/{}", object.name_any()))?;
                }
                return Ok(Outcome::Yes);
            }
            Form::Json => Data::Json,
        };
        let mut items = objects
            .iter()
            .map(serde_json::to_value)
            .collect::<Result<Vec<Value>, _>>()?;
        let one_by_name = self.what.len() > usize::from(kind_of(self.what.first()).is_some());
        match (items.len(), one_by_name) {
            (1, true) => output::data(form, &items.remove(0))?,
            _ => output::data(
                form,
                &json!({"apiVersion": "v1", "kind": "List", "items": items}),
            )?,
        }
        Ok(Outcome::Yes)
    }

    fn table(&self, connection: &Connection, titles: &[&str], rows: &[Row]) -> Result<Outcome> {
        if rows.is_empty() {
            let place = match self.all_namespaces {
                true => "any namespace".to_owned(),
                false => format!("the namespace {}", connection.namespace),
            };
            output::note(format_args!("There are none in {place}."));
            return Ok(Outcome::Yes);
        }
        let wide = self.output == Form::Wide;
        output::text(table(titles, rows, self.all_namespaces, wide))?;
        Ok(Outcome::Yes)
    }
}

/// What a word stands for.
fn kind_of(word: Option<&String>) -> Option<Listed> {
    match word?.as_str() {
        "gate" | "gates" | "gt" => Some(Listed::Gates),
        "gatekeeper" | "gatekeepers" | "gk" => Some(Listed::Gatekeepers),
        "gatedsource" | "gatedsources" | "gs" | "source" | "sources" => Some(Listed::Sources),
        _ => None,
    }
}

/// What is asked for, and the names.
fn split(what: &[String]) -> Result<(Listed, Vec<String>)> {
    let kind = kind_of(what.first());
    let names = if kind.is_some() { &what[1..] } else { what };
    let sources: Option<Vec<String>> = names
        .iter()
        .map(|name| cluster::source_name(name))
        .collect();
    match (kind, sources) {
        (None, Some(names)) if !names.is_empty() => Ok((Listed::Sources, names)),
        (Some(kind @ (Listed::Gatekeepers | Listed::Sources)), _) => Ok((kind, names.to_vec())),
        (None | Some(Listed::Gates), _) => {
            let names = names.iter().map(|name| cluster::gate_name(name));
            Ok((Listed::Gates, names.collect::<Result<_>>()?))
        }
    }
}

/// What its status says: something waits, or nothing does.
fn source_row(source: &GatedSource, now: Timestamp) -> Row {
    let key = Key::of(&source.metadata);
    let status = source.status.clone().unwrap_or_default();
    let condition = |name: &str| status.conditions.iter().find(|it| it.type_ == name);
    let holds = |name: &str| condition(name).is_some_and(|it| it.status == "True");
    let (word, told) = match () {
        () if source.spec.suspend => ("Suspended", None),
        () if holds("Stalled") => ("Stalled", condition("Stalled")),
        () if holds("Blocked") => ("Blocked", condition("Blocked")),
        () if status.pending.is_some() => ("Pending", condition("Ready")),
        () if status.conditions.is_empty() => ("Unknown", None),
        () => ("Current", condition("Ready")),
    };
    let held = cluster::last_decision(source).filter(|_| word == "Blocked");
    let turn = status.pending.as_ref().and_then(|it| it.admit_at.as_ref());
    let until = turn.or(held.and_then(|it| it.next.as_ref()));
    let created = source.metadata.creation_timestamp.as_ref();
    let revision = |text: Option<&String>| text.map(|text| source::short(text)).unwrap_or_default();
    Row {
        cells: vec![
            key.namespace,
            key.name,
            word.to_owned(),
            revision(status.admitted.as_ref().map(|it| &it.revision)),
            revision(status.pending.as_ref().map(|it| &it.revision)),
            held.map(|it| it.decided_by.join(",")).unwrap_or_default(),
            until.map(|at| at.0.to_string()).unwrap_or_default(),
            created.map(|time| age(time.0, now)).unwrap_or_default(),
            told.map(|it| it.message.clone()).unwrap_or_default(),
        ],
        state: None,
    }
}

fn gate_row(key: &Key, gate: &Gate, decision: &sluice_core::simulate::Decision, now: Now) -> Row {
    let age_of = |at: Option<Timestamp>| at.map(|at| age(at, now.at)).unwrap_or_default();
    let status = gate.status.as_ref();
    let since = status.filter(|status| status.state == Some(decision.state));
    Row {
        cells: vec![
            key.namespace.clone(),
            key.name.clone(),
            decision.state.to_string(),
            decision.reason.clone(),
            decision
                .upcoming
                .first()
                .map(|change| change.at.0.to_string())
                .unwrap_or_default(),
            decision
                .r#override
                .as_ref()
                .map(|force| force.by.clone())
                .unwrap_or_default(),
            age_of(since.and_then(|status| Some(status.since.as_ref()?.0))),
            age_of(gate.metadata.creation_timestamp.as_ref().map(|time| time.0)),
            decision.message.clone(),
        ],
        state: Some(decision.state),
    }
}

fn gatekeeper_row(gatekeeper: &Gatekeeper, now: Timestamp) -> Row {
    let key = Key::of(&gatekeeper.metadata);
    let status = gatekeeper.status.as_ref();
    let verdict = status.and_then(|status| status.verdict.as_ref());
    let until = status.and_then(|status| Some(status.upcoming.first()?.at.0.to_string()));
    let kind = gatekeeper.spec.kind().map_or("", |kind| kind.as_str());
    let created = gatekeeper.metadata.creation_timestamp.as_ref();
    let state = verdict.map(|verdict| verdict.state);
    Row {
        cells: vec![
            key.namespace,
            key.name,
            state.map_or("Unknown".to_owned(), |state| state.to_string()),
            kind.to_owned(),
            verdict
                .map(|verdict| verdict.reason.clone())
                .unwrap_or_default(),
            until.unwrap_or_default(),
            created.map(|time| age(time.0, now)).unwrap_or_default(),
            verdict
                .map(|verdict| verdict.message.clone())
                .unwrap_or_default(),
        ],
        state,
    }
}

/// The namespace is the first column, the message the last.
fn table(titles: &[&str], rows: &[Row], namespaces: bool, wide: bool) -> String {
    let head = ["NAMESPACE", "NAME", "STATE"].iter().chain(titles);
    let head: Vec<&str> = head.chain(&["MESSAGE"]).copied().collect();
    let shown = usize::from(!namespaces)..head.len() - usize::from(!wide);
    let cells = |row: &Row| {
        let mut cells = row.cells.clone();
        if let Some(state) = row.state {
            cells[STATE] = output::state(state);
        }
        cells[shown.clone()].to_vec()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    output::table(&head[shown.clone()], &rows)
}

#[cfg(test)]
mod tests;
