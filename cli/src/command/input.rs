//! FILES, for the commands that need no cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use jiff::Timestamp;
use sluice_core::gatekeeper::Given;
use sluice_core::offline::simulate::{Key, World};

use crate::arguments::Globals;
use crate::files::{self, Content, Input};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Files {
    /// YAML or JSON files, folders of them, or - for standard input. All kinds of Sluice are read,
    /// with the Namespaces and ConfigMaps that they need, and calendars (.ics); anything else is skipped
    #[arg(long = "filename", short = 'f', value_name = "FILES", num_args = 1.., required = true)]
    pub(super) paths: Vec<PathBuf>,
}

/// Reads FILES, without anything that lint would refuse at `now`.
///
/// # Errors
/// A file that cannot be read; one that lint refuses, after saying why.
pub(super) fn read(paths: &[PathBuf], globals: &Globals, now: Timestamp) -> Result<World> {
    let sources = files::read(paths)?;
    let mut input = Input::new(&sources, super::namespace_of_files(globals));
    input.look_for_refusals(now);
    let refused: Vec<_> = input
        .findings()
        .into_iter()
        .filter(|finding| finding.refused)
        .collect();
    for note in input.notes() {
        output::note(note);
    }
    if refused.is_empty() {
        return Ok(input.world);
    }
    for finding in &refused {
        output::note(finding);
    }
    bail!("the input is refused: {}", count(refused.len(), "mistake"));
}

/// Lets gatekeepers see from `start` on what the file says.
///
/// # Errors
/// A file that cannot be read, or says what makes no sense.
pub(super) fn give(
    world: &mut World,
    path: &Path,
    globals: &Globals,
    start: Timestamp,
) -> Result<()> {
    let file = path.display();
    let sources = files::read(&[path.to_owned()])?;
    let mut known = BTreeSet::new();
    for source in &sources {
        let text = match &source.text {
            Ok(Content::Text(text)) => text,
            Ok(Content::Calendar(_)) => bail!("{file}: it is a calendar, and no evidence"),
            Err(why) => bail!("{}: {why}", source.origin),
        };
        let given: BTreeMap<String, Given> =
            serde_saphyr::from_str(text).with_context(|| format!("{file}: it is no evidence"))?;
        for (name, given) in given {
            let (namespace, short) = match name.split_once('/') {
                Some((namespace, name)) => (namespace, name),
                None => (super::namespace_of_files(globals), name.as_str()),
            };
            let key = Key::from_reference(namespace, None, short);
            if !known.insert(key.clone()) {
                bail!("{file}: {name}: it is given twice; write each gatekeeper once");
            }
            let done = world.give(&key, given, start);
            done.map_err(|why| anyhow!("{file}: {name}: {why}"))?;
        }
    }
    Ok(())
}

/// The gate of that name, which may be given as `NAMESPACE/NAME`, or the only one.
///
/// # Errors
/// No gate, several, none of that name.
pub(super) fn choose(world: &World, name: Option<&str>, globals: &Globals) -> Result<Key> {
    let known = world.gate_names();
    let is_wanted = |key: &Key, name: &str| match name.split_once('/') {
        Some((namespace, name)) => key.namespace == namespace && key.name == name,
        None => {
            let elsewhere = |wanted: &String| *wanted != key.namespace;
            key.name == name && !globals.namespace.as_ref().is_some_and(elsewhere)
        }
    };
    let candidates: Vec<&Key> = match name {
        Some(name) => known
            .iter()
            .copied()
            .filter(|key| is_wanted(key, name))
            .collect(),
        None => known.clone(),
    };
    let names = |keys: &[&Key]| {
        keys.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    match (candidates.as_slice(), name) {
        ([only], _) => Ok((*only).clone()),
        ([], _) if known.is_empty() => {
            bail!("there is no Gate in these files; write one, or name files that hold one")
        }
        ([], Some(name)) => bail!(
            "there is no gate `{name}` in these files; they hold {}",
            names(&known)
        ),
        (several, _) => bail!(
            "these files hold {}, {}; choose one with --gate NAMESPACE/NAME",
            count(
                several.len(),
                if world.gates.is_empty() {
                    "gatekeeper"
                } else {
                    "gate"
                }
            ),
            names(several)
        ),
    }
}

/// `1 mistake`, `2 mistakes`.
pub(super) fn count(many: usize, what: &str) -> String {
    format!("{many} {what}{}", if many == 1 { "" } else { "s" })
}
