//! `kubectl gate get`

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sluice_core::offline::simulate::Key;
use sluice_crds::State;

pub(super) use self::kinds::Listed;
use self::kinds::split;
use super::watched::Watched;
use crate::arguments::Globals;
use crate::clock;
use crate::cluster::{self, Connection, Use};
use crate::instant::Zone;
use crate::outcome::Outcome;
use crate::output::{self, Data};

mod kinds;
mod list;
mod rows;
#[cfg(test)]
mod tests;

/// How soon an API server that did not answer is asked again.
const TRY_AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// List gates, gatekeepers, gated sources, approvals or gate policies: their state, why, and until
/// when
///
/// The state of a gate is decided here and now, as `check` decides it, and so is that of a gate
/// policy: Open lets pass. That of a gatekeeper, and of a gated source, is what its status reports.
/// UNTIL is when time changes that state next, in the time zone that the heading names: the one in
/// which the windows are written, if it is one.
#[derive(Debug, Args)]
pub(crate) struct Get {
    /// What to list, `gates`, `gatekeepers`, `sources`, `approvals` or `policies`, and which of them
    /// by name [default: all gates]
    #[arg(value_name = "[KIND] NAME")]
    what: Vec<String>,

    /// In all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,

    /// Only what has these labels, such as app=shop,tier!=test
    #[arg(long, short = 'l', value_name = "LABELS")]
    selector: Option<String>,

    /// Go on after the list, and print what has changed, until interrupted
    #[arg(long, short = 'w')]
    watch: bool,

    /// Let forces count although nobody verified who they are from
    #[arg(long)]
    trust_unverified_identity: bool,

    /// How to print
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "table")]
    output: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Table,
    /// With the messages.
    Wide,
    Json,
    Yaml,
    Name,
}

/// What is asked for.
struct Wanted {
    listed: Listed,
    names: Vec<String>,
    all_namespaces: bool,
    selector: Option<String>,
    trust_unverified: bool,
}

/// What there is.
struct Listing {
    /// Those between the name and the message.
    titles: Vec<String>,
    rows: Vec<Row>,
    /// When to look again, if nothing changes before.
    wake: Option<Timestamp>,
}

/// One object.
struct Row {
    key: Key,
    /// One for each title, and the message.
    cells: Vec<String>,
    /// Of what can be open and closed: it colors the cell of the state.
    state: Option<State>,
    /// As kubectl prints it.
    object: Value,
}

/// What changes with every look is no news.
const AGES: [&str; 2] = ["AGE", "SINCE"];

impl Get {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let wanted = self.wanted()?;
        let r#use = match self.watch {
            true => Use::Watches,
            false => Use::Requests,
        };
        let connection = cluster::connect(globals, r#use).await?;
        if self.watch {
            return self.follow(&connection, &wanted).await;
        }
        let listing = wanted.list(&connection).await?;
        if listing.rows.is_empty() && matches!(self.output, Form::Table | Form::Wide) {
            let place = match self.all_namespaces || wanted.listed == Listed::Policies {
                true => "the cluster".to_owned(),
                false => format!("the namespace {}", connection.namespace),
            };
            output::note(format_args!("There are none in {place}."));
            return Ok(Outcome::Yes);
        }
        self.print(&wanted, &listing)
    }

    fn wanted(&self) -> Result<Wanted> {
        let (listed, names) = split(&self.what)?;
        if self.all_namespaces && !names.is_empty() {
            bail!("a name belongs to one namespace; leave out --all-namespaces, or the names");
        }
        if self.selector.is_some() && !names.is_empty() {
            bail!("--selector chooses by labels; leave it out, or the names");
        }
        Ok(Wanted {
            listed,
            names,
            all_namespaces: self.all_namespaces,
            selector: self.selector.clone(),
            trust_unverified: self.trust_unverified_identity,
        })
    }

    fn print(&self, wanted: &Wanted, listing: &Listing) -> Result<Outcome> {
        match self.output {
            Form::Table | Form::Wide => {
                let (head, rows) = self.cells(wanted, listing);
                let head: Vec<&str> = head.iter().map(String::as_str).collect();
                output::text(output::table(&head, &rows))?;
            }
            Form::Name => {
                for row in &listing.rows {
                    output::line(wanted.listed.named(&row.key))?;
                }
            }
            Form::Json => output::data(Data::Json, &objects(wanted, listing))?,
            Form::Yaml => output::data(Data::Yaml, &objects(wanted, listing))?,
        }
        Ok(Outcome::Yes)
    }

    /// The titles that are shown, and the cells below them.
    fn cells(&self, wanted: &Wanted, listing: &Listing) -> (Vec<String>, Vec<Vec<String>>) {
        let namespaces = self.all_namespaces && wanted.listed != Listed::Policies;
        let wide = self.output == Form::Wide;
        table(listing, namespaces, wide)
    }

    /// Lists, and then what changes, until somebody interrupts it.
    async fn follow(&self, connection: &Connection, wanted: &Wanted) -> Result<Outcome> {
        let mut watched = Watched::default();
        let mut shown = Shown::default();
        // Before anything is read, so that no change falls in between.
        wanted.watch(connection, &mut watched);
        loop {
            let wake = match wanted.look(connection, &mut watched).await {
                Ok(listing) => {
                    shown.print(self, wanted, &listing)?;
                    listing.wake
                }
                // An API server that restarts is no reason to give up, unless it was never there.
                Err(error) if shown.began && cluster::is_passing(&error) => {
                    clock::now().saturating_add(TRY_AGAIN).ok()
                }
                Err(error) => return Err(error),
            };
            watched.settled(wake).await;
        }
    }
}

/// What `--watch` has printed.
#[derive(Default)]
struct Shown {
    began: bool,
    /// Of each object, without what changes with every look.
    rows: BTreeMap<Key, String>,
    widths: Vec<usize>,
}

impl Shown {
    /// Prints what is not as it was.
    fn print(&mut self, get: &Get, wanted: &Wanted, listing: &Listing) -> Result<()> {
        let now: BTreeMap<Key, String> = (listing.rows.iter())
            .map(|row| (row.key.clone(), get.steady(listing, row)))
            .collect();
        let is_news = |row: &&Row| self.rows.get(&row.key) != now.get(&row.key);
        let gone: Vec<Key> = (self.rows.keys())
            .filter(|key| !now.contains_key(key))
            .cloned()
            .collect();
        let news: Vec<&Row> = listing.rows.iter().filter(is_news).collect();
        match get.output {
            Form::Table | Form::Wide => self.table(get, wanted, listing, &news, &gone)?,
            Form::Name => {
                for row in &news {
                    output::line(wanted.listed.named(&row.key))?;
                }
            }
            Form::Json => {
                for row in &news {
                    output::data(Data::Json, &row.object)?;
                }
            }
            Form::Yaml => {
                for row in &news {
                    output::text("---\n")?;
                    output::data(Data::Yaml, &row.object)?;
                }
            }
        }
        self.began = true;
        self.rows = now;
        Ok(())
    }

    fn table(
        &mut self,
        get: &Get,
        wanted: &Wanted,
        listing: &Listing,
        news: &[&Row],
        gone: &[Key],
    ) -> Result<()> {
        let (head, rows) = get.cells(wanted, listing);
        if self.widths.is_empty() && !rows.is_empty() {
            self.widths = output::widths(&head, &rows);
            output::text(output::row(&head, &self.widths))?;
        }
        for (row, cells) in listing.rows.iter().zip(&rows) {
            if news.iter().any(|known| known.key == row.key) {
                output::text(output::row(cells, &self.widths))?;
            }
        }
        for key in gone {
            let name = match get.all_namespaces {
                true => vec![key.namespace.clone(), key.name.clone()],
                false => vec![key.name.clone()],
            };
            let cells: Vec<String> = name.into_iter().chain(["deleted".to_owned()]).collect();
            output::text(output::row(&cells, &self.widths))?;
        }
        Ok(())
    }
}

impl Get {
    /// What there is to print of a row, without what changes with every look.
    fn steady(&self, listing: &Listing, row: &Row) -> String {
        match self.output {
            Form::Table | Form::Wide => {
                let titles = listing.titles.iter().map(String::as_str).chain(["MESSAGE"]);
                let shown = titles.zip(&row.cells).filter(|(title, _)| {
                    !AGES.contains(title) && (*title != "MESSAGE" || self.output == Form::Wide)
                });
                shown.map(|(_, cell)| format!("{cell}\n")).collect()
            }
            Form::Json | Form::Yaml => row.object.to_string(),
            Form::Name => String::new(),
        }
    }
}

/// The objects themselves, as kubectl prints them.
fn objects(wanted: &Wanted, listing: &Listing) -> Value {
    let items = || listing.rows.iter().map(|row| row.object.clone());
    match (wanted.names.len(), listing.rows.as_slice()) {
        (1, [only]) => only.object.clone(),
        _ => json!({"apiVersion": "v1", "kind": "List", "items": items().collect::<Vec<_>>()}),
    }
}

/// The head and the cells: the namespace is the first column, the message the last.
fn table(listing: &Listing, namespaces: bool, wide: bool) -> (Vec<String>, Vec<Vec<String>>) {
    let ends = ["NAMESPACE", "NAME"].map(str::to_owned).into_iter();
    let head = ends.chain(listing.titles.iter().cloned());
    let head: Vec<String> = head.chain(["MESSAGE".to_owned()]).collect();
    let shown = usize::from(!namespaces)..head.len() - usize::from(!wide);
    let state = listing.titles.iter().position(|title| title == "STATE");
    let cells = |row: &Row| {
        let mut own = row.cells.clone();
        if let (Some(place), Some(state)) = (state, row.state) {
            own[place] = output::state(state);
        }
        let Key { namespace, name } = row.key.clone();
        let cells: Vec<String> = [namespace, name].into_iter().chain(own).collect();
        cells[shown.clone()].to_vec()
    };
    let rows = listing.rows.iter().map(cells).collect();
    (head[shown.clone()].to_vec(), rows)
}

/// The heading of the column that says until when.
fn until(zone: &Zone) -> String {
    format!("UNTIL ({})", zone.name)
}
