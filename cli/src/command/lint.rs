//! `kubectl gate lint`

use anyhow::Result;
use clap::Args;

use crate::arguments::{Files, Globals};
use crate::clock;
use crate::files::{self, Input};
use crate::outcome::Outcome;
use crate::output::{self, count};

mod forms;

use forms::Form;

/// Find what admission or the controller would refuse in files, without a cluster
///
/// Each mistake is one line, with the file, line, document, object, field and remedy. A warning is
/// about something that may be intended: a gate that names a gatekeeper that is not in these files, or
/// a gate that does not open within 90 days. Calendars (.ics) are read, too.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 nothing is refused; 1 something is, or with --strict there is a warning; \
                  2 it cannot be told: bad arguments, a file that cannot be read."
)]
pub(crate) struct Lint {
    #[command(flatten)]
    files: Files,
    /// Also fail if there are warnings
    #[arg(long)]
    strict: bool,
    /// Print the findings in a form for programs: json, sarif (code scanning), or github (annotations
    /// of a workflow)
    #[arg(long, short = 'o', value_enum, value_name = "FORM")]
    output: Option<Form>,
}

impl Lint {
    pub(super) fn run(&self, globals: &Globals) -> Result<Outcome> {
        let sources = files::read(&self.files.paths)?;
        let mut input = Input::new(&sources, globals.namespace_of_files());
        input.look_at_all(clock::now());
        input.notes().iter().for_each(output::note);
        let findings = input.findings();
        match self.output {
            Some(form) => output::text(form.text(&findings)?)?,
            None => findings.iter().try_for_each(output::line)?,
        }
        let refused = findings.iter().filter(|finding| finding.refused).count();
        let warned = findings.len() - refused;
        let world = &input.world;
        let mut read = vec![
            count(world.gates.len(), "gate"),
            count(world.gatekeepers.len(), "gatekeeper"),
            count(world.config_maps.len(), "ConfigMap"),
        ];
        if !world.sources.is_empty() {
            read.push(count(world.sources.len(), "gated source"));
        }
        if !world.pipelines.is_empty() {
            read.push(count(world.pipelines.len(), "pipeline"));
        }
        match world.strategies.len() {
            0 => {}
            1 => read.push("1 promotion strategy".to_owned()),
            many => read.push(format!("{many} promotion strategies")),
        }
        if input.calendars > 0 {
            read.push(count(input.calendars, "calendar"));
        }
        let (mistakes, warnings) = (count(refused, "mistake"), count(warned, "warning"));
        output::note(format_args!("{}: {mistakes}, {warnings}", read.join(", ")));
        let is_fine = refused == 0 && (warned == 0 || !self.strict);
        Ok(Outcome::yes_if(is_fine))
    }
}
