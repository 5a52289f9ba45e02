//! `kubectl gate promotion`

use anyhow::Result;
use clap::Args;
use kube::api::ListParams;
use sluice_crds::PromotionStrategy;

use crate::arguments::{Globals, Kind, strategy_name};
use crate::cluster::{self, Connection, Use};
use crate::outcome::Outcome;
use crate::output::{self, Data, say, warn};
use crate::view::Strategy;
use crate::view::listing::Wanted;

/// Show promotion strategies: which commit has reached which environment branch, and what the others
/// wait for
///
/// Without a name all strategies are listed, one line each. With a name, each environment of the strategy
/// is listed: the dry commit that it has, its state, what it waits for first, until when, and its pull
/// request. `kubectl gate why promotionstrategy/NAME` tells everything that it waits for. What is shown
/// is what the status of the strategy says.
#[derive(Debug, Args)]
pub(crate) struct Promotion {
    /// The promotion strategy [default: list all]
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// List all namespaces
    #[arg(long, short = 'A', conflicts_with = "name")]
    all_namespaces: bool,

    /// Print in a form for programs
    #[arg(long, short = 'o', value_name = "FORMAT")]
    output: Option<Data>,
}

impl Promotion {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let name = self.name.as_deref().map(strategy_name).transpose()?;
        let connection = cluster::connect(globals, Use::Requests).await?;
        match name {
            Some(name) => self.show(&connection, &name).await,
            None => self.list(&connection).await,
        }
    }

    async fn show(&self, connection: &Connection, name: &str) -> Result<Outcome> {
        let object: PromotionStrategy = cluster::existing(connection, name).await?;
        let strategy = Strategy::of(&object);
        if let Some(form) = self.output {
            output::data(form, &strategy)?;
            return Ok(Outcome::Yes);
        }
        let zone = cluster::zone(connection, false).await;
        let now = connection.present().await.now.at;
        say!("{}", strategy.headline())?;
        let rows = strategy.table(now, &zone);
        output::text(output::table_with_causes(rows, output::width()))?;
        strategy.troubles.iter().for_each(warn);
        Ok(Outcome::Yes)
    }

    async fn list(&self, connection: &Connection) -> Result<Outcome> {
        if let Some(form) = self.output {
            let area = connection.area(self.all_namespaces);
            let objects = cluster::list(&connection.api(area), ListParams::default()).await?;
            let strategies: Vec<Strategy> = objects.iter().map(Strategy::of).collect();
            output::data(form, &strategies)?;
            return Ok(Outcome::Yes);
        }
        let wanted = Wanted::all(Kind::Strategy, self.all_namespaces);
        let listing = wanted.list(connection, None).await?;
        match listing.rows.as_slice() {
            [] => output::note(wanted.nothing("no promotion strategies", connection)),
            _ => output::text(output::table(&listing.brief(self.all_namespaces)))?,
        }
        Ok(Outcome::Yes)
    }
}
