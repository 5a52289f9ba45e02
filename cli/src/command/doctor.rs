//! `kubectl gate doctor`
//!
//! What comes in: what the API server says of the installation. What goes out: a line for each part
//! of it, and what to do where something is missing.

use anyhow::Result;
use clap::Args;

use crate::arguments::Globals;
use crate::cluster::{self, Connection, Controller, Use};
use crate::outcome::Outcome;
use crate::output::{self, Data};

mod clocks;
mod finding;
mod flux;
mod kinds;
mod leader;
mod policies;
mod rights;

use finding::{Finding, Health};

/// Check the installation: the CRDs, the policies, rights, the controller and its leader, clocks and
/// Flux
///
/// Prints one line for each part, and what to do if something is missing. A part that you have no right
/// to read is shown as unknown: an administrator of the cluster sees more.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 all is well; 1 something is missing; 2 nothing is known to be missing, but not everything could be checked."
)]
pub(crate) struct Doctor {
    /// Print in a form for programs
    #[arg(long, short = 'o', value_name = "FORMAT")]
    output: Option<Data>,
}

impl Doctor {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let connection = cluster::connect(globals, Use::Requests).await?;
        // Somebody who is not known, or gets no answer, need not read the same six times.
        connection.who().await?;
        let findings = examine(&connection).await;
        match self.output {
            Some(form) => output::data(form, &findings)?,
            None => output::text(finding::table(&findings, output::width()))?,
        }
        let any = |health| findings.iter().any(|finding| finding.health == health);
        Ok(match (any(Health::Failed), any(Health::Unknown)) {
            (true, _) => Outcome::No,
            (false, true) => Outcome::Unknown,
            (false, false) => Outcome::Yes,
        })
    }
}

async fn examine(connection: &Connection) -> Vec<Finding> {
    let controllers = cluster::controllers(connection).await;
    let known: &[Controller] = controllers.as_deref().unwrap_or_default();
    let mut findings = kinds::examine(connection).await;
    findings.extend(policies::examine(connection, known).await);
    findings.extend(rights::own(connection).await);
    match &controllers {
        Ok(controllers) => findings.extend(leader::examine(connection, controllers).await),
        Err(error) => findings.push(Finding::unknown("controller", error)),
    }
    findings.extend(rights::of_controllers(connection, known).await);
    findings.push(clocks::own(connection).await);
    findings.extend(clocks::of_controllers(connection, known).await);
    findings.extend(flux::examine(connection).await);
    findings
}
