//! What was found of a part of the installation, and how it is printed.

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::output;

/// How a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Health {
    Ok,
    Failed,
    /// Nobody who asks may look at it.
    Unknown,
}

/// What was found of a part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Finding {
    pub(super) part: &'static str,
    pub(super) health: Health,
    pub(super) found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

impl Finding {
    pub(super) fn ok(part: &'static str, found: impl Into<String>) -> Self {
        Self {
            part,
            health: Health::Ok,
            found: found.into(),
            remedy: None,
        }
    }

    pub(super) fn failed(
        part: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            part,
            health: Health::Failed,
            found: found.into(),
            remedy: Some(remedy.into()),
        }
    }

    /// `error` keeps us from looking.
    pub(super) fn unknown(part: &'static str, error: &anyhow::Error) -> Self {
        Self {
            part,
            health: Health::Unknown,
            found: format!("{error:#}"),
            remedy: Some("ask somebody who administers the cluster to run this".to_owned()),
        }
    }
}

/// The columns of the health and the part, with the blanks behind them.
const HEALTH: usize = 10;
const PART: usize = 13;

/// A line for each, and below it what to do.
pub(super) fn table(findings: &[Finding], columns: Option<usize>) -> String {
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
