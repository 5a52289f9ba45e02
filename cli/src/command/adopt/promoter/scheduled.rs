//! A ScheduledCommitStatus as gates: what is proposed is merged at some times only.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::guard::{Gates, Side, gate};
use super::names::Names;
use super::theirs::Theirs;

/// # Errors
/// Why it cannot be done.
pub(super) fn gates(theirs: &Theirs, names: &mut Names) -> Result<Gates, String> {
    let spec = theirs.spec();
    let key = spec["key"].as_str().unwrap_or_default();
    let strategy = theirs.names("promotionStrategyRef");
    let (mut of, mut documents) = (BTreeMap::new(), Vec::new());
    for environment in spec["environments"].as_array().into_iter().flatten() {
        let branch = environment["branch"].as_str().unwrap_or_default();
        let [open, closed] = ["allow", "exclude"].map(|list| {
            let all = [&spec[list], &environment[list]].into_iter();
            let all = all.filter_map(Value::as_array).flatten();
            all.collect::<Vec<_>>()
        });
        let zone = zone_of_all(spec, branch, open.iter().chain(&closed))?;
        let mut schedule = json!({"timeZone": zone});
        for (list, windows) in [("open", open), ("closed", closed)] {
            if !windows.is_empty() {
                schedule[list] = windows.into_iter().map(window).collect();
            }
        }
        let name = names.name(&[strategy, key, branch]);
        let spec = json!({ "schedule": schedule });
        documents.extend(gate(theirs, &name, theirs.notes(), &spec)?);
        of.insert(branch.to_owned(), name);
    }
    Ok(Gates {
        side: Side::Proposed,
        of,
        others_wait: false,
        documents,
    })
}

/// The time zone in which all these windows are written.
fn zone_of_all<'v>(
    spec: &'v Value,
    branch: &str,
    windows: impl Iterator<Item = &'v &'v Value>,
) -> Result<&'v str, String> {
    let default = text(&spec["timezone"]).unwrap_or("UTC");
    let zones = windows.map(|window| text(&window["timezone"]).unwrap_or(default));
    let zones: BTreeSet<&str> = zones.collect();
    let mut all = zones.iter();
    match (all.next(), all.next()) {
        (Some(zone), None) => Ok(zone),
        (None, _) => Ok(default),
        (Some(_), Some(_)) => {
            let zones = zones.into_iter().collect::<Vec<_>>().join(", ");
            Err(format!(
                "the windows of {branch} are written in several time zones ({zones}), and a schedule has one. \
                 Write them in one, or a gatekeeper for each, and a Gate that they keep together"
            ))
        }
    }
}

fn window(theirs: &Value) -> Value {
    let mut own = json!({"cron": theirs["cron"], "duration": theirs["duration"]});
    if let Some(reason) = text(&theirs["description"]) {
        own["reason"] = reason.into();
    }
    own
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}
