//! `kubectl gate doctor`
//!
//! What comes in: what the API server says of the installation. What goes out: a line for each part
//! of it, and what to do where something is missing.

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::arguments::Globals;
use crate::cluster::{self, Connection, Controller, Use};
use crate::outcome::Outcome;
use crate::output::{self, Data};

mod clocks;
mod flux;
mod kinds;
mod leader;
mod policies;
mod rights;

/// Check the installation: the kinds, the policies, rights, the controller and its leader, clocks and
/// Flux
///
/// Each part is a line, with what to do where something is missing. What you may not look at is
/// said to be unknown: whoever administers the cluster sees more.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 all is well; 1 something is missing; 2 nothing is, as far as could be looked at."
)]
pub(crate) struct Doctor {
    /// Print for programs
    #[arg(long, short = 'o', value_name = "FORMAT")]
    output: Option<Data>,
}

/// How a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Health {
    Ok,
    Failed,
    /// Nobody who asks may look at it.
    Unknown,
}

/// What was found of a part.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Finding {
    part: &'static str,
    health: Health,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Finding {
    fn ok(part: &'static str, found: impl Into<String>) -> Self {
        Self {
            part,
            health: Health::Ok,
            found: found.into(),
            remedy: None,
        }
    }

    fn failed(part: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            part,
            health: Health::Failed,
            found: found.into(),
            remedy: Some(remedy.into()),
        }
    }

    /// `error` keeps us from looking.
    fn unknown(part: &'static str, error: &anyhow::Error) -> Self {
        Self {
            part,
            health: Health::Unknown,
            found: format!("{error:#}"),
            remedy: Some("ask somebody who administers the cluster to run this".to_owned()),
        }
    }
}

impl Doctor {
    pub(super) async fn run(&self, globals: &Globals) -> Result<Outcome> {
        let connection = cluster::connect(globals, Use::Requests).await?;
        // Whoever is not known, or gets no answer, need not read the same six times.
        connection.who().await?;
        let findings = examine(&connection).await;
        match self.output {
            Some(form) => output::data(form, &findings)?,
            None => output::text(table(&findings, output::width()))?,
        }
        let any = |health| findings.iter().any(|finding| finding.health == health);
        Ok(match (any(Health::Failed), any(Health::Unknown)) {
            (true, _) => Outcome::No,
            (false, true) => Outcome::CannotTell,
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

/// The columns of the health and the part, with the blanks behind them.
const HEALTH: usize = 10;
const PART: usize = 13;

/// A line for each, and below it what to do.
fn table(findings: &[Finding], columns: Option<usize>) -> String {
    let mut text = String::new();
    for finding in findings {
        let (word, color) = match finding.health {
            Health::Ok => ("ok", AnsiColor::Green),
            Health::Failed => ("failed", AnsiColor::Red),
            Health::Unknown => ("unknown", AnsiColor::Yellow),
        };
        let style: Style = color.on_default().bold();
        let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(HEALTH + PART));
        let mut lead = format!("{style}{word:<HEALTH$}{style:#}{:<PART$}", finding.part);
        let remedy = finding
            .remedy
            .iter()
            .map(|remedy| format!("to do: {remedy}"));
        for part in std::iter::once(finding.found.clone()).chain(remedy) {
            for line in output::wrapped(&part, room) {
                text.push_str(&format!("{lead}{line}\n"));
                lead = format!("{:1$}", "", HEALTH + PART);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_fits_and_a_remedy_stands_below() {
        let findings = [
            Finding::ok("kinds", "5 kinds are served"),
            Finding::failed(
                "policies",
                "sluice-children is not there: anybody may change what is pinned",
                "install the chart with policies.install=true",
            ),
        ];
        let drawn = anstream::adapter::strip_str(&table(&findings, Some(72))).to_string();
        insta::assert_snapshot!(drawn, @r"
        ok        kinds        5 kinds are served
        failed    policies     sluice-children is not there: anybody may change
                                 what is pinned
                               to do: install the chart with
                                 policies.install=true
        ");
    }
}
