//! FILES as a world in which gates are decided, for the commands that need no cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use jiff::Timestamp;
use serde_json::Value;
use sluice_core::gatekeeper::Given;
use sluice_core::offline::lint;
use sluice_core::offline::simulate::{Key, World};

use super::input::Input;
use super::source::{self, Content, Source};
use super::yaml;
use crate::output::{self, count};

/// Reads FILES, without anything that lint would refuse at `now`. What names no namespace is in
/// `namespace`.
///
/// # Errors
/// A file that cannot be read; one that lint refuses, after saying why.
pub(crate) fn world(paths: &[PathBuf], namespace: &str, now: Timestamp) -> Result<World> {
    let mut input = Input::new(&source::read(paths)?, namespace);
    input.look_for_refusals(now);
    let mut refused = input.findings();
    refused.retain(|finding| finding.refused);
    input.notes().iter().for_each(output::note);
    if refused.is_empty() {
        return Ok(input.world);
    }
    refused.iter().for_each(output::note);
    bail!("the input is refused: {}", count(refused.len(), "mistake"));
}

/// Every object in FILES as it is written, with where it stands: also of kinds that are none of ours. Lists
/// are taken apart.
///
/// # Errors
/// A file that cannot be read, or is no YAML.
pub(crate) fn objects(paths: &[PathBuf]) -> Result<Vec<(String, Value)>> {
    objects_in(&source::read(paths)?)
}

/// Every object in `sources`.
///
/// # Errors
/// One that was asked for and is no YAML.
pub(crate) fn objects_in(sources: &[Source]) -> Result<Vec<(String, Value)>> {
    let mut objects = Vec::new();
    for source in sources {
        let text = match &source.text {
            Ok(Content::Text(text)) => text,
            Ok(Content::Calendar(_)) => continue,
            Err(why) if source.asked_for => bail!("{}: {why}", source.origin),
            Err(_) => continue,
        };
        let (documents, mistake) = yaml::documents(text);
        if let Some(mistake) = mistake.filter(|_| source.asked_for) {
            bail!("{}:{}: {}", source.origin, mistake.line, mistake.problem);
        }
        for node in documents.iter().filter(|node| !node.is_empty()) {
            let value = node.value();
            let place = format!("{}:{}", source.origin, node.line);
            match lint::items(&value) {
                Some(items) => objects.extend(items.iter().map(|it| (place.clone(), it.clone()))),
                None => objects.push((place, value)),
            }
        }
    }
    Ok(objects)
}

/// Lets gatekeepers see from `start` on what the file says. One that is named without a namespace is
/// in `namespace`.
///
/// # Errors
/// A file that cannot be read, or says what makes no sense.
pub(crate) fn give(
    world: &mut World,
    path: &Path,
    namespace: &str,
    start: Timestamp,
) -> Result<()> {
    let file = path.display();
    let sources = source::read(&[path.to_owned()])?;
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
            let key = Key::from_text(namespace, &name);
            if !known.insert(key.clone()) {
                bail!("{file}: {name}: it is given twice; write each gatekeeper once");
            }
            let done = world.give(&key, given, start);
            done.map_err(|why| anyhow!("{file}: {name}: {why}"))?;
        }
    }
    Ok(())
}

/// The gate of that name, which may be given as `NAMESPACE/NAME`, or the only one. Without a namespace
/// it may be in any, unless only one is meant.
///
/// # Errors
/// No gate, several, none of that name.
pub(crate) fn choose(world: &World, name: Option<&str>, namespace: Option<&str>) -> Result<Key> {
    let what = match world.gates.is_empty() && !world.gatekeepers.is_empty() {
        true => "gatekeeper",
        false => "gate",
    };
    chosen(&world.gate_names(), name, namespace, what)
}

/// The one of these objects that is called so, or the only one. `what` they are: `gate`.
///
/// # Errors
/// None, several, none of that name.
pub(crate) fn chosen(
    known: &[&Key],
    name: Option<&str>,
    namespace: Option<&str>,
    what: &str,
) -> Result<Key> {
    let is_wanted = |key: &Key, name: &str| {
        let (namespace, name) = match name.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (namespace, name),
        };
        key.name == name && namespace.is_none_or(|namespace| key.namespace == namespace)
    };
    let mut candidates = known.to_vec();
    candidates.retain(|key| name.is_none_or(|name| is_wanted(key, name)));
    let names = |keys: &[&Key]| {
        let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
        names.join(", ")
    };
    match (candidates.as_slice(), name) {
        ([only], _) => Ok((*only).clone()),
        ([], _) if known.is_empty() && what == "gate" => {
            bail!("there is no Gate in these files; write one, or name files that hold one")
        }
        ([], _) if known.is_empty() => {
            bail!("there is no {what} in these files; name files that hold one")
        }
        ([], Some(name)) => bail!(
            "there is no {what} `{name}` in these files; they hold {}",
            names(known)
        ),
        (several, _) => bail!(
            "these files hold {}, {}; choose one with {} NAMESPACE/NAME",
            count(several.len(), what),
            names(several),
            if what == "pipeline" {
                "--pipeline"
            } else {
                "--gate"
            }
        ),
    }
}
