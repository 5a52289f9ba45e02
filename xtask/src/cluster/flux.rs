//! Flux on the local control plane, with a Git server, a registry and a Helm repository that it can
//! fetch from.
//!
//! What comes in: a control plane that runs. What goes out: the controllers, and a table of what was
//! started and where it is.

use std::fmt::Write;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use sluice_tests::Cluster;
use sluice_tests::flux::{BRANCH, Charts, Flux, Git, Programs, Reach, Registry};
use sluice_tests::progress::Stderr;

/// The row of the Git server.
pub(super) const GIT: &str = "Git server";
/// The row of the Helm repository.
pub(super) const HELM: &str = "Helm repository";

/// Something that was started, for people.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) what: String,
    pub(super) place: String,
    note: String,
}

/// What runs beside the control plane. Dropped, it ends.
pub(super) struct Beside {
    flux: Flux,
    registry: Registry,
    git: Git,
    charts: Charts,
}

/// Finds the programs, or builds them.
pub(super) fn ensure() -> Result<Programs> {
    let progress = Stderr::new();
    Registry::ensure(&progress)?;
    Programs::ensure(&progress)
}

impl Beside {
    /// Starts everything.
    pub(super) async fn start(programs: &Programs, cluster: &Cluster) -> Result<Self> {
        Ok(Self {
            flux: Flux::start(programs, cluster, Reach::Cluster).await?,
            registry: Registry::start(&Stderr::new()).await?,
            git: Git::serve().await?,
            charts: Charts::serve().await?,
        })
    }

    /// What was started.
    pub(super) fn rows(&self) -> Vec<Row> {
        let row = |what: &str, place: String, note: String| Row {
            what: what.to_owned(),
            place,
            note,
        };
        let artifacts = format!("http://{}/", self.flux.store_address());
        let branch = format!("for GitRepositories; empty: git push URL HEAD:{BRANCH}");
        let insecure = "for OCIRepositories, with insecure: true";
        let upload = "for HelmRepositories; empty: curl --upload-file NAME-1.0.0.tgz URL";
        let controllers = self.flux.controllers().map(|controller| {
            let (place, note) = match controller.name() {
                "source-controller" => (artifacts.clone(), "serves artifacts"),
                "notification-controller" => (self.flux.events_url(), "takes events"),
                _ => (String::new(), "allows ExternalArtifacts"),
            };
            row(controller.name(), place, note.to_owned())
        });
        let sources = [
            row(GIT, self.git.url(), branch),
            row("registry", self.registry.url("NAME"), insecure.to_owned()),
            row(HELM, format!("{}/", self.charts.url()), upload.to_owned()),
        ];
        controllers.into_iter().chain(sources).collect()
    }
}

/// The rows, in columns.
pub(super) fn table(rows: &[Row]) -> String {
    let width = |of: fn(&Row) -> &str| rows.iter().map(|row| of(row).len()).max().unwrap_or(0);
    let (what, place) = (width(|row| &row.what), width(|row| &row.place));
    let mut text = String::new();
    for row in rows {
        let line = format!("{:what$}  {:place$}  {}", row.what, row.place, row.note);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_columns() {
        let row = |what: &str, place: &str, note: &str| Row {
            what: what.to_owned(),
            place: place.to_owned(),
            note: note.to_owned(),
        };
        let rows = [row("one", "http://a/", ""), row("longer", "", "a note")];
        let expected = "one     http://a/\nlonger             a note\n";
        assert_eq!(table(&rows), expected);
    }
}
