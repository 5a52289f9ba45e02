//! `kubectl gate get`

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use sluice_core::offline::simulate::Key;

use crate::arguments::{self, Globals};
use crate::cluster::{self, Connection, Use, Watched};
use crate::outcome::Outcome;
use crate::output::{self, Data};
use crate::view::listing::{Listing, Wanted};
use crate::view::rows::Row;

/// List gates, gatekeepers, gated sources, approvals, gate policies, pipelines, promotion strategies, reverts
/// or rollouts: their state, why, and until when
///
/// The plugin decides the state of a gate now, as `check` does, and also that of a gate policy: Open
/// means that it lets changes pass. The state of a gatekeeper, a gated source, a pipeline, a promotion
/// strategy, a revert or a rollout is taken from its status. Pipelines that need somebody come first. UNTIL is
/// the next instant at which time changes that state. It is shown in the time zone that the heading names: the
/// time zone of the windows, if they all have the same one.
#[derive(Debug, Args)]
pub(crate) struct Get {
    /// What to list: `gates`, `gatekeepers`, `sources`, `approvals`, `policies`, `pipelines`,
    /// `promotionstrategies`, `reverts` or `rollouts`, and then names, to list only those [default: all gates]
    #[arg(value_name = "[KIND] NAME")]
    what: Vec<String>,

    /// List all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,

    /// Only objects with these labels, such as app=shop,tier!=test
    #[arg(long, short = 'l', value_name = "LABELS")]
    selector: Option<String>,

    /// After the list, print each change until you interrupt the command
    #[arg(long, short = 'w')]
    watch: bool,

    /// Let forces count even if nobody has verified who wrote them
    #[arg(long)]
    trust_unverified_identity: bool,

    /// The format to print in
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
        let listing = wanted.list(&connection, None).await?;
        if listing.rows.is_empty() && self.is_table() {
            output::note(wanted.nothing("none", &connection));
            return Ok(Outcome::Yes);
        }
        match self.output {
            Form::Table | Form::Wide => output::text(output::table(&self.table(&listing)))?,
            Form::Json => output::data(Data::Json, &wanted.objects(&listing))?,
            Form::Yaml => output::data(Data::Yaml, &wanted.objects(&listing))?,
            Form::Name => self.print(&wanted, listing.rows.iter())?,
        }
        Ok(Outcome::Yes)
    }

    fn wanted(&self) -> Result<Wanted> {
        let (kind, names) = arguments::listed(&self.what)?;
        if self.all_namespaces && !names.is_empty() {
            bail!("a name belongs to one namespace; leave out --all-namespaces, or the names");
        }
        if self.selector.is_some() && !names.is_empty() {
            bail!("--selector chooses by labels; leave it out, or the names");
        }
        Ok(Wanted {
            kind,
            names,
            everywhere: self.all_namespaces,
            selector: self.selector.clone(),
            trust_unverified: self.trust_unverified_identity,
        })
    }

    fn is_table(&self) -> bool {
        matches!(self.output, Form::Table | Form::Wide)
    }

    /// Prints rows one by one: their objects, or their names.
    fn print<'r>(&self, wanted: &Wanted, rows: impl Iterator<Item = &'r Row>) -> Result<()> {
        for row in rows {
            match self.output {
                Form::Json => output::data(Data::Json, &row.object)?,
                Form::Yaml => {
                    output::text("---\n")?;
                    output::data(Data::Yaml, &row.object)?;
                }
                Form::Table | Form::Wide | Form::Name => {
                    output::line(wanted.kind.named(&row.key.name))?;
                }
            }
        }
        Ok(())
    }

    /// The head, and the cells of each row: the namespace is the first column, the message the last.
    fn table(&self, listing: &Listing) -> Vec<Vec<String>> {
        let namespaces = listing.rows.iter().any(|row| !row.key.namespace.is_empty());
        let from = usize::from(!(self.all_namespaces && namespaces));
        let titles = listing.titles.iter().map(|title| match *title {
            "UNTIL" => format!("UNTIL ({})", listing.zone.name),
            other => other.to_owned(),
        });
        let ends = ["NAMESPACE", "NAME"].map(str::to_owned);
        let head = ends.into_iter().chain(titles).chain(["MESSAGE".to_owned()]);
        let cells = |row: &Row| {
            let Key { namespace, name } = row.key.clone();
            let mut cells = vec![namespace, name];
            let own = listing
                .titles
                .iter()
                .chain(["MESSAGE"].iter())
                .zip(&row.cells);
            cells.extend(own.map(|(title, cell)| match row.state {
                Some(state) if *title == "STATE" => output::state(state),
                _ => cell.clone(),
            }));
            cells
        };
        let mut rows: Vec<Vec<String>> = vec![head.collect()];
        rows.extend(listing.rows.iter().map(cells));
        for row in &mut rows {
            row.drain(..from);
            if self.output != Form::Wide {
                row.pop();
            }
        }
        rows
    }

    /// Lists, and then what changes, until somebody interrupts it.
    async fn follow(&self, connection: &Connection, wanted: &Wanted) -> Result<Outcome> {
        let mut watched = Watched::default();
        let mut shown = Shown::default();
        wanted.watch(connection, &mut watched);
        loop {
            let wake = match wanted.list(connection, Some(&mut watched)).await {
                Ok(listing) => {
                    shown.print(self, wanted, &listing)?;
                    listing.wake
                }
                Err(error) => cluster::again(error, shown.began)?,
            };
            watched.settled(wake).await;
        }
    }

    /// What there is to print of a row, without what changes with every look.
    fn steady(&self, listing: &Listing, row: &Row) -> String {
        if !self.is_table() {
            return match self.output {
                Form::Name => String::new(),
                _ => row.object.to_string(),
            };
        }
        let titles = listing.titles.iter().chain(&["MESSAGE"]);
        let shown = titles.zip(&row.cells).filter(|(title, _)| {
            !AGES.contains(title) && (**title != "MESSAGE" || self.output == Form::Wide)
        });
        shown.map(|(_, cell)| format!("{cell}\n")).collect()
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
        let rows = listing.rows.iter();
        let now = rows.map(|row| (row.key.clone(), get.steady(listing, row)));
        let before = std::mem::replace(&mut self.rows, now.collect());
        let is_news = |row: &&Row| before.get(&row.key) != self.rows.get(&row.key);
        if get.is_table() {
            let news: Vec<bool> = listing.rows.iter().map(|row| is_news(&row)).collect();
            let gone = before.keys().filter(|key| !self.rows.contains_key(key));
            let gone: Vec<Key> = gone.cloned().collect();
            self.table(get, listing, &news, &gone)?;
        } else {
            get.print(wanted, listing.rows.iter().filter(is_news))?;
        }
        self.began = true;
        Ok(())
    }

    fn table(&mut self, get: &Get, listing: &Listing, news: &[bool], gone: &[Key]) -> Result<()> {
        let table = get.table(listing);
        if self.widths.is_empty() && !listing.rows.is_empty() {
            self.widths = output::widths(&table);
            output::text(output::row(&table[0], &self.widths))?;
        }
        for (cells, _) in table[1..].iter().zip(news).filter(|(_, is_news)| **is_news) {
            output::text(output::row(cells, &self.widths))?;
        }
        for Key { namespace, name } in gone {
            let cells = [namespace, name, "deleted"].map(|cell: &str| cell.to_owned());
            let from = usize::from(!get.all_namespaces);
            output::text(output::row(&cells[from..], &self.widths))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
